// Convolutions by matrix products: see conv.h.
#include "loops/conv.h"

#include "loops/bfloat_conv.h"
#include "loops/bfloat_gemm.h"
#include "loops/float_gemm.h"
#include "loops/parallel.h"
#include "loops/stage.h"

#include <algorithm>
#include <memory>

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

// line(first output, outputs in the padding, outputs that read inside, outputs in the padding after
// them, input of the first that reads) for each line of the outputs [begin, end).
template <class Line>
ACL_INLINE void each_line(const ConvShape& s, int64_t tap, int64_t begin, int64_t end, Line line) {
  const int64_t kw = tap % s.kernel[2], kh = tap / s.kernel[2] % s.kernel[1],
                kd = tap / s.kernel[2] / s.kernel[1];
  const Reach deep(s, 0, kd), high(s, 1, kh), wide(s, 2, kw);
  const int64_t row = begin / s.out[2];
  int64_t d = row / s.out[1], h = row % s.out[1], left = begin % s.out[2];
  for (int64_t at = begin; at < end; left = 0) {
    const int64_t right = std::min(s.out[2], left + end - at);
    const bool inside = d >= deep.begin && d < deep.end && h >= high.begin && h < high.end;
    const int64_t first = inside ? std::min(std::max(wide.begin, left), right) : right;
    const int64_t last = inside ? std::min(std::max(wide.end, first), right) : right;
    const int64_t plane = (deep.first + d * s.stride[0]) * s.in[1] + high.first + h * s.stride[1];
    line(at - begin, first - left, last - first, right - last,
         plane * s.in[2] + wide.first + first * s.stride[2]);
    at += right - left;
    if (++h == s.out[1]) {
      h = 0;
      ++d;
    }
  }
}

// Lines are short: moves of a fixed size, the last of which overlaps, instead of calls.
template <int kStep, class From>
ACL_INLINE bool copy_by(From* to, const From* from, int64_t n) {
  if (n < kStep) return false;
  for (int64_t i = 0; i + kStep <= n; i += kStep) memcpy(to + i, from + i, kStep * sizeof(From));
  memcpy(to + n - kStep, from + n - kStep, kStep * sizeof(From));
  return true;
}

// Patches [begin, end) of one channel and place of the kernel.
template <class From>
ACL_VECTOR void unfold_row(const ConvShape& s, From* to, const From* x, int64_t tap, int64_t begin,
                           int64_t end) {
  const int64_t stride = s.stride[2];
  each_line(s, tap, begin, end,
            [=](int64_t at, int64_t before, int64_t n, int64_t after, int64_t from) ACL_LAMBDA {
              From* line = to + at;
              for (int64_t i = 0; i < before; ++i) line[i] = From{};
              line += before;
              if (stride == 1 && (copy_by<16>(line, x + from, n) || copy_by<4>(line, x + from, n))) {
              } else if (stride == 2) {  // by shuffles instead of gathers
                for (int64_t i = 0; i < n; ++i) line[i] = x[from + i * 2];
              } else {
                for (int64_t i = 0; i < n; ++i) line[i] = x[from + i * stride];
              }
              for (int64_t i = 0; i < after; ++i) line[n + i] = From{};
            });
}
ACL_VECTOR void fold_row(const ConvShape& s, float* x, const float* row, int64_t tap, int64_t begin,
                         int64_t end) {
  const int64_t stride = s.stride[2];
  each_line(s, tap, begin, end,
            [=](int64_t at, int64_t before, int64_t n, int64_t, int64_t from) ACL_LAMBDA {
              float* to = x + from;
              const float* line = row + at + before;
              if (stride == 1) {
                ACL_IVDEP
                for (int64_t i = 0; i < n; ++i) to[i] += line[i];
              } else {
                for (int64_t i = 0; i < n; ++i) to[i * stride] += line[i];
              }
            });
}
int64_t grain_for(int64_t cost) { return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, cost)); }

// Outputs whose patches stay in a processor's cache from unfolding to product, but as many as pay
// for the product's preparation.
int64_t piece_of(const ConvShape& s) {
  constexpr int64_t kFloats = 1 << 16, kLeast = 256;
  const int64_t piece = std::max(kLeast, kFloats / std::max<int64_t>(1, s.depth()) / 16 * 16);
  return std::min(piece, std::max<int64_t>(1, s.out_space()));
}
// f(begin, end) for the pieces of the outputs.
template <class F>
void each_piece(const ConvShape& s, F f) {
  const int64_t space = s.out_space(), piece = piece_of(s);
  for (int64_t at = 0; at < space; at += piece) f(at, std::min(at + piece, space));
}

// Patches [begin, end) of channels [first, last) as a matrix: the input itself where they are it.
template <class From>
Matrix<const From> unfold(const ConvShape& s, From* patches, const From* x, int64_t first,
                          int64_t last, int64_t begin, int64_t end) {
  const int64_t taps = s.taps(), width = end - begin, rows = (last - first) * taps;
  if (s.pointwise()) return {x + first * s.in_space() + begin, rows, width, s.out_space(), 1};
  for (int64_t r = 0; r < rows; ++r) {
    unfold_row(s, patches + r * width, x + (first + r / taps) * s.in_space(), r % taps, begin, end);
  }
  return {patches, rows, width, width, 1};
}

// Of one channel by one, where products of matrices would be by a single row: y += w x, gx += w gy or
// the sum of gy x, of one place of the kernel.
bool by_channel(const ConvShape& s) { return s.in_channels == 1 && s.out_channels == 1; }
ACL_VECTOR void channel_forward(const ConvShape& s, float* y, const float* x, float w, int64_t tap) {
  const int64_t stride = s.stride[2];
  each_line(s, tap, 0, s.out_space(),
            [=](int64_t at, int64_t before, int64_t n, int64_t, int64_t from) ACL_LAMBDA {
              float* to = y + at + before;
              const float* line = x + from;
              if (stride == 1) {
                ACL_IVDEP
                for (int64_t i = 0; i < n; ++i) to[i] += w * line[i];
              } else {
                for (int64_t i = 0; i < n; ++i) to[i] += w * line[i * stride];
              }
            });
}
ACL_VECTOR void channel_back(const ConvShape& s, float* gx, const float* gy, float w, int64_t tap) {
  const int64_t stride = s.stride[2];
  each_line(s, tap, 0, s.out_space(),
            [=](int64_t at, int64_t before, int64_t n, int64_t, int64_t from) ACL_LAMBDA {
              float* to = gx + from;
              const float* line = gy + at + before;
              if (stride == 1) {
                ACL_IVDEP
                for (int64_t i = 0; i < n; ++i) to[i] += w * line[i];
              } else {
                for (int64_t i = 0; i < n; ++i) to[i * stride] += w * line[i];
              }
            });
}
ACL_VECTOR float channel_product(const ConvShape& s, const float* gy, const float* x, int64_t tap) {
  constexpr int kLanes = 16;
  float lanes[kLanes] = {}, rest = 0;
  const int64_t stride = s.stride[2];
  each_line(s, tap, 0, s.out_space(),
            [&](int64_t at, int64_t before, int64_t n, int64_t, int64_t from) ACL_LAMBDA {
              const float *flow = gy + at + before, *line = x + from;
              int64_t i = 0;
              for (; stride == 1 && i + kLanes <= n; i += kLanes) {
                for (int l = 0; l < kLanes; ++l) lanes[l] += flow[i + l] * line[i + l];
              }
              for (; i < n; ++i) rest += flow[i] * line[i * stride];
            });
  for (float lane : lanes) rest += lane;
  return rest;
}
// f(channel of an image, its number among the groups) in threads.
template <class F>
void each_channel(const ConvShape& s, F f) {
  parallel_for(s.n * s.groups, grain_for(s.taps() * s.out_space()), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) f(k, k % s.groups);
  });
}

// f(image, group, first channel, last, patches) in threads; those of one image share its channels
// where there are fewer images than threads. `images`: 1 where a call goes over all of them.
template <class T, class F>
void each_block(const ConvShape& s, int64_t images, F f) {
  const int64_t all = images * s.groups, each = s.n / std::max<int64_t>(1, images);
  const int64_t work = s.depth() * s.out_space() * s.out_channels * each;  // products
  const int64_t most = std::min(kernel_threads() / std::max<int64_t>(1, all), work >> 20);
  const int64_t blocks = std::max<int64_t>(1, std::min(s.in_channels, most));
  const int64_t grain = std::max<int64_t>(1, (1 << 19) / std::max<int64_t>(1, work));
  parallel_for(all * blocks, grain, [&](int64_t begin, int64_t end) {
    std::unique_ptr<T[]> patches(s.pointwise() ? nullptr : new T[s.depth() * piece_of(s)]);
    for (int64_t k = begin; k < end; ++k) {
      const int64_t b = k % blocks, at = k / blocks;
      f(at / s.groups, at % s.groups, s.in_channels * b / blocks,
        s.in_channels * (b + 1) / blocks, patches.get());
    }
  });
}

constexpr int64_t kChannelBlock = 16;
// Where torch asks oneDNN (aten/src/ATen/native/Convolution.cpp), that adds the products of sixteen
// channels place by place, one such sum after another, and those of a weight's gradient output by
// output; elsewhere, and for groups that fill no block, it is one product of matrices.
bool asks_onednn(const ConvShape& s) {
  const bool many = s.n > 1 || s.groups > 1 || (s.kernel[1] > 3 && s.kernel[2] > 3) ||
                    s.n * s.groups * s.in_channels * s.in_space() > 20480;
  const bool whole = s.groups == 1 || (s.in_channels % 8 == 0 && s.out_channels % 8 == 0);
  return many && s.taps() > 1 && whole;
}
bool adds_by_blocks(const ConvShape& s) { return asks_onednn(s) && s.in_channels > 1; }
template <class F>
void each_block_of(int64_t channels, F f) {
  for (int64_t from = 0; from < channels; from += kChannelBlock) f(from, std::min(kChannelBlock, channels - from));
}
// out = a b, or out += a b, each sum in the order of the depth whatever BLAS does with these sizes.
void ordered_product(const Matrix<float>& out, const Matrix<const float>& a, const Matrix<const float>& b, bool adds) {
  std::unique_ptr<float[]> sums(new float[out.rows * out.cols]());
  chained_gemm({sums.get(), out.rows, out.cols, out.cols, 1}, a, b);
  for (int64_t r = 0; r < out.rows; ++r) {
    float *to = out.data + r * out.row_stride, *sum = sums.get() + r * out.cols;
    for (int64_t i = 0; i < out.cols; ++i) to[i] = adds ? to[i] + sum[i] : sum[i];
  }
}
// Of each group and block: rows of output channels, places of the kernel outside channels.
std::unique_ptr<float[]> weights_by_blocks(const ConvShape& s, const float* w) {
  const int64_t m = s.out_channels, taps = s.taps();
  std::unique_ptr<float[]> blocked(new float[s.groups * m * s.depth()]);
  float* to = blocked.get();
  for (int64_t g = 0; g < s.groups; ++g) {
    each_block_of(s.in_channels, [&](int64_t from, int64_t channels) {
      for (int64_t r = g * m; r < (g + 1) * m; ++r)
        for (int64_t tap = 0; tap < taps; ++tap)
          for (int64_t c = from; c < from + channels; ++c) *to++ = w[(r * s.in_channels + c) * taps + tap];
    });
  }
  return blocked;
}

}  // namespace

void conv_unfold(const ConvShape& s, float* patches, const float* x) {
  const int64_t space = s.out_space(), taps = s.taps();
  parallel_for(s.depth(), grain_for(space), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      unfold_row(s, patches + r * space, x + r / taps * s.in_space(), r % taps, 0, space);
    }
  });
}
void conv_fold(const ConvShape& s, float* x, const float* patches) {
  const int64_t space = s.out_space(), taps = s.taps();
  parallel_for(s.in_channels, grain_for(space * taps), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      float* to = x + c * s.in_space();
      std::fill_n(to, s.in_space(), 0.0f);
      for (int64_t tap = 0; tap < taps; ++tap) {
        fold_row(s, to, patches + (c * taps + tap) * space, tap, 0, space);
      }
    }
  });
}

template <class From>
void conv_forward(const ConvShape& s, float* y, const From* x, const From* w, const float* bias) {
  if constexpr (std::is_same<From, bfloat>::value) {
    if (convolves(s, x, w)) return convolve(s, y, x, w, bias);
  } else if (by_channel(s)) {
    return each_channel(s, [&](int64_t k, int64_t g) {
      float* to = y + k * s.out_space();
      std::fill_n(to, s.out_space(), bias ? bias[g] : 0.0f);
      for (int64_t tap = 0; tap < s.taps(); ++tap) {
        channel_forward(s, to, x + k * s.in_space(), w[g * s.taps() + tap], tap);
      }
    });
  }
  const int64_t space = s.out_space(), depth = s.depth(), m = s.out_channels;
  const int64_t piece = piece_of(s), pieces = (space + piece - 1) / piece;
  const int64_t grain = std::max<int64_t>(1, (1 << 19) / std::max<int64_t>(1, m * depth * piece));
  std::unique_ptr<From[]> blocked;
  if constexpr (std::is_same<From, float>::value) {
    if (adds_by_blocks(s)) blocked = weights_by_blocks(s, w);
  }
  parallel_for(s.n * s.groups * pieces, grain, [&](int64_t first, int64_t last) {
    std::unique_ptr<From[]> patches(s.pointwise() ? nullptr : new From[depth * piece]);
    for (int64_t k = first; k < last; ++k) {
      const int64_t at = k / pieces, g = at % s.groups, begin = k % pieces * piece;
      const int64_t end = std::min(begin + piece, space);
      float* to = y + at * m * space + begin;
      for (int64_t r = 0; bias && r < m; ++r) {
        std::fill_n(to + r * space, end - begin, bias[g * m + r]);
      }
      if (blocked) {
        const From* image = x + at * s.in_channels * s.in_space();
        each_block_of(s.in_channels, [&](int64_t from, int64_t channels) {
          const int64_t rows = channels * s.taps(), width = end - begin;
          for (int64_t r = 0; r < rows; ++r)
            unfold_row(s, patches.get() + r * width, image + (from + r % channels) * s.in_space(), r / channels, begin, end);
          const From* weights = blocked.get() + g * m * depth + m * from * s.taps();
          const bool adds = bias != nullptr || from > 0;
          const Matrix<const From> left{weights, m, rows, rows, 1}, right{patches.get(), rows, width, width, 1};
          if constexpr (std::is_same<From, float>::value) {
            constexpr int64_t kUncut = 192;  // of the depth, see float_gemm.h
            if (m < 4 || width < 16 || rows > kUncut) return ordered_product({to, m, width, space, 1}, left, right, adds);
          }
          gemm({to, m, width, space, 1}, left, right, adds);
        });
        continue;
      }
      gemm({to, m, end - begin, space, 1},
           Matrix<const From>{w + g * m * depth, m, depth, depth, 1},
           unfold(s, patches.get(), x + at * s.in_channels * s.in_space(), 0, s.in_channels, begin,
                  end),
           bias != nullptr);
    }
  });
}

// What one channel of outputs gives, by one place of the kernel, to the lines [begin, end) of inputs.
ACL_VECTOR void flow_row(const ConvShape& s, float* to, const float* gy, int64_t tap, int64_t begin, int64_t end) {
  const int64_t wide = s.in[2], across = s.pad[2] - tap % s.kernel[2] * s.dilation[2];
  const int64_t down = s.pad[1] - tap / s.kernel[2] % s.kernel[1] * s.dilation[1];
  const int64_t deep = s.pad[0] - tap / s.kernel[2] / s.kernel[1] * s.dilation[0];
  const int64_t left = std::min(wide, std::max<int64_t>(0, -across));
  const int64_t right = std::max(left, std::min(wide, s.out[2] - across));
  for (int64_t line = begin; line < end; ++line, to += wide) {
    const int64_t d = line / s.in[1] + deep, h = line % s.in[1] + down;
    const bool inside = d >= 0 && d < s.out[0] && h >= 0 && h < s.out[1];
    const int64_t a = inside ? left : wide, b = inside ? right : wide;
    const float* row = gy + (d * s.out[1] + h) * s.out[2] + across;
    for (int64_t i = 0; i < a; ++i) to[i] = 0.0f;
    if (!copy_by<16>(to + a, row + a, b - a) && !copy_by<4>(to + a, row + a, b - a))
      for (int64_t i = a; i < b; ++i) to[i] = row[i];
    for (int64_t i = b; i < wide; ++i) to[i] = 0.0f;
  }
}
// Of strides of 1: of sixteen output channels, the products with each place of the kernel in turn, then
// of the next ones.
void input_grad_by_blocks(const ConvShape& s, float* gx, const float* gy, const float* w, const float* bias) {
  const int64_t m = s.out_channels, c = s.in_channels, taps = s.taps(), wide = s.in[2], lines = s.in[0] * s.in[1];
  std::unique_ptr<float[]> weights(new float[s.groups * c * m * taps]);
  float* next = weights.get();
  for (int64_t g = 0; g < s.groups; ++g) {
    each_block_of(m, [&](int64_t from, int64_t channels) {
      for (int64_t r = 0; r < c; ++r)
        for (int64_t tap = 0; tap < taps; ++tap)
          for (int64_t o = g * m + from; o < g * m + from + channels; ++o) *next++ = w[(o * c + r) * taps + tap];
    });
  }
  constexpr int64_t kFloats = 1 << 15;
  const int64_t piece = std::max<int64_t>(1, std::min(lines, kFloats / (kChannelBlock * taps * wide)));
  const int64_t pieces = (lines + piece - 1) / piece;
  const int64_t grain = std::max<int64_t>(1, (1 << 19) / std::max<int64_t>(1, c * m * taps * piece * wide));
  parallel_for(s.n * s.groups * pieces, grain, [&](int64_t first, int64_t last) {
    std::unique_ptr<float[]> flow(new float[kChannelBlock * taps * piece * wide]);
    for (int64_t k = first; k < last; ++k) {
      const int64_t at = k / pieces, g = at % s.groups, begin = k % pieces * piece, end = std::min(begin + piece, lines);
      const int64_t width = (end - begin) * wide;
      float* to = gx + at * c * s.in_space() + begin * wide;
      each_block_of(m, [&](int64_t from, int64_t channels) {
        const int64_t rows = taps * channels;
        for (int64_t r = 0; r < rows; ++r)
          flow_row(s, flow.get() + r * width, gy + (at * m + from + r % channels) * s.out_space(), r / channels, begin, end);
        const float* block = weights.get() + (g * m + from) * c * taps;
        ordered_product({to, c, width, s.in_space(), 1}, Matrix<const float>{block, c, rows, rows, 1},
                        Matrix<const float>{flow.get(), rows, width, width, 1}, from > 0);
      });
      for (int64_t r = 0; bias && r < c; ++r)
        for (int64_t i = 0; i < width; ++i) to[r * s.in_space() + i] += bias[g * c + r];
    }
  });
}

template <class From>
void conv_input_grad(const ConvShape& s, float* gx, const From* gy, const From* w,
                     const float* bias) {
  const int64_t space = s.out_space(), depth = s.depth(), m = s.out_channels, taps = s.taps();
  if constexpr (std::is_same<From, float>::value) {
    if (by_channel(s)) {
      return each_channel(s, [&](int64_t k, int64_t g) {
        float* to = gx + k * s.in_space();
        std::fill_n(to, s.in_space(), bias ? bias[g] : 0.0f);
        for (int64_t tap = 0; tap < taps; ++tap) {
          channel_back(s, to, gy + k * space, w[g * taps + tap], tap);
        }
      });
    }
  }
  if constexpr (std::is_same<From, float>::value) {
    const bool near = s.stride[0] * s.stride[1] * s.stride[2] == 1 && s.in_channels >= 8;
    if (near && asks_onednn(s)) return input_grad_by_blocks(s, gx, gy, w, bias);
  }
  each_block<float>(s, s.n, [&](int64_t i, int64_t g, int64_t first, int64_t last, float* own) {
    float* to = gx + (i * s.groups + g) * s.in_channels * s.in_space();
    for (int64_t c = first; c < last; ++c) {
      std::fill_n(to + c * s.in_space(), s.in_space(), bias ? bias[g * s.in_channels + c] : 0.0f);
    }
    const int64_t rows = (last - first) * taps;
    each_piece(s, [&](int64_t begin, int64_t end) {
      const int64_t width = end - begin;
      const Matrix<const From> weights{w + g * m * depth + first * taps, rows, m, 1, depth};
      const Matrix<const From> flow{gy + (i * s.groups + g) * m * space + begin, m, width, space, 1};
      if (s.pointwise()) {
        return gemm({to + first * space + begin, rows, width, space, 1}, weights, flow, true);
      }
      gemm({own, rows, width, width, 1}, weights, flow, false);
      for (int64_t r = 0; r < rows; ++r) {
        fold_row(s, to + (first + r / taps) * s.in_space(), own + r * width, r % taps, begin, end);
      }
    });
  });
}

template <class From>
void conv_weight_grad(const ConvShape& s, float* gw, const From* gy, const From* x) {
  const int64_t space = s.out_space(), depth = s.depth(), m = s.out_channels, taps = s.taps();
  if constexpr (std::is_same<From, float>::value) {
    if (by_channel(s)) {
      return parallel_for(s.groups * taps, grain_for(s.n * space), [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          double sum = 0;
          for (int64_t i = 0; i < s.n; ++i) {
            const int64_t at = i * s.groups + k / taps;
            sum += channel_product(s, gy + at * space, x + at * s.in_space(), k % taps);
          }
          gw[k] = static_cast<float>(sum);
        }
      });
    }
  }
  [[maybe_unused]] const bool chained = asks_onednn(s);
  std::fill_n(gw, s.groups * m * depth, 0.0f);
  each_block<From>(s, 1, [&](int64_t, int64_t g, int64_t first, int64_t last, From* own) {
    const Matrix<float> sums{gw + g * m * depth + first * taps, m, (last - first) * taps, depth, 1};
    for (int64_t i = 0; i < s.n; ++i) {
      const int64_t at = i * s.groups + g;
      each_piece(s, [&](int64_t begin, int64_t end) {
        const Matrix<const From> seen =
            unfold(s, own, x + at * s.in_channels * s.in_space(), first, last, begin, end);
        const Matrix<const From> flow{gy + at * m * space + begin, m, end - begin, space, 1};
        const Matrix<const From> across{seen.data, seen.cols, seen.rows, 1, seen.row_stride};
        if constexpr (std::is_same<From, float>::value) {
          if (chained) return chained_gemm(sums, flow, across);
        }
        gemm(sums, flow, across, true);
      });
    }
  });
}

#define ACLSIM_CONVOLUTIONS(From)                                                                 \
  template void conv_forward(const ConvShape&, float*, const From*, const From*, const float*);    \
  template void conv_input_grad(const ConvShape&, float*, const From*, const From*, const float*); \
  template void conv_weight_grad(const ConvShape&, float*, const From*, const From*);
ACLSIM_CONVOLUTIONS(float)
ACLSIM_CONVOLUTIONS(bfloat)

}  // namespace aclsim
