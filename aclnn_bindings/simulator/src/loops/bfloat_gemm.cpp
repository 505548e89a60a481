// Products of bfloat16 matrices: see bfloat_gemm.h.
#include "loops/bfloat_gemm.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "loops/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace aclsim {
namespace {

constexpr int64_t kPairs = 256;  // a panel of 32 columns: 32 KiB, in the nearest cache

uint32_t pair_at(const bfloat* from, int64_t step, bool both) {
  return from->bits | (both ? uint32_t{from[step].bits} << 16 : 0);
}

// Lines [0, n) of a side, `apart` elements from each other, with `depth` values `step` apart, as
// [pairs, Width] words.
template <int64_t Width>
void pack(uint32_t* to, const bfloat* from, int64_t n, int64_t apart, int64_t depth, int64_t step) {
  const int64_t pairs = (depth + 1) / 2, whole = depth / 2;
  if (n < Width) std::fill_n(to, pairs * Width, 0u);
  if (apart == 1) {
    static const bfloat zeros[kTileCols] = {};
    for (int64_t p = 0; p < pairs; ++p, from += 2 * step) {
      join(to + p * Width, from, p < whole ? from + step : zeros, n);
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j, from += apart) {
    if (step == 1) {
      for (int64_t p = 0; p < whole; ++p) std::memcpy(to + p * Width + j, from + 2 * p, 4);
    } else {
      for (int64_t p = 0; p < whole; ++p) to[p * Width + j] = pair_at(from + 2 * p * step, step, true);
    }
    if (whole < pairs) to[whole * Width + j] = pair_at(from + 2 * whole * step, step, false);
  }
}

// Where the rows of a panel of 32 columns begin.
const int32_t* panel_rows() {
  static const auto at = [] {
    std::array<int32_t, kPairs> rows;
    for (int64_t p = 0; p < kPairs; ++p) rows[p] = static_cast<int32_t>(p * kTileCols);
    return rows;
  }();
  return at.data();
}

// Rows [row, row + rows) by columns [col, col + cols) of the product.
void multiply_part(const Matrix<float>& out, const PackedRows& a, const Matrix<const bfloat>& b,
                   bool add, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  alignas(64) uint32_t panel[kPairs * kTileCols];
  const int32_t* at = panel_rows();
  for (int64_t j = col; j < col + cols; j += kTileCols) {
    const int64_t wide = std::min(kTileCols, col + cols - j);
    for (int64_t p = 0; p < a.pairs(); p += kPairs) {
      const int64_t pairs = std::min(kPairs, a.pairs() - p);
      pack<kTileCols>(panel, b.data + 2 * p * b.row_stride + j * b.col_stride, wide, b.col_stride,
                      std::min(2 * pairs, b.rows - 2 * p), b.row_stride);
      for (int64_t i = row; i < row + rows; i += kTileRows) {
        multiply_tile({out.data + i * out.row_stride + j, std::min(kTileRows, row + rows - i), wide,
                       out.row_stride, 1},
                      a.panel(i) + p * kTileRows, panel, at, pairs, add || p > 0);
      }
    }
  }
}

std::vector<float> floats_of(const Matrix<const bfloat>& m) {
  std::vector<float> all(static_cast<size_t>(m.rows * m.cols));
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.cols; ++j) {
      all[i * m.cols + j] = to_float(m.data[i * m.row_stride + j * m.col_stride]);
    }
  }
  return all;
}

ACL_VECTOR uint16_t least_of(const bfloat* from, int64_t n) {
  uint16_t least = 0xFFFF;
  for (int64_t i = 0; i < n; ++i) {
    const auto size = static_cast<uint16_t>((from[i].bits & 0x7FFF) - 1);  // zero comes last
    least = size < least ? size : least;
  }
  return least;
}

}  // namespace

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void multiply_tile(
    const Matrix<float>& out, const uint32_t* a, const uint32_t* b, const int32_t* at,
    int64_t pairs, bool add) {
  __m512 sums[kTileRows][2];
  for (auto& row : sums) row[0] = row[1] = _mm512_setzero_ps();
  for (int64_t p = 0; p < pairs; ++p, a += kTileRows) {
    const uint32_t* row = b + at[p];
    const auto left = reinterpret_cast<__m512bh>(_mm512_loadu_si512(row));
    const auto right = reinterpret_cast<__m512bh>(_mm512_loadu_si512(row + 16));
#pragma GCC unroll 8
    for (int64_t i = 0; i < kTileRows; ++i) {
      const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[i])));
      sums[i][0] = _mm512_dpbf16_ps(sums[i][0], x, left);
      sums[i][1] = _mm512_dpbf16_ps(sums[i][1], x, right);
    }
  }
  const auto mask = static_cast<uint32_t>((uint64_t{1} << out.cols) - 1);
  const auto low = static_cast<__mmask16>(mask), high = static_cast<__mmask16>(mask >> 16);
#pragma GCC unroll 8
  for (int64_t i = 0; i < kTileRows; ++i) {
    if (i >= out.rows) break;
    float* to = out.data + i * out.row_stride;
    __m512 x = sums[i][0], y = sums[i][1];
    if (add) {
      x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(low, to));
      y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(high, to + 16));
    }
    _mm512_mask_storeu_ps(to, low, x);
    _mm512_mask_storeu_ps(to + 16, high, y);
  }
}
#else
void multiply_tile(const Matrix<float>&, const uint32_t*, const uint32_t*, const int32_t*, int64_t,
                   bool) {
  std::abort();  // multiplies_bfloat() says no
}
#endif

ACL_VECTOR void join(uint32_t* __restrict to, const bfloat* __restrict first,
                     const bfloat* __restrict second, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = first[i].bits | uint32_t{second[i].bits} << 16;
}

bool multiplies_bfloat() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw");
  return has;
#else
  return false;
#endif
}

int least_exponent(const Matrix<const bfloat>& m) {
  const bool by_rows = m.col_stride == 1;
  const int64_t lines = by_rows ? m.rows : m.cols, n = by_rows ? m.cols : m.rows;
  const int64_t apart = by_rows ? m.row_stride : m.col_stride, step = by_rows ? 1 : m.row_stride;
  uint16_t least = 0xFFFF;
  for (int64_t i = 0; i < lines; ++i) {
    const bfloat* line = m.data + i * apart;
    if (step == 1) {
      least = std::min(least, least_of(line, n));
    } else {
      for (int64_t k = 0; k < n; ++k) least = std::min(least, least_of(line + k * step, 1));
    }
  }
  return least == 0xFFFF ? 255 : (least + 1) >> 7;
}

// A value is a multiple of 2^(e - 134), so products and their sums are of 2^(ea + eb - 268): at least
// 2^-126, the smallest normal float, where they are not 0.
bool stays_normal(int least_a, int least_b) {
  return least_a > 0 && least_b > 0 && least_a + least_b >= 142;
}

PackedRows::PackedRows(const Matrix<const bfloat>& m)
    : rows_(m.rows), depth_(m.cols),
      words_(static_cast<size_t>((m.rows + kTileRows - 1) / kTileRows * kTileRows * pairs())) {
  parallel_for((rows_ + kTileRows - 1) / kTileRows, std::max<int64_t>(1, (1 << 14) / (depth_ + 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin * kTileRows; row < std::min(end * kTileRows, rows_); row += kTileRows) {
                   pack<kTileRows>(words_.data() + row * pairs(), m.data + row * m.row_stride,
                               std::min(kTileRows, rows_ - row), m.row_stride, depth_, m.col_stride);
                 }
               });
}

void gemm(const Matrix<float>& out, const Matrix<const bfloat>& a, const Matrix<const bfloat>& b,
          bool add) {
  if (out.rows == 0 || out.cols == 0) return;
  if (a.cols > 0 && multiplies_bfloat() && stays_normal(least_exponent(a), least_exponent(b))) {
    const PackedRows rows(a);
    split(out, a.cols, kTileCols, [&](int64_t row, int64_t high, int64_t col, int64_t wide) {
      multiply_part(out, rows, b, add, row, high, col, wide);
    });
    return;
  }
  const std::vector<float> left = floats_of(a), right = floats_of(b);
  gemm<float>(out, {left.data(), a.rows, a.cols, a.cols, 1},
              {right.data(), b.rows, b.cols, b.cols, 1}, add);
}

}  // namespace aclsim
