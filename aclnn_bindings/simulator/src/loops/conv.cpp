// Convolutions by matrix products: see conv.h.
#include "loops/conv.h"

#include "loops/bfloat_conv.h"
#include "loops/bfloat_gemm.h"
#include "loops/parallel.h"

#include <algorithm>

namespace aclsim {
namespace {

// One place of the kernel: which outputs along a dim read inside the input.
struct Reach {
  int64_t begin, end;  // outputs
  int64_t first;       // input position of output 0

  Reach(const ConvShape& s, int dim, int64_t k) : first(k * s.dilation[dim] - s.pad[dim]) {
    const int64_t stride = s.stride[dim];
    begin = first >= 0 ? 0 : (-first + stride - 1) / stride;
    end = first >= s.in[dim] ? 0 : (s.in[dim] - 1 - first) / stride + 1;
    end = std::min(end, s.out[dim]);
    begin = std::min(begin, end);
  }
};

// f(patch row of an output line, its first input, first output, outputs) for each line of outputs
// that reads inside; skip(patch row, line) for lines that lie in the padding.
template <class Line, class Skip>
void each_line(const ConvShape& s, int64_t tap, Line line, Skip skip) {
  const int64_t kw = tap % s.kernel[2], kh = tap / s.kernel[2] % s.kernel[1],
                kd = tap / s.kernel[2] / s.kernel[1];
  const Reach deep(s, 0, kd), high(s, 1, kh), wide(s, 2, kw);
  for (int64_t d = 0; d < s.out[0]; ++d) {
    for (int64_t h = 0; h < s.out[1]; ++h) {
      const int64_t at = (d * s.out[1] + h) * s.out[2];
      if (d < deep.begin || d >= deep.end || h < high.begin || h >= high.end) {
        skip(at);
        continue;
      }
      const int64_t from =
          ((deep.first + d * s.stride[0]) * s.in[1] + high.first + h * s.stride[1]) * s.in[2] +
          wide.first;
      line(at, from, wide.begin, wide.end);
    }
  }
}

// patches[depth][out_space] of one image and group.
template <class From>
void unfold_row(const ConvShape& s, From* to, const From* x, int64_t tap) {
  const int64_t width = s.out[2], stride = s.stride[2];
  each_line(
      s, tap,
      [&](int64_t at, int64_t from, int64_t begin, int64_t end) {
        From* line = to + at;
        std::fill_n(line, begin, From{});
        if (stride == 1) {
          std::copy_n(x + from + begin, end - begin, line + begin);
        } else {
          for (int64_t i = begin; i < end; ++i) line[i] = x[from + i * stride];
        }
        std::fill_n(line + end, width - end, From{});
      },
      [&](int64_t at) { std::fill_n(to + at, width, From{}); });
}
ACL_VECTOR void add_line(float* to, const float* from, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}
void fold_row(const ConvShape& s, float* x, const float* from_row, int64_t tap) {
  const int64_t stride = s.stride[2];
  each_line(
      s, tap,
      [&](int64_t at, int64_t from, int64_t begin, int64_t end) {
        const float* line = from_row + at;
        if (stride == 1) {
          add_line(x + from + begin, line + begin, end - begin);
        } else {
          for (int64_t i = begin; i < end; ++i) x[from + i * stride] += line[i];
        }
      },
      [](int64_t) {});
}
int64_t grain_for(int64_t cost) { return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, cost)); }

template <class From>
void unfold_image(const ConvShape& s, From* patches, const From* x) {
  const int64_t space = s.out_space(), taps = s.taps();
  parallel_for(s.depth(), grain_for(space), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      unfold_row(s, patches + r * space, x + r / taps * s.in_space(), r % taps);
    }
  });
}
template <class From>
const From* unfold(const ConvShape& s, From* patches, const From* x) {
  if (s.pointwise()) return x;
  unfold_image(s, patches, x);
  return patches;
}

// f(image, group, patches): one after the other where a group fills the machine by itself, else in
// threads with patches of their own.
template <class T, class F>
void each_group(const ConvShape& s, T* patches, F f) {
  if (s.groups == 1) {
    for (int64_t i = 0; i < s.n; ++i) f(i, int64_t{0}, patches);
    return;
  }
  parallel_for(s.n * s.groups, 1, [&](int64_t begin, int64_t end) {
    Buffer<T> own(s.pointwise() ? 1 : s.depth() * s.out_space());
    for (int64_t k = begin; k < end; ++k) f(k / s.groups, k % s.groups, own.get());
  });
}

}  // namespace

int64_t conv_patches(const ConvShape& s) {
  return s.groups > 1 || s.pointwise() ? 0 : s.depth() * s.out_space();
}

void conv_unfold(const ConvShape& s, float* patches, const float* x) {
  unfold_image(s, patches, x);
}
void conv_fold(const ConvShape& s, float* x, const float* patches, const float* bias) {
  const int64_t space = s.out_space(), taps = s.taps();
  parallel_for(s.in_channels, grain_for(space * taps), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      float* to = x + c * s.in_space();
      std::fill_n(to, s.in_space(), bias ? bias[c] : 0.0f);
      for (int64_t tap = 0; tap < taps; ++tap) {
        fold_row(s, to, patches + (c * taps + tap) * space, tap);
      }
    }
  });
}

template <class From>
void conv_forward(const ConvShape& s, float* y, const From* x, const From* w, const float* bias,
                  From* patches) {
  if constexpr (std::is_same<From, bfloat>::value) {
    if (convolves(s, x, w)) return convolve(s, y, x, w, bias);
  }
  const int64_t space = s.out_space(), depth = s.depth(), m = s.out_channels;
  each_group(s, patches, [&](int64_t i, int64_t g, From* own) {
    const From* from = x + (i * s.groups + g) * s.in_channels * s.in_space();
    float* to = y + (i * s.groups + g) * m * space;
    for (int64_t k = 0; bias && k < m; ++k) std::fill_n(to + k * space, space, bias[g * m + k]);
    const From* unfolded = unfold(s, own, from);
    gemm({to, m, space, space, 1}, Matrix<const From>{w + g * m * depth, m, depth, depth, 1},
         Matrix<const From>{unfolded, depth, space, space, 1}, bias != nullptr);
  });
}

template <class From>
void conv_input_grad(const ConvShape& s, float* gx, const From* gy, const From* w,
                     const float* bias, float* patches) {
  const int64_t space = s.out_space(), depth = s.depth(), m = s.out_channels;
  each_group(s, patches, [&](int64_t i, int64_t g, float* own) {
    float* to = gx + (i * s.groups + g) * s.in_channels * s.in_space();
    float* products = s.pointwise() ? to : own;
    const float* shift = bias ? bias + g * s.in_channels : nullptr;
    for (int64_t k = 0; shift && s.pointwise() && k < depth; ++k) {
      std::fill_n(to + k * space, space, shift[k]);
    }
    gemm({products, depth, space, space, 1},
         Matrix<const From>{w + g * m * depth, depth, m, 1, depth},
         Matrix<const From>{gy + (i * s.groups + g) * m * space, m, space, space, 1},
         shift && s.pointwise());
    if (!s.pointwise()) conv_fold(s, to, products, shift);
  });
}

template <class From>
void conv_weight_grad(const ConvShape& s, float* gw, const From* gy, const From* x,
                      From* patches) {
  const int64_t space = s.out_space(), depth = s.depth(), m = s.out_channels;
  const auto add = [&](int64_t i, int64_t g, From* own) {
    const From* unfolded = unfold(s, own, x + (i * s.groups + g) * s.in_channels * s.in_space());
    gemm({gw + g * m * depth, m, depth, depth, 1},
         Matrix<const From>{gy + (i * s.groups + g) * m * space, m, space, space, 1},
         Matrix<const From>{unfolded, space, depth, 1, space}, i > 0);
  };
  if (s.n == 0) std::fill_n(gw, s.groups * m * depth, 0.0f);
  if (s.groups == 1) {
    for (int64_t i = 0; i < s.n; ++i) add(i, 0, patches);
    return;
  }
  // Images of one group add to the same weights: threads take groups.
  parallel_for(s.groups, 1, [&](int64_t begin, int64_t end) {
    Buffer<From> own(s.pointwise() ? 1 : depth * space);
    for (int64_t g = begin; g < end; ++g) {
      for (int64_t i = 0; i < s.n; ++i) add(i, g, own.get());
    }
  });
}

#define ACLSIM_CONVOLUTIONS(From)                                                                 \
  template void conv_forward(const ConvShape&, float*, const From*, const From*, const float*,     \
                             From*);                                                               \
  template void conv_input_grad(const ConvShape&, float*, const From*, const From*, const float*,  \
                                float*);                                                           \
  template void conv_weight_grad(const ConvShape&, float*, const From*, const From*, From*);
ACLSIM_CONVOLUTIONS(float)
ACLSIM_CONVOLUTIONS(bfloat)

}  // namespace aclsim
