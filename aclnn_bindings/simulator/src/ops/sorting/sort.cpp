// Order along one axis: sorting, the k largest, the k-th, medians.
#include "params/sorting.h"
#include "loops/promote.h"
#include "loops/rows.h"

#include <numeric>
#include "loops/order.h"

namespace aclsim {
namespace {

// NaN counts as larger than every number, as in torch.
template <class C>
bool less(C a, C b) {
  return a < b || (b != b && a == a);
}

// Fills `at` with positions in order, ties by position, and takes the values.
template <class C>
void order_row(const C* x, int64_t n, C* best, int64_t* at, bool descending) {
  std::iota(at, at + n, int64_t{0});
  const auto before = [x, descending](int64_t a, int64_t b) {
    const bool differs = descending ? less(x[b], x[a]) : less(x[a], x[b]);
    return differs || (a < b && !(descending ? less(x[a], x[b]) : less(x[b], x[a])));
  };
  std::sort(at, at + n, before);
  for (int64_t i = 0; i < n; ++i) best[i] = x[at[i]];
}

// Fills the first `k` of `at`; ties fall as in torch, which calls the same algorithms.
template <class C>
void top_row(const C* x, int64_t n, C* best, int64_t* at, int64_t k, bool largest, bool sorted) {
  std::iota(at, at + n, int64_t{0});
  const auto before = [x, largest](int64_t a, int64_t b) {
    return largest ? less(x[b], x[a]) : less(x[a], x[b]);
  };
  if (k * 64 <= n) {
    std::partial_sort(at, at + k, at + n, before);
  } else {
    std::nth_element(at, at + k - 1, at + n, before);
    if (sorted) std::sort(at, at + k - 1, before);
  }
  for (int64_t i = 0; i < k; ++i) best[i] = x[at[i]];
}

aclnnStatus check_sort(Call& c) {
  using P = params::Sort;

  ACL_RETURN_IF_FAILED(read_axis(c, P::dim, P::self));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::valuesOut, P::self));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::valuesOut, P::self));
  c.workspace_size = static_cast<uint64_t>(c.tensor(P::self).numel()) * 8;
  return expect_same_shape(c, P::indicesOut, P::self);
}
void run_sort(Call& c) {
  using P = params::Sort;

  sort_rows(c.tensor(P::self), &c.tensor(P::valuesOut), &c.tensor(P::indicesOut), axis_of(c),
            [&](auto* x, int64_t n, auto* best, int64_t* at) {
              order_row(x, n, best, at, c.flag(P::descending));
            });
}
aclnnStatus check_argsort(Call& c) {
  using P = params::Argsort;

  ACL_RETURN_IF_FAILED(read_axis(c, P::dim, P::self));
  c.workspace_size = static_cast<uint64_t>(c.tensor(P::self).numel()) * 8;
  return expect_same_shape(c, P::out, P::self);
}
void run_argsort(Call& c) {
  using P = params::Argsort;

  sort_rows(c.tensor(P::self), nullptr, &c.tensor(P::out), axis_of(c),
            [&](auto* x, int64_t n, auto* best, int64_t* at) {
              order_row(x, n, best, at, c.flag(P::descending));
            });
}

aclnnStatus refuse_k(const Call& c, int arg, int64_t size) {
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be in range [0, %lld], but is %lld.",
                c.name(arg), static_cast<long long>(size),
                static_cast<long long>(c.integer(arg)));
}
aclnnStatus check_topk(Call& c) {
  using P = params::Topk;

  ACL_RETURN_IF_FAILED(read_axis(c, P::dim, P::self));
  Shape shape = shape_of(c.tensor(P::self));
  const int64_t size = axis_size(c.tensor(P::self), axis_of(c)), k = c.integer(P::k);
  if (k < 0 || k > size) return refuse_k(c, P::k, size);
  if (shape.rank > 0) shape.dims[axis_of(c)] = k;
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::valuesOut, P::self));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::valuesOut, shape));
  c.workspace_size = static_cast<uint64_t>(c.tensor(P::self).numel()) * 8;
  return expect_shape(c, P::indicesOut, shape);
}
void run_topk(Call& c) {
  using P = params::Topk;

  sort_rows(c.tensor(P::self), &c.tensor(P::valuesOut), &c.tensor(P::indicesOut), axis_of(c),
            [&](auto* x, int64_t n, auto* best, int64_t* at) {
              top_row(x, n, best, at, c.integer(P::k), c.flag(P::largest), c.flag(P::sorted));
            });
}

aclnnStatus check_kthvalue(Call& c) {
  using P = params::Kthvalue;

  ACL_RETURN_IF_FAILED(read_axis(c, P::dim, P::self));
  const int64_t size = axis_size(c.tensor(P::self), axis_of(c));
  if (c.integer(P::k) < 1 || c.integer(P::k) > size) return refuse_k(c, P::k, size);
  ACL_RETURN_IF_FAILED(expect_one(c, P::valuesOut, c.flag(P::keepdim), P::self));
  return expect_one(c, P::indicesOut, c.flag(P::keepdim), P::self);
}
// torch's quickselect, so that ties fall as there: the pivot is the median of three.
template <class C>
void pick(const C* x, int64_t n, C* best, int64_t* at, int64_t k) {
  std::iota(at, at + n, int64_t{0});
  const auto above = [x](int64_t a, int64_t b) { return less(x[b], x[a]); };
  const auto order = [above](int64_t& a, int64_t& b) {
    if (above(a, b)) std::swap(a, b);
  };
  int64_t left = 0, right = n - 1;
  while (right > left + 1) {
    std::swap(at[left + (right - left) / 2], at[left + 1]);
    order(at[left + 1], at[right]);
    order(at[left], at[right]);
    order(at[left + 1], at[left]);
    const int64_t pivot = at[left];
    int64_t i = left + 1, j = right;
    while (true) {
      do ++i; while (above(pivot, at[i]));
      do --j; while (above(at[j], pivot));
      if (j < i) break;
      std::swap(at[i], at[j]);
    }
    std::swap(at[left], at[j]);
    if (j <= k) left = i;
    if (j >= k) right = j - 1;
  }
  if (right == left + 1) order(at[left], at[right]);
  at[0] = at[k];
  best[0] = x[at[0]];
}
void run_kthvalue(Call& c) {
  using P = params::Kthvalue;

  const Tensor& self = c.tensor(P::self);
  const Tensor values = with_axis(c.tensor(P::valuesOut), axis_of(c), self);
  const Tensor indices = with_axis(c.tensor(P::indicesOut), axis_of(c), self);
  sort_rows(self, &values, &indices, axis_of(c), [&](auto* x, int64_t n, auto* best, int64_t* at) {
    pick(x, n, best, at, c.integer(P::k) - 1);
  });
}

// The lower median; where NaN counts, the first NaN is the median.
template <bool SkipNan, class C>
void median_row(const C* x, int64_t n, C* best, int64_t* at) {
  int64_t numbers = 0;
  for (int64_t i = 0; i < n; ++i) {
    numbers += x[i] == x[i];
    if (!SkipNan && x[i] != x[i]) {
      at[0] = i;
      best[0] = x[i];
      return;
    }
  }
  const int64_t middle = numbers > 0 ? (numbers - 1) / 2 : 0;
  std::iota(at, at + n, int64_t{0});
  std::nth_element(at, at + middle, at + n, [x](int64_t a, int64_t b) {
    return less(x[a], x[b]) || (a < b && !less(x[b], x[a]));  // of equal ones the first
  });
  at[0] = at[middle];
  best[0] = x[at[0]];
}
aclnnStatus check_median_dim(Call& c) {
  using P = params::MedianDim;

  return check_selection(c, P::self, P::dim, P::keepDim, P::valuesOut, P::indicesOut);
}
template <bool SkipNan>
void run_median_dim(Call& c) {
  using P = params::MedianDim;

  const Tensor& self = c.tensor(P::self);
  const Tensor values = with_axis(c.tensor(P::valuesOut), axis_of(c), self);
  const Tensor indices = with_axis(c.tensor(P::indicesOut), axis_of(c), self);
  sort_rows(self, &values, &indices, axis_of(c), [](auto* x, int64_t n, auto* best, int64_t* at) {
    median_row<SkipNan>(x, n, best, at);
  });
}
// (self, valuesOut): over all elements, gathered in the workspace.
aclnnStatus check_median(Call& c) {
  using P = params::Median;

  if (c.tensor(P::self).numel() == 0)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self has no elements.");
  c.workspace_size =
      static_cast<uint64_t>(c.tensor(P::self).numel()) * dtype_size(c.tensor(P::self).dtype);
  return expect_shape(c, P::valuesOut, Shape{});
}
template <bool SkipNan>
void run_median(Call& c) {
  using P = params::Median;

  const Tensor& self = c.tensor(P::self);
  const int64_t n = self.numel();
  copy_tensor(dense(c.workspace, self.dtype, self.dims, self.rank), self);
  const Tensor row = dense(c.workspace, self.dtype, &n, 1),
               value = unsqueezed(c.tensor(P::valuesOut), 0);
  sort_rows(row, &value, nullptr, 0, [](auto* x, int64_t m, auto* best, int64_t* at) {
    median_row<SkipNan>(x, m, best, at);
  });
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSort, check_sort, run_sort)
ACLNN_OP(aclnnArgsort, check_argsort, run_argsort)
ACLNN_OP(aclnnTopk, check_topk, run_topk)
ACLNN_OP(aclnnKthvalue, check_kthvalue, run_kthvalue)
ACLNN_OP(aclnnMedian, check_median, run_median<false>)
ACLNN_OP(aclnnNanMedian, check_median, run_median<true>)
ACLNN_OP(aclnnMedianDim, check_median_dim, run_median_dim<false>)
ACLNN_OP(aclnnNanMedianDim, check_median_dim, run_median_dim<true>)
