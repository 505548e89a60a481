// Types of layers as graph clients name them: biases, normalisation, pooling and convolution's
// gradients, with the prototypes of the Apache-licensed inc/ops headers of
// github.com/mindspore-ai/graphengine. Channels are dimension 1 where a type has no data_format.
#include <algorithm>
#include <cmath>

#include "op_compiler/rows.h"

#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_convolution_backward.h>
#include <aclnnop/aclnn_reduce_sum.h>
#include <aclnnop/aclnn_upsample_bilinear_2d.h>

namespace aclsim {
namespace {

// A tensor seen as outer × channels × inner.
struct Channels {
  int64_t outer = 1, channels = 1, inner = 1;
  int64_t each() const { return outer * inner; }
  int64_t of(int64_t i) const { return i / inner % channels; }
  int64_t total() const { return outer * channels * inner; }
};
Channels channels_of(const Dims& dims, bool last) {
  Channels c;
  size_t at = last ? dims.size() - 1 : 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    (i < at ? c.outer : i == at ? c.channels : c.inner) *= dims[i];
  }
  return c;
}
bool channels_last(TypeCall& c) {
  std::string format = c.text_attr("data_format", "NHWC");
  return format == "NHWC" || format == "NDHWC";
}
// Refuses what has no dimension of channels, and values per channel of another number.
aclError expect_channels(TypeCall& c, size_t x, const std::vector<size_t>& each, bool last,
                         Channels* shape) {
  if (c.in(x).dims.size() < 2) return c.refuse("input %zu has no dimension of channels", x);
  *shape = channels_of(c.in(x).dims, last);
  for (size_t i : each) {
    if (count_of(c.in(i).dims) != shape->channels) {
      return c.refuse("input %zu has %lld values for %lld channels", i,
                      static_cast<long long>(count_of(c.in(i).dims)),
                      static_cast<long long>(shape->channels));
    }
  }
  return ACL_SUCCESS;
}

// Standard deviations of channels.
std::vector<double> deviations(const Channels& s, const float* variances, double epsilon) {
  std::vector<double> roots(s.channels);
  for (int64_t k = 0; k < s.channels; ++k) roots[k] = std::sqrt(double(variances[k]) + epsilon);
  return roots;
}

aclError bias_add(TypeCall& c) {
  EXPECT(c, 2, 1);
  Channels s;
  bool last = channels_last(c);
  if (aclError code = expect_channels(c, 0, {1}, last, &s)) return code;
  EXPECT_OUT_SIZE(c, 0, s.total());
  View bias = c.in(1);  // the same for all but the channel
  bias.dims = c.in(0).dims;
  bias.strides.assign(bias.dims.size(), 0);
  bias.strides[last ? bias.dims.size() - 1 : 1] = 1;
  return ACLSIM_RUN(c, aclnnAdd, c.in_tensor(0), c.tensor(bias), c.scalar(1), c.out_tensor(0));
}
aclError bias_add_grad(TypeCall& c) {
  EXPECT(c, 1, 1);
  Channels s;
  bool last = channels_last(c);
  if (aclError code = expect_channels(c, 0, {}, last, &s)) return code;
  EXPECT_OUT_SIZE(c, 0, s.channels);
  Dims others;
  auto rank = static_cast<int64_t>(c.in(0).dims.size());
  for (int64_t i = 0; i < rank; ++i) {
    if (i != (last ? rank - 1 : 1)) others.push_back(i);
  }
  return ACLSIM_RUN(c, aclnnReduceSum, c.in_tensor(0), c.array(others), false, c.out(0).dtype,
                    c.out_tensor(0));
}

aclError bn_infer(TypeCall& c) {  // x, scale, offset, mean, variance
  EXPECT(c, 5, 1);
  Channels s;
  if (aclError code = expect_channels(c, 0, {1, 2, 3, 4}, false, &s)) return code;
  EXPECT_OUT_SIZE(c, 0, s.total());
  float epsilon = c.float_attr("epsilon", 1e-4f);
  return on_floats(c, {0, 1, 2, 3, 4}, {0}, [=](auto& in, auto& out) -> aclError {
    std::vector<double> deviation = deviations(s, in[4], epsilon);
    for (int64_t i = 0; i < s.total(); ++i) {
      int64_t k = s.of(i);
      double scale = in[1][k] / deviation[k];
      out[0][i] = static_cast<float>((in[0][i] - double(in[3][k])) * scale + in[2][k]);
    }
    return ACL_SUCCESS;
  });
}
aclError bn_training_reduce(TypeCall& c) {  // x → sum, square_sum
  EXPECT(c, 1, 2);
  Channels s;
  if (aclError code = expect_channels(c, 0, {}, false, &s)) return code;
  for (size_t i : {0, 1}) EXPECT_OUT_SIZE(c, i, s.channels);
  return on_floats(c, {0}, {0, 1}, [s](auto& in, auto& out) -> aclError {
    std::vector<double> sums(s.channels, 0), squares(s.channels, 0);
    for (int64_t i = 0; i < s.total(); ++i) {
      double x = in[0][i];
      sums[s.of(i)] += x;
      squares[s.of(i)] += x * x;
    }
    std::copy(sums.begin(), sums.end(), out[0]);
    std::copy(squares.begin(), squares.end(), out[1]);
    return ACL_SUCCESS;
  });
}
// x, sum, square_sum, scale, offset, mean, variance → y, mean, variance, batch mean and variance.
aclError bn_training_update(TypeCall& c) {
  EXPECT(c, 7, 5);
  Channels s;
  if (aclError code = expect_channels(c, 0, {1, 2, 3, 4, 5, 6}, false, &s)) return code;
  EXPECT_OUT_SIZE(c, 0, s.total());
  for (size_t i : {1, 2, 3, 4}) EXPECT_OUT_SIZE(c, i, s.channels);
  float factor = c.float_attr("factor", 0.1f), epsilon = c.float_attr("epsilon", 1e-4f);
  return on_floats(c, {0, 1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4}, [=](auto& in, auto& out) -> aclError {
    double n = static_cast<double>(s.each());
    std::vector<double> means(s.channels), scales(s.channels);
    for (int64_t k = 0; k < s.channels; ++k) {
      double mean = in[1][k] / n, variance = std::max(0.0, in[2][k] / n - mean * mean);
      double unbiased = n > 1 ? variance * n / (n - 1) : 0;
      means[k] = mean;
      scales[k] = in[3][k] / std::sqrt(variance + epsilon);
      out[1][k] = static_cast<float>(in[5][k] * (1 - factor) + mean * factor);
      out[2][k] = static_cast<float>(in[6][k] * (1 - factor) + unbiased * factor);
      out[3][k] = static_cast<float>(mean);
      out[4][k] = static_cast<float>(variance);
    }
    for (int64_t i = 0; i < s.total(); ++i) {
      int64_t k = s.of(i);
      out[0][i] = static_cast<float>((in[0][i] - means[k]) * scales[k] + in[4][k]);
    }
    return ACL_SUCCESS;
  });
}
// grads, x, batch_mean, batch_variance → diff_scale, diff_offset
aclError bn_training_update_grad(TypeCall& c) {
  EXPECT(c, 4, 2);
  Channels s;
  if (aclError code = expect_channels(c, 0, {2, 3}, false, &s)) return code;
  EXPECT_IN_SIZE(c, 1, s.total());
  for (size_t i : {0, 1}) EXPECT_OUT_SIZE(c, i, s.channels);
  float epsilon = c.float_attr("epsilon", 1e-4f);
  return on_floats(c, {0, 1, 2, 3}, {0, 1}, [=](auto& in, auto& out) -> aclError {
    std::vector<double> scale(s.channels, 0), offset(s.channels, 0);
    std::vector<double> deviation = deviations(s, in[3], epsilon);
    for (int64_t i = 0; i < s.total(); ++i) {
      int64_t k = s.of(i);
      scale[k] += in[0][i] * (in[1][i] - double(in[2][k])) / deviation[k];
      offset[k] += in[0][i];
    }
    std::copy(scale.begin(), scale.end(), out[0]);
    std::copy(offset.begin(), offset.end(), out[1]);
    return ACL_SUCCESS;
  });
}
// grads, x, diff_scale, diff_offset, scale, batch_mean, batch_variance → y
aclError bn_training_reduce_grad(TypeCall& c) {
  EXPECT(c, 7, 1);
  Channels s;
  if (aclError code = expect_channels(c, 0, {2, 3, 4, 5, 6}, false, &s)) return code;
  EXPECT_IN_SIZE(c, 1, s.total());
  EXPECT_OUT_SIZE(c, 0, s.total());
  float epsilon = c.float_attr("epsilon", 1e-4f);
  return on_floats(c, {0, 1, 2, 3, 4, 5, 6}, {0}, [=](auto& in, auto& out) -> aclError {
    double n = static_cast<double>(s.each());
    std::vector<double> deviation = deviations(s, in[6], epsilon);
    for (int64_t i = 0; i < s.total(); ++i) {
      int64_t k = s.of(i);
      double rstd = 1 / deviation[k];
      double x = (in[1][i] - double(in[5][k])) * rstd;
      out[0][i] = static_cast<float>(
          in[4][k] * rstd * (in[0][i] - in[3][k] / n - x * in[2][k] / n));
    }
    return ACL_SUCCESS;
  });
}
// grads, scale, batch_variance → x_backprop
aclError bn_infer_grad(TypeCall& c) {
  EXPECT(c, 3, 1);
  Channels s;
  if (aclError code = expect_channels(c, 0, {1, 2}, false, &s)) return code;
  EXPECT_OUT_SIZE(c, 0, s.total());
  float epsilon = c.float_attr("epsilon", 1e-4f);
  return on_floats(c, {0, 1, 2}, {0}, [=](auto& in, auto& out) -> aclError {
    std::vector<double> deviation = deviations(s, in[2], epsilon);
    for (int64_t i = 0; i < s.total(); ++i) {
      int64_t k = s.of(i);
      out[0][i] = static_cast<float>(in[0][i] * in[1][k] / deviation[k]);
    }
    return ACL_SUCCESS;
  });
}

// Rows of a normalisation: the dimensions from `first` on.
aclError expect_rows(TypeCall& c, size_t x, int64_t first, int64_t* rows, int64_t* length) {
  const Dims& dims = c.in(x).dims;
  if (first < 0) first += static_cast<int64_t>(dims.size());
  if (first < 0 || first > static_cast<int64_t>(dims.size())) {
    return c.refuse("begin_norm_axis names a dimension that is not there");
  }
  *rows = count_of(Dims(dims.begin(), dims.begin() + first));
  *length = count_of(Dims(dims.begin() + first, dims.end()));
  return ACL_SUCCESS;
}
aclError layer_norm(TypeCall& c) {  // x, gamma, beta → y, mean, variance
  EXPECT(c, 3, 3);
  int64_t rows = 0, length = 0;
  if (aclError code = expect_rows(c, 0, c.int_attr("begin_norm_axis", 0), &rows, &length)) {
    return code;
  }
  if (count_of(c.in(1).dims) != length || count_of(c.in(2).dims) != length) {
    return c.refuse("gamma and beta need %lld values", static_cast<long long>(length));
  }
  EXPECT_OUT_SIZE(c, 0, rows * length);
  for (size_t i : {1, 2}) EXPECT_OUT_SIZE(c, i, rows);
  float epsilon = c.float_attr("epsilon", 1e-7f);
  return on_floats(c, {0, 1, 2}, {0, 1, 2}, [=](auto& in, auto& out) -> aclError {
    for (int64_t r = 0; r < rows; ++r) {
      const float* x = in[0] + r * length;
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < length; ++i) mean += x[i];
      mean /= static_cast<double>(length);
      for (int64_t i = 0; i < length; ++i) variance += (x[i] - mean) * (x[i] - mean);
      variance /= static_cast<double>(length);
      double rstd = 1 / std::sqrt(variance + epsilon);
      for (int64_t i = 0; i < length; ++i) {
        out[0][r * length + i] = static_cast<float>((x[i] - mean) * rstd * in[1][i] + in[2][i]);
      }
      out[1][r] = static_cast<float>(mean);
      out[2][r] = static_cast<float>(variance);
    }
    return ACL_SUCCESS;
  });
}

// dy, x, variance, mean, gamma → gradients of x, gamma and beta. The type has no epsilon of its own:
// what `variance` was taken with is lost, so that a client gives it or there is none.
aclError layer_norm_grad(TypeCall& c) {
  EXPECT(c, 5, 3);
  int64_t rows = count_of(c.in(3).dims), length = count_of(c.in(4).dims);
  if (rows * length != count_of(c.in(1).dims) || count_of(c.in(2).dims) != rows) {
    return c.refuse("x, mean, variance and gamma do not fit");
  }
  EXPECT_IN_SIZE(c, 0, rows * length);
  EXPECT_OUT_SIZE(c, 0, rows * length);
  for (size_t i : {1, 2}) EXPECT_OUT_SIZE(c, i, length);
  double epsilon = c.float_attr("epsilon", 0);
  return on_floats(c, {0, 1, 2, 3, 4}, {0, 1, 2}, [=](auto& in, auto& out) -> aclError {
    std::vector<double> scale(length, 0), offset(length, 0);
    double n = static_cast<double>(length);
    for (int64_t r = 0; r < rows; ++r) {
      double rstd = 1 / std::sqrt(in[2][r] + epsilon), all = 0, along = 0;
      auto x = [&](int64_t i) { return (in[1][r * length + i] - double(in[3][r])) * rstd; };
      for (int64_t i = 0; i < length; ++i) {
        double dy = in[0][r * length + i], g = dy * in[4][i];
        scale[i] += dy * x(i);
        offset[i] += dy;
        all += g;
        along += g * x(i);
      }
      for (int64_t i = 0; i < length; ++i) {
        double g = double(in[0][r * length + i]) * in[4][i];
        out[0][r * length + i] = static_cast<float>(rstd * (g - all / n - x(i) * along / n));
      }
    }
    std::copy(scale.begin(), scale.end(), out[1]);
    std::copy(offset.begin(), offset.end(), out[2]);
    return ACL_SUCCESS;
  });
}

// One pooling window after another: the first output position's is at -pad.
struct Pool {
  Channels planes;  // outer × channels × (height × width), or with channels last
  bool last;
  int64_t height, width, out_height, out_width, kernel[2], stride[2], pad[2];
  int64_t at(int64_t n, int64_t k, int64_t y, int64_t x, int64_t rows, int64_t columns) const {
    return last ? ((n * rows + y) * columns + x) * planes.channels + k
                : ((n * planes.channels + k) * rows + y) * columns + x;
  }
};
aclError pool_of(TypeCall& c, const Dims& x, const Dims& y, Pool* p) {
  p->last = channels_last(c);
  Dims ksize = c.ints_attr("ksize", {}), strides = c.ints_attr("strides", {});
  std::string padding = c.text_attr("padding", "");
  if (x.size() != 4 || y.size() != 4 || ksize.size() != 4 || strides.size() != 4) {
    return c.refuse("images, ksize and strides need four dimensions");
  }
  if (padding != "SAME" && padding != "VALID") return c.refuse("padding is neither SAME nor VALID");
  size_t h = p->last ? 1 : 2, channel = p->last ? 3 : 1;
  if (x[0] != y[0] || x[channel] != y[channel]) return c.refuse("images differ in number or channels");
  p->planes.outer = x[0];
  p->planes.channels = x[channel];
  p->height = x[h], p->width = x[h + 1];
  p->out_height = y[h], p->out_width = y[h + 1];
  for (size_t i = 0; i < 2; ++i) {
    int64_t size = x[h + i], k = ksize[h + i], step = strides[h + i];
    if (k < 1 || step < 1) return c.refuse("ksize and strides start at 1");
    bool same = padding == "SAME";
    int64_t windows = same ? (size + step - 1) / step : size < k ? 0 : (size - k) / step + 1;
    if (y[h + i] != windows) return c.refuse("the pooled image has %lld windows along an axis, not %lld",
                                             static_cast<long long>(windows), static_cast<long long>(y[h + i]));
    p->kernel[i] = k, p->stride[i] = step;
    p->pad[i] = same ? std::max<int64_t>(0, (windows - 1) * step + k - size) / 2 : 0;
  }
  return ACL_SUCCESS;
}
// `visit(plane n, channel k, window's output index, y0, y1, x0, x1)`, borders cut off.
template <class Visit>
void each_window(const Pool& p, Visit visit) {
  for (int64_t n = 0; n < p.planes.outer; ++n)
    for (int64_t k = 0; k < p.planes.channels; ++k)
      for (int64_t y = 0; y < p.out_height; ++y)
        for (int64_t x = 0; x < p.out_width; ++x) {
          int64_t y0 = y * p.stride[0] - p.pad[0], x0 = x * p.stride[1] - p.pad[1];
          visit(n, k, p.at(n, k, y, x, p.out_height, p.out_width), std::max<int64_t>(0, y0),
                std::min(p.height, y0 + p.kernel[0]), std::max<int64_t>(0, x0),
                std::min(p.width, x0 + p.kernel[1]));
        }
}
// Where the first largest element of a window lies; NaN is the largest.
int64_t largest(const Pool& p, const float* x, int64_t n, int64_t k, int64_t y0, int64_t y1,
                int64_t x0, int64_t x1) {
  int64_t best = -1;
  for (int64_t i = y0; i < y1; ++i)
    for (int64_t j = x0; j < x1; ++j) {
      int64_t at = p.at(n, k, i, j, p.height, p.width);
      if (best < 0 || x[at] > x[best] || (std::isnan(x[at]) && !std::isnan(x[best]))) best = at;
    }
  return best;
}
aclError max_pool(TypeCall& c) {
  EXPECT(c, 1, 1);
  Pool p;
  if (aclError code = pool_of(c, c.in(0).dims, c.out(0).dims, &p)) return code;
  return on_floats(c, {0}, {0}, [p](auto& in, auto& out) -> aclError {
    each_window(p, [&](int64_t n, int64_t k, int64_t to, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
      out[0][to] = in[0][largest(p, in[0], n, k, y0, y1, x0, x1)];
    });
    return ACL_SUCCESS;
  });
}
aclError max_pool_grad(TypeCall& c) {  // x, pooled, grad → grad of x
  EXPECT(c, 3, 1);
  Pool p;
  if (aclError code = pool_of(c, c.in(0).dims, c.in(2).dims, &p)) return code;
  EXPECT_IN_SIZE(c, 1, count_of(c.in(2).dims));
  EXPECT_OUT_SIZE(c, 0, count_of(c.in(0).dims));
  int64_t total = count_of(c.in(0).dims);
  return on_floats(c, {0, 2}, {0}, [p, total](auto& in, auto& out) -> aclError {
    std::fill(out[0], out[0] + total, 0.f);
    each_window(p, [&](int64_t n, int64_t k, int64_t from, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
      out[0][largest(p, in[0], n, k, y0, y1, x0, x1)] += in[1][from];
    });
    return ACL_SUCCESS;
  });
}
aclError avg_pool(TypeCall& c) {  // what lies beyond the border does not count
  EXPECT(c, 1, 1);
  Pool p;
  if (aclError code = pool_of(c, c.in(0).dims, c.out(0).dims, &p)) return code;
  return on_floats(c, {0}, {0}, [p](auto& in, auto& out) -> aclError {
    each_window(p, [&](int64_t n, int64_t k, int64_t to, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
      double sum = 0;
      for (int64_t i = y0; i < y1; ++i)
        for (int64_t j = x0; j < x1; ++j) sum += in[0][p.at(n, k, i, j, p.height, p.width)];
      out[0][to] = static_cast<float>(sum / double((y1 - y0) * (x1 - x0)));
    });
    return ACL_SUCCESS;
  });
}
aclError avg_pool_grad(TypeCall& c) {  // shape of x, grad → grad of x
  EXPECT(c, 2, 1);
  Pool p;
  if (aclError code = pool_of(c, c.out(0).dims, c.in(1).dims, &p)) return code;
  int64_t total = count_of(c.out(0).dims);
  return on_floats(c, {1}, {0}, [p, total](auto& in, auto& out) -> aclError {
    std::fill(out[0], out[0] + total, 0.f);
    each_window(p, [&](int64_t n, int64_t k, int64_t from, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
      float share = in[0][from] / static_cast<float>((y1 - y0) * (x1 - x0));
      for (int64_t i = y0; i < y1; ++i)
        for (int64_t j = x0; j < x1; ++j) out[0][p.at(n, k, i, j, p.height, p.width)] += share;
    });
    return ACL_SUCCESS;
  });
}

// A gradient of Conv2D: with respect to its input (filter, grad) or its filter (x, grad).
aclError conv_grad(TypeCall& c, size_t other, size_t grad, bool of_input) {
  std::string format = c.text_attr("data_format", "NHWC");
  if (format != "NCHW") return c.refuse("data_format %s is not simulated", format.c_str());
  Dims strides = c.ints_attr("strides", {}), pads = c.ints_attr("pads", {});
  Dims dilations = c.ints_attr("dilations", {1, 1, 1, 1});
  if (strides.size() != 4 || pads.size() != 4 || dilations.size() != 4) {
    return c.refuse("strides, dilations and pads need four values");
  }
  if (pads[0] != pads[1] || pads[2] != pads[3]) return c.refuse("pads before and after an axis differ");
  auto image = [&](const View& view) { return c.tensor(view, ACL_FORMAT_NCHW); };
  // The operand whose gradient is asked for is read for its shape alone.
  const View &x = of_input ? c.out(0) : c.in(other), &filter = of_input ? c.in(other) : c.out(0);
  aclTensor* out = image(c.out(0));
  return ACLSIM_RUN(c, aclnnConvolutionBackward, image(c.in(grad)), image(x), image(filter),
                    static_cast<aclIntArray*>(nullptr), c.array({strides[2], strides[3]}),
                    c.array({pads[0], pads[2]}), c.array({dilations[2], dilations[3]}), false,
                    c.array({0, 0}), static_cast<int>(c.int_attr("groups", 1)),
                    c.flags({of_input, !of_input, false}), int8_t{0}, of_input ? out : nullptr,
                    of_input ? nullptr : out, static_cast<aclTensor*>(nullptr));
}
aclError conv_input_grad(TypeCall& c) {
  EXPECT(c, 3, 1);
  return conv_grad(c, 1, 2, true);
}
aclError conv_filter_grad(TypeCall& c) {
  EXPECT(c, 3, 1);
  return conv_grad(c, 0, 2, false);
}

aclError resize_bilinear(TypeCall& c) {  // x, size → y
  EXPECT(c, 2, 1);
  bool align = c.flag_attr("align_corners", false);
  if (!align && !c.flag_attr("half_pixel_centers", false)) {
    return c.refuse("neither align_corners nor half_pixel_centers is set: not simulated");
  }
  if (c.in(0).dims.size() != 4 || c.out(0).dims.size() != 4) return c.refuse("images need four dimensions");
  return ACLSIM_RUN(c, aclnnUpsampleBilinear2d, c.tensor(c.in(0), ACL_FORMAT_NCHW),
                    c.array({c.out(0).dims[2], c.out(0).dims[3]}), align, 0.0, 0.0,
                    c.tensor(c.out(0), ACL_FORMAT_NCHW));
}

}  // namespace

const TypeTable& layer_types() {
  static const auto* rows = new TypeTable{
      {"BiasAdd", bias_add}, {"BiasAddGrad", bias_add_grad}, {"BNInfer", bn_infer},
      {"BNInferGrad", bn_infer_grad}, {"BNTrainingReduce", bn_training_reduce},
      {"BNTrainingUpdate", bn_training_update}, {"BNTrainingUpdateGrad", bn_training_update_grad},
      {"BNTrainingReduceGrad", bn_training_reduce_grad}, {"LayerNorm", layer_norm}, {"LayerNormGrad", layer_norm_grad},
      {"MaxPool", max_pool}, {"MaxPoolGrad", max_pool_grad}, {"AvgPool", avg_pool},
      {"AvgPoolGrad", avg_pool_grad}, {"Conv2DBackpropInput", conv_input_grad},
      {"Conv2DBackpropFilter", conv_filter_grad}, {"ResizeBilinearV2", resize_bilinear}};
  return *rows;
}

}  // namespace aclsim
