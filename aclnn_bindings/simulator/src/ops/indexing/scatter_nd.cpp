// Reading and writing at places that tuples of indices name, and the scatters of other frameworks.
#include "loops/numbers.h"

namespace aclsim {
namespace {

// Slices of `t` that tuples of `depth` indices name: how many elements each has, and its place.
struct Slices {
  const Tensor& t;
  int64_t depth;
  int64_t size() const { return tail_numel(t, t.rank - static_cast<int>(depth)); }
  // The first element of the slice in row-major order, or -1.
  int64_t place(const int64_t* tuple, IndexFault& fault) const {
    int64_t at = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t k = fault.resolve(tuple[d], t.dims[d]);
      if (k < 0) return -1;
      at = at * t.dims[d] + k;
    }
    return at * size();
  }
};
// Shape of indices without its last dim, then the dims of `self` that tuples leave.
aclnnStatus expect_tuples(const Call& c, int self, int indices, int slices) {
  const Tensor &i = c.tensor(indices), &t = c.tensor(self);
  const int64_t depth = i.rank ? i.dims[i.rank - 1] : 0;
  Shape shape = shape_of(i);
  shape.rank -= 1;
  const bool fits = i.rank > 0 && depth <= t.rank && shape.rank + t.rank - depth <= kMaxRank;
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s doesn't fit %s of %s.", shape_text(i),
                  c.name(indices), shape_text(t), c.name(self));
  }
  for (int64_t d = depth; d < t.rank; ++d) shape.dims[shape.rank++] = t.dims[d];
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, slices, self));
  return expect_shape(c, slices, shape);
}
// f(place in the indexed tensor, number of the tuple) in order.
template <class F>
aclError each_tuple(const Call& c, const Tensor& self, int arg, F f) {
  const Tensor& t = c.tensor(arg);
  const Integers indices = integers(t);
  const int64_t depth = t.dims[t.rank - 1];
  const Slices slices = {self, depth};
  int64_t count = 1;
  for (int i = 0; i + 1 < t.rank; ++i) count *= t.dims[i];
  IndexFault fault(Index::FromEither);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = slices.place(indices.data() + i * depth, fault);
    if (at < 0) return fault.report(c, arg);
    f(at, i, slices.size());
  }
  return ACL_SUCCESS;
}

// (self, indices, negativeIndexSupport, out).
aclnnStatus check_gather_nd(Call& c) { return expect_tuples(c, 0, 1, 3); }
aclError run_gather_nd(Call& c) {
  const std::vector<char> from = bytes_of(c.tensor(0));
  std::vector<char> to(static_cast<size_t>(c.tensor(3).numel()) * dtype_size(c.tensor(3).dtype));
  const size_t bytes = dtype_size(c.tensor(0).dtype);
  const aclError error = each_tuple(c, c.tensor(0), 1, [&](int64_t at, int64_t i, int64_t n) {
    std::memcpy(to.data() + i * n * bytes, from.data() + at * bytes, n * bytes);
  });
  if (error == ACL_SUCCESS) put_bytes(c.tensor(3), to);
  return error;
}
// (data, indices, updates, out) and (varRef, indices, updates): later tuples win.
template <int Out>
aclnnStatus check_scatter_nd(Call& c) {
  ACL_RETURN_IF_FAILED(expect_tuples(c, 0, 1, 2));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, Out, 0));
  return expect_same_shape(c, Out, 0);
}
template <int Out>
aclError run_scatter_nd(Call& c) {
  std::vector<char> to = bytes_of(c.tensor(0)), from = bytes_of(c.tensor(2));
  const size_t bytes = dtype_size(c.tensor(0).dtype);
  const aclError error = each_tuple(c, c.tensor(0), 1, [&](int64_t at, int64_t i, int64_t n) {
    std::memcpy(to.data() + at * bytes, from.data() + i * n * bytes, n * bytes);
  });
  if (error == ACL_SUCCESS) put_bytes(c.tensor(Out), to);
  return error;
}

// (varRef, indices, updates, ...): var[indices[i]] op= updates[i], TensorFlow's way.
enum class Change { Add, Div, Max, Min, Mul };
template <Change How, class T>
T changed(T old, T given) {
  switch (How) {
    case Change::Add: return old + given;
    case Change::Div:
      if constexpr (std::is_same<T, int64_t>::value) return given == 0 ? 0 : old / given;
      return old / given;
    case Change::Max: return std::max(old, given);
    case Change::Min: return std::min(old, given);
    default: return old * given;
  }
}
aclnnStatus check_rows(Call& c) {
  const Tensor &var = c.tensor(0), &indices = c.tensor(1);
  if (var.rank < 1 || indices.rank + var.rank - 1 > kMaxRank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have 1 dim or more.", c.name(0));
  }
  Shape shape = shape_of(indices);
  for (int d = 1; d < var.rank; ++d) shape.dims[shape.rank++] = var.dims[d];
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, 2, 0));
  return expect_shape(c, 2, shape);
}
template <Change How>
aclError run_rows(Call& c) {
  const Tensor& var = c.tensor(0);
  const Integers rows = integers(c.tensor(1));
  const int64_t n = tail_numel(var, var.rank - 1);
  IndexFault fault;
  with_real(var.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> to = values_of<T>(var), from = values_of<T>(c.tensor(2));
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t row = fault.resolve(rows[i], var.dims[0]);
      for (int64_t k = 0; row >= 0 && k < n; ++k) {
        to[row * n + k] = changed<How>(to[row * n + k], from[i * n + k]);
      }
    }
    if (fault.report(c, 1) == ACL_SUCCESS) put(var, to);
  });
  return fault.report(c, 1);
}

// (self, dim, index, src, reduce, includeSelf, out) and in place: torch's scatter_reduce; reduce 0
// replaces, 1 adds, 2 multiplies, 3 takes maxima, 4 minima, 5 the mean.
template <int Out>
aclnnStatus check_scatter_reduce(Call& c) {
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(1);
  ACL_RETURN_IF_FAILED(expect_axis(c, 1, axis, c.tensor(0).rank));
  ACL_RETURN_IF_FAILED(expect_int(c, 4, 0, 5));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, 3, 0));
  const Tensor &self = c.tensor(0), &index = c.tensor(2), &src = c.tensor(3);
  bool fits = index.rank == self.rank && index.rank == src.rank;
  for (int d = 0; fits && d < index.rank; ++d) {
    fits = index.dims[d] <= src.dims[d] && (d == axis || index.dims[d] <= self.dims[d]);
  }
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of index doesn't fit %s of self and %s of src.",
                  shape_text(index), shape_text(self), shape_text(src));
  }
  return expect_same_shape(c, Out, 0);
}
template <class T>
T reduced(int64_t reduce, T old, T given) {
  if constexpr (!std::is_same<T, c128>::value) {
    if (reduce == 3) return old != old || old > given ? old : given;
    if (reduce == 4) return old != old || old < given ? old : given;
  }
  return reduce == 0 ? given : reduce == 2 ? old * given : old + given;
}
template <class T>
T shared(T sum, int64_t count) {
  if constexpr (std::is_same<T, int64_t>::value) {
    return sum / count - (sum % count != 0 && sum < 0);
  } else {
    return sum / static_cast<double>(count);
  }
}
template <class T>
void scatter_reduce(const Call& c, const Tensor& out, IndexFault& fault) {
  const Tensor &self = c.tensor(0), &index = c.tensor(2), &src = c.tensor(3);
  const int axis = static_cast<int>(c.get<int64_t>());
  const Tensor flat = dense(nullptr, ACL_DOUBLE, self.dims, self.rank);
  const Tensor flat_src = dense(nullptr, ACL_DOUBLE, src.dims, src.rank);
  std::vector<T> to = values_of<T>(self), from = values_of<T>(src);
  Integers at = integers(index), counts(to.size(), c.flag(5));
  Walker walk(index.rank, index.dims);
  for (size_t i = 0; i < at.size(); ++i, walk.next()) {
    const int64_t k = fault.resolve(at[i], axis_size(self, axis));
    if (k < 0) return;
    const T given = from[walk.offset(flat_src.strides)];
    Walker place = walk;
    if (self.rank > 0) place.index[axis] = k;
    const int64_t p = place.offset(flat.strides);
    to[p] = counts[p]++ == 0 ? given : reduced(c.integer(4), to[p], given);
  }
  for (size_t p = 0; c.integer(4) == 5 && p < to.size(); ++p) {
    if (counts[p] > 1) to[p] = shared(to[p], counts[p]);
  }
  put(out, to);
}
template <int Out>
aclError run_scatter_reduce(Call& c) {
  IndexFault fault;
  const auto go = [&](auto tag) {
    scatter_reduce<typename decltype(tag)::type>(c, c.tensor(Out), fault);
  };
  if (is_complex(c.tensor(0).dtype)) {
    go(Tag<c128>{});
  } else {
    with_real(c.tensor(0).dtype, go);
  }
  return fault.report(c, 2);
}

// (self, dim, index, batchDims, mode, out): slices by index, batch by batch; the index dims stand
// where the axis was.
aclnnStatus check_gather_batched(Call& c) {
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(1);
  const Tensor &self = c.tensor(0), &index = c.tensor(2);
  ACL_RETURN_IF_FAILED(expect_axis(c, 1, axis, self.rank));
  const int64_t batch = c.integer(3) < 0 ? c.integer(3) + index.rank : c.integer(3);
  bool fits = batch >= 0 && batch <= axis && batch <= index.rank && self.rank > 0 &&
              self.rank - 1 + index.rank - batch <= kMaxRank;
  for (int d = 0; fits && d < batch; ++d) fits = self.dims[d] == index.dims[d];
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "batchDims %lld doesn't fit self %s, index %s, dim %lld.",
                  static_cast<long long>(c.integer(3)), shape_text(self), shape_text(index),
                  static_cast<long long>(axis));
  }
  Shape shape = shape_of(self);
  shape.rank = static_cast<int>(axis);
  for (int64_t d = batch; d < index.rank; ++d) shape.dims[shape.rank++] = index.dims[d];
  for (int64_t d = axis + 1; d < self.rank; ++d) shape.dims[shape.rank++] = self.dims[d];
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, 5, 0));
  return expect_shape(c, 5, shape);
}
aclError run_gather_batched(Call& c) {
  const Tensor &self = c.tensor(0), &index = c.tensor(2);
  const int axis = static_cast<int>(c.get<int64_t>());
  const int batch = static_cast<int>(c.integer(3) < 0 ? c.integer(3) + index.rank : c.integer(3));
  const Around a(self, axis);
  int64_t batches = 1;
  for (int d = 0; d < batch; ++d) batches *= self.dims[d];
  const Integers at = integers(index);
  const int64_t picks = batches ? static_cast<int64_t>(at.size()) / batches : 0;
  const size_t slice = static_cast<size_t>(a.inner) * dtype_size(self.dtype);
  const std::vector<char> from = bytes_of(self);
  std::vector<char> to;
  IndexFault fault;
  for (int64_t o = 0; o < a.outer; ++o) {
    const int64_t first = batches ? o / (a.outer / batches) * picks : 0;
    for (int64_t i = 0; i < picks; ++i) {
      const int64_t k = fault.resolve(at[first + i], a.size);
      if (k < 0) return fault.report(c, 2);
      const char* start = from.data() + (o * a.size + k) * slice;
      to.insert(to.end(), start, start + slice);
    }
  }
  put_bytes(c.tensor(5), to);
  return ACL_SUCCESS;
}

// Caches take updates along an axis: updates[b] goes to var[b] from position indices[b], or to
// var[indices[b][0]] from indices[b][1].
aclnnStatus expect_cache(const Call& c, const Tensor& var, int64_t axis, const Tensor& updates,
                         int first) {
  bool fits = var.rank + first == updates.rank && axis > 0 - first && axis < var.rank;
  for (int d = 1 - first; fits && d < var.rank; ++d) {
    const int64_t n = updates.dims[d + first];
    fits = d == axis ? n <= var.dims[d] : n == var.dims[d];
  }
  if (fits) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of the updates doesn't fit %s along dim %lld.",
                shape_text(updates), shape_text(var), static_cast<long long>(axis));
}
// Writes `piece` into `var` from position `at` along the axis; both without the batch dim.
bool write_piece(Tensor var, const Tensor& piece, int axis, int64_t at, int64_t count) {
  if (at < 0 || count < 0 || at + count > var.dims[axis] || count > piece.dims[axis]) return false;
  Tensor from = piece;
  var.offset += at * var.strides[axis];
  var.dims[axis] = from.dims[axis] = count;
  if (var.numel() > 0) copy_tensor(var, from);
  return true;
}
Tensor without_first(const Tensor& t, int64_t k) {
  Tensor v = t;
  v.offset += k * t.strides[0];
  v.rank -= 1;
  std::copy_n(t.dims + 1, v.rank, v.dims);
  std::copy_n(t.strides + 1, v.rank, v.strides);
  return v;
}
aclError bad_position(const Call& c, int arg, int64_t at) {
  return c.trap(507015, "position %lld in %s leads outside", static_cast<long long>(at), c.name(arg));
}
// (data, indices, updates, axis).
aclnnStatus check_scatter_update(Call& c) {
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(3);
  const Tensor &data = c.tensor(0), &updates = c.tensor(2);
  ACL_RETURN_IF_FAILED(expect_axis(c, 3, axis, data.rank));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, 2, 0));
  ACL_RETURN_IF_FAILED(expect_cache(c, data, axis, updates, 0));
  const Tensor& at = c.tensor(1);
  const int64_t batch = updates.dims[0];
  if (at.rank == 2) return expect_dims(c, 1, {batch, 2});
  if (batch <= data.dims[0]) return expect_dims(c, 1, {batch});
  return c.fail(ACLNN_ERR_PARAM_INVALID, "updates has more batches than data.");
}
aclError run_scatter_update(Call& c) {
  const Tensor &data = c.tensor(0), &updates = c.tensor(2);
  const Integers at = integers(c.tensor(1));
  const bool pairs = c.tensor(1).rank == 2;
  const int axis = static_cast<int>(c.get<int64_t>()) - 1;
  for (int64_t b = 0; b < updates.dims[0]; ++b) {
    const int64_t to = pairs ? at[b * 2] : b, from = pairs ? at[b * 2 + 1] : at[b];
    if (to < 0 || to >= data.dims[0]) return bad_position(c, 1, to);
    const Tensor piece = without_first(updates, b);
    if (!write_piece(without_first(data, to), piece, axis, from, piece.dims[axis])) {
      return bad_position(c, 1, from);
    }
  }
  return ACL_SUCCESS;
}
// (varRef list, indice [B] or [B, 2] of (start, count), updates [B, ...], mask [B], reduce, axis).
aclnnStatus check_scatter_list(Call& c) {
  const Span<Tensor*> list = c.tensors(0);
  const Tensor& updates = c.tensor(2);
  int64_t& axis = c.make<int64_t>();
  for (const Tensor* t : list) {
    if (!t || t->rank < 1 || t->dtype != updates.dtype) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "A member of varRef doesn't fit updates.");
    }
    axis = c.integer(5);
    ACL_RETURN_IF_FAILED(expect_axis(c, 5, axis, t->rank));
    ACL_RETURN_IF_FAILED(expect_cache(c, *t, axis, updates, 1));
  }
  if (updates.rank < 1 || updates.dims[0] != list.size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "updates should have one part per member of varRef.");
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, 3, list.size));
  return c.tensor(1).rank == 2 ? expect_dims(c, 1, {list.size, 2}) : expect_dims(c, 1, {list.size});
}
aclError run_scatter_list(Call& c) {
  const Integers at = integers(c.tensor(1));
  const Integers mask = c.null(3) ? Integers(at.size(), 1) : integers(c.tensor(3));
  const bool pairs = c.tensor(1).rank == 2;
  const int axis = static_cast<int>(c.get<int64_t>());
  for (int64_t b = 0; b < c.tensors(0).size; ++b) {
    if (mask[b] == 0) continue;
    const Tensor piece = without_first(c.tensor(2), b);
    const int64_t from = at[pairs ? b * 2 : b], count = pairs ? at[b * 2 + 1] : piece.dims[axis];
    if (!write_piece(*c.tensors(0)[b], piece, axis, from, count)) return bad_position(c, 1, from);
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnGatherNd, check_gather_nd, run_gather_nd)
ACLNN_OP(aclnnScatterNd, check_scatter_nd<3>, run_scatter_nd<3>)
ACLNN_OP(aclnnScatterNdUpdate, check_scatter_nd<0>, run_scatter_nd<0>)
ACLNN_OP(aclnnGatherV3, check_gather_batched, run_gather_batched)
ACLNN_OP(aclnnTfScatterAdd, check_rows, run_rows<Change::Add>)
ACLNN_OP(aclnnScatterDiv, check_rows, run_rows<Change::Div>)
ACLNN_OP(aclnnScatterMax, check_rows, run_rows<Change::Max>)
ACLNN_OP(aclnnScatterMin, check_rows, run_rows<Change::Min>)
ACLNN_OP(aclnnScatterMul, check_rows, run_rows<Change::Mul>)
ACLNN_OP(aclnnScatterReduce, check_scatter_reduce<6>, run_scatter_reduce<6>)
ACLNN_OP(aclnnInplaceScatterReduce, check_scatter_reduce<0>, run_scatter_reduce<0>)
ACLNN_OP(aclnnInplaceScatterUpdate, check_scatter_update, run_scatter_update)
ACLNN_OP(aclnnScatterList, check_scatter_list, run_scatter_list)
