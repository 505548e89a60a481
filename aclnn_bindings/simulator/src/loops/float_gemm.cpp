// Products of float matrices by fused multiply-adds: see float_gemm.h.
#include "loops/float_gemm.h"

#include "loops/gemm_tile.h"
#include "loops/lanes.h"
#include "loops/stage.h"

namespace aclsim {
namespace {

constexpr int64_t kBlockOfDepth = 192;      // summed by itself
constexpr int64_t kPanel = 32;              // columns of a piece
constexpr int64_t kForBlas = 1000 * 1000;   // products over which its order is that of the depth

// The sum of one block of the depth, by tiles of R rows and two vectors of L columns.
template <int L, int R>
ACL_VECTOR void own_block(const Matrix<float>& out, const Matrix<const float>& a,
                          const Matrix<const float>& b, Start start) {
  constexpr int64_t kWide = 2 * L;
  alignas(64) float panel[kBlockOfDepth * kWide];
  for (int64_t j = 0; j < out.cols; j += kWide) {
    const int64_t cols = std::min(kWide, out.cols - j);
    const Matrix<float> to{out.data + j, out.rows, cols, out.row_stride, 1};
    const Matrix<const float> from{b.data + j * b.col_stride, b.rows, cols, b.row_stride, b.col_stride};
    const bool direct = b.col_stride == 1 && (cols == kWide || cols == L);
    const int64_t width = cols <= L ? L : kWide;
    if (!direct) fill_panel(panel, width, from, b.rows, cols);
    const float* right = direct ? from.data : panel;
    const int64_t step = direct ? b.row_stride : width;
    if (width == L) {
      panel_product<1, L, R>(to, cols, a, right, step, start);
    } else {
      panel_product<2, L, R>(to, cols, a, right, step, start);
    }
  }
}

bool described(const Matrix<const float>& m, int& trans, int& ld) {
  const bool plain = m.col_stride == 1 && m.row_stride >= std::max<int64_t>(1, m.cols);
  const bool across = m.row_stride == 1 && m.col_stride >= std::max<int64_t>(1, m.rows);
  const int64_t step = plain ? m.row_stride : m.col_stride;
  trans = plain ? 111 : 112;
  ld = static_cast<int>(step);
  return (plain || across) && step < INT32_MAX;
}
bool blas_block(const Matrix<float>& out, const Matrix<const float>& a,
                const Matrix<const float>& b, Start start) {
  int ta, tb, lda, ldb;
  if (out.rows * out.cols * a.cols <= kForBlas || !blas_sgemm() || out.row_stride >= INT32_MAX ||
      !described(a, ta, lda) || !described(b, tb, ldb)) {
    return false;
  }
  constexpr int kRowMajor = 101;
  blas_sgemm()(kRowMajor, ta, tb, static_cast<int>(out.rows), static_cast<int>(out.cols),
               static_cast<int>(a.cols), 1.0f, a.data, lda, b.data, ldb,
               start == Start::Zero ? 0.0f : 1.0f, out.data, static_cast<int>(out.row_stride));
  return true;
}

int64_t block_of(int64_t depth) {
  return depth > kBlockOfDepth && depth <= 2 * kBlockOfDepth ? depth / 2 : kBlockOfDepth;
}

}  // namespace

void float_gemm(const Matrix<float>& out, const Matrix<const float>& a,
                const Matrix<const float>& b, bool add) {
  if (a.cols == 0) {
    for (int64_t i = 0; !add && i < out.rows; ++i) {
      std::fill_n(out.data + i * out.row_stride, out.cols, 0.0f);
    }
    return;
  }
  if (out.rows < 4 || out.cols < 12) return few_lines_gemm(out, a, b, add);
  split(out, a.cols, kPanel, [&](int64_t row, int64_t rows, int64_t col, int64_t cols) {
    const Matrix<float> part{out.data + row * out.row_stride + col, rows, cols, out.row_stride, 1};
    for (int64_t begin = 0, end; begin < a.cols; begin = end) {
      end = std::min(a.cols, begin + block_of(a.cols));
      const Matrix<const float> left{a.data + row * a.row_stride + begin * a.col_stride, rows,
                                     end - begin, a.row_stride, a.col_stride};
      const Matrix<const float> right{b.data + begin * b.row_stride + col * b.col_stride,
                                      end - begin, cols, b.row_stride, b.col_stride};
      const Start start = begin || add ? Start::AddedLast : Start::Zero;
      if (blas_block(part, left, right, start)) continue;
      // As much of a sum as registers hold: 32 of 64 bytes, or 16 of 32.
      (wide_vectors() ? own_block<16, 4> : own_block<8, 6>)(part, left, right, start);
    }
  });
}

void chained_gemm(const Matrix<float>& out, const Matrix<const float>& a, const Matrix<const float>& b) {
  for (int64_t begin = 0; begin < a.cols; begin += kBlockOfDepth) {
    const int64_t depth = std::min(kBlockOfDepth, a.cols - begin);
    const Matrix<const float> left{a.data + begin * a.col_stride, a.rows, depth, a.row_stride, a.col_stride};
    const Matrix<const float> right{b.data + begin * b.row_stride, depth, b.cols, b.row_stride, b.col_stride};
    (wide_vectors() ? own_block<16, 6> : own_block<8, 6>)(out, left, right, Start::FromOut);
  }
}

}  // namespace aclsim
