// Collectives that operators run inside of their kernels: see exchange.h.
#include <algorithm>

#include "hccl/exchange.h"

namespace aclsim {
namespace {

Communicator* named(const char* name, int32_t device) {
  return name ? find_named(name, device) : nullptr;
}
std::vector<Part> parts_of(void* at, uint32_t count, uint64_t bytes) {
  std::vector<Part> parts;
  for (uint32_t i = 0; i < count; ++i) parts.push_back({static_cast<char*>(at) + i * bytes, bytes});
  return parts;
}

}  // namespace

bool aclsim_group(const char* name, int32_t device, uint32_t* rank, uint32_t* ranks) {
  const Communicator* comm = named(name, device);
  if (!comm) return false;
  *rank = comm->rank;
  *ranks = comm->segment.ranks;
  return true;
}
aclError aclsim_exchange(const char* name, int32_t device, uint32_t kind, void* give,
                         uint32_t gives, uint64_t give_bytes, void* get, uint32_t gets,
                         uint64_t get_bytes) {
  Exchange exchange;
  exchange.comm = named(name, device);
  if (!exchange.comm) return ACL_ERROR_RT_AICPU_EXCEPTION;
  const uint64_t count = std::max(give_bytes, get_bytes) / sizeof(float);
  exchange.operation = {kind, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, 0, count, 0};
  exchange.give = parts_of(give, gives, give_bytes);
  exchange.get = parts_of(get, gets, get_bytes);
  return run_exchange(exchange, nullptr);
}

}  // namespace aclsim
