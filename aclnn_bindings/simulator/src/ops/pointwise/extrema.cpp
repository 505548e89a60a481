// Extrema of many tensors, element by element.
#include "params/pointwise.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (tensors, out): the largest or smallest of all, element by element, broadcast together.
aclnnStatus check_many(Call& c) {
  using P = params::MaxN;

  Shape shape;
  bool fits = c.tensors(P::tensors).size > 0;
  for (const Tensor* t : c.tensors(P::tensors)) fits = fits && t && broadcast(shape, *t);
  if (!fits) return c.fail(ACLNN_ERR_PARAM_INVALID, "The shapes of tensors can't broadcast.");
  return expect_shape(c, P::out, shape);
}
template <bool Max>
void run_many(Call& c) {
  using P = params::MaxN;

  const Tensor& out = c.tensor(P::out);
  with_real(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> best(static_cast<size_t>(out.numel())), next(best.size());
    bool first = true;
    for (const Tensor* t : c.tensors(P::tensors)) {
      std::vector<T>& to = first ? best : next;
      if (!to.empty()) copy_tensor(dense(to.data(), dtype_of<T>(), out.dims, out.rank), *t);
      for (size_t i = 0; !first && i < best.size(); ++i) {
        const bool wins = Max ? next[i] > best[i] : next[i] < best[i];
        if (wins || next[i] != next[i]) best[i] = next[i];
      }
      first = false;
    }
    put(out, best);
  });
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnMaxN, check_many, run_many<true>)
ACLNN_OP(aclnnMinN, check_many, run_many<false>)
