// Walks tensors row by row along one axis: what softmax, cumulative sums, sorting and norms share.
#pragma once

#include "loops/iterate.h"

#include <algorithm>

namespace aclsim {

inline int64_t axis_size(const Tensor& t, int axis) { return t.rank == 0 ? 1 : t.dims[axis]; }
inline int64_t axis_stride(const Tensor& t, int axis) { return t.rank == 0 ? 1 : t.strides[axis]; }

// The same tensor with a dim of one put in at `axis`.
Tensor unsqueezed(const Tensor& t, int axis);

// The tensors agree in all dims but `axis`.
class Rows {
 public:
  static constexpr int kMax = 8;
  Rows(std::initializer_list<const Tensor*> tensors, int axis)
      : Rows(tensors.begin(), static_cast<int>(tensors.size()), axis) {}
  Rows(const Tensor* const* tensors, int count, int axis);
  int64_t count() const { return count_; }

  // f(const int64_t* offsets) per row: element offset of each tensor's row, and the row's number
  // where f takes one. `cost`: elements a row touches, for the decision to use threads.
  template <class F>
  void run(int64_t cost, F f) const {
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, cost));
    parallel_for(count_, grain, [&](int64_t begin, int64_t end) {
      Walker at(rank_, dims_, begin);
      int64_t offsets[kMax];
      for (int64_t i = begin; i < end; ++i, at.next()) {
        for (int k = 0; k < tensors_; ++k) offsets[k] = base_[k] + at.offset(strides_[k]);
        if constexpr (std::is_invocable<F, const int64_t*, int64_t>::value) {
          f(const_cast<const int64_t*>(offsets), i);
        } else {
          f(const_cast<const int64_t*>(offsets));
        }
      }
    });
  }

 private:
  int rank_ = 0, tensors_ = 0;
  int64_t count_ = 1;
  int64_t dims_[kMaxRank], base_[kMax], strides_[kMax][kMaxRank];
};

// The same for rows whose elements lie far apart: blocks of them that are neighbours along the last
// dim, which is not the axis, so that a kernel reads and writes along that one.
class Columns {
 public:
  Columns(std::initializer_list<const Tensor*> tensors, int axis, int64_t width = 64)
      : rows_(blocks(tensors, axis, width)),
        width_(width),
        size_(axis_size(**tensors.begin(), (*tensors.begin())->rank - 1)),
        counter_(static_cast<int>(tensors.size())) {}
  // Whether rows of `t` are better walked so.
  static bool better(const Tensor& t, int axis) {
    const int last = t.rank - 1;
    return axis < last && t.dims[last] >= 16 && t.strides[axis] > t.strides[last];
  }
  // f(offsets, n) per block of n rows: element offset of each tensor's first one.
  template <class F>
  void run(int64_t cost, F f) const {
    rows_.run(cost * width_, [&](const int64_t* offsets) {
      f(offsets, std::min(width_, size_ - offsets[counter_]));
    });
  }

 private:
  static Rows blocks(std::initializer_list<const Tensor*> tensors, int axis, int64_t width);
  Rows rows_;
  int64_t width_, size_;
  int counter_;
};

// A row in the compute type: in place where it lies so, else loaded into `buffer`.
template <class C>
const C* row_in(C* buffer, const Tensor& t, int64_t offset, int axis) {
  const int64_t stride = axis_stride(t, axis);
  if (t.dtype == dtype_of<C>() && stride == 1) return static_cast<const C*>(t.data) + offset;
  load(buffer, t.data, t.dtype, offset, stride, axis_size(t, axis));
  return buffer;
}
// Where to write a row: the tensor itself, or `buffer`, which row_done then stores.
template <class C>
C* row_out(C* buffer, const Tensor& t, int64_t offset, int axis) {
  const bool direct = t.dtype == dtype_of<C>() && axis_stride(t, axis) == 1;
  return direct ? static_cast<C*>(t.data) + offset : buffer;
}
template <class C>
void row_done(const C* row, const C* buffer, const Tensor& t, int64_t offset, int axis) {
  if (row == buffer) store(row, t.data, t.dtype, offset, axis_stride(t, axis), axis_size(t, axis));
}

// Calls f(Tag<C>{}) with the compute type of a domain among float, double and int64.
template <class F>
void with_real(aclDataType dtype, F f) {
  switch (domain_of(dtype)) {
    case Domain::Double: f(Tag<double>{}); break;
    case Domain::Integer: f(Tag<int64_t>{}); break;
    default: f(Tag<float>{});
  }
}
// The same for ops that take complex numbers too.
template <class F>
void with_number(aclDataType dtype, F f) {
  if (domain_of(dtype) == Domain::Complex) {
    f(Tag<c128>{});
  } else {
    with_real(dtype, f);
  }
}
// The same for ops that compute in floating point only.
template <class F>
void with_float(aclDataType dtype, F f) {
  if (domain_of(dtype) == Domain::Double) {
    f(Tag<double>{});
  } else {
    f(Tag<float>{});
  }
}

}  // namespace aclsim
