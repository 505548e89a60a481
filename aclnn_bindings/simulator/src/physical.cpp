// Virtual memory management: address ranges that are reserved first and backed later, by pieces.
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "memory.h"
#include "strict.h"

namespace aclsim {
namespace {

// Granularity that aclrtMemGetAllocationGranularity reports: that of huge pages.
constexpr uint64_t kGranularity = 2 << 20;

struct Physical {
  int file;
  uint64_t size;
  int32_t device;
  int32_t mappings;
  bool freed;
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
  runtime().devices[physical->device].used.fetch_sub(physical->size);
  ranges().physical.erase(physical);
  delete physical;
}

aclError invalid(const char* function, const char* what) {
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011", "%s failed because %s.", function, what);
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

ACLSIM_API aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t, void*, uint64_t) {
  ACLSIM_REQUIRE(virPtr);
  thread();  // addresses belong to the process: torch_npu reserves some before it sets a device
  if (size == 0) return bad_value(__func__, "size", "0", "must be greater than 0");
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
  int file = -1;
  if (size <= config().memory && owner.used.load() <= config().memory - size) {
    file = memfd_create("aclsim", MFD_CLOEXEC);
  }
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) {
    if (file >= 0) close(file);
    return failed(ACL_ERROR_RT_MEMORY_ALLOCATION, "EE1023",
                  "%s failed because device %d has no room for %zu bytes: %llu of %llu bytes are "
                  "in use.", __func__, device, size,
                  static_cast<unsigned long long>(owner.used.load()),
                  static_cast<unsigned long long>(config().memory));
  }
  owner.used.fetch_add(size);
  auto* made = new Physical{file, size, device, 0, false};
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
  if (base + size > range->first + range->second) return invalid(__func__, "the range was not reserved");
  if (!ranges().physical.count(physical) || offset + size > physical->size) {
    return invalid(__func__, "the handle is not that of live physical memory of this size");
  }
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
