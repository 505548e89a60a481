// Windows that slide over two or three spatial dims, or divide them evenly: what pooling shares.
#pragma once

#include "loops/promote.h"

#include <algorithm>

namespace aclsim {

// Data is [planes, in...] and [planes, out...]; two spatial dims have a leading one.
struct Windows {
  int64_t planes;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
  bool adaptive;  // kernel and stride follow from the sizes

  int64_t in_space() const { return in[0] * in[1] * in[2]; }
  int64_t out_space() const { return out[0] * out[1] * out[2]; }
  int64_t cost() const {
    return adaptive ? in_space() : out_space() * kernel[0] * kernel[1] * kernel[2];
  }

  // Input positions of output o along a dim: begin, begin + dilation, ... below end. `padded`
  // counts those that lie inside the padded input.
  struct Reach {
    int64_t begin, end, padded;
  };
  Reach reach(int dim, int64_t o) const {
    const int64_t size = in[dim];
    if (adaptive) {
      const int64_t begin = o * size / out[dim], end = ((o + 1) * size + out[dim] - 1) / out[dim];
      return {begin, end, end - begin};
    }
    const int64_t start = o * stride[dim] - pad[dim], step = dilation[dim];
    const int64_t stop = start + step * (kernel[dim] - 1) + 1;
    const int64_t begin = start >= 0 ? start : start + (-start + step - 1) / step * step;
    return {begin, std::min(stop, size), std::min(stop, size + pad[dim]) - start};
  }
};

// Phase 1. Attributes by position; `dilation` may be -1. A call's state becomes the windows.
aclnnStatus read_windows(Call& c, int self, int dims, int kernel, int stride, int padding,
                         int dilation, bool ceil, Shape& pooled);
// Windows between the spatial dims of two tensors that agree in the others.
aclnnStatus read_adaptive(Call& c, int self, int out, int dims);

// f(first plane, end) in threads.
template <class F>
void each_planes(const Windows& w, F f) {
  parallel_for(w.planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, w.cost())), f);
}
// f(plane, output in the plane, depth reach, height reach, width reach) for planes [begin, end).
template <class F>
void each_window(const Windows& w, int64_t begin, int64_t end, F f) {
  for (int64_t p = begin; p < end; ++p) {
    int64_t o = 0;
    for (int64_t d = 0; d < w.out[0]; ++d) {
      const Windows::Reach deep = w.reach(0, d);
      for (int64_t h = 0; h < w.out[1]; ++h) {
        const Windows::Reach high = w.reach(1, h);
        for (int64_t x = 0; x < w.out[2]; ++x, ++o) f(p, o, deep, high, w.reach(2, x));
      }
    }
  }
}
// f(position in the plane) for the inputs of one window.
template <class F>
void each_input(const Windows& w, const Windows::Reach& deep, const Windows::Reach& high,
                const Windows::Reach& wide, F f) {
  for (int64_t d = deep.begin; d < deep.end; d += w.dilation[0]) {
    for (int64_t h = high.begin; h < high.end; h += w.dilation[1]) {
      const int64_t line = (d * w.in[1] + h) * w.in[2];
      for (int64_t x = wide.begin; x < wide.end; x += w.dilation[2]) f(line + x);
    }
  }
}

}  // namespace aclsim
