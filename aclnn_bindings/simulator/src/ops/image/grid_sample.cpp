// Sampling of images and volumes at the places of a grid, and the gradients by image and grid.
#include "params/image.h"
#include "loops/given.h"
#include "loops/rows.h"
#include "loops/stage.h"

namespace aclsim {
namespace {

enum Interpolation : int64_t { kLinear = 0, kNearest = 1, kCubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

struct Plan {
  int64_t n, channels, dims, interpolation, padding;
  int64_t in[3], out_space;  // sizes from the outermost spatial dim
  bool align;

  int64_t in_space() const { return in[0] * in[1] * in[2]; }
};

// Up to four inputs along a dim, -1 where outside; weights, and their slopes by the grid's value.
template <class C>
struct Taps {
  int count;
  int64_t at[4];
  C weight[4], slope[4];
};

template <class C>
ACL_INLINE C clip(C x, int64_t size, C& slope) {
  if (!(x > C(0))) {
    slope = 0;
    return 0;
  }
  if (x >= C(size - 1)) {
    slope = 0;
    return C(size - 1);
  }
  return x;
}
template <class C>
ACL_INLINE C reflect(C x, int64_t twice_low, int64_t twice_high, C& slope) {
  if (twice_low == twice_high) {
    slope = 0;
    return 0;
  }
  const C low = C(twice_low) / 2, span = C(twice_high - twice_low) / 2;
  C distance = x - low;
  if (distance < 0) {
    distance = -distance;
    slope = -slope;
  }
  const C extra = std::fmod(distance, span);
  if (std::fmod(std::floor(distance / span), C(2)) == C(0)) return extra + low;
  slope = -slope;
  return span - extra + low;
}
// A place by the padding mode. Places beyond all integers are moved outside of every image.
template <class C>
ACL_INLINE C padded(const Plan& p, C x, int64_t size, C& slope) {
  if (p.padding == kReflection) {
    x = p.align ? reflect(x, 0, 2 * (size - 1), slope) : reflect(x, -1, 2 * size - 1, slope);
  }
  if (p.padding != kZeros) x = clip(x, size, slope);
  return x > C(-1e9) && x < C(1e9) ? x : C(-100);
}
ACL_INLINE int64_t inside(int64_t i, int64_t size) { return i >= 0 && i < size ? i : -1; }

template <class C>
ACL_INLINE void fill_cubic(const Plan& p, C place, C slope, int64_t size, Taps<C>& taps) {
  const C a = C(-0.75), base = std::floor(place), t = place - base;
  taps.count = 4;
  for (int k = 0; k < 4; ++k) {
    const C x = std::fabs(t + C(1 - k)), sign = t + C(1 - k) < 0 ? C(-1) : C(1);
    const bool near = k == 1 || k == 2;
    taps.weight[k] =
        near ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    const C by_x = near ? (3 * (a + 2) * x - 2 * (a + 3)) * x : (3 * a * x - 10 * a) * x + 8 * a;
    taps.slope[k] = by_x * sign * slope;
    C ignored = 1;
    taps.at[k] = inside(static_cast<int64_t>(padded(p, base + C(k - 1), size, ignored)), size);
  }
}
template <class C>
ACL_INLINE void fill(const Plan& p, C value, int64_t size, Taps<C>& taps) {
  C slope = C(p.align ? size - 1 : size) / 2;
  C place = p.align ? (value + 1) / 2 * C(size - 1) : ((value + 1) * C(size) - 1) / 2;
  if (p.interpolation == kCubic) {
    return fill_cubic(p, place > C(-1e9) && place < C(1e9) ? place : C(-100), slope, size, taps);
  }
  place = padded(p, place, size, slope);
  if (p.interpolation == kNearest) {
    taps.count = 1;
    taps.at[0] = inside(static_cast<int64_t>(std::nearbyint(place)), size);
    taps.weight[0] = 1;
    taps.slope[0] = 0;
    return;
  }
  const C base = std::floor(place);
  taps.count = 2;
  for (int k = 0; k < 2; ++k) {
    taps.at[k] = inside(static_cast<int64_t>(base) + k, size);
    taps.weight[k] = k == 0 ? 1 - (place - base) : place - base;
    taps.slope[k] = k == 0 ? -slope : slope;
  }
}
// What a place starts from: weights of a place that is no number are none, and 0 times them too.
// Padding first brings a place into the image where it can; cubic weights are of the place given.
template <class C>
ACL_INLINE C start_of(const Plan& p, const C* grid) {
  const bool weighted =
      p.interpolation == kCubic || (p.interpolation == kLinear && p.padding == kZeros);
  const bool finite = std::all_of(grid, grid + p.dims, [](C v) { return std::isfinite(v); });
  return finite || !weighted ? C(0) : std::numeric_limits<C>::quiet_NaN();
}

// The inputs of a run of places: positions in the image, -1 outside, weights, and the weights' slopes
// by each of the grid's values, whose last belongs to the outermost dim. The last index is a place.
constexpr int64_t kPlaces = 64;
template <class C, int Count, int Dims>
struct Run {
  int64_t at[Count][kPlaces];
  C weight[Count][kPlaces], slopes[Dims][Count][kPlaces];
};
template <class C>
struct TapRun {
  int64_t at[4][kPlaces];
  C weight[4][kPlaces], slope[4][kPlaces];
};
constexpr int power(int base, int exponent) {
  return exponent ? base * power(base, exponent - 1) : 1;
}
// Of `stride` values of the grid one, as `fill` does; the commonest way vectorises.
template <class C>
ACL_INLINE void fill_run(const Plan& p, const C* grid, int64_t stride, int64_t n, int64_t size,
                         TapRun<C>& run) {
  if (p.interpolation == kLinear && p.padding == kZeros) {
    const C slope = C(p.align ? size - 1 : size) / 2;
    for (int64_t b = 0; b < n; ++b) {
      const C value = grid[b * stride];
      C place = p.align ? (value + 1) / 2 * C(size - 1) : ((value + 1) * C(size) - 1) / 2;
      place = place > C(-1e9) && place < C(1e9) ? place : C(-100);
      const C base = std::floor(place);
      const auto first = static_cast<int32_t>(base);
      run.at[0][b] = first >= 0 && first < size ? first : -1;
      run.at[1][b] = first >= -1 && first + 1 < size ? first + 1 : -1;
      run.weight[0][b] = 1 - (place - base), run.weight[1][b] = place - base;
      run.slope[0][b] = -slope, run.slope[1][b] = slope;
    }
    return;
  }
  for (int64_t b = 0; b < n; ++b) {
    Taps<C> one;
    fill(p, grid[b * stride], size, one);
    for (int k = 0; k < one.count; ++k) {
      run.at[k][b] = one.at[k], run.weight[k][b] = one.weight[k], run.slope[k][b] = one.slope[k];
    }
  }
}
template <bool kSlopes, int Of, int Dims, class C, int Count>
ACL_INLINE void find_run(const Plan& p, const C* grid, int64_t n, Run<C, Count, Dims>& run) {
  TapRun<C> taps;
  int count = 1;
  for (int d = 0; d < Dims; ++d) {
    fill_run(p, grid + Dims - 1 - d, Dims, n, p.in[d], taps);
    for (int k = Of - 1; k >= 0; --k) {  // the first place last: it holds what all start from
      for (int i = 0, j = k * count; i < count; ++i, ++j) {
        for (int64_t b = 0; b < n; ++b) {
          const int64_t outer = d ? run.at[i][b] : 0, at = taps.at[k][b];
          run.at[j][b] = (outer | at) < 0 ? -1 : outer * p.in[d] + at;
        }
        for (int e = 0; kSlopes && e < Dims; ++e) {
          C* to = run.slopes[Dims - 1 - e][j];
          const C* from = run.slopes[Dims - 1 - e][i];
          const C* factor = e == d ? taps.slope[k] : taps.weight[k];
          for (int64_t b = 0; b < n; ++b) to[b] = d ? from[b] * factor[b] : factor[b];
        }
        for (int64_t b = 0; b < n; ++b) {
          run.weight[j][b] = d ? run.weight[i][b] * taps.weight[k][b] : taps.weight[k][b];
        }
      }
    }
    count *= Of;
  }
}
template <int Of, int Dims, class C>
ACL_VECTOR void sample_run(const Plan& p, C* y, const C* x, const C* grid, int64_t n) {
  constexpr int kCount = power(Of, Dims);
  Run<C, kCount, Dims> run;
  find_run<false, Of>(p, grid, n, run);
  C start[kPlaces], sum[kPlaces];
  for (int64_t b = 0; b < n; ++b) start[b] = start_of(p, grid + b * Dims);
  for (int64_t k = 0; k < p.channels; ++k, x += p.in_space(), y += p.out_space) {
    std::copy_n(start, n, sum);
    for (int j = 0; j < kCount; ++j) {
      for (int64_t b = 0; b < n; ++b) {
        const int64_t at = run.at[j][b];
        const C more = sum[b] + run.weight[j][b] * x[at < 0 ? 0 : at];
        sum[b] = at < 0 ? sum[b] : more;
      }
    }
    std::copy_n(sum, n, y);
  }
}
// f(first place, its image, how many) for runs of places of one image each.
template <class F>
void each_places(const Plan& p, int64_t begin, int64_t end, F f) {
  for (int64_t i = begin; i < end;) {
    const int64_t n = std::min({kPlaces, end - i, p.out_space - i % p.out_space});
    f(i, i / p.out_space, n);
    i += n;
  }
}
template <int Of, int Dims, class C>
void sample(const Plan& p, C* y, const C* x, const C* grid) {
  const int64_t grain = std::max<int64_t>(1, 4096 / (p.channels + 1));
  parallel_for(p.n * p.out_space, grain, [&](int64_t begin, int64_t end) {
    each_places(p, begin, end, [&](int64_t i, int64_t image, int64_t n) {
      sample_run<Of, Dims>(p, y + image * p.channels * p.out_space + i % p.out_space,
                           x + image * p.channels * p.in_space(), grid + i * Dims, n);
    });
  });
}

// What a run of places owes the grid, in double: the terms of opposite corners cancel.
template <int Of, int Dims, class C, int Count>
ACL_VECTOR void grid_run(double (*sums)[kPlaces], const Run<C, Count, Dims>& run, const C* g,
                         const C* x, int64_t n) {
  for (int j = 0; j < Count; ++j) {
    for (int d = 0; d < Dims; ++d) {
      for (int64_t b = 0; b < n; ++b) {
        const int64_t at = run.at[j][b];
        const double by_slope = double(run.slopes[d][j][b]) * g[b];
        const double more = sums[d][b] + by_slope * x[at < 0 ? 0 : at];
        sums[d][b] = at < 0 ? sums[d][b] : more;
      }
    }
  }
}
template <int Of, int Dims, class C>
ACL_VECTOR void find_slopes(const Plan& p, const C* grid, int64_t n,
                            Run<C, power(Of, Dims), Dims>& run) {
  find_run<true, Of>(p, grid, n, run);
}
template <int Of, int Dims, class C>
void sample_grad(const Plan& p, C* gx, C* gg, const C* g, const C* x, const C* grid) {
  constexpr int kCount = power(Of, Dims);
  // Places of one image add to the same inputs: threads take images.
  parallel_for(p.n, 1, [&](int64_t begin, int64_t end) {
    const int64_t size = p.channels * p.in_space();
    Run<C, kCount, Dims> run;
    if (gx) std::fill(gx + begin * size, gx + end * size, C(0));
    each_places(p, begin * p.out_space, end * p.out_space, [&](int64_t i, int64_t image, int64_t n) {
      double sums[Dims][kPlaces] = {};
      if constexpr (Of == 4) {
        find_run<true, Of>(p, grid + i * Dims, n, run);  // its weights without fused products
      } else {
        find_slopes<Of, Dims>(p, grid + i * Dims, n, run);
      }
      for (int64_t k = image * p.channels; k < (image + 1) * p.channels; ++k) {
        const C* up = g + k * p.out_space + i % p.out_space;
        if (gg) grid_run<Of>(sums, run, up, x + k * p.in_space(), n);
        C* plane = gx + (gx ? k * p.in_space() : 0);
        for (int64_t b = 0; gx && b < n; ++b) {
          for (int j = 0; j < kCount; ++j) {
            if (run.at[j][b] >= 0) plane[run.at[j][b]] += run.weight[j][b] * up[b];
          }
        }
      }
      for (int64_t b = 0; gg && b < n; ++b) {
        for (int d = 0; d < Dims; ++d) gg[(i + b) * Dims + d] = C(sums[d][b]);
      }
    });
  });
}
// f(how many inputs along a dim, how many dims) as constants.
template <class F>
void with_taps(const Plan& p, F f) {
  const auto go = [&](auto taps) {
    if (p.dims == 2) return f(taps, std::integral_constant<int, 2>{});
    if constexpr (taps < 4) f(taps, std::integral_constant<int, 3>{});
  };
  switch (p.interpolation) {
    case kNearest: return go(std::integral_constant<int, 1>{});
    case kLinear: return go(std::integral_constant<int, 2>{});
    default: return go(std::integral_constant<int, 4>{});
  }
}

// (input, grid, interpolationMode, paddingMode, alignCorners) from `first`; `result` is the sampled
// shape.
template <int Dims>
aclnnStatus plan_of(Call& c, int first, Shape& result) {
  const Tensor &x = c.tensor(first), &grid = c.tensor(first + 1);
  bool fits = x.rank == Dims + 2 && grid.rank == Dims + 2 && grid.dims[0] == x.dims[0] &&
              grid.dims[Dims + 1] == Dims;
  for (int i = 2; fits && i < x.rank; ++i) fits = x.dims[i] > 0;
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "input of shape %s and grid of shape %s don't fit: expected %d dims, the same "
                  "batch and %d values per place.",
                  shape_text(x), shape_text(grid), Dims + 2, Dims);
  }
  Plan& p = c.make<Plan>();
  p.n = x.dims[0], p.channels = x.dims[1], p.dims = Dims;
  p.interpolation = c.integer(first + 2), p.padding = c.integer(first + 3);
  p.align = c.flag(first + 4);
  if (p.interpolation < 0 || p.interpolation > (Dims == 2 ? kCubic : kNearest) || p.padding < 0 ||
      p.padding > kReflection) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "No interpolationMode %lld with paddingMode %lld.",
                  static_cast<long long>(p.interpolation), static_cast<long long>(p.padding));
  }
  result = shape_of(x);
  p.out_space = p.in[2] = 1;
  for (int i = 0; i < Dims; ++i) {
    p.in[i] = x.dims[2 + i];
    result.dims[2 + i] = grid.dims[1 + i];
    p.out_space *= grid.dims[1 + i];
  }
  c.workspace_size = stage_bytes(c, compute_dtype(x));
  return ACLNN_SUCCESS;
}
template <int Dims>
aclnnStatus check_sample(Call& c) {
  using P = params::GridSampler2D;

  Shape result;
  ACL_RETURN_IF_FAILED(plan_of<Dims>(c, P::input, result));
  return expect_shape(c, P::out, result);
}
void run_sample(Call& c) {
  using P = params::GridSampler2D;

  with_float(compute_dtype(c.tensor(P::input)), [&](auto tag) {
    using C = typename decltype(tag)::type;
    Stage<C> stage(c);
    const C *x = stage.in(c.tensor(P::input)), *grid = stage.in(c.tensor(P::grid));
    C* y = stage.out(c.tensor(P::out));
    with_taps(c.get<Plan>(), [&](auto taps, auto dims) {
      sample<taps, dims>(c.get<Plan>(), y, x, grid);
    });
    stage.done();
  });
}
template <int Dims>
aclnnStatus check_sample_grad(Call& c) {
  using P = params::GridSampler2DBackward;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradOutput, P::input, P::grid, P::outputMask}));
  Shape result;
  ACL_RETURN_IF_FAILED(plan_of<Dims>(c, P::input, result));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::gradOutput, result));
  ACL_RETURN_IF_FAILED(expect_masked(c, P::outputMask, 2, P::inputGrad));
  if (masked(c, P::outputMask, 0, P::inputGrad))
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::inputGrad, P::input));
  if (masked(c, P::outputMask, 1, P::gridGrad))
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gridGrad, P::grid));
  return ACLNN_SUCCESS;
}
void run_sample_grad(Call& c) {
  using P = params::GridSampler2DBackward;

  with_float(compute_dtype(c.tensor(P::input)), [&](auto tag) {
    using C = typename decltype(tag)::type;
    Stage<C> stage(c);
    const C *g = stage.in(c.tensor(P::gradOutput)), *x = stage.in(c.tensor(P::input)),
            *grid = stage.in(c.tensor(P::grid));
    C *gx = stage.out(masked(c, P::outputMask, 0, P::inputGrad)),
      *gg = stage.out(masked(c, P::outputMask, 1, P::gridGrad));
    with_taps(c.get<Plan>(), [&](auto taps, auto dims) {
      sample_grad<taps, dims>(c.get<Plan>(), gx, gg, g, x, grid);
    });
    stage.done();
  });
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnGridSampler2D, check_sample<2>, run_sample)
ACLNN_OP(aclnnGridSampler3D, check_sample<3>, run_sample)
ACLNN_OP_FLAGS(aclnnGridSampler2DBackward, check_sample_grad<2>, run_sample_grad, kOwnNulls)
ACLNN_OP_FLAGS(aclnnGridSampler3DBackward, check_sample_grad<3>, run_sample_grad, kOwnNulls)
