// Gated units with clamps and groups of rows, and their gradients. Formulas: the "npu_clipped_swiglu" page
// of torch_npu and its test of npu_swiglu_group_quant.
#include "params/activation.h"
#include <cmath>

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
  using P = params::ClippedSwiglu;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, X, X + 7}));
  const Tensor& x = c.tensor(X);
  const int64_t dim = c.integer(X + 2) < 0 ? c.integer(X + 2) + x.rank : c.integer(X + 2);
  if (dim < 0 || dim >= x.rank || x.dims[dim] % 2 != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "dim %lld of x %s can't be halved.",
                  static_cast<long long>(dim), shape_text(x));
  }
  return X ? expect_same_shape(c, X + 7, X) : expect_numel(c, P::out, x.numel() / 2);
}
template <class P>
Gate gate_of(const Call& c) {
  return {c.number(P::limit), c.number(P::alpha), c.number(P::bias)};
}
void run_clipped(Call& c) {
  using P = params::ClippedSwiglu;

  const Cut k = cut_at(c, P::x, P::groupIndexOptional, c.integer(P::dim));
  Floats y =
      gated(floats(c.tensor(P::x)), {k.width / 2, true, c.flag(P::interleaved)}, gate_of<P>(c));
  std::fill(y.begin() + k.live * (k.width / 2), y.end(), 0.0f);
  write(c.tensor(P::out), y);
}
void run_clipped_grad(Call& c) {
  using P = params::ClippedSwigluGrad;

  const Cut k = cut_at(c, P::x, P::groupIndexOptional, c.integer(P::dim));
  write(c.tensor(P::gradXOut),
        gated_back(floats(c.tensor(P::gradY)), floats(c.tensor(P::x)),
                   {k.width / 2, true, c.flag(P::interleaved)}, gate_of<P>(c), k.live));
}
aclnnStatus check_group(Call& c) {
  using P = params::SwigluGroup;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::out}));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::weightOptional, rows_of(c.tensor(P::x))));
  return expect_halves(c, P::x, P::out);
}
void run_group(Call& c) {
  using P = params::SwigluGroup;

  write(c.tensor(P::out),
        weighted(c, P::x, P::weightOptional, P::groupIndexOptional, c.number(P::clampLimit)));
}
aclnnStatus check_group_grad(Call& c) {
  using P = params::SwigluGroupGrad;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradY, P::x, P::gradXOut}));
  if (at_or_null(c, P::weightOptional))
    ACL_RETURN_IF_FAILED(expect_given(c, {P::gradWeightOutOptional}));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::weightOptional, rows_of(c.tensor(P::x))));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::gradY, c.tensor(P::x).numel() / 2));
  return expect_same_shape(c, P::gradXOut, P::x);
}
void run_group_grad(Call& c) {
  using P = params::SwigluGroupGrad;

  const Tensor& t = c.tensor(P::x);
  const int64_t h = width_of(t) / 2;
  const Cut k = cut_at(c, P::x, P::groupIndexOptional, -1);
  const Floats x = floats(t), w = floats(at_or_null(c, P::weightOptional));
  Floats up = floats(c.tensor(P::gradY));
  const Gate gate = group_gate(c.number(P::clampLimit));
  const Floats origin = floats(at_or_null(c, P::yOriginOptional)),
               plain = origin.empty() ? gated(x, {h, true, false}, gate) : origin;
  Doubles dw(w.size());
  for (int64_t i = 0; i < k.live * h; ++i) {
    if (!w.empty()) dw[i / h] += static_cast<double>(up[i]) * plain[i], up[i] *= w[i / h];
  }
  write(c.tensor(P::gradXOut), gated_back(up, x, {h, true, false}, gate, k.live));
  if (!w.empty()) write(c.maybe(P::gradWeightOutOptional), dw);
}
// The second version's clampMode 0 is the first version; 1 cuts what was activated, without a bias.
aclnnStatus check_clipped_v2(Call& c) {
  using P = params::ClippedSwigluV2;

  if (c.integer(P::clampMode) != 0 && c.integer(P::clampMode) != 1)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "clampMode %lld should be 0 or 1.",
                  static_cast<long long>(c.integer(P::clampMode)));
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::out}));
  const Tensor& x = c.tensor(P::x);
  const int64_t dim = c.integer(P::dim) < 0 ? c.integer(P::dim) + x.rank : c.integer(P::dim);
  if (dim < 0 || dim >= x.rank || x.dims[dim] % 2 != 0)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "dim %lld of x %s can't be halved.",
                  static_cast<long long>(dim), shape_text(x));
  return expect_numel(c, P::out, x.numel() / 2);
}
void run_clipped_v2(Call& c) {
  using P = params::ClippedSwigluV2;

  const Cut k = cut_at(c, P::x, P::groupIndexOptional, c.integer(P::dim));
  const Pairs halves = {k.width / 2, true, c.flag(P::interleaved)};
  const double limit = c.number(P::limit);
  const auto after = [=](double a, double b) {
    return std::min(a / (1 + std::exp(-a)), limit) * std::min(std::max(b, -limit), limit);
  };
  const Floats x = floats(c.tensor(P::x));
  Floats y =
      c.integer(P::clampMode) == 1 ? gated(x, halves, after) : gated(x, halves, gate_of<P>(c));
  std::fill(y.begin() + k.live * (k.width / 2), y.end(), 0.0f);
  write(c.tensor(P::out), y);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnClippedSwiglu, check_clipped<params::ClippedSwiglu::x>, run_clipped)
ACLNN_OWN(aclnnClippedSwigluGrad, check_clipped<params::ClippedSwigluGrad::x>, run_clipped_grad)
ACLNN_OWN(aclnnSwigluGroup, check_group, run_group)
ACLNN_OWN(aclnnSwigluGroupGrad, check_group_grad, run_group_grad)
ACLNN_OWN(aclnnSwigluGroupQuantGrad, check_group_grad, run_group_grad)
ACLNN_OWN(aclnnClippedSwigluV2, check_clipped_v2, run_clipped_v2)
