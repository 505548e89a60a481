// Reading and writing at places that tuples of indices name, and the scatters of other frameworks.
#include "params/indexing.h"
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

aclnnStatus check_gather_nd(Call& c) {
  using P = params::GatherNd;
  return expect_tuples(c, P::self, P::indices, P::out);
}
aclError run_gather_nd(Call& c) {
  using P = params::GatherNd;

  const std::vector<char> from = bytes_of(c.tensor(P::self));
  std::vector<char> to(static_cast<size_t>(c.tensor(P::out).numel()) *
                       dtype_size(c.tensor(P::out).dtype));
  const size_t bytes = dtype_size(c.tensor(P::self).dtype);
  const aclError error =
      each_tuple(c, c.tensor(P::self), P::indices, [&](int64_t at, int64_t i, int64_t n) {
        std::memcpy(to.data() + i * n * bytes, from.data() + at * bytes, n * bytes);
      });
  if (error == ACL_SUCCESS) put_bytes(c.tensor(P::out), to);
  return error;
}
// (data, indices, updates, out) and (varRef, indices, updates): later tuples win.
template <int Out>
aclnnStatus check_scatter_nd(Call& c) {
  using P = params::ScatterNd;

  ACL_RETURN_IF_FAILED(expect_tuples(c, P::data, P::indices, P::updates));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, Out, P::data));
  return expect_same_shape(c, Out, P::data);
}
template <int Out>
aclError run_scatter_nd(Call& c) {
  using P = params::ScatterNd;

  std::vector<char> to = bytes_of(c.tensor(P::data)), from = bytes_of(c.tensor(P::updates));
  const size_t bytes = dtype_size(c.tensor(P::data).dtype);
  const aclError error =
      each_tuple(c, c.tensor(P::data), P::indices, [&](int64_t at, int64_t i, int64_t n) {
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
  using P = params::ScatterDiv;

  const Tensor &var = c.tensor(P::varRef), &indices = c.tensor(P::indices);
  if (var.rank < 1 || indices.rank + var.rank - 1 > kMaxRank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have 1 dim or more.", c.name(P::varRef));
  }
  Shape shape = shape_of(indices);
  for (int d = 1; d < var.rank; ++d) shape.dims[shape.rank++] = var.dims[d];
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::updates, P::varRef));
  return expect_shape(c, P::updates, shape);
}
template <Change How>
aclError run_rows(Call& c) {
  using P = params::ScatterDiv;

  const Tensor& var = c.tensor(P::varRef);
  const Integers rows = integers(c.tensor(P::indices));
  const int64_t n = tail_numel(var, var.rank - 1);
  IndexFault fault;
  with_real(var.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> to = values_of<T>(var), from = values_of<T>(c.tensor(P::updates));
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t row = fault.resolve(rows[i], var.dims[0]);
      for (int64_t k = 0; row >= 0 && k < n; ++k) {
        to[row * n + k] = changed<How>(to[row * n + k], from[i * n + k]);
      }
    }
    if (fault.report(c, P::indices) == ACL_SUCCESS) put(var, to);
  });
  return fault.report(c, P::indices);
}

// (self, dim, index, src, reduce, includeSelf, out) and in place: torch's scatter_reduce; reduce 0
// replaces, 1 adds, 2 multiplies, 3 takes maxima, 4 minima, 5 the mean.
template <int Out>
aclnnStatus check_scatter_reduce(Call& c) {
  using P = params::ScatterReduce;

  int64_t& axis = c.make<int64_t>();
  axis = c.integer(P::dim);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, c.tensor(P::self).rank));
  ACL_RETURN_IF_FAILED(expect_int(c, P::reduce, 0, 5));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::src, P::self));
  const Tensor &self = c.tensor(P::self), &index = c.tensor(P::index), &src = c.tensor(P::src);
  bool fits = index.rank == self.rank && index.rank == src.rank;
  for (int d = 0; fits && d < index.rank; ++d) {
    fits = index.dims[d] <= src.dims[d] && (d == axis || index.dims[d] <= self.dims[d]);
  }
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of index doesn't fit %s of self and %s of src.",
                  shape_text(index), shape_text(self), shape_text(src));
  }
  return expect_same_shape(c, Out, P::self);
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
  using P = params::ScatterReduce;

  const Tensor &self = c.tensor(P::self), &index = c.tensor(P::index), &src = c.tensor(P::src);
  const int axis = static_cast<int>(c.get<int64_t>());
  const int64_t reduce = c.integer(P::reduce);
  const bool counted = reduce == 5 || !c.flag(P::includeSelf);
  // Where they lie, if nothing must be converted or counted.
  const bool direct = out.dtype == dtype_of<T>() && !counted;
  std::vector<T> sums(direct ? 0 : self.numel());
  const Tensor to = direct ? out : dense(sums.data(), dtype_of<T>(), self.dims, self.rank);
  copy_tensor(to, self);
  std::vector<T> given;
  Tensor from = src;
  if (src.dtype != dtype_of<T>()) {
    given = values_of<T>(src);
    from = dense(given.data(), dtype_of<T>(), src.dims, src.rank);
  }
  Integers counts(counted ? sums.size() : 0, c.flag(P::includeSelf));
  if (index.numel() > 0) {
    each_run(index, to, from, axis, [&, target = static_cast<T*>(to.data)](const IndexRun& r) {
      const T* source = static_cast<const T*>(from.data) + r.from;
      for (int64_t i = 0; i < r.n; ++i) {
        const int64_t k = fault.resolve(r.at[i], axis_size(self, axis));
        if (k < 0) return;
        const int64_t p = r.to + k * r.step + i * r.along;
        target[p] = counted && counts[p]++ == 0 ? source[i * r.next]
                                                : reduced(reduce, target[p], source[i * r.next]);
      }
    });
  }
  for (size_t p = 0; reduce == 5 && p < sums.size(); ++p) {
    if (counts[p] > 1) sums[p] = shared(sums[p], counts[p]);
  }
  if (!direct) copy_tensor(out, to);
}
template <int Out>
aclError run_scatter_reduce(Call& c) {
  using P = params::ScatterReduce;

  IndexFault fault;
  const auto go = [&](auto tag) {
    scatter_reduce<typename decltype(tag)::type>(c, c.tensor(Out), fault);
  };
  if (is_complex(c.tensor(P::self).dtype)) {
    go(Tag<c128>{});
  } else {
    with_real(c.tensor(P::self).dtype, go);
  }
  return fault.report(c, P::index);
}

// (self, dim, index, batchDims, mode, out): slices by index, batch by batch; the index dims stand
// where the axis was.
aclnnStatus check_gather_batched(Call& c) {
  using P = params::GatherV3;

  int64_t& axis = c.make<int64_t>();
  axis = c.integer(P::dim);
  const Tensor &self = c.tensor(P::self), &index = c.tensor(P::index);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, self.rank));
  const int64_t batch =
      c.integer(P::batchDims) < 0 ? c.integer(P::batchDims) + index.rank : c.integer(P::batchDims);
  bool fits = batch >= 0 && batch <= axis && batch <= index.rank && self.rank > 0 &&
              self.rank - 1 + index.rank - batch <= kMaxRank;
  for (int d = 0; fits && d < batch; ++d) fits = self.dims[d] == index.dims[d];
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "batchDims %lld doesn't fit self %s, index %s, dim %lld.",
                  static_cast<long long>(c.integer(P::batchDims)), shape_text(self),
                  shape_text(index), static_cast<long long>(axis));
  }
  Shape shape = shape_of(self);
  shape.rank = static_cast<int>(axis);
  for (int64_t d = batch; d < index.rank; ++d) shape.dims[shape.rank++] = index.dims[d];
  for (int64_t d = axis + 1; d < self.rank; ++d) shape.dims[shape.rank++] = self.dims[d];
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  return expect_shape(c, P::out, shape);
}
aclError run_gather_batched(Call& c) {
  using P = params::GatherV3;

  const Tensor &self = c.tensor(P::self), &index = c.tensor(P::index);
  const int axis = static_cast<int>(c.get<int64_t>());
  const int batch = static_cast<int>(
      c.integer(P::batchDims) < 0 ? c.integer(P::batchDims) + index.rank : c.integer(P::batchDims));
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
      if (k < 0) return fault.report(c, P::index);
      const char* start = from.data() + (o * a.size + k) * slice;
      to.insert(to.end(), start, start + slice);
    }
  }
  put_bytes(c.tensor(P::out), to);
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
aclnnStatus check_scatter_update(Call& c) {
  using P = params::InplaceScatterUpdate;

  int64_t& axis = c.make<int64_t>();
  axis = c.integer(P::axis);
  const Tensor &data = c.tensor(P::data), &updates = c.tensor(P::updates);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::axis, axis, data.rank));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::updates, P::data));
  ACL_RETURN_IF_FAILED(expect_cache(c, data, axis, updates, 0));
  const Tensor& at = c.tensor(P::indices);
  const int64_t batch = updates.dims[0];
  if (at.rank == 2) return expect_dims(c, P::indices, {batch, 2});
  if (batch <= data.dims[0]) return expect_dims(c, P::indices, {batch});
  return c.fail(ACLNN_ERR_PARAM_INVALID, "updates has more batches than data.");
}
aclError run_scatter_update(Call& c) {
  using P = params::InplaceScatterUpdate;

  const Tensor &data = c.tensor(P::data), &updates = c.tensor(P::updates);
  const Integers at = integers(c.tensor(P::indices));
  const bool pairs = c.tensor(P::indices).rank == 2;
  const int axis = static_cast<int>(c.get<int64_t>()) - 1;
  for (int64_t b = 0; b < updates.dims[0]; ++b) {
    const int64_t to = pairs ? at[b * 2] : b, from = pairs ? at[b * 2 + 1] : at[b];
    if (to < 0 || to >= data.dims[0]) return bad_position(c, P::indices, to);
    const Tensor piece = without_first(updates, b);
    if (!write_piece(without_first(data, to), piece, axis, from, piece.dims[axis])) {
      return bad_position(c, P::indices, from);
    }
  }
  return ACL_SUCCESS;
}
// (varRef list, indice [B] or [B, 2] of (start, count), updates [B, ...], mask [B], reduce, axis).
aclnnStatus check_scatter_list(Call& c) {
  using P = params::ScatterList;

  const Span<Tensor*> list = c.tensors(P::varRef);
  const Tensor& updates = c.tensor(P::updates);
  int64_t& axis = c.make<int64_t>();
  for (const Tensor* t : list) {
    if (!t || t->rank < 1 || t->dtype != updates.dtype) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "A member of varRef doesn't fit updates.");
    }
    axis = c.integer(P::axis);
    ACL_RETURN_IF_FAILED(expect_axis(c, P::axis, axis, t->rank));
    ACL_RETURN_IF_FAILED(expect_cache(c, *t, axis, updates, 1));
  }
  if (updates.rank < 1 || updates.dims[0] != list.size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "updates should have one part per member of varRef.");
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, P::maskOptional, list.size));
  return c.tensor(P::indice).rank == 2 ? expect_dims(c, P::indice, {list.size, 2})
                                       : expect_dims(c, P::indice, {list.size});
}
aclError run_scatter_list(Call& c) {
  using P = params::ScatterList;

  const Integers at = integers(c.tensor(P::indice));
  const Integers mask =
      c.null(P::maskOptional) ? Integers(at.size(), 1) : integers(c.tensor(P::maskOptional));
  const bool pairs = c.tensor(P::indice).rank == 2;
  const int axis = static_cast<int>(c.get<int64_t>());
  for (int64_t b = 0; b < c.tensors(P::varRef).size; ++b) {
    if (mask[b] == 0) continue;
    const Tensor piece = without_first(c.tensor(P::updates), b);
    const int64_t from = at[pairs ? b * 2 : b], count = pairs ? at[b * 2 + 1] : piece.dims[axis];
    if (!write_piece(*c.tensors(P::varRef)[b], piece, axis, from, count))
      return bad_position(c, P::indice, from);
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnGatherNd, check_gather_nd, run_gather_nd)
ACLNN_OP(aclnnScatterNd, check_scatter_nd<params::ScatterNd::out>,
         run_scatter_nd<params::ScatterNd::out>)
ACLNN_OP(aclnnScatterNdUpdate, check_scatter_nd<params::ScatterNdUpdate::varRef>,
         run_scatter_nd<params::ScatterNdUpdate::varRef>)
ACLNN_OP(aclnnGatherV3, check_gather_batched, run_gather_batched)
ACLNN_OP(aclnnTfScatterAdd, check_rows, run_rows<Change::Add>)
ACLNN_OP(aclnnScatterDiv, check_rows, run_rows<Change::Div>)
ACLNN_OP(aclnnScatterMax, check_rows, run_rows<Change::Max>)
ACLNN_OP(aclnnScatterMin, check_rows, run_rows<Change::Min>)
ACLNN_OP(aclnnScatterMul, check_rows, run_rows<Change::Mul>)
ACLNN_OP(aclnnScatterReduce, check_scatter_reduce<params::ScatterReduce::out>,
         run_scatter_reduce<params::ScatterReduce::out>)
ACLNN_OP(aclnnInplaceScatterReduce, check_scatter_reduce<params::InplaceScatterReduce::selfRef>,
         run_scatter_reduce<params::InplaceScatterReduce::selfRef>)
ACLNN_OP(aclnnInplaceScatterUpdate, check_scatter_update, run_scatter_update)
ACLNN_OP(aclnnScatterList, check_scatter_list, run_scatter_list)
