// Detectors of silent faults of the device: bits that differ, values that leave what they were. Formulas:
// the operator documents of aclnnPrecisionCompare, aclnnSilentCheck and aclnnSilentCheckV2; what they
// leave open is listed in docs/unspecified_ops.md.
#include "params/state.h"
#include <cmath>

#include "loops/numbers.h"

namespace aclsim {
namespace {

constexpr int64_t kDifferent = 503;  // of aclnnPrecisionCompare's codes
constexpr int64_t kFault = 1, kAlarm = 2;

aclnnStatus check_compare(Call& c) {
  using P = params::PrecisionCompare;

  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::realdata, P::golden));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::realdata, P::golden));
  return expect_numel(c, P::out, 1);
}
void run_compare(Call& c) {
  using P = params::PrecisionCompare;

  const bool same = bytes_of(c.tensor(P::golden)) == bytes_of(c.tensor(P::realdata));
  write(c.tensor(P::out), Ints{same ? 0 : kDifferent});
}

struct Finding {
  bool fault, alarm;
  int64_t code() const { return fault ? kFault : alarm ? kAlarm : 0; }
};
// (val, inputGradRef, sfdaRef [last, least, most], stepRef, minSteps, limit1, jump1, limit2, jump2,
// detect, result): jumps count in widths of the range seen so far, from step minSteps on.
aclnnStatus check_values(Call& c) {
  using P = params::SilentCheck;

  for (int i : {P::val, P::stepRef, P::result}) ACL_RETURN_IF_FAILED(expect_numel(c, i, 1));
  return expect_numel(c, P::sfdaRef, 3);
}
void run_values(Call& c) {
  using P = params::SilentCheck;

  const double value = number(c.tensor(P::val));
  Doubles seen = doubles(c.tensor(P::sfdaRef));
  const int64_t step = integers(c.tensor(P::stepRef))[0], detect = c.integer(P::npuAsdDetect);
  const bool finite = std::isfinite(value);
  const double jump = std::fabs(value - seen[0]), width = seen[2] - seen[1];
  const bool later = step >= std::max<int64_t>(1, c.integer(P::cMinSteps));
  const auto beyond = [&](int limit) {
    return value > c.number(limit) || (later && width > 0 && jump > c.number(limit + 1) * width);
  };
  const Finding f = {!finite || beyond(5), finite && beyond(7)};
  if (f.fault && detect != 1) {
    put(c.tensor(P::inputGradRef), Doubles(static_cast<size_t>(c.tensor(P::inputGradRef).numel())));
  } else {
    if (finite) {
      seen = {value, step ? std::min(seen[1], value) : value, step ? std::max(seen[2], value) : value};
      put(c.tensor(P::sfdaRef), seen);
    }
    write(c.tensor(P::stepRef), Ints{step + 1});
  }
  write(c.tensor(P::result), Ints{f.code()});
}

// (val, max, avgRef, inputGradRef, stepRef, dstSize, dstStride, dstOffset, limit1, limit2, beta, detect,
// result): limits count in the average, freed of its bias towards its first value.
aclnnStatus check_average(Call& c) {
  using P = params::SilentCheckV2;

  for (int i : {P::val, P::max, P::avgRef, P::stepRef, P::result})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, 1));
  const Span<const int64_t> size = c.ints(P::dstSize), stride = c.ints(P::dstStride),
                            offset = c.ints(P::dstOffset);
  const Tensor& g = c.tensor(P::inputGradRef);
  bool fits = size.size == stride.size && offset.size <= 1 && size.size <= kMaxRank;
  int64_t last = offset.size ? offset[0] : 0;
  fits = fits && last >= 0;
  for (int64_t i = P::val; fits && i < size.size; ++i) {
    fits = size[i] >= 0 && stride[i] >= 0;
    last += std::max<int64_t>(0, size[i] - 1) * stride[i];
  }
  if (fits && last < std::max<int64_t>(1, g.storage_numel)) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "dstSize, dstStride and dstOffset leave inputGradRef %s.",
                shape_text(g));
}
void run_average(Call& c) {
  using P = params::SilentCheckV2;

  const double value = number(c.tensor(P::val)), average = number(c.tensor(P::avgRef)),
               beta = c.number(P::beta1);
  const int64_t step = integers(c.tensor(P::stepRef))[0], detect = c.integer(P::npuAsdDetect);
  const bool finite = std::isfinite(value);
  const double level = step > 0 ? average / (1 - std::pow(beta, static_cast<double>(step))) : average;
  const auto beyond = [&](int limit) { return value > level * c.number(limit); };
  const Finding f = {!finite || beyond(8), finite && beyond(9)};
  if (f.fault && detect != 1) {
    Tensor view = c.tensor(P::inputGradRef);
    view.rank = static_cast<int32_t>(c.ints(P::dstSize).size);
    view.offset = c.ints(P::dstOffset).size ? c.ints(P::dstOffset)[0] : 0;
    for (int i = 0; i < view.rank; ++i)
      view.dims[i] = c.ints(P::dstSize)[i], view.strides[i] = c.ints(P::dstStride)[i];
    put(view, Doubles(static_cast<size_t>(view.numel())));
  } else {
    if (finite) put(c.tensor(P::avgRef), Doubles{beta * average + (1 - beta) * value});
    write(c.tensor(P::stepRef), Ints{step + 1});
  }
  write(c.tensor(P::result), Ints{f.code()});
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnPrecisionCompare, check_compare, run_compare)
ACLNN_OP(aclnnSilentCheck, check_values, run_values)
ACLNN_OP(aclnnSilentCheckV2, check_average, run_average)
