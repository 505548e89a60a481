#include "nnopbase/saturation.h"

#include <cstring>

#include "nnopbase/executor.h"
#include "nnopbase/fault_check.h"

namespace aclsim {
namespace {

struct Format {
  uint16_t exponent, largest;
};
constexpr Format kHalf{0x7C00, 0x7BFF}, kBfloat{0x7F80, 0x7F7F};

// Operators that carry values over without arithmetic: their names begin so.
constexpr const char* kMoves[] = {
    "aclnnAsStrided", "aclnnCat", "aclnnCircularPad", "aclnnConstantPad", "aclnnDiagFlat",
    "aclnnEmbedding", "aclnnExpand", "aclnnFlatten", "aclnnFlip", "aclnnGather", "aclnnIndex",
    "aclnnInplaceCopy", "aclnnInplaceIndex", "aclnnInplaceMasked", "aclnnInplacePut",
    "aclnnInplaceScatter", "aclnnMasked", "aclnnPermute", "aclnnReflectionPad",
    "aclnnRepeat", "aclnnReplicationPad", "aclnnRoll", "aclnnSWhere", "aclnnScatter", "aclnnSlice",
    "aclnnSplit", "aclnnStack", "aclnnStridedSlice", "aclnnTake", "aclnnTransform", "aclnnTril",
    "aclnnTriu", "aclnnUnfold", "aclnnUnique",
};

bool moves(const char* name) {
  for (const char* prefix : kMoves) {
    if (!std::strncmp(name, prefix, std::strlen(prefix))) return true;
  }
  return false;
}

bool reads(const Call& call, aclDataType dtype) {
  for (int i = 0; i < call.count; ++i) {
    if (call.executor->entry->spec->params[i].output) continue;
    const Arg& arg = call.args[i];
    if (arg.kind == ArgKind::Tensor && arg.tensor && arg.tensor->dtype == dtype) return true;
    for (int64_t m = 0; arg.kind == ArgKind::TensorList && arg.tensors && m < arg.size; ++m) {
      if (arg.tensors[m] && arg.tensors[m]->dtype == dtype) return true;
    }
  }
  return false;
}

void saturate(const Tensor& out, const Format& format) {
  auto* values = static_cast<uint16_t*>(out.data);
  const int64_t n = out.numel();
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = out.offset, rest = i;
    for (int d = out.rank - 1; d >= 0; --d) {
      at += rest % out.dims[d] * out.strides[d];
      rest /= out.dims[d];
    }
    uint16_t& value = values[at];
    const uint16_t magnitude = value & 0x7FFF;
    if (magnitude == format.exponent) value = (value & 0x8000) | format.largest;
    if (magnitude > format.exponent) value = 0;
  }
}

}  // namespace

void saturate(const Call& call) {
  const bool moving = moves(call.executor->entry->spec->name);
  for_outputs(call, [&](const Tensor& out) {
    const bool half = out.dtype == ACL_FLOAT16;
    if ((!half && out.dtype != ACL_BF16) || !out.data) return;
    if (!moving || !reads(call, out.dtype)) saturate(out, half ? kHalf : kBfloat);
  });
}

}  // namespace aclsim
