// QR and singular value decompositions.
#include "params/linalg.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

using Complex = std::vector<c128>;

// A row-major matrix of complex numbers; real ones have no imaginary parts.
struct Grid {
  int64_t rows, cols;
  Complex a;
  Grid(int64_t r, int64_t c) : rows(r), cols(c), a(static_cast<size_t>(r * c)) {}
  c128& operator()(int64_t i, int64_t j) { return a[i * cols + j]; }
  c128 operator()(int64_t i, int64_t j) const { return a[i * cols + j]; }
  static Grid identity(int64_t n) {
    Grid g(n, n);
    for (int64_t i = 0; i < n; ++i) g(i, i) = 1;
    return g;
  }
};
int64_t batches_of(const Tensor& t) {
  int64_t n = 1;
  for (int i = 0; i < t.rank - 2; ++i) n *= t.dims[i];
  return n;
}
Shape matrices(const Tensor& like, int64_t rows, int64_t cols) {
  Shape s = shape_of(like);
  s.dims[s.rank - 2] = rows;
  s.dims[s.rank - 1] = cols;
  return s;
}

// Householder's way with LAPACK's choice of signs: `q` and `r` of m = q r, both m.rows wide.
void householder(Grid& q, Grid& r) {
  const int64_t n = r.rows;
  for (int64_t k = 0; k < std::min(n, r.cols); ++k) {
    double tail = 0;
    for (int64_t i = k + 1; i < n; ++i) tail += std::norm(r(i, k));
    const c128 head = r(k, k);
    if (tail == 0 && head.imag() == 0) continue;
    const double size = std::sqrt(std::norm(head) + tail);
    const double beta = head.real() >= 0 ? -size : size;
    Complex v(static_cast<size_t>(n - k));
    v[0] = 1;
    for (int64_t i = k + 1; i < n; ++i) v[i - k] = r(i, k) / (head - beta);
    const c128 tau = (beta - head) / beta;
    for (int64_t j = k; j < r.cols; ++j) {  // r := (I - conj(tau) v v^H) r
      c128 dot = 0;
      for (int64_t i = k; i < n; ++i) dot += std::conj(v[i - k]) * r(i, j);
      for (int64_t i = k; i < n; ++i) r(i, j) -= std::conj(tau) * v[i - k] * dot;
    }
    for (int64_t i = 0; i < n; ++i) {  // q := q (I - tau v v^H)
      c128 dot = 0;
      for (int64_t j = k; j < n; ++j) dot += q(i, j) * v[j - k];
      for (int64_t j = k; j < n; ++j) q(i, j) -= dot * tau * std::conj(v[j - k]);
    }
    for (int64_t i = k + 1; i < n; ++i) r(i, k) = 0;
  }
}
// (self [..., m, n], some, Q, R): reduced or complete factors.
bool reduced(const Call& c) {
  using P = params::Qr;
  return c.flag(P::some);
}
// (self [..., m, n], mode, Q, R): mode 0 reduced, 1 complete, 2 R alone (reduced).
constexpr int64_t kReduced = 0, kComplete = 1, kAlone = 2;
bool mode_reduced(const Call& c) {
  using P = params::LinalgQr;
  return c.integer(P::mode) != kComplete;
}

aclnnStatus expect_factors(const Call& c, bool reduced, bool with_q) {
  using P = params::Qr;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::self, 2, kMaxRank));
  const Tensor& t = c.tensor(P::self);
  const int64_t m = t.dims[t.rank - 2], n = t.dims[t.rank - 1];
  const int64_t k = reduced ? std::min(m, n) : m;
  if (with_q) ACL_RETURN_IF_FAILED(expect_shape(c, P::Q, matrices(t, m, k)));
  return expect_shape(c, P::R, matrices(t, k, n));
}
aclnnStatus check_qr(Call& c) { return expect_factors(c, reduced(c), true); }
aclnnStatus check_linalg_qr(Call& c) {
  using P = params::LinalgQr;

  if (c.integer(P::mode) < kReduced || c.integer(P::mode) > kAlone) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "mode should be 0, 1 or 2, but is %lld.",
                  static_cast<long long>(c.integer(P::mode)));
  }
  return expect_factors(c, mode_reduced(c), c.integer(P::mode) != kAlone);
}
void factors(Call& c, bool with_q) {
  using P = params::Qr;

  const Tensor &t = c.tensor(P::self), &out_q = c.tensor(P::Q), &out_r = c.tensor(P::R);
  const Complex a = values_of<c128>(t);
  const int64_t m = t.dims[t.rank - 2], n = t.dims[t.rank - 1], k = out_r.dims[t.rank - 2];
  Complex all_q, all_r;
  for (int64_t b = 0; b < batches_of(t); ++b) {
    Grid q = Grid::identity(m), r(m, n);
    std::copy_n(a.begin() + b * m * n, m * n, r.a.begin());
    householder(q, r);
    for (int64_t i = 0; i < m; ++i) all_q.insert(all_q.end(), &q(i, 0), &q(i, 0) + k);
    all_r.insert(all_r.end(), r.a.begin(), r.a.begin() + k * n);
  }
  if (with_q) put(out_q, all_q);
  put(out_r, all_r);
}
void run_qr(Call& c) { return factors(c, true); }
void run_linalg_qr(Call& c) {
  using P = params::LinalgQr;
  return factors(c, c.integer(P::mode) != kAlone);
}

// One-sided Jacobi: turns pairs of columns of `a` until all are orthogonal; `v` turns along.
void jacobi(Grid& a, Grid& v) {
  constexpr int kSweeps = 60;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool turned = false;
    for (int64_t p = 0; p < a.cols; ++p) {
      for (int64_t q = p + 1; q < a.cols; ++q) {
        double alpha = 0, beta = 0;
        c128 gamma = 0;
        for (int64_t i = 0; i < a.rows; ++i) {
          alpha += std::norm(a(i, p));
          beta += std::norm(a(i, q));
          gamma += std::conj(a(i, p)) * a(i, q);
        }
        const double size = std::abs(gamma);
        if (size == 0 || size <= 1e-15 * std::sqrt(alpha * beta)) continue;
        turned = true;
        const double zeta = (beta - alpha) / (2 * size);
        const double t = (zeta >= 0 ? 1 : -1) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
        const double cos = 1 / std::sqrt(1 + t * t), sin = cos * t;
        const c128 phase = gamma / size;
        for (Grid* g : {&a, &v}) {
          for (int64_t i = 0; i < g->rows; ++i) {
            const c128 x = (*g)(i, p), y = (*g)(i, q) * std::conj(phase);
            (*g)(i, p) = cos * x - sin * y;
            (*g)(i, q) = sin * x + cos * y;
          }
        }
      }
    }
    if (!turned) return;
  }
}
// Columns from `from` on become what is left of unit vectors beside the columns before.
void complete(Grid& g, int64_t from) {
  int64_t unit = 0;
  for (int64_t k = from; k < g.cols; ++k) {
    for (; unit < g.rows; ++unit) {
      Complex v(static_cast<size_t>(g.rows));
      v[unit] = 1;
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t j = 0; j < k; ++j) {
          c128 dot = 0;
          for (int64_t i = 0; i < g.rows; ++i) dot += std::conj(g(i, j)) * v[i];
          for (int64_t i = 0; i < g.rows; ++i) v[i] -= dot * g(i, j);
        }
      }
      double size = 0;
      for (const c128& x : v) size += std::norm(x);
      if (size < 1e-6) continue;
      for (int64_t i = 0; i < g.rows; ++i) g(i, k) = v[i] / std::sqrt(size);
      ++unit;
      break;
    }
  }
}
struct Svd {
  Grid u, v;
  Numbers sigma;
};
// a = u diag(sigma) v^H for rows >= cols; u has `wide` columns.
Svd svd_of(Grid a, int64_t wide) {
  const int64_t n = a.cols;
  Grid turn = Grid::identity(n);
  jacobi(a, turn);
  Numbers size(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) size[j] += std::norm(a(i, j));
    size[j] = std::sqrt(size[j]);
  }
  Integers order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return size[x] > size[y]; });
  Svd s = {Grid(a.rows, wide), Grid(n, n), Numbers(static_cast<size_t>(n))};
  const double least = n ? size[order[0]] * 1e-15 * static_cast<double>(a.rows) : 0;
  int64_t rank = 0;
  for (int64_t k = 0; k < n; ++k) {
    s.sigma[k] = size[order[k]];
    for (int64_t i = 0; i < n; ++i) s.v(i, k) = turn(i, order[k]);
    if (s.sigma[k] <= least) continue;
    for (int64_t i = 0; i < a.rows; ++i) s.u(i, k) = a(i, order[k]) / s.sigma[k];
    rank = k + 1;
  }
  complete(s.u, rank);
  return s;
}
// (input [..., m, n], fullMatrices, computeUV, sigma, u, v): v is V, or its adjoint where only that
// has v's shape.
aclnnStatus check_svd(Call& c) {
  using P = params::Svd;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::input, 2, kMaxRank));
  const Tensor& t = c.tensor(P::input);
  const int64_t m = t.dims[t.rank - 2], n = t.dims[t.rank - 1], least = std::min(m, n);
  Shape sigma = shape_of(t);
  sigma.rank -= 1;
  sigma.dims[sigma.rank - 1] = least;
  ACL_RETURN_IF_FAILED(expect_shape(c, P::sigma, sigma));
  if (!c.flag(P::computeUV)) return ACLNN_SUCCESS;
  ACL_RETURN_IF_FAILED(expect_given(c, {P::u, P::v}));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::u, matrices(t, m, c.flag(P::fullMatrices) ? m : least)));
  const int64_t wide = c.flag(P::fullMatrices) ? n : least;
  if (expect_shape(c, P::v, matrices(t, wide, n)) == ACLNN_SUCCESS) return ACLNN_SUCCESS;
  return expect_shape(c, P::v, matrices(t, n, wide));
}
Grid adjoint(const Grid& g) {
  Grid h(g.cols, g.rows);
  for (int64_t i = 0; i < g.rows; ++i) {
    for (int64_t j = 0; j < g.cols; ++j) h(j, i) = std::conj(g(i, j));
  }
  return h;
}
void run_svd(Call& c) {
  using P = params::Svd;

  const Tensor& t = c.tensor(P::input);
  const Complex a = values_of<c128>(t);
  const int64_t m = t.dims[t.rank - 2], n = t.dims[t.rank - 1], least = std::min(m, n);
  const bool full = c.flag(P::fullMatrices), tall = m >= n;
  const bool holds_v = c.flag(P::computeUV) && c.tensor(P::v).dims[t.rank - 2] == n &&
                       c.tensor(P::v).dims[t.rank - 1] == (full ? n : least);
  Numbers sigma;
  Complex us, vs;
  for (int64_t b = 0; b < batches_of(t); ++b) {
    Grid g(m, n);
    std::copy_n(a.begin() + b * m * n, m * n, g.a.begin());
    const int64_t wide = full ? std::max(m, n) : least;
    const Svd s = svd_of(tall ? g : adjoint(g), wide);
    sigma.insert(sigma.end(), s.sigma.begin(), s.sigma.end());
    const Grid &u = tall ? s.u : s.v, &v = tall ? s.v : s.u;
    us.insert(us.end(), u.a.begin(), u.a.end());
    const Grid shown = holds_v ? v : adjoint(v);
    vs.insert(vs.end(), shown.a.begin(), shown.a.end());
  }
  put(c.tensor(P::sigma), sigma);
  if (c.flag(P::computeUV)) {
    put(c.tensor(P::u), us);
    put(c.tensor(P::v), vs);
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnQr, check_qr, run_qr)
ACLNN_OP(aclnnLinalgQr, check_linalg_qr, run_linalg_qr)
ACLNN_OP(aclnnSvd, check_svd, run_svd)
