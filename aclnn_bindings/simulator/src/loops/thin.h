// Products of a few dense rows with a matrix of halves, which is read as it stands: converting all of
// it would cost more than the product.
#pragma once

#include "ascendcl/dtype.h"

namespace aclsim {

constexpr int64_t kThinRows = 4;

// Strides count elements; one of them is 1.
template <class Narrow>
struct NarrowMatrix {
  const Narrow* data;
  int64_t rows, cols, row_stride, col_stride;
};

// out = a b: [rows, b.cols] from [rows, b.rows], both dense.
template <class Narrow>
void thin_product(float* out, const float* a, int64_t rows, const NarrowMatrix<Narrow>& b);

extern template void thin_product(float*, const float*, int64_t, const NarrowMatrix<half>&);
extern template void thin_product(float*, const float*, int64_t, const NarrowMatrix<bfloat>&);

}  // namespace aclsim
