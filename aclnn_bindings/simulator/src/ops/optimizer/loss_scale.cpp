// The scale of a loss in mixed precision: grown after good steps, cut after bad ones.
#include "params/optimizer.h"
#include "loops/indices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

// (currentScale, growthTracker, foundInf, growthFactor, backoffFactor, growthInterval,
// updatedScale, updatedGrowthTracker): torch's _amp_update_scale_, all tensors of one element.
aclnnStatus check_amp_update_scale(Call& c) {
  using P = params::AmpUpdateScale;

  for (int i :
       {P::currentScale, P::growthTracker, P::foundInf, P::updatedScale, P::updatedGrowthTracker}) {
    if (c.tensor(i).numel() == 1) continue;
    return c.fail(ACLNN_ERR_INNER_TILING_ERROR, "%s should have 1 element, its shape is %s.",
                  c.name(i), shape_text(c.tensor(i)));
  }
  if (c.integer(P::growthInterval) <= 0) {
    return c.fail(ACLNN_ERR_INNER_TILING_ERROR,
                  "growthInterval should be more than 0, but is %lld.",
                  static_cast<long long>(c.integer(P::growthInterval)));
  }
  return expect_same_dtype(c, P::updatedScale, P::currentScale);
}
void run_amp_update_scale(Call& c) {
  using P = params::AmpUpdateScale;

  const auto read = [&](int i) {
    return load_one<double>(c.tensor(i).data, c.tensor(i).dtype, c.tensor(i).offset);
  };
  const auto write = [&](int i, double value) {
    store_one(value, c.tensor(i).data, c.tensor(i).dtype, c.tensor(i).offset);
  };
  double scale = read(0), good = read(1) + 1;
  if (read(2) != 0) {
    scale *= c.number(P::backoffFactor);
    good = 0;
  } else if (good == static_cast<double>(c.integer(P::growthInterval))) {
    const double grown = static_cast<float>(scale * c.number(P::growthFactor));
    if (grown - grown == 0) scale = grown;  // torch stops growing before infinity
    good = 0;
  }
  write(6, scale);
  write(7, good);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnAmpUpdateScale, check_amp_update_scale, run_amp_update_scale)
