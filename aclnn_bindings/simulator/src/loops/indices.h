// Index tensors from device memory: reading, range checks and the trap for values out of range.
#pragma once

#include "loops/rows.h"

#include <atomic>

namespace aclsim {

// Which indices an operator takes. Most take [0, size) (aclnnScatterValue document, CANN 8.3: "0 to
// self.size(dim) - 1"); those with torch's advanced indexing, and GatherNd and ScatterNd by their
// documents, count negative ones from the end.
enum class Index { FromStart, FromEither };

// Remembers one index out of range, from any thread.
class IndexFault {
 public:
  explicit IndexFault(Index kind = Index::FromStart) : wraps_(kind == Index::FromEither) {}
  // `index` in [0, size), or -1 and the fault is set.
  int64_t resolve(int64_t index, int64_t size) {
    const int64_t at = index < 0 && wraps_ ? index + size : index;
    if (at >= 0 && at < size) return at;
    value_.store(index, std::memory_order_relaxed);
    size_.store(size, std::memory_order_relaxed);
    set_.store(true, std::memory_order_relaxed);
    return -1;
  }
  aclError report(const Call& c, TensorAt arg) const {
    if (!set_.load()) return ACL_SUCCESS;
    return c.trap(507015, "value %lld in %s is out of range for size %lld",
                  static_cast<long long>(value_.load()), c.name(arg),
                  static_cast<long long>(size_.load()));
  }

 private:
  std::atomic<int64_t> value_{0}, size_{0};
  std::atomic<bool> set_{false};
  const bool wraps_;
};

// Indices of a run, and where it leads: index k of place i is element `to + k * step + i * along` of
// the tensor that is indexed, and `from + i * next` of the other.
struct IndexRun {
  const int64_t* at;
  int64_t n, to, step, along, from, next;
};
// f(run) for the rows of `index` along the axis, or for parts of its last dim where rows lie far
// apart; what one row holds comes in its order.
template <class F>
void each_run(const Tensor& index, const Tensor& to, const Tensor& from, int axis, F f) {
  const int64_t n = axis_size(index, axis), step = axis_stride(to, axis);
  const int last = index.rank - 1;
  if (!Columns::better(index, axis) || to.strides[axis] < to.strides[last]) {
    Rows({&index, &to, &from}, axis).run(n, [&](const int64_t* offsets) {
      Buffer<int64_t> space(n);
      const int64_t* at = row_in<int64_t>(space, index, offsets[0], axis);
      f(IndexRun{at, n, offsets[1], step, 0, offsets[2], axis_stride(from, axis)});
    });
    return;
  }
  Columns({&index, &to, &from}, axis).run(n, [&](const int64_t* offsets, int64_t columns) {
    Buffer<int64_t> space(columns);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t start = offsets[0] + i * index.strides[axis];
      const int64_t* at = static_cast<const int64_t*>(index.data) + start;
      if (index.dtype != ACL_INT64 || index.strides[last] != 1) {
        load(space.get(), index.data, index.dtype, start, index.strides[last], columns);
        at = space;
      }
      f(IndexRun{at, columns, offsets[1], step, to.strides[last],
                 offsets[2] + i * from.strides[axis], from.strides[last]});
    }
  });
}

// All elements of an index tensor, row-major, resolved against `size`; false if one is out of range.
bool read_indices(int64_t* to, const Tensor& index, int64_t size, IndexFault& fault);

// out[..., k, ...] = self[..., at[k], ...] along `axis`; neither tensor is 0-d or empty.
void select_slices(const Tensor& out, const Tensor& self, const int64_t* at, int axis);

}  // namespace aclsim
