// Colours of images: adjustments, conversions, histograms. Formulas are torchvision's and PIL's.
#include "params/image.h"
#include "loops/image.h"

namespace aclsim {
namespace {

double gray_of(const Image& m, int64_t n, int64_t i) {
  if (m.channels < 3) return m.x[n * m.channels * m.plane() + i];
  const double* p = m.x.data() + n * m.channels * m.plane() + i;
  return 0.2989 * p[0] + 0.587 * p[m.plane()] + 0.114 * p[2 * m.plane()];
}
aclnnStatus expect_factor(const Call& c, double least, double most) {
  using P = params::DvppAdjustHue;

  if (c.number(P::factor) >= least && c.number(P::factor) <= most) return ACLNN_SUCCESS;
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "factor should be in [%g, %g], but is %g.", least, most,
                c.number(P::factor));
}

// (self, factor, out): a blend of the image and what `other` makes of it.
template <class F>
void blend(Call& c, F other) {
  using P = params::DvppAdjustContrast;

  Image m = image_of(c.tensor(P::self));
  const Image from = m;
  for (size_t i = 0; i < m.x.size(); ++i) {
    const int64_t p = static_cast<int64_t>(i) / std::max<int64_t>(1, m.plane());
    m.x[i] = c.number(P::factor) * from.x[i] +
             (1 - c.number(P::factor)) * other(from, p, static_cast<int64_t>(i) % m.plane());
  }
  put_image(c.tensor(P::out), m);
}
aclnnStatus check_factor(Call& c) {
  using P = params::DvppAdjustContrast;

  ACL_RETURN_IF_FAILED(expect_factor(c, 0, 1e9));
  return expect_same_image(c, P::out);
}
void run_brightness(Call& c) {
  return blend(c, [](const Image&, int64_t, int64_t) { return 0.0; });
}
double mean_gray(const Image& m, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < m.plane(); ++i) {
    sum += m.bytes ? std::floor(gray_of(m, n, i)) : gray_of(m, n, i);
  }
  return sum / static_cast<double>(m.plane());
}
void run_contrast(Call& c) {
  Numbers means;
  return blend(c, [&](const Image& m, int64_t p, int64_t) {
    while (static_cast<int64_t>(means.size()) < m.batch) {
      means.push_back(mean_gray(m, static_cast<int64_t>(means.size())));
    }
    return means[p / m.channels];
  });
}
void run_saturation(Call& c) {
  return blend(c, [](const Image& m, int64_t p, int64_t i) {
    const double gray = gray_of(m, p / m.channels, i);
    return m.bytes ? std::floor(gray) : gray;
  });
}
// A 3 x 3 blur that leaves the border as it is.
void run_sharpness(Call& c) {
  return blend(c, [](const Image& m, int64_t p, int64_t i) {
    const int64_t h = i / m.width, w = i % m.width;
    if (h == 0 || w == 0 || h + 1 == m.height || w + 1 == m.width) return m.at(p, h, w);
    double sum = 4 * m.at(p, h, w);
    for (int64_t k = 0; k < 9; ++k) sum += m.at(p, h + k / 3 - 1, w + k % 3 - 1);
    return m.bytes ? std::floor(sum / 13 + 0.5) : sum / 13;
  });
}

// (self, factor, out): hue turned by a share of the circle, through HSV.
aclnnStatus check_hue(Call& c) {
  using P = params::DvppAdjustHue;

  ACL_RETURN_IF_FAILED(expect_factor(c, -0.5, 0.5));
  return expect_same_image(c, P::out, 3);
}
void turn_hue(double rgb[3], double by) {
  const double top = std::max({rgb[0], rgb[1], rgb[2]}), low = std::min({rgb[0], rgb[1], rgb[2]});
  const double span = top - low;
  if (span == 0) return;
  double hue = top == rgb[0]   ? (rgb[1] - rgb[2]) / span
               : top == rgb[1] ? 2 + (rgb[2] - rgb[0]) / span
                               : 4 + (rgb[0] - rgb[1]) / span;
  hue = std::fmod(hue / 6 + 1 + by + 1, 1.0) * 6;
  const double part = hue - std::floor(hue), fall = top - span * part, rise = low + span * part;
  const double table[6][3] = {{top, rise, low}, {fall, top, low}, {low, top, rise},
                              {low, fall, top}, {rise, low, top}, {top, low, fall}};
  std::copy_n(table[static_cast<int>(hue) % 6], 3, rgb);
}
void run_hue(Call& c) {
  using P = params::DvppAdjustHue;

  Image m = image_of(c.tensor(P::self));
  for (int64_t n = 0; n < m.batch; ++n) {
    for (int64_t i = 0; i < m.plane(); ++i) {
      double rgb[3], *at = m.x.data() + n * 3 * m.plane() + i;
      for (int k = 0; k < 3; ++k) rgb[k] = at[k * m.plane()];
      turn_hue(rgb, c.number(P::factor));
      for (int k = 0; k < 3; ++k) at[k * m.plane()] = rgb[k];
    }
  }
  put_image(c.tensor(P::out), m);
}

// Tables of 256 steps, one per plane; floats count as bytes do.
int64_t step_of(const Image& m, double v) {
  const double scaled = std::floor(v / m.top() * 255 + 0.5);
  return static_cast<int64_t>(std::min(std::max(scaled, 0.0), 255.0));
}
template <class F>
void by_table(Call& c, int out, F table_of) {
  using P = params::DvppEqualize;

  Image m = image_of(c.tensor(P::self));
  for (int64_t p = 0; p < m.batch * m.channels; ++p) {
    Integers histogram(256);
    double* x = m.x.data() + p * m.plane();
    for (int64_t i = 0; i < m.plane(); ++i) ++histogram[step_of(m, x[i])];
    const Numbers table = table_of(histogram);
    for (int64_t i = 0; i < m.plane(); ++i) x[i] = table[step_of(m, x[i])] / 255 * m.top();
  }
  put_image(c.tensor(out), m);
}
Numbers identity_table() {
  Numbers t(256);
  std::iota(t.begin(), t.end(), 0.0);
  return t;
}
// (self, out): PIL's equalize.
aclnnStatus check_equalize(Call& c) {
  using P = params::DvppInvert;
  return expect_same_image(c, P::out);
}
void run_equalize(Call& c) {
  using P = params::DvppEqualize;

  return by_table(c, P::out, [](const Integers& histogram) {
    int64_t total = 0, last = 0, used = 0;
    for (int64_t n : histogram) {
      total += n;
      if (n) last = n;
      used += n > 0;
    }
    const int64_t step = (total - last) / 255;
    Numbers t = identity_table();
    if (used <= 1 || step == 0) return t;
    int64_t n = step / 2;
    for (int i = 0; i < 256; ++i) {
      t[i] = static_cast<double>(std::min<int64_t>(n / step, 255));
      n += histogram[i];
    }
    return t;
  });
}
// (self, cutoff [low, high] in percent, ignore, out): PIL's autocontrast.
aclnnStatus check_autocontrast(Call& c) {
  using P = params::DvppAutoContrast;

  const Span<const float> cut = c.floats(P::cutoff);
  if (cut.size == 2 && cut[0] >= 0 && cut[1] >= 0 && cut[0] + cut[1] < 100) {
    return expect_same_image(c, P::out);
  }
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "cutoff should be two percentages of less than 100.");
}
// Takes `count` elements off one end of a histogram.
void cut_end(Integers& histogram, int64_t count, bool high) {
  for (int k = 0; k < 256 && count > 0; ++k) {
    int64_t& n = histogram[high ? 255 - k : k];
    const int64_t taken = std::min(n, count);
    n -= taken;
    count -= taken;
  }
}
void run_autocontrast(Call& c) {
  using P = params::DvppAutoContrast;

  return by_table(c, P::out, [&](Integers histogram) {
    for (int64_t k : c.ints(P::ignore)) {
      if (k >= 0 && k < 256) histogram[k] = 0;
    }
    const auto total = static_cast<double>(
        std::accumulate(histogram.begin(), histogram.end(), int64_t{0}));
    cut_end(histogram, static_cast<int64_t>(total * c.floats(P::cutoff)[0] / 100), false);
    cut_end(histogram, static_cast<int64_t>(total * c.floats(P::cutoff)[1] / 100), true);
    int low = 0, high = 255;
    while (low < 256 && histogram[low] == 0) ++low;
    while (high >= 0 && histogram[high] == 0) --high;
    Numbers t = identity_table();
    if (high <= low) return t;
    const double scale = 255.0 / (high - low), offset = -low * scale;
    for (int i = 0; i < 256; ++i) {
      t[i] = std::min(std::max(std::trunc(i * scale + offset), 0.0), 255.0);
    }
    return t;
  });
}

// Pixel by pixel: f(value, top of the range).
template <class F>
void each_pixel(Call& c, int out, F f) {
  using P = params::DvppInvert;

  Image m = image_of(c.tensor(P::self));
  for (double& v : m.x) v = f(v, m.top());
  put_image(c.tensor(out), m);
}
void run_invert(Call& c) {
  using P = params::DvppInvert;

  return each_pixel(c, P::out, [](double v, double top) { return top - v; });
}
// (self, bits, out): only the highest bits stay.
aclnnStatus check_posterize(Call& c) {
  using P = params::DvppPosterize;

  if (c.integer(P::bits) >= 0 && c.integer(P::bits) <= 8) return expect_same_image(c, P::out);
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "bits should be in [0, 8], but is %lld.",
                static_cast<long long>(c.integer(P::bits)));
}
void run_posterize(Call& c) {
  using P = params::DvppPosterize;

  const int64_t kept = 0xFF & ~((int64_t{1} << (8 - c.integer(P::bits))) - 1);
  return each_pixel(c, P::out, [&](double v, double top) {
    return static_cast<double>(static_cast<int64_t>(v / top * 255 + 0.5) & kept) / 255 * top;
  });
}
// (self, threshold [low, high], out): inverts what lies between.
aclnnStatus check_solarize(Call& c) {
  using P = params::DvppSolarize;

  if (c.floats(P::threshold).size == 1 || c.floats(P::threshold).size == 2)
    return expect_same_image(c, P::out);
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "threshold should have 1 or 2 values.");
}
void run_solarize(Call& c) {
  using P = params::DvppSolarize;

  const Span<const float> t = c.floats(P::threshold);
  return each_pixel(c, P::out, [&](double v, double top) {
    const double high = t.size == 2 ? t[1] : top;
    return v >= t[0] && v <= high ? top - v : v;
  });
}

// (self, mode, out): channels swapped, alpha added or dropped, grey. Modes are acldvppConvertMode.
struct Conversion {
  int8_t from, to;
  int8_t order[4];  // source of each channel; -1 grey, -2 opaque
};
constexpr Conversion kConversions[] = {
    {3, 4, {0, 1, 2, -2}},  {4, 3, {0, 1, 2, 0}},   {3, 4, {2, 1, 0, -2}}, {4, 3, {2, 1, 0, 0}},
    {3, 3, {2, 1, 0, 0}},   {4, 4, {2, 1, 0, 3}},   {3, 1, {-3, 0, 0, 0}}, {3, 1, {-1, 0, 0, 0}},
    {1, 3, {0, 0, 0, 0}},   {1, 4, {0, 0, 0, -2}},  {4, 1, {-3, 0, 0, 0}}, {4, 1, {-1, 0, 0, 0}}};
aclnnStatus check_convert(Call& c) {
  using P = params::DvppConvertColor;

  const int64_t mode = c.integer(P::convertMode);
  if (mode < 0 || mode > 11) {
    return c.fail(ACLDVPP_ERR_PARAM_INVALID, "convertMode should be in [0, 11], but is %lld.",
                  static_cast<long long>(mode));
  }
  const Conversion& to = kConversions[mode];
  ACL_RETURN_IF_FAILED(expect_image(c, P::self, to.from, -1, -1));
  const Tensor v = planes_of(c.tensor(P::self), channels_last(c.tensor(P::self)));
  return expect_image(c, P::out, to.to, v.dims[2], v.dims[3]);
}
void run_convert(Call& c) {
  using P = params::DvppConvertColor;

  const Image m = image_of(c.tensor(P::self));
  const Conversion& how = kConversions[c.integer(P::convertMode)];
  Image out = m.like(how.to, m.height, m.width);
  for (int64_t p = 0; p < m.batch * how.to; ++p) {
    const int source = how.order[p % how.to];
    const double* from = m.x.data() + p / how.to * m.channels * m.plane();
    for (int64_t i = 0; i < m.plane(); ++i) {
      const double r = from[i], b = m.channels > 2 ? from[2 * m.plane() + i] : r;
      const double g = m.channels > 2 ? from[m.plane() + i] : r;
      double v = source >= 0 ? from[source * m.plane() + i] : m.top();
      if (source == -1) v = 0.299 * r + 0.587 * g + 0.114 * b;
      if (source == -3) v = 0.114 * r + 0.587 * g + 0.299 * b;
      out.x[p * m.plane() + i] = v;
    }
  }
  put_image(c.tensor(P::out), out);
}
aclnnStatus check_gray(Call& c) {
  using P = params::DvppRgbToGrayscale;

  ACL_RETURN_IF_FAILED(expect_image(c, P::self, 3, -1, -1));
  const Tensor v = planes_of(c.tensor(P::self), channels_last(c.tensor(P::self)));
  if (c.integer(P::outputChannelsNum) == 1 || c.integer(P::outputChannelsNum) == 3) {
    return expect_image(c, P::out, c.integer(P::outputChannelsNum), v.dims[2], v.dims[3]);
  }
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "outputChannelsNum should be 1 or 3.");
}
void run_gray(Call& c) {
  using P = params::DvppRgbToGrayscale;

  const Image m = image_of(c.tensor(P::self));
  Image out = m.like(c.integer(P::outputChannelsNum), m.height, m.width);
  for (size_t i = 0; i < out.x.size(); ++i) {
    const int64_t k = static_cast<int64_t>(i), n = k / m.plane() / out.channels;
    const double gray = gray_of(m, n, k % m.plane());
    out.x[i] = m.bytes ? std::floor(gray) : gray;
  }
  put_image(c.tensor(P::out), out);
}

// (self, mean, std, out float) per channel.
aclnnStatus check_normalize(Call& c) {
  using P = params::DvppNormalize;

  ACL_RETURN_IF_FAILED(expect_same_image(c, P::out));
  const int64_t channels = planes_of(c.tensor(P::self), channels_last(c.tensor(P::self))).dims[1];
  if (c.floats(P::mean).size == channels && c.floats(P::std).size == channels) return ACLNN_SUCCESS;
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "mean and std should have %lld values.",
                static_cast<long long>(channels));
}
void run_normalize(Call& c) {
  using P = params::DvppNormalize;

  Image m = image_of(c.tensor(P::self));
  for (size_t i = 0; i < m.x.size(); ++i) {
    const int64_t k = static_cast<int64_t>(i) / m.plane() % m.channels;
    m.x[i] = (m.x[i] - c.floats(P::mean)[k]) / c.floats(P::std)[k];
  }
  write(planes_of(c.tensor(P::out), channels_last(c.tensor(P::out))), m.x);
}

// (self [N, H, W, C], out [N, C, H, W]), the other way, and to floats in [0, 1] on the way.
template <bool ToPlanes, bool Scales>
aclnnStatus check_order(Call& c) {
  using P = params::DvppCHW2HWC;

  ACL_RETURN_IF_FAILED(expect_image(c, P::self, -1, -1, -1));
  ACL_RETURN_IF_FAILED(expect_image(c, P::out, -1, -1, -1));
  const Tensor in = planes_of(c.tensor(P::self), ToPlanes),
               out = planes_of(c.tensor(P::out), !ToPlanes);
  if (in.same_shape(out) && (!Scales || c.tensor(P::out).dtype == ACL_FLOAT)) return ACLNN_SUCCESS;
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "Shape %s of out doesn't fit %s of self.",
                shape_text(c.tensor(P::out)), shape_text(c.tensor(P::self)));
}
template <bool ToPlanes, bool Scales>
void run_order(Call& c) {
  using P = params::DvppCHW2HWC;

  Numbers x = numbers(planes_of(c.tensor(P::self), ToPlanes));
  for (double& v : x) v /= Scales && c.tensor(P::self).dtype == ACL_UINT8 ? 255 : 1;
  write(planes_of(c.tensor(P::out), !ToPlanes), x);
}

}  // namespace
}  // namespace aclsim

#define ACLNN_IMAGE(op, check, run) ACLNN_OP_FLAGS(op, check, run, kOwnNulls | kOwnDtypes)
ACLNN_IMAGE(acldvppAdjustBrightness, check_factor, run_brightness)
ACLNN_IMAGE(acldvppAdjustContrast, check_factor, run_contrast)
ACLNN_IMAGE(acldvppAdjustSaturation, check_factor, run_saturation)
ACLNN_IMAGE(acldvppAdjustSharpness, check_factor, run_sharpness)
ACLNN_IMAGE(acldvppAdjustHue, check_hue, run_hue)
ACLNN_IMAGE(acldvppAutoContrast, check_autocontrast, run_autocontrast)
ACLNN_IMAGE(acldvppEqualize, check_equalize, run_equalize)
ACLNN_IMAGE(acldvppInvert, check_equalize, run_invert)
ACLNN_IMAGE(acldvppPosterize, check_posterize, run_posterize)
ACLNN_IMAGE(acldvppSolarize, check_solarize, run_solarize)
ACLNN_IMAGE(acldvppConvertColor, check_convert, run_convert)
ACLNN_IMAGE(acldvppRgbToGrayscale, check_gray, run_gray)
ACLNN_IMAGE(acldvppNormalize, check_normalize, run_normalize)
ACLNN_IMAGE(acldvppCHW2HWC, (check_order<false, false>), (run_order<false, false>))
ACLNN_IMAGE(acldvppHWC2CHW, (check_order<true, false>), (run_order<true, false>))
ACLNN_IMAGE(acldvppImgToTensor, (check_order<true, true>), (run_order<true, true>))
