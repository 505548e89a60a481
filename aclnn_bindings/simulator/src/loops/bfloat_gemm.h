// Products of bfloat16 matrices by the processor's own instructions (AVX512-BF16) where it has them:
// exact products, summed in float32. Elsewhere, and for values so small that these instructions
// would flush them, by products of floats.
#pragma once

#include <vector>

#include "loops/gemm.h"

namespace aclsim {

// Whether this processor multiplies bfloat16 itself.
bool multiplies_bfloat();

// The smallest exponent field among the values that are not 0; 0 where one is subnormal, 255 for none.
int least_exponent(const Matrix<const bfloat>& m);
// Whether no sum of products of such values can be subnormal: those the instructions make 0.
bool stays_normal(int least_a, int least_b);

// Rows of a left side, laid out for tile after tile: made once, it multiplies many right sides.
class PackedRows {
 public:
  explicit PackedRows(const Matrix<const bfloat>& m);
  int64_t rows() const { return rows_; }
  int64_t depth() const { return depth_; }
  int64_t pairs() const { return (depth_ + 1) / 2; }
  // The panel that row `row`, a multiple of 8, begins.
  const uint32_t* panel(int64_t row) const { return words_.data() + row * pairs(); }

 private:
  int64_t rows_, depth_;
  std::vector<uint32_t> words_;  // [rows / 8, pairs, 8]: two values along the depth in each
};

constexpr int64_t kTileRows = 8, kTileCols = 32;
// out [rows, cols] (=, +=) `pairs` words of each row of the panel `a`, [pairs, 8], by as many rows of
// 32 words, which begin at b + at[pair]. At most 8 rows and 32 columns; the processor must be able to.
void multiply_tile(const Matrix<float>& out, const uint32_t* a, const uint32_t* b,
                   const int32_t* at, int64_t pairs, bool add);
// to[i] = the words of first[i] and second[i].
void join(uint32_t* to, const bfloat* first, const bfloat* second, int64_t n);

// out = a b, or out += a b, on any processor and for any values. As gemm of gemm.h.
void gemm(const Matrix<float>& out, const Matrix<const bfloat>& a, const Matrix<const bfloat>& b,
          bool add);

}  // namespace aclsim
