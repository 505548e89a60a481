// Casts between the plain order and the inner format.
// Facts: the operator document of aclnnNpuFormatCast, and the example programs of the documents of
// aclnnQuantMatmulWeightNz and its like.
#include "loops/matrices.h"

namespace aclsim {
namespace {

// A tensor that holds tiles, whichever way its dims are told.
bool holds_tiles(const Tensor& t) { return in_tiles(t) || stands_for_tiles(t); }

// (src, dst): tiles have sixteen rows, and are padded with zeros.
aclnnStatus check_format(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1}));
  const Tensor &from = c.tensor(0), &to = c.tensor(1);
  if (in_tiles(from) == in_tiles(to)) return expect_same_shape(c, 1, 0);
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, 1, 0));
  if (from.rank >= 2 && to.rank >= 2) {
    const Matrices a = matrices_like(from, false, false), b = matrices_like(to, false, false);
    const Matrices &plain = in_tiles(to) ? a : b, &tiles = in_tiles(to) ? b : a;
    if (plain.batch == tiles.batch && plain.rows <= tiles.rows && plain.cols <= tiles.cols)
      return ACLNN_SUCCESS;
  }
  return c.fail(ACLNN_ERR_PARAM_INVALID, "dst %s does not hold src %s.", shape_text(to),
                shape_text(from));
}
aclError run_format(Call& c) {
  const Tensor &from = c.tensor(0), &to = c.tensor(1);
  if (!holds_tiles(from) && !holds_tiles(to)) {
    copy_tensor(to, from);
    return ACL_SUCCESS;
  }
  if (holds_tiles(to)) {
    write_tiles(to, matrices_of(from, false, false));
    return ACL_SUCCESS;
  }
  write(to, matrices_of(from, false, false, to.dims[to.rank - 2], width_of(to)).v);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP_FLAGS(aclnnNpuFormatCast, check_format, run_format, kOwnNulls | kOwnLimits)
