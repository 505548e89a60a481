// Activations, norms of activations and their gradients: one ACLNN operator each.
#include "op_compiler/rows.h"

#include <aclnnop/aclnn_add_rms_norm.h>
#include <aclnnop/aclnn_celu.h>
#include <aclnnop/aclnn_elu_backward.h>
#include <aclnnop/aclnn_fast_gelu.h>
#include <aclnnop/aclnn_fast_gelu_backward.h>
#include <aclnnop/aclnn_gelu.h>
#include <aclnnop/aclnn_gelu_backward.h>
#include <aclnnop/aclnn_glu.h>
#include <aclnnop/aclnn_glu_backward.h>
#include <aclnnop/aclnn_hardshrink.h>
#include <aclnnop/aclnn_hardshrink_backward.h>
#include <aclnnop/aclnn_hardsigmoid.h>
#include <aclnnop/aclnn_hardsigmoid_backward.h>
#include <aclnnop/aclnn_hardtanh_backward.h>
#include <aclnnop/aclnn_leaky_relu.h>
#include <aclnnop/aclnn_leaky_relu_backward.h>
#include <aclnnop/aclnn_logsigmoid.h>
#include <aclnnop/aclnn_logsigmoid_backward.h>
#include <aclnnop/aclnn_prelu.h>
#include <aclnnop/aclnn_prelu_backward.h>
#include <aclnnop/aclnn_rms_norm.h>
#include <aclnnop/aclnn_rms_norm_grad.h>
#include <aclnnop/aclnn_selu.h>
#include <aclnnop/aclnn_selu_backward.h>
#include <aclnnop/aclnn_softplus.h>
#include <aclnnop/aclnn_softplus_backward.h>
#include <aclnnop/aclnn_softshrink.h>
#include <aclnnop/aclnn_softshrink_backward.h>
#include <aclnnop/aclnn_swish_backward.h>
#include <aclnnop/aclnn_threshold.h>
#include <aclnnop/aclnn_threshold_backward.h>

namespace aclsim {
namespace {

#define NUMBER(name, fallback) c.scalar(c.float_attr(name, fallback))

aclError log_sigmoid_grad(TypeCall& c) {
  EXPECT(c, 2, 1);
  aclTensor* none = c.tensor(c.room(c.in(1).dtype, {0}));
  return ACLSIM_RUN(c, aclnnLogSigmoidBackward, IN(0), IN(1), none, c.out_tensor(0));
}
// The slope and middle that ACLNN's form has are the only ones.
aclError hard_sigmoid(TypeCall& c) {
  EXPECT(c, 1, 1);
  if (c.float_attr("alpha", 1.0f / 6) != 1.0f / 6 || c.float_attr("beta", 0.5f) != 0.5f) {
    return c.refuse("alpha other than 1/6 and beta other than 0.5 are not simulated");
  }
  return ACLSIM_RUN(c, aclnnHardsigmoid, IN(0), c.out_tensor(0));
}
aclError prelu_grad(TypeCall& c) {
  EXPECT(c, 3, 2);
  return ACLSIM_RUN(c, aclnnPreluBackward, IN(0), IN(1), IN(2), c.out_tensor(0), c.out_tensor(1));
}
aclError rms_norm(TypeCall& c) {
  EXPECT(c, 2, 2);
  return ACLSIM_RUN(c, aclnnRmsNorm, IN(0), IN(1), double{c.float_attr("epsilon", 1e-6f)},
                    c.out_tensor(0), c.out_tensor(1));
}
aclError rms_norm_grad(TypeCall& c) {
  EXPECT(c, 4, 2);
  return ACLSIM_RUN(c, aclnnRmsNormGrad, IN(0), IN(1), IN(2), IN(3), c.out_tensor(0),
                    c.out_tensor(1));
}
aclError add_rms_norm(TypeCall& c) {
  EXPECT(c, 3, 3);
  return ACLSIM_RUN(c, aclnnAddRmsNorm, IN(0), IN(1), IN(2), double{c.float_attr("epsilon", 1e-6f)},
                    c.out_tensor(0), c.out_tensor(1), c.out_tensor(2));
}

}  // namespace

const TypeTable& activation_types() {
  static const auto* rows = new TypeTable{
      ROW(Gelu, aclnnGelu, 1, IN(0)), ROW(GeluGrad, aclnnGeluBackward, 3, IN(0), IN(1)),
      ROW(FastGelu, aclnnFastGelu, 1, IN(0)),
      ROW(FastGeluGrad, aclnnFastGeluBackward, 2, IN(0), IN(1)),
      ROW(LeakyRelu, aclnnLeakyRelu, 1, IN(0), NUMBER("negative_slope", 0)),
      ROW(LeakyReluGrad, aclnnLeakyReluBackward, 2, IN(0), IN(1), NUMBER("negative_slope", 0), false),
      {"HardSigmoid", hard_sigmoid},
      ROW(HardSigmoidGrad, aclnnHardsigmoidBackward, 2, IN(0), IN(1)),
      ROW(HardtanhGrad, aclnnHardtanhBackward, 2, IN(1), IN(0), NUMBER("min_val", -1),
          NUMBER("max_val", 1)),
      ROW(HardShrink, aclnnHardshrink, 1, IN(0), NUMBER("lambd", 0.5f)),
      ROW(HardShrinkGrad, aclnnHardshrinkBackward, 2, IN(0), IN(1), NUMBER("lambd", 0.5f)),
      ROW(SoftShrink, aclnnSoftshrink, 1, IN(0), NUMBER("lambd", 0.5f)),
      ROW(SoftShrinkGrad, aclnnSoftshrinkBackward, 2, IN(0), IN(1), NUMBER("lambd", 0.5f)),
      ROW(EluGradV2, aclnnEluBackward, 2, IN(0), NUMBER("alpha", 1), NUMBER("scale", 1),
          NUMBER("input_scale", 1), c.flag_attr("is_result", false), IN(1)),
      ROW(Selu, aclnnSelu, 1, IN(0)), ROW(SeluGrad, aclnnSeluBackward, 2, IN(0), IN(1)),
      ROW(CeluV2, aclnnCelu, 1, IN(0), NUMBER("alpha", 1)),
      ROW(SoftplusV2, aclnnSoftplus, 1, IN(0), NUMBER("beta", 1), NUMBER("threshold", 20)),
      ROW(SoftplusV2Grad, aclnnSoftplusBackward, 2, IN(0), IN(1), NUMBER("beta", 1),
          NUMBER("threshold", 20)),
      ROW(LogSigmoid, aclnnLogSigmoid, 1, IN(0)), {"LogSigmoidGrad", log_sigmoid_grad},
      ROW(ThresholdV2D, aclnnThreshold, 1, IN(0), NUMBER("threshold", 0), NUMBER("value", 0)),
      ROW(ThresholdGradV2D, aclnnThresholdBackward, 2, IN(0), IN(1), NUMBER("threshold", 0)),
      ROW(GLU, aclnnGlu, 1, IN(0), c.int_attr("dim", -1)),
      ROW(GLUGrad, aclnnGluBackward, 2, IN(0), IN(1), c.int_attr("dim", -1)),
      ROW(SwishGrad, aclnnSwishBackward, 3, IN(0), IN(1), NUMBER("scale", 1)),
      ROW(PRelu, aclnnPrelu, 2, IN(0), IN(1)), {"PReluGrad", prelu_grad},
      {"RmsNorm", rms_norm}, {"RmsNormGrad", rms_norm_grad}, {"AddRmsNorm", add_rms_norm}};
  return *rows;
}

}  // namespace aclsim
