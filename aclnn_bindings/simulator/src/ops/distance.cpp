// Distances between rows, the gradient of sliding windows, and shuffled channels.
#include "promote.h"
#include "rows.h"

#include <cmath>

namespace aclsim {
namespace {

// (x1, x2, p, compute_mode, out): p-norms between rows, batched over leading dims.
aclnnStatus check_cdist(Call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  bool fits = a.rank >= 2 && b.rank == a.rank && a.dims[a.rank - 1] == b.dims[b.rank - 1];
  for (int i = 0; fits && i < a.rank - 2; ++i) fits = a.dims[i] == b.dims[i];
  if (!fits || c.number(2) < 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s and %s or p %g don't fit.", shape_text(a),
                  shape_text(b), c.number(2));
  }
  Shape shape = shape_of(a);
  shape.dims[shape.rank - 1] = b.dims[b.rank - 2];
  return expect_shape(c, 4, shape);
}
double distance(const double* a, const double* b, int64_t n, double p) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = std::fabs(a[i] - b[i]);
    if (std::isinf(p)) {
      sum = std::max(sum, d);
    } else {
      sum += p == 0 ? d != 0 : (p == 1 ? d : (p == 2 ? d * d : std::pow(d, p)));
    }
  }
  if (std::isinf(p) || p == 0 || p == 1) return sum;
  return p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}
aclError run_cdist(Call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1), &out = c.tensor(4);
  if (out.numel() == 0) return ACL_SUCCESS;
  const int last = a.rank - 1;
  const int64_t width = a.dims[last], columns = b.dims[last - 1];
  parallel_for(
      out.numel() / columns, std::max<int64_t>(1, 8192 / (columns * std::max<int64_t>(1, width))),
      [&](int64_t begin, int64_t end) {
        Buffer<double> x(width), y(width), row(columns);
        Walker at(last, out.dims, begin);
        for (int64_t r = begin; r < end; ++r, at.next()) {
          load(x.get(), a.data, a.dtype, a.offset + at.offset(a.strides), a.strides[last], width);
          Walker other = at;
          for (int64_t k = 0; k < columns; ++k) {
            other.index[last - 1] = k;
            load(y.get(), b.data, b.dtype, b.offset + other.offset(b.strides), b.strides[last],
                 width);
            row[k] = distance(x, y, width, c.number(2));
          }
          store(row.get(), out.data, out.dtype, out.offset + at.offset(out.strides),
                out.strides[last], columns);
        }
      });
  return ACL_SUCCESS;
}

// (gradOut, inputSizes, dim, size, step, gradIn): windows along dim stand in a last dim of gradOut.
aclnnStatus check_unfold_grad(Call& c) {
  const Tensor& out = c.tensor(5);
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(2);
  ACL_RETURN_IF_FAILED(expect_axis(c, 2, axis, out.rank));
  Shape sizes;
  sizes.rank = static_cast<int>(std::min<int64_t>(c.ints(1).size, kMaxRank));
  std::copy_n(c.ints(1).data, sizes.rank, sizes.dims);
  ACL_RETURN_IF_FAILED(expect_shape(c, 5, sizes));
  const int64_t size = c.integer(3), step = c.integer(4);
  if (size < 1 || step < 1 || size > axis_size(out, static_cast<int>(axis)) ||
      out.rank >= kMaxRank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "size %lld and step %lld don't fit %s.",
                  static_cast<long long>(size), static_cast<long long>(step), shape_text(out));
  }
  Shape windows = sizes;
  if (out.rank > 0) windows.dims[axis] = (sizes.dims[axis] - size) / step + 1;
  windows.dims[windows.rank++] = size;
  c.workspace_size = out.numel() * 8;
  return expect_shape(c, 0, windows);
}
aclError run_unfold_grad(Call& c) {
  const Tensor &grad = c.tensor(0), &out = c.tensor(5);
  if (out.numel() == 0) return ACL_SUCCESS;
  const int axis = static_cast<int>(c.get<int64_t>());
  double* sums = static_cast<double*>(c.workspace);
  const Tensor sum = dense(sums, ACL_DOUBLE, out.dims, out.rank);
  std::fill_n(sums, out.numel(), 0.0);
  Walker at(grad.rank, grad.dims);
  for (int64_t i = grad.numel(); i > 0; --i, at.next()) {
    int64_t place = 0;
    for (int d = 0; d < out.rank; ++d) {
      const int64_t k =
          d == axis ? at.index[d] * c.integer(4) + at.index[grad.rank - 1] : at.index[d];
      place += k * sum.strides[d];
    }
    sums[place] += load_one<double>(grad.data, grad.dtype, grad.offset + at.offset(grad.strides));
  }
  copy_tensor(out, sum);
  return ACL_SUCCESS;
}

// (self, groups, out): [N, groups, C / groups, ...] with the two middle dims swapped.
aclnnStatus check_shuffle(Call& c) {
  const Tensor& self = c.tensor(0);
  const int64_t groups = c.integer(1);
  if (self.rank < 3 || self.rank >= kMaxRank || groups < 1 || self.dims[1] % groups) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "groups %lld doesn't divide the channels of %s.",
                  static_cast<long long>(groups), shape_text(self));
  }
  return expect_same_shape(c, 2, 0);
}
// Channels split into [outer, inner], and the two swapped where asked.
Tensor split_channels(const Tensor& t, int64_t outer, bool swap) {
  Tensor v = unsqueezed(t, 1);
  v.dims[1] = outer;
  v.dims[2] = t.dims[1] / outer;
  v.strides[1] = t.strides[1] * v.dims[2];
  if (swap) {
    std::swap(v.dims[1], v.dims[2]);
    std::swap(v.strides[1], v.strides[2]);
  }
  return v;
}
aclError run_shuffle(Call& c) {
  const Tensor &self = c.tensor(0), &out = c.tensor(2);
  if (self.numel() == 0) return ACL_SUCCESS;
  const int64_t groups = c.integer(1);
  copy_tensor(split_channels(out, self.dims[1] / groups, false),
              split_channels(self, groups, true));
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnCdist, check_cdist, run_cdist)
ACLNN_OP(aclnnUnfoldGrad, check_unfold_grad, run_unfold_grad)
ACLNN_OP(aclnnChannelShuffle, check_shuffle, run_shuffle)
