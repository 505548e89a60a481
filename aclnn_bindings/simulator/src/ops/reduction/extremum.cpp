// Extrema along one axis and their places.
#include "params/reduction.h"
#include "loops/promote.h"
#include "loops/rows.h"

#include "loops/order.h"

namespace aclsim {
namespace {

// The first extremum, or the first NaN.
template <bool Max, class C>
ACL_VECTOR C extremum(const C* x, int64_t n) {
  C lanes[16];
  for (int l = 0; l < 16; ++l) lanes[l] = x[0];
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int l = 0; l < 16; ++l) {
      const C v = x[i + l];
      lanes[l] = (Max ? v > lanes[l] : v < lanes[l]) || v != v ? v : lanes[l];
    }
  }
  C best = lanes[0];
  const auto join = [&](C v) { best = (Max ? v > best : v < best) || v != v ? v : best; };
  for (int l = 1; l < 16; ++l) join(lanes[l]);
  for (; i < n; ++i) join(x[i]);
  return best;
}
template <bool Max, class C>
void extremum_row(const C* x, int64_t n, C* best, int64_t* at) {
  const C top = extremum<Max>(x, n);
  int64_t i = 0;
  while (i < n - 1 && !(x[i] == top || (top != top && x[i] != x[i]))) ++i;
  best[0] = x[i];
  at[0] = i;
}
aclnnStatus check_extremum_dim(Call& c) {
  using P = params::MaxDim;

  return check_selection(c, P::self, P::dim, P::keepdim, P::out, P::indices);
}
template <bool Max>
void run_extremum_dim(Call& c) {
  using P = params::MaxDim;

  const Tensor& self = c.tensor(P::self);
  const Tensor values = with_axis(c.tensor(P::out), axis_of(c), self);
  const Tensor indices = with_axis(c.tensor(P::indices), axis_of(c), self);
  sort_rows(self, &values, &indices, axis_of(c),
            [](auto* x, int64_t n, auto* best, int64_t* at) { extremum_row<Max>(x, n, best, at); });
}
// (self, dim, keepdim, out). Clients flatten first for "over everything".
aclnnStatus check_arg_extremum(Call& c) {
  using P = params::ArgMax;

  ACL_RETURN_IF_FAILED(read_axis(c, P::dim, P::self));
  if (axis_size(c.tensor(P::self), axis_of(c)) == 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self %s has no elements along dim.",
                  shape_text(c.tensor(P::self)));
  }
  return expect_one(c, P::out, c.flag(P::keepdim), P::self);
}
template <bool Max>
void run_arg_extremum(Call& c) {
  using P = params::ArgMax;

  const Tensor& self = c.tensor(P::self);
  const Tensor indices = with_axis(c.tensor(P::out), axis_of(c), self);
  sort_rows(self, nullptr, &indices, axis_of(c),
            [](auto* x, int64_t n, auto* best, int64_t* at) { extremum_row<Max>(x, n, best, at); });
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnMaxDim, check_extremum_dim, run_extremum_dim<true>)
ACLNN_OP(aclnnMinDim, check_extremum_dim, run_extremum_dim<false>)
ACLNN_OP(aclnnArgMax, check_arg_extremum, run_arg_extremum<true>)
ACLNN_OP(aclnnArgMin, check_arg_extremum, run_arg_extremum<false>)
