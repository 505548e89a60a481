// Cumulative sums, products and extrema along one axis.
#include "params/reduction.h"
#include "loops/promote.h"
#include "loops/rows.h"

namespace aclsim {
namespace {

struct Plan {
  int axis;
  aclDataType domain;
};

// (self, dim, dtype, out): `dim` is a number or a scalar, `out` already has the result dtype.
template <int Out>
aclnnStatus check_scan(Call& c) {
  using P = params::Cummax;

  Plan& p = c.make<Plan>();
  int64_t axis = c.args[P::dim].kind == ArgKind::Scalar ? c.scalar(params::Cumprod::dim).integer()
                                                        : c.integer(P::dim);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, c.tensor(P::self).rank));
  p.axis = static_cast<int>(axis);
  p.domain = c.tensor(Out).dtype;
  return expect_same_shape(c, Out, P::self);
}

struct RunningSum {
  template <class T>
  static T join(T a, T b) {
    return a + b;
  }
};
struct RunningProduct {
  template <class T>
  static T join(T a, T b) {
    return a * b;
  }
};

// `exclusive` shifts by one element, `reverse` starts at the end.
template <class Fn, class C>
void scan_row(C* out, const C* x, int64_t n, bool exclusive, bool reverse) {
  using Wide = std::conditional_t<std::is_same<C, float>::value, double, C>;
  Wide total = exclusive ? Wide(0) : Wide(x[reverse ? n - 1 : 0]);
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = reverse ? n - 1 - k : k;
    const C given = x[i];
    if (k > 0 && !exclusive) total = Fn::join(total, Wide(given));
    out[i] = static_cast<C>(total);
    if (exclusive) total = Fn::join(total, Wide(given));
  }
}

template <class Fn, class C, class Wide>
ACL_VECTOR void scan_line(C* out, Wide* totals, const C* x, int64_t n, bool first) {
  for (int64_t j = 0; j < n; ++j) {
    totals[j] = first ? Wide(x[j]) : Fn::join(totals[j], Wide(x[j]));
    out[j] = static_cast<C>(totals[j]);
  }
}
// Whether elements along the last dim are neighbours of a type, and rows are not.
template <class C>
bool in_lines(const Tensor& t, int axis) {
  return Columns::better(t, axis) && t.dtype == dtype_of<C>() && t.strides[t.rank - 1] == 1;
}
// Many rows at once, which a kernel reads along the last dim; the same operations.
template <class Fn, class C>
void scan_lines(const Tensor& out, const Tensor& self, int axis) {
  using Wide = std::conditional_t<std::is_same<C, float>::value, double, C>;
  const int64_t n = axis_size(self, axis);
  Columns({&self, &out}, axis).run(n, [&](const int64_t* offsets, int64_t columns) {
    Buffer<Wide> totals(columns);
    const C* x = static_cast<const C*>(self.data) + offsets[0];
    C* to = static_cast<C*>(out.data) + offsets[1];
    for (int64_t i = 0; i < n; ++i) {
      scan_line<Fn>(to + i * out.strides[axis], totals.get(), x + i * self.strides[axis], columns,
                    i == 0);
    }
  });
}

template <class Fn>
void scan(const Tensor& out, const Tensor& self, const Plan& p, bool exclusive, bool reverse) {
  if (self.numel() == 0) return;
  const int64_t n = axis_size(self, p.axis);
  const Rows rows({&self, &out}, p.axis);
  const auto go = [&](auto tag) {
    using C = typename decltype(tag)::type;
    if (!exclusive && !reverse && in_lines<C>(self, p.axis) && in_lines<C>(out, p.axis)) {
      return scan_lines<Fn, C>(out, self, p.axis);
    }
    rows.run(n, [&](const int64_t* offsets) {
      Buffer<C> in_space(n), out_space(n);
      C* to = row_out<C>(out_space, out, offsets[1], p.axis);
      scan_row<Fn>(to, row_in<C>(in_space, self, offsets[0], p.axis), n, exclusive, reverse);
      row_done<C>(to, out_space, out, offsets[1], p.axis);
    });
  };
  if (domain_of(p.domain) == Domain::Complex) {
    go(Tag<c128>{});
  } else {
    with_real(p.domain, go);
  }
}

template <class Fn, int Out>
void run_scan(Call& c) {
  using P = params::Cumprod;

  scan<Fn>(c.tensor(Out), c.tensor(P::input), c.get<Plan>(), false, false);
}
void run_cumsum_v2(Call& c) {
  using P = params::CumsumV2;

  scan<RunningSum>(c.tensor(P::out), c.tensor(P::self), c.get<Plan>(), c.flag(P::exclusive),
                   c.flag(P::reverse));
}

// (self, dim, valuesOut, indicesOut): the latest index among equals, NaN from its place on.
aclnnStatus check_extrema(Call& c) {
  using P = params::Cummax;

  ACL_RETURN_IF_FAILED(check_scan<P::valuesOut>(c));
  static_cast<Plan*>(c.state)->domain = c.tensor(P::self).dtype;
  return expect_same_shape(c, P::indicesOut, P::self);
}
// Whether an element takes the place of the best before it.
template <bool Max, class C>
ACL_INLINE bool wins(C x, C best) {
  return x != x || (best == best && (Max ? x >= best : x <= best));
}
template <bool Max, class C>
ACL_VECTOR void extrema_line(C* out, int64_t* at, C* best, int64_t* top, const C* x, int64_t n,
                             int64_t i) {
  for (int64_t j = 0; j < n; ++j) {
    const bool won = i == 0 || wins<Max>(x[j], best[j]);
    best[j] = out[j] = won ? x[j] : best[j];
    top[j] = at[j] = won ? i : top[j];
  }
}
template <bool Max, class C>
void extrema_lines(const Tensor& self, const Tensor& values, const Tensor& indices, int axis) {
  const int64_t n = axis_size(self, axis);
  const Columns blocks({&self, &values, &indices}, axis);
  blocks.run(n, [&](const int64_t* offsets, int64_t columns) {
    Buffer<C> best(columns);
    Buffer<int64_t> top(columns);
    for (int64_t i = 0; i < n; ++i) {
      extrema_line<Max>(static_cast<C*>(values.data) + offsets[1] + i * values.strides[axis],
                        static_cast<int64_t*>(indices.data) + offsets[2] + i * indices.strides[axis],
                        best.get(), top.get(),
                        static_cast<const C*>(self.data) + offsets[0] + i * self.strides[axis],
                        columns, i);
    }
  });
}
template <bool Max>
void run_extrema(Call& c) {
  using P = params::Cummax;

  const Tensor &self = c.tensor(P::self), &values = c.tensor(P::valuesOut),
               &indices = c.tensor(P::indicesOut);
  if (self.numel() == 0) return;
  const Plan& p = c.get<Plan>();
  const int64_t n = axis_size(self, p.axis);
  const Rows rows({&self, &values, &indices}, p.axis);
  with_real(p.domain, [&](auto tag) {
    using C = typename decltype(tag)::type;
    if (in_lines<C>(self, p.axis) && in_lines<C>(values, p.axis) &&
        in_lines<int64_t>(indices, p.axis)) {
      return extrema_lines<Max, C>(self, values, indices, p.axis);
    }
    rows.run(n, [&](const int64_t* offsets) {
      Buffer<C> space(n), best(n);
      Buffer<int64_t> at(n);
      const C* x = row_in<C>(space, self, offsets[0], p.axis);
      int64_t top = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (wins<Max>(x[i], x[top])) top = i;
        best[i] = x[top];
        at[i] = top;
      }
      store(best.get(), values.data, values.dtype, offsets[1], axis_stride(values, p.axis), n);
      store(at.get(), indices.data, indices.dtype, offsets[2], axis_stride(indices, p.axis), n);
    });
  });
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnCumsum, check_scan<params::Cumsum::out>, (run_scan<RunningSum, params::Cumsum::out>))
ACLNN_OP(aclnnCumsumV2, check_scan<params::CumsumV2::out>, run_cumsum_v2)
ACLNN_OP(aclnnCumprod, check_scan<params::Cumprod::out>,
         (run_scan<RunningProduct, params::Cumprod::out>))
ACLNN_OP(aclnnInplaceCumprod, check_scan<params::InplaceCumprod::input>,
         (run_scan<RunningProduct, params::InplaceCumprod::input>))
ACLNN_OP(aclnnCummax, check_extrema, run_extrema<true>)
ACLNN_OP(aclnnCummin, check_extrema, run_extrema<false>)
