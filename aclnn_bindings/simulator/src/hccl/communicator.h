// Communicators: a rank's place among others, and the order in which its work runs.
#pragma once

#include <hccl/hccl_comm.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "hccl/segment.h"

namespace aclsim {

// Work that was submitted first runs first, on whichever streams it was submitted.
class Order {
 public:
  uint64_t take();
  bool is_turn(uint64_t ticket);
  // False when the stream is aborted first.
  bool await_turn(uint64_t ticket, const Stream* stream);
  void finish(uint64_t ticket);
  bool empty();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t given_ = 0, current_ = 0;
  std::set<uint64_t> finished_;
};

struct Communicator {
  Segment segment;
  uint32_t rank = 0;
  int32_t device = 0;
  std::string name;
  std::atomic<int32_t> error{HCCL_SUCCESS};  // what HcclGetCommAsyncError answers
  uint32_t step = 0;                         // phases so far
  Order collectives;
  Order outgoing[kMostRanks], incoming[kMostRanks];
  std::map<uint64_t, uint32_t> subgroups;    // identity → how often it was made

  bool busy();
};

// The live communicator behind a handle, or null with HCCL_E_PTR/HCCL_E_PARA in `code`.
Communicator* find_communicator(const char* function, HcclComm handle, HcclResult* code);
// The live communicator of that name that this process made on that device; null for none.
Communicator* find_named(const char* name, int32_t device);
// Notes a message as aclGetRecentErrMsg hands it out, and returns the code.
HcclResult refused(HcclResult code, const char* format, ...) __attribute__((format(printf, 2, 3)));

#define ACLSIM_COMMUNICATOR(name, handle)                                            \
  HcclResult name##_code = HCCL_SUCCESS;                                             \
  ::aclsim::Communicator* name =                                                     \
      ::aclsim::find_communicator(__func__, handle, &name##_code);                   \
  if (!name) return name##_code

}  // namespace aclsim
