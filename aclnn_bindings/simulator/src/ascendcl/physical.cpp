// Virtual memory management: address ranges that are reserved first and backed later, by pieces.
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "ascendcl/memory.h"
#include "ascendcl/sharing.h"
#include "ascendcl/strict.h"

namespace aclsim {
namespace {

// Granularity that aclrtMemGetAllocationGranularity reports: that of huge pages.
constexpr uint64_t kGranularity = 2 << 20;
constexpr uint64_t kMostAddresses = uint64_t{1} << 47;  // of a process

struct Physical {
  ShareId id;     // under which other processes open it
  int file;
  uint64_t size;
  int32_t device;
  int32_t mappings;
  bool freed;
  bool imported;  // another process made it, and counts it
};
struct Mapping {
  uint64_t size;
  Physical* backing;
};
struct Ranges {
  std::mutex mutex;
  std::map<char*, uint64_t> reserved;
  std::map<char*, Mapping> mapped;
  std::map<Physical*, bool> physical;
};
Ranges& ranges() {
  static Ranges* made = new Ranges;
  return *made;
}

void release(Physical* physical) {
  if (!physical->freed || physical->mappings) return;
  close(physical->file);
  if (!physical->imported) runtime().devices[physical->device].used.fetch_sub(physical->size);
  ranges().physical.erase(physical);
  delete physical;
}

// Whether something is mapped in [base, base + size).
bool overlaps(const char* base, uint64_t size) {
  auto next = ranges().mapped.lower_bound(const_cast<char*>(base));
  if (next != ranges().mapped.end() && next->first < base + size) return true;
  if (next == ranges().mapped.begin()) return false;
  --next;
  return next->first + next->second.size > base;
}

aclError invalid(const char* function, const char* what) {
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011", "%s failed because %s.", function, what);
}

// A live handle, or null with a message.
Physical* find_physical(const char* function, aclrtDrvMemHandle handle, aclError* code) {
  auto* physical = static_cast<Physical*>(handle);
  if (ranges().physical.count(physical) && !physical->freed) return physical;
  *code = invalid(function, "the handle is not that of live physical memory");
  return nullptr;
}

Physical* find_shared(ShareId id) {
  for (const auto& one : ranges().physical) {
    if (one.first->id == id && !one.first->imported) return one.first;
  }
  return nullptr;
}

aclError share(const char* function, aclrtDrvMemHandle handle, uint64_t flags, ShareId* id) {
  if (flags > ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION) {
    return bad_value(function, "flags", "unknown", "0 or 1");
  }
  std::lock_guard<std::mutex> lock(ranges().mutex);
  aclError code = ACL_SUCCESS;
  Physical* physical = find_physical(function, handle, &code);
  if (!physical) return code;
  if (flags) allow_everyone(physical->file);
  *id = physical->id;
  return ACL_SUCCESS;
}

aclError allow(const char* function, ShareId id, const int32_t* pids, size_t count) {
  std::lock_guard<std::mutex> lock(ranges().mutex);
  Physical* physical = find_shared(id);
  if (!physical) return invalid(function, "this process exports no such handle");
  return allow_processes(function, physical->file, pids, count);
}

aclError import(const char* function, ShareId id, int32_t device, aclrtDrvMemHandle* handle) {
  if (device < 0 || device >= config().devices) return invalid(function, "the device does not exist");
  uint64_t bytes = 0;
  int file = open_shared_file(id, &bytes);
  if (file < 0) return invalid(function, "no living process exports this handle");
  if (!allowed(file)) {
    close(file);
    return failed(ACL_ERROR_RT_NO_PERMISSION, "EE1011",
                  "%s failed because the exporting process did not name process %d with "
                  "aclrtMemSetPidToShareableHandle.", function, static_cast<int>(getpid()));
  }
  auto* made = new Physical{id, file, bytes, device, 0, false, true};
  std::lock_guard<std::mutex> lock(ranges().mutex);
  ranges().physical[made] = true;
  *handle = made;
  return ACL_SUCCESS;
}

aclError check_share_type(const char* function, aclrtMemSharedHandleType type) {
  if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006",
                "%s: handles between servers (fabric) are not simulated.", function);
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                                     aclrtMemGranularityOptions,
                                                     size_t* granularity) {
  ACLSIM_REQUIRE(prop);
  ACLSIM_REQUIRE(granularity);
  *granularity = kGranularity;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void*,
                                           uint64_t) {
  ACLSIM_REQUIRE(virPtr);
  thread();  // addresses belong to the process: torch_npu reserves some before it sets a device
  if (size == 0) return bad_value(__func__, "size", "0", "must be greater than 0");
  if (alignment) return bad_value(__func__, "alignment", "nonzero", "0");
  if (size > kMostAddresses) {
    return failed(ACL_ERROR_RT_MEMORY_ALLOCATION, "EE1023", "%s failed: no %zu bytes of addresses.",
                  __func__, size);
  }
  uint64_t room = (size + kGranularity - 1) / kGranularity * kGranularity;
  void* at = mmap(nullptr, room + kGranularity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
  if (at == MAP_FAILED) {
    return failed(ACL_ERROR_RT_MEMORY_ALLOCATION, "EE1023", "%s failed: no %zu bytes of addresses.",
                  __func__, size);
  }
  auto raw = reinterpret_cast<uintptr_t>(at);
  uintptr_t base = (raw + kGranularity - 1) / kGranularity * kGranularity;
  if (base > raw) munmap(at, base - raw);
  if (raw + kGranularity > base) munmap(reinterpret_cast<void*>(base + room), raw + kGranularity - base);
  *virPtr = reinterpret_cast<void*>(base);
  std::lock_guard<std::mutex> lock(ranges().mutex);
  ranges().reserved[static_cast<char*>(*virPtr)] = room;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtReserveMemAddressNoUCMemory(void** virPtr, size_t size, size_t alignment,
                                                     void* expectPtr, uint64_t flags) {
  return aclrtReserveMemAddress(virPtr, size, alignment, expectPtr, flags);
}

ACLSIM_API aclError aclrtReleaseMemAddress(void* virPtr) {
  ACLSIM_REQUIRE(virPtr);
  std::lock_guard<std::mutex> lock(ranges().mutex);
  auto at = ranges().reserved.find(static_cast<char*>(virPtr));
  if (at == ranges().reserved.end()) return invalid(__func__, "the address was not reserved");
  auto inside = ranges().mapped.lower_bound(at->first);
  if (inside != ranges().mapped.end() && inside->first < at->first + at->second) {
    return invalid(__func__, "parts of the range are still mapped");
  }
  munmap(at->first, at->second);
  ranges().reserved.erase(at);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                                        const aclrtPhysicalMemProp* prop, uint64_t) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_REQUIRE(prop);
  ACLSIM_CONTEXT(context);
  if (size == 0 || size % kGranularity) {
    return invalid(__func__, "size is not a multiple of the allocation granularity");
  }
  int32_t device = prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE
                       ? static_cast<int32_t>(prop->location.id) : context->device;
  if (device < 0 || device >= config().devices) return invalid(__func__, "the device does not exist");
  Device& owner = runtime().devices[device];
  ShareId id = 0;
  bool room = size <= config().memory && owner.used.load() <= config().memory - size;
  int file = room ? make_shared_file(size, &id) : -1;
  if (file < 0) {
    return failed(ACL_ERROR_RT_MEMORY_ALLOCATION, "EE1023",
                  "%s failed because device %d has no room for %zu bytes: %llu of %llu bytes are "
                  "in use.", __func__, device, size,
                  static_cast<unsigned long long>(owner.used.load()),
                  static_cast<unsigned long long>(config().memory));
  }
  owner.used.fetch_add(size);
  auto* made = new Physical{id, file, size, device, 0, false, false};
  std::lock_guard<std::mutex> lock(ranges().mutex);
  ranges().physical[made] = true;
  *handle = made;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  ACLSIM_REQUIRE(handle);
  std::lock_guard<std::mutex> lock(ranges().mutex);
  auto* physical = static_cast<Physical*>(handle);
  if (!ranges().physical.count(physical) || physical->freed) {
    return invalid(__func__, "the handle is not that of live physical memory");
  }
  physical->freed = true;
  release(physical);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                                uint64_t) {
  ACLSIM_REQUIRE(virPtr);
  ACLSIM_REQUIRE(handle);
  std::lock_guard<std::mutex> lock(ranges().mutex);
  auto* physical = static_cast<Physical*>(handle);
  auto* base = static_cast<char*>(virPtr);
  auto range = ranges().reserved.upper_bound(base);
  if (range == ranges().reserved.begin()) return invalid(__func__, "the address was not reserved");
  --range;
  const auto into = static_cast<uint64_t>(base - range->first);
  if (into >= range->second || size > range->second - into) {
    return invalid(__func__, "the range was not reserved");
  }
  if (!ranges().physical.count(physical) || size > physical->size ||
      offset > physical->size - size) {
    return invalid(__func__, "the handle is not that of live physical memory of this size");
  }
  if (size == 0 || size % kGranularity || into % kGranularity || offset % kGranularity) {
    return invalid(__func__, "address, size or offset is not a multiple of the granularity");
  }
  if (overlaps(base, size)) return invalid(__func__, "a part of the range is mapped already");
  void* at = mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file,
                  static_cast<off_t>(offset));
  if (at == MAP_FAILED) return invalid(__func__, "the system refused the mapping");
  ranges().mapped[base] = {size, physical};
  ++physical->mappings;
  enter_mapping(base, size, physical->device);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtUnmapMem(void* virPtr) {
  ACLSIM_REQUIRE(virPtr);
  aclError code = aclrtSynchronizeDevice();  // pages must not go while work touches them
  if (code != ACL_SUCCESS) return code;
  std::lock_guard<std::mutex> lock(ranges().mutex);
  auto at = ranges().mapped.find(static_cast<char*>(virPtr));
  if (at == ranges().mapped.end()) return invalid(__func__, "the address is not mapped");
  leave_mapping(at->first);
  mmap(at->first, at->second.size, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  --at->second.backing->mappings;
  release(at->second.backing);
  ranges().mapped.erase(at);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType,
                                                    uint64_t flags, uint64_t* shareableHandle) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_REQUIRE(shareableHandle);
  return share(__func__, handle, flags, shareableHandle);
}
ACLSIM_API aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
                                                      aclrtMemSharedHandleType shareType,
                                                      void* shareableHandle) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_REQUIRE(shareableHandle);
  aclError code = check_share_type(__func__, shareType);
  return code ? code : share(__func__, handle, flags, static_cast<uint64_t*>(shareableHandle));
}
ACLSIM_API aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid,
                                                    size_t pidNum) {
  ACLSIM_REQUIRE(pid);
  return allow(__func__, shareableHandle, pid, pidNum);
}
ACLSIM_API aclError aclrtMemSetPidToShareableHandleV2(void* shareableHandle,
                                                      aclrtMemSharedHandleType shareType,
                                                      int32_t* pid, size_t pidNum) {
  ACLSIM_REQUIRE(shareableHandle);
  ACLSIM_REQUIRE(pid);
  aclError code = check_share_type(__func__, shareType);
  return code ? code : allow(__func__, *static_cast<uint64_t*>(shareableHandle), pid, pidNum);
}
ACLSIM_API aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
                                                      aclrtDrvMemHandle* handle) {
  ACLSIM_REQUIRE(handle);
  thread();
  return import(__func__, shareableHandle, deviceId, handle);
}
ACLSIM_API aclError aclrtMemImportFromShareableHandleV2(void* shareableHandle,
                                                        aclrtMemSharedHandleType shareType,
                                                        uint64_t, aclrtDrvMemHandle* handle) {
  ACLSIM_REQUIRE(shareableHandle);
  ACLSIM_REQUIRE(handle);
  ACLSIM_CONTEXT(context);
  aclError code = check_share_type(__func__, shareType);
  if (code != ACL_SUCCESS) return code;
  return import(__func__, *static_cast<uint64_t*>(shareableHandle), context->device, handle);
}
