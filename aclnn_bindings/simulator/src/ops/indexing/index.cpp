// Advanced indexing: reading and writing through lists of index tensors, as torch's x[i, :, j].
#include "params/indexing.h"
#include "loops/iterate.h"
#include "loops/promote.h"

#include <algorithm>

namespace aclsim {
namespace {

// One dimension of the result: walked along a dim of self, or along the index tensors.
struct Plan {
  int self_arg, list_arg, other_arg;  // other: values or out
  bool accumulate, writes;
  int64_t points;             // elements of the broadcast index shape
  Shape index;                // that shape
  Shape result;
  int index_at;               // where the index dims stand in the result
  int64_t self_strides[kMaxRank];  // per result dim; 0 for index dims
  int masks;                  // bool index tensors: points are known only on the stream
  bool empties_index;         // empty tensors that could be either stand for empty indices
};

bool is_index_dtype(aclDataType d) { return d == ACL_INT64 || d == ACL_INT32; }

// Clients hand an empty tensor of self's dtype for a full slice; where self's dtype is that of an
// index, it may be either. Where no index has elements, such ones are indices.
bool is_slice(const Call& c, const Plan& p, int64_t i) {
  const Span<Tensor*> all = c.tensors(p.list_arg);
  const Tensor* t = i < all.size ? all[i] : nullptr;
  if (!t) return true;
  if (t->numel() != 0 || t->rank != 1) return false;
  if (t->dtype == ACL_BOOL) return c.tensor(p.self_arg).numel() != 0;  // as a mask it fits nothing
  if (!is_index_dtype(t->dtype)) return true;
  if (p.empties_index) return false;
  for (const Tensor* other : all) {
    if (other && other->numel() != 0) return true;
  }
  return false;
}

aclnnStatus refuse_index(const Call& c, int list, int64_t i) {
  const Tensor& t = *c.tensors(list)[i];
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of tensor %lld in %s doesn't fit the others.",
                shape_text(t), static_cast<long long>(i), c.name(list));
}

// How many dims of self the i-th entry consumes.
int consumed(const Call& c, const Plan& p, int64_t i) {
  if (is_slice(c, p, i)) return 1;
  const Tensor& t = *c.tensors(p.list_arg)[i];
  return t.dtype == ACL_BOOL ? std::max(t.rank, 1) : 1;
}

// Counts set elements of a mask. Phase 1 can't read device memory, so only run() calls it.
int64_t count_true(const Tensor& mask) {
  int64_t n = 0;
  Walker at(mask.rank, mask.dims);
  for (int64_t i = mask.numel(); i > 0; --i, at.next()) {
    n += mask.ptr<bool>()[at.offset(mask.strides)];
  }
  return n;
}

// Which dims of self are indexed, from the first to the last.
struct Indexed {
  bool at[kMaxRank] = {};
  int first = -1, last = -1;

  void mark(int dim, int count) {
    std::fill_n(at + dim, count, true);
    if (first < 0) first = dim;
    last = dim + count - 1;
  }
  bool adjacent() const {
    for (int d = first; d <= last; ++d) {
      if (d < 0 || !at[d]) return false;
    }
    return first >= 0;
  }
};

// Takes the i-th entry, which starts at dim `dim` of self.
aclnnStatus take_entry(const Call& c, Plan& p, int64_t i, int dim) {
  const Tensor &self = c.tensor(p.self_arg), &t = *c.tensors(p.list_arg)[i];
  if (t.dtype != ACL_BOOL) {
    return broadcast(p.index, t) ? ACLNN_SUCCESS : refuse_index(c, p.list_arg, i);
  }
  ++p.masks;
  if (t.rank == 0) return refuse_index(c, p.list_arg, i);
  for (int d = 0; d < t.rank; ++d) {
    if (t.dims[d] != self.dims[dim + d]) return refuse_index(c, p.list_arg, i);
  }
  return ACLNN_SUCCESS;
}

// Result: dims before, index dims, dims after; index dims lead when they are not adjacent.
void order_result(const Call& c, Plan& p, const Indexed& indexed) {
  const Tensor& self = c.tensor(p.self_arg);
  const int place = indexed.adjacent() ? indexed.first : 0;
  for (int d = 0; d <= self.rank; ++d) {
    if (d == place) {
      p.index_at = p.result.rank;
      p.result.rank += p.masks ? 1 : p.index.rank;
    }
    if (d == self.rank || indexed.at[d]) continue;
    if (p.result.rank >= kMaxRank) {
      p.result.rank = kMaxRank + 1;
      return;
    }
    p.result.dims[p.result.rank] = self.dims[d];
    p.self_strides[p.result.rank++] = self.strides[d];
  }
}

aclnnStatus lay_out(const Call& c, Plan& p) {
  const Tensor& self = c.tensor(p.self_arg);
  Indexed indexed;
  int dim = 0;
  for (int64_t i = 0; i < c.tensors(p.list_arg).size; ++i) {
    const int takes = consumed(c, p, i);
    if (dim + takes > self.rank) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s indexes more dims than %s %s has.",
                    c.name(p.list_arg), c.name(p.self_arg), shape_text(self));
    }
    if (!is_slice(c, p, i)) {
      ACL_RETURN_IF_FAILED(take_entry(c, p, i, dim));
      indexed.mark(dim, takes);
    }
    dim += takes;
  }
  if (indexed.first >= 0) order_result(c, p, indexed);
  if (indexed.first >= 0 && p.result.rank <= kMaxRank) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should index 1 to 8 dims.", c.name(p.list_arg));
}

void set_index_dims(Plan& p, const Shape& index) {
  p.index = index;
  p.points = 1;
  for (int i = 0; i < index.rank; ++i) {
    p.result.dims[p.index_at + i] = index.dims[i];
    p.self_strides[p.index_at + i] = 0;
    p.points *= index.dims[i];
  }
}

aclError out_of_range(const Call& c, int64_t value, int dim, int64_t size) {
  return c.trap(507015, "index %lld is out of bounds for dimension %d with size %lld",
                static_cast<long long>(value), dim, static_cast<long long>(size));
}

// Adds each point's offset along `dim` from an integer index tensor.
aclError add_index(const Call& c, const Plan& p, const Tensor& t, int dim, int64_t* offsets) {
  const Tensor& self = c.tensor(p.self_arg);
  Loop loop = loop_over(dense(nullptr, ACL_INT64, p.index.dims, p.index.rank));
  loop.add(t);
  const int64_t* strides = loop.operands[1].strides;
  const bool line = p.index.rank == 1 && t.dtype == ACL_INT64;  // as mostly
  Walker at(p.index.rank, p.index.dims);
  for (int64_t i = 0; i < p.points; ++i) {
    int64_t given;
    if (line) {
      given = t.ptr<int64_t>()[i * strides[0]];
    } else {
      given = load_one<int64_t>(t.data, t.dtype, t.offset + at.offset(strides));
      at.next();
    }
    const int64_t value = given < 0 ? given + self.dims[dim] : given;
    if (value < 0 || value >= self.dims[dim]) return out_of_range(c, given, dim, self.dims[dim]);
    offsets[i] += value * self.strides[dim];
  }
  return ACL_SUCCESS;
}

void add_mask(const Tensor& self, const Tensor& mask, int dim, int64_t* offsets, bool repeat,
              int64_t points) {
  if (repeat && mask.rank > 0) {
    // A mask with one set element broadcasts against longer indices.
    Walker at(mask.rank, mask.dims);
    for (int64_t i = mask.numel(); i > 0; --i, at.next()) {
      if (!mask.ptr<bool>()[at.offset(mask.strides)]) continue;
      for (int64_t k = 0; k < points; ++k) offsets[k] += at.offset(self.strides + dim);
      return;
    }
  }
  Walker at(mask.rank, mask.dims);
  int64_t k = 0;
  for (int64_t i = mask.numel(); i > 0; --i, at.next()) {
    if (mask.ptr<bool>()[at.offset(mask.strides)]) offsets[k++] += at.offset(self.strides + dim);
  }
}

// Resolves masks into the index shape, which is one dim of as many points as they have set.
aclError resolve_masks(const Call& c, Plan& p) {
  if (!p.masks) return ACL_SUCCESS;
  Shape index = p.index;
  for (const Tensor* t : c.tensors(p.list_arg)) {
    if (!t || t->dtype != ACL_BOOL) continue;
    const int64_t n = count_true(*t);
    if (!broadcast(index, dense(nullptr, ACL_INT64, &n, 1))) {
      return c.trap(507015, "a mask selects %lld elements, which don't broadcast with %s",
                    static_cast<long long>(n), shape_text(index.dims, index.rank));
    }
  }
  set_index_dims(p, index);
  return ACL_SUCCESS;
}

aclError fill_offsets(const Call& c, const Plan& p, int64_t* offsets) {
  std::fill_n(offsets, p.points, 0);
  const Tensor& self = c.tensor(p.self_arg);
  const Span<Tensor*> list = c.tensors(p.list_arg);
  int dim = 0;
  for (int64_t i = 0; i < list.size; ++i) {
    const int takes = consumed(c, p, i);
    if (!is_slice(c, p, i)) {
      const Tensor& t = *list[i];
      if (t.dtype == ACL_BOOL) {
        add_mask(self, t, dim, offsets, count_true(t) == 1 && p.points != 1, p.points);
      } else if (aclError error = add_index(c, p, t, dim, offsets)) {
        return error;
      }
    }
    dim += takes;
  }
  return ACL_SUCCESS;
}

template <class C>
void accumulate_run(const Tensor& self, int64_t at, int64_t stride, const Tensor& values,
                    int64_t from, int64_t value_stride, int64_t n) {
  C sum[kBlock], add[kBlock];
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t m = std::min(kBlock, n - done);
    load(sum, self.data, self.dtype, at + done * stride, stride, m);
    load(add, values.data, values.dtype, from + done * value_stride, value_stride, m);
    for (int64_t i = 0; i < m; ++i) sum[i] += add[i];
    store(sum, self.data, self.dtype, at + done * stride, stride, m);
  }
}

using Accumulate = void (*)(const Tensor&, int64_t, int64_t, const Tensor&, int64_t, int64_t,
                            int64_t);
Accumulate accumulate_for(aclDataType dtype) {
  switch (domain_of(dtype)) {
    case Domain::Float: return accumulate_run<float>;
    case Domain::Double: return accumulate_run<double>;
    case Domain::Integer: return accumulate_run<int64_t>;
    default: return accumulate_run<c128>;
  }
}

// Moves single elements, one for each point.
template <class T>
void move_points(const Plan& p, T* self, const int64_t* offsets, T* other, int64_t step,
                 int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    if (p.writes) {
      self[offsets[i]] = other[i * step];
    } else {
      other[i * step] = self[offsets[i]];
    }
  }
}

// Moves runs along the innermost result dim; `other` has strides per result dim.
void move_runs(const Call& c, const Plan& p, const int64_t* offsets, const int64_t* other_strides,
               int64_t begin, int64_t end) {
  const Tensor &self = c.tensor(p.self_arg), &other = c.tensor(p.other_arg);
  const size_t bytes = dtype_size(self.dtype);
  const int index_end = p.index_at + p.index.rank;
  const bool sliced = p.result.rank > index_end;  // the last dim lies in self
  const int outer = sliced ? p.result.rank - 1 : p.result.rank;
  const int64_t run = sliced ? p.result.dims[outer] : 1;
  const int64_t self_step = sliced ? p.self_strides[outer] : 0;
  const int64_t other_step = sliced ? other_strides[outer] : 0;
  const Accumulate accumulate = p.accumulate ? accumulate_for(self.dtype) : nullptr;
  if (p.result.rank == 1 && p.index.rank == 1 && !accumulate) {
    const auto points = [&](auto tag) {
      using T = decltype(tag);
      move_points(p, self.ptr<T>(), offsets, other.ptr<T>(), other_strides[0], begin, end);
    };
    switch (bytes) {
      case 1: return points(uint8_t{});
      case 2: return points(uint16_t{});
      case 4: return points(uint32_t{});
      case 8: return points(uint64_t{});
      default: break;
    }
  }
  char* base = static_cast<char*>(self.data);
  char* other_base = static_cast<char*>(other.data);
  Walker at(outer, p.result.dims, begin);
  for (int64_t i = begin; i < end; ++i, at.next()) {
    int64_t point = 0;
    for (int d = p.index_at; d < index_end; ++d) point = point * p.result.dims[d] + at.index[d];
    const int64_t mine = self.offset + offsets[point] + at.offset(p.self_strides);
    const int64_t theirs = other.offset + at.offset(other_strides);
    char* self_at = base + mine * static_cast<int64_t>(bytes);
    char* other_at = other_base + theirs * static_cast<int64_t>(bytes);
    if (accumulate) {
      accumulate(self, mine, self_step, other, theirs, other_step, run);
    } else if (p.writes) {
      copy_elements(self_at, self_step, other_at, other_step, run, bytes);
    } else {
      copy_elements(other_at, other_step, self_at, self_step, run, bytes);
    }
  }
}

aclError run_index(Call& c) {
  Plan p = c.get<Plan>();
  if (aclError error = resolve_masks(c, p)) return error;
  const Tensor& other = c.tensor(p.other_arg);
  Shape shape = p.result;
  if (p.masks && (!broadcast(shape, other) || shape.rank != p.result.rank ||
                  !std::equal(shape.dims, shape.dims + shape.rank, p.result.dims))) {
    return c.trap(507015, "shape %s of %s doesn't fit the %lld elements that the masks select",
                  shape_text(other), c.name(p.other_arg), static_cast<long long>(p.points));
  }
  int64_t runs = 1;
  for (int i = 0; i < p.result.rank; ++i) runs *= p.result.dims[i];
  if (p.points == 0) return ACL_SUCCESS;
  if (runs && p.result.rank > p.index_at + p.index.rank) runs /= p.result.dims[p.result.rank - 1];
  int64_t* offsets = static_cast<int64_t*>(c.workspace);
  if (aclError error = fill_offsets(c, p, offsets)) return error;
  if (runs == 0) return ACL_SUCCESS;
  Loop loop = loop_over(dense(nullptr, ACL_INT64, p.result.dims, p.result.rank));
  loop.add(other);
  const int64_t* strides = loop.operands[1].strides;
  if (p.writes) {
    move_runs(c, p, offsets, strides, 0, runs);  // in order: the last duplicate wins
  } else {
    parallel_for(runs, 1024, [&](int64_t begin, int64_t end) {
      move_runs(c, p, offsets, strides, begin, end);
    });
  }
  return ACL_SUCCESS;
}

aclnnStatus plan_index(Call& c, Plan& p) {
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, p.other_arg, p.self_arg));
  ACL_RETURN_IF_FAILED(lay_out(c, p));
  int64_t points = 1;
  if (!p.masks) {
    set_index_dims(p, p.index);
    points = p.points;
  } else {
    for (const Tensor* t : c.tensors(p.list_arg)) {
      if (t) points = std::max(points, t->numel());
    }
  }
  c.workspace_size = points * sizeof(int64_t);
  return ACLNN_SUCCESS;
}

bool same_shape(const Shape& shape, const Tensor& t) {
  return t.rank == shape.rank && std::equal(t.dims, t.dims + t.rank, shape.dims);
}
// Whether the other operand has the shape that the plan comes to, or broadcasts to it to be written.
bool fits(const Call& c, const Plan& p) {
  if (!p.writes) return same_shape(p.result, c.tensor(p.other_arg));
  Shape shape = p.result;
  return broadcast(shape, c.tensor(p.other_arg)) && shape.rank == p.result.rank &&
         std::equal(shape.dims, shape.dims + shape.rank, p.result.dims);
}
bool has_empties(const Call& c, const Plan& p) {
  for (const Tensor* t : c.tensors(p.list_arg)) {
    if (t && t->numel() == 0 && is_index_dtype(t->dtype)) return true;
  }
  return false;
}
Plan fresh_plan() {
  Plan p = {};
  p.list_arg = 1;
  p.other_arg = 2;
  return p;
}
// Plans with empty indices as full slices first, and as indices where the shapes say so.
aclnnStatus choose_plan(Call& c, const Plan& fresh) {
  Plan& p = c.make<Plan>();
  p = fresh;
  const aclnnStatus sliced = plan_index(c, p);
  if (!has_empties(c, p) || (sliced == ACLNN_SUCCESS && (p.masks || fits(c, p)))) return sliced;
  const Plan before = p;
  p = fresh;
  p.empties_index = true;
  if (plan_index(c, p) == ACLNN_SUCCESS && fits(c, p)) return ACLNN_SUCCESS;
  p = before;
  return sliced;
}

// Arguments: (selfRef, indices, values, accumulate, unsafe).
aclnnStatus check_index_put(Call& c) {
  using P = params::IndexPutImpl;

  Plan fresh = fresh_plan();
  fresh.writes = true;
  fresh.accumulate = c.flag(P::accumulate);
  ACL_RETURN_IF_FAILED(choose_plan(c, fresh));
  const Plan& p = c.get<Plan>();
  if (p.masks || fits(c, p)) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of values can't broadcast to %s.",
                shape_text(c.tensor(P::values)), shape_text(p.result.dims, p.result.rank));
}

// Arguments: (self, indices, out).
aclnnStatus check_index(Call& c) {
  using P = params::Index;

  ACL_RETURN_IF_FAILED(choose_plan(c, fresh_plan()));
  const Plan& p = c.get<Plan>();
  return p.masks ? ACLNN_SUCCESS : expect_shape(c, P::out, p.result);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnIndex, check_index, run_index)
ACLNN_OP(aclnnIndexPutImpl, check_index_put, run_index)
