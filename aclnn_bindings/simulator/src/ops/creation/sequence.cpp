// Tensors made from host numbers: ranges, spaces, identities, one-hot codes.
#include "params/creation.h"
#include "loops/iterate.h"
#include "loops/promote.h"

#include <cmath>

namespace aclsim {
namespace {

bool integral(const Scalar& s) { return domain_of(s.dtype) == Domain::Integer; }

// ceil((end - start) / step), or floor(...) + 1 where `closed`; -1 for a bad step.
int64_t range_size(const Call& c, bool closed) {
  using P = params::Range;

  const Scalar &start = c.scalar(P::start), &end = c.scalar(P::end), &step = c.scalar(P::step);
  const double steps = step.real(), span = end.real() - start.real();
  if (!(steps != 0) || (span != 0 && (span > 0) != (steps > 0))) return -1;
  if (integral(start) && integral(end) && integral(step)) {
    const int64_t s = step.integer(), d = end.integer() - start.integer();
    const int64_t away = s > 0 ? s - 1 : s + 1;
    return closed ? d / s + 1 : (d + away) / s;
  }
  return static_cast<int64_t>(closed ? std::floor(span / steps) + 1 : std::ceil(span / steps));
}

// Arguments: (start, end, step, out).
template <bool Closed>
aclnnStatus check_range(Call& c) {
  using P = params::Range;

  const int64_t n = range_size(c, Closed);
  if (n < 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "step %g doesn't lead from start %g to end %g.",
                  c.scalar(P::step).real(), c.scalar(P::start).real(), c.scalar(P::end).real());
  }
  // Any shape with room for the numbers; with floats the last one may round away or in.
  const bool exact =
      integral(c.scalar(P::start)) && integral(c.scalar(P::end)) && integral(c.scalar(P::step));
  const int64_t off = c.tensor(P::out).numel() - n;
  if (off == 0 || (!exact && (off == 1 || off == -1))) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "out should have %lld elements, but its shape is %s.",
                static_cast<long long>(n), shape_text(c.tensor(P::out)));
}

// out[i] = f(i), in blocks of the compute type.
template <class C, class F>
void generate(const Tensor& out, F f) {
  const int64_t n = out.numel();
  if (out.rank != 1) {
    Buffer<C> all(n);
    for (int64_t i = 0; i < n; ++i) all[i] = f(i);
    copy_tensor(out, dense(all.get(), dtype_of<C>(), out.dims, out.rank));
    return;
  }
  parallel_for(n, 32768, [&](int64_t begin, int64_t end) {
    C block[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t m = end - i < kBlock ? end - i : kBlock;
      for (int64_t k = 0; k < m; ++k) block[k] = f(i + k);
      store(block, out.data, out.dtype, out.offset + i * out.strides[0], out.strides[0], m);
    }
  });
}

void run_range(Call& c) {
  using P = params::Range;

  const Tensor& out = c.tensor(P::out);
  if (domain_of(out.dtype) == Domain::Integer) {
    const int64_t start = c.scalar(P::start).integer(), step = c.scalar(P::step).integer();
    generate<int64_t>(out, [=](int64_t i) { return start + i * step; });
  } else {
    const double start = c.scalar(P::start).real(), step = c.scalar(P::step).real();
    generate<double>(out, [=](int64_t i) { return start + static_cast<double>(i) * step; });
  }
}

// Arguments: (start, end, steps, out) and (start, end, steps, base, result).
template <int Out>
aclnnStatus check_space(Call& c) {
  using P = params::Linspace;

  Shape shape;
  shape.rank = 1;
  shape.dims[0] = c.integer(P::steps);
  if (c.integer(P::steps) < 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "steps should not be negative, but is %lld.",
                  static_cast<long long>(c.integer(P::steps)));
  }
  return expect_shape(c, Out, shape);
}
// torch's form: from both ends towards the middle.
double space_at(const Call& c, int64_t i) {
  using P = params::Linspace;

  const int64_t n = c.integer(P::steps);
  const double start = c.scalar(P::start).real(), end = c.scalar(P::end).real();
  const double step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  return i < n / 2 || n == 1 ? start + step * static_cast<double>(i)
                             : end - step * static_cast<double>(n - i - 1);
}
void run_linspace(Call& c) {
  using P = params::Linspace;

  generate<double>(c.tensor(P::out), [&](int64_t i) { return space_at(c, i); });
}
void run_logspace(Call& c) {
  using P = params::LogSpace;

  const double base = c.number(P::base);
  generate<double>(c.tensor(P::result), [&](int64_t i) { return std::pow(base, space_at(c, i)); });
}

// Arguments: (n, m, out).
aclnnStatus check_eye(Call& c) {
  using P = params::Eye;

  Shape shape;
  shape.rank = 2;
  shape.dims[0] = c.integer(P::n);
  shape.dims[1] = c.integer(P::m);
  return expect_shape(c, P::out, shape);
}
void run_eye(Call& c) {
  using P = params::Eye;

  Tensor out = c.tensor(P::out);
  fill_tensor(out, Scalar{ACL_INT64, {}});
  out.rank = 1;
  out.dims[0] = std::min(out.dims[0], out.dims[1]);
  out.strides[0] += out.strides[1];
  if (out.dims[0] > 0) fill_tensor(out, Scalar{ACL_INT64, {1}});
}

// Arguments: (self, numClasses, onValue, offValue, axis, out).
aclnnStatus check_one_hot(Call& c) {
  using P = params::OneHot;

  const Tensor& self = c.tensor(P::self);
  const int64_t axis = c.integer(P::axis);
  if (axis < -1 || axis > self.rank || self.rank >= kMaxRank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "axis should be in range [-1, %d], but is %lld.",
                  self.rank, static_cast<long long>(axis));
  }
  if (c.integer(P::numClasses) < 0)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "numClasses is negative.");
  Shape shape;
  const int at = axis < 0 ? self.rank : static_cast<int>(axis);
  for (int i = 0; i <= self.rank; ++i) {
    shape.dims[i] = i == at ? c.integer(P::numClasses) : self.dims[i < at ? i : i - 1];
  }
  shape.rank = self.rank + 1;
  return expect_shape(c, P::out, shape);
}
void run_one_hot(Call& c) {
  using P = params::OneHot;

  const Tensor& self = c.tensor(P::self);
  Tensor on = c.tensor(P::onValue), off = c.tensor(P::offValue), out = c.tensor(P::out);
  on.rank = off.rank = 0;
  copy_tensor(out, off);
  const int at = c.integer(P::axis) < 0 ? self.rank : static_cast<int>(c.integer(P::axis));
  alignas(16) unsigned char value[16];
  const Tensor cast = dense(value, out.dtype, nullptr, 0);
  copy_tensor(cast, on);
  Walker w(self.rank, self.dims);
  for (int64_t i = self.numel(); i > 0; --i, w.next()) {
    const int64_t k =
        load_one<int64_t>(self.data, self.dtype, self.offset + w.offset(self.strides));
    if (k < 0 || k >= c.integer(P::numClasses)) continue;  // all off, as the operator documents it
    int64_t to = out.offset + k * out.strides[at];
    for (int d = 0; d < self.rank; ++d) to += w.index[d] * out.strides[d < at ? d : d + 1];
    const size_t bytes = dtype_size(out.dtype);
    std::memcpy(static_cast<char*>(out.data) + to * static_cast<int64_t>(bytes), value, bytes);
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnArange, check_range<false>, run_range)
ACLNN_OP(aclnnRange, check_range<true>, run_range)
ACLNN_OP(aclnnLinspace, check_space<params::Linspace::out>, run_linspace)
ACLNN_OP(aclnnLogSpace, check_space<params::LogSpace::result>, run_logspace)
ACLNN_OP(aclnnEye, check_eye, run_eye)
ACLNN_OP(aclnnOneHot, check_one_hot, run_one_hot)
