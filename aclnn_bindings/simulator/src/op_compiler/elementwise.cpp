// More types that are one ACLNN operator each: element by element, gradients, selections, sums.
#include <algorithm>
#include <cmath>

#include "op_compiler/rows.h"

#include <aclnnop/aclnn_acos.h>
#include <aclnnop/aclnn_acosh.h>
#include <aclnnop/aclnn_asin.h>
#include <aclnnop/aclnn_asinh.h>
#include <aclnnop/aclnn_atan.h>
#include <aclnnop/aclnn_atan2.h>
#include <aclnnop/aclnn_atanh.h>
#include <aclnnop/aclnn_bitwise_xor_tensor.h>
#include <aclnnop/aclnn_clamp.h>
#include <aclnnop/aclnn_cosh.h>
#include <aclnnop/aclnn_cumsum.h>
#include <aclnnop/aclnn_erfc.h>
#include <aclnnop/aclnn_erfinv.h>
#include <aclnnop/aclnn_expm1.h>
#include <aclnnop/aclnn_flip.h>
#include <aclnnop/aclnn_floor_divide.h>
#include <aclnnop/aclnn_fmod_tensor.h>
#include <aclnnop/aclnn_gather.h>
#include <aclnnop/aclnn_gather_v2.h>
#include <aclnnop/aclnn_hardswish.h>
#include <aclnnop/aclnn_hardswish_backward.h>
#include <aclnnop/aclnn_isfinite.h>
#include <aclnnop/aclnn_log1p.h>
#include <aclnnop/aclnn_logaddexp.h>
#include <aclnnop/aclnn_logical_and.h>
#include <aclnnop/aclnn_logical_not.h>
#include <aclnnop/aclnn_logical_or.h>
#include <aclnnop/aclnn_logsoftmax_backward.h>
#include <aclnnop/aclnn_masked_fill_tensor.h>
#include <aclnnop/aclnn_mul.h>
#include <aclnnop/aclnn_pow_tensor_tensor.h>
#include <aclnnop/aclnn_remainder.h>
#include <aclnnop/aclnn_repeat.h>
#include <aclnnop/aclnn_round.h>
#include <aclnnop/aclnn_s_where.h>
#include <aclnnop/aclnn_sigmoid_backward.h>
#include <aclnnop/aclnn_silu_backward.h>
#include <aclnnop/aclnn_sinh.h>
#include <aclnnop/aclnn_softmax_backward.h>
#include <aclnnop/aclnn_stack.h>
#include <aclnnop/aclnn_tan.h>
#include <aclnnop/aclnn_tanh_backward.h>
#include <aclnnop/aclnn_threshold_backward.h>
#include <aclnnop/aclnn_topk.h>
#include <aclnnop/aclnn_tril.h>
#include <aclnnop/aclnn_triu.h>
#include <aclnnop/aclnn_trunc.h>

namespace aclsim {
namespace {

#define UNARY(type, op)                                             \
  {#type, [](TypeCall& c) -> aclError {                             \
     EXPECT(c, 1, 1);                                               \
     return ACLSIM_RUN(c, op, c.in_tensor(0), c.out_tensor(0));     \
   }}
// The operator takes inputs `a` and `b` of the type, in this order.
#define BINARY(type, op, a, b)                                                        \
  {#type, [](TypeCall& c) -> aclError {                                               \
     EXPECT(c, 2, 1);                                                                 \
     return ACLSIM_RUN(c, op, c.in_tensor(a), c.in_tensor(b), c.out_tensor(0));       \
   }}
#define TERNARY(type, op)                                                                          \
  {#type, [](TypeCall& c) -> aclError {                                                            \
     EXPECT(c, 3, 1);                                                                              \
     return ACLSIM_RUN(c, op, c.in_tensor(0), c.in_tensor(1), c.in_tensor(2), c.out_tensor(0));    \
   }}
#define TRIANGLE(type, op)                                                                         \
  {#type, [](TypeCall& c) -> aclError {                                                            \
     EXPECT(c, 1, 1);                                                                              \
     return ACLSIM_RUN(c, op, c.in_tensor(0), c.int_attr("diagonal", 0), c.out_tensor(0));         \
   }}

aclError square(TypeCall& c) {
  EXPECT(c, 1, 1);
  return ACLSIM_RUN(c, aclnnMul, c.in_tensor(0), c.in_tensor(0), c.out_tensor(0));
}
aclError relu_grad(TypeCall& c) {
  EXPECT(c, 2, 1);
  return ACLSIM_RUN(c, aclnnThresholdBackward, c.in_tensor(0), c.in_tensor(1), c.scalar(0),
                    c.out_tensor(0));
}
// Gradients of softmax: the result and the upstream gradient, whose places differ between types.
aclError softmax_grad(TypeCall& c) {
  EXPECT(c, 2, 1);
  Dims axes = c.ints_attr("axes", {-1});
  if (axes.size() != 1) return c.refuse("axes has %zu values, expected one", axes.size());
  return ACLSIM_RUN(c, aclnnSoftmaxBackward, c.in_tensor(1), c.in_tensor(0), axes[0], c.out_tensor(0));
}
aclError log_softmax_grad(TypeCall& c) {
  EXPECT(c, 2, 1);
  Dims axes = c.ints_attr("axis", {-1});
  if (axes.size() != 1) return c.refuse("axis has %zu values, expected one", axes.size());
  return ACLSIM_RUN(c, aclnnLogSoftmaxBackward, c.in_tensor(0), c.in_tensor(1), axes[0],
                    c.out_tensor(0));
}
// x, mask, value → x with the value where the mask is.
aclError masked_fill(TypeCall& c) {
  EXPECT(c, 3, 1);
  if (aclError code = c.copy(c.out(0), c.in(0))) return code;
  return ACLSIM_RUN(c, aclnnInplaceMaskedFillTensor, c.out_tensor(0), c.in_tensor(1), c.in_tensor(2));
}

// x, start and end [groups, ranges], value [groups] → x with ranges of an axis filled. Where the
// axis comes after the first, a range belongs to one element of the axis before it.
aclError masked_fill_range(TypeCall& c) {
  EXPECT(c, 4, 1);
  const Dims& x = c.in(0).dims;
  auto rank = static_cast<int64_t>(x.size());
  int64_t axis = c.int_attr("axis", -1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || c.out(0).dims != x) return c.refuse("axis or output do not fit x");
  EXPECT_IN(c, 1, {-1, -1});
  int64_t groups = c.in(1).dims[0], ranges = c.in(1).dims[1];
  EXPECT_IN(c, 2, {groups, ranges});
  if (count_of(c.in(3).dims) != groups) return c.refuse("value needs one element for each group");
  bool inner = axis > 0 && axis == rank - 1;  // then range j is of element j of the first axis
  if (inner && ranges > x[0]) return c.refuse("there are more ranges than elements of the first axis");
  Dims starts = c.ints(1), ends = c.ints(2);
  if (aclError code = c.copy(c.out(0), c.in(0))) return code;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t from = std::max<int64_t>(0, starts[i]);
    int64_t to = std::min(x[static_cast<size_t>(axis)], ends[i]);
    if (from >= to) continue;
    auto group = static_cast<int64_t>(i) / ranges, range = static_cast<int64_t>(i) % ranges;
    View part = c.out(0), value = c.in(3);
    part.offset += from * part.strides[static_cast<size_t>(axis)];
    part.dims[static_cast<size_t>(axis)] = to - from;
    if (inner) part.offset += range * part.strides[0], part.dims[0] = 1;
    value.offset = group;
    value.dims = part.dims;
    value.strides.assign(value.dims.size(), 0);
    if (aclError code = c.copy(part, value)) return code;
  }
  return ACL_SUCCESS;
}

aclError gather(TypeCall& c) {
  EXPECT(c, 3, 1);
  if (c.int_attr("batch_dims", 0)) return c.refuse("batch_dims is not simulated");
  return ACLSIM_RUN(c, aclnnGatherV2, c.in_tensor(0), c.ints(2).at(0), c.in_tensor(1), c.out_tensor(0));
}
aclError gather_elements(TypeCall& c) {
  EXPECT(c, 2, 1);
  return ACLSIM_RUN(c, aclnnGather, c.in_tensor(0), c.int_attr("dim", 0), c.in_tensor(1), c.out_tensor(0));
}
aclError cumsum(TypeCall& c) {
  EXPECT(c, 2, 1);
  if (c.flag_attr("exclusive", false) || c.flag_attr("reverse", false)) {
    return c.refuse("exclusive and reverse are not simulated");
  }
  return ACLSIM_RUN(c, aclnnCumsum, c.in_tensor(0), c.ints(1).at(0), c.out(0).dtype, c.out_tensor(0));
}
aclError reverse(TypeCall& c) {
  EXPECT(c, 2, 1);
  return ACLSIM_RUN(c, aclnnFlip, c.in_tensor(0), c.array(c.ints(1)), c.out_tensor(0));
}
aclError tile(TypeCall& c) {
  EXPECT(c, 2, 1);
  return ACLSIM_RUN(c, aclnnRepeat, c.in_tensor(0), c.array(c.ints(1)), c.out_tensor(0));
}
aclError pack(TypeCall& c) {
  EXPECT(c, 1, 1);
  std::vector<aclTensor*> members;
  for (size_t i = 0; i < c.inputs(); ++i) members.push_back(c.in_tensor(i));
  return ACLSIM_RUN(c, aclnnStack, c.list(members), c.int_attr("axis", 0), c.out_tensor(0));
}
// x, k → values, positions.
aclError top_k_v2(TypeCall& c) {
  EXPECT(c, 2, 2);
  int64_t k = c.ints(1).at(0);
  View positions = c.room(ACL_INT64, c.out(1).dims);
  aclError code = ACLSIM_RUN(c, aclnnTopk, c.in_tensor(0), k, c.int_attr("dim", -1),
                             c.flag_attr("largest", true), c.flag_attr("sorted", true),
                             c.out_tensor(0), c.tensor(positions));
  return code == ACL_SUCCESS ? c.copy(c.out(1), positions) : code;
}

// Logits and targets [rows, classes] → loss per row, and the gradient of their sum.
aclError cross_entropy(TypeCall& c) {
  EXPECT(c, 2, 2);
  EXPECT_IN(c, 0, {-1, -1});
  int64_t rows = c.in(0).dims[0], classes = c.in(0).dims[1];
  EXPECT_IN(c, 1, {rows, classes});
  EXPECT_OUT(c, 1, {rows, classes});
  if (count_of(c.out(0).dims) != rows) return c.refuse("the loss needs one value per row");
  return on_floats(c, {0, 1}, {0, 1}, [=](const auto& from, const auto& to) {
    for (int64_t r = 0; r < rows && classes; ++r) {
      const float *x = from[0] + r * classes, *target = from[1] + r * classes;
      double top = *std::max_element(x, x + classes), sum = 0, loss = 0;
      for (int64_t k = 0; k < classes; ++k) sum += std::exp(x[k] - top);
      double base = top + std::log(sum);
      for (int64_t k = 0; k < classes; ++k) {
        loss += target[k] ? target[k] * (base - x[k]) : 0;
        to[1][r * classes + k] = static_cast<float>(std::exp(x[k] - base) - target[k]);
      }
      to[0][r] = static_cast<float>(loss);
    }
    return ACL_SUCCESS;
  });
}

// var, m, v, powers of both betas, rate, both betas, epsilon, gradient → var, m, v (Kingma and Ba,
// ICLR 2015, with the bias's correction in the rate).
aclError adam(TypeCall& c) {
  EXPECT(c, 10, 3);
  int64_t n = count_of(c.in(0).dims);
  for (size_t i : {1, 2, 9}) {
    if (count_of(c.in(i).dims) != n) return c.refuse("input %zu has another size than var", i);
  }
  for (size_t i = 0; i < 3; ++i) {
    if (count_of(c.out(i).dims) != n) return c.refuse("output %zu has another size than var", i);
  }
  double rule[6];
  for (size_t i = 0; i < 6; ++i) rule[i] = c.number(i + 3);
  double rate = rule[2] * std::sqrt(1 - rule[1]) / (1 - rule[0]);
  double beta1 = rule[3], beta2 = rule[4], epsilon = rule[5];
  bool nesterov = c.flag_attr("use_nesterov", false);
  return on_floats(c, {0, 1, 2, 9}, {0, 1, 2}, [=](const auto& from, const auto& to) {
    for (int64_t i = 0; i < n; ++i) {
      double grad = from[3][i], m = beta1 * from[1][i] + (1 - beta1) * grad;
      double v = beta2 * from[2][i] + (1 - beta2) * grad * grad;
      double step = nesterov ? beta1 * m + (1 - beta1) * grad : m;
      to[0][i] = static_cast<float>(from[0][i] - rate * step / (std::sqrt(v) + epsilon));
      to[1][i] = static_cast<float>(m);
      to[2][i] = static_cast<float>(v);
    }
    return ACL_SUCCESS;
  });
}

// var, m, v, rate, both betas, epsilon, gradient, greatest norm, norm, weight decay → var, m, v, as
// BERT is trained: no correction of bias, and decay added to the step (Devlin et al., 2019).
aclError bert_adam(TypeCall& c) {
  EXPECT(c, 11, 3);
  int64_t n = count_of(c.in(0).dims);
  for (size_t i : {1, 2, 7}) {
    if (count_of(c.in(i).dims) != n) return c.refuse("input %zu has another size than var", i);
  }
  for (size_t i = 0; i < 3; ++i) {
    if (count_of(c.out(i).dims) != n) return c.refuse("output %zu has another size than var", i);
  }
  if (c.text_attr("adam_mode", "adam") != "adam") return c.refuse("adam_mode is not adam");
  if (c.number(8) > 0) return c.refuse("bounding the gradient's norm is not simulated");
  double rate = c.number(3), beta1 = c.number(4), beta2 = c.number(5), epsilon = c.number(6);
  double decay = c.number(10);
  return on_floats(c, {0, 1, 2, 7}, {0, 1, 2}, [=](const auto& from, const auto& to) {
    for (int64_t i = 0; i < n; ++i) {
      double grad = from[3][i], m = beta1 * from[1][i] + (1 - beta1) * grad;
      double v = beta2 * from[2][i] + (1 - beta2) * grad * grad;
      double step = m / (std::sqrt(v) + epsilon) + decay * from[0][i];
      to[0][i] = static_cast<float>(from[0][i] - rate * step);
      to[1][i] = static_cast<float>(m);
      to[2][i] = static_cast<float>(v);
    }
    return ACL_SUCCESS;
  });
}

}  // namespace

const TypeTable& elementwise_types() {
  static const auto* rows = new TypeTable{
      UNARY(Tan, aclnnTan), UNARY(Atan, aclnnAtan), UNARY(Asin, aclnnAsin), UNARY(Acos, aclnnAcos),
      UNARY(Sinh, aclnnSinh), UNARY(Cosh, aclnnCosh), UNARY(Asinh, aclnnAsinh),
      UNARY(Acosh, aclnnAcosh), UNARY(Atanh, aclnnAtanh), UNARY(Erfc, aclnnErfc),
      UNARY(Erfinv, aclnnErfinv), UNARY(Expm1, aclnnExpm1), UNARY(Log1p, aclnnLog1p),
      UNARY(Trunc, aclnnTrunc), UNARY(Round, aclnnRound), UNARY(LogicalNot, aclnnLogicalNot),
      UNARY(IsFinite, aclnnIsFinite), UNARY(HardSwish, aclnnHardswish), {"Square", square},
      BINARY(LogicalAnd, aclnnLogicalAnd, 0, 1), BINARY(LogicalOr, aclnnLogicalOr, 0, 1),
      BINARY(Pow, aclnnPowTensorTensor, 0, 1), BINARY(FloorMod, aclnnRemainderTensorTensor, 0, 1),
      BINARY(Mod, aclnnFmodTensor, 0, 1), BINARY(FloorDiv, aclnnFloorDivide, 0, 1),
      BINARY(Atan2, aclnnAtan2, 0, 1), BINARY(BitwiseXor, aclnnBitwiseXorTensor, 0, 1),
      BINARY(LogAddExp, aclnnLogAddExp, 0, 1), BINARY(TanhGrad, aclnnTanhBackward, 1, 0),
      BINARY(SigmoidGrad, aclnnSigmoidBackward, 1, 0), BINARY(SiluGrad, aclnnSiluBackward, 0, 1),
      BINARY(HardSwishGrad, aclnnHardswishBackward, 0, 1), {"ReluGrad", relu_grad},
      TERNARY(Select, aclnnSWhere), TERNARY(ClipByValueV2, aclnnClampTensor),
      TERNARY(ClipByValue, aclnnClampTensor), TRIANGLE(Tril, aclnnTril), TRIANGLE(Triu, aclnnTriu),
      {"SoftmaxGrad", softmax_grad}, {"LogSoftmaxGrad", log_softmax_grad},
      {"MaskedFill", masked_fill}, {"MaskedFillRange", masked_fill_range}, {"GatherV2", gather},
      {"GatherElements", gather_elements}, {"Cumsum", cumsum}, {"ReverseV2", reverse},
      {"Tile", tile}, {"Pack", pack}, {"TopKV2", top_k_v2},
      {"SoftmaxCrossEntropyWithLogits", cross_entropy}, {"ApplyAdamD", adam},
      {"ApplyAdamV2", bert_adam}};
  return *rows;
}

}  // namespace aclsim
