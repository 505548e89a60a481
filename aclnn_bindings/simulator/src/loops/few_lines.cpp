// Products of few rows or columns, without fused multiply-adds: see float_gemm.h. How sums begin
// depends on the addresses of lines, as vectors of 16 bytes begin where 16 divides an address.
#include <vector>

#include "loops/float_gemm.h"
#include "loops/gemm_tile.h"
#include "loops/lanes.h"

namespace aclsim {
namespace {

// Floats before the next address that 16 divides.
int64_t unaligned(const float* p) {
  return (16 - static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) & 15)) / 4 % 4;
}

// Sums of N lines of `w`, `step` apart, times `x`: the first products one by one, then by Unroll
// quads in turn, the quads' lanes, the rest one by one. `Apart`: the second quads have their own sum.
template <int N, int Unroll, bool Apart>
ACL_INLINE void dots(float* sums, const float* w, int64_t step, const float* x, int64_t n,
                     int64_t first) {
  Quad lanes[N], second[N];
  for (int c = 0; c < N; ++c) {
    float sum = 0;
    for (int64_t i = 0; i < first; ++i) sum += x[i] * w[c * step + i];
    lanes[c] = Quad{sum, 0, 0, 0};
    second[c] = Quad{};
  }
  int64_t i = first;
  for (; i + 4 * Unroll <= n; i += 4 * Unroll) {
    for (int c = 0; c < N; ++c) {
      lanes[c] += quad_at(x + i) * quad_at(w + c * step + i);
      if (Unroll == 2) {
        (Apart ? second : lanes)[c] += quad_at(x + i + 4) * quad_at(w + c * step + i + 4);
      }
    }
  }
  for (int c = 0; c < N; ++c) {
    if (Apart) lanes[c] += second[c];
    float sum = (lanes[c][0] + lanes[c][2]) + (lanes[c][1] + lanes[c][3]);
    for (int64_t j = i; j < n; ++j) sum += x[j] * w[c * step + j];
    sums[c] = sum;
  }
}

ACL_INLINE void put(float* to, const float* sums, int64_t n, bool add) {
  for (int64_t c = 0; c < n; ++c) to[c] = add ? to[c] + sums[c] : sums[c];
}

// One row by lines of `b`: what begins a sum is where the fourth line of a group lies.
ACL_VECTOR void row_by_lines(float* out, const float* x, const Matrix<const float>& b, bool add) {
  const int64_t n = b.cols, whole = n / 4 * 4, depth = b.rows, step = b.col_stride;
  const auto first = [&](const float* p) { return std::min(depth, (unaligned(p) + 3) % 4 + 1); };
  float sums[4];
  for (int64_t j = 0; j < whole; j += 4) {
    const float* w = b.data + j * step;
    dots<4, 1, false>(sums, w, step, x, depth, first(w + 3 * step));
    put(out + j, sums, 4, add);
  }
  for (int64_t j = whole; j < n; ++j) {
    const float* w = b.data + j * step;
    if ((j - whole) % 2) {
      dots<1, 2, false>(sums, w, step, x, depth, first(x));
    } else {
      dots<1, 2, true>(sums, w, step, x, depth, first(x));
    }
    put(out + j, sums, 1, add);
  }
}

ACL_VECTOR void rows_by_lines(const Matrix<float>& out, const Matrix<const float>& a,
                              const Matrix<const float>& b, bool add) {
  const int64_t n = out.cols, depth = b.rows, step = b.col_stride;
  float sums[8];
  for (int64_t i = 0; i < out.rows; ++i) {
    const float* x = a.data + i * a.row_stride;
    float* to = out.data + i * out.row_stride;
    const int64_t first = std::min(depth, unaligned(x));
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) {
      dots<8, 1, false>(sums, b.data + j * step, step, x, depth, first);
      put(to + j, sums, 8, add);
    }
    for (; j + 4 <= n; j += 4) {
      dots<4, 1, false>(sums, b.data + j * step, step, x, depth, first);
      put(to + j, sums, 4, add);
    }
    for (; j < n; ++j) {
      dots<1, 2, true>(sums, b.data + j * step, step, x, depth, first);
      put(to + j, sums, 1, add);
    }
  }
}

// The first four elements of a row in the order of those before an address that 16 divides: of
// eight products the last four are summed by themselves.
ACL_INLINE Quad scaled(const float* a, const float* b) { return *a * quad_at(b); }
ACL_INLINE Quad before_aligned(const float* a, int64_t a_step, const float* b, int64_t b_step,
                               int64_t depth, Quad sum) {
  int64_t p = 0;
  for (; p + 8 <= depth; p += 8) {
    for (int q = 0; q < 4; ++q) sum += scaled(a + (p + q) * a_step, b + (p + q) * b_step);
    Quad own = scaled(a + (p + 4) * a_step, b + (p + 4) * b_step);
    for (int q = 5; q < 8; ++q) own += scaled(a + (p + q) * a_step, b + (p + q) * b_step);
    sum += own;
  }
  for (; p < depth; ++p) sum += scaled(a + p * a_step, b + p * b_step);
  return sum;
}

struct Before {
  int64_t n;
  Quad sum;
};
ACL_VECTOR void sum_before(Before* before, const Matrix<float>& out, const Matrix<const float>& a,
                           const Matrix<const float>& b, bool add) {
  for (int64_t i = 0; i < out.rows; ++i) {
    const float* row = out.data + i * out.row_stride;
    before[i].n = unaligned(row);
    if (out.cols - before[i].n < 4 || b.rows < 8) before[i].n = 0;
    if (!before[i].n) continue;
    before[i].sum = before_aligned(a.data + i * a.row_stride, a.col_stride, b.data, b.row_stride,
                                   b.rows, add ? quad_at(row) : Quad{});
  }
}

// Sums in the order of the depth, by vectors of L columns.
template <int L>
ACL_VECTOR void in_turn(const Matrix<float>& out, const Matrix<const float>& a,
                        const Matrix<const float>& b, Start start) {
  const bool few = out.rows < 4;
  std::vector<float> panel;
  for (int64_t j = 0, cols; j < out.cols; j += cols) {
    const int64_t most = few && b.col_stride == 1 && out.cols - j >= 4 * L ? 4 * L : L;
    cols = std::min(most, out.cols - j);
    const Matrix<float> to{out.data + j, out.rows, cols, out.row_stride, 1};
    const Matrix<const float> from{b.data + j * b.col_stride, b.rows, cols, b.row_stride, b.col_stride};
    if (most > L) {
      panel_product<4, L>(to, cols, a, from.data, b.row_stride, start);
    } else if (cols == L && b.col_stride == 1) {
      panel_product<1, L>(to, cols, a, from.data, b.row_stride, start);
    } else {
      panel.resize(b.rows * L);
      fill_panel(panel.data(), L, from, b.rows, cols);
      panel_product<1, L>(to, cols, a, panel.data(), L, start);
    }
  }
}
void in_turn(const Matrix<float>& out, const Matrix<const float>& a, const Matrix<const float>& b,
             Start start) {
  (wide_vectors() ? in_turn<16> : in_turn<8>)(out, a, b, start);
}

bool by_rows(const Matrix<const float>& m) {
  return m.col_stride == 1 && m.row_stride >= std::max<int64_t>(1, m.cols);
}

void few_rows(const Matrix<float>& out, const Matrix<const float>& a,
              const Matrix<const float>& b, bool add) {
  if (by_rows(b) || b.row_stride != 1) {
    std::vector<Before> before(out.rows);
    if (b.col_stride == 1) sum_before(before.data(), out, a, b, add);
    in_turn(out, a, b, add ? Start::FromOut : Start::Zero);
    for (int64_t i = 0; i < out.rows; ++i) {
      for (int64_t j = 0; j < before[i].n; ++j) {
        out.data[i * out.row_stride + j] = before[i].sum[j];
      }
    }
  } else if (out.rows == 1) {
    row_by_lines(out.data, a.data, b, add);
  } else if (by_rows(a)) {
    rows_by_lines(out, a, b, add);
  } else {
    in_turn(out, a, b, add ? Start::AddedLast : Start::Zero);
  }
}

Matrix<const float> dense(std::vector<float>& space, const Matrix<const float>& m) {
  space.resize(m.rows * m.cols);
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.cols; ++j) {
      space[i * m.cols + j] = m.data[i * m.row_stride + j * m.col_stride];
    }
  }
  return {space.data(), m.rows, m.cols, m.cols, 1};
}

bool has_lines(const Matrix<const float>& m) {
  const bool by_columns = m.row_stride == 1 && m.col_stride >= std::max<int64_t>(1, m.rows);
  const bool line = (m.rows == 1 && m.col_stride == 1) || (m.cols == 1 && m.row_stride == 1);
  return by_rows(m) || by_columns || line;
}

// A single column is a single row of the transposed product.
void one_column(const Matrix<float>& out, const Matrix<const float>& a,
                const Matrix<const float>& b, bool add) {
  std::vector<float> line(out.rows);
  for (int64_t i = 0; add && i < out.rows; ++i) line[i] = out.data[i * out.row_stride];
  few_rows({line.data(), 1, out.rows, out.rows, 1}, {b.data, 1, b.rows, b.rows, b.row_stride},
           {a.data, a.cols, a.rows, a.col_stride, a.row_stride}, add);
  for (int64_t i = 0; i < out.rows; ++i) out.data[i * out.row_stride] = line[i];
}

}  // namespace

void few_lines_gemm(const Matrix<float>& out, const Matrix<const float>& a,
                    const Matrix<const float>& b, bool add) {
  std::vector<float> left, right;
  const bool single = out.rows == 1 && a.col_stride != 1;
  if (single || !has_lines(a)) return few_lines_gemm(out, dense(left, a), b, add);
  if (!has_lines(b)) return few_lines_gemm(out, a, dense(right, b), add);
  if (out.cols == 1 && out.rows > 1) {
    if (b.row_stride != 1) return one_column(out, a, dense(right, b), add);
    return one_column(out, a, b, add);
  }
  few_rows(out, a, b, add);
}

}  // namespace aclsim
