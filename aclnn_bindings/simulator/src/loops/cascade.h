// Sums of floating-point tensors in torch's order of additions on x86 processors: partial sums in
// vectors of 32 bytes, four at a time, chunks of them added level by level.
#pragma once

#include "nnopbase/op.h"

namespace aclsim {

// Sums `self` over the axes of a bit mask into dense `out` of the compute type (float or double),
// which has one element for each result. `skips_nan`: NaN counts as 0. `pairs`: rows of halves are
// added as torch adds them, two vectors first.
template <class C>
void cascade_sum(C* out, const Tensor& self, uint32_t axes, bool skips_nan, bool pairs);

}  // namespace aclsim
