// The gradient of the Chamfer distance of point clouds.
#include "loops/numbers.h"

#include <cmath>

namespace aclsim {
namespace {

// (xyz1 [B, N, D], xyz2 [B, M, D], idx1 [B, N], idx2 [B, M], gradDist1, gradDist2, gradXyz1,
// gradXyz2): squared distances to the nearest points.
aclnnStatus check_chamfer(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 3, 3));
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  ACL_RETURN_IF_FAILED(expect_dims(c, 1, {a.dims[0], -1, a.dims[2]}));
  for (int i : {2, 4}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {a.dims[0], a.dims[1]}));
  for (int i : {3, 5}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {b.dims[0], b.dims[1]}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 6, 0));
  return expect_same_shape(c, 7, 1);
}
aclError run_chamfer(Call& c) {
  const Numbers p[2] = {numbers(c.tensor(0)), numbers(c.tensor(1))};
  const Integers nearest[2] = {integers(c.tensor(2)), integers(c.tensor(3))};
  const Numbers grad[2] = {numbers(c.tensor(4)), numbers(c.tensor(5))};
  Numbers to[2] = {Numbers(p[0].size()), Numbers(p[1].size())};
  const int64_t n[2] = {c.tensor(0).dims[1], c.tensor(1).dims[1]}, width = c.tensor(0).dims[2];
  IndexFault fault;
  for (int side : {0, 1}) {
    for (int64_t i = 0; i < static_cast<int64_t>(nearest[side].size()); ++i) {
      const int64_t k = fault.resolve(nearest[side][i], n[!side]);
      if (k < 0) return fault.report(c, 2 + side);
      const int64_t from = i * width, other = (i / n[side] * n[!side] + k) * width;
      for (int64_t d = 0; d < width; ++d) {
        const double slope = 2 * grad[side][i] * (p[side][from + d] - p[!side][other + d]);
        to[side][from + d] += slope;
        to[!side][other + d] -= slope;
      }
    }
  }
  put(c.tensor(6), to[0]);
  put(c.tensor(7), to[1]);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnChamferDistanceBackward, check_chamfer, run_chamfer)
