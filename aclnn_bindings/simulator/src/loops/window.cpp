// Phase-1 rules of pooling windows: see window.h.
#include "loops/window.h"

namespace aclsim {
namespace {

aclnnStatus expect_planes(const Call& c, int arg, int dims) {
  const Tensor& t = c.tensor(arg);
  bool fits = t.rank == dims + 1 || t.rank == dims + 2;
  for (int i = std::max(0, t.rank - dims); fits && i < t.rank; ++i) fits = t.dims[i] > 0;
  if (fits) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "%s should have %d or %d dims with at least one element in space, but its shape is "
                "%s.",
                c.name(arg), dims + 1, dims + 2, shape_text(t));
}
aclnnStatus read_values(const Call& c, int arg, int dims, int64_t least, int64_t* to) {
  const Span<const int64_t> given = c.ints(arg);
  bool fits = given.size == dims || given.size == 1;
  for (int i = 0; fits && i < dims; ++i) {
    to[3 - dims + i] = given[given.size == 1 ? 0 : i];
    fits = to[3 - dims + i] >= least;
  }
  if (fits) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have 1 or %d values of at least %lld.",
                c.name(arg), dims, static_cast<long long>(least));
}
Windows& start(Call& c, int self, int dims) {
  const Tensor& t = c.tensor(self);
  Windows& w = c.make<Windows>();
  w.planes = 1;
  for (int i = 0; i < 3; ++i) w.in[i] = w.out[i] = w.kernel[i] = w.stride[i] = w.dilation[i] = 1;
  for (int i = 0; i < t.rank - dims; ++i) w.planes *= t.dims[i];
  for (int i = 0; i < dims; ++i) w.in[3 - dims + i] = t.dims[t.rank - dims + i];
  return w;
}

}  // namespace

aclnnStatus read_windows(Call& c, int self, int dims, int kernel, int stride, int padding,
                         int dilation, bool ceil, Shape& pooled) {
  ACL_RETURN_IF_FAILED(expect_planes(c, self, dims));
  const Tensor& t = c.tensor(self);
  Windows& w = start(c, self, dims);
  ACL_RETURN_IF_FAILED(read_values(c, kernel, dims, 1, w.kernel));
  // No stride means that windows lie side by side.
  ACL_RETURN_IF_FAILED(
      read_values(c, c.ints(stride).size == 0 ? kernel : stride, dims, 1, w.stride));
  ACL_RETURN_IF_FAILED(read_values(c, padding, dims, 0, w.pad));
  if (dilation >= 0) ACL_RETURN_IF_FAILED(read_values(c, dilation, dims, 1, w.dilation));
  pooled = shape_of(t);
  for (int i = 3 - dims; i < 3; ++i) {
    if (w.pad[i] * 2 > w.dilation[i] * (w.kernel[i] - 1) + 1) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %lld should be at most half of the kernel %lld.",
                    c.name(padding), static_cast<long long>(w.pad[i]),
                    static_cast<long long>(w.kernel[i]));
    }
    const int64_t span = w.in[i] + 2 * w.pad[i] - w.dilation[i] * (w.kernel[i] - 1) - 1;
    int64_t made = span < 0 ? 0 : (span + (ceil ? w.stride[i] - 1 : 0)) / w.stride[i] + 1;
    // The last window has to start inside the input or its left padding.
    if (ceil && made > 0 && (made - 1) * w.stride[i] >= w.in[i] + w.pad[i]) --made;
    if (made < 1) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "A kernel of %lld does not fit into %s of shape %s.",
                    static_cast<long long>(w.kernel[i]), c.name(self), shape_text(t));
    }
    w.out[i] = made;
    pooled.dims[t.rank - 3 + i] = made;
  }
  return ACLNN_SUCCESS;
}

aclnnStatus read_adaptive(Call& c, int self, int out, int dims) {
  for (int arg : {self, out}) ACL_RETURN_IF_FAILED(expect_planes(c, arg, dims));
  const Tensor &t = c.tensor(self), &to = c.tensor(out);
  bool agree = t.rank == to.rank;
  for (int i = 0; agree && i < t.rank - dims; ++i) agree = t.dims[i] == to.dims[i];
  if (!agree) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "Shapes %s of %s and %s of %s should agree outside of space.", shape_text(t),
                  c.name(self), shape_text(to), c.name(out));
  }
  Windows& w = start(c, self, dims);
  w.adaptive = true;
  for (int i = 0; i < dims; ++i) w.out[3 - dims + i] = to.dims[to.rank - dims + i];
  return ACLNN_SUCCESS;
}

}  // namespace aclsim
