// Splits a range over the kernel threads. One pool per process; a second stream that asks while
// the pool is busy runs its range itself, so kernels never wait for each other.
#pragma once

#include "nnopbase/op.h"

namespace aclsim {

using RangeBody = void (*)(void* context, int64_t begin, int64_t end);
void parallel_range(int64_t n, int64_t grain, RangeBody body, void* context);

// f(begin, end) over [0, n), in pieces of at least `grain`.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  if (n <= grain) {
    f(int64_t{0}, n);
    return;
  }
  using Body = std::remove_reference_t<F>;
  parallel_range(
      n, grain,
      [](void* context, int64_t begin, int64_t end) { (*static_cast<Body*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

// Host memory for one kernel invocation on one thread, freed at scope end.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t n) : data_(n <= kInline ? inline_ : new T[static_cast<size_t>(n)]) {}
  ~Buffer() {
    if (data_ != inline_) delete[] data_;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() { return data_; }
  operator T*() { return data_; }

 private:
  static constexpr int64_t kInline = 4096 / sizeof(T);
  T* data_;
  alignas(64) T inline_[kInline];
};

}  // namespace aclsim
