// Types that pool regions of images: RoIAlign (He et al., ICCV 2017) and position-sensitive pooling
// (Dai et al., NeurIPS 2016).
#include <algorithm>
#include <cmath>

#include "op_compiler/rows.h"

#include <aclnnop/aclnn_roi_align_v2.h>
#include <aclnnop/aclnn_roi_align_v2_backward.h>

namespace aclsim {
namespace {

// Where a region ends: 0 at its last corner, 1 a pixel later, 2 at the corner with all coordinates
// half a pixel lower.
aclError regions(TypeCall& c, View* boxes, bool* aligned) {
  EXPECT_IN(c, 1, {-1, 5});
  int64_t mode = c.int_attr("roi_end_mode", 1), n = c.in(1).dims[0];
  if (mode < 0 || mode > 2) return c.refuse("roi_end_mode is %lld, expected 0, 1 or 2",
                                            static_cast<long long>(mode));
  *aligned = mode == 2;
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

}  // namespace

const TypeTable& image_types() {
  static const auto* rows = new TypeTable{{"ROIAlign", roi_align}, {"ROIAlignGrad", roi_align_grad},
                                          {"PSROIPoolingV2", ps_roi},
                                          {"PSROIPoolingGradV2D", ps_roi_grad}};
  return *rows;
}

}  // namespace aclsim
