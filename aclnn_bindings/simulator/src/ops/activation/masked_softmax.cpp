// Softmax of scaled scores under a mask, and its gradient.
#include "params/activation.h"
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// Elements of `t` spread over the dims of `like`; broadcast by phase 1.
Numbers spread(const Tensor& t, const Tensor& like) {
  Numbers x(static_cast<size_t>(like.numel()));
  if (!x.empty()) copy_tensor(dense(x.data(), ACL_DOUBLE, like.dims, like.rank), t);
  return x;
}
aclnnStatus expect_spread(const Call& c, int arg, int over) {
  if (c.null(arg)) return ACLNN_SUCCESS;
  Shape shape = shape_of(c.tensor(over));
  const bool fits = broadcast(shape, c.tensor(arg));
  if (fits && expect_shape(c, over, shape) == ACLNN_SUCCESS) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s can't broadcast to %s of %s.",
                shape_text(c.tensor(arg)), c.name(arg), shape_text(c.tensor(over)), c.name(over));
}

// (x, mask, scale, fixedTriuMask, y): Megatron's: masked places hold -10000 before the softmax. With
// fixedTriuMask the mask is what lies above the diagonal.
bool masked_at(const Call& c, const Numbers& mask, int flag, size_t i, int64_t width, int64_t height) {
  if (!c.flag(flag)) return mask[i] != 0;
  const auto row = static_cast<int64_t>(i) / width % height;
  return static_cast<int64_t>(i) % width > row;
}
template <int X, int Y>
aclnnStatus check_masked_softmax(Call& c) {
  using P = params::ScaledMaskedSoftmax;

  ACL_RETURN_IF_FAILED(expect_rank(c, X, 2, kMaxRank));
  for (int i : std::initializer_list<int>{P::x, Y})
    ACL_RETURN_IF_FAILED(expect_same_shape(c, i, X));
  return c.flag(X + 3) ? ACLNN_SUCCESS : expect_spread(c, X + 1, X);
}
void run_masked_softmax(Call& c) {
  using P = params::ScaledMaskedSoftmax;

  const Tensor& t = c.tensor(P::x);
  const int64_t width = t.dims[t.rank - 1], height = t.dims[t.rank - 2];
  Numbers x = numbers(t),
          mask = c.flag(P::fixedTriuMask) ? Numbers() : spread(c.tensor(P::mask), t);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] =
        masked_at(c, mask, P::fixedTriuMask, i, width, height) ? -10000 : x[i] * c.number(P::scale);
  }
  for (int64_t r = 0; width && r < static_cast<int64_t>(x.size()) / width; ++r) {
    softmax_row(x.data() + r * width, width);
  }
  put(c.tensor(P::y), x);
}
void run_masked_softmax_grad(Call& c) {
  using P = params::ScaledMaskedSoftmaxBackward;

  const Tensor& t = c.tensor(P::y);
  const int64_t width = t.dims[t.rank - 1], height = t.dims[t.rank - 2];
  Numbers g = numbers(c.tensor(P::gradOutput)), y = numbers(t);
  const Numbers mask = c.flag(P::fixTriuMask) ? Numbers() : spread(c.tensor(P::mask), t);
  for (size_t r = 0; r < g.size(); r += static_cast<size_t>(width)) {
    double dot = 0;
    for (int64_t i = 0; i < width; ++i) dot += g[r + i] * y[r + i];
    for (size_t i = r; i < r + static_cast<size_t>(width); ++i) {
      const bool masked = masked_at(c, mask, P::fixTriuMask, i, width, height);
      g[i] = masked ? 0 : (g[i] - dot) * y[i] * c.number(P::scale);
    }
  }
  put(c.tensor(P::out), g);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnScaledMaskedSoftmax,
         (check_masked_softmax<params::ScaledMaskedSoftmax::x, params::ScaledMaskedSoftmax::y>),
         run_masked_softmax)
ACLNN_OP(aclnnScaledMaskedSoftmaxBackward,
         (check_masked_softmax<params::ScaledMaskedSoftmaxBackward::y,
                               params::ScaledMaskedSoftmaxBackward::out>),
         run_masked_softmax_grad)
