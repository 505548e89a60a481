// Strided slices, read and written.
#include "params/shape.h"
#include "loops/iterate.h"
#include "loops/promote.h"

#include <algorithm>

namespace aclsim {
namespace {

struct Steps {
  Shape begin, size, step;
};

// A tensor's own view of a slice: same storage, other geometry.
Tensor sliced(const Tensor& t, const Steps& s) {
  Tensor v = t;
  for (int i = 0; i < t.rank; ++i) {
    v.offset += s.begin.dims[i] * t.strides[i];
    v.dims[i] = s.size.dims[i];
    v.strides[i] = t.strides[i] * s.step.dims[i];
  }
  return v;
}

Steps whole(const Tensor& t) {
  Steps s;
  for (int i = 0; i < t.rank; ++i) {
    s.size.dims[i] = t.dims[i];
    s.step.dims[i] = 1;
  }
  s.size.rank = t.rank;
  return s;
}

// Python's slice rule for positive steps: negative counts from the end, then clamped.
void set_axis(Steps& s, const Tensor& t, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  const int64_t n = t.dims[axis];
  const auto clamp = [n](int64_t x) {
    return std::min(std::max(x < 0 ? x + n : x, int64_t{0}), n);
  };
  begin = clamp(begin);
  end = clamp(end);
  s.begin.dims[axis] = begin;
  s.step.dims[axis] = step;
  s.size.dims[axis] = end > begin ? (end - begin + step - 1) / step : 0;
}

aclnnStatus refuse_step(const Call& c, int arg, int64_t step) {
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be positive, but is %lld.", c.name(arg),
                static_cast<long long>(step));
}

// Arguments: (self, dim, start, end, step, out).
aclnnStatus check_slice(Call& c) {
  using P = params::Slice;

  const Tensor& self = c.tensor(P::self);
  int64_t axis = c.integer(P::dim);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, self.rank));
  if (self.rank == 0) return c.fail(ACLNN_ERR_PARAM_INVALID, "self should have at least 1 dim.");
  if (c.integer(P::step) <= 0) return refuse_step(c, P::step, c.integer(P::step));
  Steps& s = c.make<Steps>();
  s = whole(self);
  set_axis(s, self, axis, c.integer(P::start), c.integer(P::end), c.integer(P::step));
  return expect_shape(c, P::out, s.size);
}
void run_slice(Call& c) {
  using P = params::Slice;

  copy_tensor(c.tensor(P::out), sliced(c.tensor(P::self), c.get<Steps>()));
}

// begins, ends, steps and optional axes as int arrays from argument `first` on.
aclnnStatus steps_of(Call& c, const Tensor& t, int begins, int ends, int axes, int steps) {
  const Span<const int64_t> b = c.ints(begins), e = c.ints(ends), a = c.ints(axes),
                            k = c.ints(steps);
  Steps& s = c.make<Steps>();
  s = whole(t);
  if (b.size != e.size || b.size > t.rank || (a.size && a.size != b.size) ||
      (k.size && k.size != b.size)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s, %s, %s and %s should have one value per axis.",
                  c.name(begins), c.name(ends), c.name(axes), c.name(steps));
  }
  for (int64_t i = 0; i < b.size; ++i) {
    int64_t axis = a.size ? a[i] : i;
    ACL_RETURN_IF_FAILED(expect_axis(c, axes, axis, t.rank));
    const int64_t step = k.size ? k[i] : 1;
    if (step <= 0) return refuse_step(c, steps, step);
    set_axis(s, t, axis, b[i], e[i], step);
  }
  return ACLNN_SUCCESS;
}

// Arguments: (self, starts, ends, axes, steps, out).
aclnnStatus check_slice_v2(Call& c) {
  using P = params::SliceV2;

  ACL_RETURN_IF_FAILED(steps_of(c, c.tensor(P::self), P::starts, P::ends, P::axes, P::steps));
  return expect_shape(c, P::out, c.get<Steps>().size);
}

// Arguments: (varRef, inputValue, begin, end, strides, axesOptional).
aclnnStatus check_assign(Call& c) {
  using P = params::StridedSliceAssignV2;

  ACL_RETURN_IF_FAILED(
      steps_of(c, c.tensor(P::varRef), P::begin, P::end, P::axesOptional, P::strides));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::inputValue, P::varRef));
  return expect_shape(c, P::inputValue, c.get<Steps>().size);
}
void run_assign(Call& c) {
  using P = params::StridedSliceAssignV2;

  copy_tensor(sliced(c.tensor(P::varRef), c.get<Steps>()), c.tensor(P::inputValue));
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSlice, check_slice, run_slice)
ACLNN_OP(aclnnSliceV2, check_slice_v2, run_slice)
ACLNN_OP(aclnnStridedSliceAssignV2, check_assign, run_assign)
