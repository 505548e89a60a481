// Softmax, its logarithm, and their gradients.
#include "params/activation.h"
#include "loops/lanes.h"
#include "loops/promote.h"
#include "loops/reduce.h"
#include "loops/rows.h"

#include <numeric>
#include "loops/max_finite.h"

namespace aclsim {
namespace {

// How torch's kernels (aten/src/ATen/native/cpu/SoftMaxKernel.cpp) walk a row: along the last dim in
// vectors, else one element after the other, with the C library's exp where a vector of rows ends.
enum class Row : uint8_t { Last, Column, Rest };
// Of the `number`th row of `inner` side by side.
template <class C>
Row row_kind(int64_t inner, int64_t number, bool last) {
  if (last) return Row::Last;
  const int64_t lanes = lanes_of<C>(), at = number % inner;
  return at < inner / lanes * lanes ? Row::Column : Row::Rest;
}
template <class C>
ACL_EXACT void exp_vectors(C* out, const C* x, C shift, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = exp_one(x[i] - shift);
}
// out[i] = exp(x[i] - shift).
template <class C>
void exp_row(C* out, const C* x, C shift, int64_t n, Row kind) {
  if (kind != Row::Rest) return exp_vectors(out, x, shift, n);
  for (int64_t i = 0; i < n; ++i) out[i] = std::exp(x[i] - shift);
}
template <class C>
C sum_of(const C* x, int64_t n, Row kind) {
  if (kind == Row::Last) return row_sum(x, n);
  if (n > kLongSum) return static_cast<C>(std::accumulate(x, x + n, 0.0));
  C sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}
template <class C>
ACL_EXACT C in_turn(const C* x, const C* y, int64_t n) {
  if (n > kLongSum) return static_cast<C>(std::inner_product(x, x + n, y, 0.0));
  C sum = 0;
  for (int64_t i = 0; i < n; ++i) sum = fused(x[i], y[i], sum);
  return sum;
}
template <class C>
ACL_VECTOR void scale(C* out, C factor, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] *= factor;
}
template <class C>
ACL_VECTOR void divide(C* out, C by, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] /= by;
}
template <class C>
ACL_VECTOR void subtract_both(C* out, const C* x, C first, C second, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - first) - second;
}

struct SoftmaxRow {
  template <class C>
  static void apply(C* out, const C* x, int64_t n, Row kind) {
    // exp(inf - inf) has to come out NaN, so an infinite maximum is subtracted as it is.
    exp_row(out, x, reduce_row<MaxFinite>(x, n), n, kind);
    const C sum = sum_of(out, n, kind);
    kind == Row::Last ? scale(out, C(1) / sum, n) : divide(out, sum, n);
  }
};
struct LogSoftmaxRow {
  template <class C>
  static void apply(C* out, const C* x, int64_t n, Row kind) {
    const C top = reduce_row<MaxFinite>(x, n);
    exp_row(out, x, top, n, kind);
    C rest = sum_of(out, n, kind);
    log_of(&rest);
    // x - top is exact where it matters; top + log(sum) would round away what log(sum) says.
    subtract_both(out, x, top, rest, n);
  }
  template <class C>
  static ACL_EXACT void log_of(C* x) {
    *x = log_one(*x);
  }
};

aclnnStatus check_softmax(Call& c) {
  using P = params::Softmax;

  int64_t axis = c.integer(P::dim);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, c.tensor(P::self).rank));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::out, P::self));
  if (domain_of(c.tensor(P::self).dtype) == Domain::Integer && !is_float(c.tensor(P::out).dtype)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "out should be floating, but is %s.",
                  dtype_name(c.tensor(P::out).dtype));
  }
  const Tensor& self = c.tensor(P::self);
  c.workspace_size = self.numel() == 0 ? 0 : static_cast<uint64_t>(axis_size(self, axis)) * 4;
  return ACLNN_SUCCESS;
}
// Rows that lie side by side: the sizes of the dims after the axis.
int64_t inner_size(const Tensor& t, int axis) {
  int64_t n = 1;
  for (int i = axis + 1; i < t.rank; ++i) n *= t.dims[i];
  return n;
}
// A block of columns of a matrix: `out` and `x` of rows `down` and `out_down` elements apart, `m`
// columns of which the first `whole` lie in vectors of torch's.
constexpr int kColumns = 64;
template <class C>
struct Block {
  C* out;
  const C* x;
  int64_t out_down, down, n, m, whole;
};
template <class C>
ACL_VECTOR void top_rows(C* top, const Block<C>& b) {
  for (int64_t j = 0; j < b.m; ++j) top[j] = MaxFinite::first<C>();
  for (int64_t i = 0; i < b.n; ++i) {
    const C* x = b.x + i * b.down;
    ACL_IVDEP
    for (int64_t j = 0; j < b.m; ++j) top[j] = MaxFinite::join(top[j], x[j]);
  }
}
// Adds a row of exponentials to the sums of columns.
template <class S, class C>
ACL_VECTOR void add_row(S* sums, const C* x, int64_t m) {
  ACL_IVDEP
  for (int64_t j = 0; j < m; ++j) sums[j] += x[j];
}
template <class C>
ACL_EXACT void exp_columns(C* out, const C* x, const C* top, int64_t m) {
  ACL_IVDEP
  for (int64_t j = 0; j < m; ++j) out[j] = exp_one(x[j] - top[j]);
}
// The exponentials to `rows`, `down` apart, and the sums of the columns; a long one in double.
template <class S, class C>
void exp_rows(C* sums, C* rows, int64_t down, const C* top, const Block<C>& b) {
  S totals[kColumns] = {};
  for (int64_t i = 0; i < b.n; ++i) {
    const C* x = b.x + i * b.down;
    C* row = rows + i * down;
    exp_columns(row, x, top, b.whole);
    for (int64_t j = b.whole; j < b.m; ++j) row[j] = std::exp(x[j] - top[j]);
    add_row(totals, row, b.m);
  }
  for (int64_t j = 0; j < b.m; ++j) sums[j] = static_cast<C>(totals[j]);
}
template <class C>
void exp_block(C* sums, C* rows, int64_t down, const C* top, const Block<C>& b) {
  b.n > kLongSum ? exp_rows<double>(sums, rows, down, top, b) : exp_rows<C>(sums, rows, down, top, b);
}
template <class C>
ACL_VECTOR void divide_rows(const C* sums, const Block<C>& b) {
  for (int64_t i = 0; i < b.n; ++i) {
    C* out = b.out + i * b.out_down;
    ACL_IVDEP
    for (int64_t j = 0; j < b.m; ++j) out[j] /= sums[j];
  }
}
template <class C>
ACL_VECTOR void subtract_rows(const C* top, const C* rest, const Block<C>& b) {
  for (int64_t i = 0; i < b.n; ++i) {
    C* out = b.out + i * b.out_down;
    const C* x = b.x + i * b.down;
    ACL_IVDEP
    for (int64_t j = 0; j < b.m; ++j) out[j] = (x[j] - top[j]) - rest[j];
  }
}
template <class C>
void apply_block(SoftmaxRow, const Block<C>& b) {
  C top[kColumns], sums[kColumns];
  top_rows(top, b);
  exp_block(sums, b.out, b.out_down, top, b);
  divide_rows(sums, b);
}
template <class C>
void apply_block(LogSoftmaxRow, const Block<C>& b) {
  C top[kColumns], sums[kColumns], row[kColumns];
  top_rows(top, b);
  exp_block(sums, row, 0, top, b);
  for (int64_t j = 0; j < b.m; ++j) LogSoftmaxRow::log_of(sums + j);
  subtract_rows(top, sums, b);
}
template <class Fn, class C>
void softmax_columns(const Tensor& self, const Tensor& out, int axis) {
  const int last = self.rank - 1;
  const int64_t lanes = lanes_of<C>(), whole = self.dims[last] / lanes * lanes;
  Columns({&self, &out}, axis, kColumns).run(axis_size(self, axis), [&](const int64_t* at, int64_t m) {
    const int64_t left = std::max<int64_t>(whole - at[2], 0);
    apply_block(Fn{}, Block<C>{static_cast<C*>(out.data) + at[1], static_cast<const C*>(self.data) + at[0],
                               out.strides[axis], self.strides[axis], axis_size(self, axis), m,
                               std::min(left, m)});
  });
}
// Rows across what lies densely are computed side by side; where both are one tensor, as one view.
bool side_by_side(const Tensor& self, const Tensor& out, int axis) {
  const int last = self.rank - 1;
  const bool one = self.offset == out.offset && self.strides[axis] == out.strides[axis];
  return axis == last - 1 && self.dtype == out.dtype && self.strides[last] == 1 &&
         out.strides[last] == 1 && self.dims[last] >= 16 && (self.data != out.data || one) &&
         (self.dtype == ACL_FLOAT || self.dtype == ACL_DOUBLE);
}
template <class Fn>
void run_softmax(Call& c) {
  using P = params::Softmax;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  if (self.numel() == 0) return;
  const int axis =
      static_cast<int>(c.integer(P::dim) < 0 ? c.integer(P::dim) + self.rank : c.integer(P::dim));
  const int at = self.rank == 0 ? 0 : axis;
  if (side_by_side(self, out, at)) {
    with_float(self.dtype, [&](auto tag) {
      softmax_columns<Fn, typename decltype(tag)::type>(self, out, at);
    });
    return;
  }
  const int64_t n = axis_size(self, at);
  const Rows rows({&self, &out}, at);
  const int64_t inner = inner_size(self, at);
  with_float(wider(self.dtype, out.dtype), [&](auto tag) {
    using C = typename decltype(tag)::type;
    rows.run(n, [&](const int64_t* offsets, int64_t number) {
      Buffer<C> in_space(n), out_space(n);
      const C* x = row_in<C>(in_space, self, offsets[0], at);
      C* y = row_out<C>(out_space, out, offsets[1], at);
      if (y == x) y = out_space;  // in place: the row is read twice
      Fn::apply(y, x, n, row_kind<C>(inner, number, at >= self.rank - 1));
      row_done<C>(y, out_space, out, offsets[1], at);
    });
  });
}

struct SoftmaxGrad {  // y * (g - sum(g y))
  template <class C>
  static void apply(C* out, const C* g, const C* y, int64_t n, Row kind) {
    combine(out, g, y, kind == Row::Last ? row_product(g, y, n) : in_turn(g, y, n), n);
  }
  template <class C>
  static ACL_VECTOR void combine(C* out, const C* g, const C* y, C sum, int64_t n) {
    ACL_IVDEP
    for (int64_t i = 0; i < n; ++i) out[i] = y[i] * (g[i] - sum);
  }
};
struct LogSoftmaxGrad {  // g - exp(y) sum(g)
  template <class C>
  static void apply(C* out, const C* g, const C* y, int64_t n, Row kind) {
    const C sum = sum_of(g, n, kind);
    if (kind != Row::Rest) return combine(out, g, y, sum, n);
    for (int64_t i = 0; i < n; ++i) out[i] = fused(-std::exp(y[i]), sum, g[i]);
  }
  template <class C>
  static ACL_EXACT void combine(C* out, const C* g, const C* y, C sum, int64_t n) {
    ACL_IVDEP
    for (int64_t i = 0; i < n; ++i) out[i] = fused(-exp_one(y[i]), sum, g[i]);
  }
};
aclnnStatus check_softmax_grad(Call& c) {
  using P = params::SoftmaxBackward;

  int64_t axis = c.integer(P::dim);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, c.tensor(P::gradOutput).rank));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::output, P::gradOutput));
  return expect_same_shape(c, P::out, P::gradOutput);
}
template <class Fn>
void run_softmax_grad(Call& c) {
  using P = params::SoftmaxBackward;

  const Tensor &g = c.tensor(P::gradOutput), &y = c.tensor(P::output), &out = c.tensor(P::out);
  if (g.numel() == 0) return;
  const int axis = g.rank == 0 ? 0 : static_cast<int>((c.integer(P::dim) + g.rank) % g.rank);
  const int64_t n = axis_size(g, axis);
  const Rows rows({&g, &y, &out}, axis);
  const int64_t inner = inner_size(g, axis);
  with_float(wider(g.dtype, out.dtype), [&](auto tag) {
    using C = typename decltype(tag)::type;
    rows.run(n, [&](const int64_t* offsets, int64_t number) {
      Buffer<C> g_space(n), y_space(n), out_space(n);
      C* to = row_out<C>(out_space, out, offsets[2], axis);
      Fn::apply(to, row_in<C>(g_space, g, offsets[0], axis),
                row_in<C>(y_space, y, offsets[1], axis), n,
                row_kind<C>(inner, number, axis >= g.rank - 1));
      row_done<C>(to, out_space, out, offsets[2], axis);
    });
  });
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSoftmax, check_softmax, run_softmax<SoftmaxRow>)
ACLNN_OP(aclnnLogSoftmax, check_softmax, run_softmax<LogSoftmaxRow>)
ACLNN_OP(aclnnSoftmaxBackward, check_softmax_grad, run_softmax_grad<SoftmaxGrad>)
ACLNN_OP(aclnnLogSoftmaxBackward, check_softmax_grad, run_softmax_grad<LogSoftmaxGrad>)
