// Batch normalisation in the pieces that synchronising devices exchange, and quantised.
#include "params/norm.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// f(element, channel) over [N, C, ...] in row-major order.
template <class F>
void each_channel(const Tensor& t, F f) {
  const int64_t channels = t.dims[1], space = tail_numel(t, t.rank - 2), n = t.numel();
  for (int64_t i = 0; i < n; ++i) f(i, i / space % channels);
}
aclnnStatus expect_channels(const Call& c, int of, std::initializer_list<int> arguments) {
  ACL_RETURN_IF_FAILED(expect_rank(c, of, 2, kMaxRank));
  for (int i : arguments) ACL_RETURN_IF_FAILED(expect_dims(c, i, {c.tensor(of).dims[1]}));
  return ACLNN_SUCCESS;
}

aclnnStatus check_stats(Call& c) {
  using P = params::BatchNormStats;
  return expect_channels(c, P::input, {P::mean, P::invstd});
}
void run_stats(Call& c) {
  using P = params::BatchNormStats;

  const Tensor& t = c.tensor(P::input);
  const Numbers x = numbers(t);
  Numbers mean(t.dims[1]), spread(mean.size());
  const double n = mean.empty() ? 1 : static_cast<double>(x.size() / mean.size());
  each_channel(t, [&](int64_t i, int64_t k) { mean[k] += x[i] / n; });
  each_channel(t, [&](int64_t i, int64_t k) { spread[k] += (x[i] - mean[k]) * (x[i] - mean[k]) / n; });
  for (double& v : spread) v = 1 / std::sqrt(v + c.number(P::eps));
  put(c.tensor(P::mean), mean);
  put(c.tensor(P::invstd), spread);
}
aclnnStatus check_elements(Call& c) {
  using P = params::BatchNormElemt;

  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::output, P::input));
  return expect_channels(c, P::input, {P::weight, P::bias, P::mean, P::invstd});
}
void run_elements(Call& c) {
  using P = params::BatchNormElemt;

  const Tensor& t = c.tensor(P::input);
  Numbers x = numbers(t);
  const Numbers w = numbers_or(c.maybe(P::weight), t.dims[1], 1),
                b = numbers_or(c.maybe(P::bias), t.dims[1], 0), mean = numbers(c.tensor(P::mean)),
                invstd = numbers(c.tensor(P::invstd));
  each_channel(t, [&](int64_t i, int64_t k) { x[i] = (x[i] - mean[k]) * invstd[k] * w[k] + b[k]; });
  put(c.tensor(P::output), x);
}
aclnnStatus check_elements_grad(Call& c) {
  using P = params::BatchNormElemtBackward;

  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, P::input, {P::gradOut, P::gradInput}));
  return expect_channels(c, P::input, {P::mean, P::invstd, P::weight, P::sumDy, P::sumDyXmu});
}
void run_elements_grad(Call& c) {
  using P = params::BatchNormElemtBackward;

  const Tensor& t = c.tensor(P::input);
  Numbers g = numbers(c.tensor(P::gradOut));
  const Numbers x = numbers(t), mean = numbers(c.tensor(P::mean)),
                invstd = numbers(c.tensor(P::invstd)),
                w = numbers_or(c.maybe(P::weight), t.dims[1], 1), dy = numbers(c.tensor(P::sumDy)),
                dy_xmu = numbers(c.tensor(P::sumDyXmu)), counts = numbers(c.tensor(P::counter));
  const double n = std::accumulate(counts.begin(), counts.end(), 0.0);
  each_channel(t, [&](int64_t i, int64_t k) {
    const double along = (x[i] - mean[k]) * invstd[k] * invstd[k] * dy_xmu[k] / n;
    g[i] = (g[i] - dy[k] / n - along) * invstd[k] * w[k];
  });
  put(c.tensor(P::gradInput), g);
}
aclnnStatus check_reduce_grad(Call& c) {
  using P = params::BatchNormReduceBackward;

  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradOut, P::input));
  return expect_channels(c, P::input,
                         {P::mean, P::invstd, P::sumDy, P::sumDyXmu, P::gradWeight, P::gradBias});
}
void run_reduce_grad(Call& c) {
  using P = params::BatchNormReduceBackward;

  const Tensor& t = c.tensor(P::input);
  const Numbers g = numbers(c.tensor(P::gradOut)), x = numbers(t),
                mean = numbers(c.tensor(P::mean)), invstd = numbers(c.tensor(P::invstd));
  Numbers dy(t.dims[1]), dy_xmu(dy.size());
  each_channel(t, [&](int64_t i, int64_t k) {
    dy[k] += g[i];
    dy_xmu[k] += g[i] * (x[i] - mean[k]);
  });
  if (c.flag(P::inputG)) {
    put(c.maybe(P::sumDy), dy);
    put(c.maybe(P::sumDyXmu), dy_xmu);
  }
  if (c.flag(P::biasG)) put(c.maybe(P::gradBias), dy);
  for (size_t k = 0; k < dy.size(); ++k) dy_xmu[k] *= invstd[k];
  if (c.flag(P::weightG)) put(c.maybe(P::gradWeight), dy_xmu);
}
aclnnStatus check_sums(Call& c) {
  using P = params::BatchNormReduce;
  return expect_channels(c, P::x, {P::sum, P::squareSum});
}
void run_sums(Call& c) {
  using P = params::BatchNormReduce;

  const Tensor& t = c.tensor(P::x);
  const Numbers x = numbers(t);
  Numbers sum(t.dims[1]), squares(sum.size());
  each_channel(t, [&](int64_t i, int64_t k) {
    sum[k] += x[i];
    squares[k] += x[i] * x[i];
  });
  put(c.tensor(P::sum), sum);
  put(c.tensor(P::squareSum), squares);
}

// Joins statistics of several devices per channel, and moves the running ones: f(device, channel)
// gives count, mean and mean of squared deviations.
struct Moment {
  double count, mean, variance;
};
struct Joining {
  int64_t devices, channels;
  double momentum, eps;
  const Tensor *running_mean, *running_var, *mean, *invstd;
};
template <class F>
void join_stats(const Joining& j, F f) {
  Numbers mean(j.channels), invstd(mean.size());
  Numbers old_mean = j.running_mean ? numbers(*j.running_mean) : Numbers(mean.size()),
          old_var = j.running_var ? numbers(*j.running_var) : Numbers(mean.size());
  for (int64_t k = 0; k < j.channels; ++k) {
    double n = 0, sum = 0, squares = 0;
    for (int64_t d = 0; d < j.devices; ++d) {
      n += f(d, k).count;
      sum += f(d, k).count * f(d, k).mean;
    }
    mean[k] = sum / n;
    for (int64_t d = 0; d < j.devices; ++d) {
      const Moment m = f(d, k);
      squares += m.count * (m.variance + (m.mean - mean[k]) * (m.mean - mean[k]));
    }
    invstd[k] = 1 / std::sqrt(squares / n + j.eps);
    old_mean[k] += j.momentum * (mean[k] - old_mean[k]);
    old_var[k] += j.momentum * (squares / (n - 1) - old_var[k]);
  }
  put(j.running_mean, old_mean);
  put(j.running_var, old_var);
  put(j.mean, mean);
  put(j.invstd, invstd);
}
// (input, mean [D, C], invstd [D, C], runningMean, runningVar, momentum, eps, counts [D], meanAll,
// invstdAll).
aclnnStatus check_gather(Call& c) {
  using P = params::BatchNormGatherStatsWithCounts;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::mean, 2, 2));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::invstd, P::mean));
  ACL_RETURN_IF_FAILED(expect_dims(c, P::counts, {c.tensor(P::mean).dims[0]}));
  for (int i : {P::runningMean, P::runningVar, P::meanAll, P::invstdAll})
    ACL_RETURN_IF_FAILED(expect_dims(c, i, {c.tensor(P::mean).dims[1]}));
  return ACLNN_SUCCESS;
}
void run_gather(Call& c) {
  using P = params::BatchNormGatherStatsWithCounts;

  const Tensor& t = c.tensor(P::mean);
  const Numbers mean = numbers(t), invstd = numbers(c.tensor(P::invstd)),
                counts = numbers(c.tensor(P::counts));
  const Joining j = {t.dims[0],
                     t.dims[1],
                     c.number(P::momentum),
                     c.number(P::eps),
                     c.maybe(P::runningMean),
                     c.maybe(P::runningVar),
                     c.maybe(P::meanAll),
                     c.maybe(P::invstdAll)};
  join_stats(j, [&](int64_t d, int64_t k) {
    const double inverse = invstd[d * j.channels + k];
    return Moment{counts[d], mean[d * j.channels + k], 1 / (inverse * inverse) - j.eps};
  });
}
// (totalSum [D, C], totalSquareSum, sampleCount [D], mean, variance, momentum, eps, batchMean,
// batchInvstd).
aclnnStatus check_sync(Call& c) {
  using P = params::SyncBatchNormGatherStats;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::totalSum, 2, 2));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::totalSquareSum, P::totalSum));
  ACL_RETURN_IF_FAILED(expect_dims(c, P::sampleCount, {c.tensor(P::totalSum).dims[0]}));
  for (int i : {P::mean, P::variance, P::batchMean, P::batchInvstd})
    ACL_RETURN_IF_FAILED(expect_dims(c, i, {c.tensor(P::totalSum).dims[1]}));
  return ACLNN_SUCCESS;
}
void run_sync(Call& c) {
  using P = params::SyncBatchNormGatherStats;

  const Tensor& t = c.tensor(P::totalSum);
  const Numbers sum = numbers(t), squares = numbers(c.tensor(P::totalSquareSum)),
                counts = numbers(c.tensor(P::sampleCount));
  const Joining j = {t.dims[0],
                     t.dims[1],
                     c.number(P::momentum),
                     c.number(P::eps),
                     c.maybe(P::mean),
                     c.maybe(P::variance),
                     c.maybe(P::batchMean),
                     c.maybe(P::batchInvstd)};
  join_stats(j, [&](int64_t d, int64_t k) {
    const double n = counts[d], mean = sum[d * j.channels + k] / n;
    return Moment{n, mean, squares[d * j.channels + k] / n - mean * mean};
  });
}

// (input, mean, var, inputScale, inputZeroPoint, outputScale, outputZeroPoint, weight, bias,
// epsilon, output): torch's quantized_batch_norm.
aclnnStatus check_quantized(Call& c) {
  using P = params::QuantizedBatchNorm;

  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::output, P::input));
  return expect_channels(c, P::input, {P::mean, P::var, P::weight, P::bias});
}
void run_quantized(Call& c) {
  using P = params::QuantizedBatchNorm;

  const Tensor &t = c.tensor(P::input), &out = c.tensor(P::output);
  Numbers x = numbers(t);
  const Numbers mean = numbers(c.tensor(P::mean)), var = numbers(c.tensor(P::var)),
                w = numbers_or(c.maybe(P::weight), t.dims[1], 1),
                b = numbers_or(c.maybe(P::bias), t.dims[1], 0);
  const double bits = static_cast<double>(dtype_size(out.dtype)) * 8;
  const bool sign = out.dtype != ACL_UINT8;
  const double low = sign ? -std::exp2(bits - 1) : 0, high = std::exp2(bits - sign) - 1;
  each_channel(t, [&](int64_t i, int64_t k) {
    const double value =
        (x[i] - c.scalar(P::inputZeroPoint).real()) * c.scalar(P::inputScale).real();
    const double y = (value - mean[k]) / std::sqrt(var[k] + c.number(P::epsilon)) * w[k] + b[k];
    const double step =
        std::nearbyint(y / c.scalar(P::outputScale).real()) + c.scalar(P::outputZeroPoint).real();
    x[i] = std::min(std::max(step, low), high);
  });
  put(out, x);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnBatchNormStats, check_stats, run_stats)
ACLNN_OP(aclnnBatchNormElemt, check_elements, run_elements)
ACLNN_OP(aclnnBatchNormElemtBackward, check_elements_grad, run_elements_grad)
ACLNN_OP(aclnnBatchNormReduceBackward, check_reduce_grad, run_reduce_grad)
ACLNN_OP(aclnnBatchNormReduce, check_sums, run_sums)
ACLNN_OP(aclnnBatchNormGatherStatsWithCounts, check_gather, run_gather)
ACLNN_OP(aclnnSyncBatchNormGatherStats, check_sync, run_sync)
ACLNN_OP(aclnnQuantizedBatchNorm, check_quantized, run_quantized)
