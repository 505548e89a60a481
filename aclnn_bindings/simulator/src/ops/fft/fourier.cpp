// Fourier transforms of real signals.
#include "params/fft.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

constexpr double kTurn = 6.283185307179586476925;

// sum of x[i] exp(-2 pi j k i / n)
c128 bin(const double* x, int64_t n, int64_t k) {
  c128 sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double angle = -kTurn * static_cast<double>(k * i % n) / static_cast<double>(n);
    sum += x[i] * c128(std::cos(angle), std::sin(angle));
  }
  return sum;
}
// Complex results lie as complex numbers, or as pairs in a last dim of two.
std::vector<double> pairs_of(const std::vector<c128>& values) {
  std::vector<double> pairs;
  for (const c128& v : values) {
    pairs.push_back(v.real());
    pairs.push_back(v.imag());
  }
  return pairs;
}
void put_complex(const Tensor& out, const std::vector<c128>& values) {
  if (is_complex(out.dtype)) {
    put(out, values);
  } else {
    put(out, pairs_of(values));
  }
}

// (self, n, dim, norm, out): norm 0 or 1 leaves the sums, 2 divides by n, 3 by its root.
aclnnStatus check_rfft(Call& c) {
  using P = params::Rfft1D;

  int64_t& axis = c.make<int64_t>();
  axis = c.integer(P::dim);
  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  ACL_RETURN_IF_FAILED(expect_rank(c, P::self, 1, kMaxRank - 1));
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, self.rank));
  ACL_RETURN_IF_FAILED(expect_int(c, P::norm, 0, 3));
  if (c.integer(P::n) < 1) return c.fail(ACLNN_ERR_PARAM_INVALID, "n should be positive.");
  Shape shape = shape_of(self);
  shape.dims[axis] = c.integer(P::n) / 2 + 1;
  if (!is_complex(out.dtype)) shape.dims[shape.rank++] = 2;
  return expect_shape(c, P::out, shape);
}
void run_rfft(Call& c) {
  using P = params::Rfft1D;

  const Tensor& self = c.tensor(P::self);
  const Around a(self, static_cast<int>(c.get<int64_t>()));
  const int64_t n = c.integer(P::n), bins = n / 2 + 1;
  const double scale = c.integer(P::norm) == 2   ? 1.0 / static_cast<double>(n)
                       : c.integer(P::norm) == 3 ? 1 / std::sqrt(static_cast<double>(n))
                                                 : 1;
  const Numbers x = numbers(self);
  std::vector<c128> out(static_cast<size_t>(a.outer * bins * a.inner));
  for (int64_t o = 0; o < a.outer; ++o) {
    for (int64_t i = 0; i < a.inner; ++i) {
      Numbers row(static_cast<size_t>(n));  // cut, or padded with zeros
      for (int64_t k = 0; k < std::min(n, a.size); ++k) row[k] = x[a.at(o, k, i)];
      for (int64_t k = 0; k < bins; ++k) {
        out[(o * bins + k) * a.inner + i] = bin(row.data(), n, k) * scale;
      }
    }
  }
  put_complex(c.tensor(P::out), out);
}

// (self [(B,) L], window, out, nFft, hopLength, winLength, normalized, onesided, returnComplex):
// torch's stft without centring. out is [(B,) bins, frames(, 2)].
aclnnStatus check_stft(Call& c) {
  using P = params::Stft;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  ACL_RETURN_IF_FAILED(expect_rank(c, P::self, 1, 2));
  const int64_t n = c.integer(P::nFft), hop = c.integer(P::hopLength),
                wide = c.integer(P::winLength);
  const int64_t length = self.dims[self.rank - 1];
  if (n < 1 || hop < 1 || wide < 1 || wide > n || n > length || is_complex(self.dtype)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "nFft %lld, hopLength %lld, winLength %lld don't fit %s.",
                  static_cast<long long>(n), static_cast<long long>(hop),
                  static_cast<long long>(wide), shape_text(self));
  }
  ACL_RETURN_IF_FAILED(expect_dims(c, P::windowOptional, {wide}));
  Shape shape = shape_of(self);
  shape.dims[self.rank - 1] = c.flag(P::onesided) ? n / 2 + 1 : n;
  shape.dims[shape.rank++] = (length - n) / hop + 1;
  if (!is_complex(out.dtype)) shape.dims[shape.rank++] = 2;
  return expect_shape(c, P::out, shape);
}
void run_stft(Call& c) {
  using P = params::Stft;

  const Tensor& self = c.tensor(P::self);
  const int64_t n = c.integer(P::nFft), hop = c.integer(P::hopLength),
                wide = c.integer(P::winLength);
  const int64_t length = self.dims[self.rank - 1], batch = self.rank == 2 ? self.dims[0] : 1;
  const int64_t bins = c.flag(P::onesided) ? n / 2 + 1 : n, frames = (length - n) / hop + 1;
  const Numbers x = numbers(self), given = numbers_or(c.maybe(P::windowOptional), wide, 1);
  Numbers window(static_cast<size_t>(n));  // the window stands in the middle of the frame
  std::copy(given.begin(), given.end(), window.begin() + (n - wide) / 2);
  const double scale = c.flag(P::normalized) ? 1 / std::sqrt(static_cast<double>(n)) : 1;
  std::vector<c128> out(static_cast<size_t>(batch * bins * frames));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t f = 0; f < frames; ++f) {
      Numbers row(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) row[i] = x[b * length + f * hop + i] * window[i];
      for (int64_t k = 0; k < bins; ++k) {
        out[(b * bins + k) * frames + f] = bin(row.data(), n, k) * scale;
      }
    }
  }
  put_complex(c.tensor(P::out), out);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclRfft1D, check_rfft, run_rfft)
ACLNN_OP(aclStft, check_stft, run_stft)
