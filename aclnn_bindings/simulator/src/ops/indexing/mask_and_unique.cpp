// Ops whose result size depends on values: masks read and written, nonzero places, unique values.
#include "params/indexing.h"
#include "loops/indices.h"
#include "loops/promote.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace aclsim {
namespace {

bool nonzero_at(const Tensor& t, const Walker& at) {
  const int64_t offset = t.offset + at.offset(t.strides);
  return is_complex(t.dtype) ? load_one<c128>(t.data, t.dtype, offset) != c128(0)
                             : load_one<double>(t.data, t.dtype, offset) != 0;
}
aclError too_small(const Call& c, int out, int64_t needed) {
  return c.trap(507015, "%s holds %lld elements, the result has %lld", c.name(out),
                static_cast<long long>(c.tensor(out).storage_numel - c.tensor(out).offset),
                static_cast<long long>(needed));
}
bool fits(const Tensor& out, int64_t n) { return out.offset + n <= out.storage_numel; }

// (self, out): one row of coordinates per nonzero element, or one column (V2).
template <bool Columns>
aclnnStatus check_nonzero(Call& c) {
  using P = params::Nonzero;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  const int64_t width = out.rank == 2 ? out.dims[Columns ? 0 : 1] : -1;
  if (width == self.rank) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "out should have %d coordinates per element, its shape is %s.", self.rank,
                shape_text(out));
}
template <bool Columns>
aclError run_nonzero(Call& c) {
  using P = params::Nonzero;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  std::vector<int64_t> found;
  Walker at(self.rank, self.dims);
  int64_t count = 0;
  for (int64_t i = self.numel(); i > 0; --i, at.next()) {
    if (!nonzero_at(self, at)) continue;
    found.insert(found.end(), at.index, at.index + self.rank);
    ++count;
  }
  if (!fits(out, count * self.rank)) return too_small(c, P::out, count * self.rank);
  const int64_t dims[] = {count, self.rank}, turned[] = {self.rank, count};
  Tensor to = dense(out.data, out.dtype, Columns ? turned : dims, 2);
  to.offset = out.offset;
  Tensor from = dense(found.data(), ACL_INT64, dims, 2);
  if (Columns) {
    std::swap(from.dims[0], from.dims[1]);
    std::swap(from.strides[0], from.strides[1]);
  }
  copy_tensor(to, from);
  c.resize(P::out, Columns ? turned : dims, 2);
  return ACL_SUCCESS;
}

// (self, mask, out): the elements of self that a broadcast mask selects, in order.
aclnnStatus check_masked_select(Call& c) {
  using P = params::MaskedSelect;

  Shape& shape = c.make<Shape>();
  shape = shape_of(c.tensor(P::self));
  if (!broadcast(shape, c.tensor(P::mask))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s of self and %s of mask can't broadcast.",
                  shape_text(c.tensor(P::self)), shape_text(c.tensor(P::mask)));
  }
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  if (c.tensor(P::out).rank == 1) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "out should have 1 dim, its shape is %s.",
                shape_text(c.tensor(P::out)));
}
aclError run_masked_select(Call& c) {
  using P = params::MaskedSelect;

  const Tensor &self = c.tensor(P::self), &mask = c.tensor(P::mask), &out = c.tensor(P::out);
  const Shape& s = c.get<Shape>();
  Loop loop = loop_over(dense(nullptr, ACL_INT8, s.dims, s.rank));
  loop.add(self);
  loop.add(mask);
  const Operand &from = loop.operands[1], &at_mask = loop.operands[2];
  int64_t count = 0;
  bool enough = true;
  with_width(dtype_size(self.dtype), [&](auto width) {
    using T = decltype(width);
    const T* source = static_cast<const T*>(self.data) + self.offset;
    T* target = static_cast<T*>(out.data) + out.offset;
    Walker at(s.rank, s.dims);
    for (int64_t i = loop.numel(); i > 0; --i, at.next()) {
      if (!load_one<int64_t>(mask.data, mask.dtype, mask.offset + at.offset(at_mask.strides)))
        continue;
      enough = fits(out, count + 1);
      if (!enough) return;
      target[count++] = source[at.offset(from.strides)];
    }
  });
  if (!enough) return too_small(c, P::out, loop.numel());
  c.resize(P::out, &count, 1);
  return ACL_SUCCESS;
}

// (selfRef, mask, source): source's elements in order go where the mask is set.
aclnnStatus check_masked_scatter(Call& c) {
  using P = params::InplaceMaskedScatter;

  Shape shape = shape_of(c.tensor(P::selfRef));
  if (!broadcast(shape, c.tensor(P::mask))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s of selfRef and %s of mask can't broadcast.",
                  shape_text(c.tensor(P::selfRef)), shape_text(c.tensor(P::mask)));
  }
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::source, P::selfRef));
  return expect_shape(c, P::selfRef, shape);
}
aclError run_masked_scatter(Call& c) {
  using P = params::InplaceMaskedScatter;

  const Tensor &self = c.tensor(P::selfRef), &mask = c.tensor(P::mask),
               &source = c.tensor(P::source);
  Loop loop = loop_over(self);
  loop.add(mask);
  const int64_t* strides = loop.operands[1].strides;
  const int64_t limit = source.numel();
  int64_t taken = 0;
  const int64_t bytes = static_cast<int64_t>(dtype_size(self.dtype));
  Walker at(self.rank, self.dims), next(source.rank, source.dims);
  for (int64_t i = self.numel(); i > 0; --i, at.next()) {
    if (!load_one<int64_t>(mask.data, mask.dtype, mask.offset + at.offset(strides))) continue;
    if (taken++ == limit) {
      return c.trap(507015, "source has %lld elements, the mask selects more",
                    static_cast<long long>(limit));
    }
    std::memcpy(
        static_cast<char*>(self.data) + (self.offset + at.offset(self.strides)) * bytes,
        static_cast<char*>(source.data) + (source.offset + next.offset(source.strides)) * bytes,
        static_cast<size_t>(bytes));
    next.next();
  }
  return ACL_SUCCESS;
}

// Unique values in order, with the place of each element among them and how often each occurs.
struct Unique {
  std::vector<int64_t> order, inverse, counts, first;
};
// The order of values: NaN last, complex numbers by their real parts first.
template <class C>
bool before(C a, C b) {
  if constexpr (std::is_same<C, c128>::value) {
    return before(a.real(), b.real()) || (a.real() == b.real() && before(a.imag(), b.imag()));
  } else {
    return a < b || (b != b && a == a);
  }
}
template <class C>
Unique unique_of(const C* x, int64_t n, bool consecutive) {
  Unique u;
  u.order.resize(static_cast<size_t>(n));
  u.inverse.resize(static_cast<size_t>(n));
  std::iota(u.order.begin(), u.order.end(), int64_t{0});
  if (!consecutive) {
    std::stable_sort(u.order.begin(), u.order.end(),
                     [x](int64_t a, int64_t b) { return before(x[a], x[b]); });
  }
  for (size_t i = 0; i < u.order.size(); ++i) {
    const int64_t k = u.order[i];
    if (i == 0 || x[k] != x[u.order[i - 1]]) {
      u.first.push_back(k);
      u.counts.push_back(0);
    }
    ++u.counts.back();
    u.inverse[static_cast<size_t>(k)] = static_cast<int64_t>(u.first.size()) - 1;
  }
  return u;
}
Unique unique_of(const Tensor& self, bool consecutive) {
  Unique u;
  with_number(self.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const int64_t n = self.numel();
    std::vector<C> flat(static_cast<size_t>(n));
    copy_tensor(dense(flat.data(), dtype_of<C>(), self.dims, self.rank), self);
    u = unique_of(flat.data(), n, consecutive);
  });
  return u;
}
void put_all(const Tensor& out, std::vector<int64_t>& numbers) {
  const int64_t n = static_cast<int64_t>(numbers.size());
  Tensor to = dense(out.data, out.dtype, &n, 1);
  to.offset = out.offset;
  copy_tensor(to, dense(numbers.data(), ACL_INT64, &n, 1));
}

// (self, flags..., valueOut, inverseOut[, countsOut]); the first output stands at `Values`.
template <int Values, int Counts, bool Consecutive>
aclError run_unique(Call& c) {
  using P = params::Unique;

  const Tensor &self = c.tensor(P::self), &values = c.tensor(Values);
  Unique u = unique_of(self, Consecutive);
  const int64_t n = static_cast<int64_t>(u.first.size());
  if (!fits(values, n)) return too_small(c, Values, n);
  const int64_t bytes = static_cast<int64_t>(dtype_size(self.dtype));
  for (int64_t i = 0; i < n; ++i) {
    const Walker at(self.rank, self.dims, u.first[static_cast<size_t>(i)]);
    std::memcpy(static_cast<char*>(values.data) + (values.offset + i) * bytes,
                static_cast<char*>(self.data) + (self.offset + at.offset(self.strides)) * bytes,
                static_cast<size_t>(bytes));
  }
  c.resize(Values, &n, 1);
  const Tensor* inverse = c.maybe(Values + 1);
  if (inverse && inverse->numel() == self.numel()) {
    copy_tensor(*inverse, dense(u.inverse.data(), ACL_INT64, inverse->dims, inverse->rank));
  }
  const Tensor* counts = Counts > 0 ? c.maybe(Counts > 0 ? Counts : P::self) : nullptr;
  if (counts && counts->numel() > 0) {
    if (!fits(*counts, n)) return too_small(c, Counts, n);
    put_all(*counts, u.counts);
    c.resize(Counts, &n, 1);
  }
  return ACL_SUCCESS;
}
template <int Values>
aclnnStatus check_unique(Call& c) {
  using P = params::Unique;

  return expect_same_dtype(c, Values, P::self);
}
// Slices along an axis as rows, and which of them are alike.
Unique unique_slices(const Tensor& self, int axis, bool consecutive) {
  Unique u;
  with_number(self.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    Tensor first = self;  // the axis leads, the others keep their order
    std::rotate(first.dims, first.dims + axis, first.dims + axis + 1);
    std::rotate(first.strides, first.strides + axis, first.strides + axis + 1);
    std::vector<C> flat(static_cast<size_t>(self.numel()));
    if (!flat.empty()) {
      copy_tensor(dense(flat.data(), dtype_of<C>(), first.dims, first.rank), first);
    }
    const int64_t n = self.dims[axis], width = n ? static_cast<int64_t>(flat.size()) / n : 0;
    const auto row = [&](int64_t k) { return flat.begin() + k * width; };
    u.order.resize(static_cast<size_t>(n));
    u.inverse.resize(static_cast<size_t>(n));
    std::iota(u.order.begin(), u.order.end(), int64_t{0});
    if (!consecutive) {
      std::stable_sort(u.order.begin(), u.order.end(), [&](int64_t a, int64_t b) {
        return std::lexicographical_compare(row(a), row(a) + width, row(b), row(b) + width,
                                            before<C>);
      });
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t k = u.order[i];
      if (i == 0 || !std::equal(row(k), row(k) + width, row(u.order[i - 1]))) {
        u.first.push_back(k);
        u.counts.push_back(0);
      }
      ++u.counts.back();
      u.inverse[static_cast<size_t>(k)] = static_cast<int64_t>(u.first.size()) - 1;
    }
  });
  return u;
}
Tensor slice_of(const Tensor& t, int axis, int64_t k) {
  Tensor v = t;
  v.offset += k * t.strides[axis];
  v.dims[axis] = 1;
  return v;
}
// (self, ..., dim, valueOut, inverseOut, countsOut) with dim at `Dim`; outputs follow it.
template <int Dim, bool Consecutive>
aclError run_unique_dim(Call& c) {
  using P = params::UniqueDim;

  const Tensor &self = c.tensor(P::self), &values = c.tensor(Dim + 1);
  const int axis = static_cast<int>(c.integer(Dim) < 0 ? c.integer(Dim) + self.rank : c.integer(Dim));
  Unique u = unique_slices(self, axis, Consecutive);
  const int64_t n = static_cast<int64_t>(u.first.size());
  Shape shape = shape_of(self);
  shape.dims[axis] = n;
  Tensor to = dense(values.data, values.dtype, shape.dims, shape.rank);
  to.offset = values.offset;
  if (!fits(values, to.numel())) return too_small(c, Dim + 1, to.numel());
  for (int64_t i = 0; i < n && to.numel() > 0; ++i) {
    copy_tensor(slice_of(to, axis, i), slice_of(self, axis, u.first[static_cast<size_t>(i)]));
  }
  c.resize(Dim + 1, shape.dims, shape.rank);
  const Tensor *inverse = c.maybe(Dim + 2), *counts = c.maybe(Dim + 3);
  if (inverse && inverse->numel() == static_cast<int64_t>(u.inverse.size())) {
    copy_tensor(*inverse, dense(u.inverse.data(), ACL_INT64, inverse->dims, inverse->rank));
  }
  if (counts && counts->numel() > 0) {
    if (!fits(*counts, n)) return too_small(c, Dim + 3, n);
    put_all(*counts, u.counts);
    c.resize(Dim + 3, &n, 1);
  }
  return ACL_SUCCESS;
}
bool names_dim(const Call& c, int arg) {
  using P = params::UniqueDim;

  return c.tensor(P::self).rank > 0 && c.integer(arg) >= -c.tensor(P::self).rank &&
         c.integer(arg) < c.tensor(P::self).rank;
}
// (self, returnInverse, returnCounts, dim, valueOut, inverseOut, countsOut): a dim that self lacks
// (clients pass 1000) means all elements.
aclError run_consecutive(Call& c) {
  using P = params::UniqueConsecutive;

  return names_dim(c, P::dim) && c.tensor(P::self).rank > 1
             ? run_unique_dim<P::dim, true>(c)
             : run_unique<P::valueOut, P::countsOut, true>(c);
}
aclnnStatus check_unique_dim(Call& c) {
  using P = params::UniqueDim;

  if (names_dim(c, P::dim)) return expect_same_dtype(c, P::valueOut, P::self);
  return c.fail(ACLNN_ERR_PARAM_INVALID, "dim %lld is not one of self, whose shape is %s.",
                static_cast<long long>(c.integer(P::dim)), shape_text(c.tensor(P::self)));
}

}  // namespace
}  // namespace aclsim

ACLNN_OP_FLAGS(aclnnNonzero, check_nonzero<false>, run_nonzero<false>, kDynamicOut)
ACLNN_OP_FLAGS(aclnnNonzeroV2, check_nonzero<true>, run_nonzero<true>, kDynamicOut)
ACLNN_OP_FLAGS(aclnnMaskedSelect, check_masked_select, run_masked_select, kDynamicOut)
ACLNN_OP(aclnnInplaceMaskedScatter, check_masked_scatter, run_masked_scatter)
ACLNN_OP_FLAGS(aclnnUnique, check_unique<params::Unique::valueOut>,
               (run_unique<params::Unique::valueOut, -1, false>), kDynamicOut)
ACLNN_OP_FLAGS(aclnnUnique2, check_unique<params::Unique2::valueOut>,
               (run_unique<params::Unique2::valueOut, params::Unique2::countsOut, false>),
               kDynamicOut)
ACLNN_OP_FLAGS(aclnnUniqueConsecutive, check_unique<params::UniqueConsecutive::valueOut>,
               run_consecutive, kDynamicOut)
ACLNN_OP_FLAGS(aclnnUniqueDim, check_unique_dim, (run_unique_dim<params::UniqueDim::dim, false>),
               kDynamicOut)
