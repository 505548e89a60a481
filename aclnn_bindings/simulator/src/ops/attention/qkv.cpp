// Queries, keys and values from one product: bias, scale and split by heads.
#include "params/attention.h"
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// (qkv [B, T, 3 D], qkvBias [3 D], numHeads, q, k, v [B, H, T, D / H]): q is scaled by 1 / sqrt(D / H).
aclnnStatus check_qkv(Call& c) {
  using P = params::TransformBiasRescaleQkv;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::qkv, 3, 3));
  const Tensor& t = c.tensor(P::qkv);
  const int64_t heads = c.integer(P::numHeads);
  if (heads < 1 || t.dims[2] % (3 * heads)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "numHeads %lld doesn't fit qkv, whose shape is %s.",
                  static_cast<long long>(heads), shape_text(t));
  }
  ACL_RETURN_IF_FAILED(expect_dims(c, P::qkvBias, {t.dims[2]}));
  for (int i : {P::qOut, P::kOut, P::vOut}) {
    ACL_RETURN_IF_FAILED(expect_dims(c, i, {t.dims[0], heads, t.dims[1], t.dims[2] / 3 / heads}));
  }
  return ACLNN_SUCCESS;
}
void run_qkv(Call& c) {
  using P = params::TransformBiasRescaleQkv;

  const Tensor& t = c.tensor(P::qkv);
  const int64_t steps = t.dims[1], heads = c.integer(P::numHeads), width = t.dims[2] / 3 / heads;
  const Numbers x = numbers(t), bias = numbers(c.tensor(P::qkvBias));
  for (int part = 0; part < 3; ++part) {
    const double scale = part ? 1 : 1 / std::sqrt(static_cast<double>(width));
    Numbers out(static_cast<size_t>(c.tensor(P::qOut + part).numel()));
    for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
      const int64_t step = i / width % steps, head = i / width / steps % heads;
      const int64_t batch = i / width / steps / heads;
      const int64_t column = (part * heads + head) * width + i % width;
      out[i] = (x[(batch * steps + step) * t.dims[2] + column] + bias[column]) * scale;
    }
    put(c.tensor(P::qOut + part), out);
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnTransformBiasRescaleQkv, check_qkv, run_qkv)
