// Products that go on into an operation.
#include "params/matmul.h"
#include "loops/matrices.h"

#include <cstring>

namespace aclsim {
namespace {

// (x1, x2, bias, x3, fusedOpType, cubeMathType, y): the product, then the operation named.
aclnnStatus check_fused(Call& c) {
  using P = params::FusedMatmul;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, P::y}));
  const char* op = c.text(P::fusedOpType) ? c.text(P::fusedOpType) : "";
  static const char* const known[] = {"", "add", "mul", "gelu_erf", "gelu_tanh", "relu"};
  if (std::none_of(std::begin(known), std::end(known),
                   [&](const char* k) { return !std::strcmp(k, op); })) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "fusedOpType \"%s\" should be empty, add, mul, gelu_erf, gelu_tanh or relu.", op);
  }
  if (!std::strcmp(op, "add") || !std::strcmp(op, "mul")) {
    ACL_RETURN_IF_FAILED(expect_given(c, {P::x3}));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::x3, P::y));
  }
  const Matrices a = matrices_like(c.tensor(P::x1), false, false),
                 b = matrices_like(c.tensor(P::x2), false, false);
  const Tensor& y = c.tensor(P::y);
  if (a.cols != b.rows || (b.batch != 1 && a.batch != b.batch) ||
      y.numel() != std::max(a.batch, b.batch) * a.rows * b.cols) {
    return refuse_fit(c, P::x2, P::x1);
  }
  return at_or_null(c, P::bias) ? expect_numel(c, P::bias, b.cols) : ACLNN_SUCCESS;
}
void run_fused(Call& c) {
  using P = params::FusedMatmul;

  Matrices m = product(matrices_of(c.tensor(P::x1), false, false),
                       matrices_of(c.tensor(P::x2), false, false));
  const Floats bias = floats(at_or_null(c, P::bias));
  const Doubles third = doubles(at_or_null(c, P::x3));
  const char* op = c.text(P::fusedOpType) ? c.text(P::fusedOpType) : "";
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
  write(c.tensor(P::y), m.v);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnFusedMatmul, check_fused, run_fused)
