// Tensors as flat rows of doubles or integers in row-major order, whatever their layout and dtype, for
// kernels whose loops would gain nothing from walking strides; and the checks on shapes that let them.
#pragma once

#include "loops/indices.h"
#include "loops/values.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace aclsim {

template <class T>
std::vector<T> values_of(const Tensor& t) {
  return values_of<T>(&t);
}
using Numbers = Doubles;
using Integers = Ints;
inline Numbers numbers(const Tensor& t) { return values_of<double>(&t); }
// Of an absent tensor: `n` times `other`.
inline Numbers numbers_or(const Tensor* t, int64_t n, double other) {
  return t ? numbers(*t) : Numbers(static_cast<size_t>(n), other);
}
inline double number(const Tensor& t) { return load_one<double>(t.data, t.dtype, t.offset); }

// An absent or empty output takes nothing.
template <class T>
void put(const Tensor* t, const std::vector<T>& values) {
  write(t, values);
}
template <class T>
void put(const Tensor& t, const std::vector<T>& values) {
  write(&t, values);
}

// Elements as they lie in memory, for kernels that only move them.
inline std::vector<char> bytes_of(const Tensor& t) {
  std::vector<char> to(static_cast<size_t>(t.numel()) * dtype_size(t.dtype));
  if (!to.empty()) copy_tensor(dense(to.data(), t.dtype, t.dims, t.rank), t);
  return to;
}
inline void put_bytes(const Tensor& t, std::vector<char>& bytes) {
  if (!bytes.empty()) copy_tensor(t, dense(bytes.data(), t.dtype, t.dims, t.rank));
}

// Shapes that an argument has to have; -1 leaves a dim open, an absent argument passes.
inline aclnnStatus expect_dims(const Call& c, TensorAt arg, std::initializer_list<int64_t> dims) {
  if (c.null(arg)) return ACLNN_SUCCESS;
  const Tensor& t = c.tensor(arg);
  bool fits = t.rank == static_cast<int>(dims.size());
  for (int i = 0; fits && i < t.rank; ++i) {
    const int64_t wanted = dims.begin()[i];
    fits = wanted < 0 || wanted == t.dims[i];
  }
  if (fits) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape of %s should be %s, but current is %s.", c.name(arg),
                shape_text(dims.begin(), static_cast<int>(dims.size())), shape_text(t));
}
inline aclnnStatus expect_rank(const Call& c, TensorAt arg, int least, int most) {
  if (c.null(arg)) return ACLNN_SUCCESS;
  const Tensor& t = c.tensor(arg);
  if (t.rank >= least && t.rank <= most) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have %d to %d dims, but its shape is %s.",
                c.name(arg), least, most, shape_text(t));
}
inline aclnnStatus expect_all_shaped_like(const Call& c, TensorAt like,
                                          std::initializer_list<TensorAt> arguments) {
  for (TensorAt i : arguments) {
    if (!c.null(i)) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, like));
  }
  return ACLNN_SUCCESS;
}
inline aclnnStatus expect_int(const Call& c, At<ArgKind::Int> arg, int64_t least, int64_t most) {
  if (c.integer(arg) >= least && c.integer(arg) <= most) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be in [%lld, %lld], but is %lld.", c.name(arg),
                static_cast<long long>(least), static_cast<long long>(most),
                static_cast<long long>(c.integer(arg)));
}
inline aclnnStatus expect_ints(const Call& c, At<ArgKind::IntArray> arg, int64_t least, int64_t most) {
  const Span<const int64_t> given = c.ints(arg);
  if (given.size >= least && given.size <= most) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have %lld to %lld values, but has %lld.",
                c.name(arg), static_cast<long long>(least), static_cast<long long>(most),
                static_cast<long long>(given.size));
}

// A tensor seen as [outer, size, inner] around one axis.
struct Around {
  int64_t outer = 1, size = 1, inner = 1;
  Around(const Tensor& t, int axis) {
    for (int i = 0; i < t.rank; ++i) (i < axis ? outer : i == axis ? size : inner) *= t.dims[i];
  }
  int64_t at(int64_t o, int64_t k, int64_t i) const { return (o * size + k) * inner + i; }
};
// Elements of the last `dims` dims, and how many such rows there are.
inline int64_t tail_numel(const Tensor& t, int dims) {
  int64_t n = 1;
  for (int i = std::max(0, t.rank - dims); i < t.rank; ++i) n *= t.dims[i];
  return n;
}
inline void softmax_row(double* x, int64_t n) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < n; ++i) top = std::max(top, x[i]);
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - top);
  for (int64_t i = 0; i < n; ++i) x[i] /= sum;
}

}  // namespace aclsim
