// Losses over classes beyond plain negative log likelihood, and gradients towards targets.
#include "loops/numbers.h"

namespace aclsim {
namespace {

enum Reduction : int64_t { kNone, kMean, kSum };

double log_sum_exp(const double* x, int64_t n) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < n; ++i) top = std::max(top, x[i]);
  if (n == 0 || !std::isfinite(top)) return top;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - top);
  return top + std::log(sum);
}

// (features [N, C], labels [N, C], loss [N], backprop [N, C]).
aclnnStatus check_soft_labels(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 2, 2));
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, 0, {1, 3}));
  return expect_dims(c, 2, {c.tensor(0).dims[0]});
}
aclError run_soft_labels(Call& c) {
  const int64_t rows = c.tensor(0).dims[0], n = c.tensor(0).dims[1];
  Numbers x = numbers(c.tensor(0)), y = numbers(c.tensor(1)), loss(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    double *row = x.data() + r * n, *label = y.data() + r * n;
    const double total = log_sum_exp(row, n);
    for (int64_t i = 0; i < n; ++i) {
      loss[r] += label[i] == 0 ? 0 : label[i] * (total - row[i]);
      row[i] = std::exp(row[i] - total) - label[i];
    }
  }
  put(c.tensor(2), loss);
  put(c.tensor(3), x);
  return ACL_SUCCESS;
}

// (self [N, C] or [C], target, reduction, out, isTarget): torch's multilabel_margin_loss_forward.
aclnnStatus check_multilabel(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 0, 2));
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, 0, {1, 4}));
  ACL_RETURN_IF_FAILED(expect_int(c, 2, kNone, kSum));
  if (c.integer(2) == kNone && c.tensor(0).rank == 2) return expect_dims(c, 3, {c.tensor(0).dims[0]});
  return expect_numel(c, 3, 1);
}
aclError run_multilabel(Call& c) {
  const Tensor& self = c.tensor(0);
  const int64_t n = tail_numel(self, 1), rows = self.rank == 2 ? self.dims[0] : 1;
  const Numbers x = numbers(self);
  const Integers target = integers(c.tensor(1));
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
  if (c.integer(2) != kNone) {
    loss.assign(1, c.integer(2) == kMean ? sum / static_cast<double>(rows) : sum);
  }
  put(c.tensor(3), loss);
  put(c.tensor(4), marks);
  return ACL_SUCCESS;
}

// Element-wise gradients of a loss towards its target; the upstream gradient broadcasts, the mean
// divides by the number of elements.
template <class F>
aclError target_gradient(const Call& c, int reduction, int out, F f) {
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
      c.integer(reduction) == kMean ? 1 / static_cast<double>(std::max<size_t>(1, g.size())) : 1;
  for (size_t i = 0; i < g.size(); ++i) g[i] *= share * f(x[i], y[i], i, spread);
  put(to, g);
  return ACL_SUCCESS;
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
  ACL_RETURN_IF_FAILED(expect_int(c, 3, kNone, kSum));
  return expect_spread(c, 5, {0, 1, 2});
}
aclError run_kl_target(Call& c) {
  const bool logs = c.flag(4);
  return target_gradient(c, 3, 5, [&](double x, double t, size_t, auto&) {
    if (logs) return std::exp(t) * (t + 1 - x);
    return t == 0 ? 0 : std::log(t) + 1 - x;
  });
}

// (gradOutput, self, target, weight, posWeight, reduction, gradTarget).
aclnnStatus check_bce_target(Call& c) {
  ACL_RETURN_IF_FAILED(expect_int(c, 5, kNone, kSum));
  return expect_spread(c, 6, {0, 1, 2, 3, 4});
}
aclError run_bce_target(Call& c) {
  Numbers w, p;
  const auto log_sigmoid = [](double x) {
    return std::min(x, 0.0) - std::log1p(std::exp(-std::fabs(x)));
  };
  return target_gradient(c, 5, 6, [&](double x, double, size_t i, auto& spread) {
    if (i == 0 && !c.null(3)) w = spread(3);
    if (i == 0 && !c.null(4)) p = spread(4);
    const double positive = p.empty() ? 1 : p[i];
    return (w.empty() ? 1 : w[i]) * (log_sigmoid(-x) - positive * log_sigmoid(x));
  });
}

// What fused cross entropy takes of its attributes; reduction by name: mean, sum, none.
Reduction reduction_of(const char* name) {
  if (name && !std::strcmp(name, "sum")) return kSum;
  return name && !std::strcmp(name, "none") ? kNone : kMean;
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
  ACL_RETURN_IF_FAILED(expect_classes(c, 0, 1, 2));
  const int64_t rows = c.tensor(0).dims[0];
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, 0, {9}));
  if (c.flag(7)) ACL_RETURN_IF_FAILED(expect_dims(c, 11, {rows}));
  return expect_numel(c, 8, reduction_of(c.text(3)) == kNone ? rows : 1);
}
aclError run_cross_entropy(Call& c) {
  const int64_t rows = c.tensor(0).dims[0], n = c.tensor(0).dims[1], ignore = c.integer(4);
  Numbers x = numbers(c.tensor(0)), loss(static_cast<size_t>(rows)), lse(loss), z(loss);
  const Numbers w = c.null(2) ? Numbers() : numbers(c.tensor(2));
  const Integers target = integers(c.tensor(1));
  const double smooth = c.number(5);
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
    z[r] = c.number(6) * lse[r] * lse[r];
    weights += own;
    kept += 1;
  }
  const Reduction how = reduction_of(c.text(3));
  const auto reduced = [&](const Numbers& each, double share) {
    const double sum = std::accumulate(each.begin(), each.end(), 0.0);
    return how == kNone ? each : Numbers(1, how == kMean ? sum / share : sum);
  };
  put(c.tensor(8), reduced(loss, weights));
  put(c.tensor(9), x);
  if (c.flag(7)) {
    if (c.maybe(10) && (how != kNone ? 1 : rows) == c.tensor(10).numel()) {
      put(c.tensor(10), reduced(z, kept));
    }
    put(c.tensor(11), lse);
  }
  return ACL_SUCCESS;
}

// (gradLoss, logProb, target, weight, gradZloss, lseForZloss, reduction, ignoreIndex,
// labelSmoothing, lseSquareScaleForZloss, out).
aclnnStatus check_cross_entropy_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_classes(c, 1, 2, 3));
  const int64_t rows = c.tensor(1).dims[0];
  const int64_t count = reduction_of(c.text(6)) == kNone ? rows : 1;
  ACL_RETURN_IF_FAILED(expect_numel(c, 0, count));
  ACL_RETURN_IF_FAILED(expect_numel(c, 4, count));
  ACL_RETURN_IF_FAILED(expect_dims(c, 5, {rows}));
  return expect_same_shape(c, 10, 1);
}
aclError run_cross_entropy_grad(Call& c) {
  const int64_t rows = c.tensor(1).dims[0], n = c.tensor(1).dims[1], ignore = c.integer(7);
  const Numbers g = numbers(c.tensor(0)), w = c.null(3) ? Numbers() : numbers(c.tensor(3));
  const Numbers gz = c.null(4) ? Numbers() : numbers(c.tensor(4));
  const Numbers lse = c.null(5) ? Numbers() : numbers(c.tensor(5));
  Numbers x = numbers(c.tensor(1));
  const Integers target = integers(c.tensor(2));
  const Reduction how = reduction_of(c.text(6));
  const double smooth = c.number(8) / static_cast<double>(n);
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
    const double share = g[how == kNone ? r : 0] / (how == kMean ? weights : 1);
    const double own = skip ? 0 : weight_at(w, target[r]);
    double zs = 0;
    if (!gz.empty() && !lse.empty() && !skip) {
      zs = gz[how == kNone ? r : 0] / (how == kMean ? kept : 1) * 2 * c.number(9) * lse[r];
    }
    for (int64_t i = 0; i < n; ++i) {
      const double p = std::exp(row[i]);
      const double hard = (1 - c.number(8)) * own * (p - (i == target[r]));
      const double soft = smooth * (all * p - weight_at(w, i));
      row[i] = skip ? 0 : share * (hard + soft) + zs * p;
    }
  }
  put(c.tensor(10), x);
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
