// Products of float matrices, each element of which is summed in a stated order, so that the same
// numbers come out for any number of threads, and those of the BLAS that torch's CPU wheels hold
// (oneMKL 2024.2 on x86-64 of AMD; the order was measured there with masks, after Xie et al.,
// "FPRev: Revealing Floating-Point Summation Order", 2025):
//
// - At least 4 rows and 12 columns: products are added by fused multiply-adds in the order of the
//   depth; depths over 192 in blocks (of half the depth up to 384, else of 192),
//   whose sums are added in turn.
// - Fewer: products are rounded, then added (few_lines.cpp).
#pragma once

#include "loops/gemm.h"

namespace aclsim {

// CBLAS's single precision product, row major, where a library is there.
using Sgemm = void (*)(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a,
                       int lda, const float* b, int ldb, float beta, float* c, int ldc);
Sgemm blas_sgemm();

// out = a b, or out += a b. `out` has col_stride 1.
void float_gemm(const Matrix<float>& out, const Matrix<const float>& a,
                const Matrix<const float>& b, bool add);
// The same of fewer than 4 rows or 12 columns.
void few_lines_gemm(const Matrix<float>& out, const Matrix<const float>& a,
                    const Matrix<const float>& b, bool add);

// out += product, each sum going on from what `out` holds, in the order of the depth.
void chained_gemm(const Matrix<float>& out, const Matrix<const float>& a, const Matrix<const float>& b);

}  // namespace aclsim
