// Losses and their gradients: one ACLNN operator each, with the reduction as a text.
#include "op_compiler/rows.h"

#include <aclnnop/aclnn_binary_cross_entropy.h>
#include <aclnnop/aclnn_binary_cross_entropy_backward.h>
#include <aclnnop/aclnn_binary_cross_entropy_with_logits.h>
#include <aclnnop/aclnn_binary_cross_entropy_with_logits_backward.h>
#include <aclnnop/aclnn_kl_div_backward.h>
#include <aclnnop/aclnn_l1_loss.h>
#include <aclnnop/aclnn_l1_loss_backward.h>
#include <aclnnop/aclnn_mse_loss.h>
#include <aclnnop/aclnn_mse_loss_backward.h>
#include <aclnnop/aclnn_nll_loss.h>
#include <aclnnop/aclnn_nll_loss_backward.h>
#include <aclnnop/aclnn_smooth_l1_loss.h>
#include <aclnnop/aclnn_smooth_l1_loss_backward.h>
#include <aclnnop/aclnn_soft_margin_loss.h>
#include <aclnnop/aclnn_soft_margin_loss_backward.h>

namespace aclsim {
namespace {

constexpr int64_t kUnknown = -1;
int64_t reduction_of(TypeCall& c) {
  const std::string name = c.text_attr("reduction", "mean");
  return name == "none" ? 0 : name == "mean" ? 1 : name == "sum" ? 2 : kUnknown;
}
aclError expect_loss(TypeCall& c, size_t inputs, size_t outputs) {
  EXPECT(c, inputs, outputs);
  if (reduction_of(c) != kUnknown) return ACL_SUCCESS;
  return c.refuse("reduction %s is none of none, mean and sum",
                  c.text_attr("reduction", "mean").c_str());
}

// A row of at least so many inputs and one output; the arguments are those of the ACLNN operator.
#define LOSS(type, op, inputs, ...)                                        \
  {#type, [](TypeCall& c) -> aclError {                                    \
     if (aclError code_ = expect_loss(c, inputs, 1)) return code_;         \
     return ACLSIM_RUN(c, op, __VA_ARGS__, c.out_tensor(0));               \
   }}
#define OPTIONAL(i) (c.given(i) ? c.in_tensor(i) : nullptr)
#define HOW reduction_of(c)

// Images as rows [N, C] or [C] alone are those of ACLNN's operator.
aclError expect_rows(TypeCall& c, size_t inputs, size_t outputs) {
  if (aclError code = expect_loss(c, inputs, outputs)) return code;
  return c.in(0).dims.size() <= 2 ? ACL_SUCCESS : c.refuse("images are not simulated");
}
// x, target, weight → loss, total of weights.
aclError nll(TypeCall& c) {
  if (aclError code = expect_rows(c, 3, 2)) return code;
  return ACLSIM_RUN(c, aclnnNLLLoss, IN(0), IN(1), IN(2), HOW, c.int_attr("ignore_index", -100),
                    c.out_tensor(0), c.out_tensor(1));
}
// x, gradient of the loss, target, weight, total of weights → gradient of x.
aclError nll_grad(TypeCall& c) {
  if (aclError code = expect_rows(c, 5, 1)) return code;
  return ACLSIM_RUN(c, aclnnNLLLossBackward, IN(1), IN(0), IN(2), IN(3), HOW,
                    c.int_attr("ignore_index", -100), IN(4), c.out_tensor(0));
}
aclError lp_loss(TypeCall& c) {
  if (aclError code = expect_loss(c, 2, 1)) return code;
  if (c.int_attr("p", 1) != 1) return c.refuse("p other than 1 is not simulated");
  return ACLSIM_RUN(c, aclnnL1Loss, IN(0), IN(1), HOW, c.out_tensor(0));
}

}  // namespace

const TypeTable& loss_types() {
  static const auto* rows = new TypeTable{
      {"NLLLoss", nll}, {"NLLLossGrad", nll_grad}, {"LpLoss", lp_loss},
      LOSS(MseLoss, aclnnMseLoss, 2, IN(0), IN(1), HOW),
      LOSS(MseLossGrad, aclnnMseLossBackward, 3, IN(2), IN(0), IN(1), HOW),
      LOSS(L1LossGrad, aclnnL1LossBackward, 3, IN(0), IN(1), IN(2), HOW),
      LOSS(SmoothL1LossV2, aclnnSmoothL1Loss, 2, IN(0), IN(1), HOW, c.float_attr("sigma", 1)),
      LOSS(SmoothL1LossGradV2, aclnnSmoothL1LossBackward, 3, IN(2), IN(0), IN(1), HOW,
           c.float_attr("sigma", 1)),
      LOSS(BinaryCrossEntropy, aclnnBinaryCrossEntropy, 2, IN(0), IN(1), OPTIONAL(2), HOW),
      LOSS(BinaryCrossEntropyGrad, aclnnBinaryCrossEntropyBackward, 3, IN(2), IN(0), IN(1),
           OPTIONAL(3), HOW),
      LOSS(SigmoidCrossEntropyWithLogitsV2, aclnnBinaryCrossEntropyWithLogits, 2, IN(0), IN(1),
           OPTIONAL(2), OPTIONAL(3), HOW),
      LOSS(SigmoidCrossEntropyWithLogitsGradV2, aclnnBinaryCrossEntropyWithLogitsBackward, 3,
           IN(2), IN(0), IN(1), OPTIONAL(3), OPTIONAL(4), HOW),
      LOSS(KlDivLossGrad, aclnnKlDivBackward, 3, IN(0), IN(1), IN(2), HOW,
           c.flag_attr("log_target", false)),
      LOSS(SoftMarginLoss, aclnnSoftMarginLoss, 2, IN(0), IN(1), HOW),
      LOSS(SoftMarginLossGrad, aclnnSoftMarginLossBackward, 3, IN(2), IN(0), IN(1), HOW)};
  return *rows;
}

}  // namespace aclsim
