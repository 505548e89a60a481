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

// All elements of an index tensor, row-major, resolved against `size`; false if one is out of range.
bool read_indices(int64_t* to, const Tensor& index, int64_t size, IndexFault& fault);

// out[..., k, ...] = self[..., at[k], ...] along `axis`; neither tensor is 0-d or empty.
void select_slices(const Tensor& out, const Tensor& self, const int64_t* at, int axis);

}  // namespace aclsim
