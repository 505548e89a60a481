// Places of images: crops, borders, flips, resizing, blurring, turning and warping.
#include "params/image.h"
#include "loops/image.h"

namespace aclsim {
namespace {

// The numbers of MindSpore's front end to these operators.
enum Interpolation : int64_t { kBilinear, kNearest, kBicubic };
enum Padding : int64_t { kConstant, kEdge, kReflect, kSymmetric };

Tensor planes(const Call& c, int arg) { return planes_of(c.tensor(arg), channels_last(c.tensor(arg))); }

aclnnStatus refuse(const Call& c, const char* what) {
  using P = params::DvppPad;

  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "%s doesn't fit the image, whose shape is %s.", what,
                shape_text(c.tensor(P::self)));
}
aclnnStatus expect_mode(const Call& c, int arg, int64_t most) {
  if (c.integer(arg) >= 0 && c.integer(arg) <= most) return ACLNN_SUCCESS;
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "%s should be in [0, %lld], but is %lld.", c.name(arg),
                static_cast<long long>(most), static_cast<long long>(c.integer(arg)));
}
double fill_of(const Call& c, int arg, int64_t channel) {
  const Span<const float> f = c.floats(arg);
  return f.size ? f[std::min(channel, f.size - 1)] : 0;
}

aclnnStatus expect_window(const Call& c) {
  using P = params::DvppCrop;

  ACL_RETURN_IF_FAILED(expect_image(c, P::self, -1, -1, -1));
  const Tensor v = planes(c, P::self);
  const bool fits = c.integer(P::top) >= 0 && c.integer(P::left) >= 0 && c.integer(P::height) > 0 &&
                    c.integer(P::width) > 0 && c.integer(P::height) <= v.dims[2] &&
                    c.integer(P::width) <= v.dims[3] &&
                    c.integer(P::top) <= v.dims[2] - c.integer(P::height) &&
                    c.integer(P::left) <= v.dims[3] - c.integer(P::width);
  return fits ? ACLNN_SUCCESS : refuse(c, "The window");
}
Image cropped(const Call& c) {
  using P = params::DvppCrop;

  const Image m = image_of(c.tensor(P::self));
  Image out = m.like(m.channels, c.integer(P::height), c.integer(P::width));
  for (int64_t p = 0; p < m.batch * m.channels; ++p) {
    for (int64_t i = 0; i < out.plane(); ++i) {
      const int64_t h = i / out.width, w = i % out.width;
      out.at(p, h, w) = m.at(p, h + c.integer(P::top), w + c.integer(P::left));
    }
  }
  return out;
}
aclnnStatus check_crop(Call& c) {
  using P = params::DvppCrop;

  ACL_RETURN_IF_FAILED(expect_window(c));
  return expect_image(c, P::out, planes(c, P::self).dims[1], c.integer(P::height),
                      c.integer(P::width));
}
void run_crop(Call& c) {
  using P = params::DvppCrop;

  Image out = cropped(c);
  put_image(c.tensor(P::out), out);
}
aclnnStatus check_erase(Call& c) {
  using P = params::DvppErase;

  ACL_RETURN_IF_FAILED(expect_window(c));
  return expect_same_image(c, P::out);
}
void run_erase(Call& c) {
  using P = params::DvppErase;

  Image m = image_of(c.tensor(P::self));
  for (int64_t p = 0; p < m.batch * m.channels; ++p) {
    for (int64_t i = 0; i < c.integer(P::height) * c.integer(P::width); ++i) {
      m.at(p, c.integer(P::top) + i / c.integer(P::width),
           c.integer(P::left) + i % c.integer(P::width)) = fill_of(c, P::value, p % m.channels);
    }
  }
  put_image(c.tensor(P::out), m);
}
aclnnStatus check_flip(Call& c) {
  using P = params::DvppVerticalFlip;
  return expect_same_image(c, P::out);
}
template <bool Across>
void run_flip(Call& c) {
  using P = params::DvppVerticalFlip;

  const Image m = image_of(c.tensor(P::self));
  Image out = m;
  for (int64_t p = 0; p < m.batch * m.channels; ++p) {
    for (int64_t i = 0; i < m.plane(); ++i) {
      const int64_t h = i / m.width, w = i % m.width;
      out.at(p, h, w) = Across ? m.at(p, h, m.width - 1 - w) : m.at(p, m.height - 1 - h, w);
    }
  }
  put_image(c.tensor(P::out), out);
}

// Weights of neighbours at `at`: `first` is the place of weight[0].
struct Taps {
  int64_t first;
  int count;
  double weight[4];
};
double cubic(double d) {  // Keys' kernel with a = -0.75, as torch has it
  constexpr double a = -0.75;
  d = std::fabs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}
Taps taps_at(double at, int64_t mode) {
  if (mode == kNearest) return {static_cast<int64_t>(std::floor(at + 0.5)), 1, {1}};
  const double low = std::floor(at), part = at - low;
  const auto first = static_cast<int64_t>(low);
  if (mode == kBilinear) return {first, 2, {1 - part, part}};
  return {first - 1, 4, {cubic(part + 1), cubic(part), cubic(1 - part), cubic(2 - part)}};
}
// The value at (y, x); places outside are clamped, or hold the fill.
double sample(const Image& m, int64_t p, double y, double x, int64_t mode, const double* fill) {
  const Taps v = taps_at(y, mode), u = taps_at(x, mode);
  double sum = 0;
  for (int i = 0; i < v.count; ++i) {
    for (int k = 0; k < u.count; ++k) {
      const int64_t h = v.first + i, w = u.first + k;
      const bool outside = h < 0 || h >= m.height || w < 0 || w >= m.width;
      const int64_t ch = std::min(std::max<int64_t>(h, 0), m.height - 1);
      const int64_t cw = std::min(std::max<int64_t>(w, 0), m.width - 1);
      sum += v.weight[i] * u.weight[k] * (outside && fill ? *fill : m.at(p, ch, cw));
    }
  }
  return sum;
}
Image resized(const Image& m, int64_t height, int64_t width, int64_t mode) {
  Image out = m.like(m.channels, height, width);
  const double rh = static_cast<double>(m.height) / static_cast<double>(height);
  const double rw = static_cast<double>(m.width) / static_cast<double>(width);
  const auto place = [&](int64_t o, double ratio, int64_t size) {
    const auto at = static_cast<double>(o);
    if (mode == kNearest) return std::min(std::floor(at * ratio), static_cast<double>(size - 1));
    const double centre = (at + 0.5) * ratio - 0.5;
    return mode == kBilinear ? std::max(centre, 0.0) : centre;
  };
  for (int64_t p = 0; p < m.batch * m.channels; ++p) {
    for (int64_t i = 0; i < out.plane(); ++i) {
      const int64_t h = i / width, w = i % width;
      out.at(p, h, w) =
          sample(m, p, place(h, rh, m.height), place(w, rw, m.width), mode, nullptr);
    }
  }
  return out;
}
// (self, interpolationMode, out) and (self, window, size, interpolationMode, out).
aclnnStatus check_resize(Call& c) {
  using P = params::DvppResize;

  ACL_RETURN_IF_FAILED(expect_mode(c, P::interpolationMode, kBicubic));
  ACL_RETURN_IF_FAILED(expect_image(c, P::self, -1, -1, -1));
  return expect_image(c, P::out, planes(c, P::self).dims[1], -1, -1);
}
void run_resize(Call& c) {
  using P = params::DvppResize;

  const Tensor to = planes(c, P::out);
  Image out =
      resized(image_of(c.tensor(P::self)), to.dims[2], to.dims[3], c.integer(P::interpolationMode));
  put_image(c.tensor(P::out), out);
}
aclnnStatus check_crop_resize(Call& c) {
  using P = params::DvppCropAndResize;

  ACL_RETURN_IF_FAILED(expect_window(c));
  ACL_RETURN_IF_FAILED(expect_mode(c, P::interpolationMode, kBicubic));
  if (c.ints(P::size).size != 2) return refuse(c, "size");
  return expect_image(c, P::out, planes(c, P::self).dims[1], c.ints(P::size)[0],
                      c.ints(P::size)[1]);
}
void run_crop_resize(Call& c) {
  using P = params::DvppCropAndResize;

  Image out =
      resized(cropped(c), c.ints(P::size)[0], c.ints(P::size)[1], c.integer(P::interpolationMode));
  put_image(c.tensor(P::out), out);
}

// Where a place outside [0, n) takes its value from; -1: the fill.
int64_t border(int64_t i, int64_t n, int64_t mode) {
  if (i >= 0 && i < n) return i;
  if (mode == kConstant) return -1;
  if (mode == kEdge || n == 1) return i < 0 ? 0 : n - 1;
  const int64_t period = mode == kReflect ? 2 * n - 2 : 2 * n;
  const int64_t k = ((i % period) + period) % period;
  return k < n ? k : (mode == kReflect ? period - k : period - 1 - k);
}
// (self, padding [left, top, right, bottom], paddingMode, fill, out); two values serve both sides.
struct Edges {
  int64_t left, top, right, bottom;
};
Edges edges_of(Span<const int64_t> p) {
  if (p.size == 4) return {p[0], p[1], p[2], p[3]};
  return {p[0], p[p.size - 1], p[0], p[p.size - 1]};
}
aclnnStatus check_pad(Call& c) {
  using P = params::DvppPad;

  ACL_RETURN_IF_FAILED(expect_image(c, P::self, -1, -1, -1));
  ACL_RETURN_IF_FAILED(expect_mode(c, P::paddingMode, kSymmetric));
  const Span<const int64_t> p = c.ints(P::padding);
  bool fits = p.size == 1 || p.size == 2 || p.size == 4;
  for (int64_t n : p) fits = fits && n >= 0;
  if (!fits) return refuse(c, "padding");
  const Edges e = edges_of(p);
  const Tensor v = planes(c, P::self);
  return expect_image(c, P::out, v.dims[1], v.dims[2] + e.top + e.bottom,
                      v.dims[3] + e.left + e.right);
}
void run_pad(Call& c) {
  using P = params::DvppPad;

  const Image m = image_of(c.tensor(P::self));
  const Edges e = edges_of(c.ints(P::padding));
  Image out = m.like(m.channels, m.height + e.top + e.bottom, m.width + e.left + e.right);
  for (int64_t p = 0; p < m.batch * m.channels; ++p) {
    for (int64_t i = 0; i < out.plane(); ++i) {
      const int64_t h = border(i / out.width - e.top, m.height, c.integer(P::paddingMode));
      const int64_t w = border(i % out.width - e.left, m.width, c.integer(P::paddingMode));
      out.at(p, i / out.width, i % out.width) =
          h < 0 || w < 0 ? fill_of(c, P::fill, p % m.channels) : m.at(p, h, w);
    }
  }
  put_image(c.tensor(P::out), out);
}

// (self, kernelSize [x, y], sigma [x, y], paddingMode, out).
aclnnStatus check_blur(Call& c) {
  using P = params::DvppGaussianBlur;

  const Span<const int64_t> k = c.ints(P::kernelSize);
  ACL_RETURN_IF_FAILED(expect_mode(c, P::paddingMode, kSymmetric));
  bool fits = (k.size == 1 || k.size == 2) &&
              (c.floats(P::sigma).size == 1 || c.floats(P::sigma).size == 2);
  for (int64_t n : k) fits = fits && n > 0 && n % 2 == 1;
  for (float s : c.floats(P::sigma)) fits = fits && s >= 0;
  if (!fits) return c.fail(ACLDVPP_ERR_PARAM_INVALID, "kernelSize should be odd, sigma positive.");
  return expect_same_image(c, P::out);
}
Numbers bell(int64_t n, double sigma) {
  if (sigma <= 0) sigma = 0.3 * ((static_cast<double>(n) - 1) * 0.5 - 1) + 0.8;
  Numbers w(static_cast<size_t>(n));
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(i - n / 2) / sigma;
    sum += w[i] = std::exp(-d * d / 2);
  }
  for (double& v : w) v /= sum;
  return w;
}
void run_blur(Call& c) {
  using P = params::DvppGaussianBlur;

  Image m = image_of(c.tensor(P::self));
  const Span<const int64_t> k = c.ints(P::kernelSize);
  const Span<const float> s = c.floats(P::sigma);
  for (int axis = 0; axis < 2; ++axis) {  // along x, then along y
    const Numbers w = bell(k[axis ? k.size - 1 : 0], s[axis ? s.size - 1 : 0]);
    const auto reach = static_cast<int64_t>(w.size()) / 2;
    const Image from = m;
    for (int64_t p = 0; p < m.batch * m.channels; ++p) {
      for (int64_t i = 0; i < m.plane(); ++i) {
        double sum = 0;
        for (int64_t t = -reach; t <= reach; ++t) {
          const int64_t h =
              axis ? border(i / m.width + t, m.height, c.integer(P::paddingMode)) : i / m.width;
          const int64_t x =
              axis ? i % m.width : border(i % m.width + t, m.width, c.integer(P::paddingMode));
          if (h >= 0 && x >= 0) sum += w[t + reach] * from.at(p, h, x);
        }
        m.at(p, i / m.width, i % m.width) = sum;
      }
    }
  }
  put_image(c.tensor(P::out), m);
}

// Every pixel of the result comes from where `back` leads: (x, y) of the result to (x, y) of self.
template <class F>
aclError warp(Call& c, int mode, int padding, int fill, int out, F back) {
  using P = params::DvppRotate;

  const Image m = image_of(c.tensor(P::self));
  const Tensor to = planes(c, out);
  Image made = m.like(m.channels, to.dims[2], to.dims[3]);
  for (int64_t p = 0; p < m.batch * m.channels; ++p) {
    const double outside = fill_of(c, fill, p % m.channels);
    for (int64_t i = 0; i < made.plane(); ++i) {
      const int64_t h = i / made.width, w = i % made.width;
      double x = static_cast<double>(w), y = static_cast<double>(h);
      back(x, y);
      const bool far = !(std::fabs(x) < 1e6 && std::fabs(y) < 1e6);
      made.at(p, h, w) = far ? outside
                             : sample(m, p, y, x, c.integer(mode),
                                      c.integer(padding) == kConstant ? &outside : nullptr);
    }
  }
  put_image(c.tensor(out), made);
  return ACL_SUCCESS;
}
template <int N>
aclnnStatus check_warp(Call& c) {
  using P = params::DvppWarpAffine;

  ACL_RETURN_IF_FAILED(expect_mode(c, P::interpolationMode, kBicubic));
  ACL_RETURN_IF_FAILED(expect_mode(c, P::paddingMode, kEdge));
  ACL_RETURN_IF_FAILED(expect_image(c, P::self, -1, -1, -1));
  if (c.floats(P::matrix).size == N)
    return expect_image(c, P::out, planes(c, P::self).dims[1], -1, -1);
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "matrix should have %d values, but has %lld.", N,
                static_cast<long long>(c.floats(P::matrix).size));
}
// (self, matrix, interpolationMode, paddingMode, fill, out): the matrix leads from self to the result,
// and is inverted first, as OpenCV has it.
template <int N>
aclError run_warp(Call& c) {
  using P = params::DvppWarpAffine;

  double m[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, inverse[9];
  for (int i = 0; i < N; ++i) m[i] = c.floats(P::matrix)[i];
  const auto minor = [&](int r, int k) {
    const int r1 = (r + 1) % 3, r2 = (r + 2) % 3, k1 = (k + 1) % 3, k2 = (k + 2) % 3;
    return m[r1 * 3 + k1] * m[r2 * 3 + k2] - m[r1 * 3 + k2] * m[r2 * 3 + k1];
  };
  const double det = m[0] * minor(0, 0) + m[1] * minor(0, 1) + m[2] * minor(0, 2);
  if (det == 0) return c.trap(507018, "matrix can't be inverted");
  for (int i = 0; i < 9; ++i) inverse[i] = minor(i % 3, i / 3) / det;
  return warp(c, P::interpolationMode, P::paddingMode, P::fill, P::out, [&](double& x, double& y) {
    const double z = inverse[6] * x + inverse[7] * y + inverse[8];
    const double u = (inverse[0] * x + inverse[1] * y + inverse[2]) / z;
    y = (inverse[3] * x + inverse[4] * y + inverse[5]) / z;
    x = u;
  });
}
// (self, angle, interpolationMode, expand, center [x, y], paddingMode, fill, out): counter-clockwise by
// degrees around the centre; expanded, the result's own centre takes its place.
aclnnStatus check_rotate(Call& c) {
  using P = params::DvppRotate;

  ACL_RETURN_IF_FAILED(expect_mode(c, P::interpolationMode, kBicubic));
  ACL_RETURN_IF_FAILED(expect_mode(c, P::paddingMode, kEdge));
  ACL_RETURN_IF_FAILED(expect_image(c, P::self, -1, -1, -1));
  const Tensor v = planes(c, P::self);
  if (c.ints(P::center).size != 0 && c.ints(P::center).size != 2) return refuse(c, "center");
  return c.flag(P::expand) ? expect_image(c, P::out, v.dims[1], -1, -1)
                           : expect_image(c, P::out, v.dims[1], v.dims[2], v.dims[3]);
}
aclError run_rotate(Call& c) {
  using P = params::DvppRotate;

  const double turn = c.number(P::angle) * 3.14159265358979323846 / 180;
  const double cos = std::cos(turn), sin = std::sin(turn);
  const Tensor from = planes(c, P::self), to = planes(c, P::out);
  const auto middle = [](int64_t n) { return (static_cast<double>(n) - 1) / 2; };
  double cx = middle(from.dims[3]), cy = middle(from.dims[2]);
  const double ox = c.flag(P::expand) ? middle(to.dims[3]) : cx,
               oy = c.flag(P::expand) ? middle(to.dims[2]) : cy;
  double about_x = ox, about_y = oy;
  if (c.ints(P::center).size == 2 && !c.flag(P::expand)) {
    about_x = cx = static_cast<double>(c.ints(P::center)[0]);
    about_y = cy = static_cast<double>(c.ints(P::center)[1]);
  }
  return warp(c, P::interpolationMode, P::paddingMode, P::fill, P::out, [&](double& x, double& y) {
    const double dx = x - about_x, dy = y - about_y;
    x = cos * dx - sin * dy + cx;
    y = sin * dx + cos * dy + cy;
  });
}

}  // namespace
}  // namespace aclsim

#define ACLNN_IMAGE(op, check, run) ACLNN_OP_FLAGS(op, check, run, kOwnNulls | kOwnDtypes)
ACLNN_IMAGE(acldvppCrop, check_crop, run_crop)
ACLNN_IMAGE(acldvppErase, check_erase, run_erase)
ACLNN_IMAGE(acldvppHorizontalFlip, check_flip, run_flip<true>)
ACLNN_IMAGE(acldvppVerticalFlip, check_flip, run_flip<false>)
ACLNN_IMAGE(acldvppResize, check_resize, run_resize)
ACLNN_IMAGE(acldvppCropAndResize, check_crop_resize, run_crop_resize)
ACLNN_IMAGE(acldvppPad, check_pad, run_pad)
ACLNN_IMAGE(acldvppGaussianBlur, check_blur, run_blur)
ACLNN_IMAGE(acldvppWarpAffine, check_warp<6>, run_warp<6>)
ACLNN_IMAGE(acldvppWarpPerspective, check_warp<9>, run_warp<9>)
ACLNN_IMAGE(acldvppRotate, check_rotate, run_rotate)
