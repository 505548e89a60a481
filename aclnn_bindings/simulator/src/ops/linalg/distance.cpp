// Distances between rows, and their gradients.
#include "params/linalg.h"
#include "loops/numbers.h"

#include <cmath>

namespace aclsim {
namespace {

// (x1, x2, p, compute_mode, out): p-norms between rows, batched over leading dims.
aclnnStatus check_cdist(Call& c) {
  using P = params::Cdist;

  const Tensor &a = c.tensor(P::x1), &b = c.tensor(P::x2);
  bool fits = a.rank >= 2 && b.rank >= 2 && a.dims[a.rank - 1] == b.dims[b.rank - 1];
  Shape shape = shape_of(a);
  if (fits) {
    Tensor other = b;  // leading dims broadcast
    shape.dims[a.rank - 1] = shape.dims[a.rank - 2] = 1;
    fits = broadcast(shape, other);
    shape.dims[shape.rank - 2] = a.dims[a.rank - 2];
    shape.dims[shape.rank - 1] = b.dims[b.rank - 2];
  }
  if (!fits || !(c.number(P::p) >= 0)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s and %s or p %g don't fit.", shape_text(a),
                  shape_text(b), c.number(P::p));
  }
  return expect_shape(c, P::out, shape);
}
double distance(const double* a, const double* b, int64_t n, double p) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = std::fabs(a[i] - b[i]);
    if (std::isinf(p)) {
      sum = std::max(sum, d);
    } else {
      sum += p == 0 ? d != 0 : (p == 1 ? d : (p == 2 ? d * d : std::pow(d, p)));
    }
  }
  if (std::isinf(p) || p == 0 || p == 1) return sum;
  return p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}
// `t` with leading dims of stride 0 where `out` has more than one there.
Tensor leading_like(const Tensor& t, const Tensor& out) {
  Tensor v = t;
  const int shift = out.rank - t.rank;
  v.rank = out.rank;
  for (int i = 0; i < out.rank; ++i) {
    const int from = i - shift;
    const bool repeated = from < 0 || (i < out.rank - 2 && t.dims[from] == 1);
    v.dims[i] = i < out.rank - 2 ? out.dims[i] : t.dims[from];
    v.strides[i] = repeated ? 0 : t.strides[from];
  }
  return v;
}
void run_cdist(Call& c) {
  using P = params::Cdist;

  const Tensor& out = c.tensor(P::out);
  if (out.numel() == 0) return;
  const Tensor a = leading_like(c.tensor(P::x1), out), b = leading_like(c.tensor(P::x2), out);
  const int last = a.rank - 1;
  const int64_t width = a.dims[last], columns = b.dims[last - 1];
  parallel_for(
      out.numel() / columns, std::max<int64_t>(1, 8192 / (columns * std::max<int64_t>(1, width))),
      [&](int64_t begin, int64_t end) {
        Buffer<double> x(width), y(width), row(columns);
        Walker at(last, out.dims, begin);
        for (int64_t r = begin; r < end; ++r, at.next()) {
          load(x.get(), a.data, a.dtype, a.offset + at.offset(a.strides), a.strides[last], width);
          Walker other = at;
          for (int64_t k = 0; k < columns; ++k) {
            other.index[last - 1] = k;
            load(y.get(), b.data, b.dtype, b.offset + other.offset(b.strides), b.strides[last],
                 width);
            row[k] = distance(x, y, width, c.number(P::p));
          }
          store(row.get(), out.data, out.dtype, out.offset + at.offset(out.strides),
                out.strides[last], columns);
        }
      });
}

// The derivative of the p-norm of d towards d, where the norm is `norm`.
double norm_slope(double d, double norm, double p) {
  if (d == 0 || norm == 0 || p == 0) return 0;
  const double sign = d > 0 ? 1 : -1, size = std::fabs(d);
  if (p == 1) return sign;
  if (std::isinf(p)) return size == norm ? sign : 0;
  return p == 2 ? d / norm : sign * std::pow(size / norm, p - 1);
}
// (grad, x1, x2, cdist, p, out): the gradient of Cdist towards x1.
aclnnStatus check_cdist_grad(Call& c) {
  using P = params::CdistBackward;

  const Tensor &a = c.tensor(P::x1), &b = c.tensor(P::x2);
  bool fits = a.rank >= 2 && b.rank == a.rank && a.dims[a.rank - 1] == b.dims[b.rank - 1];
  for (int i = 0; fits && i < a.rank - 2; ++i) fits = a.dims[i] == b.dims[i];
  if (!fits || !(c.number(P::p) >= 0)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s and %s or p %g don't fit.", shape_text(a),
                  shape_text(b), c.number(P::p));
  }
  Shape shape = shape_of(a);
  shape.dims[shape.rank - 1] = b.dims[b.rank - 2];
  ACL_RETURN_IF_FAILED(expect_shape(c, P::grad, shape));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::cdist, shape));
  return expect_same_shape(c, P::out, P::x1);
}
void run_cdist_grad(Call& c) {
  using P = params::CdistBackward;

  const Tensor &a = c.tensor(P::x1), &b = c.tensor(P::x2);
  const int64_t width = a.dims[a.rank - 1], rows = a.dims[a.rank - 2], cols = b.dims[b.rank - 2];
  const Numbers g = numbers(c.tensor(P::grad)), x = numbers(a), y = numbers(b),
                n = numbers(c.tensor(P::cdist));
  Numbers to(x.size());
  for (int64_t i = 0; i < static_cast<int64_t>(g.size()); ++i) {
    const int64_t row = i / cols, other = row / rows * cols + i % cols;
    double norm = n[i];
    if (std::isinf(c.number(P::p))) {  // as exact as the differences, to tell which of them it is
      norm = distance(x.data() + row * width, y.data() + other * width, width, c.number(P::p));
    }
    for (int64_t k = 0; k < width; ++k) {
      const double d = x[row * width + k] - y[other * width + k];
      to[row * width + k] += g[i] * norm_slope(d, norm, c.number(P::p));
    }
  }
  put(c.tensor(P::out), to);
}

// (self [N, M], p, out): distances of all pairs of rows.
aclnnStatus check_pdist(Call& c) {
  using P = params::Pdist;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::self, 2, 2));
  const double p = c.args[P::p].kind == ArgKind::Scalar
                       ? c.scalar(params::PdistForward::pScalar).real()
                       : c.number(P::p);
  if (!(p >= 0)) return c.fail(ACLNN_ERR_PARAM_INVALID, "p should be 0 or more, but is %g.", p);
  const int64_t n = c.tensor(P::self).dims[0];
  return expect_dims(c, P::out, {n * (n - 1) / 2});
}
void run_pdist(Call& c) {
  using P = params::Pdist;

  const double p = c.args[P::p].kind == ArgKind::Scalar
                       ? c.scalar(params::PdistForward::pScalar).real()
                       : c.number(P::p);
  const int64_t n = c.tensor(P::self).dims[0], width = c.tensor(P::self).dims[1];
  const Numbers x = numbers(c.tensor(P::self));
  Numbers out;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = i + 1; k < n; ++k) {
      out.push_back(distance(x.data() + i * width, x.data() + k * width, width, p));
    }
  }
  put(c.tensor(P::out), out);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnCdist, check_cdist, run_cdist)
ACLNN_OP(aclnnCdistBackward, check_cdist_grad, run_cdist_grad)
ACLNN_OP(aclnnPdist, check_pdist, run_pdist)
ACLNN_OP(aclnnPdistForward, check_pdist, run_pdist)
