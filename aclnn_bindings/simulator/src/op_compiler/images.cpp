// Types that pool regions of images: RoIAlign (He et al., ICCV 2017) and position-sensitive pooling
// (Dai et al., NeurIPS 2016); and those that sample an image at moved places (Dai et al., ICCV 2017).
#include <algorithm>
#include <cmath>

#include "op_compiler/rows.h"

#include <aclnnop/aclnn_roi_align_v2.h>
#include <aclnnop/aclnn_roi_align_v2_backward.h>

namespace aclsim {
namespace {

// Where a region ends: 0 at its last corner, 1 a pixel later, 2 at the corner with all coordinates
// half a pixel lower, and so 3, which torch_npu gives for aligned regions (contrib/module/roi_align.py).
aclError regions(TypeCall& c, View* boxes, bool* aligned) {
  EXPECT_IN(c, 1, {-1, 5});
  int64_t mode = c.int_attr("roi_end_mode", 1), n = c.in(1).dims[0];
  if (mode < 0 || mode > 3) return c.refuse("roi_end_mode is %lld, expected 0, 1, 2 or 3",
                                            static_cast<long long>(mode));
  *aligned = mode >= 2;
  if (aclError code = float_in(c, 1, boxes)) return code;
  if (mode != 1) return ACL_SUCCESS;
  View later = c.room(ACL_FLOAT, boxes->dims);
  const float* from = floats(*boxes);
  float* to = floats(later);
  *boxes = later;
  return c.on_stream([=] {
    for (int64_t i = 0; i < n * 5; ++i) to[i] = from[i] + (i % 5 > 2 ? 1 : 0);
    return ACL_SUCCESS;
  });
}

// features, rois → y.
aclError roi_align(TypeCall& c) {
  EXPECT(c, 2, 1);
  View boxes, image, out = float_room(c, 0);
  bool aligned = false;
  if (aclError code = regions(c, &boxes, &aligned)) return code;
  if (aclError code = float_in(c, 0, &image)) return code;
  aclError code = ACLSIM_RUN(c, aclnnRoiAlignV2, c.tensor(image, ACL_FORMAT_NCHW), c.tensor(boxes),
                             c.int_attr("pooled_height", 0), c.int_attr("pooled_width", 0),
                             c.float_attr("spatial_scale", 1), c.int_attr("sample_num", 2), aligned,
                             c.tensor(out, ACL_FORMAT_NCHW));
  return code == ACL_SUCCESS ? float_out(c, out, 0) : code;
}
// ydiff, rois → xdiff.
aclError roi_align_grad(TypeCall& c) {
  EXPECT(c, 2, 1);
  View boxes, grad, out = float_room(c, 0);
  bool aligned = false;
  if (aclError code = regions(c, &boxes, &aligned)) return code;
  if (aclError code = float_in(c, 0, &grad)) return code;
  aclError code = ACLSIM_RUN(c, aclnnRoiAlignV2Backward, c.tensor(grad, ACL_FORMAT_NCHW),
                             c.tensor(boxes), c.array(c.ints_attr("xdiff_shape", out.dims)),
                             c.int_attr("pooled_height", 0), c.int_attr("pooled_width", 0),
                             c.float_attr("spatial_scale", 1), c.int_attr("sample_num", 2), aligned,
                             c.tensor(out, ACL_FORMAT_NCHW));
  return code == ACL_SUCCESS ? float_out(c, out, 0) : code;
}

struct Pooling {
  int64_t batch, regions, outputs, group, height, width;
  double scale;
};
// f(element of y, first element of x's plane, the bin's rows and columns) for each bin whose image
// is there and which is not empty.
template <class F>
void each_bin(const Pooling& p, const float* rois, F f) {
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t r = 0; r < p.regions; ++r) {
      auto field = [&](int64_t k) { return static_cast<double>(rois[(b * 5 + k) * p.regions + r]); };
      double image = field(0);
      if (!(image >= 0 && image < static_cast<double>(p.batch))) continue;
      double from[] = {std::round(field(2)) * p.scale, std::round(field(1)) * p.scale};
      double bin[] = {(std::round(field(4)) + 1) * p.scale - from[0],
                      (std::round(field(3)) + 1) * p.scale - from[1]};
      for (double& size : bin) size = std::max(size, 0.1) / static_cast<double>(p.group);
      auto edge = [](double at, int64_t last) {
        return static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(last)));
      };
      for (int64_t k = 0; k < p.outputs * p.group * p.group; ++k) {
        auto row = static_cast<double>(k / p.group % p.group), column = static_cast<double>(k % p.group);
        int64_t y0 = edge(std::floor(from[0] + row * bin[0]), p.height);
        int64_t y1 = edge(std::ceil(from[0] + (row + 1) * bin[0]), p.height);
        int64_t x0 = edge(std::floor(from[1] + column * bin[1]), p.width);
        int64_t x1 = edge(std::ceil(from[1] + (column + 1) * bin[1]), p.width);
        if (y1 <= y0 || x1 <= x0) continue;
        int64_t planes = p.outputs * p.group * p.group;
        f((b * p.regions + r) * planes + k,
          (static_cast<int64_t>(image) * planes + k) * p.height * p.width, y0, y1, x0, x1);
      }
    }
  }
}
// x is [batch, output_dim·group², height, width], rois [batch, 5, n], y [batch·n, output_dim, group,
// group].
aclError pooling_of(TypeCall& c, const Dims& image, const Dims& pooled, Pooling* p) {
  EXPECT_IN(c, 1, {-1, 5, -1});
  const Dims& rois = c.in(1).dims;
  int64_t outputs = c.int_attr("output_dim", 0), group = c.int_attr("group_size", 0);
  if (outputs <= 0 || group <= 0) return c.refuse("output_dim and group_size must be positive");
  if (image.size() != 4 || image[0] != rois[0] || image[1] != outputs * group * group) {
    return c.refuse("the image is not [batch, output_dim times group_size squared, height, width]");
  }
  if (pooled != Dims{rois[0] * rois[2], outputs, group, group}) {
    return c.refuse("the pooled regions are not [regions, output_dim, group_size, group_size]");
  }
  *p = {rois[0], rois[2], outputs, group, image[2], image[3], c.float_attr("spatial_scale", 1)};
  return ACL_SUCCESS;
}
aclError ps_roi(TypeCall& c) {
  EXPECT(c, 2, 1);
  Pooling p;
  if (aclError code = pooling_of(c, c.in(0).dims, c.out(0).dims, &p)) return code;
  int64_t count = count_of(c.out(0).dims);
  return on_floats(c, {0, 1}, {0}, [=](const auto& from, const auto& to) {
    std::fill_n(to[0], count, 0.0f);
    each_bin(p, from[1], [&](int64_t at, int64_t plane, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
      double sum = 0;
      for (int64_t y = y0; y < y1; ++y) {
        for (int64_t x = x0; x < x1; ++x) sum += from[0][plane + y * p.width + x];
      }
      to[0][at] = static_cast<float>(sum / static_cast<double>((y1 - y0) * (x1 - x0)));
    });
    return ACL_SUCCESS;
  });
}
aclError ps_roi_grad(TypeCall& c) {
  EXPECT(c, 2, 1);
  Pooling p;
  if (aclError code = pooling_of(c, c.out(0).dims, c.in(0).dims, &p)) return code;
  int64_t count = count_of(c.out(0).dims);
  return on_floats(c, {0, 1}, {0}, [=](const auto& from, const auto& to) {
    std::fill_n(to[0], count, 0.0f);
    each_bin(p, from[1], [&](int64_t at, int64_t plane, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
      float share = from[0][at] / static_cast<float>((y1 - y0) * (x1 - x0));
      for (int64_t y = y0; y < y1; ++y) {
        for (int64_t x = x0; x < x1; ++x) to[0][plane + y * p.width + x] += share;
      }
    });
    return ACL_SUCCESS;
  });
}

// Where a dimension's next element lies, of an image in either order.
struct Order {
  int64_t batch, channel, row, column;
};
Order order_of(const Dims& dims, bool last) {
  Dims to = strides_of(dims);
  return last ? Order{to[0], to[3], to[1], to[2]} : Order{to[0], to[1], to[2], to[3]};
}
// Deformable convolution's samples. `offsets` has for each place of the output, group of channels and
// place of the filter how far right and down to look, and a factor: channels are [3, groups, filter],
// as op-plugin's test_deformable_conv2d.py and mindspore.ops.deformable_conv2d have them. `y` has
// for each place of the output a tile as large as the filter.
struct Moved {
  Order x, offsets, y;
  int64_t batch, channels, height, width, rows, columns, groups;
  Dims filter, step, pad, dilation;  // down, right
  int64_t part(int64_t which, int64_t group, int64_t place) const {
    return ((which * groups + group) * filter[0] * filter[1] + place) * offsets.channel;
  }
};
aclError moved_of(TypeCall& c, const Dims& x, const Dims& offsets, const Dims& y, Moved* m) {
  std::string format = c.text_attr("data_format", "NCHW");
  bool last = format == "NHWC";
  if (!last && format != "NCHW") return c.refuse("data_format %s is not simulated", format.c_str());
  if (!c.flag_attr("modulated", true)) return c.refuse("modulated is false: not simulated");
  Dims filter = c.ints_attr("ksize", {}), strides = c.ints_attr("strides", {});
  Dims pads = c.ints_attr("pads", {}), dilations = c.ints_attr("dilations", {1, 1, 1, 1});
  if (filter.size() != 2 || strides.size() != 4 || pads.size() != 4 || dilations.size() != 4) {
    return c.refuse("ksize needs two values, strides, pads and dilations four");
  }
  if (x.size() != 4 || offsets.size() != 4 || y.size() != 4) return c.refuse("images need four dimensions");
  size_t first = last ? 1 : 2, channel = last ? 3 : 1;
  *m = {order_of(x, last), order_of(offsets, last), order_of(y, last), x[0], x[channel], x[first],
        x[first + 1], offsets[first], offsets[first + 1], c.int_attr("deformable_groups", 1), filter,
        {strides[first], strides[first + 1]}, {pads[0], pads[2]},
        {dilations[first], dilations[first + 1]}};
  int64_t places = filter[0] * filter[1];
  if (places <= 0 || m->groups <= 0 || m->channels % m->groups) {
    return c.refuse("ksize is not positive, or deformable_groups does not divide the channels");
  }
  if (offsets[0] != x[0] || offsets[channel] != 3 * m->groups * places) {
    return c.refuse("offsets are not three for each place of the filter and group of each image");
  }
  if (y[0] != x[0] || y[channel] != x[channel] || y[first] != m->rows * filter[0] ||
      y[first + 1] != m->columns * filter[1]) {
    return c.refuse("the samples are not a tile as large as the filter for each place of offsets");
  }
  return ACL_SUCCESS;
}
// One sample: where it is in the tensors, without a channel, and where it looks, in float32 as devices add.
struct Sample {
  int64_t x, across, down, factor, y, group;
  double row, column;
};
template <class F>
void each_sample(const Moved& m, const float* offsets, F f) {
  int64_t places = m.filter[0] * m.filter[1], spots = m.rows * m.columns;
  for (int64_t i = 0; i < m.batch * m.groups * places * spots; ++i) {
    int64_t column = i % m.columns, row = i / m.columns % m.rows, k = i / spots % places;
    int64_t group = i / spots / places % m.groups, image = i / spots / places / m.groups;
    int64_t fy = k / m.filter[1], fx = k % m.filter[1];
    int64_t at = image * m.offsets.batch + row * m.offsets.row + column * m.offsets.column;
    Sample s{image * m.x.batch, at + m.part(0, group, k), at + m.part(1, group, k),
             at + m.part(2, group, k),
             image * m.y.batch + (row * m.filter[0] + fy) * m.y.row + (column * m.filter[1] + fx) * m.y.column,
             group, 0, 0};
    s.row = static_cast<float>(row * m.step[0] - m.pad[0] + fy * m.dilation[0]) + offsets[s.down];
    s.column =
        static_cast<float>(column * m.step[1] - m.pad[1] + fx * m.dilation[1]) + offsets[s.across];
    f(s);
  }
}
// f(element of x without a channel, share, its slopes down and right) of the corners in the image.
template <class F>
void each_corner(const Moved& m, const Sample& s, F f) {
  bool there = s.row > -1 && s.row < double(m.height) && s.column > -1 && s.column < double(m.width);
  if (!there) return;
  auto top = static_cast<int64_t>(std::floor(s.row)), left = static_cast<int64_t>(std::floor(s.column));
  double low = s.row - double(top), right = s.column - double(left);
  for (int64_t dy : {0, 1}) {
    for (int64_t dx : {0, 1}) {
      int64_t row = top + dy, column = left + dx;
      if (row < 0 || row >= m.height || column < 0 || column >= m.width) continue;
      double down = dy ? low : 1 - low, across = dx ? right : 1 - right;
      f(s.x + row * m.x.row + column * m.x.column, down * across, (dy ? 1 : -1) * across,
        (dx ? 1 : -1) * down);
    }
  }
}
aclError deformable_offsets(TypeCall& c) {  // x, offsets → samples
  EXPECT(c, 2, 1);
  Moved m;
  if (aclError code = moved_of(c, c.in(0).dims, c.in(1).dims, c.out(0).dims, &m)) return code;
  return on_floats(c, {0, 1}, {0}, [m](const auto& in, const auto& out) {
    int64_t each = m.channels / m.groups;
    each_sample(m, in[1], [&](const Sample& s) {
      for (int64_t k = s.group * each; k < (s.group + 1) * each; ++k) {
        double sum = 0;
        each_corner(m, s, [&](int64_t at, double share, double, double) {
          sum += share * in[0][at + k * m.x.channel];
        });
        out[0][s.y + k * m.y.channel] = static_cast<float>(sum * in[1][s.factor]);
      }
    });
    return ACL_SUCCESS;
  });
}
aclError deformable_offsets_grad(TypeCall& c) {  // grad, x, offsets → gradients of x and offsets
  EXPECT(c, 3, 2);
  Moved m;
  if (aclError code = moved_of(c, c.in(1).dims, c.in(2).dims, c.in(0).dims, &m)) return code;
  int64_t total = count_of(c.in(1).dims);
  EXPECT_OUT_SIZE(c, 0, total);
  EXPECT_OUT_SIZE(c, 1, count_of(c.in(2).dims));
  return on_floats(c, {0, 1, 2}, {0, 1}, [m, total](const auto& in, const auto& out) {
    int64_t each = m.channels / m.groups;
    std::vector<double> to_x(static_cast<size_t>(total));
    each_sample(m, in[2], [&](const Sample& s) {
      double across = 0, down = 0, factor = 0;
      for (int64_t k = s.group * each; k < (s.group + 1) * each; ++k) {
        double grad = in[0][s.y + k * m.y.channel], scaled = grad * in[2][s.factor];
        each_corner(m, s, [&](int64_t at, double share, double slope_down, double slope_across) {
          double x = in[1][at + k * m.x.channel];
          to_x[static_cast<size_t>(at + k * m.x.channel)] += scaled * share;
          across += scaled * slope_across * x, down += scaled * slope_down * x;
          factor += grad * share * x;
        });
      }
      out[1][s.across] = static_cast<float>(across), out[1][s.down] = static_cast<float>(down);
      out[1][s.factor] = static_cast<float>(factor);
    });
    std::copy(to_x.begin(), to_x.end(), out[0]);
    return ACL_SUCCESS;
  });
}

}  // namespace

const TypeTable& image_types() {
  static const auto* rows = new TypeTable{{"ROIAlign", roi_align}, {"ROIAlignGrad", roi_align_grad},
                                          {"PSROIPoolingV2", ps_roi},
                                          {"PSROIPoolingGradV2D", ps_roi_grad},
                                          {"DeformableOffsets", deformable_offsets},
                                          {"DeformableOffsetsGrad", deformable_offsets_grad}};
  return *rows;
}

}  // namespace aclsim
