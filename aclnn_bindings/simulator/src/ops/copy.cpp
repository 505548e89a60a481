// Copies, casts and fills.
#include "loops/iterate.h"
#include "loops/matrices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

// Arguments: (selfRef, src); src broadcasts.
aclnnStatus check_copy(Call& c) {
  Shape shape = shape_of(c.tensor(0));
  if (!broadcast(shape, c.tensor(1))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s can't broadcast to %s.",
                  shape_text(c.tensor(1)), c.name(1), shape_text(c.tensor(0)));
  }
  return expect_shape(c, 0, shape);
}
aclError run_copy(Call& c) {
  const Tensor &to = c.tensor(0), &from = c.tensor(1);
  const bool tiles = stands_for_tiles(to);
  if ((tiles || stands_for_tiles(from)) && to.same_shape(from)) {
    const Matrices m = matrices_of(from, false, false);
    tiles ? write_tiles(to, m) : write(to, m.v);
    return ACL_SUCCESS;
  }
  copy_tensor(to, from);
  return ACL_SUCCESS;
}

// Arguments: (self, dtype, out).
aclnnStatus check_cast(Call& c) {
  ACL_RETURN_IF_FAILED(expect_dtype(c, 2, static_cast<aclDataType>(c.integer(1))));
  return expect_same_shape(c, 2, 0);
}
aclError run_cast(Call& c) {
  copy_tensor(c.tensor(2), c.tensor(0));
  return ACL_SUCCESS;
}

template <int Value>
aclError run_constant(Call& c) {
  Scalar s = {ACL_INT64, {}};
  s.bytes[0] = Value;
  fill_tensor(c.tensor(0), s);
  return ACL_SUCCESS;
}
aclError run_fill_scalar(Call& c) {
  fill_tensor(c.tensor(0), c.scalar(1));
  return ACL_SUCCESS;
}

// Arguments: (selfRef, value), value 0-d or of one element.
aclnnStatus check_fill_tensor(Call& c) {
  if (c.tensor(1).numel() == 1 && c.tensor(1).rank <= 1) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have one element, but its shape is %s.",
                c.name(1), shape_text(c.tensor(1)));
}
aclError run_fill_tensor(Call& c) {
  Tensor value = c.tensor(1);
  value.rank = 0;
  copy_tensor(c.tensor(0), value);
  return ACL_SUCCESS;
}

// Arguments: (self, size, out): a broadcast made real.
aclnnStatus check_expand(Call& c) {
  const Tensor& self = c.tensor(0);
  const Span<const int64_t> size = c.ints(1);
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
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, 2, 0));
  return expect_shape(c, 2, shape);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnInplaceCopy, check_copy, run_copy)
ACLNN_OP(aclnnCast, check_cast, run_cast)
ACLNN_OP(aclnnInplaceZero, nullptr, run_constant<0>)
ACLNN_OP(aclnnInplaceOne, nullptr, run_constant<1>)
ACLNN_OP(aclnnInplaceFillScalar, nullptr, run_fill_scalar)
ACLNN_OP(aclnnInplaceFillTensor, check_fill_tensor, run_fill_tensor)
ACLNN_OP(aclnnExpand, check_expand, run_cast)
