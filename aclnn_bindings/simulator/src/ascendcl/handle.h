// Every object behind a handle: a magic number that tells what it is and whether it lives, memory
// that stays typed for ever (so that a stale handle can be recognised), and counts of what lives.
#pragma once

#include <atomic>

#include "ascendcl/config.h"

namespace aclsim {

enum class Kind : uint8_t {
  Tensor, Scalar, IntArray, BoolArray, FloatArray, TensorList, ScalarList, Executor,
  Stream, Event, Context, DeviceMemory, HostMemory, TensorDesc, DataBuffer, OpAttr,
  Notify, Model,
  Task, Record,  // internal
  Count,
};
constexpr int kKinds = static_cast<int>(Kind::Count);
const char* kind_name(Kind kind);      // "tensor": what aclsimLiveHandles takes
ACLSIM_SHARED const char* kind_c_type(Kind kind);    // "aclTensor": what messages say

constexpr uint32_t kLive = 0xAC1A0000u;
constexpr uint32_t kDead = 0xDEAD0000u;
constexpr uint32_t live_magic(Kind kind) { return kLive | static_cast<uint32_t>(kind); }
constexpr uint32_t dead_magic(Kind kind) { return kDead | static_cast<uint32_t>(kind); }

struct Origin;  // where a handle was made, strict mode only

// How a handle died, for the words of a report.
enum class Death : uint8_t { None, Destroyed, ByList, Launched };

struct Handle {
  std::atomic<uint32_t> magic;
  Death death;
  uint16_t batch_size;  // of a batch's first handle: how many it has
  Handle* next;         // in a free list
  Handle* next_batch;   // of a batch's first handle
  Origin* origin;   // of the latest life; kept after death, replaced by the next

  bool is(Kind kind) const { return magic.load(std::memory_order_relaxed) == live_magic(kind); }
  bool was(Kind kind) const { return magic.load(std::memory_order_relaxed) == dead_magic(kind); }
};

struct Context;
struct ErrorLog;

// Per-thread state, made at a thread's first call. Free lists are this thread's own; what one
// thread frees and another needs travels in batches, so that no list is ever walked.
struct ThreadState {
  Handle* free[kKinds];
  int32_t free_count[kKinds];
  std::atomic<int64_t> live[kKinds];  // written by the owner only
  Context* context;                   // current context
  ErrorLog* errors;
  aclError last_error;
  int capture_mode;
  uint64_t thread_id;
  ThreadState* next;
  ThreadState** link;
};

extern __thread ThreadState* current_thread
    __attribute__((tls_model("initial-exec"), visibility("default")));
ACLSIM_SHARED ThreadState* register_thread();

inline ThreadState* thread() {
  ThreadState* state = current_thread;
  return ACLSIM_LIKELY(state != nullptr) ? state : register_thread();
}

ACLSIM_SHARED Handle* refill(ThreadState* state, Kind kind, size_t size);
ACLSIM_SHARED void spill(ThreadState* state, Kind kind);
ACLSIM_SHARED void quarantine(Handle* handle, Kind kind);  // strict: reuse as late as possible
ACLSIM_SHARED int64_t live_count(Kind kind);
void forget_threads_after_fork();

constexpr int kKeptPerThread = 256;

inline void count_live(ThreadState* state, Kind kind, int64_t change) {
  std::atomic<int64_t>& live = state->live[static_cast<int>(kind)];
  live.store(live.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
}

// Typed memory for one object; its fields beyond Handle keep whatever they held.
template <class T>
T* acquire(ThreadState* state, Kind kind) {
  int k = static_cast<int>(kind);
  Handle* handle = state->free[k];
  if (ACLSIM_LIKELY(handle != nullptr)) {
    state->free[k] = handle->next;
    --state->free_count[k];
  } else {
    handle = refill(state, kind, sizeof(T));
  }
  handle->death = Death::None;
  handle->magic.store(live_magic(kind), std::memory_order_relaxed);
  return static_cast<T*>(handle);
}

// Gives the memory back. The caller has counted; `retire` did the marking.
inline void recycle(ThreadState* state, Handle* handle, Kind kind) {
  if (strict() && kind < Kind::Task) return quarantine(handle, kind);
  int k = static_cast<int>(kind);
  handle->next = state->free[k];
  state->free[k] = handle;
  if (ACLSIM_UNLIKELY(++state->free_count[k] > kKeptPerThread)) spill(state, kind);
}

inline void retire(Handle* handle, Kind kind, Death death) {
  handle->death = death;
  handle->magic.store(dead_magic(kind), std::memory_order_relaxed);
}

}  // namespace aclsim
