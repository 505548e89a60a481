// Reading and writing along one axis at places that an index tensor names: gather and scatter.
#include "params/indexing.h"
#include "loops/indices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

ACL_VECTOR bool all_below(const int64_t* at, int64_t n, int64_t size) {
  int64_t outside = 0;
  for (int64_t i = 0; i < n; ++i) outside |= at[i] | (size - 1 - at[i]);  // negative in either
  return outside >= 0;
}
// f(i, at[i]) for the indices in range.
template <class F>
void each_index(IndexFault& fault, const int64_t* at, int64_t n, int64_t size, F f) {
  if (all_below(at, n, size)) {
    for (int64_t i = 0; i < n; ++i) f(i, at[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = fault.resolve(at[i], size);
    if (k >= 0) f(i, k);
  }
}

int axis_of(const Call& c) { return static_cast<int>(c.get<int64_t>()); }
aclnnStatus read_axis(Call& c, int arg, int of) {
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(arg);
  return expect_axis(c, arg, axis, c.tensor(of).rank);
}

// index fits into `outer` in every dim but the axis.
aclnnStatus expect_inside(const Call& c, int index, int outer, bool with_axis) {
  const Tensor &i = c.tensor(index), &o = c.tensor(outer);
  bool fits = i.rank == o.rank || i.numel() == 0 || i.rank + o.rank <= 1;
  for (int d = 0; fits && d < i.rank && d < o.rank; ++d) {
    fits = (d == axis_of(c) && !with_axis) || i.dims[d] <= o.dims[d];
  }
  // Where one of them has no dim, the other has one, which stands for the axis.
  if (with_axis) fits = fits && i.numel() <= o.numel();
  if (fits) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s doesn't fit into %s of %s.",
                shape_text(i), c.name(index), shape_text(o), c.name(outer));
}

aclnnStatus check_gather(Call& c) {
  using P = params::Gather;

  ACL_RETURN_IF_FAILED(read_axis(c, P::dim, P::self));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  ACL_RETURN_IF_FAILED(expect_inside(c, P::index, P::self, false));
  return expect_same_shape(c, P::out, P::index);
}
aclError run_gather(Call& c) {
  using P = params::Gather;

  const Tensor &self = c.tensor(P::self), &index = c.tensor(P::index), &out = c.tensor(P::out);
  if (index.numel() == 0) return ACL_SUCCESS;
  const int axis = axis_of(c);
  const int64_t size = axis_size(self, axis);
  IndexFault fault;
  with_width(dtype_size(self.dtype), [&](auto width) {
    using T = decltype(width);
    each_run(index, self, out, axis, [&](const IndexRun& r) {
      const T* source = static_cast<const T*>(self.data) + r.to;
      T* target = static_cast<T*>(out.data) + r.from;
      each_index(fault, r.at, r.n, size, [=, step = r.step, along = r.along, next = r.next](
                                             int64_t i, int64_t k) {
        target[i * next] = source[k * step + i * along];
      });
    });
  });
  return fault.report(c, P::index);
}

// The row operation of a scatter: 0 replaces, 1 adds, 2 multiplies.
template <class C>
C combine(int64_t reduce, C old, C given) {
  return reduce == 1 ? old + given : (reduce == 2 ? old * given : given);
}
// Elements as they lie in memory, where nothing must be converted.
template <class T, class F>
void scatter_plain(const Tensor& self, const Tensor& index, const Tensor& src, int axis,
                   IndexFault& fault, F f) {
  const int64_t size = axis_size(self, axis);
  each_run(index, self, src, axis, [&](const IndexRun& r) {
    T* target = static_cast<T*>(self.data) + r.to;
    const T* source = static_cast<const T*>(src.data) + r.from;
    each_index(fault, r.at, r.n, size, [=, step = r.step, along = r.along, next = r.next](
                                           int64_t i, int64_t k) {
      T& place = target[k * step + i * along];
      place = f(place, source[i * next]);
    });
  });
}
aclError scatter(Call& c, const Tensor& self, int index_arg, const Tensor& src, int64_t reduce) {
  const Tensor& index = c.tensor(index_arg);
  if (index.numel() == 0) return ACL_SUCCESS;
  const int axis = axis_of(c);
  IndexFault fault;
  if (reduce == 0 && src.dtype == self.dtype) {
    with_width(dtype_size(self.dtype), [&](auto width) {
      using T = decltype(width);
      scatter_plain<T>(self, index, src, axis, fault, [](T, T given) { return given; });
    });
    return fault.report(c, index_arg);
  }
  if (reduce == 1 && src.dtype == self.dtype) {
    const auto add = [&](auto zero) {
      using T = decltype(zero);
      scatter_plain<T>(self, index, src, axis, fault,
                       [](T old, T given) { return static_cast<T>(old + given); });
      return fault.report(c, index_arg);
    };
    switch (self.dtype) {
      case ACL_FLOAT: return add(0.0f);
      case ACL_DOUBLE: return add(0.0);
      case ACL_INT64: return add(int64_t{0});
      case ACL_INT32: return add(int32_t{0});
      case ACL_UINT8: return add(uint8_t{0});
      default: break;
    }
  }
  const int64_t n = axis_size(index, axis), size = axis_size(self, axis);
  const int64_t from = axis_stride(src, axis), to = axis_stride(self, axis);
  const Rows rows({&index, &self, &src}, axis);
  const auto go = [&](auto tag) {
    using C = typename decltype(tag)::type;
    rows.run(n, [&](const int64_t* offsets) {
      Buffer<int64_t> space(n);
      const int64_t* at = row_in<int64_t>(space, index, offsets[0], axis);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = fault.resolve(at[i], size);
        if (k < 0) continue;
        const int64_t place = offsets[1] + k * to;
        const C given = load_one<C>(src.data, src.dtype, offsets[2] + i * from);
        const C old = reduce ? load_one<C>(self.data, self.dtype, place) : C(0);
        store_one(combine(reduce, old, given), self.data, self.dtype, place);
      }
    });
  };
  with_number(self.dtype, go);
  return fault.report(c, index_arg);
}

// (self, dim, index, src[, reduce], out) and in place. Out 0: selfRef.
template <int Reduce, int Out>
aclnnStatus check_scatter(Call& c) {
  using P = params::Scatter;

  ACL_RETURN_IF_FAILED(read_axis(c, P::dim, P::self));
  ACL_RETURN_IF_FAILED(expect_inside(c, P::index, P::self, false));
  if (c.args[P::src].kind == ArgKind::Tensor) {
    ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::src, P::self));
    ACL_RETURN_IF_FAILED(expect_inside(c, P::index, P::src, true));
  }
  if (Reduce && (c.integer(Reduce) < 0 || c.integer(Reduce) > 2)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "reduce should be 0, 1 or 2, but is %lld.",
                  static_cast<long long>(c.integer(Reduce)));
  }
  return expect_same_shape(c, Out, P::self);
}
template <int Reduce, int Out>
aclError run_scatter(Call& c) {
  using P = params::Scatter;

  const Tensor& out = c.tensor(Out);
  if (Out) copy_tensor(out, c.tensor(P::self));
  const int64_t reduce = Reduce ? c.integer(Reduce) : 1;
  if (c.args[P::src].kind == ArgKind::Tensor)
    return scatter(c, out, P::index, c.tensor(P::src), reduce);
  // A scalar, in self's dtype, stands for a src of index' shape.
  const Scalar& value = c.scalar(params::ScatterValue::value);
  alignas(16) unsigned char bytes[16] = {};
  with_number(out.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    store_one(load_one<C>(value.bytes, value.dtype, 0), bytes, out.dtype, 0);
  });
  Tensor src = dense(bytes, out.dtype, c.tensor(P::index).dims, c.tensor(P::index).rank);
  std::fill_n(src.strides, src.rank, 0);
  return scatter(c, out, P::index, src, reduce);
}

// (self, dim, index, out), index of one dim: whole slices in index' order.
aclnnStatus check_index_select(Call& c) {
  using P = params::IndexSelect;

  ACL_RETURN_IF_FAILED(read_axis(c, P::dim, P::self));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  if (c.tensor(P::index).rank > 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "index should have at most 1 dim, its shape is %s.",
                  shape_text(c.tensor(P::index)));
  }
  Shape shape = shape_of(c.tensor(P::self));
  if (shape.rank > 0) shape.dims[axis_of(c)] = c.tensor(P::index).numel();
  c.workspace_size = c.tensor(P::index).numel() * sizeof(int64_t);
  return expect_shape(c, P::out, shape);
}
// A slice of `t` at place k of the axis.
Tensor slice_at(const Tensor& t, int axis, int64_t k) {
  Tensor v = t;
  if (t.rank == 0) return v;
  v.offset += k * t.strides[axis];
  v.dims[axis] = 1;
  return v;
}
aclError run_index_select(Call& c) {
  using P = params::IndexSelect;

  Tensor self = c.tensor(P::self), out = c.tensor(P::out);
  if (out.numel() == 0) return ACL_SUCCESS;
  IndexFault fault;
  int64_t* at = static_cast<int64_t*>(c.workspace);
  const int64_t size = axis_size(self, axis_of(c));
  if (!read_indices(at, c.tensor(P::index), size, fault)) return fault.report(c, P::index);
  if (self.rank == 0) {
    copy_tensor(out, self);
  } else {
    select_slices(out, self, at, axis_of(c));
  }
  return ACL_SUCCESS;
}
// (self, dim, index, out), index of any shape in place of the axis.
aclnnStatus check_gather_v2(Call& c) {
  using P = params::GatherV2;

  ACL_RETURN_IF_FAILED(read_axis(c, P::dim, P::self));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  const Tensor &self = c.tensor(P::self), &index = c.tensor(P::index);
  Shape shape;
  shape.rank = self.rank + index.rank - 1;
  if (self.rank == 0 || shape.rank > kMaxRank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self has %d dims, index %d.", self.rank, index.rank);
  }
  int to = 0;
  for (int d = 0; d < self.rank; ++d) {
    if (d != axis_of(c)) shape.dims[to++] = self.dims[d];
    for (int k = 0; d == axis_of(c) && k < index.rank; ++k) shape.dims[to++] = index.dims[k];
  }
  c.workspace_size = index.numel() * sizeof(int64_t);
  return expect_shape(c, P::out, shape);
}
aclError run_gather_v2(Call& c) {
  using P = params::GatherV2;

  const Tensor &self = c.tensor(P::self), &index = c.tensor(P::index), &out = c.tensor(P::out);
  if (out.numel() == 0) return ACL_SUCCESS;
  IndexFault fault;
  int64_t* at = static_cast<int64_t*>(c.workspace);
  const int axis = axis_of(c);
  if (!read_indices(at, index, self.dims[axis], fault)) return fault.report(c, P::index);
  Walker w(index.rank, index.dims);
  for (int64_t i = 0, n = index.numel(); i < n; ++i, w.next()) {
    Tensor slice = out;  // out at this place of the index dims
    slice.rank = self.rank;
    slice.offset += w.offset(out.strides + axis);
    for (int d = 0; d < self.rank; ++d) {
      slice.dims[d] = d == axis ? 1 : self.dims[d];
      slice.strides[d] = out.strides[d <= axis ? d : d - 1 + index.rank];
    }
    copy_tensor(slice, slice_at(self, axis, at[i]));
  }
  return ACL_SUCCESS;
}

// Slices written at index' places: copied, filled, or added with a factor.
enum class Write { Copy, Fill, Add };
template <Write How, int Out>
aclnnStatus check_index_write(Call& c) {
  using P = params::IndexAdd;

  ACL_RETURN_IF_FAILED(read_axis(c, P::dim, P::self));
  const Tensor& self = c.tensor(P::self);
  const bool listed = c.args[P::index].kind == ArgKind::IntArray;
  const int64_t n =
      listed ? c.ints(params::IndexFillTensor::index).size : c.tensor(P::index).numel();
  if (!listed && c.tensor(P::index).rank > 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "index should have at most 1 dim, its shape is %s.",
                  shape_text(c.tensor(P::index)));
  }
  c.workspace_size = n * sizeof(int64_t);
  if (How != Write::Fill) {
    Shape shape = shape_of(self);
    if (shape.rank > 0) shape.dims[axis_of(c)] = n;
    ACL_RETURN_IF_FAILED(expect_shape(c, P::source, shape));
    if (How == Write::Copy) ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::source, P::self));
  }
  return expect_same_shape(c, Out, P::self);
}
void add_scaled(const Tensor& to, const Tensor& from, const Scalar& alpha) {
  Loop loop = loop_over(to);
  loop.add(to);
  loop.add(from);
  loop.add(dense(const_cast<unsigned char*>(alpha.bytes), alpha.dtype, nullptr, 0));
  loop.coalesce();
  with_real(to.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    run_loop<C>(loop, [](int64_t n, C* o, const C* const* in) {
      for (int64_t i = 0; i < n; ++i) o[i] = in[0][i] + in[2][i] * in[1][i];
    });
  });
}
// Slices of one place each, at the end of rows: added row by row.
template <class T>
void add_along_last(const Tensor& out, const Tensor& source, const int64_t* at, T alpha) {
  const int axis = out.rank - 1;
  const int64_t n = axis_size(source, axis), to = out.strides[axis], from = source.strides[axis];
  Rows({&source, &out}, axis).run(n, [&](const int64_t* offsets) {
    const T* values = static_cast<const T*>(source.data) + offsets[0];
    T* row = static_cast<T*>(out.data) + offsets[1];
    for (int64_t i = 0; i < n; ++i) row[at[i] * to] += alpha * values[i * from];
  });
}
// Slices of more: added part by part of their last dim.
template <class T>
void add_slices(const Tensor& out, const Tensor& source, const int64_t* at, int axis, T alpha) {
  const int64_t n = axis_size(source, axis);
  const int64_t to = out.strides[out.rank - 1], from = source.strides[out.rank - 1];
  Columns({&source, &out}, axis, kBlock).run(n, [&](const int64_t* offsets, int64_t columns) {
    for (int64_t i = 0; i < n; ++i) {
      const T* x = static_cast<const T*>(source.data) + offsets[0] + i * source.strides[axis];
      T* row = static_cast<T*>(out.data) + offsets[1] + at[i] * out.strides[axis];
      if (to == 1 && from == 1) {
        ACL_IVDEP for (int64_t j = 0; j < columns; ++j) row[j] += alpha * x[j];
      } else {
        for (int64_t j = 0; j < columns; ++j) row[j * to] += alpha * x[j * from];
      }
    }
  });
}
// Whether it was done without a cast.
bool add_plain(const Tensor& out, const Tensor& source, const int64_t* at, int axis,
               const Scalar& alpha) {
  if (out.rank == 0 || source.dtype != out.dtype) return false;
  const auto add = [&](auto factor) {
    if (axis == out.rank - 1) {
      add_along_last(out, source, at, factor);
    } else {
      add_slices(out, source, at, axis, factor);
    }
    return true;
  };
  switch (out.dtype) {
    case ACL_FLOAT: return add(static_cast<float>(alpha.real()));
    case ACL_DOUBLE: return add(alpha.real());
    case ACL_INT64: return add(alpha.integer());
    default: return false;
  }
}
template <Write How, int Out>
aclError run_index_write(Call& c) {
  using P = params::IndexAdd;

  const Tensor& out = c.tensor(Out);
  const int axis = axis_of(c);
  if (Out) copy_tensor(out, c.tensor(P::self));
  if (out.numel() == 0) return ACL_SUCCESS;
  int64_t* at = static_cast<int64_t*>(c.workspace);
  const bool listed = c.args[P::index].kind == ArgKind::IntArray;
  const int64_t n =
      listed ? c.ints(params::IndexFillTensor::index).size : c.tensor(P::index).numel();
  IndexFault fault(How == Write::Fill ? Index::FromEither : Index::FromStart);
  Tensor index = listed
                     ? dense(c.ints(params::IndexFillTensor::index).data
                                 ? const_cast<int64_t*>(c.ints(params::IndexFillTensor::index).data)
                                 : nullptr,
                             ACL_INT64, &n, 1)
                     : c.tensor(P::index);
  if (!read_indices(at, index, axis_size(out, axis), fault)) return fault.report(c, P::index);
  if (How == Write::Add && add_plain(out, c.tensor(P::source), at, axis, c.scalar(P::alpha))) {
    return ACL_SUCCESS;
  }
  for (int64_t i = 0; i < n; ++i) {
    const Tensor to = slice_at(out, axis, at[i]);
    if (How == Write::Fill) fill_tensor(to, c.scalar(params::IndexFill::value));
    if (How == Write::Copy) copy_tensor(to, slice_at(c.tensor(P::source), axis, i));
    if (How == Write::Add)
      add_scaled(to, slice_at(c.tensor(P::source), axis, i), c.scalar(P::alpha));
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnGather, check_gather, run_gather)
ACLNN_OP(aclnnGatherV2, check_gather_v2, run_gather_v2)
ACLNN_OP(aclnnScatterAdd, (check_scatter<params::ScatterAdd::self, params::ScatterAdd::out>),
         (run_scatter<params::ScatterAdd::self, params::ScatterAdd::out>))
ACLNN_OP(aclnnScatter, (check_scatter<params::Scatter::reduce, params::Scatter::out>),
         (run_scatter<params::Scatter::reduce, params::Scatter::out>))
ACLNN_OP(aclnnInplaceScatter,
         (check_scatter<params::InplaceScatter::reduce, params::InplaceScatter::selfRef>),
         (run_scatter<params::InplaceScatter::reduce, params::InplaceScatter::selfRef>))
ACLNN_OP(aclnnScatterValue,
         (check_scatter<params::ScatterValue::reduce, params::ScatterValue::out>),
         (run_scatter<params::ScatterValue::reduce, params::ScatterValue::out>))
ACLNN_OP(aclnnInplaceScatterValue,
         (check_scatter<params::InplaceScatterValue::reduce, params::InplaceScatterValue::selfRef>),
         (run_scatter<params::InplaceScatterValue::reduce, params::InplaceScatterValue::selfRef>))
ACLNN_OP(aclnnIndexSelect, check_index_select, run_index_select)
ACLNN_OP(aclnnIndexAdd, (check_index_write<Write::Add, params::IndexAdd::out>),
         (run_index_write<Write::Add, params::IndexAdd::out>))
ACLNN_OP(aclnnIndexAddV2, (check_index_write<Write::Add, params::IndexAddV2::out>),
         (run_index_write<Write::Add, params::IndexAddV2::out>))
ACLNN_OP(aclnnInplaceIndexCopy, (check_index_write<Write::Copy, params::InplaceIndexCopy::selfRef>),
         (run_index_write<Write::Copy, params::InplaceIndexCopy::selfRef>))
ACLNN_OP(aclnnIndexCopy, (check_index_write<Write::Copy, params::IndexCopy::outRef>),
         (run_index_write<Write::Copy, params::IndexCopy::outRef>))
ACLNN_OP(aclnnIndexFill, (check_index_write<Write::Fill, params::IndexFill::out>),
         (run_index_write<Write::Fill, params::IndexFill::out>))
ACLNN_OP(aclnnIndexFillTensor, (check_index_write<Write::Fill, params::IndexFillTensor::out>),
         (run_index_write<Write::Fill, params::IndexFillTensor::out>))
ACLNN_OP(aclnnInplaceIndexFill, (check_index_write<Write::Fill, params::InplaceIndexFill::selfRef>),
         (run_index_write<Write::Fill, params::InplaceIndexFill::selfRef>))
ACLNN_OP(aclnnInplaceIndexFillTensor,
         (check_index_write<Write::Fill, params::InplaceIndexFillTensor::selfRef>),
         (run_index_write<Write::Fill, params::InplaceIndexFillTensor::selfRef>))
