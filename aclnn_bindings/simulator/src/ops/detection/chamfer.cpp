// The gradient of the Chamfer distance of point clouds.
#include "params/detection.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (xyz1 [B, N, D], xyz2 [B, M, D], idx1 [B, N], idx2 [B, M], gradDist1, gradDist2, gradXyz1,
// gradXyz2): squared distances to the nearest points.
aclnnStatus check_chamfer(Call& c) {
  using P = params::ChamferDistanceBackward;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::xyz1, 3, 3));
  const Tensor &a = c.tensor(P::xyz1), &b = c.tensor(P::xyz2);
  ACL_RETURN_IF_FAILED(expect_dims(c, P::xyz2, {a.dims[0], -1, a.dims[2]}));
  for (int i : {P::idx1, P::gradDist1})
    ACL_RETURN_IF_FAILED(expect_dims(c, i, {a.dims[0], a.dims[1]}));
  for (int i : {P::idx2, P::gradDist2})
    ACL_RETURN_IF_FAILED(expect_dims(c, i, {b.dims[0], b.dims[1]}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradXyz1, P::xyz1));
  return expect_same_shape(c, P::gradXyz2, P::xyz2);
}
aclError run_chamfer(Call& c) {
  using P = params::ChamferDistanceBackward;

  const Numbers p[2] = {numbers(c.tensor(P::xyz1)), numbers(c.tensor(P::xyz2))};
  const Integers nearest[2] = {integers(c.tensor(P::idx1)), integers(c.tensor(P::idx2))};
  const Numbers grad[2] = {numbers(c.tensor(P::gradDist1)), numbers(c.tensor(P::gradDist2))};
  Numbers to[2] = {Numbers(p[0].size()), Numbers(p[1].size())};
  const int64_t n[2] = {c.tensor(P::xyz1).dims[1], c.tensor(P::xyz2).dims[1]},
                width = c.tensor(P::xyz1).dims[2];
  IndexFault fault;
  for (int side : {0, 1}) {
    for (int64_t i = 0; i < static_cast<int64_t>(nearest[side].size()); ++i) {
      const int64_t k = fault.resolve(nearest[side][i], n[!side]);
      if (k < 0) return fault.report(c, P::idx1 + side);
      const int64_t from = i * width, other = (i / n[side] * n[!side] + k) * width;
      for (int64_t d = 0; d < width; ++d) {
        const double slope = 2 * grad[side][i] * (p[side][from + d] - p[!side][other + d]);
        to[side][from + d] += slope;
        to[!side][other + d] -= slope;
      }
    }
  }
  put(c.tensor(P::gradXyz1), to[0]);
  put(c.tensor(P::gradXyz2), to[1]);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnChamferDistanceBackward, check_chamfer, run_chamfer)
