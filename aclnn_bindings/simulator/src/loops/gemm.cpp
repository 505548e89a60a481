// Matrix products: see gemm.h.
#include "loops/gemm.h"

#include "loops/float_gemm.h"
#include "loops/parallel.h"
#include "loops/stage.h"

#include <algorithm>
#include <vector>

#include <dlfcn.h>

namespace aclsim {
namespace {

// CBLAS as the scipy-openblas32 wheel exports it: prefixed names, 32-bit sizes.
using Dgemm = void (*)(int order, int ta, int tb, int m, int n, int k, double alpha,
                       const double* a, int lda, const double* b, int ldb, double beta, double* c,
                       int ldc);
enum { kRowMajor = 101, kPlain = 111, kTransposed = 112 };

struct Blas {
  Sgemm sgemm = nullptr;
  Dgemm dgemm = nullptr;
};

// Whether a library's products are right: OpenBLAS 0.3.34's kernels for SME are not under qemu 7.2.
template <class C, class Gemm>
bool multiplies(Gemm call) {
  if (!call) return false;
  for (const int rows : {1, 5}) {
    for (const int trans : {kPlain, kTransposed}) {
      constexpr int kCols = 3, kDepth = 1100;
      std::vector<C> a(rows * kDepth), b(kDepth * kCols), c(rows * kCols);
      for (size_t i = 0; i < a.size(); ++i) a[i] = C(i % 7) - 3;
      for (size_t i = 0; i < b.size(); ++i) b[i] = C(i % 5) - 2;
      const bool plain = trans == kPlain;
      call(kRowMajor, trans, trans, rows, kCols, kDepth, C(1), a.data(), plain ? kDepth : rows,
           b.data(), plain ? kCols : kDepth, C(0), c.data(), kCols);
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < kCols; ++j) {
          C sum = 0;  // small integers: exact in any order
          for (int k = 0; k < kDepth; ++k) {
            sum += (plain ? a[i * kDepth + k] : a[k * rows + i]) *
                   (plain ? b[k * kCols + j] : b[j * kDepth + k]);
          }
          if (c[i * kCols + j] != sum) return false;
        }
      }
    }
  }
  return true;
}

// Loaded on first use, found by this library's RUNPATH; without it own loops do the work.
const Blas& blas() {
  static const Blas loaded = [] {
    Blas b;
    void* lib = dlopen("libscipy_openblas.so", RTLD_NOW | RTLD_LOCAL);
    if (!lib) return b;
    b.sgemm = reinterpret_cast<Sgemm>(dlsym(lib, "scipy_cblas_sgemm"));
    b.dgemm = reinterpret_cast<Dgemm>(dlsym(lib, "scipy_cblas_dgemm"));
    const auto threads =
        reinterpret_cast<void (*)(int)>(dlsym(lib, "scipy_openblas_set_num_threads"));
    if (threads) threads(1);  // the kernel threads split products among themselves, see split()
    if (!multiplies<float>(b.sgemm)) b.sgemm = nullptr;
    if (!multiplies<double>(b.dgemm)) b.dgemm = nullptr;
    return b;
  }();
  return loaded;
}

// What BLAS can address: one stride is 1, the other covers the row. A single row or column always
// can be described so.
template <class C>
bool addressable(const Matrix<C>& m, int& trans, int& ld) {
  const int64_t rs = m.rows == 1 ? std::max(m.cols, int64_t{1}) : m.row_stride;
  const int64_t cs = m.cols == 1 ? 1 : m.col_stride;
  if (cs == 1 && rs >= std::max<int64_t>(1, m.cols) && rs < INT32_MAX) {
    trans = kPlain;
    ld = static_cast<int>(rs);
    return true;
  }
  const int64_t rt = m.rows == 1 ? 1 : m.row_stride;
  const int64_t ct = m.cols == 1 ? std::max(m.rows, int64_t{1}) : m.col_stride;
  if (rt == 1 && ct >= std::max<int64_t>(1, m.rows) && ct < INT32_MAX) {
    trans = kTransposed;
    ld = static_cast<int>(ct);
    return true;
  }
  return false;
}

template <class C>
Matrix<const C> pack(C* to, const Matrix<const C>& m) {
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.cols; ++j) {
      to[i * m.cols + j] = m.data[i * m.row_stride + j * m.col_stride];
    }
  }
  return {to, m.rows, m.cols, m.cols, 1};
}

template <class C>
ACL_VECTOR C dot_of(const C* a, int64_t stride_a, const C* b, int64_t stride_b, int64_t n) {
  return static_cast<C>(
      lane_sum<double>(n, [=](int64_t i) ACL_LAMBDA { return double(a[i * stride_a]) * b[i * stride_b]; }));
}
template <class C>
ACL_VECTOR void add_scaled_row(C* __restrict out, const C* __restrict row, C factor, int64_t n) {
  for (int64_t j = 0; j < n; ++j) out[j] += factor * row[j];
}

template <class C>
void own_gemm(const Matrix<C>& out, const Matrix<const C>& a, const Matrix<const C>& given,
              bool add) {
  Buffer<C> space(given.col_stride == 1 ? 1 : given.rows * given.cols);
  const Matrix<const C> b = given.col_stride == 1 ? given : pack(space.get(), given);
  for (int64_t i = 0; i < out.rows; ++i) {
    C* row = out.data + i * out.row_stride;
    if (!add) std::fill_n(row, out.cols, C(0));
    for (int64_t k = 0; k < a.cols; ++k) {
      add_scaled_row(row, b.data + k * b.row_stride,
                     a.data[i * a.row_stride + k * a.col_stride], out.cols);
    }
  }
}

template <class C, class Gemm>
bool blas_gemm(Gemm call, const Matrix<C>& out, const Matrix<const C>& a, const Matrix<const C>& b,
               bool add) {
  if (!call) return false;
  int ta, tb, lda, ldb, tc, ldc;
  Buffer<C> space_a(addressable(a, ta, lda) ? 1 : a.rows * a.cols);
  Buffer<C> space_b(addressable(b, tb, ldb) ? 1 : b.rows * b.cols);
  const Matrix<const C> pa = addressable(a, ta, lda) ? a : pack(space_a.get(), a);
  const Matrix<const C> pb = addressable(b, tb, ldb) ? b : pack(space_b.get(), b);
  if (!addressable(pa, ta, lda) || !addressable(pb, tb, ldb) || !addressable(out, tc, ldc) ||
      tc != kPlain) {
    return false;
  }
  split(out, a.cols, 16, [&](int64_t row, int64_t rows, int64_t col, int64_t cols) {
    const C* left = pa.data + row * (ta == kPlain ? lda : 1);
    const C* right = pb.data + col * (tb == kPlain ? 1 : ldb);
    call(kRowMajor, ta, tb, static_cast<int>(rows), static_cast<int>(cols),
         static_cast<int>(a.cols), C(1), left, lda, right, ldb, C(add ? 1 : 0),
         out.data + row * ldc + col, ldc);
  });
  return true;
}

}  // namespace

Sgemm blas_sgemm() { return blas().sgemm; }

template <class C>
void gemm(const Matrix<C>& out, const Matrix<const C>& a, const Matrix<const C>& b, bool add) {
  if (out.rows == 0 || out.cols == 0) return;
  if constexpr (std::is_same<C, float>::value) return float_gemm(out, a, b, add);
  if constexpr (std::is_same<C, double>::value) {
    if (out.rows == 1 && out.cols == 1) {
      const C dot = dot_of(a.data, a.col_stride, b.data, b.row_stride, a.cols);
      *out.data = add ? *out.data + dot : dot;
      return;
    }
  }
  const int64_t work = out.rows * out.cols * a.cols;
  if constexpr (std::is_same<C, double>::value) {
    if (work > 512 && blas_gemm<C>(blas().dgemm, out, a, b, add)) return;
  }
  own_gemm(out, a, b, add);
}

template void gemm(const Matrix<float>&, const Matrix<const float>&, const Matrix<const float>&,
                   bool);
template void gemm(const Matrix<double>&, const Matrix<const double>&, const Matrix<const double>&,
                   bool);
template void gemm(const Matrix<int64_t>&, const Matrix<const int64_t>&,
                   const Matrix<const int64_t>&, bool);
template void gemm(const Matrix<c128>&, const Matrix<const c128>&, const Matrix<const c128>&, bool);

}  // namespace aclsim
