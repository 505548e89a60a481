// The innermost product: rows of one operand by panels of the other's columns. Each file that
// includes it says by its options whether products and sums are fused.
#pragma once

#include <algorithm>
#include <cstring>

#include "loops/gemm.h"

namespace aclsim {
namespace {

constexpr int64_t kLane = 16;  // floats of one vector
typedef float Vector __attribute__((vector_size(kLane * sizeof(float))));
typedef float Quad __attribute__((vector_size(16)));

ACL_INLINE Quad quad_at(const float* from) {
  Quad q;
  std::memcpy(&q, from, sizeof(q));
  return q;
}
ACL_INLINE void put_quad(float* to, Quad q) { std::memcpy(to, &q, sizeof(q)); }

// What a product starts from and how it ends.
enum class Start { Zero, FromOut, AddedLast };

// Rows [0, R) of `a` by C vectors of columns of `b`, whose rows are `step` apart.
template <int R, int C>
ACL_INLINE void tile(float* out, int64_t out_step, const float* a, int64_t a_rows, int64_t a_cols,
                     const float* b, int64_t step, int64_t depth, Start start) {
  Vector sums[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      sums[r][c] = Vector{};
      if (start == Start::FromOut) {
        std::memcpy(&sums[r][c], out + r * out_step + c * kLane, sizeof(Vector));
      }
    }
  }
  for (int64_t p = 0; p < depth; ++p, b += step, a += a_cols) {
    Vector right[C];
    std::memcpy(right, b, sizeof(right));
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) sums[r][c] += a[r * a_rows] * right[c];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      float* to = out + r * out_step + c * kLane;
      Vector before;
      std::memcpy(&before, to, sizeof(before));
      if (start == Start::AddedLast) sums[r][c] = before + sums[r][c];
      std::memcpy(to, &sums[r][c], sizeof(Vector));
    }
  }
}

// Four rows of four of `b`'s columns become rows of a panel.
ACL_INLINE void transpose_quads(float* to, int64_t width, const float* from, int64_t apart) {
  const Quad a = quad_at(from), b = quad_at(from + apart), c = quad_at(from + 2 * apart),
             d = quad_at(from + 3 * apart);
  const Quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  put_quad(to, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  put_quad(to + width, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  put_quad(to + 2 * width, __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5));
  put_quad(to + 3 * width, __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7));
}

// `depth` rows of `cols` columns as a panel of `width`; what is beyond the columns is zero.
ACL_INLINE void fill_panel(float* to, int64_t width, const Matrix<const float>& b, int64_t depth,
                           int64_t cols) {
  if (b.col_stride == 1) {
    for (int64_t p = 0; p < depth; ++p) {
      float* row = to + p * width;
      std::copy_n(b.data + p * b.row_stride, cols, row);
      std::fill(row + cols, row + width, 0.0f);
    }
    return;
  }
  const int64_t whole = b.row_stride == 1 ? cols / 4 * 4 : 0, deep = depth / 4 * 4;
  for (int64_t j = 0; j < whole; j += 4) {
    for (int64_t p = 0; p < deep; p += 4) {
      transpose_quads(to + p * width + j, width, b.data + j * b.col_stride + p, b.col_stride);
    }
  }
  for (int64_t p = 0; p < depth; ++p) {
    float* row = to + p * width;
    for (int64_t j = p < deep ? whole : 0; j < cols; ++j) {
      row[j] = b.data[p * b.row_stride + j * b.col_stride];
    }
    std::fill(row + cols, row + width, 0.0f);
  }
}

// All rows by one panel of C vectors, `cols` columns of which exist.
template <int C>
ACL_INLINE void panel_product(const Matrix<float>& out, int64_t cols, const Matrix<const float>& a,
                              const float* b, int64_t step, Start start) {
  constexpr int64_t kWidth = C * kLane;
  float space[4 * kWidth];
  for (int64_t i = 0; i < out.rows; i += 4) {
    const int64_t rows = std::min<int64_t>(4, out.rows - i);
    float* to = out.data + i * out.row_stride;
    const bool whole = cols == kWidth;
    if (!whole && start != Start::Zero) {
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(to + r * out.row_stride, cols, space + r * kWidth);
        std::fill_n(space + r * kWidth + cols, kWidth - cols, 0.0f);
      }
    }
    float* own = whole ? to : space;
    const int64_t apart = whole ? out.row_stride : kWidth;
    const float* from = a.data + i * a.row_stride;
    switch (rows) {
      case 4: tile<4, C>(own, apart, from, a.row_stride, a.col_stride, b, step, a.cols, start); break;
      case 3: tile<3, C>(own, apart, from, a.row_stride, a.col_stride, b, step, a.cols, start); break;
      case 2: tile<2, C>(own, apart, from, a.row_stride, a.col_stride, b, step, a.cols, start); break;
      default: tile<1, C>(own, apart, from, a.row_stride, a.col_stride, b, step, a.cols, start);
    }
    for (int64_t r = 0; !whole && r < rows; ++r) {
      std::copy_n(space + r * kWidth, cols, to + r * out.row_stride);
    }
  }
}

}  // namespace
}  // namespace aclsim
