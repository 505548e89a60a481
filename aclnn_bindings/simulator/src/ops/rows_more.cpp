// Masked softmax, signs in bits, random slopes, segment sums and other operators of their own kind.
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
void softmax_row(double* x, int64_t n) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < n; ++i) top = std::max(top, x[i]);
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - top);
  for (int64_t i = 0; i < n; ++i) x[i] /= sum;
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
  ACL_RETURN_IF_FAILED(expect_rank(c, X, 2, kMaxRank));
  for (int i : {0, Y}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, X));
  return c.flag(X + 3) ? ACLNN_SUCCESS : expect_spread(c, X + 1, X);
}
aclError run_masked_softmax(Call& c) {
  const Tensor& t = c.tensor(0);
  const int64_t width = t.dims[t.rank - 1], height = t.dims[t.rank - 2];
  Numbers x = numbers(t), mask = c.flag(3) ? Numbers() : spread(c.tensor(1), t);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = masked_at(c, mask, 3, i, width, height) ? -10000 : x[i] * c.number(2);
  }
  for (int64_t r = 0; width && r < static_cast<int64_t>(x.size()) / width; ++r) {
    softmax_row(x.data() + r * width, width);
  }
  put(c.tensor(4), x);
  return ACL_SUCCESS;
}
// (gradOutput, y, mask, scale, fixTriuMask, out).
aclError run_masked_softmax_grad(Call& c) {
  const Tensor& t = c.tensor(1);
  const int64_t width = t.dims[t.rank - 1], height = t.dims[t.rank - 2];
  Numbers g = numbers(c.tensor(0)), y = numbers(t);
  const Numbers mask = c.flag(4) ? Numbers() : spread(c.tensor(2), t);
  for (size_t r = 0; r < g.size(); r += static_cast<size_t>(width)) {
    double dot = 0;
    for (int64_t i = 0; i < width; ++i) dot += g[r + i] * y[r + i];
    for (size_t i = r; i < r + static_cast<size_t>(width); ++i) {
      const bool masked = masked_at(c, mask, 4, i, width, height);
      g[i] = masked ? 0 : (g[i] - dot) * y[i] * c.number(3);
    }
  }
  put(c.tensor(5), g);
  return ACL_SUCCESS;
}

// (x, attenMask, relativePosBias, scaleValue, innerPrecisionMode, out): softmax(scale x + mask +
// bias). x is [B, W, N, S1, S2] or [B W, N, S1, S2]; a mask is [W, S1, S2], a bias [N, S1, S2], or
// either with dims of one in between.
struct Swin {
  int64_t windows, heads, area;
};
aclnnStatus check_swin_softmax(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 4, 5));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 5, 0));
  const Tensor& x = c.tensor(0);
  Swin& s = c.make<Swin>();
  s.area = x.dims[x.rank - 1] * x.dims[x.rank - 2];
  s.heads = x.dims[x.rank - 3];
  s.windows = x.rank == 5 ? x.dims[1] : 1;
  if (!c.null(1) && s.area > 0) {
    const int64_t w = c.tensor(1).numel() / s.area;
    if (x.rank == 4 && w > 0 && x.dims[0] % w == 0) s.windows = w;
    ACL_RETURN_IF_FAILED(expect_numel(c, 1, s.windows * s.area));
  }
  return expect_numel(c, 2, s.heads * s.area);
}
aclError run_swin_softmax(Call& c) {
  const Swin& s = c.get<Swin>();
  const int64_t width = c.tensor(0).dims[c.tensor(0).rank - 1];
  Numbers x = numbers(c.tensor(0));
  const Numbers bias = numbers(c.tensor(2)), mask = c.null(1) ? Numbers() : numbers(c.tensor(1));
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t head = i / s.area, window = head / s.heads % s.windows;
    x[i] = x[i] * c.number(3) + bias[head % s.heads * s.area + i % s.area];
    if (!mask.empty()) x[i] += mask[window * s.area + i % s.area];
  }
  for (int64_t r = 0; width && r < static_cast<int64_t>(x.size()) / width; ++r) {
    softmax_row(x.data() + r * width, width);
  }
  put(c.tensor(5), x);
  return ACL_SUCCESS;
}

// (self, noise, lower, upper, training, seed, offset[, out]): torch's rrelu_with_noise.
template <int Out>
aclnnStatus check_rrelu(Call& c) {
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, 0, {Out}));
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, c.tensor(0).numel()));
  if (c.scalar(2).real() <= c.scalar(3).real()) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "lower is %g, more than upper, %g.", c.scalar(2).real(),
                c.scalar(3).real());
}
template <int Out>
aclError run_rrelu(Call& c) {
  const double low = c.scalar(2).real(), high = c.scalar(3).real();
  const Philox random = stream_of(c, 5);
  Numbers x = numbers(c.tensor(0)), noise(x.size(), 1);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] > 0) continue;
    noise[i] = c.flag(4) ? low + (high - low) * random.unit_double(i) : (low + high) / 2;
    x[i] *= noise[i];
  }
  if (c.flag(4)) put(c.tensor(1), noise);
  put(c.tensor(Out), x);
  return ACL_SUCCESS;
}

// (self, size, out uint8 [size, bytes / size]): a bit per element, set where it is not negative; the
// last byte is padded with negatives.
aclnnStatus check_pack(Call& c) {
  const int64_t bytes = (c.tensor(0).numel() + 7) / 8, size = c.integer(1);
  if (size < 1 || bytes % size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "size %lld doesn't divide %lld bytes.",
                  static_cast<long long>(size), static_cast<long long>(bytes));
  }
  return expect_numel(c, 2, bytes);
}
aclError run_pack(Call& c) {
  const Numbers x = numbers(c.tensor(0));
  Integers out((x.size() + 7) / 8);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] >= 0) out[i / 8] |= int64_t{1} << (i % 8);
  }
  put(c.tensor(2), out);
  return ACL_SUCCESS;
}
// (self uint8, size, dtype, out): 1 for a set bit, -1 for another.
aclnnStatus check_unpack(Call& c) { return expect_numel(c, 3, c.tensor(0).numel() * 8); }
aclError run_unpack(Call& c) {
  const Integers bytes = integers(c.tensor(0));
  Numbers out(bytes.size() * 8);
  for (size_t i = 0; i < out.size(); ++i) out[i] = bytes[i / 8] >> (i % 8) & 1 ? 1 : -1;
  put(c.tensor(3), out);
  return ACL_SUCCESS;
}

// (self [..., T], out [..., T, T]): exp of the sums of self over (j, i], 0 above the diagonal.
aclnnStatus expect_segments(const Call& c, int self, int sums) {
  ACL_RETURN_IF_FAILED(expect_rank(c, self, 1, kMaxRank - 1));
  Shape shape = shape_of(c.tensor(self));
  shape.dims[shape.rank] = shape.dims[shape.rank - 1];
  ++shape.rank;
  return expect_shape(c, sums, shape);
}
aclnnStatus check_segsum(Call& c) { return expect_segments(c, 0, 1); }
aclError run_segsum(Call& c) {
  const int64_t n = tail_numel(c.tensor(0), 1);
  const Numbers x = numbers(c.tensor(0));
  Numbers out(x.size() * static_cast<size_t>(n));
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    double sum = 0;
    for (int64_t j = i % n; j >= 0; --j) {
      out[i * n + j] = std::exp(sum);
      sum += x[i / n * n + j];
    }
  }
  put(c.tensor(1), out);
  return ACL_SUCCESS;
}
// (gradOutput, gradSelf (the result), gradInput).
aclnnStatus check_segsum_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 1, 0));
  return expect_segments(c, 2, 0);
}
aclError run_segsum_grad(Call& c) {
  const int64_t n = tail_numel(c.tensor(2), 1);
  const Numbers g = numbers(c.tensor(0)), y = numbers(c.tensor(1));
  Numbers x(static_cast<size_t>(c.tensor(2).numel()));
  for (int64_t row = 0; row < static_cast<int64_t>(x.size()); ++row) {
    double sum = 0;  // element k takes part in (j, i] for j < k <= i
    for (int64_t j = 0; j <= row % n; ++j) {
      x[row / n * n + j] += sum;
      sum += g[row * n + j] * y[row * n + j];
    }
  }
  put(c.tensor(2), x);
  return ACL_SUCCESS;
}

// (qkv [B, T, 3 D], qkvBias [3 D], numHeads, q, k, v [B, H, T, D / H]): q is scaled by 1 / sqrt(D / H).
aclnnStatus check_qkv(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 3, 3));
  const Tensor& t = c.tensor(0);
  const int64_t heads = c.integer(2);
  if (heads < 1 || t.dims[2] % (3 * heads)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "numHeads %lld doesn't fit qkv, whose shape is %s.",
                  static_cast<long long>(heads), shape_text(t));
  }
  ACL_RETURN_IF_FAILED(expect_dims(c, 1, {t.dims[2]}));
  for (int i : {3, 4, 5}) {
    ACL_RETURN_IF_FAILED(expect_dims(c, i, {t.dims[0], heads, t.dims[1], t.dims[2] / 3 / heads}));
  }
  return ACLNN_SUCCESS;
}
aclError run_qkv(Call& c) {
  const Tensor& t = c.tensor(0);
  const int64_t steps = t.dims[1], heads = c.integer(2), width = t.dims[2] / 3 / heads;
  const Numbers x = numbers(t), bias = numbers(c.tensor(1));
  for (int part = 0; part < 3; ++part) {
    const double scale = part ? 1 : 1 / std::sqrt(static_cast<double>(width));
    Numbers out(static_cast<size_t>(c.tensor(3 + part).numel()));
    for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
      const int64_t step = i / width % steps, head = i / width / steps % heads;
      const int64_t batch = i / width / steps / heads;
      const int64_t column = (part * heads + head) * width + i % width;
      out[i] = (x[(batch * steps + step) * t.dims[2] + column] + bias[column]) * scale;
    }
    put(c.tensor(3 + part), out);
  }
  return ACL_SUCCESS;
}

// (cost [R, C], tol, p): Megatron's Sinkhorn normalisation of exp(cost).
aclnnStatus check_sinkhorn(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 2, 2));
  return expect_same_shape(c, 2, 0);
}
aclError run_sinkhorn(Call& c) {
  const int64_t rows = c.tensor(0).dims[0], cols = c.tensor(0).dims[1];
  const double tol = c.null(1) ? 1e-4 : c.scalar(1).real(), eps = 1e-8;
  Numbers x = numbers(c.tensor(0)), d0(rows, 1), d1(cols, 1);
  for (double& v : x) v = std::exp(v);
  constexpr int kMost = 10000;
  double error = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kMost && error > tol && !x.empty(); ++step) {
    const Numbers before = d1;
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < cols; ++k) sum += d1[k] * x[r * cols + k];
      d0[r] = 1 / (static_cast<double>(rows) * (sum + eps));
    }
    error = 0;
    for (int64_t k = 0; k < cols; ++k) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += d0[r] * x[r * cols + k];
      d1[k] = 1 / (static_cast<double>(cols) * (sum + eps));
      error += std::fabs(before[k] - d1[k]) / static_cast<double>(cols);
    }
  }
  for (int64_t i = 0; i < rows * cols; ++i) x[i] *= d0[i / cols] * d1[i % cols];
  put(c.tensor(2), x);
  return ACL_SUCCESS;
}

// (x, scale, bias, axis, numAxes, scaleFromBlob, y): Caffe's Scale: scale's dims stand from axis on.
aclnnStatus check_scale(Call& c) {
  const Tensor &x = c.tensor(0), &scale = c.tensor(1);
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(3);
  ACL_RETURN_IF_FAILED(expect_axis(c, 3, axis, x.rank));
  bool fits = scale.numel() == 1 || axis + scale.rank <= x.rank;
  for (int d = 0; fits && scale.numel() != 1 && d < scale.rank; ++d) {
    fits = scale.dims[d] == x.dims[axis + d];
  }
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of scale doesn't fit %s of x from dim %lld on.",
                  shape_text(scale), shape_text(x), static_cast<long long>(axis));
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, 2, scale.numel()));
  return expect_same_shape(c, 6, 0);
}
aclError run_scale(Call& c) {
  Numbers x = numbers(c.tensor(0));
  const Numbers scale = numbers(c.tensor(1));
  const Numbers bias = numbers_or(c.maybe(2), static_cast<int64_t>(scale.size()), 0);
  const int behind = c.tensor(0).rank - static_cast<int>(c.get<int64_t>()) - c.tensor(1).rank;
  const size_t inner = static_cast<size_t>(tail_numel(c.tensor(0), std::max(0, behind)));
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t k = i / inner % scale.size();
    x[i] = x[i] * scale[k] + bias[k];
  }
  put(c.tensor(6), x);
  return ACL_SUCCESS;
}

// (cycles): spends time on the stream, of which there is none to account for here.
aclError run_sleep(Call&) { return ACL_SUCCESS; }

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnScaledMaskedSoftmax, (check_masked_softmax<0, 4>), run_masked_softmax)
ACLNN_OP(aclnnScaledMaskedSoftmaxBackward, (check_masked_softmax<1, 5>), run_masked_softmax_grad)
ACLNN_OP(aclnnMaskedSoftmaxWithRelPosBias, check_swin_softmax, run_swin_softmax)
ACLNN_OP(aclnnRReluWithNoise, check_rrelu<7>, run_rrelu<7>)
ACLNN_OP(aclnnInplaceRReluWithNoise, check_rrelu<0>, run_rrelu<0>)
ACLNN_OP(aclnnSignBitsPack, check_pack, run_pack)
ACLNN_OP(aclnnSignBitsUnpack, check_unpack, run_unpack)
ACLNN_OP(aclnnExpSegsum, check_segsum, run_segsum)
ACLNN_OP(aclnnExpSegsumBackward, check_segsum_grad, run_segsum_grad)
ACLNN_OP(aclnnTransformBiasRescaleQkv, check_qkv, run_qkv)
ACLNN_OP(aclnnSinkhorn, check_sinkhorn, run_sinkhorn)
ACLNN_OP(aclnnScale, check_scale, run_scale)
ACLNN_OP(aclnnSleep, nullptr, run_sleep)
