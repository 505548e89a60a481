// Reductions over any set of axes. A row names a combining function; which axes lie inner, casts,
// threads and the order of accumulation are dealt with here. The order doesn't depend on the number
// of threads, but of sums of 32,768 elements and more into one, which are split as torch splits them.
#pragma once

#include "loops/iterate.h"
#include "loops/promote.h"
#include "loops/vmath.h"

namespace aclsim {

// float partial results of a block are joined in double.
template <class C>
struct WideOf {
  using type = C;
};
template <>
struct WideOf<float> {
  using type = double;
};
template <class C>
using Wide = typename WideOf<C>::type;

template <class C>
struct Reducer {
  C first;
  C (*row)(const C* x, int64_t n);                 // joins map(x[i])
  void (*column)(C* acc, const C* x, int64_t n);   // acc[i] = join(acc[i], map(x[i]))
  Wide<C> (*join)(Wide<C> a, Wide<C> b);
  Wide<C> (*finish)(Wide<C> a, int64_t n);         // n: elements that went in
};
// What is a sum of the elements themselves adds them in torch's order (loops/cascade.h), a mean's
// halves as floats; of `Numbers` NaN counts as 0.
enum class Adds : uint8_t { Never, All, AsFloat, Numbers };
struct Reducers {
  Reducer<float> f32;
  Reducer<double> f64;
  Reducer<int64_t> i64;  // row is null where the op has no integer form
  Reducer<c128> complex;
  Adds adds = Adds::Never;
};

// Which axes go: a bit mask over self's dims. `domain` is the dtype the elements are cast to first.
struct ReducePlan {
  aclDataType domain;
  uint32_t axes;
};

// Phase 1: axes from an int array (null or empty: all), result shape against `out`.
aclnnStatus axes_of(const Call& c, const Tensor& self, At<ArgKind::IntArray> dims_arg, uint32_t& axes);
aclnnStatus expect_reduced(const Call& c, TensorAt out, const Tensor& self, uint32_t axes, bool keep);

// Reduces `self` into `out`, which has the reduced shape with or without kept dims.
void reduce_tensor(const Tensor& out, const Tensor& self, uint32_t axes, aclDataType domain,
                   const Reducers& reducers);

template <class Fn, class C>
ACL_VECTOR C reduce_row(const C* x, int64_t n) {
  constexpr int kLanes = 64;  // four accumulators of the widest vectors hide the latency of add
  using Lane = std::conditional_t<Fn::wide, Wide<C>, C>;
  Lane acc[kLanes];
  int lanes = kLanes;  // of a short row as many as it fills: others would join nothing
  while (lanes > 1 && lanes / 2 >= n) lanes /= 2;
  for (int l = 0; l < lanes; ++l) acc[l] = Fn::template first<Lane>();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) acc[l] = Fn::join(acc[l], static_cast<Lane>(Fn::map(x[i + l])));
  }
  for (int l = 0; i < n; ++i, ++l) acc[l] = Fn::join(acc[l], static_cast<Lane>(Fn::map(x[i])));
  for (int step = lanes / 2; step > 0; step /= 2) {
    for (int l = 0; l < step; ++l) acc[l] = Fn::join(acc[l], acc[l + step]);
  }
  return static_cast<C>(acc[0]);
}
template <class Fn, class C>
ACL_VECTOR void reduce_column(C* acc, const C* x, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) acc[i] = Fn::join(acc[i], Fn::map(x[i]));
}
template <class Fn, class C>
constexpr Reducer<C> reducer_of() {
  return {Fn::template first<C>(), reduce_row<Fn, C>, reduce_column<Fn, C>,
          [](Wide<C> a, Wide<C> b) -> Wide<C> { return Fn::join(a, b); },
          [](Wide<C> a, int64_t n) -> Wide<C> { return Fn::finish(a, n); }};
}
template <class Fn>
const Reducers& reducers_of() {
  static const Reducers r = [] {
    Reducers made = {reducer_of<Fn, float>(), reducer_of<Fn, double>(), {}, {}, Fn::adds};
    if constexpr (Fn::integer) made.i64 = reducer_of<Fn, int64_t>();
    if constexpr (Fn::complex) made.complex = reducer_of<Fn, c128>();
    return made;
  }();
  return r;
}

// Bases for combining functions: identity map and finish.
struct Combine {
  static constexpr bool integer = true, complex = false;
  static constexpr bool wide = false;  // lanes in double where elements are float
  static constexpr Adds adds = Adds::Never;
  template <class T>
  static ACL_INLINE T map(T x) {
    return x;
  }
  template <class T>
  static ACL_INLINE T finish(T x, int64_t) {
    return x;
  }
};
struct SumOf : Combine {
  static constexpr bool complex = true;
  static constexpr Adds adds = Adds::All;
  template <class T>
  static constexpr T first() {
    return T(0);
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return a + b;
  }
};

}  // namespace aclsim
