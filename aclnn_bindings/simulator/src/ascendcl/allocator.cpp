// Clients' allocators of device memory, by stream (acl/acl_rt_allocator.h). They are kept and handed
// out again; operators of the simulator need no memory of theirs.
#include <acl/acl_rt_allocator.h>

#include <map>
#include <mutex>
#include <set>

#include "ascendcl/device.h"

using namespace aclsim;

namespace {

struct Allocator {
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc alloc = nullptr;
  aclrtAllocatorFreeFunc free = nullptr;
  aclrtAllocatorAllocAdviseFunc advise = nullptr;
  aclrtAllocatorGetAddrFromBlockFunc address = nullptr;
};

std::mutex mutex;
// What lives, so that no stale description is read. Clients' destructors still call at exit: these
// outlive them.
std::set<Allocator*>& descs = *new std::set<Allocator*>;
struct Registered {
  Allocator* desc;
  Allocator values;  // as they were
};
std::map<Stream*, Registered>& by_stream = *new std::map<Stream*, Registered>;

// The description behind a handle; `mutex` is held.
Allocator* live(aclrtAllocatorDesc handle) {
  auto* desc = static_cast<Allocator*>(handle);
  return descs.count(desc) ? desc : nullptr;
}
aclError no_desc(const char* function) {
  return failed(ACL_ERROR_INVALID_PARAM, "EH0007",
                "%s failed because allocatorDesc was not made by aclrtAllocatorCreateDesc or was "
                "destroyed.", function);
}

template <class T>
aclError set(const char* function, aclrtAllocatorDesc handle, T Allocator::*field, T value) {
  thread();
  std::lock_guard<std::mutex> lock(mutex);
  Allocator* desc = live(handle);
  if (!desc) return no_desc(function);
  desc->*field = value;
  return ACL_SUCCESS;
}

}  // namespace

namespace aclsim {
void forget_allocator(Stream* stream) {
  std::lock_guard<std::mutex> lock(mutex);
  by_stream.erase(stream);
}
}  // namespace aclsim

ACLSIM_API aclrtAllocatorDesc aclrtAllocatorCreateDesc() {
  thread();
  std::lock_guard<std::mutex> lock(mutex);
  return *descs.insert(new Allocator).first;
}
ACLSIM_API aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc) {
  thread();
  std::lock_guard<std::mutex> lock(mutex);
  Allocator* desc = live(allocatorDesc);
  if (!desc) return no_desc(__func__);
  descs.erase(desc);
  delete desc;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc,
                                               aclrtAllocator allocator) {
  return set(__func__, allocatorDesc, &Allocator::object, allocator);
}
ACLSIM_API aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                     aclrtAllocatorAllocFunc func) {
  return set(__func__, allocatorDesc, &Allocator::alloc, func);
}
ACLSIM_API aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                    aclrtAllocatorFreeFunc func) {
  return set(__func__, allocatorDesc, &Allocator::free, func);
}
ACLSIM_API aclError aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                           aclrtAllocatorAllocAdviseFunc func) {
  return set(__func__, allocatorDesc, &Allocator::advise, func);
}
ACLSIM_API aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(
    aclrtAllocatorDesc allocatorDesc, aclrtAllocatorGetAddrFromBlockFunc func) {
  return set(__func__, allocatorDesc, &Allocator::address, func);
}

// A later registration of the stream replaces the earlier one.
ACLSIM_API aclError aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc) {
  ACLSIM_STREAM(on, stream);
  std::lock_guard<std::mutex> lock(mutex);
  Allocator* desc = live(allocatorDesc);
  if (!desc) return no_desc(__func__);
  if (!desc->object || !desc->alloc || !desc->free || !desc->address) {
    return failed(ACL_ERROR_INVALID_PARAM, "EH0007",
                  "%s failed because allocatorDesc has no object, alloc, free or address function.",
                  __func__);
  }
  by_stream[on] = {desc, *desc};
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtAllocatorUnregister(aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  forget_allocator(on);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtAllocatorGetByStream(
    aclrtStream stream, aclrtAllocatorDesc* allocatorDesc, aclrtAllocator* allocator,
    aclrtAllocatorAllocFunc* allocFunc, aclrtAllocatorFreeFunc* freeFunc,
    aclrtAllocatorAllocAdviseFunc* allocAdviseFunc,
    aclrtAllocatorGetAddrFromBlockFunc* getAddrFromBlockFunc) {
  ACLSIM_REQUIRE(allocatorDesc);
  ACLSIM_REQUIRE(allocator);
  ACLSIM_REQUIRE(allocFunc);
  ACLSIM_REQUIRE(freeFunc);
  ACLSIM_REQUIRE(allocAdviseFunc);
  ACLSIM_REQUIRE(getAddrFromBlockFunc);
  ACLSIM_STREAM(on, stream);
  std::lock_guard<std::mutex> lock(mutex);
  auto at = by_stream.find(on);
  if (at == by_stream.end()) {
    return failed(ACL_ERROR_INVALID_PARAM, "EH0007",
                  "%s failed because no allocator is registered for the stream.", __func__);
  }
  const Allocator& values = at->second.values;
  *allocatorDesc = at->second.desc;
  *allocator = values.object;
  *allocFunc = values.alloc;
  *freeFunc = values.free;
  *allocAdviseFunc = values.advise;
  *getAddrFromBlockFunc = values.address;
  return ACL_SUCCESS;
}
