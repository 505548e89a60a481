// Patches of images as columns (torch's unfold), and their sums back into images (fold), which is
// the other's gradient.
#include "params/convolution.h"
#include "loops/conv.h"
#include "loops/given.h"
#include "loops/stage.h"

namespace aclsim {
namespace {

aclnnStatus read_pair(const Call& c, int arg, int64_t least, int64_t* to) {
  const Span<const int64_t> given = c.ints(arg);
  if (given.size == 2 && given[0] >= least && given[1] >= least) {
    to[1] = given[0];
    to[2] = given[1];
    return ACLNN_SUCCESS;
  }
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have 2 values of at least %lld.", c.name(arg),
                static_cast<long long>(least));
}
// Images at `image`, [N, C, H, W] or [C, H, W]; attributes kernel, dilation, padding, stride from
// `first`; `columns` is the shape on the other side.
aclnnStatus plan_of(Call& c, int image, int first, Shape& columns) {
  const Tensor& t = c.tensor(image);
  if (t.rank != 3 && t.rank != 4) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have 3 or 4 dims, but its shape is %s.",
                  c.name(image), shape_text(t));
  }
  if (!is_float(t.dtype) || t.dtype == ACL_DOUBLE) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s not implemented for %s by the simulator.",
                  c.name(image), dtype_name(t.dtype));
  }
  ConvShape& s = c.make<ConvShape>();
  s = {t.rank == 4 ? t.dims[0] : 1,
       1,
       t.dims[t.rank - 3],
       1,
       {1, t.dims[t.rank - 2], t.dims[t.rank - 1]},
       {1, 1, 1},
       {1, 1, 1},
       {1, 1, 1},
       {0, 0, 0},
       {1, 1, 1}};
  ACL_RETURN_IF_FAILED(read_pair(c, first, 1, s.kernel));
  ACL_RETURN_IF_FAILED(read_pair(c, first + 1, 1, s.dilation));
  ACL_RETURN_IF_FAILED(read_pair(c, first + 2, 0, s.pad));
  ACL_RETURN_IF_FAILED(read_pair(c, first + 3, 1, s.stride));
  for (int i = 1; i < 3; ++i) {
    const int64_t room = s.in[i] + 2 * s.pad[i] - s.dilation[i] * (s.kernel[i] - 1) - 1;
    if (room < 0) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "The kernel does not fit into %s of shape %s.",
                    c.name(image), shape_text(t));
    }
    s.out[i] = room / s.stride[i] + 1;
  }
  columns.rank = t.rank - 1;
  columns.dims[0] = s.n;
  columns.dims[columns.rank - 2] = s.depth();
  columns.dims[columns.rank - 1] = s.out_space();
  c.workspace_size = stage_bytes(c, ACL_FLOAT);
  return ACLNN_SUCCESS;
}

aclnnStatus check_im2col(Call& c) {
  using P = params::Im2col;

  Shape columns;
  ACL_RETURN_IF_FAILED(plan_of(c, P::self, P::kernelSize, columns));
  return expect_shape(c, P::out, columns);
}
void run_im2col(Call& c) {
  using P = params::Im2col;

  const ConvShape& s = c.get<ConvShape>();
  Stage<float> stage(c);
  const float* x = stage.in(c.tensor(P::self));
  float* out = stage.out(c.tensor(P::out));
  for (int64_t i = 0; i < s.n; ++i) {
    conv_unfold(s, out + i * s.depth() * s.out_space(), x + i * s.in_channels * s.in_space());
  }
  stage.done();
}
aclnnStatus check_col2im(Call& c) {
  using P = params::Im2colBackward;

  Shape columns;
  ACL_RETURN_IF_FAILED(plan_of(c, P::out, P::kernelSize, columns));
  const ConvShape& s = c.get<ConvShape>();
  const Span<const int64_t> size = c.ints(P::inputSize);
  if (size.size != 2 || size[0] != s.in[1] || size[1] != s.in[2]) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "inputSize should be the last 2 dims of out, %s.",
                  shape_text(c.tensor(P::out)));
  }
  return expect_shape(c, P::gradOutput, columns);
}
void run_col2im(Call& c) {
  using P = params::Im2colBackward;

  const ConvShape& s = c.get<ConvShape>();
  Stage<float> stage(c);
  const float* columns = stage.in(c.tensor(P::gradOutput));
  float* out = stage.out(c.tensor(P::out));
  for (int64_t i = 0; i < s.n; ++i) {
    conv_fold(s, out + i * s.in_channels * s.in_space(), columns + i * s.depth() * s.out_space());
  }
  stage.done();
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnIm2col, check_im2col, run_im2col)
ACLNN_OP(aclnnIm2colBackward, check_col2im, run_col2im)
