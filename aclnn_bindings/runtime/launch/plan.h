// Owns plans: everything of a two-phase call that does not change from launch to launch.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "caller.h"
#include "entry.h"
#include "state.h"

namespace launch {

// What aclCreateTensor takes but the address.
struct TensorSpec {
  const int64_t *dims, *strides, *storage_dims;
  uint64_t rank, storage_rank;
  int64_t offset;
  int32_t dtype, format;
  uint64_t allocate;  // bytes that the launch allocates for it; 0: the caller gives an address
};

// A tensor argument or list member. Its descriptor is made anew for each launch: phase 1 may
// keep state in it, and two threads may launch one plan.
struct TensorSlot {
  TensorSpec spec;
  std::unique_ptr<int64_t[]> numbers;  // what the pointers in `spec` point to
  int place;                           // index into the frame; -1 for a member of a list
};

struct ListSlot {
  uint32_t first, count;  // members among the tensor slots
  int place;
};

struct Phase {
  void* function;
  Layout layout;
  Tier<uint64_t> tier;
  Frame frame;      // constant words in place
  int roles[4];     // by mt_role: index into the frame, -1 when the phase does not take it
};

struct Plan {
  std::atomic<uint64_t> session;  // 0 once closed
  std::atomic<uint32_t> users;
  std::atomic<uint32_t> holds{2};  // see give_up
  size_t place;       // among the open plans
  const char* about;  // the call in words, kept for as long as the process
  std::string name, name_one;
  Phase one, two;
  bool standard_two;  // (workspace, size, executor, stream)
  std::vector<TensorSlot> tensors;
  std::vector<ListSlot> lists;
  uint32_t given = 0;      // slots whose addresses the caller gives
  uint32_t allocated = 0;  // slots that the launch allocates
  // Constants of the call. They are reused by every launch: the parameters are pointers to
  // const, the descriptors hold copies of the values, and all that is asked of them is to live
  // until phase 2 returns (aclCreateScalar and two-phase documents, CANN 9.1).
  struct Constant {
    Handle handle;
    Status (*destroy)(Handle);
  };
  std::vector<Constant> constants;
  std::deque<std::string> texts;
};

// Waits until no thread launches a plan, for the end of the session; whether that is so.
bool wait_for_launches();

// Releases what plans hold in the libraries; called when the session ends.
void close_plans();

}  // namespace launch
