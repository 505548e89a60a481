// Samples taken off the grid: deformable attention, resizing by scales, interpolated points; and the
// short causal convolution of state space models.
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
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 4, 4));
  ACL_RETURN_IF_FAILED(expect_rank(c, 3, 6, 6));
  const Tensor &v = c.tensor(0), &at = c.tensor(3);
  const int64_t levels = at.dims[3];
  ACL_RETURN_IF_FAILED(expect_dims(c, 1, {levels, 2}));
  ACL_RETURN_IF_FAILED(expect_dims(c, 2, {levels}));
  ACL_RETURN_IF_FAILED(expect_dims(c, 3, {v.dims[0], -1, v.dims[2], levels, -1, 2}));
  ACL_RETURN_IF_FAILED(expect_dims(c, 4, {v.dims[0], at.dims[1], v.dims[2], levels, at.dims[4]}));
  return expect_dims(c, output, {v.dims[0], at.dims[1], v.dims[2] * v.dims[3]});
}
aclnnStatus check_levels(Call& c) { return expect_levels(c, 5); }
aclnnStatus check_levels_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_levels(c, 5));
  for (int i : {0, 3, 4}) {
    const int to = i == 0 ? 6 : i + 4;
    ACL_RETURN_IF_FAILED(expect_same_shape(c, to, i));
  }
  return ACLNN_SUCCESS;
}
aclError read_levels(const Call& c, Levels& n) {
  const Tensor &v = c.tensor(0), &at = c.tensor(3);
  n = {v.dims[0],  v.dims[1],  v.dims[2], v.dims[3], at.dims[1], at.dims[3], at.dims[4],
       integers(c.tensor(1)), integers(c.tensor(2))};
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
  Levels n;
  if (aclError error = read_levels(c, n)) return error;
  const Numbers value = numbers(c.tensor(0)), at = numbers(c.tensor(3)), share = numbers(c.tensor(4));
  Numbers out(static_cast<size_t>(c.tensor(5).numel()));
  each_corner(n, at, [&](int64_t s, int64_t row, const Corner& k) {
    const double* from = value.data() + value_at(n, row, k.key);
    for (int64_t d = 0; d < n.width; ++d) out[row * n.width + d] += share[s] * k.weight * from[d];
  });
  put(c.tensor(5), out);
  return ACL_SUCCESS;
}
// (..., gradOutput, gradValue, gradLocation, gradAttnWeight).
aclError run_levels_grad(Call& c) {
  Levels n;
  if (aclError error = read_levels(c, n)) return error;
  const Numbers value = numbers(c.tensor(0)), at = numbers(c.tensor(3)), share = numbers(c.tensor(4)),
                g = numbers(c.tensor(5));
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
  put(c.tensor(6), to_value);
  put(c.tensor(7), to_at);
  put(c.tensor(8), to_share);
  return ACL_SUCCESS;
}

// (self [N, C, H, W], scales, mode, out): "nearest" or "bilinear" between pixel centres.
aclnnStatus check_resize(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 4, 4));
  const Span<const float> scales = c.floats(1);
  const char* mode = c.text(2);
  if (!mode || (std::strcmp(mode, "nearest") && std::strcmp(mode, "bilinear"))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "mode should be nearest or bilinear, but is %s.",
                  mode ? mode : "null");
  }
  Shape shape = shape_of(c.tensor(0));
  bool fits = scales.size == 4;
  for (int d = 0; fits && d < 4; ++d) {
    const double size = std::floor(static_cast<double>(shape.dims[d]) * scales[d]);
    fits = scales[d] > 0 && size < 1e9 && (d > 1 || scales[d] == 1);
    shape.dims[d] = static_cast<int64_t>(fits ? size : 0);
  }
  if (fits) return expect_shape(c, 3, shape);
  return c.fail(ACLNN_ERR_PARAM_INVALID, "scales should be 1, 1 and two positive numbers.");
}
// The two neighbours of an output position along a dim, and the share of the second.
struct Between {
  int64_t low, high;
  double share;
};
Between between(int64_t o, int64_t in, int64_t out, bool nearest) {
  const double ratio = static_cast<double>(in) / static_cast<double>(out);
  if (nearest) {
    const auto k = std::min(in - 1, static_cast<int64_t>(std::floor(static_cast<double>(o) * ratio)));
    return {k, k, 0};
  }
  const double at = std::max(0.0, (static_cast<double>(o) + 0.5) * ratio - 0.5);
  const auto low = std::min(in - 1, static_cast<int64_t>(at));
  return {low, std::min(in - 1, low + 1), at - static_cast<double>(low)};
}
aclError run_resize(Call& c) {
  const Tensor &self = c.tensor(0), &out = c.tensor(3);
  const bool nearest = c.text(2)[0] == 'n';
  const int64_t ih = self.dims[2], iw = self.dims[3], oh = out.dims[2], ow = out.dims[3];
  const Numbers x = numbers(self);
  Numbers y(static_cast<size_t>(out.numel()));
  for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
    const double* plane = x.data() + i / (oh * ow) * ih * iw;
    const Between r = between(i / ow % oh, ih, oh, nearest), k = between(i % ow, iw, ow, nearest);
    const auto line = [&](int64_t row) {
      return plane[row * iw + k.low] * (1 - k.share) + plane[row * iw + k.high] * k.share;
    };
    y[i] = line(r.low) * (1 - r.share) + line(r.high) * r.share;
  }
  put(out, y);
  return ACL_SUCCESS;
}

// (gradX [B, C, N], idx [B, N, 3], weight [B, N, 3], m, gradY [B, C, M]): what three known points gave
// goes back to them. A last dim of one is passed over.
aclnnStatus check_three(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 4}));
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 3, 4));
  const Tensor& g = c.tensor(0);
  const int64_t batch = g.dims[0], points = g.dims[2];
  for (int i : {1, 2}) ACL_RETURN_IF_FAILED(expect_numel(c, i, batch * points * 3));
  return expect_numel(c, 4, batch * g.dims[1] * c.integer(3));
}
aclError run_three(Call& c) {
  const Tensor& t = c.tensor(0);
  const int64_t channels = t.dims[1], points = t.dims[2], known = c.integer(3);
  const Numbers g = numbers(t), share = numbers(c.tensor(2));
  const Integers at = integers(c.tensor(1));
  Numbers to(static_cast<size_t>(c.tensor(4).numel()));
  IndexFault fault;
  for (int64_t i = 0; i < static_cast<int64_t>(at.size()); ++i) {
    const int64_t k = fault.resolve(at[i], known);
    if (k < 0) return fault.report(c, 1);
    const int64_t batch = i / 3 / points, point = i / 3 % points;
    for (int64_t ch = 0; ch < channels; ++ch) {
      to[(batch * channels + ch) * known + k] += g[(batch * channels + ch) * points + point] * share[i];
    }
  }
  put(c.tensor(4), to);
  return ACL_SUCCESS;
}

// (x [S, B, H], weight [W, H], mask [B, S], out): every channel over its own past; masked steps give 0.
aclnnStatus expect_causal(const Call& c, int x, int weight, int mask) {
  ACL_RETURN_IF_FAILED(expect_given(c, {x, weight}));
  ACL_RETURN_IF_FAILED(expect_rank(c, x, 3, 3));
  const Tensor& t = c.tensor(x);
  ACL_RETURN_IF_FAILED(expect_dims(c, weight, {-1, t.dims[2]}));
  return expect_dims(c, mask, {t.dims[1], t.dims[0]});
}
aclnnStatus check_causal(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 3}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 3, 0));
  return expect_causal(c, 0, 1, 2);
}
// f(output, input, weight) for every product whose step the mask leaves.
template <class F>
void each_past(const Tensor& x, int64_t taps, const Tensor* mask, F f) {
  const int64_t batch = x.dims[1], width = x.dims[2];
  const Integers kept = mask ? integers(*mask) : Integers();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t step = i / width / batch, b = i / width % batch;
    if (mask && kept[b * x.dims[0] + step] == 0) continue;
    for (int64_t k = 0; k < taps; ++k) {
      const int64_t from = step - (taps - 1) + k;
      if (from >= 0) f(i, (from * batch + b) * width + i % width, k * width + i % width);
    }
  }
}
aclError run_causal(Call& c) {
  const Numbers x = numbers(c.tensor(0)), w = numbers(c.tensor(1));
  Numbers y(x.size());
  each_past(c.tensor(0), c.tensor(1).dims[0], c.maybe(2),
            [&](int64_t o, int64_t i, int64_t k) { y[o] += x[i] * w[k]; });
  put(c.tensor(3), y);
  return ACL_SUCCESS;
}
// (gradY, x, weight, mask, gradX, gradWeight).
aclnnStatus check_causal_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 4, 5}));
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, 1, {0, 4}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 5, 2));
  return expect_causal(c, 1, 2, 3);
}
aclError run_causal_grad(Call& c) {
  const Numbers g = numbers(c.tensor(0)), x = numbers(c.tensor(1)), w = numbers(c.tensor(2));
  Numbers gx(x.size()), gw(w.size());
  each_past(c.tensor(1), c.tensor(2).dims[0], c.maybe(3), [&](int64_t o, int64_t i, int64_t k) {
    gx[i] += g[o] * w[k];
    gw[k] += g[o] * x[i];
  });
  put(c.tensor(4), gx);
  put(c.tensor(5), gw);
  return ACL_SUCCESS;
}

// (vocabParallelLogits [..., V], target, globalLogitsMax, vocabStartIndex, vocabEndIndex,
// predictedLogits, sumExpLogits, expLogits, targetOffset, targetMask): one rank's part of a cross
// entropy over a vocabulary that is split, as Megatron has it.
aclnnStatus check_parallel(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 1, kMaxRank));
  const int64_t width = tail_numel(c.tensor(0), 1), rows = width ? c.tensor(0).numel() / width : 0;
  for (int i : {1, 2, 5, 6, 8, 9}) ACL_RETURN_IF_FAILED(expect_numel(c, i, rows));
  return expect_numel(c, 7, c.tensor(0).numel());
}
aclError run_parallel(Call& c) {
  const int64_t width = tail_numel(c.tensor(0), 1), start = c.integer(3), end = c.integer(4);
  Numbers x = numbers(c.tensor(0));
  const Numbers top = numbers(c.tensor(2));
  Integers target = integers(c.tensor(1)), mask(target.size());
  Numbers predicted(target.size()), sums(target.size());
  for (size_t r = 0; r < target.size(); ++r) {
    mask[r] = target[r] < start || target[r] >= end;
    target[r] = mask[r] ? 0 : target[r] - start;
    double* row = x.data() + r * static_cast<size_t>(width);
    if (target[r] >= width) return c.trap(507015, "a target lies past the %lld logits",
                                          static_cast<long long>(width));
    for (int64_t i = 0; i < width; ++i) row[i] -= top[r];
    predicted[r] = mask[r] ? 0 : row[target[r]];
    for (int64_t i = 0; i < width; ++i) sums[r] += row[i] = std::exp(row[i]);
  }
  put(c.tensor(5), predicted);
  put(c.tensor(6), sums);
  put(c.tensor(7), x);
  put(c.tensor(8), target);
  put(c.tensor(9), mask);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnMultiScaleDeformableAttnFunction, check_levels, run_levels)
ACLNN_OP(aclnnMultiScaleDeformableAttentionGrad, check_levels_grad, run_levels_grad)
ACLNN_OP(aclnnResize, check_resize, run_resize)
ACLNN_OP(aclnnThreeInterpolateBackward, check_three, run_three)
ACLNN_OP(aclnnMaskedCausalConv1d, check_causal, run_causal)
ACLNN_OP(aclnnMaskedCausalConv1dBackward, check_causal_grad, run_causal_grad)
ACLNN_OP(aclnnCrossEntropySumExpAndIndexLogit, check_parallel, run_parallel)
