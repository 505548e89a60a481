// Losses over classes beyond plain negative log likelihood, and gradients towards targets.
#include "params/loss.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

enum Reduction : int64_t { kReduceNone, kReduceMean, kReduceSum };

double log_sum_exp(const double* x, int64_t n) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < n; ++i) top = std::max(top, x[i]);
  if (n == 0 || !std::isfinite(top)) return top;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - top);
  return top + std::log(sum);
}

// (features [N, C], labels [N, C], loss [N], backprop [N, C]).
aclnnStatus check_soft_labels(Call& c) {
  using P = params::SoftmaxCrossEntropyWithLogits;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::features, 2, 2));
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, P::features, {P::labels, P::backprop}));
  return expect_dims(c, P::loss, {c.tensor(P::features).dims[0]});
}
void run_soft_labels(Call& c) {
  using P = params::SoftmaxCrossEntropyWithLogits;

  const int64_t rows = c.tensor(P::features).dims[0], n = c.tensor(P::features).dims[1];
  Numbers x = numbers(c.tensor(P::features)), y = numbers(c.tensor(P::labels)),
          loss(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    double *row = x.data() + r * n, *label = y.data() + r * n;
    const double total = log_sum_exp(row, n);
    for (int64_t i = 0; i < n; ++i) {
      loss[r] += label[i] == 0 ? 0 : label[i] * (total - row[i]);
      row[i] = std::exp(row[i] - total) - label[i];
    }
  }
  put(c.tensor(P::loss), loss);
  put(c.tensor(P::backprop), x);
}

// (self [N, C] or [C], target, reduction, out, isTarget): torch's multilabel_margin_loss_forward.
aclnnStatus check_multilabel(Call& c) {
  using P = params::MultilabelMarginLoss;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::self, 0, 2));
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, P::self, {P::target, P::isTarget}));
  ACL_RETURN_IF_FAILED(expect_int(c, P::reduction, kReduceNone, kReduceSum));
  if (c.integer(P::reduction) == kReduceNone && c.tensor(P::self).rank == 2)
    return expect_dims(c, P::out, {c.tensor(P::self).dims[0]});
  return expect_numel(c, P::out, 1);
}
aclError run_multilabel(Call& c) {
  using P = params::MultilabelMarginLoss;

  const Tensor& self = c.tensor(P::self);
  const int64_t n = tail_numel(self, 1), rows = self.rank == 2 ? self.dims[0] : 1;
  const Numbers x = numbers(self);
  const Integers target = integers(c.tensor(P::target));
  Numbers marks(x.size()), loss(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    int64_t listed = 0;  // up to the first negative one
    for (; listed < n && target[r * n + listed] >= 0; ++listed) {
      const int64_t k = target[r * n + listed];
      if (k >= n) return c.trap(507015, "target %lld is out of range", static_cast<long long>(k));
      marks[r * n + k] = 1;
    }
    for (int64_t t = 0; t < listed; ++t) {
      const double own = x[r * n + target[r * n + t]];
      for (int64_t i = 0; i < n; ++i) {
        if (marks[r * n + i] == 0) loss[r] += std::max(0.0, 1 - own + x[r * n + i]);
      }
    }
    if (n > 0) loss[r] /= static_cast<double>(n);
  }
  const double sum = std::accumulate(loss.begin(), loss.end(), 0.0);
  if (c.integer(P::reduction) != kReduceNone) {
    loss.assign(1, c.integer(P::reduction) == kReduceMean ? sum / static_cast<double>(rows) : sum);
  }
  put(c.tensor(P::out), loss);
  put(c.tensor(P::isTarget), marks);
  return ACL_SUCCESS;
}

// Element-wise gradients of a loss towards its target; the upstream gradient broadcasts, the mean
// divides by the number of elements.
template <class F>
void target_gradient(const Call& c, int reduction, int out, F f) {
  const Tensor& to = c.tensor(out);
  const auto spread = [&](int arg) {
    Tensor v = dense(nullptr, ACL_DOUBLE, to.dims, to.rank);
    Numbers x(static_cast<size_t>(to.numel()));
    v.data = x.data();
    if (!x.empty()) copy_tensor(v, c.tensor(arg));
    return x;
  };
  Numbers g = spread(0), x = spread(1), y = spread(2);
  const double share =
      c.integer(reduction) == kReduceMean ? 1 / static_cast<double>(std::max<size_t>(1, g.size())) : 1;
  for (size_t i = 0; i < g.size(); ++i) g[i] *= share * f(x[i], y[i], i, spread);
  put(to, g);
}
aclnnStatus expect_spread(const Call& c, int out, std::initializer_list<int> arguments) {
  for (int i : arguments) {
    if (c.null(i)) continue;
    Shape shape = shape_of(c.tensor(out));
    if (!broadcast(shape, c.tensor(i)) || expect_shape(c, out, shape) != ACLNN_SUCCESS) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s can't broadcast to %s of %s.",
                    shape_text(c.tensor(i)), c.name(i), shape_text(c.tensor(out)), c.name(out));
    }
  }
  return ACLNN_SUCCESS;
}

// (gradOutput, self, target, reduction, logTarget, gradTarget): d/dt of t (log t - x), or of
// exp(t) (t - x).
aclnnStatus check_kl_target(Call& c) {
  using P = params::KlDivTargetBackward;

  ACL_RETURN_IF_FAILED(expect_int(c, P::reduction, kReduceNone, kReduceSum));
  return expect_spread(c, P::gradTarget, {P::gradOutput, P::self, P::target});
}
void run_kl_target(Call& c) {
  using P = params::KlDivTargetBackward;

  const bool logs = c.flag(P::logTarget);
  return target_gradient(c, P::reduction, P::gradTarget, [&](double x, double t, size_t, auto&) {
    if (logs) return std::exp(t) * (t + 1 - x);
    return t == 0 ? 0 : std::log(t) + 1 - x;
  });
}

aclnnStatus check_bce_target(Call& c) {
  using P = params::BinaryCrossEntropyWithLogitsTargetBackward;

  ACL_RETURN_IF_FAILED(expect_int(c, P::reduction, kReduceNone, kReduceSum));
  return expect_spread(
      c, P::gradTarget,
      {P::gradOutput, P::self, P::target, P::weightOptional, P::posWeightOptional});
}
void run_bce_target(Call& c) {
  using P = params::BinaryCrossEntropyWithLogitsTargetBackward;

  Numbers w, p;
  const auto log_sigmoid = [](double x) {
    return std::min(x, 0.0) - std::log1p(std::exp(-std::fabs(x)));
  };
  return target_gradient(
      c, P::reduction, P::gradTarget, [&](double x, double, size_t i, auto& spread) {
        if (i == 0 && !c.null(P::weightOptional)) w = spread(3);
        if (i == 0 && !c.null(P::posWeightOptional)) p = spread(4);
        const double positive = p.empty() ? 1 : p[i];
        return (w.empty() ? 1 : w[i]) * (log_sigmoid(-x) - positive * log_sigmoid(x));
      });
}

// What fused cross entropy takes of its attributes; reduction by name: mean, sum, none.
Reduction reduction_of(const char* name) {
  if (name && !std::strcmp(name, "sum")) return kReduceSum;
  return name && !std::strcmp(name, "none") ? kReduceNone : kReduceMean;
}
double weight_at(const Numbers& w, int64_t k) { return w.empty() ? 1 : w[static_cast<size_t>(k)]; }

aclnnStatus expect_classes(const Call& c, int logits, int target, int weight) {
  ACL_RETURN_IF_FAILED(expect_rank(c, logits, 2, 2));
  ACL_RETURN_IF_FAILED(expect_dims(c, target, {c.tensor(logits).dims[0]}));
  return expect_dims(c, weight, {c.tensor(logits).dims[1]});
}

// (input [N, C], target [N], weight [C], reduction, ignoreIndex, labelSmoothing,
// lseSquareScaleForZloss, returnZloss, loss, logProb, zloss, lseForZloss): torch's cross_entropy
// with label smoothing; the z loss is the squared log sum, scaled.
aclnnStatus check_cross_entropy(Call& c) {
  using P = params::CrossEntropyLoss;

  ACL_RETURN_IF_FAILED(expect_classes(c, P::input, P::target, P::weightOptional));
  const int64_t rows = c.tensor(P::input).dims[0];
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, P::input, {P::logProbOut}));
  if (c.flag(P::returnZloss)) ACL_RETURN_IF_FAILED(expect_dims(c, P::lseForZlossOut, {rows}));
  return expect_numel(c, P::lossOut,
                      reduction_of(c.text(P::reductionOptional)) == kReduceNone ? rows : 1);
}
aclError run_cross_entropy(Call& c) {
  using P = params::CrossEntropyLoss;

  const int64_t rows = c.tensor(P::input).dims[0], n = c.tensor(P::input).dims[1],
                ignore = c.integer(P::ignoreIndex);
  Numbers x = numbers(c.tensor(P::input)), loss(static_cast<size_t>(rows)), lse(loss), z(loss);
  const Numbers w = c.null(P::weightOptional) ? Numbers() : numbers(c.tensor(P::weightOptional));
  const Integers target = integers(c.tensor(P::target));
  const double smooth = c.number(P::labelSmoothing);
  double weights = 0, kept = 0;
  for (int64_t r = 0; r < rows; ++r) {
    double* row = x.data() + r * n;
    lse[r] = log_sum_exp(row, n);
    double spread = 0;
    for (int64_t i = 0; i < n; ++i) {
      row[i] -= lse[r];
      spread -= row[i] * weight_at(w, i);
    }
    if (target[r] == ignore) continue;
    if (target[r] < 0 || target[r] >= n) {
      return c.trap(507015, "target %lld is out of range", static_cast<long long>(target[r]));
    }
    const double own = weight_at(w, target[r]);
    loss[r] = -(1 - smooth) * own * row[target[r]] + smooth / static_cast<double>(n) * spread;
    z[r] = c.number(P::lseSquareScaleForZloss) * lse[r] * lse[r];
    weights += own;
    kept += 1;
  }
  const Reduction how = reduction_of(c.text(P::reductionOptional));
  const auto reduced = [&](const Numbers& each, double share) {
    const double sum = std::accumulate(each.begin(), each.end(), 0.0);
    return how == kReduceNone ? each : Numbers(1, how == kReduceMean ? sum / share : sum);
  };
  put(c.tensor(P::lossOut), reduced(loss, weights));
  put(c.tensor(P::logProbOut), x);
  if (c.flag(P::returnZloss)) {
    if (c.maybe(P::zlossOut) && (how != kReduceNone ? 1 : rows) == c.tensor(P::zlossOut).numel()) {
      put(c.tensor(P::zlossOut), reduced(z, kept));
    }
    put(c.tensor(P::lseForZlossOut), lse);
  }
  return ACL_SUCCESS;
}

aclnnStatus check_cross_entropy_grad(Call& c) {
  using P = params::CrossEntropyLossGrad;

  ACL_RETURN_IF_FAILED(expect_classes(c, P::logProb, P::target, P::weightOptional));
  const int64_t rows = c.tensor(P::logProb).dims[0];
  const int64_t count = reduction_of(c.text(P::reductionOptional)) == kReduceNone ? rows : 1;
  ACL_RETURN_IF_FAILED(expect_numel(c, P::gradLoss, count));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::gradZlossOptional, count));
  ACL_RETURN_IF_FAILED(expect_dims(c, P::lseForZlossOptional, {rows}));
  return expect_same_shape(c, P::out, P::logProb);
}
aclError run_cross_entropy_grad(Call& c) {
  using P = params::CrossEntropyLossGrad;

  const int64_t rows = c.tensor(P::logProb).dims[0], n = c.tensor(P::logProb).dims[1],
                ignore = c.integer(P::ignoreIndex);
  const Numbers g = numbers(c.tensor(P::gradLoss)),
                w = c.null(P::weightOptional) ? Numbers() : numbers(c.tensor(P::weightOptional));
  const Numbers gz =
      c.null(P::gradZlossOptional) ? Numbers() : numbers(c.tensor(P::gradZlossOptional));
  const Numbers lse =
      c.null(P::lseForZlossOptional) ? Numbers() : numbers(c.tensor(P::lseForZlossOptional));
  Numbers x = numbers(c.tensor(P::logProb));
  const Integers target = integers(c.tensor(P::target));
  const Reduction how = reduction_of(c.text(P::reductionOptional));
  const double smooth = c.number(P::labelSmoothing) / static_cast<double>(n);
  double weights = 0, kept = 0, all = 0;
  for (int64_t i = 0; i < n; ++i) all += weight_at(w, i);
  for (int64_t k : target) {
    if (k != ignore && (k < 0 || k >= n)) {
      return c.trap(507015, "target %lld is out of range", static_cast<long long>(k));
    }
    weights += k == ignore ? 0 : weight_at(w, k);
    kept += k != ignore;
  }
  for (int64_t r = 0; r < rows; ++r) {
    double* row = x.data() + r * n;
    const bool skip = target[r] == ignore;
    const double share = g[how == kReduceNone ? r : 0] / (how == kReduceMean ? weights : 1);
    const double own = skip ? 0 : weight_at(w, target[r]);
    double zs = 0;
    if (!gz.empty() && !lse.empty() && !skip) {
      zs = gz[how == kReduceNone ? r : 0] / (how == kReduceMean ? kept : 1) * 2 *
           c.number(P::lseSquareScaleForZloss) * lse[r];
    }
    for (int64_t i = 0; i < n; ++i) {
      const double p = std::exp(row[i]);
      const double hard = (1 - c.number(P::labelSmoothing)) * own * (p - (i == target[r]));
      const double soft = smooth * (all * p - weight_at(w, i));
      row[i] = skip ? 0 : share * (hard + soft) + zs * p;
    }
  }
  put(c.tensor(P::out), x);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSoftmaxCrossEntropyWithLogits, check_soft_labels, run_soft_labels)
ACLNN_OP(aclnnMultilabelMarginLoss, check_multilabel, run_multilabel)
ACLNN_OP(aclnnKlDivTargetBackward, check_kl_target, run_kl_target)
ACLNN_OP(aclnnBinaryCrossEntropyWithLogitsTargetBackward, check_bce_target, run_bce_target)
ACLNN_OP(aclnnCrossEntropyLoss, check_cross_entropy, run_cross_entropy)
ACLNN_OP(aclnnCrossEntropyLossGrad, check_cross_entropy_grad, run_cross_entropy_grad)
