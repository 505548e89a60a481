// Norms with statistics over space: batch, group and instance norm, and their gradients. Data is
// [N, C, S]; a set of elements that share a mean is a number of runs of S elements.
#include "params/norm.h"
#include "loops/given.h"
#include "loops/moments.h"
#include "loops/rows.h"
#include "loops/stage.h"

#include <vector>

namespace aclsim {
namespace {

template <class C>
constexpr int kLanes = 32 / sizeof(C);

// Sums of elements, and of their squared deviations, as torch's kernels for the host have them
// (aten/src/ATen/native/cpu/batch_norm_kernel.cpp): in double along a run.
template <class C>
ACL_VECTOR double run_sum(const C* x, int64_t n) {
  return lane_sum<double>(n, [=](int64_t i) ACL_LAMBDA { return double(x[i]); });
}
template <class C>
ACL_VECTOR double run_squares(const C* x, C mean, int64_t n) {
  return lane_sum<double>(
      n, [=](int64_t i) ACL_LAMBDA { return double((x[i] - mean) * (x[i] - mean)); });
}
// Of points, channels lie side by side: up to so many at a time have sums in the nearest memory.
constexpr int64_t kChunk = 64;
// Sums of each channel over rows, one after the other: in the compute type, long ones in double.
template <bool LONG, class C>
using PointSum = std::conditional_t<LONG, double, C>;
template <class S, class C>
ACL_EXACT void point_sums(S* sums, const C* x, int64_t rows, int64_t step, int64_t n) {
  for (int64_t i = 0; i < rows; ++i, x += step) {
    ACL_IVDEP
    for (int64_t k = 0; k < n; ++k) sums[k] += x[k];
  }
}
// The same of products with the deviations from the means; of their squares without `g`.
template <bool LONG, class C>
ACL_EXACT void point_products(PointSum<LONG, C>* sums, const C* g, const C* x, const C* mean,
                              int64_t rows, int64_t step, int64_t n) {
  for (int64_t i = 0; i < rows; ++i, x += step) {
    ACL_IVDEP
    for (int64_t k = 0; k < n; ++k) {
      const C d = x[k] - mean[k], e = g ? g[i * step + k] : d;
      if constexpr (LONG) {
        sums[k] += d * e;
      } else {
        sums[k] = fused(d, e, sums[k]);
      }
    }
  }
}
template <class C>
ACL_EXACT C lane_products(const C* g, const C* x, C mean, int64_t n) {
  return sum_in_lanes<kLanes<C>, C>(
      n, [=](int64_t i) ACL_LAMBDA { return (x[i] - mean) * g[i]; },
      [=](C sum, int64_t i) ACL_LAMBDA { return fused(x[i] - mean, g[i], sum); });
}
// out = (x - mean) scale + shift.
template <class C>
ACL_VECTOR void run_affine(C* out, const C* x, C mean, C scale, C shift, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale + shift;
}
// The same by one product and sum, as torch has it: x scale + (shift - mean scale).
template <class C>
ACL_EXACT void run_linear(C* out, const C* x, C mean, C scale, C shift, int64_t n) {
  const C rest = fused(-scale, mean, shift);
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = fused(scale, x[i], rest);
}
// The first where a mean far from zero would cancel in the second.
template <class C>
constexpr C kFar = 8;  // deviations
template <class C>
void run_scaled(C* out, const C* x, C mean, C rstd, C weight, C shift, int64_t n) {
  const bool far = std::fabs(mean) * rstd > kFar<C>;
  (far ? run_affine<C> : run_linear<C>)(out, x, mean, rstd * weight, shift, n);
}
// The same for a point of each of `n` channels, which lie side by side; `far` counts deviations.
template <class C>
struct Scales {
  std::vector<C> mean, scale, shift, far;
  explicit Scales(int64_t n) : mean(n), scale(n), shift(n), far(n) {}
};
template <class C>
ACL_VECTOR void points_scaled(C* out, const C* x, const C* mean, const C* scale, const C* shift,
                              const C* far, int64_t n) {
  ACL_IVDEP
  for (int64_t k = 0; k < n; ++k) {
    const C affine = (x[k] - mean[k]) * scale[k] + shift[k];
    const C linear = fused(scale[k], x[k], fused(-scale[k], mean[k], shift[k]));
    out[k] = far[k] > kFar<C> ? affine : linear;
  }
}
template <class C>
ACL_EXACT C point_back(C g, C from_mean, C rstd, C slope, C shift, C w) {
  return (((g - shift) - from_mean * slope) * rstd) * w;
}
// out = (g - shift - (x - mean) slope) rstd w.
template <class C>
ACL_EXACT void run_back(C* out, const C* g, const C* x, C mean, C rstd, C slope, C shift, C w,
                        int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    out[i] = (fused(-(x[i] - mean), slope, g[i] - shift) * rstd) * w;
  }
}

template <class C>
ACL_EXACT void points_back(C* out, const C* g, const C* x, const C* mean, const C* rstd,
                           const C* slope, const C* shift, const C* w, int64_t n) {
  ACL_IVDEP
  for (int64_t k = 0; k < n; ++k) {
    out[k] = (fused(-(x[k] - mean[k]), slope[k], g[k] - shift[k]) * rstd[k]) * w[k];
  }
}

struct Plan {
  int64_t n, channels, space, groups;
};
aclnnStatus plan_of(Call& c, int arg) {
  const Tensor& x = c.tensor(arg);
  if (x.rank < 2) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have 2 to 8 dims, but its shape is %s.",
                  c.name(arg), shape_text(x));
  }
  Plan& p = c.make<Plan>();
  p = {x.dims[0], x.dims[1], 1, 1};
  for (int i = 2; i < x.rank; ++i) p.space *= x.dims[i];
  return ACLNN_SUCCESS;
}
// One number per channel, in one dim; an absent argument passes.
aclnnStatus expect_channels(const Call& c, int arg, int64_t channels) {
  if (c.null(arg) || (c.tensor(arg).rank == 1 && c.tensor(arg).dims[0] == channels)) {
    return ACLNN_SUCCESS;
  }
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape of %s should be [%lld], but current is %s.",
                c.name(arg), static_cast<long long>(channels), shape_text(c.tensor(arg)));
}
// f(i) for i < n in threads, where one call touches `cost` elements.
template <class F>
void each(int64_t n, int64_t cost, F f) {
  parallel_for(n, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, cost)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) f(i);
               });
}

aclnnStatus check_batch_norm(Call& c) {
  using P = params::BatchNorm;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::input, P::output}));
  ACL_RETURN_IF_FAILED(plan_of(c, P::input));
  const Plan& p = c.get<Plan>();
  for (int arg : {P::weight, P::bias, P::runningMean, P::runningVar})
    ACL_RETURN_IF_FAILED(expect_channels(c, arg, p.channels));
  if (c.flag(P::training)) {
    ACL_RETURN_IF_FAILED(expect_given(c, {P::saveMean, P::saveInvstd}));
    for (int arg : {P::saveMean, P::saveInvstd})
      ACL_RETURN_IF_FAILED(expect_channels(c, arg, p.channels));
  } else {
    ACL_RETURN_IF_FAILED(expect_given(c, {P::runningMean, P::runningVar}));
  }
  // Running statistics are read and written.
  c.workspace_size =
      stage_bytes(c, compute_dtype(c.tensor(P::input))) + 2 * stage_round(p.channels * 8);
  return expect_same_shape(c, P::output, P::input);
}
// f(first channel, how many) for parts of the channels, in threads.
template <class F>
void each_chunk(const Plan& p, F f) {
  each((p.channels + kChunk - 1) / kChunk, p.n * kChunk, [&](int64_t part) {
    f(part * kChunk, std::min(kChunk, p.channels - part * kChunk));
  });
}
// Two numbers of each channel: a mean or a sum, and a sum of products.
struct Pairs {
  std::vector<double> first, second;
  explicit Pairs(int64_t n) : first(n), second(n) {}
};
// Means and sums of squared deviations of points alone; with `g` its sums, and those of the
// products with the deviations from `given`.
template <bool LONG, class C>
void point_pairs(const Plan& p, const C* g, const C* x, const C* given, Pairs& of) {
  const auto count = static_cast<PointSum<LONG, C>>(g ? 1 : p.n);
  each_chunk(p, [&](int64_t from, int64_t n) {
    PointSum<LONG, C> sums[kChunk] = {}, products[kChunk] = {};
    C mean[kChunk];
    point_sums(sums, (g ? g : x) + from, p.n, p.channels, n);
    for (int64_t k = 0; k < n; ++k) {
      of.first[from + k] = sums[k] / count;
      mean[k] = g ? given[from + k] : static_cast<C>(of.first[from + k]);
    }
    point_products<LONG>(products, g ? g + from : g, x + from, mean, p.n, p.channels, n);
    std::copy(products, products + n, of.second.begin() + from);
  });
}
template <class C>
Pairs pairs_of(const Plan& p, const C* g, const C* x, const C* given) {
  Pairs of(p.space == 1 ? p.channels : 0);
  if (p.space == 1) {
    (p.n > kLongSum ? point_pairs<true, C> : point_pairs<false, C>)(p, g, x, given, of);
  }
  return of;
}
// Mean and sum of squared deviations of one channel.
template <class C>
void channel_moments(const Plan& p, const C* x, int64_t channel, double& mean, double& squares) {
  double sum = 0;
  squares = 0;
  for (int64_t i = 0; i < p.n; ++i) {
    sum += run_sum(x + (i * p.channels + channel) * p.space, p.space);
  }
  mean = sum / static_cast<double>(p.n * p.space);
  for (int64_t i = 0; i < p.n; ++i) {
    squares += run_squares(x + (i * p.channels + channel) * p.space,
                           static_cast<C>(mean), p.space);
  }
}
template <class C>
void move_running(Call& c, int arg, int64_t channel, double value) {
  using P = params::BatchNorm;

  const Tensor* t = c.maybe(arg);
  if (!t) return;
  const double momentum = c.number(P::momentum);
  const int64_t at = t->offset + channel * t->strides[0];
  const double old = load_one<double>(t->data, t->dtype, at);
  store_one((1 - momentum) * old + momentum * value, t->data, t->dtype, at);
}
template <class C>
void batch_norm(Call& c) {
  using P = params::BatchNorm;

  const Plan& p = c.get<Plan>();
  Stage<C> stage(c);
  const C *x = stage.in(c.tensor(P::input)), *w = stage.in(c.maybe(P::weight)),
          *b = stage.in(c.maybe(P::bias));
  const bool training = c.flag(P::training);
  const C* means = training ? nullptr : stage.in(c.tensor(P::runningMean));
  const C* vars = training ? nullptr : stage.in(c.tensor(P::runningVar));
  C* y = stage.out(c.tensor(P::output));
  C* kept_mean = training ? stage.out(c.tensor(P::saveMean)) : nullptr;
  C* kept_rstd = training ? stage.out(c.tensor(P::saveInvstd)) : nullptr;
  const int64_t count = p.n * p.space;
  Scales<C> of(p.space == 1 ? p.channels : 0);
  const C* none = nullptr;
  const Pairs points = training ? pairs_of(p, none, x, none) : Pairs(0);
  each(p.channels, count, [&](int64_t k) {
    double mean, squares;
    if (training) {
      if (p.space == 1) {
        mean = points.first[k], squares = points.second[k];
      } else {
        channel_moments(p, x, k, mean, squares);
      }
      move_running<C>(c, P::runningMean, k, mean);
      move_running<C>(c, P::runningVar, k, squares / static_cast<double>(count - 1));
    } else {
      mean = means[k];
    }
    const C var = training ? static_cast<C>(squares) / static_cast<C>(count) : vars[k];
    const C rstd = training ? static_cast<C>(1 / std::sqrt(var + c.number(P::eps)))
                            : C(1) / std::sqrt(vars[k] + static_cast<C>(c.number(P::eps)));
    if (training) kept_mean[k] = static_cast<C>(mean);
    if (training) kept_rstd[k] = rstd;
    const C center = static_cast<C>(mean), weight = w ? w[k] : C(1), shift = b ? b[k] : C(0);
    if (p.space == 1) {
      of.mean[k] = center, of.scale[k] = rstd * weight, of.shift[k] = shift;
      of.far[k] = std::fabs(center) * rstd;
      return;
    }
    for (int64_t i = 0; i < p.n; ++i) {
      const int64_t at = (i * p.channels + k) * p.space;
      run_scaled(y + at, x + at, center, rstd, weight, shift, p.space);
    }
  });
  each(p.space == 1 ? p.n : 0, p.channels, [&](int64_t i) {
    points_scaled(y + i * p.channels, x + i * p.channels, of.mean.data(), of.scale.data(),
                  of.shift.data(), of.far.data(), p.channels);
  });
  stage.done();
}
void run_batch_norm(Call& c) {
  using P = params::BatchNorm;

  with_float(c.tensor(P::input).dtype,
             [&](auto tag) { batch_norm<typename decltype(tag)::type>(c); });
}

// (gradOut, input, weight, runningMean, runningVar, saveMean, saveInvstd, training, eps,
// outputMask, gradInput, gradWeight, gradBias); the fast form has a version before the outputs.
template <int Out>
aclnnStatus check_batch_norm_grad(Call& c) {
  using P = params::BatchNormBackward;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradOut, P::input, P::outputMask}));
  ACL_RETURN_IF_FAILED(plan_of(c, P::input));
  const Plan& p = c.get<Plan>();
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradOut, P::input));
  ACL_RETURN_IF_FAILED(expect_masked(c, P::outputMask, 3, Out));
  for (int arg :
       std::initializer_list<int>{P::weight, P::runningMean, P::runningVar, Out + 1, Out + 2})
    ACL_RETURN_IF_FAILED(expect_numel(c, arg, p.channels));
  if (c.flag(P::training)) {
    ACL_RETURN_IF_FAILED(expect_given(c, {P::saveMean, P::saveInvstd}));
    for (int arg : {P::saveMean, P::saveInvstd})
      ACL_RETURN_IF_FAILED(expect_numel(c, arg, p.channels));
  } else {
    ACL_RETURN_IF_FAILED(expect_given(c, {P::runningMean, P::runningVar}));
  }
  c.workspace_size = stage_bytes(c, compute_dtype(c.tensor(P::input)));
  return expect_numel(c, Out, c.tensor(P::input).numel());
}
template <class C, int Out>
void batch_norm_grad(Call& c) {
  using P = params::BatchNormBackward;

  const Plan& p = c.get<Plan>();
  Stage<C> stage(c);
  const bool training = c.flag(P::training);
  const C *g = stage.in(c.tensor(P::gradOut)), *x = stage.in(c.tensor(P::input)),
          *w = stage.in(c.maybe(P::weight)),
          *means = stage.in(c.maybe(training ? P::saveMean : P::runningMean)),
          *spreads = stage.in(c.maybe(training ? P::saveInvstd : P::runningVar));
  C *gx = stage.out(masked(c, P::outputMask, 0, Out)),
    *gw = stage.out(masked(c, P::outputMask, 1, Out + 1)),
    *gb = stage.out(masked(c, P::outputMask, 2, Out + 2));
  const Pairs points = pairs_of(p, g, x, means);
  std::vector<C> rstds(p.space == 1 ? p.channels : 0), slopes(rstds), shifts(rstds),
      weights(rstds);
  each(p.channels, p.n * p.space, [&](int64_t k) {
    double sum = 0, products = 0;
    const C mean = means[k];
    const C rstd = training ? spreads[k]
                            : static_cast<C>(1 / std::sqrt(spreads[k] + c.number(P::eps)));
    if (p.space == 1) {
      sum = points.first[k], products = points.second[k];
    }
    for (int64_t i = 0; p.space > 1 && i < p.n; ++i) {
      const int64_t at = (i * p.channels + k) * p.space;
      sum += sum_of_parts(p.space, [&](int64_t from, int64_t n) {
        return row_sum_of<kLanes<C>>(g + at + from, n);
      });
      products += sum_of_parts(p.space, [&](int64_t from, int64_t n) {
        return lane_products(g + at + from, x + at + from, mean, n);
      });
    }
    if (gw) gw[k] = static_cast<C>(products * rstd);
    if (gb) gb[k] = static_cast<C>(sum);
    const C n = static_cast<C>(p.n * p.space);
    const C slope = training ? ((static_cast<C>(products) * rstd) * rstd) / n : C(0);
    const C shift = training ? static_cast<C>(sum / static_cast<double>(n)) : C(0);
    if (p.space == 1) {
      rstds[k] = rstd, slopes[k] = slope, shifts[k] = shift, weights[k] = w ? w[k] : C(1);
      return;
    }
    for (int64_t i = 0; gx && i < p.n; ++i) {
      const int64_t at = (i * p.channels + k) * p.space;
      run_back(gx + at, g + at, x + at, mean, rstd, slope, shift, w ? w[k] : C(1), p.space);
    }
  });
  // Of points alone, channels after the last whole vector have nothing fused.
  const int64_t whole = p.channels / kLanes<C> * kLanes<C>;
  each(p.space == 1 && gx ? p.n : 0, p.channels, [&](int64_t i) {
    const int64_t at = i * p.channels;
    points_back(gx + at, g + at, x + at, means, rstds.data(), slopes.data(), shifts.data(),
                weights.data(), whole);
    for (int64_t k = whole; k < p.channels; ++k) {
      gx[at + k] = point_back(g[at + k], x[at + k] - means[k], rstds[k], slopes[k], shifts[k],
                              weights[k]);
    }
  });
  stage.done();
}
template <int Out>
void run_batch_norm_grad(Call& c) {
  using P = params::BatchNormBackward;

  with_float(c.tensor(P::input).dtype,
             [&](auto tag) { batch_norm_grad<typename decltype(tag)::type, Out>(c); });
}

// Group norm: self is anything of N * C * HxW elements.
aclnnStatus plan_groups(Call& c, int arg, int64_t n, int64_t channels, int64_t space,
                        int64_t groups) {
  const Tensor& x = c.tensor(arg);
  if (groups <= 0 || channels % groups != 0 || n * channels * space != x.numel()) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "N %lld, C %lld, HxW %lld and group %lld do not fit %s of shape %s: N * C * HxW "
                  "should be its elements, and group should divide C.",
                  static_cast<long long>(n), static_cast<long long>(channels),
                  static_cast<long long>(space), static_cast<long long>(groups), c.name(arg),
                  shape_text(x));
  }
  c.make<Plan>() = {n, channels, space, groups};
  return ACLNN_SUCCESS;
}
// (x, gamma, beta, then at 3 the number of groups, or N, C, HxW and it, or a data format).
enum class After : uint8_t { Nothing, Silu, SiluIfFlag };
template <int Group, int Eps, int Out, After after, bool Variance = false>
struct GroupNorm {
  static aclnnStatus check(Call& c) {
    using P = params::GroupNorm;

    ACL_RETURN_IF_FAILED(expect_given(c, {P::self, Out, Out + 1, Out + 2}));
    if (Group < 0 && std::strcmp(c.text(params::InstanceNorm::dataFormat)
                                     ? c.text(params::InstanceNorm::dataFormat)
                                     : "",
                                 "NCHW") != 0) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "dataFormat should be NCHW, but is %s.",
                    c.text(params::InstanceNorm::dataFormat)
                        ? c.text(params::InstanceNorm::dataFormat)
                        : "null");
    }
    if (Group == 6) {
      ACL_RETURN_IF_FAILED(plan_groups(c, P::self, c.integer(P::N), c.integer(P::C),
                                       c.integer(P::HxW), c.integer(P::group)));
    } else {
      ACL_RETURN_IF_FAILED(plan_of(c, P::self));
      const Plan p = c.get<Plan>();
      const int64_t groups = Group < 0 ? p.channels : c.integer(Group < 0 ? 0 : Group);
      ACL_RETURN_IF_FAILED(plan_groups(c, P::self, p.n, p.channels, p.space, groups));
    }
    const Plan& p = c.get<Plan>();
    for (int arg : {P::gamma, P::beta}) ACL_RETURN_IF_FAILED(expect_numel(c, arg, p.channels));
    for (int arg : {Out + 1, Out + 2}) ACL_RETURN_IF_FAILED(expect_numel(c, arg, p.n * p.groups));
    c.workspace_size = stage_bytes(c, compute_dtype(c.tensor(P::self)));
    return expect_same_shape(c, Out, P::self);
  }
  static aclError run(Call& c) {
    using P = params::GroupNorm;

    with_float(c.tensor(P::self).dtype, [&](auto tag) { apply<typename decltype(tag)::type>(c); });
    return ACL_SUCCESS;
  }
  template <class C>
  static void apply(Call& c) {
    using P = params::GroupNorm;

    const Plan& p = c.get<Plan>();
    Stage<C> stage(c);
    const C *x = stage.in(c.tensor(P::self)), *w = stage.in(c.maybe(P::gamma)),
            *b = stage.in(c.maybe(P::beta));
    C *y = stage.out(c.tensor(Out)), *means = stage.out(c.tensor(Out + 1)),
      *spreads = stage.out(c.tensor(Out + 2));
    const int64_t members = p.channels / p.groups, width = members * p.space;
    const bool silu = after == After::Silu || (after == After::SiluIfFlag &&
                                               c.flag(after == After::SiluIfFlag ? Eps + 1 : 0));
    each(p.n * p.groups, width, [&](int64_t i) {
      const C* from = x + i * width;
      const auto [mean, var] = Moments<C>::of(from, width);
      const C rstd = static_cast<C>(1 / std::sqrt(std::max(var, C(0)) + c.number(Eps)));
      means[i] = mean;
      spreads[i] = Variance ? var : rstd;
      for (int64_t m = 0; m < members; ++m) {
        const int64_t k = i % p.groups * members + m;
        C* to = y + i * width + m * p.space;
        if (w || b) {
          run_scaled(to, from + m * p.space, mean, rstd, w ? w[k] : C(1), b ? b[k] : C(0),
                     p.space);
        } else {
          run_affine(to, from + m * p.space, mean, rstd, C(0), p.space);
        }
        for (int64_t s = 0; silu && s < p.space; ++s) to[s] = to[s] / (C(1) + std::exp(-to[s]));
      }
    });
    stage.done();
  }
};

aclnnStatus check_group_norm_grad(Call& c) {
  using P = params::GroupNormBackward;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradOut, P::input, P::mean, P::rstd, P::outputMask}));
  ACL_RETURN_IF_FAILED(plan_groups(c, P::input, c.integer(P::N), c.integer(P::C), c.integer(P::HxW),
                                   c.integer(P::group)));
  const Plan& p = c.get<Plan>();
  ACL_RETURN_IF_FAILED(expect_masked(c, P::outputMask, 3, P::gradInput));
  for (int arg : {P::gradOut, P::gradInput})
    ACL_RETURN_IF_FAILED(expect_numel(c, arg, c.tensor(P::input).numel()));
  for (int arg : {P::mean, P::rstd}) ACL_RETURN_IF_FAILED(expect_numel(c, arg, p.n * p.groups));
  for (int arg : {P::gamma, P::gradGammaOut, P::gradBetaOut})
    ACL_RETURN_IF_FAILED(expect_numel(c, arg, p.channels));
  // Sums of g and of g (x - mean) for every sample and channel, in double.
  c.workspace_size = stage_bytes(c, compute_dtype(c.tensor(P::input))) +
                     2 * stage_round(static_cast<uint64_t>(p.n * p.channels) * 8);
  return ACLNN_SUCCESS;
}
template <class C>
struct Group {
  const C *sums, *products, *weights;
  C mean, rstd;
  int64_t members, space;
};
template <class C>
ACL_EXACT void weighted_sums(C& sum, C& product, const Group<C>& p) {
  constexpr int W = kLanes<C>;
  C s[W] = {}, d[W] = {};
  int64_t i = 0;
  const auto weight = [&](int64_t k) { return p.weights ? p.weights[k] : C(1); };
  for (; i + W <= p.members; i += W) {
    for (int l = 0; l < W; ++l) {
      d[l] = fused(p.products[i + l], weight(i + l), d[l]);
      s[l] = fused(p.sums[i + l], weight(i + l), s[l]);
    }
  }
  sum = product = 0;
  for (int l = 0; l < W; ++l) sum += s[l], product += d[l];
  for (; i < p.members; ++i) {
    product += p.products[i] * weight(i);
    sum += p.sums[i] * weight(i);
  }
}
// The gradient by x of one group: c1 g + c2 x + c3 (torch's group_norm_kernel.cpp).
template <class C>
ACL_EXACT void group_back(C* gx, const C* g, const C* x, const Group<C>& p, int64_t at) {
  C product, sum;
  const C share = C(1) / static_cast<C>(p.members * p.space);
  weighted_sums(sum, product, p);
  const C second = (((fused(sum, p.mean, -product) * p.rstd) * p.rstd) * p.rstd) * share;
  const C third = fused(-(sum * p.rstd), share, -second * p.mean);
  for (int64_t m = 0; m < p.members; ++m) {
    const C first = p.rstd * (p.weights ? p.weights[m] : C(1));
    ACL_IVDEP
    for (int64_t i = at + m * p.space; i < at + (m + 1) * p.space; ++i) {
      gx[i] = fused(first, g[i], second * x[i]) + third;
    }
  }
}
template <class C>
void group_norm_grad(Call& c) {
  using P = params::GroupNormBackward;

  const Plan& p = c.get<Plan>();
  Stage<C> stage(c);
  const C *g = stage.in(c.tensor(P::gradOut)), *x = stage.in(c.tensor(P::input)),
          *means = stage.in(c.tensor(P::mean)), *rstds = stage.in(c.tensor(P::rstd)),
          *w = stage.in(c.maybe(P::gamma));
  C *gx = stage.out(masked(c, P::outputMask, 0, P::gradInput)),
    *gw = stage.out(masked(c, P::outputMask, 1, P::gradGammaOut)),
    *gb = stage.out(masked(c, P::outputMask, 2, P::gradBetaOut));
  const int64_t planes = p.n * p.channels, members = p.channels / p.groups;
  C* sums = stage.template take<C>(planes);
  C* products = stage.template take<C>(planes);
  each(planes, p.space, [&](int64_t k) {
    sums[k] = row_sum_of<kLanes<C>>(g + k * p.space, p.space);
    products[k] = row_product_of<kLanes<C>>(g + k * p.space, x + k * p.space, p.space);
  });
  for (int64_t k = 0; k < p.channels; ++k) {
    C sum = 0, product = 0;
    for (int64_t i = 0; i < p.n; ++i) {
      const int64_t plane = i * p.channels + k, group = plane / members;
      product = fused(fused(-sums[plane], means[group], products[plane]), rstds[group], product);
      sum += sums[plane];
    }
    if (gw) gw[k] = product;
    if (gb) gb[k] = sum;
  }
  each(gx ? p.n * p.groups : 0, members * p.space, [&](int64_t i) {
    const C* weights = w ? w + i % p.groups * members : nullptr;
    group_back(gx, g, x, Group<C>{sums + i * members, products + i * members, weights, means[i],
                                  rstds[i], members, p.space}, i * members * p.space);
  });
  stage.done();
}
void run_group_norm_grad(Call& c) {
  using P = params::GroupNormBackward;

  with_float(c.tensor(P::input).dtype,
             [&](auto tag) { group_norm_grad<typename decltype(tag)::type>(c); });
}

}  // namespace
}  // namespace aclsim

#define ACLNN_GROUP_NORM(op, ...) \
  ACLNN_OP_FLAGS(op, (GroupNorm<__VA_ARGS__>::check), (GroupNorm<__VA_ARGS__>::run), kOwnNulls)
ACLNN_OP_FLAGS(aclnnBatchNorm, check_batch_norm, run_batch_norm, kOwnNulls)
ACLNN_OP_FLAGS(aclnnBatchNormBackward, check_batch_norm_grad<params::BatchNormBackward::gradInput>,
               run_batch_norm_grad<params::BatchNormBackward::gradInput>, kOwnNulls)
ACLNN_OP_FLAGS(aclnnFastBatchNormBackward,
               check_batch_norm_grad<params::FastBatchNormBackward::gradInput>,
               run_batch_norm_grad<params::FastBatchNormBackward::gradInput>, kOwnNulls)
ACLNN_GROUP_NORM(aclnnGroupNorm, params::GroupNorm::group, params::GroupNorm::eps,
                 params::GroupNorm::out, After::Nothing)
ACLNN_GROUP_NORM(aclnnGroupNormSilu, params::GroupNormSilu::group, params::GroupNormSilu::eps,
                 params::GroupNormSilu::out, After::Silu)
ACLNN_GROUP_NORM(aclnnGroupNormSiluV2, params::GroupNormSiluV2::group, params::GroupNormSiluV2::eps,
                 params::GroupNormSiluV2::out, After::SiluIfFlag)
ACLNN_GROUP_NORM(aclnnInstanceNorm, -1, params::InstanceNorm::eps, params::InstanceNorm::y,
                 After::Nothing, true)
ACLNN_OP_FLAGS(aclnnGroupNormBackward, check_group_norm_grad, run_group_norm_grad, kOwnNulls)
