// Draws from seeds, and dropout by masks.
#include "op_compiler/rows.h"

#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_bernoulli.h>
#include <aclnnop/aclnn_dropout_do_mask.h>
#include <aclnnop/aclnn_mul.h>
#include <aclnnop/aclnn_normal.h>
#include <aclnnop/aclnn_randperm.h>
#include <aclnnop/aclnn_sign_bits_unpack.h>
#include <aclnnop/aclnn_softmax.h>
#include <aclnnop/aclnn_softmax_backward.h>
#include <aclnnop/aclnn_uniform.h>

namespace aclsim {
namespace {

// (shape, key, counter, algorithm) → as many draws: the key is the seed, the counter's last number
// how many were drawn before.
struct Place {
  int64_t seed, offset;
};
aclError place_of(TypeCall& c, Place* place) {
  EXPECT(c, 4, 1);
  const Dims key = c.ints(1), counter = c.ints(2);
  if (key.empty() || counter.empty()) return c.refuse("key and counter need a number each");
  if (c.ints(0) != c.out(0).dims) return c.refuse("the output has another shape than asked for");
  *place = {key[0], counter.back()};
  return ACL_SUCCESS;
}
aclError normal(TypeCall& c) {
  Place at;
  if (aclError code = place_of(c, &at)) return code;
  return ACLSIM_RUN(c, aclnnInplaceNormal, c.out_tensor(0), 0.0f, 1.0f, at.seed, at.offset);
}
aclError uniform(TypeCall& c) {
  Place at;
  if (aclError code = place_of(c, &at)) return code;
  return ACLSIM_RUN(c, aclnnInplaceUniform, c.out_tensor(0), 0.0, 1.0,
                    static_cast<uint64_t>(at.seed), static_cast<uint64_t>(at.offset));
}
// shape, probability of one (for all, or of each), seed, offset.
aclError bernoulli(TypeCall& c) {
  EXPECT(c, 4, 1);
  const Dims seed = c.ints(2), offset = c.ints(3);
  if (seed.empty() || offset.empty()) return c.refuse("seed and offset need a number each");
  if (count_of(c.in(1).dims) != 1) {
    return ACLSIM_RUN(c, aclnnBernoulliTensor, c.out_tensor(0), c.in_tensor(1), seed[0],
                      offset[0], c.out_tensor(0));
  }
  return ACLSIM_RUN(c, aclnnBernoulli, c.out_tensor(0), c.scalar(static_cast<float>(c.number(1))),
                    seed[0], offset[0], c.out_tensor(0));
}
aclError permutation(TypeCall& c) {
  EXPECT(c, 3, 1);
  const Dims n = c.ints(0), seed = c.ints(1), offset = c.ints(2);
  if (n.empty() || seed.empty() || offset.empty()) return c.refuse("each input needs a number");
  return ACLSIM_RUN(c, aclnnRandperm, n[0], seed[0], offset[0], c.out_tensor(0));
}

// x, a bit for each element, the share that stays.
aclError dropout_bits_apply(TypeCall& c) {
  EXPECT(c, 3, 1);
  return ACLSIM_RUN(c, aclnnDropoutDoMask, c.in_tensor(0), c.in_tensor(1), 1 - c.number(2),
                    c.out_tensor(0));
}

// Masks of these two have a byte for each element, and more up to whole 128 of them.
aclError expect_bytes(TypeCall& c, size_t mask, int64_t n) {
  if (c.in(mask).dtype == ACL_UINT8 && count_of(c.in(mask).dims) >= n) return ACL_SUCCESS;
  return c.refuse("the mask must have a byte for each element");
}
View bytes_as_values(TypeCall& c, const View& mask, const View& like) {
  View bytes = mask;
  bytes.dims = like.dims;
  bytes.strides = strides_of(bytes.dims);
  View values = c.room(like.dtype, like.dims);
  return c.copy(values, bytes) == ACL_SUCCESS ? values : View{};
}
// Where the mask is, x over the share that stays.
aclError drop(TypeCall& c, const View& to, const View& x, const View& mask, float keep) {
  View values = bytes_as_values(c, mask, x);
  if (!values.data && count_of(x.dims)) return c.refuse("the mask cannot be read");
  if (aclError code = ACLSIM_RUN(c, aclnnMul, c.tensor(x), c.tensor(values), c.tensor(to))) return code;
  return ACLSIM_RUN(c, aclnnMuls, c.tensor(to), c.scalar(1 / keep), c.tensor(to));
}
aclError expect_share(TypeCall& c, float keep) {
  if (keep > 0 && keep <= 1) return ACL_SUCCESS;
  return c.refuse("input_keep_prob is %g, not above 0 and at most 1", static_cast<double>(keep));
}
aclError one_axis(TypeCall& c, const char* name, int64_t* axis) {
  Dims axes = c.ints_attr(name, {-1});
  if (axes.size() != 1) return c.refuse("%s has %zu values, expected one", name, axes.size());
  *axis = axes[0];
  return ACL_SUCCESS;
}

// x, y, mask → softmax(x + alpha y), and the same after dropout (npu_dropout_with_add_softmax).
aclError add_softmax_dropout(TypeCall& c) {
  EXPECT(c, 3, 2);
  const float keep = c.float_attr("input_keep_prob", 1);
  int64_t axis;
  if (aclError code = one_axis(c, "axis", &axis)) return code;
  if (aclError code = expect_share(c, keep)) return code;
  if (aclError code = expect_bytes(c, 2, count_of(c.out(1).dims))) return code;
  View sum = c.room(c.in(0).dtype, c.out(0).dims);
  aclError code = ACLSIM_RUN(c, aclnnAdd, c.in_tensor(0), c.in_tensor(1),
                             c.scalar(c.float_attr("alpha", 1)), c.tensor(sum));
  if (code != ACL_SUCCESS) return code;
  code = ACLSIM_RUN(c, aclnnSoftmax, c.tensor(sum), axis, c.out_tensor(0));
  return code == ACL_SUCCESS ? drop(c, c.out(1), c.out(0), c.in(2), keep) : code;
}
// Its gradient with respect to y: upstream gradient, mask, softmax.
aclError add_softmax_dropout_grad(TypeCall& c) {
  EXPECT(c, 3, 1);
  const float keep = c.float_attr("input_keep_prob", 1);
  int64_t axis;
  if (aclError code = one_axis(c, "axes", &axis)) return code;
  if (aclError code = expect_share(c, keep)) return code;
  if (aclError code = expect_bytes(c, 1, count_of(c.in(0).dims))) return code;
  View kept = c.room(c.in(0).dtype, c.in(0).dims);
  if (aclError code = drop(c, kept, c.in(0), c.in(1), keep)) return code;
  aclError code = ACLSIM_RUN(c, aclnnSoftmaxBackward, c.tensor(kept), c.in_tensor(2), axis,
                             c.out_tensor(0));
  if (code != ACL_SUCCESS) return code;
  return ACLSIM_RUN(c, aclnnMuls, c.out_tensor(0), c.scalar(c.float_attr("alpha", 1)),
                    c.out_tensor(0));
}

aclError sign_bits_unpack(TypeCall& c) {
  EXPECT(c, 1, 1);
  return ACLSIM_RUN(c, aclnnSignBitsUnpack, c.in_tensor(0), c.int_attr("size", 1), c.out(0).dtype,
                    c.out_tensor(0));
}

}  // namespace

const TypeTable& draw_types() {
  static const auto* rows = new TypeTable{
      {"StatelessRandomNormalV2", normal}, {"StatelessRandomUniformV2", uniform},
      {"StatelessBernoulli", bernoulli}, {"StatelessRandperm", permutation},
      {"DropOutDoMask", dropout_bits_apply},
      {"AxpyWithSoftmaxAndDropOutDoMask", add_softmax_dropout},
      {"DropoutWithMulsAndSoftmaxGrad", add_softmax_dropout_grad},
      {"SignBitsUnpack", sign_bits_unpack}};
  return *rows;
}

}  // namespace aclsim
