// Norms of vectors: sums of powers, and their roots.
#pragma once

#include "loops/reduce.h"
#include "loops/rows.h"

#include <algorithm>
#include <cmath>

namespace aclsim {

template <class T>
ACL_INLINE T magnitude(T x) {
  return x < T(0) ? -x : x;
}
struct Norm : Combine {
  static constexpr bool integer = false;
  template <class T>
  static constexpr T first() {
    return T(0);
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return a + b;
  }
};
struct Norm0 : Norm {
  template <class T>
  static ACL_INLINE T map(T x) {
    return x != T(0) ? T(1) : T(0);
  }
};
struct Norm1 : Norm {
  template <class T>
  static ACL_INLINE T map(T x) {
    return magnitude(x);
  }
};
struct Norm2 : Norm {
  template <class T>
  static ACL_INLINE T map(T x) {
    return x * x;
  }
  template <class T>
  static ACL_INLINE T finish(T x, int64_t) {
    return std::sqrt(x);
  }
};
struct NormInf : Norm1 {
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
struct NormMinusInf : Norm1 {
  template <class T>
  static constexpr T first() {
    return std::numeric_limits<T>::infinity();
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return b < a || b != b ? b : a;
  }
};

struct NormPlan {
  ReducePlan reduce;
  double order;
};

// |x|^p in the compute type; the sum's p-th root follows.
template <class C>
void any_norm(Call& c, const Tensor& out, const Tensor& self, const NormPlan& p) {
  const Tensor powers = dense(c.workspace, dtype_of<C>(), self.dims, self.rank);
  Loop loop = loop_over(powers);
  loop.add(self);
  loop.add(dense(const_cast<double*>(&p.order), ACL_DOUBLE, nullptr, 0));
  loop.coalesce();
  run_loop<C>(loop, [](int64_t n, C* o, const C* const* in) {
    for (int64_t i = 0; i < n; ++i) o[i] = std::pow(std::fabs(in[0][i]), in[1][i]);
  });
  C* sums = powers.ptr<C>() + powers.numel();
  const Tensor sum = dense(sums, dtype_of<C>(), out.dims, out.rank);
  reduce_tensor(sum, powers, p.reduce.axes, p.reduce.domain, reducers_of<SumOf>());
  for (int64_t i = 0; i < sum.numel(); ++i) sums[i] = std::pow(sums[i], C(1 / p.order));
  copy_tensor(out, sum);
}

inline const Reducers* common_norm(double order) {
  if (order == 0) return &reducers_of<Norm0>();
  if (order == 1) return &reducers_of<Norm1>();
  if (order == 2) return &reducers_of<Norm2>();
  if (order == std::numeric_limits<double>::infinity()) return &reducers_of<NormInf>();
  if (order == -std::numeric_limits<double>::infinity()) return &reducers_of<NormMinusInf>();
  return nullptr;
}

inline void norm_of(Call& c, const Tensor& out, const Tensor& self, const NormPlan& p) {
  if (const Reducers* r = common_norm(p.order)) {
    reduce_tensor(out, self, p.reduce.axes, p.reduce.domain, *r);
    return;
  }
  with_float(p.reduce.domain,
             [&](auto tag) { any_norm<typename decltype(tag)::type>(c, out, self, p); });
}

}  // namespace aclsim
