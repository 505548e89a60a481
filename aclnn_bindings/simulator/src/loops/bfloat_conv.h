// Convolutions of bfloat16 on processors that multiply it: see bfloat_gemm.h.
#pragma once

#include "ascendcl/dtype.h"
#include "loops/conv.h"

namespace aclsim {

// Whether values and shapes suit: a tile's rows are filled, few columns lie in the padding, and no sum
// is subnormal.
bool convolves(const ConvShape& s, const bfloat* x, const bfloat* w);

// y = convolution of x, plus bias where given, as conv_forward.
void convolve(const ConvShape& s, float* y, const bfloat* x, const bfloat* w, const float* bias);

}  // namespace aclsim
