// Moving elements about without looking at them: joins, splits, repeats, permutations, flips.
#include "params/shape.h"
#include "loops/iterate.h"
#include "loops/promote.h"
#include "loops/rows.h"
#include "loops/members.h"

namespace aclsim {
namespace {

// The part of `t` that lies in [begin, begin + size) along `axis`.
Tensor part(const Tensor& t, int axis, int64_t begin, int64_t size) {
  Tensor v = t;
  v.offset += begin * t.strides[axis];
  v.dims[axis] = size;
  return v;
}
bool legacy_empty(const Tensor& t) { return t.rank == 1 && t.dims[0] == 0; }

int64_t& axis_state(Call& c) { return c.make<int64_t>(); }
int axis_of(const Call& c) { return static_cast<int>(c.get<int64_t>()); }

// (tensors, dim, out): members cast to out's dtype; shapes agree but for dim.
aclnnStatus check_cat(Call& c) {
  using P = params::Cat;

  ACL_RETURN_IF_FAILED(expect_members(c, P::tensors));
  const Tensor* first = nullptr;
  for (const Tensor* t : c.tensors(P::tensors)) {
    if (!legacy_empty(*t)) first = first ? first : t;
  }
  if (!first) first = c.tensors(P::tensors)[0];
  int64_t& axis = axis_state(c) = c.integer(P::dim);
  if (first->rank == 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "0-d tensors can't be concatenated.");
  }
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, first->rank));
  Shape shape = shape_of(*first);
  shape.dims[axis] = 0;
  for (const Tensor* t : c.tensors(P::tensors)) {
    if (legacy_empty(*t)) continue;
    bool fits = t->rank == shape.rank;
    for (int i = 0; fits && i < shape.rank; ++i) fits = i == axis || t->dims[i] == shape.dims[i];
    if (!fits) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s in tensors doesn't fit %s along dim %lld.",
                    shape_text(*t), shape_text(*first), static_cast<long long>(axis));
    }
    shape.dims[axis] += t->dims[axis];
  }
  return expect_shape(c, P::out, shape);
}
void run_cat(Call& c) {
  using P = params::Cat;

  const Tensor& out = c.tensor(P::out);
  int64_t at = 0;
  for (const Tensor* t : c.tensors(P::tensors)) {
    if (legacy_empty(*t)) continue;
    const int64_t size = t->dims[axis_of(c)];
    copy_tensor(part(out, axis_of(c), at, size), *t);
    at += size;
  }
}

// (tensors, dim, out): along a new axis.
aclnnStatus check_stack(Call& c) {
  using P = params::Stack;

  ACL_RETURN_IF_FAILED(expect_members(c, P::tensors));
  const Tensor& first = *c.tensors(P::tensors)[0];
  int64_t& axis = axis_state(c) = c.integer(P::dim);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, first.rank + 1));
  for (const Tensor* t : c.tensors(P::tensors)) {
    if (t->same_shape(first)) continue;
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s in tensors should equal %s.", shape_text(*t),
                  shape_text(first));
  }
  Shape shape;
  shape.rank = first.rank + 1;
  for (int i = 0; i < shape.rank; ++i) {
    shape.dims[i] = i == axis ? c.tensors(P::tensors).size : first.dims[i < axis ? i : i - 1];
  }
  return expect_shape(c, P::out, shape);
}
void run_stack(Call& c) {
  using P = params::Stack;

  int64_t at = 0;
  for (const Tensor* t : c.tensors(P::tensors)) {
    copy_tensor(part(c.tensor(P::out), axis_of(c), at++, 1), unsqueezed(*t, axis_of(c)));
  }
}

// Members of the list argument `out` take consecutive parts of self along the axis.
void run_split(Call& c, int out) {
  using P = params::SplitTensor;

  int64_t at = 0;
  for (const Tensor* t : c.tensors(out)) {
    const int64_t size = t->dims[axis_of(c)];
    copy_tensor(*t, part(c.tensor(P::self), axis_of(c), at, size));
    at += size;
  }
}
aclnnStatus expect_part(const Call& c, int out, int64_t i, int64_t size) {
  using P = params::SplitTensor;

  Shape shape = shape_of(c.tensor(P::self));
  shape.dims[axis_of(c)] = size;
  const Tensor& t = *c.tensors(out)[i];
  if (t.rank == shape.rank && std::equal(t.dims, t.dims + t.rank, shape.dims)) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape of %s[%lld] should be %s, but current is %s.",
                c.name(out), static_cast<long long>(i), shape_text(shape.dims, shape.rank),
                shape_text(t));
}
// (self, sizes, dim, out); sizes an int array or one size for all but the last.
aclnnStatus check_split(Call& c) {
  using P = params::SplitWithSize;

  ACL_RETURN_IF_FAILED(expect_members(c, P::out));
  int64_t& axis = axis_state(c) = c.integer(P::dim);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, c.tensor(P::self).rank));
  const bool listed = c.args[P::splitSize].kind == ArgKind::IntArray;
  const int64_t members = c.tensors(P::out).size, whole = axis_size(c.tensor(P::self), axis_of(c));
  if (c.tensor(P::self).rank == 0 || (listed && c.ints(P::splitSize).size != members)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s doesn't fit the %lld tensors of %s.",
                  c.name(P::splitSize), static_cast<long long>(members), c.name(P::out));
  }
  int64_t sum = 0;
  for (int64_t i = 0; i < members; ++i) {
    const int64_t size = listed
                             ? c.ints(P::splitSize)[i]
                             : std::min(c.integer(params::SplitTensor::splitSections), whole - sum);
    ACL_RETURN_IF_FAILED(expect_part(c, P::out, i, size));
    sum += size;
  }
  if (sum == whole) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "The sizes sum to %lld, self has %lld along dim.",
                static_cast<long long>(sum), static_cast<long long>(whole));
}
void run_split_row(Call& c) {
  using P = params::SplitTensor;
  return run_split(c, P::out);
}

// (self, repeats, out): tiles; self's missing leading dims count as 1.
aclnnStatus check_repeat(Call& c) {
  using P = params::Repeat;

  const Tensor& self = c.tensor(P::self);
  const Span<const int64_t> repeats = c.ints(P::repeats);
  if (repeats.size < self.rank || repeats.size > kMaxRank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "repeats has %lld values, self has %d dims.",
                  static_cast<long long>(repeats.size), self.rank);
  }
  Shape shape;
  shape.rank = static_cast<int>(repeats.size);
  for (int i = 0; i < shape.rank; ++i) {
    const int from = i - (shape.rank - self.rank);
    if (repeats[i] < 0) return c.fail(ACLNN_ERR_PARAM_INVALID, "repeats has a negative value.");
    shape.dims[i] = repeats[i] * (from >= 0 ? self.dims[from] : 1);
  }
  return expect_shape(c, P::out, shape);
}
void run_repeat(Call& c) {
  using P = params::Repeat;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  if (out.numel() == 0) return;
  const Span<const int64_t> repeats = c.ints(P::repeats);
  const int rank = out.rank;
  Tensor tile = out;
  for (int i = 0; i < rank; ++i) tile.dims[i] = out.dims[i] / repeats[i];
  Tensor from = self;
  while (from.rank < rank) from = unsqueezed(from, 0);
  Walker at(rank, repeats.data);
  int64_t count = 1, steps[kMaxRank];
  for (int i = 0; i < rank; ++i) {
    count *= repeats[i];
    steps[i] = tile.dims[i] * out.strides[i];
  }
  for (int64_t i = 0; i < count; ++i, at.next()) {
    Tensor to = tile;
    to.offset += at.offset(steps);
    copy_tensor(to, from);
  }
}

aclnnStatus check_permute(Call& c) {
  using P = params::Permute;

  const Tensor& self = c.tensor(P::self);
  const Span<const int64_t> dims = c.ints(P::dims);
  Tensor& v = c.make<Tensor>();
  v = self;
  uint32_t seen = 0;
  Shape shape;
  shape.rank = self.rank;
  if (dims.size != self.rank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "dims has %lld values, self has %d dims.",
                  static_cast<long long>(dims.size), self.rank);
  }
  for (int i = 0; i < self.rank; ++i) {
    int64_t axis = dims[i];
    ACL_RETURN_IF_FAILED(expect_axis(c, P::dims, axis, self.rank));
    if (seen >> axis & 1) return c.fail(ACLNN_ERR_PARAM_INVALID, "dims names an axis twice.");
    seen |= 1u << axis;
    shape.dims[i] = v.dims[i] = self.dims[axis];
    v.strides[i] = self.strides[axis];
  }
  return expect_shape(c, P::out, shape);
}
void run_permute(Call& c) {
  using P = params::Permute;

  Tensor v = c.get<Tensor>();
  v.data = c.tensor(P::self).data;
  copy_tensor(c.tensor(P::out), v);
}

// (self, axis, out): [prod before, prod from].
aclnnStatus check_flatten(Call& c) {
  using P = params::Flatten;

  const Tensor& self = c.tensor(P::self);
  const int64_t axis = c.integer(P::axis) < 0 ? c.integer(P::axis) + self.rank : c.integer(P::axis);
  if (axis < 0 || axis > self.rank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "axis is %lld, self has %d dims.",
                  static_cast<long long>(c.integer(P::axis)), self.rank);
  }
  Shape shape;
  shape.rank = 2;
  shape.dims[0] = shape.dims[1] = 1;
  for (int i = 0; i < self.rank; ++i) shape.dims[i >= axis] *= self.dims[i];
  return expect_shape(c, P::out, shape);
}
void run_flatten(Call& c) {
  using P = params::Flatten;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  Tensor to = dense(out.data, out.dtype, self.dims, self.rank);
  to.offset = out.offset;
  if (out.contiguous()) {
    copy_tensor(to, self);
    return;
  }
  // A strided output: element by element in row-major order of both.
  const size_t bytes = dtype_size(self.dtype);
  Walker a(self.rank, self.dims), b(out.rank, out.dims);
  for (int64_t i = self.numel(); i > 0; --i, a.next(), b.next()) {
    std::memcpy(static_cast<char*>(out.data) + (out.offset + b.offset(out.strides)) * bytes,
                static_cast<char*>(self.data) + (self.offset + a.offset(self.strides)) * bytes,
                bytes);
  }
}

// (self, dims, out): mirrored, as a view with negative strides.
aclnnStatus check_flip(Call& c) {
  using P = params::Flip;

  uint32_t& axes = c.make<uint32_t>();
  for (int64_t given : c.ints(P::dims)) {
    int64_t axis = given;
    ACL_RETURN_IF_FAILED(expect_axis(c, P::dims, axis, c.tensor(P::self).rank));
    axes |= 1u << axis;
  }
  return expect_same_shape(c, P::out, P::self);
}
void run_flip(Call& c) {
  using P = params::Flip;

  Tensor v = c.tensor(P::self);
  if (v.numel() == 0) return;
  for (int i = 0; i < v.rank; ++i) {
    if (!(c.get<uint32_t>() >> i & 1)) continue;
    v.offset += (v.dims[i] - 1) * v.strides[i];
    v.strides[i] = -v.strides[i];
  }
  copy_tensor(c.tensor(P::out), v);
}

// (x, shifts, dims, out); without dims the elements roll as one row.
aclnnStatus check_roll(Call& c) {
  using P = params::Roll;

  const Span<const int64_t> shifts = c.ints(P::shifts), dims = c.ints(P::dims);
  if (dims.size ? shifts.size != dims.size : shifts.size != 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "shifts has %lld values, dims %lld.",
                  static_cast<long long>(shifts.size), static_cast<long long>(dims.size));
  }
  for (int64_t given : dims) {
    int64_t axis = given;
    ACL_RETURN_IF_FAILED(expect_axis(c, P::dims, axis, c.tensor(P::x).rank));
  }
  if (dims.size == 0) {
    c.workspace_size = 2 * c.tensor(P::x).numel() * dtype_size(c.tensor(P::x).dtype);
  }
  return expect_same_shape(c, P::out, P::x);
}
void roll_axes(const Tensor& out, const Tensor& self, const int64_t* shift, int axis) {
  if (axis == out.rank) {
    copy_tensor(out, self);
    return;
  }
  const int64_t n = out.dims[axis], by = ((shift[axis] % n) + n) % n;
  roll_axes(part(out, axis, by, n - by), part(self, axis, 0, n - by), shift, axis + 1);
  if (by) roll_axes(part(out, axis, 0, by), part(self, axis, n - by, by), shift, axis + 1);
}
void run_roll(Call& c) {
  using P = params::Roll;

  const Tensor &self = c.tensor(P::x), &out = c.tensor(P::out);
  const int64_t n = self.numel();
  if (n == 0) return;
  if (self.rank == 0) {
    copy_tensor(out, self);
    return;
  }
  int64_t shift[kMaxRank] = {};
  if (c.ints(P::dims).size) {
    for (int64_t i = 0; i < c.ints(P::dims).size; ++i) {
      shift[(c.ints(P::dims)[i] + self.rank) % self.rank] += c.ints(P::shifts)[i];
    }
    // Parts nest, so each axis' size is read from `out` before it is cut.
    roll_axes(out, self, shift, 0);
    return;
  }
  char* space = static_cast<char*>(c.workspace);
  char* rolled = space + n * dtype_size(self.dtype);
  copy_tensor(dense(space, self.dtype, self.dims, self.rank), self);
  shift[0] = c.ints(P::shifts)[0];
  roll_axes(dense(rolled, self.dtype, &n, 1), dense(space, self.dtype, &n, 1), shift, 0);
  copy_tensor(out, dense(rolled, self.dtype, self.dims, self.rank));
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnCat, check_cat, run_cat)
ACLNN_OP(aclnnStack, check_stack, run_stack)
ACLNN_OP(aclnnSplitWithSize, check_split, run_split_row)
ACLNN_OP(aclnnSplitTensor, check_split, run_split_row)
ACLNN_OP(aclnnRepeat, check_repeat, run_repeat)
ACLNN_OP(aclnnPermute, check_permute, run_permute)
ACLNN_OP(aclnnFlatten, check_flatten, run_flatten)
ACLNN_OP(aclnnFlip, check_flip, run_flip)
ACLNN_OP(aclnnRoll, check_roll, run_roll)
