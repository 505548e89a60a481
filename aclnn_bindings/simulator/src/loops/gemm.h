// Matrix products over strided operands: OpenBLAS where it is there and pays, own loops elsewhere.
#pragma once

#include <algorithm>

#include "ascendcl/dtype.h"
#include "loops/parallel.h"

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

// f(first row, rows, first column, columns) over pieces of the output, in threads where that pays.
// `multiple`: whole vectors or tiles.
template <class C, class F>
void split(const Matrix<C>& out, int64_t depth, int64_t multiple, F f) {
  constexpr int64_t kWork = 1 << 20;  // products per piece
  const bool by_rows = out.rows > out.cols;
  const int64_t n = by_rows ? out.rows : out.cols;
  const int64_t most = std::min<int64_t>(kernel_threads(), out.rows * out.cols * depth / kWork);
  const int64_t share = (n + std::max<int64_t>(most, 1) - 1) / std::max<int64_t>(most, 1);
  const int64_t piece = (share + multiple - 1) / multiple * multiple;
  parallel_for((n + piece - 1) / piece, 1, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * piece, size = std::min(end * piece, n) - at;
    if (by_rows) {
      f(at, size, int64_t{0}, out.cols);
    } else {
      f(int64_t{0}, out.rows, at, size);
    }
  });
}

extern template void gemm(const Matrix<float>&, const Matrix<const float>&,
                          const Matrix<const float>&, bool);
extern template void gemm(const Matrix<double>&, const Matrix<const double>&,
                          const Matrix<const double>&, bool);
extern template void gemm(const Matrix<int64_t>&, const Matrix<const int64_t>&,
                          const Matrix<const int64_t>&, bool);
extern template void gemm(const Matrix<c128>&, const Matrix<const c128>&,
                          const Matrix<const c128>&, bool);

}  // namespace aclsim
