// Resampling of one to three spatial dims: nearest, linear, cubic and their antialiased forms, and
// the gradients. Every output along a dim is a weighted sum of a few inputs along that dim.
#include "params/resize.h"
#include "loops/given.h"
#include "loops/rows.h"
#include "loops/stage.h"

namespace aclsim {
namespace {

enum class Kind : uint8_t { Nearest, NearestExact, Linear, Cubic, LinearAA, CubicAA };

// One dim. A scale above 0 is the caller's ratio of sizes, out to in.
struct Axis {
  int64_t in, out;
  double scale;
};
struct Plan {
  int64_t planes;
  Axis axes[3];
  bool align;

  int64_t in_space() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t out_space() const { return axes[0].out * axes[1].out * axes[2].out; }
};

template <class C>
C cubic_near(C x, C a) {  // |x| <= 1
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <class C>
C cubic_far(C x, C a) {  // 1 < |x| < 2
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// The inputs of every output along a dim, and their weights.
template <class C>
class Taps {
 public:
  Taps(const Axis& a, Kind kind, bool align)
      : axis_(a),
        kind_(kind),
        align_(align),
        count_(taps_of()),
        at_(a.out * count_),
        weights_(a.out * count_) {
    for (int64_t o = 0; o < a.out; ++o)
      fill(o, at_.get() + o * count_, weights_.get() + o * count_);
  }
  int64_t count() const { return count_; }
  const int64_t* at(int64_t o) { return at_.get() + o * count_; }
  const C* weights(int64_t o) { return weights_.get() + o * count_; }

 private:
  // Inputs per output.
  C ratio() const {
    if (align_) return axis_.out > 1 ? C(axis_.in - 1) / C(axis_.out - 1) : C(0);
    return axis_.scale > 0 ? static_cast<C>(1 / axis_.scale) : C(axis_.in) / C(axis_.out);
  }
  bool smooth() const { return kind_ == Kind::LinearAA || kind_ == Kind::CubicAA; }
  C support() const {
    const C reach = kind_ == Kind::CubicAA ? C(2) : C(1);
    return ratio() >= C(1) ? reach * ratio() : reach;
  }
  bool trivial() const { return axis_.in == 1 && axis_.out == 1; }
  int64_t taps_of() const {
    if (trivial()) return 1;
    if (smooth()) return static_cast<int64_t>(std::ceil(support())) * 2 + 1;
    return kind_ == Kind::Cubic ? 4 : kind_ == Kind::Linear ? 2 : 1;
  }
  void fill(int64_t o, int64_t* at, C* weights) const {
    if (trivial()) {
      at[0] = 0;
      weights[0] = C(1);
      return;
    }
    if (smooth()) return fill_smooth(o, at, weights);
    if (kind_ == Kind::Cubic) return fill_cubic(o, at, weights);
    if (kind_ == Kind::Linear) return fill_linear(o, at, weights);
    at[0] = nearest(o);
    weights[0] = C(1);
  }
  int64_t nearest(int64_t o) const {
    // In float whatever the dtype, as torch does: the ratio's rounding decides ties.
    const float step = axis_.scale > 0
                           ? static_cast<float>(1 / axis_.scale)
                           : static_cast<float>(axis_.in) / static_cast<float>(axis_.out);
    const float shift = kind_ == Kind::NearestExact ? 0.5f : 0.0f;
    const auto from = static_cast<int64_t>(std::floor((static_cast<float>(o) + shift) * step));
    return std::min(from, axis_.in - 1);
  }
  void fill_linear(int64_t o, int64_t* at, C* weights) const {
    C place = align_ ? ratio() * C(o) : ratio() * (C(o) + C(0.5)) - C(0.5);
    place = std::max(place, C(0));
    at[0] = std::min(static_cast<int64_t>(place), axis_.in - 1);
    at[1] = std::min(at[0] + 1, axis_.in - 1);
    weights[1] = std::min(std::max(place - C(at[0]), C(0)), C(1));
    weights[0] = C(1) - weights[1];
  }
  void fill_cubic(int64_t o, int64_t* at, C* weights) const {
    const C a = C(-0.75), place = align_ ? ratio() * C(o) : ratio() * (C(o) + C(0.5)) - C(0.5);
    const C base = std::floor(place), t = place - base;
    for (int64_t k = 0; k < 4; ++k) {
      at[k] = std::min(std::max(static_cast<int64_t>(base) - 1 + k, int64_t{0}), axis_.in - 1);
    }
    weights[0] = cubic_far(t + 1, a);
    weights[1] = cubic_near(t, a);
    weights[2] = cubic_near(1 - t, a);
    weights[3] = cubic_far(2 - t, a);
  }
  C filter(C x) const {
    x = std::fabs(x);
    if (kind_ == Kind::LinearAA) return x < 1 ? 1 - x : C(0);
    return x < 1 ? cubic_near(x, C(-0.5)) : x < 2 ? cubic_far(x, C(-0.5)) : C(0);
  }
  // The filter, stretched where the image shrinks, over the inputs in its reach.
  void fill_smooth(int64_t o, int64_t* at, C* weights) const {
    const C center = ratio() * (C(o) + C(0.5)), shrink = ratio() >= C(1) ? 1 / ratio() : C(1);
    const auto first = std::max(static_cast<int64_t>(center - support() + C(0.5)), int64_t{0});
    const auto end = std::min(static_cast<int64_t>(center + support() + C(0.5)), axis_.in);
    C sum = 0;
    for (int64_t k = 0; k < count_; ++k) {
      at[k] = std::min(first + k, axis_.in - 1);
      weights[k] = first + k < end ? filter((C(first + k) - center + C(0.5)) * shrink) : C(0);
      sum += weights[k];
    }
    for (int64_t k = 0; k < count_; ++k) weights[k] = sum == C(0) ? C(0) : weights[k] / sum;
  }

  const Axis axis_;
  const Kind kind_;
  const bool align_;
  const int64_t count_;
  Buffer<int64_t> at_;
  Buffer<C> weights_;
};

// f(plane, first element of an output line, that of an input line, its weight, its number) for all
// lines of planes [begin, end).
template <class C, class F>
void each_line(const Plan& p, Taps<C>& deep, Taps<C>& high, int64_t begin, int64_t end, F f) {
  const Axis *a = p.axes, *b = p.axes + 1;
  for (int64_t plane = begin; plane < end; ++plane) {
    for (int64_t d = 0; d < a->out; ++d) {
      for (int64_t h = 0; h < b->out; ++h) {
        for (int64_t i = 0; i < deep.count() * high.count(); ++i) {
          const int64_t k = i / high.count(), l = i % high.count();
          const C weight = deep.weights(d)[k] * high.weights(h)[l];
          const int64_t line = deep.at(d)[k] * b->in + high.at(h)[l];
          f(plane, (d * b->out + h) * p.axes[2].out, line * p.axes[2].in, weight, i);
        }
      }
    }
  }
}
template <class F>
void each_planes(const Plan& p, F f) {
  parallel_for(p.planes, std::max<int64_t>(1, 16384 / (p.in_space() + p.out_space() + 1)), f);
}

template <class C>
ACL_VECTOR void mix_line(C* to, const C* line, C weight, bool first, int64_t n) {
  if (first) {
    ACL_IVDEP
    for (int64_t i = 0; i < n; ++i) to[i] = weight * line[i];
  } else {
    ACL_IVDEP
    for (int64_t i = 0; i < n; ++i) to[i] += weight * line[i];
  }
}
template <class C>
ACL_VECTOR void pick_line(C* to, const C* line, const int64_t* at, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = line[at[i]];
}
template <class C>
ACL_VECTOR void mix_pairs(C* to, const C* line, const int64_t* at, const C* weights, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] = weights[2 * i] * line[at[2 * i]] + weights[2 * i + 1] * line[at[2 * i + 1]];
  }
}
template <class C>
void mix_taps(C* to, const C* line, const int64_t* at, const C* weights, int64_t taps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    C sum = 0;
    for (int64_t k = i * taps; k < (i + 1) * taps; ++k) sum += weights[k] * line[at[k]];
    to[i] = sum;
  }
}
// Lines are mixed first, then their places.
template <class C>
void resample(const Plan& p, Kind kind, C* y, const C* x) {
  Taps<C> deep(p.axes[0], kind, p.align), high(p.axes[1], kind, p.align),
      wide(p.axes[2], kind, p.align);
  const int64_t width = p.axes[2].out, lines = deep.count() * high.count();
  const int64_t* at = wide.at(0);
  const C* weights = wide.weights(0);
  each_planes(p, [&](int64_t begin, int64_t end) {
    Buffer<C> mixed(p.axes[2].in);
    each_line(p, deep, high, begin, end,
              [&](int64_t plane, int64_t to, int64_t from, C weight, int64_t i) {
                const C* line = x + plane * p.in_space() + from;
                C* out = y + plane * p.out_space() + to;
                if (lines > 1) mix_line(mixed.get(), line, weight, i == 0, p.axes[2].in);
                if (i < lines - 1) return;
                if (lines > 1) line = mixed;
                if (wide.count() == 1) {
                  pick_line(out, line, at, width);
                } else if (wide.count() == 2) {
                  mix_pairs(out, line, at, weights, width);
                } else {
                  mix_taps(out, line, at, weights, wide.count(), width);
                }
              });
  });
}
template <int64_t kTaps, class C>
void spread(C* line, const C* up, const int64_t* at, const C* weights, int64_t taps, int64_t n) {
  if (kTaps) taps = kTaps;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = i * taps; k < (i + 1) * taps; ++k) line[at[k]] += weights[k] * up[i];
  }
}
// A line's places first, then its parts of the lines that it came from.
template <class C>
void resample_grad(const Plan& p, Kind kind, C* gx, const C* g) {
  Taps<C> deep(p.axes[0], kind, p.align), high(p.axes[1], kind, p.align),
      wide(p.axes[2], kind, p.align);
  const int64_t width = p.axes[2].out, taps = wide.count();
  const int64_t* at = wide.at(0);
  const C* weights = wide.weights(0);
  each_planes(p, [&](int64_t begin, int64_t end) {
    std::fill(gx + begin * p.in_space(), gx + end * p.in_space(), C(0));
    Buffer<C> whole(p.axes[2].in);
    each_line(p, deep, high, begin, end,
              [&](int64_t plane, int64_t from, int64_t to, C weight, int64_t i) {
                if (i == 0) {
                  const C* up = g + plane * p.out_space() + from;
                  std::fill_n(whole.get(), p.axes[2].in, C(0));
                  const auto run = taps == 2 ? spread<2, C> : taps == 4 ? spread<4, C> : spread<0, C>;
                  run(whole, up, at, weights, taps, width);
                }
                mix_line(gx + plane * p.in_space() + to, whole.get(), weight, false,
                         p.axes[2].in);
              });
  });
}

// Dims of both sides and the attributes of a call; `given` is the int array that repeats the last
// dims of `large`, the upsampled side.
aclnnStatus plan_of(Call& c, int small, int large, int dims, int given, int align, int scales) {
  const Tensor &in = c.tensor(small), &out = c.tensor(large);
  bool fits = in.rank == dims + 2 && out.rank == in.rank && in.dims[0] == out.dims[0] &&
              in.dims[1] == out.dims[1];
  for (int i = 2; fits && i < in.rank; ++i) fits = in.dims[i] > 0 && out.dims[i] > 0;
  if (!fits) {
    return c.fail(
        ACLNN_ERR_PARAM_INVALID,
        "%s and %s should have %d dims, the first two alike and none of the others 0, but "
        "their shapes are %s and %s.",
        c.name(small), c.name(large), dims + 2, shape_text(in), shape_text(out));
  }
  const Span<const int64_t> size = c.ints(given);
  fits = size.size == dims;
  for (int i = 0; fits && i < dims; ++i) fits = size[i] == out.dims[2 + i];
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be the last %d dims of %s, %s.",
                  c.name(given), dims, c.name(large), shape_text(out));
  }
  Plan& p = c.make<Plan>();
  p.planes = in.dims[0] * in.dims[1];
  p.align = align != kNone && c.flag(align);
  for (int i = 0; i < 3; ++i) p.axes[i] = {1, 1, 0};
  for (int i = 0; i < dims; ++i) {
    const double scale = scales == kNone ? 0 : c.number(scales + i);
    p.axes[3 - dims + i] = {in.dims[2 + i], out.dims[2 + i], scale};
  }
  c.workspace_size = stage_bytes(c, compute_dtype(in));
  return ACLNN_SUCCESS;
}
// (self, outputSize, [alignCorners,] [scales...,] out).
template <Kind kind, int Dims, int Align, int Scales, int Out>
struct Upsample {
  static aclnnStatus check(Call& c) {
    using P = params::UpsampleLinear1d;
    return plan_of(c, P::self, Out, Dims, P::outputSize, Align, Scales);
  }
  static aclError run(Call& c) {
    using P = params::UpsampleLinear1d;

    with_float(compute_dtype(c.tensor(P::self)), [&](auto tag) {
      using C = typename decltype(tag)::type;
      Stage<C> stage(c);
      const C* x = stage.in(c.tensor(P::self));
      resample(c.get<Plan>(), kind, stage.out(c.tensor(Out)), x);
      stage.done();
    });
    return ACL_SUCCESS;
  }
};
// (gradOut, outputSize, inputSize, [alignCorners,] scales..., gradInput).
template <Kind kind, int Dims, int Align, int Scales, int Out>
struct UpsampleGrad {
  static aclnnStatus check(Call& c) {
    using P = params::UpsampleLinear1dBackward;

    ACL_RETURN_IF_FAILED(plan_of(c, Out, P::gradOut, Dims, P::outputSize, Align, Scales));
    const Span<const int64_t> size = c.ints(P::inputSize);
    Shape expected;
    expected.rank = static_cast<int>(std::min<int64_t>(size.size, kMaxRank));
    for (int i = 0; i < expected.rank; ++i) expected.dims[i] = size[i];
    return expect_shape(c, Out, expected);
  }
  static aclError run(Call& c) {
    using P = params::UpsampleLinear1dBackward;

    with_float(compute_dtype(c.tensor(P::gradOut)), [&](auto tag) {
      using C = typename decltype(tag)::type;
      Stage<C> stage(c);
      const C* g = stage.in(c.tensor(P::gradOut));
      resample_grad(c.get<Plan>(), kind, stage.out(c.tensor(Out)), g);
      stage.done();
    });
    return ACL_SUCCESS;
  }
};

}  // namespace
}  // namespace aclsim

#define ACLNN_UPSAMPLE(op, kind, dims, align, scales, out)              \
  ACLNN_OP(op, (Upsample<Kind::kind, dims, align, scales, out>::check), \
           (Upsample<Kind::kind, dims, align, scales, out>::run))
#define ACLNN_UPSAMPLE_GRAD(op, kind, dims, align, scales, out)             \
  ACLNN_OP(op, (UpsampleGrad<Kind::kind, dims, align, scales, out>::check), \
           (UpsampleGrad<Kind::kind, dims, align, scales, out>::run))
ACLNN_UPSAMPLE(aclnnUpsampleNearest1d, Nearest, 1, kNone, kNone, params::UpsampleNearest1d::out)
ACLNN_UPSAMPLE(aclnnUpsampleNearest1dV2, Nearest, 1, kNone, params::UpsampleNearest1dV2::scaleL,
               params::UpsampleNearest1dV2::out)
ACLNN_UPSAMPLE(aclnnUpsampleNearest2d, Nearest, 2, kNone, kNone, params::UpsampleNearest2d::out)
ACLNN_UPSAMPLE(aclnnUpsampleNearest2dV2, Nearest, 2, kNone, params::UpsampleNearest2dV2::scalesH,
               params::UpsampleNearest2dV2::out)
ACLNN_UPSAMPLE(aclnnUpsampleNearest3d, Nearest, 3, kNone, params::UpsampleNearest3d::scalesD,
               params::UpsampleNearest3d::out)
ACLNN_UPSAMPLE(aclnnUpsampleNearestExact1d, NearestExact, 1, kNone,
               params::UpsampleNearestExact1d::scales, params::UpsampleNearestExact1d::out)
ACLNN_UPSAMPLE(aclnnUpsampleNearestExact2d, NearestExact, 2, kNone,
               params::UpsampleNearestExact2d::scalesH, params::UpsampleNearestExact2d::out)
ACLNN_UPSAMPLE(aclnnUpsampleNearestExact3d, NearestExact, 3, kNone,
               params::UpsampleNearestExact3d::scalesD, params::UpsampleNearestExact3d::out)
ACLNN_UPSAMPLE(aclnnUpsampleLinear1d, Linear, 1, params::UpsampleLinear1d::alignCorners,
               params::UpsampleLinear1d::scale, params::UpsampleLinear1d::out)
ACLNN_UPSAMPLE(aclnnUpsampleBilinear2d, Linear, 2, params::UpsampleBilinear2d::alignCorners,
               params::UpsampleBilinear2d::scalesH, params::UpsampleBilinear2d::out)
ACLNN_UPSAMPLE(aclnnUpsampleTrilinear3d, Linear, 3, params::UpsampleTrilinear3d::alignCorners,
               params::UpsampleTrilinear3d::scalesD, params::UpsampleTrilinear3d::out)
ACLNN_UPSAMPLE(aclnnUpsampleBicubic2d, Cubic, 2, params::UpsampleBicubic2d::alignCorners,
               params::UpsampleBicubic2d::scalesH, params::UpsampleBicubic2d::out)
ACLNN_UPSAMPLE(aclnnUpsampleBilinear2dAA, LinearAA, 2, params::UpsampleBilinear2dAA::alignCorners,
               params::UpsampleBilinear2dAA::scalesH, params::UpsampleBilinear2dAA::out)
ACLNN_UPSAMPLE(aclnnUpsampleBicubic2dAA, CubicAA, 2, params::UpsampleBicubic2dAA::alignCorners,
               params::UpsampleBicubic2dAA::scalesH, params::UpsampleBicubic2dAA::out)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleNearest1dBackward, Nearest, 1, kNone,
                    params::UpsampleNearest1dBackward::scales,
                    params::UpsampleNearest1dBackward::out)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleNearest2dBackward, Nearest, 2, kNone,
                    params::UpsampleNearest2dBackward::scalesH,
                    params::UpsampleNearest2dBackward::gradInput)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleNearest3dBackward, Nearest, 3, kNone,
                    params::UpsampleNearest3dBackward::scalesD,
                    params::UpsampleNearest3dBackward::gradInput)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleNearestExact1dBackward, NearestExact, 1, kNone,
                    params::UpsampleNearestExact1dBackward::scales,
                    params::UpsampleNearestExact1dBackward::out)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleNearestExact2dBackward, NearestExact, 2, kNone,
                    params::UpsampleNearestExact2dBackward::scalesH,
                    params::UpsampleNearestExact2dBackward::out)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleNearestExact3dBackward, NearestExact, 3, kNone,
                    params::UpsampleNearestExact3dBackward::scalesD,
                    params::UpsampleNearestExact3dBackward::gradInput)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleLinear1dBackward, Linear, 1,
                    params::UpsampleLinear1dBackward::alignCorners,
                    params::UpsampleLinear1dBackward::scales, params::UpsampleLinear1dBackward::out)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleBilinear2dBackward, Linear, 2,
                    params::UpsampleBilinear2dBackward::alignCorners,
                    params::UpsampleBilinear2dBackward::scalesH,
                    params::UpsampleBilinear2dBackward::out)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleBilinear2dBackwardV2, Linear, 2,
                    params::UpsampleBilinear2dBackwardV2::alignCorners,
                    params::UpsampleBilinear2dBackwardV2::scalesH,
                    params::UpsampleBilinear2dBackwardV2::out)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleTrilinear3dBackward, Linear, 3,
                    params::UpsampleTrilinear3dBackward::alignCorners,
                    params::UpsampleTrilinear3dBackward::scalesD,
                    params::UpsampleTrilinear3dBackward::gradInput)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleBicubic2dBackward, Cubic, 2,
                    params::UpsampleBicubic2dBackward::alignCorners,
                    params::UpsampleBicubic2dBackward::scalesH,
                    params::UpsampleBicubic2dBackward::gradInput)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleBilinear2dAABackward, LinearAA, 2,
                    params::UpsampleBilinear2dAABackward::alignCorners,
                    params::UpsampleBilinear2dAABackward::scalesH,
                    params::UpsampleBilinear2dAABackward::out)
ACLNN_UPSAMPLE_GRAD(aclnnUpsampleBicubic2dAAGrad, CubicAA, 2,
                    params::UpsampleBicubic2dAAGrad::alignCorners,
                    params::UpsampleBicubic2dAAGrad::scalesH, params::UpsampleBicubic2dAAGrad::out)
