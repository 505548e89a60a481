#include "ascendcl/memory.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <shared_mutex>
#include <vector>

#include "ascendcl/strict.h"

namespace aclsim {
namespace {

// aclrtMalloc's document promises 64 bytes; devices give whole blocks of 512, on which clients
// such as ggml (GGML_CANN buffers, 128 bytes) rely. Pinned host memory has the documented 64.
constexpr uint64_t kDeviceAlign = 512;
constexpr uint64_t kMostOfHost = uint64_t{1} << 47;  // addresses of a process
constexpr uint64_t kMapped = 256 * 1024;      // larger blocks come from mmap, untouched

struct Space {
  std::shared_mutex mutex;
  std::map<uintptr_t, std::shared_ptr<Allocation>> blocks;  // by base address
  std::vector<std::shared_ptr<Allocation>> deferred;
};

Space& space() {
  static Space* made = new Space;
  return *made;
}

uint64_t align_up(uint64_t size, uint64_t unit) { return (size + unit - 1) / unit * unit; }

char* take_pages(uint64_t size, uint64_t alignment) {
  if (size >= kMapped) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    madvise(at, size, MADV_HUGEPAGE);  // fewer faults in a first touch; a hint, so no check
    return static_cast<char*>(at);
  }
  return static_cast<char*>(aligned_alloc(alignment, align_up(size, alignment)));
}

// Under AddressSanitizer a kernel that touches more than was asked for is reported.
void mark_ends([[maybe_unused]] const Allocation& block) {
#ifdef __SANITIZE_ADDRESS__
  if (block.guarded || block.size >= kMapped) return;
  const uint64_t room = align_up(block.size, kDeviceAlign);
  __asan_poison_memory_region(block.base + block.asked, room - block.asked);
#endif
}

// Guarded memory has whole pages between two that fault, and lies at their start or at their end:
// there to the byte, which a multiple of an element's size keeps aligned. What is freed faults too.
constexpr uint64_t kPage = 4096;

uint64_t guarded_bytes(uint64_t asked) { return align_up(asked, kPage) + 2 * kPage; }

char* take_guarded(uint64_t asked) {
  const uint64_t bytes = guarded_bytes(asked);
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  char* first = static_cast<char*>(at) + kPage;
  mprotect(first, bytes - 2 * kPage, PROT_READ | PROT_WRITE);
  return config().guard == Guard::Start ? first
                                        : first + bytes - 2 * kPage - asked;
}

void give_guarded(const Allocation& block) {
  const auto base = reinterpret_cast<uintptr_t>(block.base);
  munmap(reinterpret_cast<void*>(base / kPage * kPage - kPage), guarded_bytes(block.asked));
}

void give_pages(const Allocation& block) {
  if (block.registered) return;
  if (block.guarded) return give_guarded(block);
  if (block.size >= kMapped) {
    munmap(block.base, block.size);
  } else {
    free(block.base);
  }
}

// What aclrtMalloc adds (its document): 32-byte rounding, plus 32 except on 950 and for
// aclrtMallocAlign32.
uint64_t padded(uint64_t size, bool exact) {
  bool plain = exact || config().soc->soc == Soc::Ascend950;
  return align_up(size, 32) + (plain ? 0 : 32);
}

bool all_idle() {
  Lock lock(runtime().mutex);
  for (Context* context = runtime().contexts; context; context = context->sibling) {
    for (Stream* s = context->streams; s; s = s->sibling) {
      if (!idle(s)) return false;
    }
  }
  return true;
}

void enter(std::shared_ptr<Allocation> block) {
  if (strict()) block->origin = make_origin();
  std::unique_lock<std::shared_mutex> lock(space().mutex);
  auto base = reinterpret_cast<uintptr_t>(block->base);
  space().blocks[base] = std::move(block);
}

std::shared_ptr<Allocation> leave(const void* address, Place place) {
  std::unique_lock<std::shared_mutex> lock(space().mutex);
  auto at = space().blocks.find(reinterpret_cast<uintptr_t>(address));
  if (at == space().blocks.end() || at->second->place != place || at->second->mapped) {
    return nullptr;
  }
  std::shared_ptr<Allocation> block = std::move(at->second);
  space().blocks.erase(at);
  return block;
}

void note_use(const Device& device) {
  if (!profiling()) return;
  profile_memory(static_cast<int32_t>(&device - runtime().devices), device.used.load());
}

// `before`: what was in use.
bool charge(Device& device, uint64_t size, uint64_t* before) {
  uint64_t used = device.used.load(std::memory_order_relaxed);
  do {
    if (size > config().memory || used > config().memory - size) return false;
  } while (!device.used.compare_exchange_weak(used, used + size));
  uint64_t peak = device.peak.load(std::memory_order_relaxed);
  while (peak < used + size && !device.peak.compare_exchange_weak(peak, used + size)) {
  }
  note_use(device);
  *before = used;
  return true;
}

aclError allocate(const char* function, void** out, uint64_t size, bool exact,
                  aclrtMemMallocPolicy policy) {
  CallSpan span(function);
  const uint64_t begin = profiling() ? profile_clock() : 0;
  ThreadState* state = thread();
  if (!out) return null_pointer(function, "devPtr");
  if (size == 0) return bad_value(function, "size", "0", "must be greater than 0");
  aclError code = ACL_SUCCESS;
  Context* context = current_context(state, function, &code);
  if (!context) return code;
  // Or-ing policies is refused; an unknown policy behaves like a default (aclrtMalloc document).
  if (policy > 7 && (policy & (policy - 1))) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003", "%s failed because policy %d combines policies.",
                  function, static_cast<int>(policy));
  }
  release_deferred();
  uint64_t usable = size > ~uint64_t{0} - 64 ? ~uint64_t{0} : padded(size, exact);
  Device& device = device_of(context);
  const bool guarded = config().guard != Guard::Off;
  uint64_t offset = 0;
  char* base = !charge(device, usable, &offset) ? nullptr
               : guarded                        ? take_guarded(size)
                                                : take_pages(usable, kDeviceAlign);
  if (!base) {
    return failed(ACL_ERROR_RT_MEMORY_ALLOCATION, "EE1023",
                  "%s failed because device %d has no room for %llu bytes: %llu of %llu bytes are "
                  "in use.", function, context->device, static_cast<unsigned long long>(size),
                  static_cast<unsigned long long>(device.used.load()),
                  static_cast<unsigned long long>(config().memory));
  }
  auto block = std::make_shared<Allocation>();
  block->base = base;
  block->size = block->charged = usable;
  block->offset = offset;
  block->asked = size;
  block->place = Place::Device;
  block->device = context->device;
  block->guarded = guarded;
  mark_ends(*block);
  enter(block);
  count_live(state, Kind::DeviceMemory, 1);
  *out = base;
  if (begin) profile_block(base, size, false, context->device, begin);
  return ACL_SUCCESS;
}

// Locked memory is whole pages: clients map it as it is (torch_npu's open source,
// NPUSwappedMemoryAllocator.cpp registers the next page border).
aclError allocate_host(const char* function, void** out, uint64_t size) {
  CallSpan span(function);
  ThreadState* state = thread();
  if (!out) return null_pointer(function, "hostPtr");
  if (size == 0) return bad_value(function, "size", "0", "must be greater than 0");
  aclError code = ACL_SUCCESS;
  if (!current_context(state, function, &code)) return code;
  char* base = size > kMostOfHost ? nullptr : take_pages(align_up(size, kPage), kPage);
  if (!base) {
    return failed(ACL_ERROR_RT_MEMORY_ALLOCATION, "EE1023",
                  "%s failed because the host has no room for %llu bytes.", function,
                  static_cast<unsigned long long>(size));
  }
  auto block = std::make_shared<Allocation>();
  block->base = base;
  block->size = align_up(size, kPage);
  block->asked = size;
  block->place = Place::Host;
  enter(block);
  count_live(state, Kind::HostMemory, 1);
  *out = base;
  return ACL_SUCCESS;
}

ACLSIM_NOINLINE aclError not_allocated(const char* function, const void* address) {
  if (strict()) {
    report_memory("free-of-unknown-memory", function, address, 0, nullptr,
                  "Free the address that the allocation returned, once.");
  }
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                "%s failed because %p is not the start of a live allocation of this kind.",
                function, address);
}

aclError give_back(const char* function, void* address, Place place) {
  CallSpan span(function);
  const uint64_t begin = profiling() ? profile_clock() : 0;
  if (!address) return null_pointer(function, place == Place::Device ? "devPtr" : "hostPtr");
  std::shared_ptr<Allocation> block = find_allocation(address);
  if (block && block->registered) return not_allocated(function, address);
  block = leave(address, place);
  if (!block) return not_allocated(function, address);
  count_live(thread(), place == Place::Device ? Kind::DeviceMemory : Kind::HostMemory, -1);
  bool misused = strict() && block->in_use.load() > 0;
  if (misused) {
    report_memory("freed-while-in-use", function, address, block->asked, block->origin,
                  "Synchronise the stream, or wait for an event, before freeing memory that "
                  "queued work uses.");
  }
  if (place == Place::Device && owns_pages(*block)) end_sharing(block->base);
  if (block->charged) {
    Device& device = runtime().devices[block->device];
    device.used.fetch_sub(block->charged);
    note_use(device);
  }
  if (begin && place == Place::Device) {
    profile_block(address, block->asked, true, block->device, begin);
  }
  {
    std::unique_lock<std::shared_mutex> lock(space().mutex);
    space().deferred.push_back(std::move(block));
  }
  release_deferred();
  return misused && strict_fails() ? ACL_ERROR_RT_MEMORY_FREE : ACL_SUCCESS;
}

}  // namespace

// Free does not wait for queued work. The pages stay until no stream is busy, so that work that
// still touches them spoils nothing but itself, as on a device.
void release_deferred() {
  std::vector<std::shared_ptr<Allocation>> blocks;
  {
    std::unique_lock<std::shared_mutex> lock(space().mutex);
    if (space().deferred.empty()) return;
    blocks.swap(space().deferred);
  }
  // Asked after they were taken: what is freed later may be in use by work queued later.
  if (all_idle()) {
    for (const auto& block : blocks) give_pages(*block);
    return;
  }
  std::unique_lock<std::shared_mutex> lock(space().mutex);
  auto& deferred = space().deferred;
  deferred.insert(deferred.end(), blocks.begin(), blocks.end());
}

Allocation::~Allocation() { drop_origin(origin); }

std::shared_ptr<Allocation> find_allocation(const void* address) {
  auto at = reinterpret_cast<uintptr_t>(address);
  std::shared_lock<std::shared_mutex> lock(space().mutex);
  auto next = space().blocks.upper_bound(at);
  if (next == space().blocks.begin()) return nullptr;
  const std::shared_ptr<Allocation>& block = std::prev(next)->second;
  return at < reinterpret_cast<uintptr_t>(block->base) + block->size ? block : nullptr;
}

// Pieces that adjoin are one range: who maps them side by side uses them so.
Extent find_extent(const void* address, uint64_t wanted) {
  auto at = reinterpret_cast<uintptr_t>(address);
  std::shared_lock<std::shared_mutex> lock(space().mutex);
  auto next = space().blocks.upper_bound(at);
  if (next == space().blocks.begin()) return {};
  const std::shared_ptr<Allocation>& first = std::prev(next)->second;
  uintptr_t end = reinterpret_cast<uintptr_t>(first->base) + first->size;
  if (at >= end) return {};
  if (!first->mapped) return {first, end - at};
  for (; end - at < wanted && next != space().blocks.end(); ++next) {
    if (next->first != end || !next->second->mapped) break;
    end += next->second->size;
  }
  return {first, end - at};
}

bool owns_pages(const Allocation& block) {
  return block.size >= kMapped && !block.registered && !block.mapped && !block.guarded;
}

void enter_mapping(void* base, uint64_t size, int32_t device) {
  auto block = std::make_shared<Allocation>();
  block->base = static_cast<char*>(base);
  block->size = block->asked = size;
  block->place = Place::Device;
  block->mapped = true;
  block->device = device;
  enter(block);
}

void leave_mapping(void* base) {
  std::unique_lock<std::shared_mutex> lock(space().mutex);
  auto at = space().blocks.find(reinterpret_cast<uintptr_t>(base));
  if (at == space().blocks.end()) return;
  space().blocks.erase(at);
}

void count_allocations(bool device, const std::function<void(const Origin*)>& each) {
  std::shared_lock<std::shared_mutex> lock(space().mutex);
  for (const auto& entry : space().blocks) {
    bool counted = !entry.second->mapped && !entry.second->registered;
    if (counted && (entry.second->place == Place::Device) == device) each(entry.second->origin);
  }
}

}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return allocate(__func__, devPtr, size, false, policy);
}
ACLSIM_API aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return allocate(__func__, devPtr, size, true, policy);
}
ACLSIM_API aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return allocate(__func__, devPtr, size, false, policy);
}
ACLSIM_API aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy policy,
                                       aclrtMallocConfig*) {
  return allocate(__func__, devPtr, size, false, policy);
}
ACLSIM_API aclError aclrtFree(void* devPtr) { return give_back(__func__, devPtr, Place::Device); }
ACLSIM_API aclError aclrtFreeWithDevSync(void* devPtr) {
  aclError code = aclrtSynchronizeDevice();
  return code == ACL_SUCCESS ? give_back(__func__, devPtr, Place::Device) : code;
}
ACLSIM_API aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return allocate_host(__func__, hostPtr, size);
}
ACLSIM_API aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig*) {
  return allocate_host(__func__, ptr, size);
}
ACLSIM_API aclError aclrtFreeHost(void* hostPtr) {
  return give_back(__func__, hostPtr, Place::Host);
}
ACLSIM_API aclError aclrtFreeHostWithDevSync(void* hostPtr) {
  aclError code = aclrtSynchronizeDevice();
  return code == ACL_SUCCESS ? give_back(__func__, hostPtr, Place::Host) : code;
}

namespace {
// Whether memory that is registered or allocated already begins in [ptr, ptr + size).
bool reaches_another(const void* ptr, uint64_t size) {
  auto at = reinterpret_cast<uintptr_t>(ptr);
  std::shared_lock<std::shared_mutex> lock(space().mutex);
  auto next = space().blocks.lower_bound(at);
  return next != space().blocks.end() && next->first - at < size;
}

// Whether this process has every page of [ptr, ptr + size).
bool is_mapped(const void* ptr, uint64_t size) {
  if (size > kMostOfHost) return false;
  constexpr uint64_t kAtOnce = uint64_t{1} << 16;  // pages
  std::vector<unsigned char> resident(std::min(align_up(size, kPage) / kPage + 1, kAtOnce));
  const auto begin = reinterpret_cast<uintptr_t>(ptr) / kPage * kPage;
  const auto end = align_up(reinterpret_cast<uintptr_t>(ptr) + size, kPage);
  for (uintptr_t at = begin; at < end; at += kAtOnce * kPage) {
    const size_t bytes = std::min<uint64_t>(end - at, kAtOnce * kPage);
    if (mincore(reinterpret_cast<void*>(at), bytes, resident.data()) != 0) return false;
  }
  return true;
}

aclError past_allocation(const char* function, const void* ptr, uint64_t size) {
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                "%s failed because %llu bytes from %p go past the allocation that they begin in, "
                "into another, or to addresses that hold no memory.", function, static_cast<unsigned long long>(size), ptr);
}

// aclrtHostRegister document: page-aligned address; registering twice is refused. Memory that is
// only locked, not mapped, may begin anywhere: clients lock what malloc gave them. What
// aclrtMallocHost gave is locked, and may be mapped (torch_npu's memory for swapping).
aclError register_host(const char* function, void* ptr, uint64_t size, bool mapped) {
  if (!ptr) return null_pointer(function, "ptr");
  if (size == 0) return bad_value(function, "size", "0", "must be greater than 0");
  ThreadState* state = thread();
  aclError code = ACL_SUCCESS;
  if (!current_context(state, function, &code)) return code;
  if (mapped && reinterpret_cast<uintptr_t>(ptr) % 4096) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because ptr %p is not aligned to a page of 4096 bytes.", function, ptr);
  }
  std::shared_ptr<Allocation> block = find_allocation(ptr);
  if (block) {
    const void* none = nullptr;
    const bool own = block->place == Place::Host && !block->registered;
    const char* end = block->base + block->size;
    if (own && size > static_cast<uint64_t>(end - static_cast<char*>(ptr))) {
      return past_allocation(function, ptr, size);
    }
    if (own && mapped && block->mapped_at.compare_exchange_strong(none, ptr)) return ACL_SUCCESS;
    return failed(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "EE1011",
                  "%s failed because %p is already registered.", function, ptr);
  }
  if (!is_mapped(ptr, size) || reaches_another(ptr, size)) {
    return past_allocation(function, ptr, size);
  }
  block = std::make_shared<Allocation>();
  block->base = static_cast<char*>(ptr);
  block->size = block->asked = size;
  block->place = Place::Host;
  block->registered = true;
  if (mapped) block->mapped_at = ptr;
  enter(block);
  return ACL_SUCCESS;
}
}  // namespace

ACLSIM_API aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type,
                                      void** devPtr) {
  if (!devPtr) return null_pointer(__func__, "devPtr");
  if (type != ACL_HOST_REGISTER_MAPPED) return bad_value(__func__, "type", "other", "ACL_HOST_REGISTER_MAPPED");
  aclError code = register_host(__func__, ptr, size, true);
  if (code == ACL_SUCCESS) *devPtr = ptr;
  return code;
}
ACLSIM_API aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
  constexpr uint32_t kMapped = ACL_HOST_REG_MAPPED, kPinned = ACL_HOST_REG_PINNED;
  if (!(flag & (kMapped | kPinned)) || flag & ~(kMapped | kPinned)) {
    return bad_value(__func__, "flag", "other", "ACL_HOST_REG_MAPPED, ACL_HOST_REG_PINNED or both");
  }
  return register_host(__func__, ptr, size, flag & kMapped);
}
ACLSIM_API aclError aclrtHostUnregister(void* ptr) {
  if (!ptr) return null_pointer(__func__, "ptr");
  std::shared_ptr<Allocation> block = find_allocation(ptr);
  const void* at = ptr;
  if (block && block->registered && block->base == ptr) {
    leave(ptr, Place::Host);
  } else if (!block || block->registered ||
             !block->mapped_at.compare_exchange_strong(at, nullptr)) {
    return failed(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "EE1011",
                  "%s failed because %p is not registered.", __func__, ptr);
  }
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t) {
  ACLSIM_REQUIRE(pHost);
  ACLSIM_REQUIRE(pDevice);
  std::shared_ptr<Allocation> block = find_allocation(pHost);
  if (!block || block->place != Place::Host) {
    return failed(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "EE1011",
                  "%s failed because %p is not registered.", __func__, pHost);
  }
  *pDevice = pHost;
  return ACL_SUCCESS;
}

// The simulator has one kind of memory: HBM attributes fall back to it, others give zeros as an
// absent kind does (aclrtGetMemInfo document).
ACLSIM_API aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  CallSpan span(__func__);
  ACLSIM_REQUIRE(free);
  ACLSIM_REQUIRE(total);
  ACLSIM_CONTEXT(context);
  bool hbm = attr == ACL_HBM_MEM || attr == ACL_HBM_MEM_HUGE || attr == ACL_HBM_MEM_NORMAL ||
             attr == ACL_DDR_MEM;
  *total = hbm ? config().memory : 0;
  *free = hbm ? config().memory - device_of(context).used.load() : 0;
  return ACL_SUCCESS;
}

// One component holds memory here, the program; CANN names many, the largest first.
ACLSIM_API aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo,
                                         size_t inputNum, size_t* outputNum) {
  thread();
  ACLSIM_REQUIRE(memUsageInfo);
  ACLSIM_REQUIRE(outputNum);
  if (!inputNum) return bad_value(__func__, "inputNum", "0", "must be greater than 0");
  if (deviceId < 0 || deviceId >= config().devices) {
    return failed(ACL_ERROR_RT_INVALID_DEVICEID, "EE1003", "%s failed because device %d does not exist.",
                  __func__, deviceId);
  }
  const Device& device = runtime().devices[deviceId];
  memUsageInfo[0] = {};
  snprintf(memUsageInfo[0].name, sizeof memUsageInfo[0].name, "APP");
  memUsageInfo[0].curMemSize = device.used.load();
  memUsageInfo[0].memPeakSize = device.peak.load();
  *outputNum = 1;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  ACLSIM_REQUIRE(ptr);
  ACLSIM_REQUIRE(attributes);
  std::shared_ptr<Allocation> block = find_allocation(ptr);
  memset(attributes, 0, sizeof *attributes);
  attributes->location.type = !block                         ? ACL_MEM_LOCATION_TYPE_UNREGISTERED
                              : block->place == Place::Device ? ACL_MEM_LOCATION_TYPE_DEVICE
                                                              : ACL_MEM_LOCATION_TYPE_HOST;
  attributes->location.id = block && block->place == Place::Device ? block->device : 0;
  attributes->pageSize = 4096;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtMemGetAddressRange(void* ptr, void** pbase, size_t* psize) {
  ACLSIM_REQUIRE(ptr);
  std::shared_ptr<Allocation> block = find_allocation(ptr);
  if (!block) return not_allocated(__func__, ptr);
  if (pbase) *pbase = block->base;
  if (psize) *psize = block->asked;
  return ACL_SUCCESS;
}
