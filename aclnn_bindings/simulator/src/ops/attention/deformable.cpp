// Deformable attention: samples of several scales off the grid, weighted, and the gradients.
#include "params/attention.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (value [B, K, H, D], spatialShape [L, 2], levelStartIndex [L], location [B, Q, H, L, P, 2],
// attnWeight [B, Q, H, L, P], output [B, Q, H D]): Deformable DETR's attention; samples outside a
// level's map count as zero.
struct Levels {
  int64_t batch, keys, heads, width, queries, levels, points;
  Integers shapes, starts;
};
aclnnStatus expect_levels(const Call& c, int output) {
  using P = params::MultiScaleDeformableAttnFunction;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::value, 4, 4));
  ACL_RETURN_IF_FAILED(expect_rank(c, P::location, 6, 6));
  const Tensor &v = c.tensor(P::value), &at = c.tensor(P::location);
  const int64_t levels = at.dims[3];
  ACL_RETURN_IF_FAILED(expect_dims(c, P::spatialShape, {levels, 2}));
  ACL_RETURN_IF_FAILED(expect_dims(c, P::levelStartIndex, {levels}));
  ACL_RETURN_IF_FAILED(expect_dims(c, P::location, {v.dims[0], -1, v.dims[2], levels, -1, 2}));
  ACL_RETURN_IF_FAILED(
      expect_dims(c, P::attnWeight, {v.dims[0], at.dims[1], v.dims[2], levels, at.dims[4]}));
  return expect_dims(c, output, {v.dims[0], at.dims[1], v.dims[2] * v.dims[3]});
}
aclnnStatus check_levels(Call& c) {
  using P = params::MultiScaleDeformableAttnFunction;
  return expect_levels(c, P::output);
}
aclnnStatus check_levels_grad(Call& c) {
  using P = params::MultiScaleDeformableAttentionGrad;

  ACL_RETURN_IF_FAILED(expect_levels(c, P::gradOutput));
  for (int i : {P::value, P::location, P::attnWeight}) {
    const int to = i == 0 ? P::gradValue : i + 4;
    ACL_RETURN_IF_FAILED(expect_same_shape(c, to, i));
  }
  return ACLNN_SUCCESS;
}
aclError read_levels(const Call& c, Levels& n) {
  using P = params::MultiScaleDeformableAttnFunction;

  const Tensor &v = c.tensor(P::value), &at = c.tensor(P::location);
  n = {v.dims[0],
       v.dims[1],
       v.dims[2],
       v.dims[3],
       at.dims[1],
       at.dims[3],
       at.dims[4],
       integers(c.tensor(P::spatialShape)),
       integers(c.tensor(P::levelStartIndex))};
  for (int64_t l = 0; l < n.levels; ++l) {
    const int64_t h = n.shapes[2 * l], w = n.shapes[2 * l + 1];
    if (h >= 0 && w >= 0 && n.starts[l] >= 0 && n.starts[l] + h * w <= n.keys) continue;
    return c.trap(507015, "level %lld leads outside the %lld keys", static_cast<long long>(l),
                  static_cast<long long>(n.keys));
  }
  return ACL_SUCCESS;
}
// One corner of a sample: which key, its bilinear weight, and that weight's slopes in x and y.
struct Corner {
  int64_t key;
  double weight, along_x, along_y;
};
// f(sample, place of the output row, corner) for the corners inside of every sample.
template <class F>
void each_corner(const Levels& n, const Numbers& at, F f) {
  for (int64_t s = 0; s < static_cast<int64_t>(at.size()) / 2; ++s) {
    const int64_t level = s / n.points % n.levels, row = s / n.points / n.levels;
    const int64_t h = n.shapes[2 * level], w = n.shapes[2 * level + 1];
    const double x = at[2 * s] * static_cast<double>(w) - 0.5;
    const double y = at[2 * s + 1] * static_cast<double>(h) - 0.5;
    const double x0 = std::floor(x), y0 = std::floor(y);
    for (int k = 0; k < 4; ++k) {
      const double cx = x0 + k % 2, cy = y0 + k / 2;
      if (!(cx >= 0 && cx < static_cast<double>(w) && cy >= 0 && cy < static_cast<double>(h))) continue;
      const double u = 1 - std::fabs(x - cx), v = 1 - std::fabs(y - cy);
      const int64_t key = n.starts[level] + static_cast<int64_t>(cy) * w + static_cast<int64_t>(cx);
      f(s, row, Corner{key, u * v, (k % 2 ? 1 : -1) * v * static_cast<double>(w),
                       (k / 2 ? 1 : -1) * u * static_cast<double>(h)});
    }
  }
}
// Element of value for a corner of output row (b, q, head).
int64_t value_at(const Levels& n, int64_t row, int64_t key) {
  return ((row / n.heads / n.queries * n.keys + key) * n.heads + row % n.heads) * n.width;
}
aclError run_levels(Call& c) {
  using P = params::MultiScaleDeformableAttnFunction;

  Levels n;
  if (aclError error = read_levels(c, n)) return error;
  const Numbers value = numbers(c.tensor(P::value)), at = numbers(c.tensor(P::location)),
                share = numbers(c.tensor(P::attnWeight));
  Numbers out(static_cast<size_t>(c.tensor(P::output).numel()));
  each_corner(n, at, [&](int64_t s, int64_t row, const Corner& k) {
    const double* from = value.data() + value_at(n, row, k.key);
    for (int64_t d = 0; d < n.width; ++d) out[row * n.width + d] += share[s] * k.weight * from[d];
  });
  put(c.tensor(P::output), out);
  return ACL_SUCCESS;
}
aclError run_levels_grad(Call& c) {
  using P = params::MultiScaleDeformableAttentionGrad;

  Levels n;
  if (aclError error = read_levels(c, n)) return error;
  const Numbers value = numbers(c.tensor(P::value)), at = numbers(c.tensor(P::location)),
                share = numbers(c.tensor(P::attnWeight)), g = numbers(c.tensor(P::gradOutput));
  Numbers to_value(value.size()), to_at(at.size()), to_share(share.size());
  each_corner(n, at, [&](int64_t s, int64_t row, const Corner& k) {
    const int64_t from = value_at(n, row, k.key);
    double dot = 0;
    for (int64_t d = 0; d < n.width; ++d) {
      dot += g[row * n.width + d] * value[from + d];
      to_value[from + d] += g[row * n.width + d] * share[s] * k.weight;
    }
    to_share[s] += dot * k.weight;
    to_at[2 * s] += dot * share[s] * k.along_x;
    to_at[2 * s + 1] += dot * share[s] * k.along_y;
  });
  put(c.tensor(P::gradValue), to_value);
  put(c.tensor(P::gradLocation), to_at);
  put(c.tensor(P::gradAttnWeight), to_share);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnMultiScaleDeformableAttnFunction, check_levels, run_levels)
ACLNN_OP(aclnnMultiScaleDeformableAttentionGrad, check_levels_grad, run_levels_grad)
