// Values in device memory that streams write and wait for.
#include "ascendcl/value_task.h"

#include <chrono>
#include <thread>

#include "ascendcl/device.h"
#include "ascendcl/memory.h"

namespace aclsim {
namespace {

// The documented comparisons of aclrtValueWait.
bool satisfied(uint64_t found, uint64_t value, uint32_t flag) {
  switch (flag) {
    case ACL_STREAM_WAIT_VALUE_EQ: return found == value;
    case ACL_STREAM_WAIT_VALUE_AND: return (found & value) != 0;
    case ACL_STREAM_WAIT_VALUE_NOR: return ~(found | value) != 0;
    default: return static_cast<int64_t>(found - value) >= 0;
  }
}

}  // namespace

aclError ValueWrite::operator()(Stream*) const {
  __atomic_store_n(static_cast<uint64_t*>(word), value, __ATOMIC_RELEASE);
  return ACL_SUCCESS;
}

aclError ValueWait::operator()(Stream* stream) const {
  while (!stream->aborted.load() &&
         !satisfied(__atomic_load_n(static_cast<uint64_t*>(word), __ATOMIC_ACQUIRE), value, flag)) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return ACL_SUCCESS;
}

Task* make_value_write(const ValueWrite& write) {
  Task* task = make_task(write);
  task->name = kValueWrite;
  return task;
}

Task* make_value_wait(const ValueWait& wait) {
  Task* task = make_task(wait, true);
  task->name = kValueWait;
  return task;
}

aclError check_word(const char* function, void* address) {
  if (!address) return null_pointer(function, "devAddr");
  std::shared_ptr<Allocation> block = find_allocation(address);
  if (block && reinterpret_cast<uintptr_t>(address) % 8 == 0) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                "%s failed because %p is not an 8-byte aligned address of acl memory.", function,
                address);
}

aclError check_wait_flag(const char* function, uint32_t flag) {
  return flag > ACL_STREAM_WAIT_VALUE_NOR ? bad_value(function, "flag", "unknown", "0 to 3")
                                          : ACL_SUCCESS;
}

}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag,
                                    aclrtStream stream) {
  if (flag) return bad_value(__func__, "flag", "nonzero", "0");
  ACLSIM_STREAM(on, stream);
  aclError code = check_word(__func__, devAddr);
  return code == ACL_SUCCESS ? submit(on, make_value_write({devAddr, value})) : code;
}
ACLSIM_API aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag,
                                   aclrtStream stream) {
  aclError code = check_wait_flag(__func__, flag);
  if (code != ACL_SUCCESS) return code;
  ACLSIM_STREAM(on, stream);
  code = check_word(__func__, devAddr);
  return code == ACL_SUCCESS ? submit(on, make_value_wait({devAddr, value, flag})) : code;
}
