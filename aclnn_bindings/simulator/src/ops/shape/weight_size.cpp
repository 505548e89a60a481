// Weights in the order of a matrix unit: how many elements they take, and the order itself, which stays
// plain here (see docs/unspecified_ops.md). Sizes: the operator documents of aclnnTransMatmulWeight and
// aclnnTransConvolutionWeight, and those of the formats FRACTAL_NZ and FRACTAL_Z.
#include "params/shape.h"
#include <aclnnop/aclnn_trans_convolution_weight.h>
#include <aclnnop/aclnn_trans_matmul_weight.h>

#include "ascendcl/common.h"
#include "loops/values.h"
#include "nnopbase/descriptors.h"

namespace aclsim {
namespace {

constexpr uint64_t kTile = 16;
uint64_t tiled(int64_t n, uint64_t tile) { return (static_cast<uint64_t>(n) + tile - 1) / tile * tile; }

// The last two dims are padded to tiles: sixteen rows, and 32 bytes of each.
aclnnStatus matrix_size(const aclIntArray* shape, aclDataType dtype, uint64_t* size) {
  if (!shape || !size) return ACLNN_ERR_PARAM_NULLPTR;
  const uint64_t rank = shape->size;
  const int64_t* dims = shape->data;
  if (rank < 2) return ACLNN_ERR_PARAM_INVALID;
  if (dtype != ACL_FLOAT16 && dtype != ACL_BF16 && dtype != ACL_INT8) return ACLNN_ERR_PARAM_INVALID;
  *size = 1;
  for (uint64_t i = 0; i < rank; ++i) {
    if (dims[i] < 1) return ACLNN_ERR_PARAM_INVALID;
    const uint64_t tile = i + 1 == rank && dtype == ACL_INT8 ? 2 * kTile : kTile;
    *size *= i + 2 < rank ? static_cast<uint64_t>(dims[i]) : tiled(dims[i], tile);
  }
  return ACLNN_SUCCESS;
}

// (weight, transposed, groups, out): as many elements or more, the others are zero.
aclnnStatus check_weight(Call& c) {
  using P = params::TransConvolutionWeight;

  const Tensor &in = c.tensor(P::weightIn), &out = c.tensor(P::weightOut);
  if (in.rank == 4 && c.integer(P::groups) >= 1 && out.numel() >= in.numel() && out.contiguous())
    return ACLNN_SUCCESS;
  return c.fail(
      ACLNN_ERR_PARAM_INVALID,
      "weightOut %s should be dense and hold weightIn %s of 4 dims, groups %lld be positive.",
      shape_text(out), shape_text(in), static_cast<long long>(c.integer(P::groups)));
}
void run_weight(Call& c) {
  using P = params::TransConvolutionWeight;

  Floats all = floats(c.tensor(P::weightIn));
  all.resize(static_cast<size_t>(c.tensor(P::weightOut).numel()));
  write(c.tensor(P::weightOut), all);
}

}  // namespace
}  // namespace aclsim

ACLSIM_API aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape,
                                                      uint64_t* weightTensorSize) {
  return aclsim::matrix_size(tensorShape, ACL_FLOAT16, weightTensorSize);
}
ACLSIM_API aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape,
                                                        aclDataType dataType,
                                                        uint64_t* weightTensorSize) {
  return aclsim::matrix_size(tensorShape, dataType, weightTensorSize);
}
// [N, C, H, W] (or [C, N, H, W], transposed) in tiles of sixteen by sixteen channels.
ACLSIM_API aclnnStatus aclnnCalculateConvolutionWeightSize(const aclIntArray* tensorShape, bool,
                                                           int64_t groups, aclDataType dataType,
                                                           uint64_t* weightTensorSize) {
  if (!tensorShape || !weightTensorSize) return ACLNN_ERR_PARAM_NULLPTR;
  const int64_t* d = tensorShape->data;
  if (tensorShape->size != 4 || groups < 1 ||
      (dataType != ACL_FLOAT16 && dataType != ACL_FLOAT)) {
    return ACLNN_ERR_PARAM_INVALID;
  }
  for (int i = 0; i < 4; ++i) {
    if (d[i] < 1) return ACLNN_ERR_PARAM_INVALID;
  }
  *weightTensorSize = aclsim::tiled(d[0], aclsim::kTile) * aclsim::tiled(d[1], aclsim::kTile) *
                      static_cast<uint64_t>(d[2] * d[3]);
  return ACLNN_SUCCESS;
}

ACLNN_OP(aclnnTransConvolutionWeight, check_weight, run_weight)
