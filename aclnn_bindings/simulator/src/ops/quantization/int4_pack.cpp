// Weights of four bits packed by eights.
#include "params/quantization.h"
#include "loops/matrices.h"

namespace aclsim {
namespace {

// (weight int32, packed): one int4 for each element, the first in the low bits.
aclnnStatus check_pack(Call& c) {
  using P = params::ConvertWeightToINT4Pack;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::weight, P::weightInt4Pack}));
  return expect_quantized(c, P::weightInt4Pack, P::weight);
}
void run_pack(Call& c) {
  using P = params::ConvertWeightToINT4Pack;

  write_quantized(c.maybe(P::weightInt4Pack), floats(c.tensor(P::weight)));
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnConvertWeightToINT4Pack, check_pack, run_pack)
