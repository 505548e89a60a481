// Negative log likelihood over classes, per sample or per pixel, and its gradient.
#include "params/loss.h"
#include "loops/indices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

constexpr int64_t kMean = 1;

// self is [C], [N, C] or [N, C, H, W]; target is self without the class axis.
int class_axis(const Tensor& self) { return self.rank <= 1 ? 0 : 1; }
Shape target_shape(const Tensor& self) {
  Shape s;
  for (int i = 0; i < self.rank; ++i) {
    if (i != class_axis(self)) s.dims[s.rank++] = self.dims[i];
  }
  return s;
}

aclnnStatus check_shapes(const Call& c, int self_arg, int rank) {
  const Tensor &self = c.tensor(self_arg), &target = c.tensor(self_arg + 1);
  if (self.rank != rank && !(rank == 2 && self.rank == 1)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self should have %d dims, but its shape is %s.", rank,
                  shape_text(self));
  }
  const Tensor* weight = c.maybe(self_arg + 2);
  if (weight && weight->numel() != self.dims[class_axis(self)]) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "weight should have %lld elements, its shape is %s.",
                  static_cast<long long>(self.dims[class_axis(self)]), shape_text(*weight));
  }
  if (self.rank == 1 && target.numel() == 1 && target.rank == 1) return ACLNN_SUCCESS;
  return expect_shape(c, self_arg + 1, target_shape(self));
}

template <class C>
C weight_of(const Tensor* weight, int64_t k) {
  return weight ? load_one<C>(weight->data, weight->dtype, weight->offset + k * weight->strides[0])
                : C(1);
}

// f(sample walker, class or -1 where ignored) for every target element, in order.
template <class F>
aclError each_target(const Call& c, int self_arg, int64_t ignore, F f) {
  const Tensor& self = c.tensor(self_arg);
  Tensor target = c.tensor(self_arg + 1);
  const Shape s = target_shape(self);
  if (self.rank == 1) target.rank = 0;
  const int64_t classes = self.dims[class_axis(self)];
  int64_t n = 1;
  for (int i = 0; i < s.rank; ++i) n *= s.dims[i];
  Walker at(s.rank, s.dims);
  for (int64_t i = 0; i < n; ++i, at.next()) {
    const int64_t k =
        load_one<int64_t>(target.data, target.dtype, target.offset + at.offset(target.strides));
    if (k != ignore && (k < 0 || k >= classes)) {
      return c.trap(507015, "target %lld is out of range for %lld classes",
                    static_cast<long long>(k), static_cast<long long>(classes));
    }
    f(at, k == ignore ? int64_t{-1} : k);
  }
  return ACL_SUCCESS;
}
// Element offset of class k at a sample's place.
int64_t place(const Tensor& t, const Walker& at, int64_t k) {
  const int axis = class_axis(t);
  int64_t offset = t.offset + k * t.strides[axis];
  for (int i = 0, from = 0; i < t.rank; ++i) {
    if (i != axis) offset += at.index[from++] * t.strides[i];
  }
  return offset;
}

template <int Rank>
aclnnStatus check_nll(Call& c) {
  using P = params::NLLLoss;

  ACL_RETURN_IF_FAILED(check_shapes(c, P::self, Rank));
  if (c.tensor(P::totalWeightOut).numel() != 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "totalWeightOut should have 1 element.");
  }
  if (c.integer(P::reduction) == 0 && c.tensor(P::self).rank > 1)
    return expect_shape(c, P::out, target_shape(c.tensor(P::self)));
  if (c.tensor(P::out).numel() == 1) return ACLNN_SUCCESS;
  return expect_shape(c, P::out, Shape{});
}
template <class C>
aclError nll(Call& c) {
  using P = params::NLLLoss;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out),
               &total = c.tensor(P::totalWeightOut);
  const bool each = c.integer(P::reduction) == 0 && self.rank > 1;
  double sum = 0, weights = 0;
  const aclError error =
      each_target(c, P::self, c.integer(P::ignoreIndex), [&](const Walker& at, int64_t k) {
        const C w = k < 0 ? C(0) : weight_of<C>(c.maybe(P::weight), k);
        const C x = k < 0 ? C(0) : load_one<C>(self.data, self.dtype, place(self, at, k));
        const C loss = k < 0 ? C(0) : -w * x;
        if (each) store_one(loss, out.data, out.dtype, out.offset + at.offset(out.strides));
        sum += loss;
        weights += w;
      });
  if (error) return error;
  if (!each)
    store_one(c.integer(P::reduction) == kMean ? sum / weights : sum, out.data, out.dtype,
              out.offset);
  // Nothing is totalled where nothing is reduced.
  store_one(each ? 0.0 : weights, total.data, total.dtype, total.offset);
  return ACL_SUCCESS;
}
aclError run_nll(Call& c) {
  using P = params::NLLLoss;

  aclError error = ACL_SUCCESS;
  with_float(c.tensor(P::self).dtype,
             [&](auto tag) { error = nll<typename decltype(tag)::type>(c); });
  return error;
}

template <int Rank>
aclnnStatus check_nll_grad(Call& c) {
  using P = params::NLLLossBackward;

  ACL_RETURN_IF_FAILED(check_shapes(c, P::self, Rank));
  const Tensor& grad = c.tensor(P::gradOutput);
  if (c.integer(P::reduction) == 0 && c.tensor(P::self).rank > 1) {
    ACL_RETURN_IF_FAILED(expect_shape(c, P::gradOutput, target_shape(c.tensor(P::self))));
  } else if (grad.numel() != 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "gradOutput should have 1 element, its shape is %s.",
                  shape_text(grad));
  }
  return expect_same_shape(c, P::out, P::self);
}
template <class C>
aclError nll_grad(Call& c) {
  using P = params::NLLLossBackward;

  const Tensor &grad = c.tensor(P::gradOutput), &total = c.tensor(P::totalWeight),
               &out = c.tensor(P::out);
  const bool each = c.integer(P::reduction) == 0 && c.tensor(P::self).rank > 1;
  fill_tensor(out, Scalar{ACL_INT64, {}});
  C share = 1;
  if (c.integer(P::reduction) == kMean)
    share = C(1) / load_one<C>(total.data, total.dtype, total.offset);
  return each_target(c, P::self, c.integer(P::ignoreIndex), [&](const Walker& at, int64_t k) {
    if (k < 0) return;
    const int64_t from = grad.offset + (each ? at.offset(grad.strides) : 0);
    const C g = load_one<C>(grad.data, grad.dtype, from) * share;
    store_one(-weight_of<C>(c.maybe(P::weight), k) * g, out.data, out.dtype, place(out, at, k));
  });
}
aclError run_nll_grad(Call& c) {
  using P = params::NLLLossBackward;

  aclError error = ACL_SUCCESS;
  with_float(c.tensor(P::self).dtype,
             [&](auto tag) { error = nll_grad<typename decltype(tag)::type>(c); });
  return error;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnNLLLoss, check_nll<2>, run_nll)
ACLNN_OP(aclnnNLLLossBackward, check_nll_grad<2>, run_nll_grad)
ACLNN_OP(aclnnNLLLoss2d, check_nll<4>, run_nll)
ACLNN_OP(aclnnNLLLoss2dBackward, check_nll_grad<4>, run_nll_grad)
