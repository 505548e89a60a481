// Places of values in sorted boundaries and among others.
#include "params/indexing.h"
#include "loops/promote.h"
#include "loops/rows.h"

#include <vector>

namespace aclsim {
namespace {

// The first place whose value is not less than x (right: is greater than x). As torch has it, NaN
// is behind everything.
template <class T>
int64_t bound(const std::vector<T>& sorted, T x, bool right) {
  const auto before = [&](T v) { return right ? !(v > x) : !(v >= x); };
  return std::partition_point(sorted.begin(), sorted.end(), before) - sorted.begin();
}
template <class T>
std::vector<T> row_of(const Tensor& t, int64_t offset) {
  std::vector<T> row(static_cast<size_t>(axis_size(t, t.rank - 1)));
  load(row.data(), t.data, t.dtype, offset, axis_stride(t, t.rank - 1),
       static_cast<int64_t>(row.size()));
  return row;
}
// Calls f(Tag<T>{}) with a type that holds the values of both: int64 where both are integers.
template <class F>
void with_values(aclDataType a, aclDataType b, F f) {
  if (domain_of(a) == Domain::Integer && domain_of(b) == Domain::Integer) {
    f(Tag<int64_t>{});
  } else {
    f(Tag<double>{});
  }
}

// (sortedSequence, self, outInt32, right, sorter, out): rows of self against rows, or one row.
aclnnStatus check_search(Call& c) {
  using P = params::SearchSorted;

  const Tensor& sorted = c.tensor(P::sortedSequence);
  if (sorted.rank < 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "sortedSequence should have at least 1 dim.");
  }
  if (!c.null(P::sorter)) ACL_RETURN_IF_FAILED(expect_same_shape(c, P::sorter, P::sortedSequence));
  ACL_RETURN_IF_FAILED(expect_dtype(c, P::out, c.flag(P::outInt32) ? ACL_INT32 : ACL_INT64));
  if (c.args[P::self].kind != ArgKind::Tensor) {
    if (c.tensor(P::out).numel() == 1 && sorted.rank == 1) return ACLNN_SUCCESS;
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "sortedSequence should have 1 dim and out 1 element, their shapes are %s and %s.",
                  shape_text(sorted), shape_text(c.tensor(P::out)));
  }
  const Tensor& self = c.tensor(P::self);
  bool rows = self.rank == sorted.rank;
  for (int i = 0; rows && i < self.rank - 1; ++i) rows = self.dims[i] == sorted.dims[i];
  if (sorted.rank > 1 && !rows) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s of sortedSequence and %s of self don't fit.",
                  shape_text(sorted), shape_text(self));
  }
  return expect_same_shape(c, P::out, P::self);
}
template <class T>
std::vector<T> sorted_row(const Call& c, int64_t offset, int64_t sorter_offset) {
  using P = params::SearchSorted;

  std::vector<T> row = row_of<T>(c.tensor(P::sortedSequence), offset);
  const Tensor* sorter = c.maybe(P::sorter);
  if (!sorter) return row;
  const std::vector<int64_t> order = row_of<int64_t>(*sorter, sorter_offset);
  std::vector<T> result(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    const auto k = static_cast<size_t>(order[i]);
    result[i] = k < row.size() ? row[k] : 0;
  }
  return result;
}
template <class T>
void search(const Call& c) {
  using P = params::SearchSorted;

  const Tensor &sorted = c.tensor(P::sortedSequence), &self = c.tensor(P::self),
               &out = c.tensor(P::out);
  const Tensor* sorter = c.maybe(P::sorter);
  std::vector<T> row;
  Walker at(self.rank, self.dims);
  const int64_t width = self.rank > 0 ? self.dims[self.rank - 1] : 1;
  for (int64_t i = 0, n = self.numel(); i < n; ++i, at.next()) {
    if (i == 0 || (sorted.rank > 1 && i % width == 0)) {
      Walker start = at;
      if (self.rank > 0) start.index[self.rank - 1] = 0;
      const bool rows = sorted.rank > 1;
      row = sorted_row<T>(c, sorted.offset + (rows ? start.offset(sorted.strides) : 0),
                          sorter ? sorter->offset + (rows ? start.offset(sorter->strides) : 0) : 0);
    }
    const T x = load_one<T>(self.data, self.dtype, self.offset + at.offset(self.strides));
    store_one(bound(row, x, c.flag(P::right)), out.data, out.dtype,
              out.offset + at.offset(out.strides));
  }
}
void run_search(Call& c) {
  using P = params::SearchSorted;

  const Tensor &sorted = c.tensor(P::sortedSequence), &out = c.tensor(P::out);
  if (c.args[P::self].kind == ArgKind::Tensor) {
    with_values(sorted.dtype, c.tensor(P::self).dtype,
                [&](auto tag) { search<typename decltype(tag)::type>(c); });
    return;
  }
  const Scalar& x = c.scalar(params::SearchSorteds::self);
  const int64_t sorter = c.maybe(P::sorter) ? c.maybe(P::sorter)->offset : 0;
  int64_t place = 0;
  with_values(sorted.dtype, x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = std::is_same<T, int64_t>::value ? static_cast<T>(x.integer())
                                                    : static_cast<T>(x.real());
    place = bound(sorted_row<T>(c, sorted.offset, sorter), value, c.flag(P::right));
  });
  store_one(place, out.data, out.dtype, out.offset);
}

aclnnStatus check_bucketize(Call& c) {
  using P = params::Bucketize;

  if (c.tensor(P::boundaries).rank != 1)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "boundaries should have 1 dim.");
  ACL_RETURN_IF_FAILED(expect_dtype(c, P::out, c.flag(P::outInt32) ? ACL_INT32 : ACL_INT64));
  return expect_same_shape(c, P::out, P::self);
}
void run_bucketize(Call& c) {
  using P = params::Bucketize;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  with_values(self.dtype, c.tensor(P::boundaries).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::vector<T> row = row_of<T>(c.tensor(P::boundaries), c.tensor(P::boundaries).offset);
    Walker at(self.rank, self.dims);
    for (int64_t i = self.numel(); i > 0; --i, at.next()) {
      const T x = load_one<T>(self.data, self.dtype, self.offset + at.offset(self.strides));
      store_one(bound(row, x, c.flag(P::right)), out.data, out.dtype,
                out.offset + at.offset(out.strides));
    }
  });
}

// Whether elements are among others; one side is a scalar. (element, tests, assumeUnique, invert,
// out).
aclnnStatus check_is_in(Call& c) {
  using P = params::IsInTensorScalar;

  if (c.args[P::element].kind != ArgKind::Tensor) return ACLNN_SUCCESS;
  return expect_same_shape(c, P::out, P::element);
}
template <class C>
aclError is_in(Call& c) {
  using P = params::IsInScalarTensor;

  const Tensor& out = c.tensor(P::out);
  const bool one = c.args[P::element].kind != ArgKind::Tensor;
  const Tensor& t = c.tensor(one ? P::testElements : params::IsInTensorScalar::element);
  const C x = scalar_as<C>(c.scalar(one ? P::element : params::IsInTensorScalar::testElement));
  bool any = false;
  Walker at(t.rank, t.dims);
  for (int64_t i = t.numel(); i > 0; --i, at.next()) {
    const bool same = load_one<C>(t.data, t.dtype, t.offset + at.offset(t.strides)) == x;
    any = any || same;
    if (one) continue;
    store_one(int64_t{same != c.flag(P::invert)}, out.data, out.dtype,
              out.offset + at.offset(out.strides));
  }
  if (one) store_one(int64_t{any != c.flag(P::invert)}, out.data, out.dtype, out.offset);
  return ACL_SUCCESS;
}
// Compared as what holds both: whole numbers exactly, complex ones with both parts.
aclError run_is_in(Call& c) {
  using P = params::IsInScalarTensor;

  const bool one = c.args[P::element].kind != ArgKind::Tensor;
  const Domain a = domain_of(
                   c.tensor(one ? P::testElements : params::IsInTensorScalar::element).dtype),
               b = domain_of(
                   c.scalar(one ? P::element : params::IsInTensorScalar::testElement).dtype);
  if (a == Domain::Complex || b == Domain::Complex) return is_in<c128>(c);
  return a == Domain::Integer && b == Domain::Integer ? is_in<int64_t>(c) : is_in<double>(c);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSearchSorted, check_search, run_search)
ACLNN_OP(aclnnSearchSorteds, check_search, run_search)
ACLNN_OP(aclnnBucketize, check_bucketize, run_bucketize)
ACLNN_OP(aclnnIsInScalarTensor, check_is_in, run_is_in)
ACLNN_OP(aclnnIsInTensorScalar, check_is_in, run_is_in)
