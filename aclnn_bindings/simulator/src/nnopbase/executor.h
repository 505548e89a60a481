// The executor: what phase 1 plans and phase 2 runs, with memory of its own.
#pragma once

#include "nnopbase/descriptors.h"
#include "ascendcl/stream.h"

namespace aclsim {

// An operator as the libraries know it: its row, its documented rules, and the rules that the
// current product leaves (made at its first use).
struct Entry {
  const Op* row;
  const OpSpec* spec;
  std::atomic<const uint64_t*> dtypes;  // mask per parameter; 0: any
};

struct Block;  // memory beyond the inline part

struct Executor : Handle {
  Task task;
  Call call;
  Entry* entry;
  Executor* shared;                // of a launch of a repeatable executor: whose memory it reads
  std::atomic<int32_t> references; // the caller's one, and one per queued launch
  bool repeatable;
  char trap[256];                  // message of a kernel that failed
  Block* blocks;
  char* cursor;
  char* end;
  Handle* misused;                 // first argument that is not a live handle
  Kind misused_as;
  struct Resized {                 // kDynamicOut: whose view dims the kernel set, and to what
    aclTensor* tensor;
    int32_t rank;
    int64_t dims[kMaxRank];
  };
  static constexpr int kMaxResized = 4;
  Resized resized[kMaxResized];
  int resized_count;
  struct Held* held;               // strict: allocations that this launch uses
  alignas(16) char room[2048];
};

ACLSIM_SHARED Executor* make_executor(Entry& entry);
ACLSIM_SHARED void* executor_memory(Executor* executor, size_t bytes);
// Generic rules, then the row's check. On failure the executor is gone.
ACLSIM_SHARED aclnnStatus finish_plan(Executor* executor, int count, uint64_t* size,
                                      aclOpExecutor** out);
ACLSIM_SHARED aclnnStatus launch(Entry& entry, void* workspace, uint64_t size,
                                 aclOpExecutor* executor, aclrtStream stream);

void destroy_executor(Executor* executor);
void abandon_plan(Executor* executor);  // before `finish_plan`: nobody has a handle of it

inline void* take(Executor* executor, size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  char* at = executor->cursor;
  if (ACLSIM_UNLIKELY(static_cast<size_t>(executor->end - at) < bytes)) {
    return executor_memory(executor, bytes);
  }
  executor->cursor = at + bytes;
  return at;
}

}  // namespace aclsim

struct aclOpExecutor : aclsim::Executor {};
