// Elementwise losses with reduction, and their gradients: 0 none, 1 mean, 2 sum.
#include "params/loss.h"
#include "loops/elementary.h"
#include "loops/pointwise.h"
#include "loops/reduce.h"
#include "loops/rows.h"

#include <algorithm>

namespace aclsim {

template <class T>
ACL_INLINE T log_at_least(T x) {  // torch bounds the logarithms of BCE by -100
  const T y = std::log(x);
  return y < T(-100) ? T(-100) : y;
}
template <class T>
ACL_INLINE T sign_of(T x) {
  return x != x ? x : T((x > T(0)) - (x < T(0)));
}

// Values: f(self, target, parameter or weights...). Gradients take the upstream gradient first.
ACL_FN(Squared, FloatingReal, (T x, T y, T), (x - y) * (x - y))
ACL_FN(SquaredGrad, FloatingReal, (T g, T x, T y, T), T(2) * (x - y) * g)
ACL_FN(Absolute, FloatingReal, (T x, T y, T), std::fabs(x - y))
ACL_FN(AbsoluteGrad, FloatingReal, (T g, T x, T y, T), g * sign_of(x - y))
struct SmoothL1 : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T x, T y, T beta) {
    const T z = std::fabs(x - y);
    return z < beta ? T(0.5) * z * z / beta : z - T(0.5) * beta;
  }
};
struct SmoothL1Grad : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T g, T x, T y, T beta) {
    const T z = x - y;
    return z <= -beta ? -g : (z >= beta ? g : g * z / beta);
  }
};
ACL_FN(SoftMargin, FloatingReal, (T x, T y, T), std::log1p(v_exp(-x * y)))
ACL_FN(SoftMarginGrad, FloatingReal, (T g, T x, T y, T),
       -y * g * v_exp(-x * y) / (T(1) + v_exp(-x * y)))
struct KlDiv : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T x, T y, T is_log) {
    if (is_log != T(0)) return v_exp(y) * (y - x);
    return y > T(0) ? y * (std::log(y) - x) : (y == T(0) ? T(0) : y * std::log(y));
  }
};
ACL_FN(KlDivGrad, FloatingReal, (T g, T, T y, T is_log),
       is_log != T(0) ? -v_exp(y) * g : (y > T(0) ? -y * g : T(0)))
ACL_FN(Bce, FloatingReal, (T x, T y, T w),
       w * ((y - T(1)) * log_at_least(T(1) - x) - y * log_at_least(x)))
ACL_FN(BceGrad, FloatingReal, (T g, T x, T y, T w),
       g * w * (x - y) / std::fmax((T(1) - x) * x, static_cast<T>(1e-12)))
struct BceLogits : Widest<BceLogits> {
  template <class T>
  static ACL_INLINE T f(T x, T y, T w, T positive) {
    const T logs = (x > T(0) ? T(0) : x) - log1p_common(exp_one(-std::fabs(x)));
    return ((T(1) - y) * x - ((positive - T(1)) * y + T(1)) * logs) * w;
  }
};
template <class T>
ACL_INLINE T logit_slope(T g, T n, T y, T w, T positive, T power) {
  const T share = T(1) / (T(1) + power), t = positive * y;
  return (positive == T(1) ? share - y : (t + T(1) - y) * share - t) * g * w / n;
}
ACL_FN(BceLogitsGradEnd, FloatingReal, (T g, T n, T x, T y, T w, T positive),
       logit_slope(g, n, y, w, positive, std::exp(-x)))
ACL_FN(BceLogitsGrad, Widest<BceLogitsGradEnd>, (T g, T n, T x, T y, T w, T positive),
       logit_slope(g, n, y, w, positive, exp_one(-x)))

namespace {

struct Plan {
  aclDataType domain;
  int64_t elements;
};

Tensor number_tensor(double& value) { return dense(&value, ACL_DOUBLE, nullptr, 0); }

// Adds argument i as an operand: tensor, number, or 1 where it is absent.
void add_argument(Loop& loop, const Call& c, int i) {
  static double one = 1;
  if (i == kNone) {
    loop.add(number_tensor(one));
    return;
  }
  Arg& arg = c.args[i];
  switch (arg.kind) {
    case ArgKind::Tensor: loop.add(arg.tensor ? *arg.tensor : number_tensor(one)); break;
    case ArgKind::Float: loop.add(number_tensor(arg.number)); break;
    default: loop.add(dense(&arg.flag, ACL_BOOL, nullptr, 0));
  }
}

aclnnStatus check_inputs(Call& c, int self, int target, int reduction) {
  Plan& p = c.make<Plan>();
  Shape shape = shape_of(c.tensor(self));
  if (!broadcast(shape, c.tensor(target))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s of self and %s of target can't broadcast.",
                  shape_text(c.tensor(self)), shape_text(c.tensor(target)));
  }
  if (c.integer(reduction) < 0 || c.integer(reduction) > 2) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "reduction should be 0, 1 or 2, but is %lld.",
                  static_cast<long long>(c.integer(reduction)));
  }
  p.domain = promote(c.tensor(self).dtype, c.tensor(target).dtype);
  if (p.domain == ACL_DT_UNDEFINED) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self and target dtypes can't promote.");
  }
  p.domain = p.domain == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  p.elements = 1;
  for (int i = 0; i < shape.rank; ++i) p.elements *= shape.dims[i];
  return ACLNN_SUCCESS;
}

// A weight takes part element by element: it broadcasts into the result and never widens it.
aclnnStatus expect_weight(const Call& c, int arg, const Shape& shape) {
  if (arg == kNone || c.args[arg].kind != ArgKind::Tensor || c.null(arg)) return ACLNN_SUCCESS;
  Shape joined = shape;
  if (broadcast(joined, c.tensor(arg)) && joined.rank == shape.rank &&
      std::equal(joined.dims, joined.dims + joined.rank, shape.dims)) {
    return ACLNN_SUCCESS;
  }
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s can't broadcast to %s.",
                shape_text(c.tensor(arg)), c.name(arg), shape_text(shape.dims, shape.rank));
}

// (self, target, extra..., reduction, out) with the positions of the last two given.
template <class Fn, int Reduction, int Out, int A, int B = kNone>
struct Loss {
  static Shape shape(const Call& c) {
    using P = params::KlDiv;

    Shape s = shape_of(c.tensor(P::self));
    broadcast(s, c.tensor(P::target));
    return s;
  }
  static aclnnStatus check(Call& c) {
    using P = params::KlDiv;

    ACL_RETURN_IF_FAILED(check_inputs(c, P::self, P::target, Reduction));
    for (int extra : {A, B}) ACL_RETURN_IF_FAILED(expect_weight(c, extra, shape(c)));
    if (c.integer(Reduction) == 0) return expect_shape(c, Out, shape(c));
    c.workspace_size = static_cast<uint64_t>(c.get<Plan>().elements) * 8;
    if (c.tensor(Out).numel() == 1 && c.tensor(Out).rank <= 1) return ACLNN_SUCCESS;
    return expect_shape(c, Out, Shape{});
  }
  static aclError run(Call& c) {
    using P = params::KlDiv;

    const Plan& p = c.get<Plan>();
    const int64_t reduction = c.integer(Reduction);
    const Shape s = shape(c);
    const Tensor each =
        reduction == 0 ? c.tensor(Out) : dense(c.workspace, p.domain, s.dims, s.rank);
    Loop loop = loop_over(each);
    constexpr int kInputs = B == kNone ? 3 : 4;
    for (int i : std::initializer_list<int>{P::self, P::target, A}) add_argument(loop, c, i);
    if (kInputs == 4) add_argument(loop, c, B);
    loop.coalesce();
    static constexpr Bodies bodies = bodies_of<Fn, kInputs>();
    run_bodies(loop, p.domain, bodies);
    if (reduction) {
      Tensor out = c.tensor(Out);
      out.rank = 0;
      if (reduction == 2) {
        reduce_tensor(out, each, (1u << each.rank) - 1, p.domain, reducers_of<SumOf>());
      } else {
        reduce_tensor(out, each, (1u << each.rank) - 1, p.domain, reducers_of<AverageOf>());
      }
    }
    return ACL_SUCCESS;
  }

 private:
  struct AverageOf : SumOf {
    static constexpr bool integer = false;
    static constexpr Adds adds = Adds::AsFloat;
    template <class T>
    static ACL_INLINE T finish(T x, int64_t n) {
      return x / static_cast<T>(static_cast<double>(n));
    }
  };
};

// (grad, self, target, extra..., reduction, out): for a mean the gradient is divided by the count,
// before the slope or, by functions of torch's bits, after it.
template <class Fn>
struct Averaged : FloatingReal {
  template <class T, class... Rest>
  static ACL_INLINE T f(T g, T share, Rest... rest) {
    return Fn::f(g * share, rest...);
  }
};
template <class Fn, class = void>
struct Shared {
  using Body = Averaged<Fn>;
  static double number(double n) { return 1.0 / n; }
};
template <class Fn>
struct Shared<Fn, typename std::enable_if<Fn::wide>::type> {
  using Body = Fn;
  static double number(double n) { return n; }
};
template <class Fn, int Reduction, int Out, int A, int B = kNone>
struct LossGrad {
  static aclnnStatus check(Call& c) {
    using P = params::KlDivBackward;

    ACL_RETURN_IF_FAILED(check_inputs(c, P::self, P::target, Reduction));
    Shape s = shape_of(c.tensor(P::self));
    broadcast(s, c.tensor(P::target));
    if (!broadcast(s, c.tensor(P::gradOutput))) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of gradOutput can't broadcast.",
                    shape_text(c.tensor(P::gradOutput)));
    }
    for (int extra : {A, B}) ACL_RETURN_IF_FAILED(expect_weight(c, extra, s));
    return expect_shape(c, Out, s);
  }
  static aclError run(Call& c) {
    using P = params::KlDivBackward;

    const Plan& p = c.get<Plan>();
    double share = Shared<Fn>::number(c.integer(Reduction) == 1 ? static_cast<double>(p.elements) : 1.0);
    Loop loop = loop_over(c.tensor(Out));
    loop.add(c.tensor(P::gradOutput));
    loop.add(number_tensor(share));
    constexpr int kInputs = B == kNone ? 5 : 6;
    for (int i : std::initializer_list<int>{P::self, P::target, A}) add_argument(loop, c, i);
    if (kInputs == 6) add_argument(loop, c, B);
    loop.coalesce();
    static constexpr Bodies bodies = bodies_of<typename Shared<Fn>::Body, kInputs>();
    run_bodies(loop, p.domain, bodies);
    return ACL_SUCCESS;
  }
};

}  // namespace
}  // namespace aclsim

#define ACLNN_LOSS(op, ...) ACLNN_OP(op, (Loss<__VA_ARGS__>::check), (Loss<__VA_ARGS__>::run))
#define ACLNN_LOSS_GRAD(op, ...) \
  ACLNN_OP(op, (LossGrad<__VA_ARGS__>::check), (LossGrad<__VA_ARGS__>::run))
ACLNN_LOSS(aclnnMseLoss, Squared, params::MseLoss::reduction, params::MseLoss::out, kNone)
ACLNN_LOSS(aclnnMseLossOut, Squared, params::MseLossOut::reduction, params::MseLossOut::out, kNone)
ACLNN_LOSS_GRAD(aclnnMseLossBackward, SquaredGrad, params::MseLossBackward::reduction,
                params::MseLossBackward::out, kNone)
ACLNN_LOSS(aclnnL1Loss, Absolute, params::L1Loss::reduction, params::L1Loss::out, kNone)
ACLNN_LOSS_GRAD(aclnnL1LossBackward, AbsoluteGrad, params::L1LossBackward::reduction,
                params::L1LossBackward::gradInput, kNone)
ACLNN_LOSS(aclnnSmoothL1Loss, SmoothL1, params::SmoothL1Loss::reduction,
           params::SmoothL1Loss::result, params::SmoothL1Loss::beta)
ACLNN_LOSS_GRAD(aclnnSmoothL1LossBackward, SmoothL1Grad, params::SmoothL1LossBackward::reduction,
                params::SmoothL1LossBackward::gradInput, params::SmoothL1LossBackward::beta)
ACLNN_LOSS(aclnnSoftMarginLoss, SoftMargin, params::SoftMarginLoss::reduction,
           params::SoftMarginLoss::out, kNone)
ACLNN_LOSS_GRAD(aclnnSoftMarginLossBackward, SoftMarginGrad,
                params::SoftMarginLossBackward::reduction, params::SoftMarginLossBackward::out,
                kNone)
ACLNN_LOSS(aclnnKlDiv, KlDiv, params::KlDiv::reduction, params::KlDiv::out,
           params::KlDiv::logTarget)
ACLNN_LOSS_GRAD(aclnnKlDivBackward, KlDivGrad, params::KlDivBackward::reduction,
                params::KlDivBackward::out, params::KlDivBackward::logTarget)
ACLNN_LOSS(aclnnBinaryCrossEntropy, Bce, params::BinaryCrossEntropy::reduction,
           params::BinaryCrossEntropy::out, params::BinaryCrossEntropy::weight)
ACLNN_LOSS_GRAD(aclnnBinaryCrossEntropyBackward, BceGrad,
                params::BinaryCrossEntropyBackward::reduction,
                params::BinaryCrossEntropyBackward::out,
                params::BinaryCrossEntropyBackward::weightOptional)
ACLNN_LOSS(aclnnBinaryCrossEntropyWithLogits, BceLogits,
           params::BinaryCrossEntropyWithLogits::reduction,
           params::BinaryCrossEntropyWithLogits::out,
           params::BinaryCrossEntropyWithLogits::weightOptional,
           params::BinaryCrossEntropyWithLogits::posWeightOptional)
ACLNN_LOSS_GRAD(aclnnBinaryCrossEntropyWithLogitsBackward, BceLogitsGrad,
                params::BinaryCrossEntropyWithLogitsBackward::reduction,
                params::BinaryCrossEntropyWithLogitsBackward::out,
                params::BinaryCrossEntropyWithLogitsBackward::weightOptional,
                params::BinaryCrossEntropyWithLogitsBackward::posWeightOptional)
