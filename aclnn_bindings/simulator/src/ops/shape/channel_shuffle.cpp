// Channels of groups shuffled.
#include "params/shape.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (self, groups, out): [N, groups, C / groups, ...] with the two middle dims swapped.
aclnnStatus check_shuffle(Call& c) {
  using P = params::ChannelShuffle;

  const Tensor& self = c.tensor(P::self);
  const int64_t groups = c.integer(P::groups);
  if (self.rank < 3 || self.rank >= kMaxRank || groups < 1 || self.dims[1] % groups) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "groups %lld doesn't divide the channels of %s.",
                  static_cast<long long>(groups), shape_text(self));
  }
  return expect_same_shape(c, P::out, P::self);
}
// Channels split into [outer, inner], and the two swapped where asked.
Tensor split_channels(const Tensor& t, int64_t outer, bool swap) {
  Tensor v = unsqueezed(t, 1);
  v.dims[1] = outer;
  v.dims[2] = t.dims[1] / outer;
  v.strides[1] = t.strides[1] * v.dims[2];
  if (swap) {
    std::swap(v.dims[1], v.dims[2]);
    std::swap(v.strides[1], v.strides[2]);
  }
  return v;
}
void run_shuffle(Call& c) {
  using P = params::ChannelShuffle;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  if (self.numel() == 0) return;
  const int64_t groups = c.integer(P::groups);
  copy_tensor(split_channels(out, self.dims[1] / groups, false),
              split_channels(self, groups, true));
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnChannelShuffle, check_shuffle, run_shuffle)
