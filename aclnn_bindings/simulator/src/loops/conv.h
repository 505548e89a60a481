// Convolutions over one to three spatial dims, as matrix products over unfolded patches: the value
// and its two derivatives, from which the transposed convolution follows. All data is dense;
// `From` is float, or bfloat where the processor multiplies it, and sums are float.
#pragma once

#include "nnopbase/op.h"

namespace aclsim {

// A convolution from x [n, groups * in_channels, in...] to y [n, groups * out_channels, out...]
// with weights [groups * out_channels, in_channels, kernel...]. Fewer than three spatial dims:
// leading ones.
struct ConvShape {
  int64_t n, groups, in_channels, out_channels;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];

  int64_t in_space() const { return in[0] * in[1] * in[2]; }
  int64_t out_space() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t depth() const { return in_channels * taps(); }  // products per output element
  // A kernel of one point that moves over the input itself: patches are the input.
  bool pointwise() const {
    for (int i = 0; i < 3; ++i) {
      if (kernel[i] != 1 || stride[i] != 1 || pad[i] != 0 || in[i] != out[i]) return false;
    }
    return true;
  }
};

// y = convolution of x, plus bias [groups * out_channels] where given.
template <class From>
void conv_forward(const ConvShape& s, float* y, const From* x, const From* w, const float* bias);
// gx: the gradient by x; plus bias [groups * in_channels] where given (a transposed convolution).
template <class From>
void conv_input_grad(const ConvShape& s, float* gx, const From* gy, const From* w,
                     const float* bias);
template <class From>
void conv_weight_grad(const ConvShape& s, float* gw, const From* gy, const From* x);

// patches [in_channels * taps, out_space] of one image, zero where the kernel reaches outside; and
// their sums back into the places of x they come from.
void conv_unfold(const ConvShape& s, float* patches, const float* x);
void conv_fold(const ConvShape& s, float* x, const float* patches);

}  // namespace aclsim
