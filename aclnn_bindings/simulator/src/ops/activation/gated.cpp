// Gated units: halves of one axis, one of them through an activation; and PReLU.
#include "params/activation.h"
#include "loops/pointwise.h"
#include "loops/reduce.h"
#include "loops/rows.h"

namespace aclsim {

template <class T>
ACL_INLINE T gelu_tanh(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + v_tanh(inner));
}
template <class T>
ACL_INLINE T silu_slope(T x) {
  const T s = v_sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}
ACL_FN(GluFn, FloatingReal, (T a, T b), a * v_sigmoid(b))
ACL_FN(GluGradA, FloatingReal, (T g, T, T b), g * v_sigmoid(b))
ACL_FN(GluGradB, FloatingReal, (T g, T a, T b), g * a * v_sigmoid(b) * (T(1) - v_sigmoid(b)))
ACL_FN(SwiGluFn, FloatingReal, (T a, T b), a * v_sigmoid(a) * b)
ACL_FN(SwiGluGradA, FloatingReal, (T g, T a, T b), g * b * silu_slope(a))
ACL_FN(SwiGluGradB, FloatingReal, (T g, T a, T), g * a * v_sigmoid(a))
ACL_FN(GeluExact, FloatingReal, (T b), b * v_phi(b))
ACL_FN(GeluTanhFn, FloatingReal, (T b), gelu_tanh(b))
ACL_FN(Product, FloatingReal, (T a, T b), a * b)
template <class T>
ACL_INLINE T gelu_slope(T x) {
  return v_phi(x) + x * T(0.39894228040143267794) * v_exp(T(-0.5) * x * x);
}
template <class T>
ACL_INLINE T gelu_tanh_slope(T x) {
  const T t = v_tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x));
  const T inner = T(0.79788456080286535588) * (T(1) + T(0.134145) * x * x);
  return T(0.5) * (T(1) + t + x * (T(1) - t * t) * inner);
}
ACL_FN(GeluGradOf, FloatingReal, (T g, T other, T x), g * other * gelu_slope(x))
ACL_FN(GeluTanhGradOf, FloatingReal, (T g, T other, T x), g * other * gelu_tanh_slope(x))
ACL_FN(GeluTimes, FloatingReal, (T a, T b), GeluExact::f(a) * b)
ACL_FN(GeluTanhTimes, FloatingReal, (T a, T b), gelu_tanh(a) * b)
ACL_FN(FatreluTimes, FloatingReal, (T a, T b, T threshold), a > threshold ? a * b : T(0))
ACL_FN(PreluValue, FloatingReal, (T x, T w), x > T(0) ? x : w * x)
ACL_FN(PreluGradX, FloatingReal, (T g, T x, T w), x > T(0) ? g : w * g)
ACL_FN(PreluGradW, FloatingReal, (T g, T x), x > T(0) ? T(0) : g * x)

namespace {

int axis_of(const Call& c) { return static_cast<int>(c.get<int64_t>()); }
// The axis of argument `dim`, which self must have an even number of.
aclnnStatus read_axis(Call& c, int self, int dim) {
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(dim);
  const Tensor& t = c.tensor(self);
  ACL_RETURN_IF_FAILED(expect_axis(c, dim, axis, t.rank));
  if (t.rank > 0 && t.dims[axis] % 2 == 0) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have an even size along dim, but is %s.",
                c.name(self), shape_text(t));
}
aclnnStatus expect_half(const Call& c, int half, int self) {
  Shape shape = shape_of(c.tensor(self));
  shape.dims[axis_of(c)] /= 2;
  return expect_shape(c, half, shape);
}
Tensor half_of(const Tensor& t, int axis, bool second) {
  Tensor v = t;
  v.dims[axis] /= 2;
  if (second) v.offset += v.dims[axis] * t.strides[axis];
  return v;
}

// out = Fn(inputs...) over tensors of one shape.
template <class Fn, class... T>
void apply(const Tensor& out, const T&... inputs) {
  Loop loop = loop_over(out);
  (loop.add(inputs), ...);
  loop.coalesce();
  static constexpr Bodies bodies = bodies_of<Fn, sizeof...(T)>();
  const bool wide = out.dtype == ACL_DOUBLE || (... || (inputs.dtype == ACL_DOUBLE));
  run_bodies(loop, wide ? ACL_DOUBLE : ACL_FLOAT, bodies);
}

aclnnStatus check_glu(Call& c) {
  using P = params::Glu;

  ACL_RETURN_IF_FAILED(read_axis(c, P::self, P::dim));
  return expect_half(c, P::out, P::self);
}
template <class Fn>
void run_glu(Call& c) {
  using P = params::Glu;

  const Tensor& self = c.tensor(P::self);
  apply<Fn>(c.tensor(P::out), half_of(self, axis_of(c), false), half_of(self, axis_of(c), true));
}
aclnnStatus check_glu_grad(Call& c) {
  using P = params::SwiGluGrad;

  ACL_RETURN_IF_FAILED(read_axis(c, P::x, P::dim));
  ACL_RETURN_IF_FAILED(expect_half(c, P::yGrad, P::x));
  return expect_same_shape(c, P::out, P::x);
}
template <class A, class B>
void run_glu_grad(Call& c) {
  using P = params::SwiGluGrad;

  const Tensor &grad = c.tensor(P::yGrad), &self = c.tensor(P::x), &out = c.tensor(P::out);
  const int axis = axis_of(c);
  const Tensor a = half_of(self, axis, false), b = half_of(self, axis, true);
  apply<A>(half_of(out, axis, false), grad, a, b);
  apply<B>(half_of(out, axis, true), grad, a, b);
}

// (self, dim, approximate, [activateLeft,] out, outGelu): gelu of the second half unless told
// otherwise, times the other. approximate 1 is the tanh form.
template <int Out>
aclnnStatus check_geglu(Call& c) {
  using P = params::GeGlu;

  ACL_RETURN_IF_FAILED(read_axis(c, P::self, P::dim));
  ACL_RETURN_IF_FAILED(expect_half(c, Out, P::self));
  return expect_half(c, Out + 1, P::self);
}
template <int Out>
void run_geglu(Call& c) {
  using P = params::GeGluV3;

  const bool left = Out == 4 && c.flag(P::activateLeft);
  const Tensor &self = c.tensor(P::self), &gelu = c.tensor(Out + 1);
  const Tensor active = half_of(self, axis_of(c), !left), other = half_of(self, axis_of(c), left);
  if (c.integer(P::approximate) == 1) {
    apply<GeluTanhFn>(gelu, active);
  } else {
    apply<GeluExact>(gelu, active);
  }
  apply<Product>(c.tensor(Out), other, gelu);
}

template <int Out>
aclnnStatus check_geglu_grad(Call& c) {
  using P = params::GeGluBackward;

  ACL_RETURN_IF_FAILED(read_axis(c, P::self, P::dim));
  ACL_RETURN_IF_FAILED(expect_half(c, P::gradOutput, P::self));
  ACL_RETURN_IF_FAILED(expect_half(c, P::gelu, P::self));
  return expect_same_shape(c, Out, P::self);
}
template <int Out>
void run_geglu_grad(Call& c) {
  using P = params::GeGluV3Backward;

  const bool left = Out == 6 && c.flag(P::activateLeft);
  const Tensor &grad = c.tensor(P::gradOutput), &self = c.tensor(P::self), &out = c.tensor(Out);
  const int axis = axis_of(c);
  const Tensor active = half_of(self, axis, !left), other = half_of(self, axis, left);
  apply<Product>(half_of(out, axis, left), grad, c.tensor(P::gelu));
  if (c.integer(P::approximate) == 1) {
    apply<GeluTanhGradOf>(half_of(out, axis, !left), grad, other, active);
  } else {
    apply<GeluGradOf>(half_of(out, axis, !left), grad, other, active);
  }
}

// (input, approximate or threshold, out): the first half of the last dim, activated, times the
// second.
aclnnStatus check_times(Call& c) {
  using P = params::FatreluMul;

  int64_t& axis = c.make<int64_t>();
  axis = c.tensor(P::input).rank - 1;
  if (axis < 0) return c.fail(ACLNN_ERR_PARAM_INVALID, "input should have at least 1 dim.");
  const bool number = c.args[P::threshold].kind == ArgKind::Tensor;
  if (number && c.tensor(P::threshold).numel() != 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have 1 element.", c.name(P::threshold));
  }
  return expect_half(c, P::out, P::input);
}
void run_gelu_mul(Call& c) {
  using P = params::GeluMul;

  const Tensor& self = c.tensor(P::input);
  const Tensor a = half_of(self, axis_of(c), false), b = half_of(self, axis_of(c), true);
  if (c.text(P::approximateOptional) && c.text(P::approximateOptional)[0] == 't') {
    apply<GeluTanhTimes>(c.tensor(P::out), a, b);
  } else {
    apply<GeluTimes>(c.tensor(P::out), a, b);
  }
}
void run_fatrelu_mul(Call& c) {
  using P = params::FatreluMul;

  const Tensor& self = c.tensor(P::input);
  Tensor threshold = c.tensor(P::threshold);
  threshold.rank = 0;
  apply<FatreluTimes>(c.tensor(P::out), half_of(self, axis_of(c), false),
                      half_of(self, axis_of(c), true), threshold);
}

// The dim along which a weight lies, or -1: it has one element, or more than one such dim.
int long_dim(const Tensor& weight) {
  int dim = -1;
  for (int i = 0; i < weight.rank; ++i) {
    if (weight.dims[i] != 1 && dim >= 0) return -1;
    if (weight.dims[i] != 1) dim = i;
  }
  return dim;
}
// One weight for all channels, or one each along dim 1.
Tensor weight_view(const Tensor& weight, const Tensor& self) {
  Tensor w = weight;
  const int64_t step = long_dim(weight) >= 0 ? weight.strides[long_dim(weight)] : 1;
  w.rank = self.rank;
  for (int i = 0; i < self.rank; ++i) {
    w.dims[i] = i == 1 ? weight.numel() : 1;
    w.strides[i] = i == 1 ? step : 0;
  }
  if (self.rank < 2) w.rank = 0;
  return w;
}
aclnnStatus check_weight(const Call& c, int weight, int self) {
  const int64_t n = c.tensor(weight).numel();
  const Tensor& t = c.tensor(self);
  // Clients give it as it broadcasts, too: [1, channels, 1, 1].
  const bool listed = long_dim(c.tensor(weight)) >= 0 && t.rank >= 2 && n == t.dims[1];
  if (n == 1 || listed) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "weight should have 1 element or one per channel, not %s.",
                shape_text(c.tensor(weight)));
}
aclnnStatus check_prelu(Call& c) {
  using P = params::Prelu;

  ACL_RETURN_IF_FAILED(check_weight(c, P::weight, P::self));
  return expect_same_shape(c, P::out, P::self);
}
void run_prelu(Call& c) {
  using P = params::Prelu;

  apply<PreluValue>(c.tensor(P::out), c.tensor(P::self),
                    weight_view(c.tensor(P::weight), c.tensor(P::self)));
}
aclnnStatus check_prelu_grad(Call& c) {
  using P = params::PreluBackward;

  ACL_RETURN_IF_FAILED(check_weight(c, P::weight, P::self));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradOutput, P::self));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradInput, P::self));
  c.workspace_size = c.tensor(P::self).numel() * 8;
  return expect_same_shape(c, P::gradWeight, P::weight);
}
void run_prelu_grad(Call& c) {
  using P = params::PreluBackward;

  const Tensor &grad = c.tensor(P::gradOutput), &self = c.tensor(P::self),
               &out = c.tensor(P::gradWeight);
  apply<PreluGradX>(c.tensor(P::gradInput), grad, self, weight_view(c.tensor(P::weight), self));
  const aclDataType wide = self.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  const Tensor each = dense(c.workspace, wide, self.dims, self.rank);
  apply<PreluGradW>(each, grad, self);
  const uint32_t all = (1u << self.rank) - 1;
  Tensor sum = weight_view(out, self);
  reduce_tensor(sum, each, out.numel() != 1 ? all & ~2u : all, wide, reducers_of<SumOf>());
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnGlu, check_glu, run_glu<GluFn>)
ACLNN_OP(aclnnGluBackward, check_glu_grad, (run_glu_grad<GluGradA, GluGradB>))
ACLNN_OP(aclnnSwiGlu, check_glu, run_glu<SwiGluFn>)
ACLNN_OP(aclnnSwiGluGrad, check_glu_grad, (run_glu_grad<SwiGluGradA, SwiGluGradB>))
ACLNN_OP(aclnnGeGlu, check_geglu<params::GeGlu::out>, run_geglu<params::GeGlu::out>)
ACLNN_OP(aclnnGeGluV3, check_geglu<params::GeGluV3::out>, run_geglu<params::GeGluV3::out>)
ACLNN_OP(aclnnGeGluBackward, check_geglu_grad<params::GeGluBackward::gradInput>,
         run_geglu_grad<params::GeGluBackward::gradInput>)
ACLNN_OP(aclnnGeGluV3Backward, check_geglu_grad<params::GeGluV3Backward::gradInput>,
         run_geglu_grad<params::GeGluV3Backward::gradInput>)
ACLNN_OP(aclnnGeluMul, check_times, run_gelu_mul)
ACLNN_OP(aclnnFatreluMul, check_times, run_fatrelu_mul)
ACLNN_OP(aclnnPrelu, check_prelu, run_prelu)
ACLNN_OP(aclnnPreluBackward, check_prelu_grad, run_prelu_grad)
