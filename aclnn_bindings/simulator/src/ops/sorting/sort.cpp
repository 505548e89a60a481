// Order along one axis: sorting, the k largest, the k-th, medians.
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

// Fills `at` with positions in order and takes the first `m` values.
template <class C>
void order_row(const C* x, int64_t n, C* best, int64_t* at, int64_t m, bool descending) {
  std::iota(at, at + n, int64_t{0});
  const auto before = [x, descending](int64_t a, int64_t b) {
    const bool differs = descending ? less(x[b], x[a]) : less(x[a], x[b]);
    return differs || (a < b && !(descending ? less(x[a], x[b]) : less(x[b], x[a])));
  };
  if (m == n) {
    std::sort(at, at + n, before);  // ties by position: stable
  } else {
    std::partial_sort(at, at + m, at + n, before);
  }
  for (int64_t i = 0; i < m; ++i) best[i] = x[at[i]];
}

// (self, stable, dim, descending, valuesOut, indicesOut).
aclnnStatus check_sort(Call& c) {
  ACL_RETURN_IF_FAILED(read_axis(c, 2));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 4, 0));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, 4, 0));
  c.workspace_size = static_cast<uint64_t>(c.tensor(0).numel()) * 8;
  return expect_same_shape(c, 5, 0);
}
aclError run_sort(Call& c) {
  sort_rows(c.tensor(0), &c.tensor(4), &c.tensor(5), axis_of(c),
            [&](auto* x, int64_t n, auto* best, int64_t* at) {
              order_row(x, n, best, at, n, c.flag(3));
            });
  return ACL_SUCCESS;
}
// (self, dim, descending, out).
aclnnStatus check_argsort(Call& c) {
  ACL_RETURN_IF_FAILED(read_axis(c, 1));
  c.workspace_size = static_cast<uint64_t>(c.tensor(0).numel()) * 8;
  return expect_same_shape(c, 3, 0);
}
aclError run_argsort(Call& c) {
  sort_rows(c.tensor(0), nullptr, &c.tensor(3), axis_of(c),
            [&](auto* x, int64_t n, auto* best, int64_t* at) {
              order_row(x, n, best, at, n, c.flag(2));
            });
  return ACL_SUCCESS;
}

aclnnStatus refuse_k(const Call& c, int arg, int64_t size) {
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be in range [0, %lld], but is %lld.",
                c.name(arg), static_cast<long long>(size),
                static_cast<long long>(c.integer(arg)));
}
// (self, k, dim, largest, sorted, valuesOut, indicesOut).
aclnnStatus check_topk(Call& c) {
  ACL_RETURN_IF_FAILED(read_axis(c, 2));
  Shape shape = shape_of(c.tensor(0));
  const int64_t size = axis_size(c.tensor(0), axis_of(c)), k = c.integer(1);
  if (k < 0 || k > size) return refuse_k(c, 1, size);
  if (shape.rank > 0) shape.dims[axis_of(c)] = k;
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, 5, 0));
  ACL_RETURN_IF_FAILED(expect_shape(c, 5, shape));
  c.workspace_size = static_cast<uint64_t>(c.tensor(0).numel()) * 8;
  return expect_shape(c, 6, shape);
}
aclError run_topk(Call& c) {
  sort_rows(c.tensor(0), &c.tensor(5), &c.tensor(6), axis_of(c),
            [&](auto* x, int64_t n, auto* best, int64_t* at) {
              order_row(x, n, best, at, c.integer(1), c.flag(3));
            });
  return ACL_SUCCESS;
}

// (self, k, dim, keepdim, valuesOut, indicesOut).
aclnnStatus check_kthvalue(Call& c) {
  ACL_RETURN_IF_FAILED(read_axis(c, 2));
  const int64_t size = axis_size(c.tensor(0), axis_of(c));
  if (c.integer(1) < 1 || c.integer(1) > size) return refuse_k(c, 1, size);
  ACL_RETURN_IF_FAILED(expect_one(c, 4, c.flag(3)));
  return expect_one(c, 5, c.flag(3));
}
template <class C>
void pick(const C* x, int64_t n, C* best, int64_t* at, int64_t k) {
  std::iota(at, at + n, int64_t{0});
  std::nth_element(at, at + k, at + n, [x](int64_t a, int64_t b) {
    return less(x[a], x[b]) || (a < b && !less(x[b], x[a]));
  });
  at[0] = at[k];
  best[0] = x[at[0]];
}
aclError run_kthvalue(Call& c) {
  const Tensor& self = c.tensor(0);
  const Tensor values = with_axis(c.tensor(4), axis_of(c), self);
  const Tensor indices = with_axis(c.tensor(5), axis_of(c), self);
  sort_rows(self, &values, &indices, axis_of(c),
            [&](auto* x, int64_t n, auto* best, int64_t* at) {
              pick(x, n, best, at, c.integer(1) - 1);
            });
  return ACL_SUCCESS;
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
  pick(x, n, best, at, numbers > 0 ? (numbers - 1) / 2 : 0);
}
template <bool SkipNan>
aclError run_median_dim(Call& c) {
  const Tensor& self = c.tensor(0);
  const Tensor values = with_axis(c.tensor(3), axis_of(c), self);
  const Tensor indices = with_axis(c.tensor(4), axis_of(c), self);
  sort_rows(self, &values, &indices, axis_of(c), [](auto* x, int64_t n, auto* best, int64_t* at) {
    median_row<SkipNan>(x, n, best, at);
  });
  return ACL_SUCCESS;
}
// (self, valuesOut): over all elements, gathered in the workspace.
aclnnStatus check_median(Call& c) {
  if (c.tensor(0).numel() == 0) return c.fail(ACLNN_ERR_PARAM_INVALID, "self has no elements.");
  c.workspace_size = static_cast<uint64_t>(c.tensor(0).numel()) * dtype_size(c.tensor(0).dtype);
  return expect_shape(c, 1, Shape{});
}
template <bool SkipNan>
aclError run_median(Call& c) {
  const Tensor& self = c.tensor(0);
  const int64_t n = self.numel();
  copy_tensor(dense(c.workspace, self.dtype, self.dims, self.rank), self);
  const Tensor row = dense(c.workspace, self.dtype, &n, 1), value = unsqueezed(c.tensor(1), 0);
  sort_rows(row, &value, nullptr, 0, [](auto* x, int64_t m, auto* best, int64_t* at) {
    median_row<SkipNan>(x, m, best, at);
  });
  return ACL_SUCCESS;
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
