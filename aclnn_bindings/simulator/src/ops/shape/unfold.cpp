// The gradient of sliding windows along one dim.
#include "params/shape.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (gradOut, inputSizes, dim, size, step, gradIn): windows along dim stand in a last dim of gradOut.
aclnnStatus check_unfold_grad(Call& c) {
  using P = params::UnfoldGrad;

  const Tensor& out = c.tensor(P::gradIn);
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(P::dim);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, out.rank));
  Shape sizes;
  sizes.rank = static_cast<int>(std::min<int64_t>(c.ints(P::inputSizes).size, kMaxRank));
  std::copy_n(c.ints(P::inputSizes).data, sizes.rank, sizes.dims);
  ACL_RETURN_IF_FAILED(expect_shape(c, P::gradIn, sizes));
  const int64_t size = c.integer(P::size), step = c.integer(P::step);
  if (size < 1 || step < 1 || size > axis_size(out, static_cast<int>(axis)) ||
      out.rank >= kMaxRank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "size %lld and step %lld don't fit %s.",
                  static_cast<long long>(size), static_cast<long long>(step), shape_text(out));
  }
  Shape windows = sizes;
  if (out.rank > 0) windows.dims[axis] = (sizes.dims[axis] - size) / step + 1;
  windows.dims[windows.rank++] = size;
  c.workspace_size = out.numel() * 8;
  return expect_shape(c, P::gradOut, windows);
}
void run_unfold_grad(Call& c) {
  using P = params::UnfoldGrad;

  const Tensor &grad = c.tensor(P::gradOut), &out = c.tensor(P::gradIn);
  if (out.numel() == 0) return;
  const int axis = static_cast<int>(c.get<int64_t>());
  double* sums = static_cast<double*>(c.workspace);
  const Tensor sum = dense(sums, ACL_DOUBLE, out.dims, out.rank);
  std::fill_n(sums, out.numel(), 0.0);
  Walker at(grad.rank, grad.dims);
  for (int64_t i = grad.numel(); i > 0; --i, at.next()) {
    int64_t place = 0;
    for (int d = 0; d < out.rank; ++d) {
      const int64_t k =
          d == axis ? at.index[d] * c.integer(P::step) + at.index[grad.rank - 1] : at.index[d];
      place += k * sum.strides[d];
    }
    sums[place] += load_one<double>(grad.data, grad.dtype, grad.offset + at.offset(grad.strides));
  }
  copy_tensor(out, sum);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnUnfoldGrad, check_unfold_grad, run_unfold_grad)
