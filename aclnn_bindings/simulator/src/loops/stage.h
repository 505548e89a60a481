// Tensors as dense runs of the compute type: used in place where they lie so, else copied through
// the workspace. For kernels whose loops would not gain from walking strides themselves.
#pragma once

#include "loops/iterate.h"

namespace aclsim {

inline uint64_t stage_round(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Phase 1: what Stage takes from the workspace for every tensor argument that is not dense.
inline uint64_t stage_bytes(const Call& c, aclDataType compute) {
  uint64_t sum = 0;
  for (int i = 0; i < c.count; ++i) {
    const Tensor* t = c.args[i].kind == ArgKind::Tensor ? c.maybe(i) : nullptr;
    if (!t || (t->dtype == compute && t->contiguous())) continue;
    sum += stage_round(static_cast<uint64_t>(t->numel()) * dtype_size(compute));
  }
  return sum;
}

template <class C>
class Stage {
 public:
  explicit Stage(const Call& c) : at_(static_cast<char*>(c.workspace)) {}

  // Null for an absent tensor. `T`: the compute type, or one that is no wider.
  template <class T = C>
  const T* in(const Tensor* t) {
    if (!t) return nullptr;
    if (t->dtype == dtype_of<T>() && t->contiguous()) return t->ptr<T>();
    T* space = take<T>(t->numel());
    copy_tensor(dense(space, dtype_of<T>(), t->dims, t->rank), *t);
    return space;
  }
  template <class T = C>
  const T* in(const Tensor& t) {
    return in<T>(&t);
  }

  // Uninitialised where staged; done() stores it.
  C* out(const Tensor* t) {
    if (!t) return nullptr;
    if (direct(*t)) return t->ptr<C>();
    C* space = take(t->numel());
    pending_[count_++] = {t, space};
    return space;
  }
  C* out(const Tensor& t) { return out(&t); }

  template <class T = C>
  T* take(int64_t n) {
    T* space = reinterpret_cast<T*>(at_);
    at_ += stage_round(static_cast<uint64_t>(n) * sizeof(T));
    return space;
  }
  void done() {
    for (int i = 0; i < count_; ++i) {
      const Tensor& t = *pending_[i].tensor;
      copy_tensor(t, dense(pending_[i].space, dtype_of<C>(), t.dims, t.rank));
    }
  }

 private:
  struct Pending {
    const Tensor* tensor;
    C* space;
  };
  static bool direct(const Tensor& t) { return t.dtype == dtype_of<C>() && t.contiguous(); }

  char* at_;
  Pending pending_[8] = {};
  int count_ = 0;
};

// The sum of term(i), i < n: lanes that vectorise, blocks joined in double.
template <class C, class Term>
ACL_INLINE double lane_sum(int64_t n, Term term) {
  constexpr int kLanes = 64;
  constexpr int64_t kPiece = 8192;
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = begin + kPiece < n ? begin + kPiece : n;
    C acc[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) acc[l] += term(i + l);
    }
    for (int l = 0; i < end; ++i, ++l) acc[l] += term(i);
    for (int step = kLanes / 2; step > 0; step /= 2) {
      for (int l = 0; l < step; ++l) acc[l] += acc[l + step];
    }
    sum += acc[0];
  }
  return sum;
}
}  // namespace aclsim
