// Sums, products, means, extrema and truth over axes.
#include "params/reduction.h"
#include "loops/reduce.h"

namespace aclsim {
namespace {

struct ProdOf : Combine {
  static constexpr bool wide = true;  // roundings of factors that are alike lean one way
  static constexpr bool complex = true;
  template <class T>
  static constexpr T first() {
    return T(1);
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return a * b;
  }
};
struct MeanOf : SumOf {
  static constexpr bool integer = false;
  static constexpr Adds adds = Adds::AsFloat;
  template <class T>
  static ACL_INLINE T finish(T x, int64_t n) {
    return x / static_cast<T>(static_cast<double>(n));
  }
};
struct NanSumOf : SumOf {
  static constexpr bool complex = false;
  static constexpr Adds adds = Adds::Numbers;
  template <class T>
  static ACL_INLINE T map(T x) {
    return x != x ? T(0) : x;
  }
};
template <class T>
constexpr T lowest() {
  using L = std::numeric_limits<T>;
  return L::has_infinity ? -L::infinity() : L::lowest();
}
template <class T>
constexpr T highest() {
  using L = std::numeric_limits<T>;
  return L::has_infinity ? L::infinity() : L::max();
}
// NaN wins, as in torch.
struct MaxOf : Combine {
  template <class T>
  static constexpr T first() {
    return lowest<T>();
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
struct MinOf : Combine {
  template <class T>
  static constexpr T first() {
    return highest<T>();
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return b < a || b != b ? b : a;
  }
};
struct Truth : Combine {
  template <class T>
  static ACL_INLINE T map(T x) {
    return x != T(0) ? T(1) : T(0);
  }
};
struct AnyOf : Truth {
  template <class T>
  static constexpr T first() {
    return T(0);
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return b > a ? b : a;
  }
};
struct AllOf : Truth {
  template <class T>
  static constexpr T first() {
    return T(1);
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return b < a ? b : a;
  }
};

struct LogSumOf : SumOf {
  static constexpr bool integer = false, complex = false;
  template <class T>
  static ACL_INLINE T finish(T x, int64_t) {
    return std::log(x);
  }
};

// Where a row keeps its arguments; -1: it has none (all axes, dims dropped).
template <int Dims, int Keep, int Out>
struct Args {
  static constexpr int dims = Dims, keep = Keep, out = Out;
};
enum class Into { Out, Self, Floating };  // the dtype the elements are cast to first

template <class Fn, class A, Into into, bool NeedsElements>
struct Reduce {
  static aclnnStatus check(Call& c) {
    using P = params::All;

    const Tensor& self = c.tensor(P::self);
    ReducePlan& plan = c.make<ReducePlan>();
    plan.axes = (1u << self.rank) - 1;
    if constexpr (A::dims >= 0) {
      if (c.args[A::dims].kind == ArgKind::Int) {
        int64_t axis = c.integer(A::dims);
        ACL_RETURN_IF_FAILED(expect_axis(c, A::dims, axis, self.rank));
        plan.axes = self.rank > 0 ? 1u << axis : 0;
      } else {
        ACL_RETURN_IF_FAILED(axes_of(c, self, A::dims, plan.axes));
      }
    }
    plan.domain = into == Into::Self ? self.dtype : c.tensor(A::out).dtype;
    if (into == Into::Floating && domain_of(plan.domain) == Domain::Integer) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "Dtype of %s should be floating, but is %s.",
                    c.name(A::out), dtype_name(plan.domain));
    }
    if (NeedsElements && self.numel() == 0 && c.tensor(A::out).numel() != 0) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is empty (%s), the result is undefined.",
                    c.name(P::self), shape_text(self));
    }
    if (self.numel() * dtype_size(plan.domain) > 4096) c.workspace_size = 4096;
    const bool keep = A::keep >= 0 && c.flag(A::keep < 0 ? 0 : A::keep);
    // One number may be a vector of one: ggml sums losses into that.
    const Tensor& out = c.tensor(A::out);
    if (!keep && plan.axes == (1u << self.rank) - 1 && out.rank == 1 && out.dims[0] == 1) {
      return ACLNN_SUCCESS;
    }
    return expect_reduced(c, A::out, self, plan.axes, keep);
  }
  static aclError run(Call& c) {
    using P = params::All;

    const ReducePlan& plan = c.get<ReducePlan>();
    reduce_tensor(c.tensor(A::out), c.tensor(P::self), plan.axes, plan.domain, reducers_of<Fn>());
    return ACL_SUCCESS;
  }
};

template <class Row>
struct OrCopy {
  static bool copies(const Call& c) {
    using P = params::MeanV2;
    return c.flag(P::noopWithEmptyAxes) && c.ints(P::dim).size == 0;
  }
  static aclnnStatus check(Call& c) {
    using P = params::MaxV2;

    return copies(c) ? expect_same_shape(c, P::out, P::self) : Row::check(c);
  }
  static aclError run(Call& c) {
    using P = params::MaxV2;

    if (!copies(c)) return Row::run(c);
    copy_tensor(c.tensor(P::out), c.tensor(P::self));
    return ACL_SUCCESS;
  }
};

// (self, minOut, maxOut), with axes or not.
template <int Dims, int Keep, int Min>
struct Aminmax {
  using Lower = Reduce<MinOf, Args<Dims, Keep, Min>, Into::Self, true>;
  using Upper = Reduce<MaxOf, Args<Dims, Keep, Min + 1>, Into::Self, true>;
  static aclnnStatus check(Call& c) {
    ACL_RETURN_IF_FAILED(Lower::check(c));
    return Upper::check(c);
  }
  static aclError run(Call& c) {
    Lower::run(c);
    return Upper::run(c);
  }
};

}  // namespace
}  // namespace aclsim

#define ACLNN_REDUCE(op, Fn, into, needs, dims, keep, out)                              \
  ACLNN_OP(op, (Reduce<Fn, Args<dims, keep, out>, Into::into, needs>::check),           \
           (Reduce<Fn, Args<dims, keep, out>, Into::into, needs>::run))

ACLNN_REDUCE(aclnnReduceSum, SumOf, Out, false, params::ReduceSum::dims,
             params::ReduceSum::keepDims, params::ReduceSum::out)
ACLNN_REDUCE(aclnnReduceNansum, NanSumOf, Out, false, params::ReduceNansum::dim,
             params::ReduceNansum::keepDim, params::ReduceNansum::out)
ACLNN_REDUCE(aclnnMean, MeanOf, Floating, false, params::Mean::dim, params::Mean::keepDim,
             params::Mean::out)
ACLNN_REDUCE(aclnnProd, ProdOf, Out, false, -1, -1, params::Prod::out)
ACLNN_REDUCE(aclnnProdDim, ProdOf, Out, false, params::ProdDim::dim, params::ProdDim::keepDim,
             params::ProdDim::out)
ACLNN_REDUCE(aclnnAmax, MaxOf, Self, true, params::Amax::dim, params::Amax::keepDim,
             params::Amax::out)
ACLNN_REDUCE(aclnnAmin, MinOf, Self, true, params::Amin::dim, params::Amin::keepDim,
             params::Amin::out)
ACLNN_REDUCE(aclnnMax, MaxOf, Self, true, -1, -1, params::Max::out)
ACLNN_REDUCE(aclnnMin, MinOf, Self, true, -1, -1, params::Min::out)
ACLNN_REDUCE(aclnnAny, AnyOf, Self, false, params::Any::dim, params::Any::keepdim, params::Any::out)
ACLNN_REDUCE(aclnnAll, AllOf, Self, false, params::All::dim, params::All::keepdim, params::All::out)
// (self, dims, keepDims, noopWithEmptyDims, out): an empty list can mean "leave as it is".
#define ACLNN_REDUCE_OR_COPY(op, Fn, into)                                                     \
  ACLNN_OP(op, (OrCopy<Reduce<Fn, Args<1, 2, 4>, Into::into, true>>::check),                   \
           (OrCopy<Reduce<Fn, Args<1, 2, 4>, Into::into, true>>::run))
ACLNN_REDUCE_OR_COPY(aclnnMeanV2, MeanOf, Floating)
ACLNN_REDUCE_OR_COPY(aclnnMaxV2, MaxOf, Self)
ACLNN_REDUCE_OR_COPY(aclnnReduceLogSum, LogSumOf, Floating)
#define ACLNN_AMINMAX(op, dims, keep, out) \
  ACLNN_OP(op, (Aminmax<dims, keep, out>::check), (Aminmax<dims, keep, out>::run))
ACLNN_AMINMAX(aclnnAminmax, 1, 2, 3)
ACLNN_AMINMAX(aclnnAminmaxDim, 1, 2, 3)
ACLNN_AMINMAX(aclnnAminmaxAll, -1, -1, 1)
