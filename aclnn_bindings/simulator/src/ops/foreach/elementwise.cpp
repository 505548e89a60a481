// The foreach family: one function over every member of lists.
#include "params/foreach.h"
#include "loops/pointwise.h"
#include "loops/smooth.h"

namespace aclsim {

ACL_FN(EachAdd, Real, (T a, T b), a + b)
ACL_FN(EachSub, Real, (T a, T b), a - b)
ACL_FN(EachMul, Real, (T a, T b), a * b)
ACL_FN(EachDiv, FloatingReal, (T a, T b), a / b)
ACL_FN(EachPow, FloatingReal, (T a, T b), b == T(2) ? a * a : std::pow(a, b))
ACL_FN(EachRpow, FloatingReal, (T a, T b), std::pow(b, a))
ACL_FN(EachMax, Real, (T a, T b), a != a || a > b ? a : b)
ACL_FN(EachMin, Real, (T a, T b), a != a || a < b ? a : b)
ACL_FN(EachAddList, Real, (T a, T b, T alpha), a + alpha * b)
ACL_FN(EachSubList, Real, (T a, T b, T alpha), a - alpha * b)
struct EachLerp : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T a, T b, T w) {
    return std::fabs(w) < T(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w);
  }
};
ACL_FN(EachAddcmul, Real, (T a, T b, T c, T value), a + value * b * c)
ACL_FN(EachAddcdiv, FloatingReal, (T a, T b, T c, T value), a + value * b / c)

// These compute float16 in float16: each step is rounded, as op-plugin's tests of them expect
// (test_foreach_addcmul_tensor, test_foreach_addcdiv_tensor, test_foreach_sub_list; the kernel
// foreach_sub_list of ops-nn multiplies, then subtracts). bfloat16 they do not, and sums of lists round
// once in either (its foreach_add_list has one step).
static ACL_INLINE float half_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t kept = (bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu;  // 11 digits, ties to even
  float normal;
  std::memcpy(&normal, &kept, sizeof normal);
  const float size = std::fabs(x);
  const float small = std::copysign((size + 0.5f) - 0.5f, x);  // multiples of 2^-24
  const float finite = size < 6.103515625e-05f ? small : normal;
  const float bound = size < 65520.0f ? finite : std::copysign(HUGE_VALF, x);
  return x != x ? x : bound;
}
template <class T>
static ACL_INLINE T stepped(T x) {
  if constexpr (std::is_same<T, float>::value) return half_of(x);
  return x;
}
ACL_FN(HalfAddcmul, FloatingReal, (T a, T b, T c, T value), a + stepped(value * stepped(b * c)))
ACL_FN(HalfSubList, Real, (T a, T b, T alpha), a - stepped(alpha * b))
ACL_FN(HalfAddcdiv, FloatingReal, (T a, T b, T c, T value), a + stepped(value * stepped(b / c)))
template <class Fn>
struct InHalf {
  using type = Fn;
};
template <>
struct InHalf<EachAddcmul> {
  using type = HalfAddcmul;
};
template <>
struct InHalf<EachSubList> {
  using type = HalfSubList;
};
template <>
struct InHalf<EachAddcdiv> {
  using type = HalfAddcdiv;
};

ACL_FN(EachCopy, Real, (T a), a)
ACL_FN(EachAbs, Real, (T a), a < T(0) ? -a : (a == T(0) ? T(0) : a))
ACL_FN(EachNeg, Real, (T a), -a)
ACL_FN(EachSign, Real, (T a), (a > T(0)) - (a < T(0)))
ACL_FN(EachSqrt, FloatingReal, (T a), std::sqrt(a))
template <>
void pointwise_body<EachSqrt, float, 1>(int64_t n, float* out, const float* const* in) {
  square_roots(out, in[0], n);
}
ACL_FN(EachReciprocal, FloatingReal, (T a), T(1) / a)
ACL_FN(EachExp, FloatingReal, (T a), v_exp(a))
ACL_FN(EachExpm1, FloatingReal, (T a), std::expm1(a))
ACL_FN(EachLog, FloatingReal, (T a), v_log(a))
ACL_FN(EachLog1p, FloatingReal, (T a), std::log1p(a))
ACL_FN(EachLog2, FloatingReal, (T a), std::log2(a))
ACL_FN(EachLog10, FloatingReal, (T a), std::log10(a))
ACL_FN(EachSin, FloatingReal, (T a), std::sin(a))
ACL_FN(EachCos, FloatingReal, (T a), std::cos(a))
ACL_FN(EachTan, FloatingReal, (T a), std::tan(a))
ACL_FN(EachAsin, FloatingReal, (T a), std::asin(a))
ACL_FN(EachAcos, FloatingReal, (T a), std::acos(a))
ACL_FN(EachAtan, FloatingReal, (T a), std::atan(a))
ACL_FN(EachSinh, FloatingReal, (T a), std::sinh(a))
ACL_FN(EachCosh, FloatingReal, (T a), std::cosh(a))
ACL_FN(EachTanh, FloatingReal, (T a), v_tanh(a))
ACL_FN(EachSigmoid, FloatingReal, (T a), v_sigmoid(a))
ACL_FN(EachErf, FloatingReal, (T a), v_erf(a))
ACL_FN(EachErfc, FloatingReal, (T a), std::erfc(a))

namespace {

// Inputs by position: tensor lists walk along, a scalar list gives one number per member, a tensor
// stands for a number (or a list of numbers where it has as many elements as there are members).
Operand& number_operand(Loop& loop, const void* data, aclDataType dtype, int64_t offset) {
  loop.add(dense(const_cast<void*>(data), dtype, nullptr, 0));
  Operand& op = loop.operands[loop.count - 1];
  op.offset = offset;
  return op;
}
void add_input(Loop& loop, const Call& c, int i, int64_t member) {
  const Arg& arg = c.args[i];
  switch (arg.kind) {
    case ArgKind::TensorList: loop.add(*arg.tensors[member]); return;
    case ArgKind::Scalar: number_operand(loop, arg.scalar->bytes, arg.scalar->dtype, 0); return;
    case ArgKind::ScalarList:
      number_operand(loop, arg.scalars[member]->bytes, arg.scalars[member]->dtype, 0);
      return;
    default: {
      const Tensor& t = *arg.tensor;
      const bool listed = t.numel() > 1;
      number_operand(loop, t.data, t.dtype, t.offset + (listed ? member * t.strides[0] : 0));
    }
  }
}

aclnnStatus check_lists(Call& c, const int8_t* inputs, int count, int out) {
  const int64_t members = c.tensors(out).size;
  for (int k = 0; k <= count; ++k) {
    const int i = k < count ? inputs[k] : out;
    const Arg& arg = c.args[i];
    const bool list = arg.kind == ArgKind::TensorList || arg.kind == ArgKind::ScalarList;
    if (arg.handle == nullptr) return c.fail(ACLNN_ERR_PARAM_NULLPTR, "%s is null.", c.name(i));
    if (list && arg.size != members) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s has %lld members, %s %lld.", c.name(i),
                    static_cast<long long>(arg.size), c.name(out), static_cast<long long>(members));
    }
    for (int64_t m = 0; arg.kind == ArgKind::TensorList && m < members; ++m) {
      if (!arg.tensors[m])
        return c.fail(ACLNN_ERR_PARAM_NULLPTR, "A member of %s is null.", c.name(i));
      const Tensor &t = *arg.tensors[m], &o = *c.tensors(out)[m];
      if (t.same_shape(o)) continue;
      return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape of %s[%lld] is %s, of %s[%lld] %s.", c.name(i),
                    static_cast<long long>(m), shape_text(t), c.name(out),
                    static_cast<long long>(m), shape_text(o));
    }
    if (arg.kind == ArgKind::Tensor && arg.tensor->numel() != 1 &&
        (arg.tensor->numel() != members || arg.tensor->rank != 1)) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have 1 or %lld elements, its shape is %s.",
                    c.name(i), static_cast<long long>(members), shape_text(*arg.tensor));
    }
  }
  return ACLNN_SUCCESS;
}

template <class Fn, int Out, int... In>
struct Each {
  static constexpr int8_t inputs[] = {In...};
  static aclnnStatus check(Call& c) { return check_lists(c, inputs, sizeof...(In), Out); }
  static aclError run(Call& c) {
    static constexpr Bodies bodies = bodies_of<Fn, sizeof...(In)>();
    static constexpr Bodies halves = bodies_of<typename InHalf<Fn>::type, sizeof...(In)>();
    const int64_t members = c.tensors(Out).size;
    for (int64_t m = 0; m < members; ++m) {
      const Tensor& out = *c.tensors(Out)[m];
      Loop loop = loop_over(out);
      for (int i : {In...}) add_input(loop, c, i, m);
      loop.coalesce();
      aclDataType common = out.dtype;
      if (!Fn::integer && domain_of(common) == Domain::Integer) common = ACL_FLOAT;
      run_bodies(loop, common, out.dtype == ACL_FLOAT16 ? halves : bodies);
    }
    return ACL_SUCCESS;
  }
};

// roundMode: 1 to the nearest, ties to even; 2 down; 3 up; 4 to the nearest, ties away from zero;
// 5 towards zero; 6 to odd; 7 what trunc leaves. The numbers are those of Ascend C's rounding modes.
struct EachRound : Real {
  template <class T>
  static ACL_INLINE T f(T x, T mode) {
    const int m = static_cast<int>(mode);
    if constexpr (std::is_same<T, int64_t>::value) {
      return m == 7 ? 0 : x;
    } else {
      switch (m) {
        case 2: return std::floor(x);
        case 3: return std::ceil(x);
        case 4: return std::round(x);
        case 5: return std::trunc(x);
        case 6: {
          const T low = std::floor(x);
          return low == x || std::fmod(low, T(2)) != T(0) ? low : low + T(1);
        }
        case 7: return x - std::trunc(x);
        default: return std::nearbyint(x);
      }
    }
  }
};

void run_zero_list(Call& c) {
  using P = params::ForeachZeroInplace;

  for (const Tensor* t : c.tensors(P::x)) fill_tensor(*t, Scalar{ACL_INT64, {}});
}

// (scaledGrads, foundInf, invScale): unscales in place; foundInf becomes 1 where a value is not
// finite.
aclnnStatus check_unscale(Call& c) {
  using P = params::ForeachNonFiniteCheckAndUnscale;

  for (const Tensor* t : c.tensors(P::scaledGrads)) {
    if (!t) return c.fail(ACLNN_ERR_PARAM_NULLPTR, "A member of scaledGrads is null.");
  }
  if (c.tensor(P::foundInf).numel() == 1 && c.tensor(P::invScale).numel() == 1)
    return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "foundInf and invScale should have 1 element.");
}
void run_unscale(Call& c) {
  using P = params::ForeachNonFiniteCheckAndUnscale;

  const Tensor &found = c.tensor(P::foundInf), &scale = c.tensor(P::invScale);
  static constexpr Bodies bodies = bodies_of<EachMul, 2>();
  for (const Tensor* t : c.tensors(P::scaledGrads)) {
    Walker at(t->rank, t->dims);
    for (int64_t i = t->numel(); i > 0; --i, at.next()) {
      const float x = load_one<float>(t->data, t->dtype, t->offset + at.offset(t->strides));
      if (x - x != 0.0f) store_one(1.0f, found.data, found.dtype, found.offset);
    }
    Loop loop = loop_over(*t);
    loop.add(*t);
    Tensor factor = scale;
    factor.rank = 0;
    loop.add(factor);
    loop.coalesce();
    run_bodies(loop, t->dtype, bodies);
  }
}

}  // namespace
}  // namespace aclsim

#define ACLNN_EACH(op, Fn, ...) \
  ACLNN_OP(op, (Each<Fn, __VA_ARGS__>::check), (Each<Fn, __VA_ARGS__>::run))
ACLNN_EACH(aclnnForeachAddScalar, EachAdd, params::ForeachAddScalar::out, 0, 1)
ACLNN_EACH(aclnnForeachAddScalarV2, EachAdd, params::ForeachAddScalarV2::out, 0, 1)
ACLNN_EACH(aclnnForeachAddScalarList, EachAdd, params::ForeachAddScalarList::out, 0, 1)
ACLNN_EACH(aclnnForeachSubScalar, EachSub, params::ForeachSubScalar::out, 0, 1)
ACLNN_EACH(aclnnForeachSubScalarV2, EachSub, params::ForeachSubScalarV2::out, 0, 1)
ACLNN_EACH(aclnnForeachSubScalarList, EachSub, params::ForeachSubScalarList::out, 0, 1)
ACLNN_EACH(aclnnForeachMulScalar, EachMul, params::ForeachMulScalar::out, 0, 1)
ACLNN_EACH(aclnnForeachMulScalarV2, EachMul, params::ForeachMulScalarV2::out, 0, 1)
ACLNN_EACH(aclnnForeachMulScalarList, EachMul, params::ForeachMulScalarList::out, 0, 1)
ACLNN_EACH(aclnnForeachMulList, EachMul, params::ForeachMulList::out, 0, 1)
ACLNN_EACH(aclnnForeachDivScalar, EachDiv, params::ForeachDivScalar::out, 0, 1)
ACLNN_EACH(aclnnForeachDivScalarV2, EachDiv, params::ForeachDivScalarV2::out, 0, 1)
ACLNN_EACH(aclnnForeachDivScalarList, EachDiv, params::ForeachDivScalarList::out, 0, 1)
ACLNN_EACH(aclnnForeachDivList, EachDiv, params::ForeachDivList::out, 0, 1)
ACLNN_EACH(aclnnForeachPowScalar, EachPow, params::ForeachPowScalar::out, 0, 1)
ACLNN_EACH(aclnnForeachPowScalarV2, EachPow, params::ForeachPowScalarV2::out, 0, 1)
ACLNN_EACH(aclnnForeachPowScalarList, EachPow, params::ForeachPowScalarList::out, 0, 1)
ACLNN_EACH(aclnnForeachPowList, EachPow, params::ForeachPowList::out, 0, 1)
ACLNN_EACH(aclnnForeachPowScalarAndTensor, EachRpow, params::ForeachPowScalarAndTensor::out, 1, 0)
ACLNN_EACH(aclnnForeachMaximumScalar, EachMax, params::ForeachMaximumScalar::out, 0, 1)
ACLNN_EACH(aclnnForeachMaximumScalarV2, EachMax, params::ForeachMaximumScalarV2::out, 0, 1)
ACLNN_EACH(aclnnForeachMaximumScalarList, EachMax, params::ForeachMaximumScalarList::out, 0, 1)
ACLNN_EACH(aclnnForeachMaximumList, EachMax, params::ForeachMaximumList::out, 0, 1)
ACLNN_EACH(aclnnForeachMinimumScalar, EachMin, params::ForeachMinimumScalar::out, 0, 1)
ACLNN_EACH(aclnnForeachMinimumScalarV2, EachMin, params::ForeachMinimumScalarV2::out, 0, 1)
ACLNN_EACH(aclnnForeachMinimumScalarList, EachMin, params::ForeachMinimumScalarList::out, 0, 1)
ACLNN_EACH(aclnnForeachMinimumList, EachMin, params::ForeachMinimumList::out, 0, 1)
ACLNN_EACH(aclnnForeachAddList, EachAddList, params::ForeachAddList::out, 0, 1, 2)
ACLNN_EACH(aclnnForeachAddListV2, EachAddList, params::ForeachAddListV2::out, 0, 1, 2)
ACLNN_EACH(aclnnForeachSubList, EachSubList, params::ForeachSubList::out, 0, 1, 2)
ACLNN_EACH(aclnnForeachSubListV2, EachSubList, params::ForeachSubListV2::out, 0, 1, 2)
ACLNN_EACH(aclnnForeachLerpScalar, EachLerp, params::ForeachLerpScalar::out, 0, 1, 2)
ACLNN_EACH(aclnnForeachLerpList, EachLerp, params::ForeachLerpList::out, 0, 1, 2)
ACLNN_EACH(aclnnForeachAddcmulScalar, EachAddcmul, params::ForeachAddcmulScalar::out, 0, 1, 2, 3)
ACLNN_EACH(aclnnForeachAddcmulScalarV2, EachAddcmul, params::ForeachAddcmulScalarV2::out, 0, 1, 2,
           3)
ACLNN_EACH(aclnnForeachAddcmulScalarList, EachAddcmul, params::ForeachAddcmulScalarList::out, 0, 1,
           2, 3)
ACLNN_EACH(aclnnForeachAddcmulList, EachAddcmul, params::ForeachAddcmulList::out, 0, 1, 2, 3)
ACLNN_EACH(aclnnForeachAddcdivScalar, EachAddcdiv, params::ForeachAddcdivScalar::out, 0, 1, 2, 3)
ACLNN_EACH(aclnnForeachAddcdivScalarV2, EachAddcdiv, params::ForeachAddcdivScalarV2::out, 0, 1, 2,
           3)
ACLNN_EACH(aclnnForeachAddcdivScalarList, EachAddcdiv, params::ForeachAddcdivScalarList::out, 0, 1,
           2, 3)
ACLNN_EACH(aclnnForeachAddcdivList, EachAddcdiv, params::ForeachAddcdivList::out, 0, 1, 2, 3)
ACLNN_EACH(aclnnForeachCopy, EachCopy, params::ForeachCopy::out, 0)
ACLNN_EACH(aclnnForeachAbs, EachAbs, params::ForeachAbs::out, 0)
ACLNN_EACH(aclnnForeachNeg, EachNeg, params::ForeachNeg::out, 0)
ACLNN_EACH(aclnnForeachSign, EachSign, params::ForeachSign::out, 0)
ACLNN_EACH(aclnnForeachSqrt, EachSqrt, params::ForeachSqrt::out, 0)
ACLNN_EACH(aclnnForeachReciprocal, EachReciprocal, params::ForeachReciprocal::out, 0)
ACLNN_EACH(aclnnForeachExp, EachExp, params::ForeachExp::out, 0)
ACLNN_EACH(aclnnForeachExpm1, EachExpm1, params::ForeachExpm1::out, 0)
ACLNN_EACH(aclnnForeachLog, EachLog, params::ForeachLog::out, 0)
ACLNN_EACH(aclnnForeachLog1p, EachLog1p, params::ForeachLog1p::out, 0)
ACLNN_EACH(aclnnForeachLog2, EachLog2, params::ForeachLog2::out, 0)
ACLNN_EACH(aclnnForeachLog10, EachLog10, params::ForeachLog10::out, 0)
ACLNN_EACH(aclnnForeachSin, EachSin, params::ForeachSin::out, 0)
ACLNN_EACH(aclnnForeachCos, EachCos, params::ForeachCos::out, 0)
ACLNN_EACH(aclnnForeachTan, EachTan, params::ForeachTan::out, 0)
ACLNN_EACH(aclnnForeachAsin, EachAsin, params::ForeachAsin::out, 0)
ACLNN_EACH(aclnnForeachAcos, EachAcos, params::ForeachAcos::out, 0)
ACLNN_EACH(aclnnForeachAtan, EachAtan, params::ForeachAtan::out, 0)
ACLNN_EACH(aclnnForeachSinh, EachSinh, params::ForeachSinh::out, 0)
ACLNN_EACH(aclnnForeachCosh, EachCosh, params::ForeachCosh::out, 0)
ACLNN_EACH(aclnnForeachTanh, EachTanh, params::ForeachTanh::out, 0)
ACLNN_EACH(aclnnForeachSigmoid, EachSigmoid, params::ForeachSigmoid::out, 0)
ACLNN_EACH(aclnnForeachErf, EachErf, params::ForeachErf::out, 0)
ACLNN_EACH(aclnnForeachErfc, EachErfc, params::ForeachErfc::out, 0)
ACLNN_OP(aclnnForeachZeroInplace, nullptr, run_zero_list)
ACLNN_OP(aclnnForeachNonFiniteCheckAndUnscale, check_unscale, run_unscale)
ACLNN_EACH(aclnnForeachRoundOffNumber, EachRound, params::ForeachRoundOffNumber::out, 0, 1)
ACLNN_EACH(aclnnForeachRoundOffNumberV2, EachRound, params::ForeachRoundOffNumberV2::out, 0, 1)
ACLNN_EACH(aclnnForeachACosInplace, EachAcos, params::ForeachACosInplace::x, 0)
ACLNN_EACH(aclnnForeachLogInplace, EachLog, params::ForeachLogInplace::x, 0)
ACLNN_EACH(aclnnForeachAddListInplace, EachAddList, params::ForeachAddListInplace::x1, 0, 1, 2)
ACLNN_EACH(aclnnForeachSubListInplace, EachSubList, params::ForeachSubListInplace::x1, 0, 1, 2)
ACLNN_EACH(aclnnForeachMulListInplace, EachMul, params::ForeachMulListInplace::x1, 0, 1)
ACLNN_EACH(aclnnForeachDivListInplace, EachDiv, params::ForeachDivListInplace::x1, 0, 1)
ACLNN_EACH(aclnnForeachMulScalarInplace, EachMul, params::ForeachMulScalarInplace::x, 0, 1)
ACLNN_EACH(aclnnForeachSubScalarInplace, EachSub, params::ForeachSubScalarInplace::x, 0, 1)
