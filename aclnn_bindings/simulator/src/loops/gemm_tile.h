// The innermost product: rows of one operand by panels of the other's columns. Each file that
// includes it says by its options whether products and sums are fused.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "loops/gemm.h"

namespace aclsim {
namespace {

// A vector of L floats at any address: as many as the processor's registers hold.
template <int L>
struct Floats {
  typedef float V __attribute__((vector_size(L * sizeof(float))));
  typedef V At __attribute__((aligned(4), may_alias));
};
template <int L>
ACL_INLINE typename Floats<L>::At& vector_at(float* from) {
  return *reinterpret_cast<typename Floats<L>::At*>(from);
}
template <int L>
ACL_INLINE const typename Floats<L>::At& vector_at(const float* from) {
  return *reinterpret_cast<const typename Floats<L>::At*>(from);
}
typedef float Quad __attribute__((vector_size(16)));

ACL_INLINE Quad quad_at(const float* from) {
  Quad q;
  std::memcpy(&q, from, sizeof(q));
  return q;
}
ACL_INLINE void put_quad(float* to, Quad q) { std::memcpy(to, &q, sizeof(q)); }

// What a product starts from and how it ends.
enum class Start { Zero, FromOut, AddedLast };

// Rows of `a` by C vectors of L columns of `b`, whose rows are `step` apart. Sums have constant
// places, or the compiler keeps them in memory.
template <int C, int L, size_t... I>
ACL_INLINE void tile(float* out, int64_t out_step, const float* a, int64_t a_rows, int64_t a_cols,
                     const float* b, int64_t step, int64_t depth, Start start,
                     std::index_sequence<I...>) {
  using V = typename Floats<L>::V;
  V sums[] = {(static_cast<void>(I), V{})...};
  const auto to = [=](size_t i) ACL_LAMBDA -> typename Floats<L>::At& {
    return vector_at<L>(out + static_cast<int64_t>(i / C) * out_step + i % C * L);
  };
  if (start == Start::FromOut) ((sums[I] = to(I)), ...);
  for (int64_t p = 0; p < depth; ++p, b += step, a += a_cols) {
    ((sums[I] += a[static_cast<int64_t>(I / C) * a_rows] * vector_at<L>(b + I % C * L)), ...);
  }
  if (start == Start::AddedLast) ((sums[I] = to(I) + sums[I]), ...);
  ((to(I) = sums[I]), ...);
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

// All rows by one panel of C vectors, `cols` columns of which exist; R rows at a time.
template <int C, int L, int R = 4>
ACL_INLINE void panel_product(const Matrix<float>& out, int64_t cols, const Matrix<const float>& a,
                              const float* b, int64_t step, Start start) {
  constexpr int64_t kWidth = C * L;
  float space[R * kWidth];
  const bool whole = cols == kWidth;
  for (int64_t i = 0; i < out.rows; i += R) {
    const int64_t rows = std::min<int64_t>(R, out.rows - i);
    float* to = out.data + i * out.row_stride;
    if (!whole && start != Start::Zero) {
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(to + r * out.row_stride, cols, space + r * kWidth);
        std::fill_n(space + r * kWidth + cols, kWidth - cols, 0.0f);
      }
    }
    float* own = whole ? to : space;
    const int64_t apart = whole ? out.row_stride : kWidth;
    const float* from = a.data + i * a.row_stride;
    const auto run = [&](auto height) ACL_LAMBDA {
      tile<C, L>(own, apart, from, a.row_stride, a.col_stride, b, step, a.cols, start,
                 std::make_index_sequence<decltype(height)::value * C>());
    };
    switch (rows) {
      case 1: run(std::integral_constant<int, 1>{}); break;
      case 2: run(std::integral_constant<int, 2>{}); break;
      case 3: run(std::integral_constant<int, 3>{}); break;
      case 4: run(std::integral_constant<int, 4>{}); break;
      case 5: run(std::integral_constant<int, std::min(5, R)>{}); break;
      default: run(std::integral_constant<int, R>{});
    }
    for (int64_t r = 0; !whole && r < rows; ++r) {
      std::copy_n(space + r * kWidth, cols, to + r * out.row_stride);
    }
  }
}

}  // namespace
}  // namespace aclsim
