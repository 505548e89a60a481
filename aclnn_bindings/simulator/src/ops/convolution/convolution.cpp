// Convolution and transposed convolution over one to three dims, and their gradients.
#include "params/convolution.h"
#include "loops/bfloat_gemm.h"
#include "loops/conv.h"
#include "loops/given.h"
#include "loops/stage.h"

namespace aclsim {
namespace {

// What a call computes, as a convolution from x to y; for a transposed one x is the result.
struct Plan {
  ConvShape shape;
  bool transposed;
};
// Attributes by position; kNone where an op has none.
struct Attributes {
  int stride, padding, dilation, output_padding;
};

aclnnStatus expect_images(const Call& c, int arg, int rank) {
  if (c.null(arg)) return ACLNN_SUCCESS;
  const Tensor& t = c.tensor(arg);
  const aclFormat expected = rank == 3   ? ACL_FORMAT_NCL
                             : rank == 4 ? ACL_FORMAT_NCHW
                                         : ACL_FORMAT_NCDHW;
  if (t.rank != rank || rank < 3 || rank > 5) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "%s should have 3 to 5 dims, as many as input, but its shape is %s.", c.name(arg),
                  shape_text(t));
  }
  if (t.format != expected) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "The format of %s is %d, but should be NCL, NCHW or NCDHW for 3, 4 or 5 dims.",
                  c.name(arg), static_cast<int>(t.format));
  }
  if (t.dtype != ACL_FLOAT && t.dtype != ACL_FLOAT16 && t.dtype != ACL_BF16) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s not implemented for %s by the simulator.",
                  c.name(arg), dtype_name(t.dtype));
  }
  return ACLNN_SUCCESS;
}
// An attribute of `dims` values, each at least `least`, into the last places of `to`.
aclnnStatus read_dims(const Call& c, int arg, int dims, int64_t least, int64_t* to) {
  const Span<const int64_t> given = c.ints(arg);
  bool fits = given.size == dims || given.size == 1;
  for (int i = 0; fits && i < dims; ++i) {
    to[3 - dims + i] = given[given.size == 1 ? 0 : i];
    fits = to[3 - dims + i] >= least;
  }
  if (fits) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have %d values of at least %lld.", c.name(arg),
                dims, static_cast<long long>(least));
}
// As read_dims; two dims may be padded by four values: top, bottom, left, right.
aclnnStatus read_padding(const Call& c, int arg, int dims, int64_t* before, int64_t* after) {
  const Span<const int64_t> given = c.ints(arg);
  if (dims == 2 && given.size == 4) {
    for (int i = 0; i < 2; ++i) {
      before[1 + i] = given[2 * i];
      after[1 + i] = given[2 * i + 1];
    }
    return ACLNN_SUCCESS;
  }
  ACL_RETURN_IF_FAILED(read_dims(c, arg, dims, 0, before));
  for (int i = 0; i < 3; ++i) after[i] = before[i];
  return ACLNN_SUCCESS;
}

// Shapes of (input, weight) and the attributes into a plan; `result` is the shape of the output.
aclnnStatus plan_of(Call& c, int input, int weight, const Attributes& at, bool transposed,
                    int64_t groups, Shape& result) {
  const Tensor &in = c.tensor(input), &w = c.tensor(weight);
  for (int arg : {input, weight}) ACL_RETURN_IF_FAILED(expect_images(c, arg, in.rank));
  const int dims = in.rank - 2;
  Plan& p = c.make<Plan>();
  ConvShape& s = p.shape;
  p.transposed = transposed;
  int64_t after[3] = {}, extra[3] = {};
  for (int i = 0; i < 3; ++i) s.in[i] = s.out[i] = s.kernel[i] = s.stride[i] = s.dilation[i] = 1;
  ACL_RETURN_IF_FAILED(read_dims(c, at.stride, dims, 1, s.stride));
  ACL_RETURN_IF_FAILED(read_padding(c, at.padding, dims, s.pad, after));
  ACL_RETURN_IF_FAILED(read_dims(c, at.dilation, dims, 1, s.dilation));
  if (transposed) ACL_RETURN_IF_FAILED(read_dims(c, at.output_padding, dims, 0, extra));
  const int64_t channels = in.dims[1], per_group = w.dims[1];
  const bool fits =
      groups > 0 && (transposed ? channels == w.dims[0] && w.dims[0] % groups == 0
                                : channels == per_group * groups && w.dims[0] % groups == 0);
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "%lld groups, input of shape %s and weight of shape %s don't fit: expected the "
                  "input's channels to be weight's dim %d%s.",
                  static_cast<long long>(groups), shape_text(in), shape_text(w), transposed ? 0 : 1,
                  transposed ? "" : " times groups");
  }
  s.n = in.dims[0];
  s.groups = groups;
  s.in_channels = per_group;
  s.out_channels = w.dims[0] / groups;
  result.rank = in.rank;
  result.dims[0] = s.n;
  result.dims[1] = transposed ? per_group * groups : w.dims[0];
  for (int i = 3 - dims; i < 3; ++i) {
    const int64_t size = in.dims[i + dims - 1], kernel = w.dims[i + dims - 1];
    const int64_t reach = s.dilation[i] * (kernel - 1) + 1, padding = s.pad[i] + after[i];
    const int64_t made = transposed ? (size - 1) * s.stride[i] - padding + reach + extra[i]
                                    : (size + padding - reach) / s.stride[i] + 1;
    if (kernel < 1 || made < 0 || (!transposed && size + padding < reach)) {
      return c.fail(ACLNN_ERR_PARAM_INVALID,
                    "The kernel %s does not fit into the padded input of shape %s.", shape_text(w),
                    shape_text(in));
    }
    s.kernel[i] = kernel;
    s.in[i] = transposed ? made : size;
    s.out[i] = transposed ? size : made;
    result.dims[i + dims - 1] = made;
  }
  return ACLNN_SUCCESS;
}
// Whether tensors are multiplied as they stand: bfloat16, by rows that fill the processor's tiles.
bool reads_bfloat(const Call& c, const ConvShape& s, std::initializer_list<int> args) {
  constexpr int64_t kFew = 4;
  bool all = multiplies_bfloat() && s.out_channels >= kFew;
  for (int arg : args) all = all && c.tensor(arg).dtype == ACL_BF16;
  return all;
}

aclnnStatus check_convolution(Call& c) {
  using P = params::Convolution;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::input, P::weight, P::stride, P::padding, P::dilation, P::output}));
  Shape result;
  ACL_RETURN_IF_FAILED(plan_of(c, P::input, P::weight, {3, 4, 5, 7}, c.flag(P::transposed),
                               c.integer(P::groups), result));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::bias, result.dims[1]));
  ACL_RETURN_IF_FAILED(expect_images(c, P::output, result.rank));
  c.workspace_size = stage_bytes(c, ACL_FLOAT);
  return expect_shape(c, P::output, result);
}
aclnnStatus check_depthwise(Call& c) {
  using P = params::ConvDepthwise2d;

  ACL_RETURN_IF_FAILED(expect_given(
      c, {P::self, P::weight, P::kernelSize, P::stride, P::padding, P::dilation, P::out}));
  Shape result;
  const int64_t channels = c.tensor(P::self).rank == 4 ? c.tensor(P::self).dims[1] : 1;
  ACL_RETURN_IF_FAILED(plan_of(c, P::self, P::weight, {4, 5, 6, kNone}, false, channels, result));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::bias, result.dims[1]));
  c.workspace_size = stage_bytes(c, ACL_FLOAT);
  return expect_shape(c, P::out, result);
}
template <class From, int Bias, int Out>
void convolve_as(Call& c) {
  using P = params::Convolution;

  const Plan& p = c.get<Plan>();
  Stage<float> stage(c);
  const From *x = stage.in<From>(c.tensor(P::input)), *w = stage.in<From>(c.tensor(P::weight));
  const float* bias = stage.in(c.maybe(Bias));
  float* y = stage.out(c.tensor(Out));
  if (p.transposed) {
    conv_input_grad(p.shape, y, x, w, bias);
  } else {
    conv_forward(p.shape, y, x, w, bias);
  }
  stage.done();
}
template <int Bias, int Out>
void run_convolution(Call& c) {
  using P = params::Convolution;

  if (c.tensor(Out).numel() == 0) return;
  const bool as_is = reads_bfloat(c, c.get<Plan>().shape, {P::input, P::weight});
  as_is ? convolve_as<bfloat, Bias, Out>(c) : convolve_as<float, Bias, Out>(c);
}

template <class From>
ACL_VECTOR double total(const From* x, int64_t n) {
  return lane_sum<float>(n, [=](int64_t i) ACL_LAMBDA { return Convert<float>::of(x[i]); });
}
template <class From>
void bias_grad(float* gb, const From* g, int64_t n, int64_t channels, int64_t space) {
  parallel_for(channels, std::max<int64_t>(1, 32768 / (n * space + 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   double sum = 0;
                   for (int64_t i = 0; i < n; ++i)
                     sum += total(g + (i * channels + k) * space, space);
                   gb[k] = static_cast<float>(sum);
                 }
               });
}
template <class From>
void run_gradients(const Plan& p, float* gx, float* gw, float* gb, const From* g, const From* x,
                   const From* w) {
  const ConvShape& s = p.shape;
  if (gb) {
    const int64_t channels = s.groups * (p.transposed ? s.in_channels : s.out_channels);
    bias_grad(gb, g, s.n, channels, p.transposed ? s.in_space() : s.out_space());
  }
  if (p.transposed) {
    if (gx) conv_forward(s, gx, g, w, nullptr);
    if (gw) conv_weight_grad(s, gw, x, g);
  } else {
    if (gx) conv_input_grad(s, gx, g, w, nullptr);
    if (gw) conv_weight_grad(s, gw, g, x);
  }
}

aclnnStatus check_gradients(Call& c) {
  using P = params::ConvolutionBackward;

  ACL_RETURN_IF_FAILED(expect_given(
      c, {P::gradOutput, P::input, P::weight, P::stride, P::padding, P::dilation, P::outputMask}));
  Shape result;
  ACL_RETURN_IF_FAILED(plan_of(c, P::input, P::weight, {4, 5, 6, 8}, c.flag(P::transposed),
                               c.integer(P::groups), result));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::gradOutput, result));
  ACL_RETURN_IF_FAILED(expect_masked(c, P::outputMask, 3, P::gradInput));
  if (masked(c, P::outputMask, 0, P::gradInput))
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradInput, P::input));
  if (masked(c, P::outputMask, 1, P::gradWeight))
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradWeight, P::weight));
  if (masked(c, P::outputMask, 2, P::gradBias))
    ACL_RETURN_IF_FAILED(expect_numel(c, P::gradBias, result.dims[1]));
  c.workspace_size = stage_bytes(c, ACL_FLOAT);
  return ACLNN_SUCCESS;
}
template <class From>
void gradients_as(Call& c) {
  using P = params::ConvolutionBackward;

  const Plan& p = c.get<Plan>();
  Stage<float> stage(c);
  const From *g = stage.in<From>(c.tensor(P::gradOutput)), *x = stage.in<From>(c.tensor(P::input)),
             *w = stage.in<From>(c.tensor(P::weight));
  float *gx = stage.out(masked(c, P::outputMask, 0, P::gradInput)),
        *gw = stage.out(masked(c, P::outputMask, 1, P::gradWeight)),
        *gb = stage.out(masked(c, P::outputMask, 2, P::gradBias));
  run_gradients(p, gx, gw, gb, g, x, w);
  stage.done();
}
void run_gradients_op(Call& c) {
  using P = params::ConvolutionBackward;

  const bool as_is = reads_bfloat(c, c.get<Plan>().shape, {P::gradOutput, P::input, P::weight});
  as_is ? gradients_as<bfloat>(c) : gradients_as<float>(c);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP_FLAGS(aclnnConvolution, check_convolution,
               (run_convolution<params::Convolution::bias, params::Convolution::output>), kOwnNulls)
ACLNN_OP_FLAGS(aclnnConvDepthwise2d, check_depthwise,
               (run_convolution<params::ConvDepthwise2d::bias, params::ConvDepthwise2d::out>),
               kOwnNulls)
ACLNN_OP_FLAGS(aclnnConvolutionBackward, check_gradients, run_gradients_op, kOwnNulls)
