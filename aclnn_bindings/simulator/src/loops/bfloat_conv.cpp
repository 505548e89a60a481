// Convolutions of bfloat16 without unfolding: see bfloat_conv.h.
//
// An image is laid out once, padded, in words of two channels, and apart by the remainder of its
// places by the stride. What one place of the kernel reads for all outputs is then that image from
// some offset on, so that the product's right side is the image itself. Outputs are numbered by the
// padded width; those between two lines are computed and left out.
#include "loops/bfloat_conv.h"

#include <algorithm>
#include <vector>

#include "loops/bfloat_gemm.h"
#include "loops/parallel.h"

namespace aclsim {
namespace {

constexpr int64_t kDepth = 512;    // words of a row that are summed before they join the others
constexpr int64_t kColumns = 512;  // outputs of a row that lie in a nearer cache

// Where things lie in the words of an image.
struct Layout {
  const ConvShape& s;
  int64_t size[3];     // of what remains of the image, per remainder
  int64_t pairs, plane, image;

  explicit Layout(const ConvShape& shape) : s(shape), pairs((shape.in_channels + 1) / 2) {
    for (int i = 0; i < 3; ++i) {
      size[i] = s.out[i] + (s.kernel[i] - 1) * s.dilation[i] / s.stride[i];
    }
    plane = size[0] * size[1] * size[2];
    image = s.stride[0] * s.stride[1] * s.stride[2] * plane;
  }
  int64_t words() const { return pairs * image + kTileCols; }  // the last tile may read on
  int64_t remainder(int64_t d, int64_t h, int64_t w) const {
    return ((d * s.stride[1] + h) * s.stride[2] + w) * plane;
  }
  // Where the words of pair 0 begin that a place of the kernel reads.
  int64_t tap(int64_t d, int64_t h, int64_t w) const {
    const int64_t at[3] = {d * s.dilation[0], h * s.dilation[1], w * s.dilation[2]};
    return remainder(at[0] % s.stride[0], at[1] % s.stride[1], at[2] % s.stride[2]) +
           (at[0] / s.stride[0] * size[1] + at[1] / s.stride[1]) * size[2] + at[2] / s.stride[2];
  }
  // For each place of the kernel and pair of channels.
  std::vector<int32_t> rows() const {
    std::vector<int32_t> at;
    for (int64_t k = 0; k < s.taps(); ++k) {
      const int64_t from = tap(k / s.kernel[2] / s.kernel[1], k / s.kernel[2] % s.kernel[1],
                               k % s.kernel[2]);
      for (int64_t p = 0; p < pairs; ++p) at.push_back(static_cast<int32_t>(from + p * image));
    }
    return at;
  }
};

// One line of a remainder: what the padding leaves of two channels' lines.
void lay_line(const ConvShape& s, uint32_t* to, int64_t size, const bfloat* first,
              const bfloat* second, int64_t remainder) {
  const int64_t from = remainder - s.pad[2], step = s.stride[2];
  const int64_t begin = std::min(size, from >= 0 ? 0 : (-from + step - 1) / step);
  const int64_t end =
      std::max(begin, std::min(size, from >= s.in[2] ? 0 : (s.in[2] - 1 - from) / step + 1));
  std::fill_n(to, begin, 0u);
  if (step == 1) {
    join(to + begin, first + from + begin, second + from + begin, end - begin);
  } else {
    for (int64_t i = begin; i < end; ++i) join(to + i, first + from + i * step, second + from + i * step, 1);
  }
  std::fill_n(to + end, size - end, 0u);
}

// One image and group, [in_channels, in...]. `zeros` stands for the channel that an odd count lacks.
void lay_image(const Layout& l, uint32_t* to, const bfloat* x, const bfloat* zeros) {
  const ConvShape& s = l.s;
  const int64_t space = s.in_space(), remainders = s.stride[0] * s.stride[1] * s.stride[2];
  const int64_t lines = l.size[0] * l.size[1];
  std::fill_n(to + l.pairs * l.image, kTileCols, 0u);
  parallel_for(l.pairs, std::max<int64_t>(1, 16384 / (l.image + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin * remainders * lines; k < end * remainders * lines; ++k) {
      const int64_t line = k % lines, r = k / lines % remainders, pair = k / lines / remainders;
      const int64_t d = line / l.size[1] * s.stride[0] + r / s.stride[2] / s.stride[1] - s.pad[0];
      const int64_t h = line % l.size[1] * s.stride[1] + r / s.stride[2] % s.stride[1] - s.pad[1];
      uint32_t* row = to + k * l.size[2];
      if (d < 0 || d >= s.in[0] || h < 0 || h >= s.in[1]) {
        std::fill_n(row, l.size[2], 0u);
        continue;
      }
      const bfloat* first = x + 2 * pair * space + (d * s.in[1] + h) * s.in[2];
      const bool lone = 2 * pair + 1 == s.in_channels;
      lay_line(s, row, l.size[2], first, lone ? zeros : first + space, r % s.stride[2]);
    }
  });
}

// Weights [out_channels, in_channels, taps] in the order of Layout::rows().
PackedRows lay_weights(const ConvShape& s, const bfloat* w) {
  const int64_t even = (s.in_channels + 1) / 2 * 2, taps = s.taps();
  std::vector<bfloat> all(static_cast<size_t>(s.out_channels * taps * even), bfloat{0});
  for (int64_t m = 0; m < s.out_channels; ++m) {
    for (int64_t c = 0; c < s.in_channels; ++c) {
      for (int64_t k = 0; k < taps; ++k) {
        all[(m * taps + k) * even + c] = w[(m * s.in_channels + c) * taps + k];
      }
    }
  }
  return PackedRows({all.data(), s.out_channels, taps * even, taps * even, 1});
}

// y [out_channels, out_space] for lines [begin, end) of the outputs at one depth.
void multiply_lines(const Layout& l, float* y, const uint32_t* image, const PackedRows& w,
                    const std::vector<int32_t>& rows, const float* bias, int64_t depth,
                    int64_t begin, int64_t end) {
  const ConvShape& s = l.s;
  const int64_t wide = l.size[2], m = s.out_channels, space = s.out_space();
  const int64_t n = (end - begin - 1) * wide + s.out[2], from = (depth * l.size[1] + begin) * wide;
  const int64_t pairs = static_cast<int64_t>(rows.size());
  Buffer<float> sums(m * n);
  for (int64_t p = 0; p < pairs; p += kDepth) {
    for (int64_t j = 0; j < n; j += kTileCols) {
      for (int64_t i = 0; i < m; i += kTileRows) {
        multiply_tile({sums + i * n + j, std::min(kTileRows, m - i), std::min(kTileCols, n - j), n, 1},
                      w.panel(i) + p * kTileRows, image + from + j, rows.data() + p,
                      std::min(kDepth, pairs - p), p > 0);
      }
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    const float shift = bias ? bias[i] : 0.0f;
    for (int64_t h = begin; h < end; ++h) {
      const float* line = sums + i * n + (h - begin) * wide;
      float* to = y + i * space + (depth * s.out[1] + h) * s.out[2];
      for (int64_t k = 0; k < s.out[2]; ++k) to[k] = line[k] + shift;
    }
  }
}

}  // namespace

bool convolves(const ConvShape& s, const bfloat* x, const bfloat* w) {
  constexpr int64_t kFew = 4, kMost = INT32_MAX / 2;
  const Layout l(s);
  if (!multiplies_bfloat() || s.out_channels < kFew || s.in_channels == 0 || l.words() > kMost) {
    return false;
  }
  if (2 * l.size[2] > 3 * s.out[2]) return false;
  const int64_t channels = s.groups * s.in_channels, weights = s.groups * s.out_channels * s.in_channels;
  return stays_normal(least_exponent({x, 1, s.n * channels * s.in_space(), 0, 1}),
                      least_exponent({w, 1, weights * s.taps(), 0, 1}));
}

void convolve(const ConvShape& s, float* y, const bfloat* x, const bfloat* w, const float* bias) {
  const Layout l(s);
  const std::vector<int32_t> rows = l.rows();
  const std::vector<bfloat> zeros(static_cast<size_t>(s.in[2]), bfloat{0});
  std::vector<PackedRows> weights;
  for (int64_t g = 0; g < s.groups; ++g) {
    weights.push_back(lay_weights(s, w + g * s.out_channels * s.in_channels * s.taps()));
  }
  const int64_t lines = std::max<int64_t>(1, kColumns / l.size[2]);
  const int64_t blocks = (s.out[1] + lines - 1) / lines, images = s.n * s.groups;
  parallel_for(images, images < 2 * kernel_threads() ? images : 1, [&](int64_t begin, int64_t end) {
    std::vector<uint32_t> image(static_cast<size_t>(l.words()));
    for (int64_t k = begin; k < end; ++k) {
      const int64_t g = k % s.groups;
      lay_image(l, image.data(), x + k * s.in_channels * s.in_space(), zeros.data());
      parallel_for(s.out[0] * blocks, 1, [&](int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b) {
          const int64_t line = b % blocks * lines;
          multiply_lines(l, y + k * s.out_channels * s.out_space(), image.data(), weights[g], rows,
                         bias ? bias + g * s.out_channels : nullptr, b / blocks, line,
                         std::min(s.out[1], line + lines));
        }
      });
    }
  });
}

}  // namespace aclsim
