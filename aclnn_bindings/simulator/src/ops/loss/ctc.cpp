// Connectionist temporal classification (Graves et al., 2006): forward and backward recursions over
// the targets with blanks between, in logarithms.
#include "params/loss.h"
#include "loops/promote.h"
#include "loops/rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace aclsim {
namespace {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  if (a == kMinusInf) return b;
  if (b == kMinusInf) return a;
  return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
}

// exp(a - most), where most is one of several: most calls of exp would be of 0 or minus infinity.
double share(double a, double most) {
  const double d = a - most;
  return d == 0 ? 1 : d == kMinusInf ? 0 : std::exp(d);
}
double log_add(double a, double b, double c) {
  const double most = std::max(a, std::max(b, c));
  if (most == kMinusInf) return most;
  return most + std::log(share(a, most) + share(b, most) + share(c, most));
}

// One sample: its steps, its labels with blanks between, and log probabilities.
struct Sample {
  const Tensor *log_probs, *targets;
  int64_t n, steps, length, first_target, blank;
  std::vector<int64_t> labels = {};  // of each state

  int64_t states() const { return 2 * length + 1; }
  int64_t label(int64_t s) const { return labels[static_cast<size_t>(s)]; }
  // Whether the state two before leads here: blanks and repeats must be passed one by one.
  bool skips(int64_t s) const { return s >= 2 && s % 2 == 1 && label(s) != label(s - 2); }
  void read_labels() {
    const Tensor& t = *targets;
    labels.assign(static_cast<size_t>(states()), blank);
    for (int64_t k = 0; k < length; ++k) {
      const int64_t at = t.rank == 2 ? n * t.strides[0] + k * t.strides[1]
                                     : (first_target + k) * t.strides[0];
      labels[static_cast<size_t>(2 * k + 1)] = load_one<int64_t>(t.data, t.dtype, t.offset + at);
    }
  }
  // The log probabilities of every class at a step.
  void read_step(int64_t t, double* logs) const {
    const Tensor& p = *log_probs;
    load(logs, p.data, p.dtype, p.offset + t * p.strides[0] + n * p.strides[1], p.strides[2],
         p.dims[2]);
  }
};

// The arguments of both ops from `first` on: logProbs, targets, input lengths, target lengths.
Sample sample_at(const Call& c, int first, int64_t n, int64_t blank) {
  Sample s = {&c.tensor(first), &c.tensor(first + 1), n, c.ints(first + 2)[n],
              c.ints(first + 3)[n], 0, blank, {}};
  for (int64_t i = 0; i < n; ++i) s.first_target += c.ints(first + 3)[i];
  s.read_labels();
  return s;
}

aclnnStatus check_sizes(const Call& c, int first, int64_t blank) {
  const Tensor &p = c.tensor(first), &t = c.tensor(first + 1);
  const Span<const int64_t> steps = c.ints(first + 2), lengths = c.ints(first + 3);
  bool fits = p.rank == 3 && (t.rank == 1 || t.rank == 2) && steps.size == p.dims[1] &&
              lengths.size == p.dims[1] && blank >= 0 && blank < p.dims[2];
  int64_t sum = 0;
  for (int64_t n = 0; fits && n < steps.size; ++n) {
    fits = steps[n] >= 0 && steps[n] <= p.dims[0] && lengths[n] >= 0 &&
           (t.rank == 1 || lengths[n] <= t.dims[1]);
    sum += lengths[n];
  }
  if (fits && (t.rank == 1 ? sum <= t.dims[0] : t.dims[0] == p.dims[1])) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s of logProbs and %s of targets or the lengths "
                "don't fit.", shape_text(p), shape_text(t));
}
int64_t longest(const Call& c, At<ArgKind::IntArray> lengths) {
  int64_t most = 0;
  for (int64_t n : c.ints(lengths)) most = std::max(most, n);
  return most;
}
aclError check_labels(const Call& c, const Sample& s) {
  for (int64_t k = 1; k < s.states(); k += 2) {
    if (s.label(k) >= 0 && s.label(k) < s.log_probs->dims[2]) continue;
    return c.trap(507015, "target %lld is out of range for %lld classes",
                  static_cast<long long>(s.label(k)), static_cast<long long>(s.log_probs->dims[2]));
  }
  return ACL_SUCCESS;
}

// (logProbs [T, N, C], targets, inputLengths, targetLengths, blank, zeroInfinity, negLogLikelihood
// [N], logAlpha [N, T, 2 S + 1]).
aclnnStatus check_ctc(Call& c) {
  using P = params::CtcLoss;

  ACL_RETURN_IF_FAILED(check_sizes(c, P::logProbs, c.integer(P::blank)));
  const Tensor &p = c.tensor(P::logProbs), &alpha = c.tensor(P::logAlphaOut);
  Shape loss;
  loss.rank = 1;
  loss.dims[0] = p.dims[1];
  ACL_RETURN_IF_FAILED(expect_shape(c, P::negLogLikelihoodOut, loss));
  if (alpha.rank == 3 && alpha.dims[0] == p.dims[1] && alpha.dims[1] >= p.dims[0] &&
      alpha.dims[2] >= 2 * longest(c, P::targetlengths) + 1) {
    return ACLNN_SUCCESS;
  }
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape of logAlphaOut is %s, too small.",
                shape_text(alpha));
}
double final_of(const double* row, int64_t states) {
  return log_add(row[states - 1], states > 1 ? row[states - 2] : kMinusInf);
}
aclError run_ctc(Call& c) {
  using P = params::CtcLoss;

  const Tensor &loss = c.tensor(P::negLogLikelihoodOut), &alpha = c.tensor(P::logAlphaOut);
  for (int64_t n = 0; n < c.tensor(P::logProbs).dims[1]; ++n) {
    const Sample s = sample_at(c, P::logProbs, n, c.integer(P::blank));
    if (aclError error = check_labels(c, s)) return error;
    const int64_t states = s.states();
    Buffer<double> row(states), last(states), logs(c.tensor(P::logProbs).dims[2]);
    std::fill_n(row.get(), states, kMinusInf);
    for (int64_t t = 0; t < s.steps; ++t) {
      std::copy_n(row.get(), states, last.get());
      s.read_step(t, logs.get());
      for (int64_t k = 0; k < states; ++k) {
        double sum = t == 0 ? (k < 2 ? 0 : kMinusInf) : last[k];
        if (t > 0 && k >= 1) sum = log_add(sum, last[k - 1], s.skips(k) ? last[k - 2] : kMinusInf);
        row[k] = sum + logs[s.label(k)];
      }
      store(row.get(), alpha.data, alpha.dtype,
            alpha.offset + n * alpha.strides[0] + t * alpha.strides[1], alpha.strides[2], states);
    }
    double nll = s.steps > 0 ? -final_of(row, states) : (s.length == 0 ? 0.0 : -kMinusInf);
    if (c.flag(P::zeroInfinity) && std::isinf(nll)) nll = 0;
    store_one(nll, loss.data, loss.dtype, loss.offset + n * loss.strides[0]);
  }
  return ACL_SUCCESS;
}

// (gradOut [N], logProbs, targets, inputLengths, targetLengths, negLogLikelihood, logAlpha, blank,
// zeroInfinity, out).
aclnnStatus check_ctc_grad(Call& c) {
  using P = params::CtcLossBackward;

  ACL_RETURN_IF_FAILED(check_sizes(c, P::logProbs, c.integer(P::blank)));
  Shape each;
  each.rank = 1;
  each.dims[0] = c.tensor(P::logProbs).dims[1];
  for (int i : {P::gradOut, P::negLogLikelihood}) ACL_RETURN_IF_FAILED(expect_shape(c, i, each));
  const Tensor& alpha = c.tensor(P::logAlpha);
  if (alpha.rank != 3 || alpha.dims[0] < each.dims[0] ||
      alpha.dims[1] < c.tensor(P::logProbs).dims[0] || alpha.dims[2] < 2 * longest(c, P::targetLengths) + 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape of logAlpha is %s, too small.",
                  shape_text(alpha));
  }
  return expect_same_shape(c, P::out, P::logProbs);
}
// The gradient at step t: exp(lp) minus the posterior of each class, times the upstream gradient.
void put_step(const Call& c, const Sample& s, int64_t t, const double* posterior,
              const double* logs, double nll, double grad) {
  using P = params::CtcLossBackward;

  const Tensor& out = c.tensor(P::out);
  Buffer<double> values(out.dims[2]);
  for (int64_t k = 0; k < out.dims[2]; ++k)
    values[k] = (std::exp(logs[k]) - std::exp(posterior[k] + nll - logs[k])) * grad;
  store(values.get(), out.data, out.dtype,
        out.offset + t * out.strides[0] + s.n * out.strides[1], out.strides[2], out.dims[2]);
}
void ctc_grad_sample(const Call& c, const Sample& s, double nll, double grad) {
  using P = params::CtcLossBackward;

  const Tensor& alpha = c.tensor(P::logAlpha);
  const int64_t states = s.states(), classes = c.tensor(P::logProbs).dims[2];
  Buffer<double> beta(states), next(states), given(states), posterior(classes),
      logs(classes);
  std::fill_n(beta.get(), states, kMinusInf);
  for (int64_t t = s.steps - 1; t >= 0; --t) {
    std::copy_n(beta.get(), states, next.get());
    s.read_step(t, logs.get());
    for (int64_t k = 0; k < states; ++k) {
      double sum = t == s.steps - 1 ? (k >= states - 2 ? 0 : kMinusInf) : next[k];
      const bool skips = k + 2 < states && s.skips(k + 2);
      if (t < s.steps - 1 && k + 1 < states)
        sum = log_add(sum, next[k + 1], skips ? next[k + 2] : kMinusInf);
      beta[k] = sum + logs[s.label(k)];
    }
    load(given.get(), alpha.data, alpha.dtype,
         alpha.offset + s.n * alpha.strides[0] + t * alpha.strides[1], alpha.strides[2], states);
    std::fill_n(posterior.get(), classes, kMinusInf);
    for (int64_t k = 0; k < states; ++k) {
      double& p = posterior[s.label(k)];
      p = log_add(p, given[k] + beta[k]);
    }
    put_step(c, s, t, posterior.get(), logs.get(), nll, grad);
  }
}
aclError run_ctc_grad(Call& c) {
  using P = params::CtcLossBackward;

  const Tensor &grad = c.tensor(P::gradOut), &nll = c.tensor(P::negLogLikelihood);
  fill_tensor(c.tensor(P::out), Scalar{ACL_INT64, {}});
  for (int64_t n = 0; n < c.tensor(P::logProbs).dims[1]; ++n) {
    const Sample s = sample_at(c, P::logProbs, n, c.integer(P::blank));
    if (aclError error = check_labels(c, s)) return error;
    const double loss = load_one<double>(nll.data, nll.dtype, nll.offset + n * nll.strides[0]);
    if (c.flag(P::zeroInfinity) && std::isinf(loss)) continue;
    ctc_grad_sample(c, s, loss,
                    load_one<double>(grad.data, grad.dtype, grad.offset + n * grad.strides[0]));
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnCtcLoss, check_ctc, run_ctc)
ACLNN_OP(aclnnCtcLossBackward, check_ctc_grad, run_ctc_grad)
