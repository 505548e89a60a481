// Products of a few rows: see thin.h.
#include "loops/thin.h"

#include <algorithm>

#include "loops/parallel.h"

namespace aclsim {
namespace {

constexpr int64_t kBlock = 1024;  // columns whose sums stay in the nearest cache
constexpr int64_t kLanes = 64;    // sums of one dot product, so that its loop vectorises

// out += the sum over four rows of b, each times its factor.
template <class Narrow>
ACL_VECTOR void add_four_rows(float* __restrict out, const Narrow* __restrict b, int64_t stride,
                              const float* __restrict factors, int64_t n) {
  const Narrow *b0 = b, *b1 = b + stride, *b2 = b1 + stride, *b3 = b2 + stride;
  const float f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
  for (int64_t j = 0; j < n; ++j) {
    out[j] += f0 * to_float(b0[j]) + f1 * to_float(b1[j]) + f2 * to_float(b2[j]) +
              f3 * to_float(b3[j]);
  }
}
template <class Narrow>
ACL_VECTOR void add_row(float* __restrict out, const Narrow* __restrict b, float factor,
                        int64_t n) {
  for (int64_t j = 0; j < n; ++j) out[j] += factor * to_float(b[j]);
}

template <class Narrow>
ACL_VECTOR float dot(const float* __restrict a, const Narrow* __restrict b, int64_t n) {
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) sums[l] += a[i + l] * to_float(b[i + l]);
  }
  float sum = 0;
  for (; i < n; ++i) sum += a[i] * to_float(b[i]);
  for (const float s : sums) sum += s;
  return sum;
}

template <class Narrow>
void columns_of_rows(float* out, const float* a, const NarrowMatrix<Narrow>& b, int64_t begin,
                     int64_t end) {
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min(kBlock, end - at);
    std::fill_n(out + at, n, 0.0f);
    int64_t k = 0;
    for (; k + 4 <= b.rows; k += 4) {
      add_four_rows(out + at, b.data + k * b.row_stride + at, b.row_stride, a + k, n);
    }
    for (; k < b.rows; ++k) add_row(out + at, b.data + k * b.row_stride + at, a[k], n);
  }
}

}  // namespace

template <class Narrow>
void thin_product(float* out, const float* a, int64_t rows, const NarrowMatrix<Narrow>& b) {
  const int64_t grain = std::max(int64_t{64}, (1 << 18) / std::max<int64_t>(1, b.rows));
  parallel_for(b.cols, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < rows; ++i) {
      float* to = out + i * b.cols;
      const float* from = a + i * b.rows;
      if (b.col_stride == 1) {
        columns_of_rows(to, from, b, begin, end);
      } else {
        for (int64_t j = begin; j < end; ++j) to[j] = dot(from, b.data + j * b.col_stride, b.rows);
      }
    }
  });
}

template void thin_product(float*, const float*, int64_t, const NarrowMatrix<half>&);
template void thin_product(float*, const float*, int64_t, const NarrowMatrix<bfloat>&);

}  // namespace aclsim
