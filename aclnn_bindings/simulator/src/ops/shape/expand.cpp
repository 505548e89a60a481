// A tensor spread over dims of one.
#include "params/shape.h"
#include "loops/iterate.h"
#include "loops/matrices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

void run_expand(Call& c) {
  using P = params::Expand;

  copy_tensor(c.tensor(P::out), c.tensor(P::self));
}

// Arguments: (self, size, out): a broadcast made real.
aclnnStatus check_expand(Call& c) {
  using P = params::Expand;

  const Tensor& self = c.tensor(P::self);
  const Span<const int64_t> size = c.ints(P::size);
  if (size.size < self.rank || size.size > kMaxRank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "size has %lld values, self has %d dims.",
                  static_cast<long long>(size.size), self.rank);
  }
  Shape shape;
  shape.rank = static_cast<int>(size.size);
  for (int i = 0; i < shape.rank; ++i) {
    const int from = i - (shape.rank - self.rank);
    shape.dims[i] = size[i] == -1 && from >= 0 ? self.dims[from] : size[i];
    if (from >= 0 && self.dims[from] != 1 && self.dims[from] != shape.dims[i]) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "self %s can't expand to size %s.", shape_text(self),
                    shape_text(size.data, shape.rank));
    }
  }
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  return expect_shape(c, P::out, shape);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnExpand, check_expand, run_expand)
