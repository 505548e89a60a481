// What saturation does to results: infinities of 16-bit floats become the largest number, NaN 0.
#pragma once

#include "nnopbase/op.h"

namespace aclsim {

// Saturates the float16 and bfloat16 results of a call that has run; what only moves values, and
// FLOAT, is left alone. Source: asc_set_ctrl document (CANN 9.1), CTRL[48]: arithmetic in half,
// and conversions to half and bfloat16; bfloat16 results are converted from FLOAT.
void saturate(const Call& call);

}  // namespace aclsim
