// What cubeMathType lets the matrix unit do to 32-bit inputs, by product. Owns which combinations are
// refused and how inputs are rounded; source: documents of aclnnMatmul and aclnnConvolution.
#pragma once

#include "nnopbase/executor.h"

namespace aclsim {

bool has_modes(const OpSpec& spec);
// Phase 1, of an operator that has modes: 161002 for a mode that the product or the dtype of the factors does not have.
aclnnStatus check_precision(Executor* executor);
// Phase 2: runs the op on what its factors are in the mode that was asked for.
aclError run_in_precision(Call& call, bool saturates);
// What a 32-bit number keeps in HF32: 11 of its 23 fraction bits, ties to even.
float as_hf32(float value);

}  // namespace aclsim
