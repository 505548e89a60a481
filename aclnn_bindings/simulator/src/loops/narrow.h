// Element types of eight bits and less: float8, hifloat8, float4, the power-of-two scale and packed
// int4. Two elements of four bits share a byte, the first in the low half.
// Sources: OCP "8-bit Floating Point Specification" 1.0 and "Microscaling Formats (MX)" 1.0;
// "Ascend HiFloat8 Format for Deep Learning", arXiv 2409.16626, tables 1 to 3.
#pragma once

#include "nnopbase/op.h"

namespace aclsim {

// Element `at` of a storage; ACL_INT4 and the types of dtype.h's is_narrow_float only.
float load_narrow(const void* data, aclDataType dtype, int64_t at);
// Rounds to the nearest, ties to even; hifloat8 rounds ties away from zero. What is too large
// becomes infinity or NaN where the type has them, else its largest value.
void store_narrow(float value, void* data, aclDataType dtype, int64_t at);
// The largest finite value of a type that quantisation writes to; 0 for others.
float largest(aclDataType dtype);

}  // namespace aclsim
