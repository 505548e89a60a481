// Distances between rows, the gradient of sliding windows, and shuffled channels.
#include "loops/numbers.h"

#include <cmath>

namespace aclsim {
namespace {

// (x1, x2, p, compute_mode, out): p-norms between rows, batched over leading dims.
aclnnStatus check_cdist(Call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  bool fits = a.rank >= 2 && b.rank >= 2 && a.dims[a.rank - 1] == b.dims[b.rank - 1];
  Shape shape = shape_of(a);
  if (fits) {
    Tensor other = b;  // leading dims broadcast
    shape.dims[a.rank - 1] = shape.dims[a.rank - 2] = 1;
    fits = broadcast(shape, other);
    shape.dims[shape.rank - 2] = a.dims[a.rank - 2];
    shape.dims[shape.rank - 1] = b.dims[b.rank - 2];
  }
  if (!fits || !(c.number(2) >= 0)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s and %s or p %g don't fit.", shape_text(a),
                  shape_text(b), c.number(2));
  }
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
// `t` with leading dims of stride 0 where `out` has more than one there.
Tensor leading_like(const Tensor& t, const Tensor& out) {
  Tensor v = t;
  const int shift = out.rank - t.rank;
  v.rank = out.rank;
  for (int i = 0; i < out.rank; ++i) {
    const int from = i - shift;
    const bool repeated = from < 0 || (i < out.rank - 2 && t.dims[from] == 1);
    v.dims[i] = i < out.rank - 2 ? out.dims[i] : t.dims[from];
    v.strides[i] = repeated ? 0 : t.strides[from];
  }
  return v;
}
aclError run_cdist(Call& c) {
  const Tensor& out = c.tensor(4);
  if (out.numel() == 0) return ACL_SUCCESS;
  const Tensor a = leading_like(c.tensor(0), out), b = leading_like(c.tensor(1), out);
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

// The derivative of the p-norm of d towards d, where the norm is `norm`.
double norm_slope(double d, double norm, double p) {
  if (d == 0 || norm == 0 || p == 0) return 0;
  const double sign = d > 0 ? 1 : -1, size = std::fabs(d);
  if (p == 1) return sign;
  if (std::isinf(p)) return size == norm ? sign : 0;
  return p == 2 ? d / norm : sign * std::pow(size / norm, p - 1);
}
// (grad, x1, x2, cdist, p, out): the gradient of Cdist towards x1.
aclnnStatus check_cdist_grad(Call& c) {
  const Tensor &a = c.tensor(1), &b = c.tensor(2);
  bool fits = a.rank >= 2 && b.rank == a.rank && a.dims[a.rank - 1] == b.dims[b.rank - 1];
  for (int i = 0; fits && i < a.rank - 2; ++i) fits = a.dims[i] == b.dims[i];
  if (!fits || !(c.number(4) >= 0)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s and %s or p %g don't fit.", shape_text(a),
                  shape_text(b), c.number(4));
  }
  Shape shape = shape_of(a);
  shape.dims[shape.rank - 1] = b.dims[b.rank - 2];
  ACL_RETURN_IF_FAILED(expect_shape(c, 0, shape));
  ACL_RETURN_IF_FAILED(expect_shape(c, 3, shape));
  return expect_same_shape(c, 5, 1);
}
aclError run_cdist_grad(Call& c) {
  const Tensor &a = c.tensor(1), &b = c.tensor(2);
  const int64_t width = a.dims[a.rank - 1], rows = a.dims[a.rank - 2], cols = b.dims[b.rank - 2];
  const Numbers g = numbers(c.tensor(0)), x = numbers(a), y = numbers(b), n = numbers(c.tensor(3));
  Numbers to(x.size());
  for (int64_t i = 0; i < static_cast<int64_t>(g.size()); ++i) {
    const int64_t row = i / cols, other = row / rows * cols + i % cols;
    double norm = n[i];
    if (std::isinf(c.number(4))) {  // as exact as the differences, to tell which of them it is
      norm = distance(x.data() + row * width, y.data() + other * width, width, c.number(4));
    }
    for (int64_t k = 0; k < width; ++k) {
      const double d = x[row * width + k] - y[other * width + k];
      to[row * width + k] += g[i] * norm_slope(d, norm, c.number(4));
    }
  }
  put(c.tensor(5), to);
  return ACL_SUCCESS;
}

// (self [N, M], p, out): distances of all pairs of rows.
aclnnStatus check_pdist(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 2, 2));
  const double p = c.args[1].kind == ArgKind::Scalar ? c.scalar(1).real() : c.number(1);
  if (!(p >= 0)) return c.fail(ACLNN_ERR_PARAM_INVALID, "p should be 0 or more, but is %g.", p);
  const int64_t n = c.tensor(0).dims[0];
  return expect_dims(c, 2, {n * (n - 1) / 2});
}
aclError run_pdist(Call& c) {
  const double p = c.args[1].kind == ArgKind::Scalar ? c.scalar(1).real() : c.number(1);
  const int64_t n = c.tensor(0).dims[0], width = c.tensor(0).dims[1];
  const Numbers x = numbers(c.tensor(0));
  Numbers out;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = i + 1; k < n; ++k) {
      out.push_back(distance(x.data() + i * width, x.data() + k * width, width, p));
    }
  }
  put(c.tensor(2), out);
  return ACL_SUCCESS;
}

// (xyz1 [B, N, D], xyz2 [B, M, D], idx1 [B, N], idx2 [B, M], gradDist1, gradDist2, gradXyz1,
// gradXyz2): squared distances to the nearest points.
aclnnStatus check_chamfer(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 3, 3));
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  ACL_RETURN_IF_FAILED(expect_dims(c, 1, {a.dims[0], -1, a.dims[2]}));
  for (int i : {2, 4}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {a.dims[0], a.dims[1]}));
  for (int i : {3, 5}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {b.dims[0], b.dims[1]}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 6, 0));
  return expect_same_shape(c, 7, 1);
}
aclError run_chamfer(Call& c) {
  const Numbers p[2] = {numbers(c.tensor(0)), numbers(c.tensor(1))};
  const Integers nearest[2] = {integers(c.tensor(2)), integers(c.tensor(3))};
  const Numbers grad[2] = {numbers(c.tensor(4)), numbers(c.tensor(5))};
  Numbers to[2] = {Numbers(p[0].size()), Numbers(p[1].size())};
  const int64_t n[2] = {c.tensor(0).dims[1], c.tensor(1).dims[1]}, width = c.tensor(0).dims[2];
  IndexFault fault;
  for (int side : {0, 1}) {
    for (int64_t i = 0; i < static_cast<int64_t>(nearest[side].size()); ++i) {
      const int64_t k = fault.resolve(nearest[side][i], n[!side]);
      if (k < 0) return fault.report(c, 2 + side);
      const int64_t from = i * width, other = (i / n[side] * n[!side] + k) * width;
      for (int64_t d = 0; d < width; ++d) {
        const double slope = 2 * grad[side][i] * (p[side][from + d] - p[!side][other + d]);
        to[side][from + d] += slope;
        to[!side][other + d] -= slope;
      }
    }
  }
  put(c.tensor(6), to[0]);
  put(c.tensor(7), to[1]);
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
ACLNN_OP(aclnnCdistBackward, check_cdist_grad, run_cdist_grad)
ACLNN_OP(aclnnPdist, check_pdist, run_pdist)
ACLNN_OP(aclnnPdistForward, check_pdist, run_pdist)
ACLNN_OP(aclnnChamferDistanceBackward, check_chamfer, run_chamfer)
ACLNN_OP(aclnnUnfoldGrad, check_unfold_grad, run_unfold_grad)
ACLNN_OP(aclnnChannelShuffle, check_shuffle, run_shuffle)
