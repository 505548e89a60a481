// Casts between the plain order and the inner format.
// Facts: the operator document of aclnnNpuFormatCast, and the example programs of the documents of
// aclnnQuantMatmulWeightNz and its like.
#include "params/shape.h"
#include <aclnnop/aclnn_npu_format_cast.h>

#include "ascendcl/config.h"
#include "ascendcl/error.h"
#include "loops/matrices.h"
#include "nnopbase/descriptors.h"

namespace aclsim {
namespace {

// A tensor that holds tiles, whichever way its dims are told.
bool holds_tiles(const Tensor& t) { return in_tiles(t) || stands_for_tiles(t); }

// (src, dst): tiles have sixteen rows, and are padded with zeros.
aclnnStatus check_format(Call& c) {
  using P = params::NpuFormatCast;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::srcTensor, P::dstTensor}));
  const Tensor &from = c.tensor(P::srcTensor), &to = c.tensor(P::dstTensor);
  if (in_tiles(from) == in_tiles(to)) return expect_same_shape(c, P::dstTensor, P::srcTensor);
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::dstTensor, P::srcTensor));
  if (from.rank >= 2 && to.rank >= 2) {
    const Matrices a = matrices_like(from, false, false), b = matrices_like(to, false, false);
    const Matrices &plain = in_tiles(to) ? a : b, &tiles = in_tiles(to) ? b : a;
    if (plain.batch == tiles.batch && plain.rows <= tiles.rows && plain.cols <= tiles.cols)
      return ACLNN_SUCCESS;
  }
  return c.fail(ACLNN_ERR_PARAM_INVALID, "dst %s does not hold src %s.", shape_text(to),
                shape_text(from));
}
void run_format(Call& c) {
  using P = params::NpuFormatCast;

  const Tensor &from = c.tensor(P::srcTensor), &to = c.tensor(P::dstTensor);
  if (!holds_tiles(from) && !holds_tiles(to)) {
    copy_tensor(to, from);
    return;
  }
  if (holds_tiles(to)) {
    write_tiles(to, matrices_of(from, false, false));
    return;
  }
  write(to, matrices_of(from, false, false, to.dims[to.rank - 2], width_of(to)).v);
}

constexpr const char* kSizes = "aclnnNpuFormatCastCalculateSizeAndFormat";

bool inner(int format) {
  return format == ACL_FORMAT_FRACTAL_NZ ||
         (format >= ACL_FORMAT_FRACTAL_NZ_C0_16 && format <= ACL_FORMAT_FRACTAL_NZ_C0_8);
}
// Formats of two or three dims: a matrix, or a batch of them.
bool flat(int format) { return format == ACL_FORMAT_ND || format == ACL_FORMAT_NCL; }

// Is it a dtype that tiles may be sized by? (float4 is not simulated.)
bool sizes_tiles(aclDataType like) {
  switch (like) {
    case ACL_INT8: case ACL_UINT8: case ACL_INT32: case ACL_UINT32: case ACL_FLOAT: case ACL_FLOAT16:
    case ACL_BF16: return true;
    case ACL_FLOAT8_E4M3FN: case ACL_HIFLOAT8: return config().soc->soc == Soc::Ascend950;
    default: return false;
  }
}
// The format of tiles that rows of `wide` elements of dtype `from` make; undefined where the document
// has no row for it. Ascend950 has names for tiles that are not 32 bytes wide.
aclFormat tiles_of(aclDataType from, aclDataType like) {
  if (config().soc->soc != Soc::Ascend950 || from == like) return ACL_FORMAT_FRACTAL_NZ;
  if (from != ACL_FLOAT && from != ACL_INT32) return ACL_FORMAT_UNDEFINED;
  if (like == ACL_FLOAT16 || like == ACL_BF16) return ACL_FORMAT_FRACTAL_NZ_C0_16;
  return from == ACL_FLOAT && like == ACL_FLOAT8_E4M3FN ? ACL_FORMAT_FRACTAL_NZ_C0_32
                                                        : ACL_FORMAT_UNDEFINED;
}
aclnnStatus refuse_cast(int from, int to, const char* why) {
  return failed(ACLNN_ERR_RUNTIME_ERROR, "EZ9903", "%s failed. A cast from format %d to %d %s.", kSizes,
                from, to, why);
}

// The shape and format that a cast of src to `format` has: tiles of sixteen rows, as wide as 32 bytes
// of the dtype `like`.
aclnnStatus size_and_format(const aclTensor* src, int format, aclDataType like,
                            std::vector<int64_t>* shape, int* actual) {
  const int32_t rank = src->view.rank;
  const int from = src->declared;
  if (rank < 2 || rank > 6 || src->view.numel() == 0) {
    return failed(ACLNN_ERR_PARAM_INVALID, "EZ1001",
                  "%s failed. srcTensor should have two to six dims and elements, its shape is %s.", kSizes,
                  shape_text(src->view));
  }
  if (like == ACL_DT_UNDEFINED) like = src->view.dtype;
  const auto size = static_cast<int64_t>(dtype_size(like));
  if (!sizes_tiles(like)) {
    return failed(ACLNN_ERR_PARAM_INVALID, "EZ1001", "%s failed. additionalDtype %s is not supported.",
                  kSizes, dtype_name(like));
  }
  shape->assign(src->dims(), src->dims() + rank);
  *actual = format;
  if (rank > 3) return refuse_cast(from, format, "of more than three dims is not simulated");
  if (inner(from) && flat(format)) return ACLNN_SUCCESS;
  if (!flat(from) || format != ACL_FORMAT_FRACTAL_NZ) return refuse_cast(from, format, "is not simulated");
  *actual = tiles_of(src->view.dtype, like);
  if (*actual == ACL_FORMAT_UNDEFINED) return refuse_cast(from, format, "has no such additionalDtype");
  const int64_t wide = 32 / size, rows = (*shape)[rank - 2], cols = (*shape)[rank - 1];
  shape->resize(static_cast<size_t>(rank - 2));
  for (int64_t n : {(cols + wide - 1) / wide, (rows + 15) / 16, int64_t{16}, wide}) shape->push_back(n);
  return ACLNN_SUCCESS;
}

}  // namespace
}  // namespace aclsim

// `*dstShape` belongs to the caller, who must delete[] it.
ACLSIM_API aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor* srcTensor,
                                                                const int dstFormat,
                                                                int additionalDtype, int64_t** dstShape,
                                                                uint64_t* dstShapeSize,
                                                                int* actualFormat) {
  using namespace aclsim;
  if (!srcTensor || !dstShape || !dstShapeSize || !actualFormat || !srcTensor->is(Kind::Tensor)) {
    return failed(ACLNN_ERR_PARAM_NULLPTR, "EZ1001", "%s failed. An argument is null or no tensor.", kSizes);
  }
  const Soc soc = config().soc->soc;
  if (soc != Soc::Ascend910B && soc != Soc::Ascend910_93 && soc != Soc::Ascend950) {
    return failed(ACLNN_ERR_RUNTIME_ERROR, "EZ9903", "%s failed. It is not documented for %s.", kSizes,
                  config().soc->name);
  }
  std::vector<int64_t> shape;
  const aclnnStatus status = size_and_format(
      srcTensor, dstFormat, static_cast<aclDataType>(additionalDtype), &shape, actualFormat);
  if (status != ACLNN_SUCCESS) return status;
  *dstShapeSize = shape.size();
  *dstShape = new int64_t[shape.size()];
  std::copy(shape.begin(), shape.end(), *dstShape);
  return ACLNN_SUCCESS;
}

ACLNN_OP_FLAGS(aclnnNpuFormatCast, check_format, run_format, kOwnNulls | kOwnLimits)
