// Gated units with clamps: pairs of a row's elements, one of them through an activation.
#pragma once

#include "loops/group.h"
#include "loops/matrices.h"
#include "loops/numbers.h"

#include <algorithm>
#include <cmath>

namespace aclsim {

// A gated unit: out = a sigmoid(alpha a) (b + bias), a below the limit, b within it.
struct Gate {
  double limit = INFINITY, alpha = 1, bias = 0;
  double a_of(double a) const { return std::min(a, limit); }
  double b_of(double b) const { return std::min(std::max(b, -limit), limit); }
  double operator()(double a, double b) const {
    return a_of(a) / (1 + std::exp(-alpha * a_of(a))) * (b_of(b) + bias);
  }
  // By a and by b; zero where a clamp holds.
  void gradients(double a, double b, double up, double& da, double& db) const {
    const double s = 1 / (1 + std::exp(-alpha * a_of(a))), swish = a_of(a) * s;
    da = a > limit ? 0 : up * (b_of(b) + bias) * (s + alpha * a * s * (1 - s));
    db = b > limit || b < -limit ? 0 : up * swish;
  }
};
// Rows of 2h elements as pairs: halves, the left one gated or the right, or neighbours.
struct Pairs {
  int64_t h;
  bool left, interleaved;
  int64_t a(int64_t j) const { return interleaved ? 2 * j : left ? j : h + j; }
  int64_t b(int64_t j) const { return interleaved ? 2 * j + 1 : left ? h + j : j; }
};
template <class F = Gate>
Floats gated(const Floats& x, const Pairs& p, const F& gate) {
  Floats y(x.size() / 2);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / p.h, j = static_cast<int64_t>(i) % p.h;
    const float* row = x.data() + r * 2 * p.h;
    y[i] = static_cast<float>(gate(row[p.a(j)], row[p.b(j)]));
  }
  return y;
}
inline aclnnStatus expect_halves(const Call& c, TensorAt input, TensorAt out) {
  const Tensor& x = c.tensor(input);
  if (x.rank < 1 || width_of(x) % 2 != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "The last dim of x %s should be even.", shape_text(x));
  }
  return expect_numel(c, out,
                      c.tensor(out).dtype == ACL_INT32 ? x.numel() / 2 / kPacked : x.numel() / 2);
}

// x as [before, cut], cut including what follows `dim`; only the first rows of groups count.
struct Cut {
  int64_t rows, width, live;
};
inline Cut cut_at(const Call& c, int x, int group, int64_t dim) {
  const Tensor& t = c.tensor(x);
  Cut k = {1, 1, 0};
  if (dim < 0) dim += t.rank;
  for (int i = 0; i < t.rank; ++i) (i < dim ? k.rows : k.width) *= t.dims[i];
  k.live = k.rows;
  if (at_or_null(c, group)) {
    k.live = 0;
    for (int64_t n : integers(c.tensor(group))) k.live += n;
    k.live = std::min(k.live, k.rows);
  }
  return k;
}
inline Floats gated_back(const Floats& up, const Floats& x, const Pairs& p, const Gate& gate,
                  int64_t live) {
  Floats dx(x.size());
  for (int64_t i = 0; i < live * p.h; ++i) {
    const int64_t row = i / p.h * 2 * p.h, j = i % p.h;
    double da, db;
    gate.gradients(x[row + p.a(j)], x[row + p.b(j)], up[i], da, db);
    dx[row + p.a(j)] = static_cast<float>(da), dx[row + p.b(j)] = static_cast<float>(db);
  }
  return dx;
}

// Swish of the left half, times the right, times a weight per row; a positive limit clamps.
inline Gate group_gate(double limit) { return {limit > 0 ? limit : INFINITY, 1, 0}; }
inline Floats weighted(const Call& c, int x, int weight, int group, double limit) {
  const Tensor& t = c.tensor(x);
  const int64_t h = width_of(t) / 2;
  Floats y = gated(floats(t), {h, true, false}, group_gate(limit));
  const Floats w = floats(at_or_null(c, weight));
  const Cut k = cut_at(c, x, group, -1);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / h;
    y[i] = r < k.live ? y[i] * (w.empty() ? 1 : w[r]) : 0;
  }
  return y;
}

}  // namespace aclsim
