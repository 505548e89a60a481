// Counts of values in bins.
#include "loops/promote.h"
#include "loops/rows.h"

#include <vector>

namespace aclsim {
namespace {

// (self, bins, min, max, out): equal bins; min = max = 0 takes the range of the data.
aclnnStatus check_histc(Call& c) {
  Shape shape;
  shape.rank = 1;
  shape.dims[0] = c.integer(1);
  if (c.integer(1) < 1) return c.fail(ACLNN_ERR_PARAM_INVALID, "bins should be positive.");
  if (c.scalar(2).real() > c.scalar(3).real()) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "max should not be less than min.");
  }
  return expect_shape(c, 4, shape);
}
aclError run_histc(Call& c) {
  const Tensor &self = c.tensor(0), &out = c.tensor(4);
  const int64_t n = self.numel(), bins = c.integer(1);
  std::vector<double> x(static_cast<size_t>(n)), counts(static_cast<size_t>(bins));
  copy_tensor(dense(x.data(), ACL_DOUBLE, self.dims, self.rank), self);
  double low = c.scalar(2).real(), high = c.scalar(3).real();
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
  return ACL_SUCCESS;
}

// (self, weights, minlength, out): out is as long as its largest value needs, at least minlength.
aclnnStatus check_bincount(Call& c) {
  if (c.tensor(0).rank != 1 || c.tensor(3).rank != 1 || c.integer(2) < 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "self and out should have 1 dim, minlength be positive.");
  }
  if (c.null(1) || c.tensor(1).numel() == 0) return ACLNN_SUCCESS;
  return expect_same_shape(c, 1, 0);
}
aclError run_bincount(Call& c) {
  const Tensor &self = c.tensor(0), &out = c.tensor(3);
  const Tensor* weights = c.maybe(1) && c.maybe(1)->numel() > 0 ? c.maybe(1) : nullptr;
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
