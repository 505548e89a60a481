// Collectives as work on a stream: what each rank lays out, and what it reads of the others.
#pragma once

#include <memory>
#include <vector>

#include "hccl/communicator.h"

namespace aclsim {

struct Allocation;

enum class Collective : uint32_t {
  AllReduce, Reduce, ReduceScatter, ReduceScatterV, Broadcast, AllGather, AllGatherV, Scatter,
  AllToAll, AllToAllV, AllToAllVC, Barrier,
};
const char* collective_name(Collective kind);

// Bytes at an address; null and 0 where a rank has no part.
struct Part {
  char* at = nullptr;
  uint64_t bytes = 0;
};

// One call of one rank. `give` has one part, which all ranks read, or one per rank; `get` has one
// part per rank, in the order of ranks (for reductions one part: the result).
struct Exchange {
  Communicator* comm = nullptr;
  Operation operation = {};
  std::vector<Part> give, get;
  uint64_t ticket = 0;
  bool ticketed = false;
  std::vector<std::shared_ptr<Allocation>> held;  // strict mode: memory in use

  Collective kind() const { return static_cast<Collective>(operation.kind); }
  HcclDataType dtype() const { return static_cast<HcclDataType>(operation.dtype); }
  HcclReduceOp reduce() const { return static_cast<HcclReduceOp>(operation.reduce); }
};

// One message of a pair of ranks.
struct Message {
  bool send;
  Part part;
  uint32_t peer;
  HcclDataType dtype;
  uint64_t ticket = 0;
  uint64_t done = 0;
  uint32_t pieces = 0;
  bool finished = false;
};
struct Messages {
  Communicator* comm = nullptr;
  std::vector<Message> all;
  bool ticketed = false;
  std::vector<std::shared_ptr<Allocation>> held;
};

// A collective inside of an operator's kernel, for libopapi, which looks these up by name: the kernel
// has the turn of its stream, and nothing but the code tells how it went.
extern "C" {
// This device's rank in the communicator of that name, and how many there are; false for none.
ACLSIM_SHARED bool aclsim_group(const char* name, int32_t device, uint32_t* rank, uint32_t* ranks);
// `give` and `get` hold that many parts of as many bytes each; reductions are sums of float.
ACLSIM_SHARED aclError aclsim_exchange(const char* name, int32_t device, uint32_t kind, void* give,
                                       uint32_t gives, uint64_t give_bytes, void* get,
                                       uint32_t gets, uint64_t get_bytes);
}

// Both run on the stream's own thread and return the code that makes the stream faulty.
aclError run_exchange(Exchange& exchange, Stream* stream);
aclError run_messages(Messages& messages, Stream* stream);

}  // namespace aclsim
