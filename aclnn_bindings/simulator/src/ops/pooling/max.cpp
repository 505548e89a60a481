// Max pooling with the positions of the maxima as indices or as a bit mask, adaptive max pooling,
// and their gradients.
#include "params/pooling.h"
#include "loops/given.h"
#include "loops/rows.h"
#include "loops/stage.h"
#include "loops/window.h"

namespace aclsim {
namespace {

// The largest input of every window, and where it lies in its plane. The first of equals wins, NaN
// beats everything, as in torch.
template <class C>
void pool_max(const Windows& w, C* y, int64_t* at, const C* x) {
  each_planes(w, [&](int64_t first, int64_t last) {
    each_window(w, first, last,
                [&](int64_t p, int64_t o, const Windows::Reach& deep, const Windows::Reach& high,
                    const Windows::Reach& wide) {
                  const C* plane = x + p * w.in_space();
                  int64_t best = (deep.begin * w.in[1] + high.begin) * w.in[2] + wide.begin;
                  C top = -std::numeric_limits<C>::infinity();
                  each_input(w, deep, high, wide, [&](int64_t i) {
                    if (plane[i] > top || plane[i] != plane[i]) {
                      top = plane[i];
                      best = i;
                    }
                  });
                  y[p * w.out_space() + o] = top;
                  at[p * w.out_space() + o] = best;
                });
  });
}

// Space for positions, and for what isn't dense.
uint64_t space_for(const Call& c, const Windows& w, const Tensor& self) {
  return stage_bytes(c, compute_dtype(self)) +
         stage_round(static_cast<uint64_t>(w.planes * w.out_space()) * 8);
}
template <class C, class Keep>
void run_forward(Call& c, int out, Keep keep) {
  using P = params::AdaptiveMaxPool2d;

  const Windows& w = c.get<Windows>();
  Stage<C> stage(c);
  const C* x = stage.in(c.tensor(P::self));
  C* y = stage.out(c.tensor(out));
  int64_t* at = stage.template take<int64_t>(w.planes * w.out_space());
  pool_max(w, y, at, x);
  stage.done();
  keep(w, at);
}
template <int Out>
void run_indices(Call& c) {
  using P = params::AdaptiveMaxPool2d;

  with_float(c.tensor(P::self).dtype, [&](auto tag) {
    run_forward<typename decltype(tag)::type>(c, Out, [&](const Windows&, int64_t* at) {
      const Tensor& indices = c.tensor(Out + 1);
      copy_tensor(indices, dense(at, ACL_INT64, indices.dims, indices.rank));
    });
  });
}

template <int Dims>
aclnnStatus check_indices(Call& c) {
  using P = params::MaxPool3dWithArgmax;

  Shape pooled;
  ACL_RETURN_IF_FAILED(read_windows(c, P::self, Dims, P::kernelSize, P::stride, P::padding,
                                    P::dilation, c.flag(P::ceilMode), pooled));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::out, pooled));
  c.workspace_size = space_for(c, c.get<Windows>(), c.tensor(P::self));
  return expect_shape(c, P::indices, pooled);
}
template <int Dims>
aclnnStatus check_adaptive_max(Call& c) {
  using P = params::AdaptiveMaxPool2d;

  const Span<const int64_t> size = c.ints(P::outputSize);
  ACL_RETURN_IF_FAILED(read_adaptive(c, P::self, P::outputOut, Dims));
  const Windows& w = c.get<Windows>();
  bool fits = size.size == Dims;
  for (int i = 0; fits && i < Dims; ++i) fits = size[i] == w.out[3 - Dims + i];
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "outputSize should be the last dims of outputOut, %s.",
                  shape_text(c.tensor(P::outputOut)));
  }
  c.workspace_size = space_for(c, w, c.tensor(P::self));
  return expect_same_shape(c, P::indicesOut, P::outputOut);
}

// Gradients go to the positions, in the order of the outputs.
template <class C>
aclError scatter(Call& c, int grad_input) {
  using P = params::AdaptiveMaxPool2dBackward;

  const Windows& w = c.get<Windows>();
  Stage<C> stage(c);
  const C* g = stage.in(c.tensor(P::gradOutput));
  C* gx = stage.out(c.tensor(grad_input));
  const Tensor& indices = c.tensor(P::indices);
  int64_t* at = stage.template take<int64_t>(w.planes * w.out_space());
  copy_tensor(dense(at, ACL_INT64, indices.dims, indices.rank), indices);
  const int64_t in = w.in_space(), out = w.out_space();
  for (int64_t i = 0; i < w.planes * out; ++i) {
    if (at[i] < 0 || at[i] >= in) {
      return c.trap(507015, "index %lld is out of range for a plane of %lld elements",
                    static_cast<long long>(at[i]), static_cast<long long>(in));
    }
  }
  each_planes(w, [&](int64_t first, int64_t last) {
    std::fill(gx + first * in, gx + last * in, C(0));
    for (int64_t p = first; p < last; ++p) {
      for (int64_t o = p * out; o < (p + 1) * out; ++o) gx[p * in + at[o]] += g[o];
    }
  });
  stage.done();
  return ACL_SUCCESS;
}
template <int Dims>
aclnnStatus check_indices_grad(Call& c) {
  using P = params::MaxPool3dWithArgmaxBackward;

  Shape pooled;
  ACL_RETURN_IF_FAILED(read_windows(c, P::self, Dims, P::kernelSize, P::stride, P::padding,
                                    P::dilation, c.flag(P::ceilMode), pooled));
  for (int arg : {P::gradOutput, P::indices}) ACL_RETURN_IF_FAILED(expect_shape(c, arg, pooled));
  c.workspace_size = space_for(c, c.get<Windows>(), c.tensor(P::gradOutput));
  return expect_same_shape(c, P::gradInput, P::self);
}
template <int Dims>
aclnnStatus check_adaptive_max_grad(Call& c) {
  using P = params::AdaptiveMaxPool2dBackward;

  ACL_RETURN_IF_FAILED(read_adaptive(c, P::self, P::gradOutput, Dims));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::indices, P::gradOutput));
  c.workspace_size = space_for(c, c.get<Windows>(), c.tensor(P::gradOutput));
  return expect_same_shape(c, P::gradInput, P::self);
}
template <int GradInput>
aclError run_scatter(Call& c) {
  using P = params::AdaptiveMaxPool2dBackward;

  aclError error = ACL_SUCCESS;
  with_float(c.tensor(P::gradOutput).dtype,
             [&](auto tag) { error = scatter<typename decltype(tag)::type>(c, GradInput); });
  return error;
}

// The mask has a row for every place of the kernel and in it a bit for every output, set where the
// maximum lies at that place. CANN keeps rows of (ceil(outputs / 16) + 1) * 32 bytes and leaves
// their layout open (aclnnMaxPool2dWithMask document).
int64_t mask_row(const Windows& w) { return ((w.out_space() + 15) / 16 + 1) * 32; }

aclnnStatus expect_mask(const Call& c, int arg, const Shape& pooled) {
  const Windows& w = c.get<Windows>();
  Shape expected = pooled;
  expected.dims[expected.rank - 2] = w.kernel[1] * w.kernel[2];
  expected.dims[expected.rank - 1] = mask_row(w);
  return expect_shape(c, arg, expected);
}
aclnnStatus check_mask(Call& c) {
  using P = params::MaxPool2dWithMask;

  Shape pooled;
  ACL_RETURN_IF_FAILED(read_windows(c, P::self, 2, P::kernelSize, P::stride, P::padding,
                                    P::dilation, c.flag(P::ceilMode), pooled));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::out, pooled));
  c.workspace_size = space_for(c, c.get<Windows>(), c.tensor(P::self)) +
                     stage_round(static_cast<uint64_t>(c.tensor(P::indices).numel()));
  return expect_mask(c, P::indices, pooled);
}
int64_t place_of(const Windows& w, int64_t output, int64_t position) {
  const int64_t h = position / w.in[2] + w.pad[1] - output / w.out[2] * w.stride[1];
  const int64_t x = position % w.in[2] + w.pad[2] - output % w.out[2] * w.stride[2];
  return h / w.dilation[1] * w.kernel[2] + x / w.dilation[2];
}
int64_t position_of(const Windows& w, int64_t output, int64_t place) {
  const int64_t h =
      output / w.out[2] * w.stride[1] - w.pad[1] + place / w.kernel[2] * w.dilation[1];
  const int64_t x =
      output % w.out[2] * w.stride[2] - w.pad[2] + place % w.kernel[2] * w.dilation[2];
  return h < 0 || h >= w.in[1] || x < 0 || x >= w.in[2] ? -1 : h * w.in[2] + x;
}
void run_mask(Call& c) {
  using P = params::MaxPool2dWithMask;

  run_forward<float>(c, P::out, [&](const Windows& w, int64_t* at) {
    const Tensor& mask = c.tensor(P::indices);
    auto* bits = reinterpret_cast<uint8_t*>(at + w.planes * w.out_space());
    std::memset(bits, 0, static_cast<size_t>(mask.numel()));
    const int64_t row = mask_row(w), places = w.kernel[1] * w.kernel[2];
    for (int64_t i = 0; i < w.planes * w.out_space(); ++i) {
      const int64_t o = i % w.out_space(), place = place_of(w, o, at[i]);
      bits[(i / w.out_space() * places + place) * row + o / 8] |= static_cast<uint8_t>(1 << o % 8);
    }
    copy_tensor(mask, dense(bits, ACL_INT8, mask.dims, mask.rank));
  });
}
aclnnStatus check_mask_grad(Call& c) {
  using P = params::MaxPool2dWithMaskBackward;

  Shape pooled;
  ACL_RETURN_IF_FAILED(read_windows(c, P::self, 2, P::kernelSize, P::stride, P::padding,
                                    P::dilation, c.flag(P::ceilMode), pooled));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::gradOutput, pooled));
  ACL_RETURN_IF_FAILED(expect_mask(c, P::indices, pooled));
  c.workspace_size =
      stage_bytes(c, ACL_FLOAT) + stage_round(static_cast<uint64_t>(c.tensor(P::indices).numel()));
  return expect_same_shape(c, P::gradInput, P::self);
}
void run_mask_grad(Call& c) {
  using P = params::MaxPool2dWithMaskBackward;

  const Windows& w = c.get<Windows>();
  Stage<float> stage(c);
  const float* g = stage.in(c.tensor(P::gradOutput));
  float* gx = stage.out(c.tensor(P::gradInput));
  const Tensor& mask = c.tensor(P::indices);
  auto* bits = stage.take<int8_t>(mask.numel());
  copy_tensor(dense(bits, ACL_INT8, mask.dims, mask.rank), mask);
  const int64_t row = mask_row(w), places = w.kernel[1] * w.kernel[2], out = w.out_space();
  each_planes(w, [&](int64_t first, int64_t last) {
    std::fill(gx + first * w.in_space(), gx + last * w.in_space(), 0.0f);
    for (int64_t i = first * places; i < last * places; ++i) {
      for (int64_t o = 0; o < out; ++o) {
        if (!(bits[i * row + o / 8] >> o % 8 & 1)) continue;
        const int64_t position = position_of(w, o, i % places);
        if (position >= 0) gx[i / places * w.in_space() + position] += g[i / places * out + o];
      }
    }
  });
  stage.done();
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnMaxPool2dWithIndices, check_indices<2>,
         run_indices<params::MaxPool2dWithIndices::out>)
ACLNN_OP(aclnnMaxPool2dWithIndicesBackward, check_indices_grad<2>,
         run_scatter<params::MaxPool2dWithIndicesBackward::gradInput>)
ACLNN_OP(aclnnMaxPool3dWithArgmax, check_indices<3>, run_indices<params::MaxPool3dWithArgmax::out>)
ACLNN_OP(aclnnMaxPool3dWithArgmaxBackward, check_indices_grad<3>,
         run_scatter<params::MaxPool3dWithArgmaxBackward::gradInput>)
ACLNN_OP(aclnnMaxPool2dWithMask, check_mask, run_mask)
ACLNN_OP(aclnnMaxPool2dWithMaskBackward, check_mask_grad, run_mask_grad)
ACLNN_OP(aclnnAdaptiveMaxPool2d, check_adaptive_max<2>,
         run_indices<params::AdaptiveMaxPool2d::outputOut>)
ACLNN_OP(aclnnAdaptiveMaxPool2dBackward, check_adaptive_max_grad<2>,
         run_scatter<params::AdaptiveMaxPool2dBackward::gradInput>)
ACLNN_OP(aclnnAdaptiveMaxPool3d, check_adaptive_max<3>,
         run_indices<params::AdaptiveMaxPool3d::outputOut>)
ACLNN_OP(aclnnAdaptiveMaxPool3dBackward, check_adaptive_max_grad<3>,
         run_scatter<params::AdaptiveMaxPool3dBackward::gradInput>)
