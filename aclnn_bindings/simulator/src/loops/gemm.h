// Matrix products over strided operands: OpenBLAS where it is there and pays, own loops elsewhere.
#pragma once

#include "ascendcl/dtype.h"

namespace aclsim {

// A matrix view in the compute type; strides count elements.
template <class C>
struct Matrix {
  C* data;
  int64_t rows, cols, row_stride, col_stride;
};

// out = product, or out += product. `out` must have col_stride 1 and overlap neither input.
template <class C>
void gemm(const Matrix<C>& out, const Matrix<const C>& a, const Matrix<const C>& b, bool add);

extern template void gemm(const Matrix<float>&, const Matrix<const float>&,
                          const Matrix<const float>&, bool);
extern template void gemm(const Matrix<double>&, const Matrix<const double>&,
                          const Matrix<const double>&, bool);
extern template void gemm(const Matrix<int64_t>&, const Matrix<const int64_t>&,
                          const Matrix<const int64_t>&, bool);
extern template void gemm(const Matrix<c128>&, const Matrix<const c128>&,
                          const Matrix<const c128>&, bool);

}  // namespace aclsim
