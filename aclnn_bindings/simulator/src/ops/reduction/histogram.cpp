// Counts of values in bins.
#include "params/reduction.h"
#include "loops/promote.h"
#include "loops/rows.h"

#include <vector>

namespace aclsim {
namespace {

// (self, bins, min, max, out): equal bins; min = max = 0 takes the range of the data.
aclnnStatus check_histc(Call& c) {
  using P = params::Histc;

  Shape shape;
  shape.rank = 1;
  shape.dims[0] = c.integer(P::bins);
  if (c.integer(P::bins) < 1) return c.fail(ACLNN_ERR_PARAM_INVALID, "bins should be positive.");
  if (c.scalar(P::min).real() > c.scalar(P::max).real()) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "max should not be less than min.");
  }
  return expect_shape(c, P::out, shape);
}
void run_histc(Call& c) {
  using P = params::Histc;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  const int64_t n = self.numel(), bins = c.integer(P::bins);
  std::vector<double> x(static_cast<size_t>(n)), counts(static_cast<size_t>(bins));
  copy_tensor(dense(x.data(), ACL_DOUBLE, self.dims, self.rank), self);
  double low = c.scalar(P::min).real(), high = c.scalar(P::max).real();
  if (low == high && n > 0) {
    low = *std::min_element(x.begin(), x.end());
    high = *std::max_element(x.begin(), x.end());
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  for (double v : x) {
    if (!(v >= low && v <= high)) continue;
    const auto k = static_cast<int64_t>((v - low) / (high - low) * static_cast<double>(bins));
    ++counts[static_cast<size_t>(std::min(k, bins - 1))];
  }
  copy_tensor(out, dense(counts.data(), ACL_DOUBLE, &bins, 1));
}

// (self, weights, minlength, out): out is as long as its largest value needs, at least minlength.
aclnnStatus check_bincount(Call& c) {
  using P = params::Bincount;

  if (c.tensor(P::self).rank != 1 || c.tensor(P::out).rank != 1 || c.integer(P::minlength) < 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "self and out should have 1 dim, minlength be positive.");
  }
  if (c.null(P::weights) || c.tensor(P::weights).numel() == 0) return ACLNN_SUCCESS;
  return expect_same_shape(c, P::weights, P::self);
}
aclError run_bincount(Call& c) {
  using P = params::Bincount;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  const Tensor* weights =
      c.maybe(P::weights) && c.maybe(P::weights)->numel() > 0 ? c.maybe(P::weights) : nullptr;
  std::vector<double> counts(static_cast<size_t>(out.numel()));
  for (int64_t i = 0; i < self.numel(); ++i) {
    const int64_t k = load_one<int64_t>(self.data, self.dtype, self.offset + i * self.strides[0]);
    if (k < 0 || k >= out.numel()) {
      return c.trap(507015, "value %lld is out of range for %lld bins", static_cast<long long>(k),
                    static_cast<long long>(out.numel()));
    }
    counts[static_cast<size_t>(k)] +=
        weights ? load_one<double>(weights->data, weights->dtype,
                                   weights->offset + i * weights->strides[0]) : 1;
  }
  copy_tensor(out, dense(counts.data(), ACL_DOUBLE, out.dims, 1));
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnHistc, check_histc, run_histc)
ACLNN_OP(aclnnBincount, check_bincount, run_bincount)
