// Products that go on into an operation.
#include "loops/matrices.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

// (x1, x2, bias, x3, fusedOpType, cubeMathType, y): the product, then the operation named.
aclnnStatus check_fused(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 6}));
  const char* op = c.text(4) ? c.text(4) : "";
  static const char* const known[] = {"", "add", "mul", "gelu_erf", "gelu_tanh", "relu"};
  if (std::none_of(std::begin(known), std::end(known),
                   [&](const char* k) { return !std::strcmp(k, op); })) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "fusedOpType \"%s\" should be empty, add, mul, gelu_erf, gelu_tanh or relu.", op);
  }
  if (!std::strcmp(op, "add") || !std::strcmp(op, "mul")) {
    ACL_RETURN_IF_FAILED(expect_given(c, {3}));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, 3, 6));
  }
  const Matrices a = matrices_like(c.tensor(0), false, false),
                 b = matrices_like(c.tensor(1), false, false);
  const Tensor& y = c.tensor(6);
  if (a.cols != b.rows || (b.batch != 1 && a.batch != b.batch) ||
      y.numel() != std::max(a.batch, b.batch) * a.rows * b.cols) {
    return refuse_fit(c, 1, 0);
  }
  return at_or_null(c, 2) ? expect_numel(c, 2, b.cols) : ACLNN_SUCCESS;
}
aclError run_fused(Call& c) {
  Matrices m =
      product(matrices_of(c.tensor(0), false, false), matrices_of(c.tensor(1), false, false));
  const Floats bias = floats(at_or_null(c, 2));
  const Doubles third = doubles(at_or_null(c, 3));
  const char* op = c.text(4) ? c.text(4) : "";
  const Activation kind = !std::strcmp(op, "relu")        ? Activation::Relu
                          : !std::strcmp(op, "gelu_erf")  ? Activation::GeluErf
                          : !std::strcmp(op, "gelu_tanh") ? Activation::GeluTanh
                                                          : Activation::None;
  for (size_t i = 0; i < m.v.size(); ++i) {
    double v = m.v[i] + (bias.empty() ? 0 : bias[i % bias.size()]);
    if (!std::strcmp(op, "add")) v += third[i];
    if (!std::strcmp(op, "mul")) v *= third[i];
    m.v[i] = activated(v, kind);
  }
  write(c.tensor(6), m.v);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_VOCABULARY(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_VOCABULARY(aclnnFusedMatmul, check_fused, run_fused)
