// Rows along one axis with a value and a place each: what sorting and extrema share.
#pragma once

#include "loops/promote.h"
#include "loops/rows.h"

#include <algorithm>
#include <cmath>

namespace aclsim {

inline aclnnStatus read_axis(Call& c, At<ArgKind::Int> arg, TensorAt self) {
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(arg);
  return expect_axis(c, arg, axis, c.tensor(self).rank);
}
inline int axis_of(const Call& c) { return static_cast<int>(c.get<int64_t>()); }

// Rows of `self` with values and indices rows; either output may be missing. f(x, values,
// indices): one row, the outputs dense with as many elements as their axis has.
template <class F>
void sort_rows(const Tensor& self, const Tensor* values, const Tensor* indices, int axis, F f) {
  const Tensor& v = values ? *values : *indices;
  const Tensor& i = indices ? *indices : *values;
  if (v.numel() == 0) return;
  const int64_t n = axis_size(self, axis), m = axis_size(v, axis);
  const Rows rows({&self, &v, &i}, axis);
  with_real(self.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    rows.run(n * 8, [&](const int64_t* offsets) {
      Buffer<C> space(n), best(std::max(n, m));
      Buffer<int64_t> at(std::max(n, m));
      f(row_in<C>(space, self, offsets[0], axis), n, best.get(), at.get());
      if (values) store(best.get(), v.data, v.dtype, offsets[1], axis_stride(v, axis), m);
      if (indices) store(at.get(), i.data, i.dtype, offsets[2], axis_stride(i, axis), m);
    });
  });
}

// The result of a reduction over one axis, kept or not, as a tensor with that axis.
inline Tensor with_axis(const Tensor& t, int axis, const Tensor& self) {
  return t.rank < self.rank ? unsqueezed(t, axis) : t;
}
inline aclnnStatus expect_one(const Call& c, TensorAt out, bool keep, TensorAt input) {
  Shape shape;
  const Tensor& self = c.tensor(input);
  for (int i = 0; i < self.rank; ++i) {
    if (i != axis_of(c) || keep) shape.dims[shape.rank++] = i == axis_of(c) ? 1 : self.dims[i];
  }
  return expect_shape(c, out, shape);
}
// A value and its place for every row along `dim`.
inline aclnnStatus check_selection(Call& c, TensorAt self, At<ArgKind::Int> dim,
                                   At<ArgKind::Bool> keep, TensorAt values, TensorAt indices) {
  ACL_RETURN_IF_FAILED(read_axis(c, dim, self));
  if (axis_size(c.tensor(self), axis_of(c)) == 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self %s has no elements along dim.",
                  shape_text(c.tensor(self)));
  }
  ACL_RETURN_IF_FAILED(expect_one(c, values, c.flag(keep), self));
  return expect_one(c, indices, c.flag(keep), self);
}

}  // namespace aclsim
