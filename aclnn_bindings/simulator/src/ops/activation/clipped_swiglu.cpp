// Gated units with clamps and groups of rows, and their gradients. Formulas: the "npu_clipped_swiglu" page
// of torch_npu and its test of npu_swiglu_group_quant.
#include <cmath>
#include <cstring>

#include "loops/group.h"
#include "loops/matrices.h"
#include "loops/mx.h"
#include "loops/numbers.h"
#include "loops/gate.h"

namespace aclsim {
namespace {

// (x, groupIndex, dim, alpha, limit, bias, interleaved, out), and (gradY, x, ...).
template <int X>
aclnnStatus check_clipped(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, X, X + 7}));
  const Tensor& x = c.tensor(X);
  const int64_t dim = c.integer(X + 2) < 0 ? c.integer(X + 2) + x.rank : c.integer(X + 2);
  if (dim < 0 || dim >= x.rank || x.dims[dim] % 2 != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "dim %lld of x %s can't be halved.",
                  static_cast<long long>(dim), shape_text(x));
  }
  return X ? expect_same_shape(c, X + 7, X) : expect_numel(c, 7, x.numel() / 2);
}
Gate gate_of(const Call& c, int x) { return {c.number(x + 4), c.number(x + 3), c.number(x + 5)}; }
aclError run_clipped(Call& c) {
  const Cut k = cut_at(c, 0, 1, c.integer(2));
  Floats y = gated(floats(c.tensor(0)), {k.width / 2, true, c.flag(6)}, gate_of(c, 0));
  std::fill(y.begin() + k.live * (k.width / 2), y.end(), 0.0f);
  write(c.tensor(7), y);
  return ACL_SUCCESS;
}
aclError run_clipped_grad(Call& c) {
  const Cut k = cut_at(c, 1, 2, c.integer(3));
  write(c.tensor(8), gated_back(floats(c.tensor(0)), floats(c.tensor(1)),
                                {k.width / 2, true, c.flag(7)}, gate_of(c, 1), k.live));
  return ACL_SUCCESS;
}
// (x, weight, groupIndex, clampLimit, out).
aclnnStatus check_group(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 4}));
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, rows_of(c.tensor(0))));
  return expect_halves(c, 4);
}
aclError run_group(Call& c) {
  write(c.tensor(4), weighted(c, 0, 1, 2, c.number(3)));
  return ACL_SUCCESS;
}
// (gradY, x, weight, yOrigin, groupIndex, clampLimit, gradX, gradWeight).
aclnnStatus check_group_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 6}));
  if (at_or_null(c, 2)) ACL_RETURN_IF_FAILED(expect_given(c, {7}));
  ACL_RETURN_IF_FAILED(expect_numel(c, 2, rows_of(c.tensor(1))));
  ACL_RETURN_IF_FAILED(expect_numel(c, 0, c.tensor(1).numel() / 2));
  return expect_same_shape(c, 6, 1);
}
aclError run_group_grad(Call& c) {
  const Tensor& t = c.tensor(1);
  const int64_t h = width_of(t) / 2;
  const Cut k = cut_at(c, 1, 4, -1);
  const Floats x = floats(t), w = floats(at_or_null(c, 2));
  Floats up = floats(c.tensor(0));
  const Gate gate = group_gate(c.number(5));
  const Floats origin = floats(at_or_null(c, 3)),
               plain = origin.empty() ? gated(x, {h, true, false}, gate) : origin;
  Doubles dw(w.size());
  for (int64_t i = 0; i < k.live * h; ++i) {
    if (!w.empty()) dw[i / h] += static_cast<double>(up[i]) * plain[i], up[i] *= w[i / h];
  }
  write(c.tensor(6), gated_back(up, x, {h, true, false}, gate, k.live));
  if (!w.empty()) write(c.maybe(7), dw);
  return ACL_SUCCESS;
}
// The second version's clampMode 0 is the first version; 1 cuts what was activated, without a bias.
aclnnStatus check_clipped_v2(Call& c) {
  if (c.integer(7) != 0 && c.integer(7) != 1)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "clampMode %lld should be 0 or 1.",
                  static_cast<long long>(c.integer(7)));
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 8}));
  const Tensor& x = c.tensor(0);
  const int64_t dim = c.integer(2) < 0 ? c.integer(2) + x.rank : c.integer(2);
  if (dim < 0 || dim >= x.rank || x.dims[dim] % 2 != 0)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "dim %lld of x %s can't be halved.",
                  static_cast<long long>(dim), shape_text(x));
  return expect_numel(c, 8, x.numel() / 2);
}
aclError run_clipped_v2(Call& c) {
  const Cut k = cut_at(c, 0, 1, c.integer(2));
  const Pairs halves = {k.width / 2, true, c.flag(6)};
  const double limit = c.number(4);
  const auto after = [=](double a, double b) {
    return std::min(a / (1 + std::exp(-a)), limit) * std::min(std::max(b, -limit), limit);
  };
  const Floats x = floats(c.tensor(0));
  Floats y = c.integer(7) == 1 ? gated(x, halves, after) : gated(x, halves, gate_of(c, 0));
  std::fill(y.begin() + k.live * (k.width / 2), y.end(), 0.0f);
  write(c.tensor(8), y);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_GATED(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_GATED(aclnnClippedSwiglu, check_clipped<0>, run_clipped)
ACLNN_GATED(aclnnClippedSwigluGrad, check_clipped<1>, run_clipped_grad)
ACLNN_GATED(aclnnSwigluGroup, check_group, run_group)
ACLNN_GATED(aclnnSwigluGroupGrad, check_group_grad, run_group_grad)
ACLNN_GATED(aclnnSwigluGroupQuantGrad, check_group_grad, run_group_grad)
ACLNN_GATED(aclnnClippedSwigluV2, check_clipped_v2, run_clipped_v2)
