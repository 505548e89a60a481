// What a pointwise row needs: from a scalar function and argument positions to phase-1 rules and
// the loop. A row reads ACLNN_POINTWISE(aclnnAdd, Add, 3, 0, 1, ~2): argument 3 is the output,
// 0 and 1 are operands that promote, ~2 is an attribute, cast to what the others compute in.
#pragma once

#include "loops/iterate.h"
#include "loops/lanes.h"
#include "loops/promote.h"

namespace aclsim {

// Bases of scalar functions: which domains they compute in, and the dtype of the result.
enum class Result : uint8_t { Promoted, Bool };
template <bool I, bool C, Result R = Result::Promoted>
struct Computes {
  static constexpr bool integer = I, complex = C;
  static constexpr Result result = R;
  // Scalar operands are rounded to the tensors' dtype first, as CANN does where it compares or adds.
  static constexpr bool rounds_scalars = R == Result::Bool;
};
struct Arith : Computes<true, true> {};
struct Additive : Arith {
  static constexpr bool rounds_scalars = true;
};
struct Real : Computes<true, false> {};
struct Floating : Computes<false, true> {};  // integers become FLOAT
struct FloatingReal : Computes<false, false> {};
struct Test : Computes<true, true, Result::Bool> {};
struct TestReal : Computes<true, false, Result::Bool> {};
struct TestMeasured : Computes<false, false, Result::Bool> {};  // integers become DOUBLE

// Kernels that torch has for vectors of 64 bytes, or for those of 32 alone.
template <class F>
struct Widest : FloatingReal {
  using Tail = F;
  static constexpr bool wide = true;
};
template <class F>
struct Narrow : FloatingReal {
  using Tail = F;
  static constexpr bool wide = false;
};

// ACL_FN(Add, Arith, (T a, T b, T alpha), a + alpha * b)
#define ACL_FN(name, base, parameters, ...)                          \
  struct name : base {                                               \
    template <class T>                                               \
    static ACL_INLINE T f parameters {                               \
      return static_cast<T>(__VA_ARGS__);                            \
    }                                                                \
  };

struct Bodies {
  Body<float> f32;
  Body<double> f64;
  Body<int64_t> i64;
  Body<c128> complex;
};

struct PointwiseRule {
  int8_t out;
  int8_t count;
  const int8_t* inputs;
  Result result;
  bool rounds_scalars;
  Bodies bodies;
};

aclnnStatus check_pointwise(Call& c, const PointwiseRule& rule);
aclError run_pointwise(Call& c, const PointwiseRule& rule);
// The dtype that the promoting inputs of a rule share; ACL_DT_UNDEFINED where there is none.
aclDataType common_dtype(const Call& c, const PointwiseRule& rule);
// Runs one body for the domain of `common` over tensors given directly, operand 0 the output.
void run_bodies(Loop& loop, aclDataType common, const Bodies& bodies);

template <class Fn, class C, int N>
ACL_VECTOR void plain_body(int64_t n, C* out, const C* const* in) {
  const C *a = in[0], *b = N > 1 ? in[1] : a, *d = N > 2 ? in[2] : a, *e = N > 3 ? in[3] : a,
          *g = N > 4 ? in[4] : a, *h = N > 5 ? in[5] : a;
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (N == 1) {
      out[i] = Fn::f(a[i]);
    } else if constexpr (N == 2) {
      out[i] = Fn::f(a[i], b[i]);
    } else if constexpr (N == 3) {
      out[i] = Fn::f(a[i], b[i], d[i]);
    } else if constexpr (N == 4) {
      out[i] = Fn::f(a[i], b[i], d[i], e[i]);
    } else if constexpr (N == 5) {
      out[i] = Fn::f(a[i], b[i], d[i], e[i], g[i]);
    } else {
      out[i] = Fn::f(a[i], b[i], d[i], e[i], g[i], h[i]);
    }
  }
}

// A function that names a `Tail` computes torch's bits by explicit fused products (loops/elementary.h);
// the tail is what torch's kernels compute of the elements after the last two whole vectors, which
// are of the widest where `wide` (aten/src/ATen/native/cpu/Loops.h, vectorized_loop).
template <class F, class C, size_t... I>
ACL_INLINE C applied(const C* const* in, int64_t i, std::index_sequence<I...>) {
  return F::f(in[I][i]...);
}
template <class Fn, class C, int N>
ACL_EXACT void exact_body(int64_t n, C* out, const C* const* given) {
  const C* in[N];
  for (int k = 0; k < N; ++k) in[k] = given[k];
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = applied<Fn, C>(in, i, std::make_index_sequence<N>());
}
// Of more elements a function may name a faster formula, `Rough`.
constexpr int64_t kExact = 2048;
template <class Fn, class C, int N, class Rough = typename Fn::Rough>
bool rough_body(int64_t n, C* out, const C* const* in, int) {
  if constexpr (!std::is_void<Rough>::value) {
    if (n > kExact) plain_body<Rough, C, N>(n, out, in);
    return n > kExact;
  }
  return false;
}
template <class Fn, class C, int N>
bool rough_body(int64_t, C*, const C* const*, long) {
  return false;
}
// A function may name a formula of floats, `Quick`, that vectorises and is NaN where it does not hold.
template <class Fn, int N, class Quick = typename Fn::Quick>
void body_of_floats(int64_t n, float* out, const float* const* in, int) {
  constexpr int64_t kChunk = 256;
  float results[kChunk];
  const float* at[N];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t size = std::min(kChunk, n - begin);
    for (int k = 0; k < N; ++k) at[k] = in[k] + begin;
    plain_body<Quick, float, N>(size, results, at);
    for (int64_t i = 0; i < size; ++i) {
      if (results[i] == results[i]) continue;
      results[i] = applied<Fn, float>(at, i, std::make_index_sequence<N>());
    }
    std::copy_n(results, size, out + begin);  // which may be an operand
  }
}
template <class Fn, class C, int N, class Tail = typename Fn::Tail>
void body_with_tail(int64_t n, C* out, const C* const* in, int) {
  if (rough_body<Fn, C, N>(n, out, in, 0)) return;
  const int64_t step = 2 * (Fn::wide ? lanes_of<C>() : 32 / static_cast<int64_t>(sizeof(C)));
  const int64_t head = std::is_same<Fn, Tail>::value ? n : n / step * step;
  exact_body<Fn, C, N>(head, out, in);
  const C* rest[N];
  for (int k = 0; k < N; ++k) rest[k] = in[k] + head;
  if (head < n) exact_body<Tail, C, N>(n - head, out + head, rest);
}
template <class Fn, class C, int N>
void body_with_tail(int64_t n, C* out, const C* const* in, long) {
  plain_body<Fn, C, N>(n, out, in);
}
template <class Fn, int N>
void body_of_floats(int64_t n, float* out, const float* const* in, long) {
  body_with_tail<Fn, float, N>(n, out, in, 0);
}
template <class Fn, class C, int N>
void pointwise_body(int64_t n, C* out, const C* const* in) {
  if constexpr (std::is_same<C, float>::value) return body_of_floats<Fn, N>(n, out, in, 0);
  if constexpr (std::is_floating_point<C>::value) {
    body_with_tail<Fn, C, N>(n, out, in, 0);
  } else {
    plain_body<Fn, C, N>(n, out, in);
  }
}

template <class Fn, int N>
constexpr Bodies bodies_of() {
  Bodies b{pointwise_body<Fn, float, N>, pointwise_body<Fn, double, N>, nullptr, nullptr};
  if constexpr (Fn::integer) b.i64 = pointwise_body<Fn, int64_t, N>;
  if constexpr (Fn::complex) b.complex = pointwise_body<Fn, c128, N>;
  return b;
}

template <class Fn, int Out, int... In>
struct Pointwise {
  static constexpr int8_t inputs[] = {In...};
  static const PointwiseRule& rule() {
    static const PointwiseRule r = {Out, sizeof...(In), inputs, Fn::result, Fn::rounds_scalars,
                                    bodies_of<Fn, sizeof...(In)>()};
    return r;
  }
  static aclnnStatus check(Call& c) { return check_pointwise(c, rule()); }
  static aclError run(Call& c) { return run_pointwise(c, rule()); }
};

#define ACLNN_POINTWISE(op, Fn, ...) \
  ACLNN_OP(op, (Pointwise<Fn, __VA_ARGS__>::check), (Pointwise<Fn, __VA_ARGS__>::run))
// A unary op and its in-place form: op(self, out), inplace(selfRef).
#define ACLNN_UNARY(op, Fn) ACLNN_POINTWISE(op, Fn, 1, 0)
#define ACLNN_UNARY_INPLACE(op, inplace, Fn) \
  ACLNN_POINTWISE(op, Fn, 1, 0) ACLNN_POINTWISE(inplace, Fn, 0, 0)
// op(self, other, out), inplace(selfRef, other); `other` may be a tensor or a scalar.
#define ACLNN_BINARY(op, Fn) ACLNN_POINTWISE(op, Fn, 2, 0, 1)
#define ACLNN_BINARY_INPLACE(op, inplace, Fn) \
  ACLNN_POINTWISE(op, Fn, 2, 0, 1) ACLNN_POINTWISE(inplace, Fn, 0, 0, 1)

}  // namespace aclsim
