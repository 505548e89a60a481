// Families of calls, each with what its document promises and with every argument that it refuses;
// one family per run, by name.
#include <acl/acl_op_compiler.h>
#include <acl/acl_prof.h>
#include <acl/acl_rt_allocator.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "kit.h"

// Symbols of libraries without public headers (libms_tools_ext, libascend_hal, libprofapi).
extern "C" {
void mstxMarkA(const char*, aclrtStream);
uint64_t mstxRangeStartA(const char*, aclrtStream);
void mstxRangeEnd(uint64_t);
void* mstxDomainCreateA(const char*);
void mstxDomainDestroy(void*);
void mstxDomainMarkA(void*, const char*, aclrtStream);
uint64_t mstxDomainRangeStartA(void*, const char*, aclrtStream);
void mstxDomainRangeEnd(void*, uint64_t);
int32_t drvGetDevNum(uint32_t*);
int32_t halGetAPIVersion(int32_t*);
int32_t halGetDeviceInfo(uint32_t, int32_t, int32_t, int64_t*);
int32_t halHostRegister(void*, uint64_t, uint32_t, uint32_t, void**);
int32_t halHostUnregister(void*, uint32_t);
int32_t MsprofRegisterCallback(uint32_t, void*);
int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t);
int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t);
uint64_t MsprofGetHashId(const char*, size_t);
uint64_t MsprofSysCycleTime();
int32_t rtDevBinaryRegister(const void*, void**);
int32_t rtDevBinaryUnRegister(void*);
int32_t rtFunctionRegister(void*, const void*, const char*, const void*, uint32_t);
int32_t rtGetC2cCtrlAddr(uint64_t*, uint32_t*);
int32_t rtLaunch(const void*);
int32_t InitHugeMemThreadLocal(void*, bool);
void UnInitHugeMemThreadLocal(void*, bool);
void ReleaseHugeMem(void*, bool);
}

constexpr int kNull = ACL_ERROR_INVALID_PARAM, kRange = ACL_ERROR_RT_PARAM_INVALID;
static std::atomic<bool> gate{false};
static void wait_for_gate(void*) {
  while (!gate.load()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}
// A type that its enum does not have.
template <class Enum>
static Enum strange() {
  return static_cast<Enum>(7777);
}

// Two copies each way, by lists that a check may spoil.
struct Lists {
  std::vector<float> host{1, 2, 3, 4};
  void* device = Kit::floats({0, 0, 0, 0});
  void* dsts[2] = {device, static_cast<char*>(device) + 8};
  void* srcs[2] = {host.data(), host.data() + 2};
  size_t maxs[2] = {8, 8}, sizes[2] = {8, 8}, firsts[2] = {0, 1}, count = 2, attribute_count = 1;
  size_t failed_at = 77;
  aclrtMemcpyBatchAttr attributes[2] = {};
  Lists() { point(ACL_MEM_LOCATION_TYPE_DEVICE, ACL_MEM_LOCATION_TYPE_HOST); }
  void point(aclrtMemLocationType to, aclrtMemLocationType from) {
    for (auto& one : attributes) one.dstLoc = {0, to}, one.srcLoc = {0, from};
  }
  void turn() {
    for (int i = 0; i < 2; ++i) std::swap(dsts[i], srcs[i]);
    point(ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_DEVICE);
  }
  int copy() {
    return aclrtMemcpyBatch(dsts, maxs, srcs, sizes, count, attributes, firsts, attribute_count,
                            &failed_at);
  }
  int copy_on(aclrtStream stream) {
    return aclrtMemcpyBatchAsync(dsts, maxs, srcs, sizes, count, attributes, firsts,
                                 attribute_count, &failed_at, stream);
  }
  // Both forms refuse what `spoil` made of the lists, and nothing was copied.
  static void refuse(int code, std::function<void(Lists&)> spoil, size_t failed_at = ~size_t{0}) {
    for (bool now : {true, false}) {
      Lists lists;
      spoil(lists);
      const int answer = now ? lists.copy() : lists.copy_on(nullptr);
      if (answer != code) printf("%d instead of %d\n", answer, code);
      CHECK(answer == code);
      CHECK(lists.failed_at == failed_at);
      CHECK(Kit::back(lists.device, 4) == std::vector<float>(4, 0));
      MUST(aclrtFree(lists.device));
    }
  }
};

static void batches() {
  Kit kit;
  Lists lists;
  MUST(lists.copy());
  CHECK(lists.failed_at == ~size_t{0} && Kit::back(lists.device, 4) == lists.host);
  std::vector<float> sent = lists.host;
  lists.host.assign(4, 0);
  lists.turn();
  MUST(lists.copy_on(kit.stream));  // pageable: done when the call returns
  CHECK(lists.host == sent);
  lists.host.assign(4, 0);
  MUST(aclrtMemcpyBatchV2(lists.dsts, lists.maxs, lists.srcs, lists.sizes, 2, lists.attributes,
                          lists.firsts, 2));
  CHECK(lists.host == sent);
  lists.host.assign(4, 0);
  lists.sizes[1] = 0;  // nothing of the second
  MUST(aclrtMemcpyBatchAsyncV2(lists.dsts, lists.maxs, lists.srcs, lists.sizes, 2,
                               lists.attributes, lists.firsts, 1, kit.stream));
  CHECK((lists.host == std::vector<float>{1, 2, 0, 0}));
  lists.sizes[0] = 0;
  MUST(aclrtMemcpyBatch(nullptr, nullptr, nullptr, lists.sizes, 2, nullptr, nullptr, 0, nullptr));
  MUST(aclrtFree(lists.device));
  kit.end();
}

static void batches_refuse() {
  Kit kit;
  size_t one = 1;
  CHECK(aclrtMemcpyBatch(nullptr, nullptr, nullptr, nullptr, 1, nullptr, nullptr, 1, nullptr) == kNull);
  CHECK(aclrtMemcpyBatch(nullptr, nullptr, nullptr, &one, 1, nullptr, nullptr, 1, nullptr) == kNull);
  CHECK(aclrtMemcpyBatchV2(nullptr, nullptr, nullptr, nullptr, 1, nullptr, nullptr, 1) == kNull);
  CHECK(aclrtMemcpyBatchAsyncV2(nullptr, nullptr, nullptr, nullptr, 1, nullptr, nullptr, 1, nullptr) ==
        kNull);
  Lists::refuse(kNull, [](Lists& l) { l.count = 0; }, 77);
  Lists::refuse(kNull, [](Lists& l) { l.sizes[1] = 9; });
  Lists::refuse(kNull, [](Lists& l) { l.attributes[0].rsv[15] = 1; });
  Lists::refuse(kRange, [](Lists& l) { l.attribute_count = 0; });
  Lists::refuse(kRange, [](Lists& l) { l.attribute_count = 3; });
  Lists::refuse(kRange, [](Lists& l) { l.firsts[0] = 1; });
  Lists::refuse(kRange, [](Lists& l) { l.attribute_count = 2, l.firsts[1] = 0; });
  Lists::refuse(kRange, [](Lists& l) { l.attribute_count = 2, l.firsts[1] = 2; });
  Lists::refuse(kRange, [](Lists& l) {
    l.attribute_count = 2, l.attributes[1].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  }, 1);
  Lists::refuse(kRange, [](Lists& l) { l.attributes[0].dstLoc.id = 1; }, 0);
  Lists::refuse(kRange, [](Lists& l) { l.srcs[1] = nullptr; }, 1);
  Lists::refuse(kRange, [](Lists& l) {
    l.srcs[1] = l.dsts[0], l.attribute_count = 2;
    l.attributes[1].srcLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  }, 1);
  Lists::refuse(kRange, [](Lists& l) { l.sizes[1] = l.maxs[1] = 4096; });
  CHECK(aclrtMemcpyBatchAsync(nullptr, nullptr, nullptr, &one, 1, nullptr, nullptr, 1, nullptr, nullptr) ==
        kNull);
  kit.end();
}

static void words() {
  Kit kit;
  void* at = Kit::floats({0, 0, 0, 0});
  auto* inside = static_cast<char*>(at) + 4;
  uint32_t seen[4];
  MUST(aclrtMemsetD32(inside, 12, 0xDEADBEEF, 2));
  MUST(aclrtMemcpy(seen, 16, at, 16, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(seen[0] == 0 && seen[1] == 0xDEADBEEF && seen[2] == 0xDEADBEEF && seen[3] == 0);
  MUST(aclrtMemsetD32Async(at, 16, 7, 4, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclrtMemcpy(seen, 16, at, 16, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(seen[0] == 7 && seen[3] == 7);
  MUST(aclrtMemsetD32(nullptr, 0, 1, 0));
  MUST(aclrtMemsetD32Async(nullptr, 0, 1, 0, kit.stream));
  std::vector<uint32_t> own(4);
  // Counts whose bytes are more than 64 bits hold must not pass as few.
  const size_t overflowing[] = {5, (size_t{1} << 62) + 1, size_t{1} << 62, ~size_t{0}};
  for (bool now : {true, false}) {
    auto fill = [&](void* to, size_t max, size_t count) {
      return now ? aclrtMemsetD32(to, max, 1, count)
                 : aclrtMemsetD32Async(to, max, 1, count, kit.stream);
    };
    CHECK(fill(nullptr, 16, 4) == kNull);
    CHECK(fill(static_cast<char*>(at) + 2, 8, 2) == kNull);
    for (size_t count : overflowing) CHECK(fill(at, 16, count) == kNull);
    CHECK(fill(own.data(), 16, 4) == kRange);
    CHECK(fill(inside, 1 << 20, 1 << 10) == kRange);  // past the allocation
  }
  CHECK(aclrtMemsetD32Async(at, 16, 1, 4, at) == kRange);  // no stream
  MUST(aclrtFree(at));
  kit.end();
}

static void rows() {
  Kit kit;
  const std::vector<float> from{1, 2, 3, 4, 5, 6};
  void* at = Kit::floats(std::vector<float>(8, 0));
  MUST(aclrtMemcpy2dAsync(at, 16, from.data(), 12, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK((Kit::back(at, 8) == std::vector<float>{1, 2, 0, 0, 4, 5, 0, 0}));
  MUST(aclrtMemcpyAsyncWithCondition(at, 32, from.data(), 4, ACL_MEMCPY_HOST_TO_DEVICE, kit.stream));
  CHECK(aclrtMemcpyAsyncWithCondition(at, 2, from.data(), 4, ACL_MEMCPY_HOST_TO_DEVICE,
                                      kit.stream) == kRange);
  for (bool now : {true, false}) {
    auto copy = [&](void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                    size_t height, aclrtMemcpyKind kind = ACL_MEMCPY_HOST_TO_DEVICE) {
      return now ? aclrtMemcpy2d(dst, dpitch, src, spitch, width, height, kind)
                 : aclrtMemcpy2dAsync(dst, dpitch, src, spitch, width, height, kind, kit.stream);
    };
    MUST(copy(nullptr, 0, nullptr, 0, 0, 5));  // nothing to copy, nothing to check
    MUST(copy(at, 16, from.data(), 12, 8, 0));
    CHECK(copy(nullptr, 16, from.data(), 12, 8, 2) == kNull);
    CHECK(copy(at, 16, nullptr, 12, 8, 2) == kNull);
    CHECK(copy(at, 4, from.data(), 12, 8, 2) == kNull);
    CHECK(copy(at, 16, from.data(), 12, 16, 2) == kNull);
    CHECK(copy(at, 16, from.data(), 12, 8, 2, ACL_MEMCPY_HOST_TO_HOST) == kNull);
    CHECK(copy(at, 16, from.data(), 12, 8, 2, strange<aclrtMemcpyKind>()) == kNull);
    CHECK(copy(at, 16, from.data(), 12, 8, 4000) == kRange);
    CHECK(copy(at, size_t{1} << 63, from.data(), size_t{1} << 63, 8, 3) == kRange);
    CHECK(copy(at, 16, from.data(), ~size_t{0}, 8, 2) == kRange);
  }
  CHECK(aclrtMemcpy2dAsync(at, 6000000, from.data(), 6000000, 5000001, 1,
                           ACL_MEMCPY_HOST_TO_DEVICE, kit.stream) == kRange);
  CHECK(aclrtMemcpy2dAsync(at, 4, from.data(), 4, 4, 5242881, ACL_MEMCPY_HOST_TO_DEVICE,
                           kit.stream) == kRange);
  const bool modern = std::string(aclrtGetSocName()) == "Ascend910B2";
  CHECK(aclrtMemcpy2dAsync(at, 16, at, 16, 8, 2, ACL_MEMCPY_DEVICE_TO_DEVICE, kit.stream) ==
        (modern ? 0 : kNull));
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclrtCmoAsync(at, 32, ACL_RT_CMO_TYPE_PREFETCH, kit.stream));
  CHECK(aclrtCmoAsync(nullptr, 32, ACL_RT_CMO_TYPE_PREFETCH, kit.stream) == kNull);
  CHECK(aclrtCmoAsync(at, 0, ACL_RT_CMO_TYPE_PREFETCH, kit.stream) == kNull);
  CHECK(aclrtCmoAsync(at, 32, strange<aclrtCmoType>(), kit.stream) == kNull);
  CHECK(aclrtCmoAsync(const_cast<float*>(from.data()), 8, ACL_RT_CMO_TYPE_PREFETCH, kit.stream) ==
        kRange);
  MUST(aclrtFree(at));
  kit.end();
}

static void allocations() {
  Kit kit;
  void* at = nullptr;
  aclrtMallocAttribute attribute = {ACL_RT_MEM_ATTR_MODULE_ID, {}};
  aclrtMallocConfig config = {&attribute, 1};
  MUST(aclrtMallocWithCfg(&at, 100, ACL_MEM_MALLOC_HUGE_FIRST, &config));
  void* base = nullptr;
  size_t size = 0;
  MUST(aclrtMemGetAddressRange(static_cast<char*>(at) + 50, &base, &size));
  CHECK(base == at && size == 100);
  MUST(aclrtMemGetAddressRange(at, nullptr, nullptr));
  CHECK(aclrtMemGetAddressRange(nullptr, &base, &size) == kNull);
  CHECK(aclrtMemGetAddressRange(&size, &base, &size) == kRange);
  MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
  MUST(aclrtMemsetAsync(at, 100, 1, 100, kit.stream));
  std::thread opener([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    gate = true;
  });
  MUST(aclrtFreeWithDevSync(at));  // waits for the device
  CHECK(gate.load());
  opener.join();
  CHECK(aclrtFreeWithDevSync(at) == kRange);
  CHECK(aclrtFreeWithDevSync(nullptr) == kNull);
  MUST(aclrtMallocCached(&at, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
  MUST(aclrtFree(at));
  MUST(aclrtMallocHost(&at, 64));
  MUST(aclrtFreeHostWithDevSync(at));
  CHECK(aclrtFreeHostWithDevSync(at) == kRange);
  CHECK(aclrtFreeHostWithDevSync(nullptr) == kNull);
  CHECK(aclrtMallocWithCfg(nullptr, 64, ACL_MEM_MALLOC_HUGE_FIRST, nullptr) == kNull);
  CHECK(aclrtMallocCached(&at, 0, ACL_MEM_MALLOC_HUGE_FIRST) == kNull);
  for (size_t huge : {~size_t{0}, ~size_t{0} - 63, size_t{1} << 62}) {
    CHECK(aclrtMallocHost(&at, huge) == ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(aclrtMalloc(&at, huge, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_RT_MEMORY_ALLOCATION);
  }
  kit.end();
}

static void reserved() {
  Kit kit;
  constexpr size_t kPiece = 2 << 20;
  void* at = nullptr;
  for (size_t huge : {~size_t{0}, ~size_t{0} - kPiece, size_t{1} << 60}) {
    CHECK(aclrtReserveMemAddress(&at, huge, 0, nullptr, 0) == ACL_ERROR_RT_MEMORY_ALLOCATION);
  }
  CHECK(aclrtReserveMemAddress(&at, kPiece, 64, nullptr, 0) == kNull);
  CHECK(aclrtReserveMemAddressNoUCMemory(nullptr, kPiece, 0, nullptr, 0) == kNull);
  MUST(aclrtReserveMemAddressNoUCMemory(&at, 512 * kPiece, 0, nullptr, 0));
  MUST(aclrtReleaseMemAddress(at));
  MUST(aclrtReserveMemAddress(&at, 3 * kPiece, 0, nullptr, 0));
  aclrtPhysicalMemProp prop = {};
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtDrvMemHandle physical = nullptr;
  MUST(aclrtMallocPhysical(&physical, kPiece, &prop, 0));
  auto* second = static_cast<char*>(at) + kPiece;
  CHECK(aclrtMapMem(second, 3 * kPiece, 0, physical, 0) == kRange);
  CHECK(aclrtMapMem(second, ~size_t{0} - kPiece + 1, 0, physical, 0) == kRange);
  CHECK(aclrtMapMem(second, 0, 0, physical, 0) == kRange);
  CHECK(aclrtMapMem(second + 4096, kPiece, 0, physical, 0) == kRange);
  CHECK(aclrtMapMem(second, 4096, 0, physical, 0) == kRange);
  CHECK(aclrtMapMem(second, kPiece, ~size_t{0} - kPiece + 1, physical, 0) == kRange);
  MUST(aclrtMapMem(second, kPiece, 0, physical, 0));
  CHECK(aclrtMapMem(second, kPiece, 0, physical, 0) == kRange);  // mapped already
  uint64_t key = 0;
  int32_t self = getpid();
  MUST(aclrtMemExportToShareableHandleV2(physical, 0, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &key));
  MUST(aclrtMemSetPidToShareableHandleV2(&key, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &self, 1));
  aclrtDrvMemHandle imported = nullptr;
  MUST(aclrtMemImportFromShareableHandleV2(&key, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 0, &imported));
  MUST(aclrtMapMem(at, kPiece, 0, imported, 0));
  MUST(aclrtMemset(second, kPiece, 5, kPiece));
  char seen = 0;
  MUST(aclrtMemcpy(&seen, 1, at, 1, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(seen == 5);  // the same memory, seen twice
  const auto fabric = static_cast<aclrtMemSharedHandleType>(ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT + 1);
  CHECK(aclrtMemExportToShareableHandleV2(physical, 0, fabric, &key) ==
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK(aclrtMemExportToShareableHandleV2(nullptr, 0, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &key) == kNull);
  CHECK(aclrtMemSetPidToShareableHandleV2(&key, fabric, &self, 1) == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK(aclrtMemSetPidToShareableHandleV2(nullptr, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &self, 1) == kNull);
  CHECK(aclrtMemImportFromShareableHandleV2(nullptr, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 0, &imported) ==
        kNull);
  uint64_t nobody = 12345;
  CHECK(aclrtMemImportFromShareableHandleV2(&nobody, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 0, &imported) ==
        kRange);
  MUST(aclrtUnmapMem(at));
  MUST(aclrtUnmapMem(second));
  CHECK(aclrtUnmapMem(second) == kRange);
  MUST(aclrtFreePhysical(imported));
  MUST(aclrtFreePhysical(physical));
  CHECK(aclrtFreePhysical(physical) == kRange);
  MUST(aclrtReleaseMemAddress(at));
  kit.end();
}

static void stream_facts() {
  Kit kit;
  int32_t id = -1, other_id = -1;
  uint32_t flags = 77, priority = 77, left = 0, fewer = 0;
  MUST(aclrtGetStreamAvailableNum(&left));
  aclrtStream other;
  MUST(aclrtCreateStreamWithConfig(&other, 3, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  MUST(aclrtGetStreamAvailableNum(&fewer));
  CHECK(fewer == left - 1);
  MUST(aclrtStreamGetId(kit.stream, &id));
  MUST(aclrtStreamGetId(other, &other_id));
  CHECK(id >= 0 && other_id >= 0 && id != other_id);
  MUST(aclrtStreamGetFlags(other, &flags));
  CHECK(flags == (ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  MUST(aclrtStreamGetPriority(other, &priority));
  CHECK(priority == 3);
  MUST(aclrtStreamGetId(nullptr, &id));  // the default stream
  CHECK(id != other_id);
  int32_t least = -1, greatest = -1;
  MUST(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(greatest == 0 && least >= greatest);
  MUST(aclrtSetStreamOverflowSwitch(other, 1));
  MUST(aclrtGetStreamOverflowSwitch(other, &flags));
  CHECK(flags == 1);
  CHECK(aclrtSetStreamOverflowSwitch(other, 2) == kNull);
  CHECK(aclrtGetStreamOverflowSwitch(other, nullptr) == kNull);
  CHECK(aclrtGetStreamAvailableNum(nullptr) == kNull);
  CHECK(aclrtStreamGetId(other, nullptr) == kNull);
  CHECK(aclrtStreamGetFlags(other, nullptr) == kNull);
  CHECK(aclrtStreamGetPriority(other, nullptr) == kNull);
  MUST(aclrtDestroyStream(other));
  CHECK(aclrtStreamGetId(other, &id) != 0);  // destroyed
  CHECK(aclrtStreamGetFlags(other, &flags) != 0);
  CHECK(aclrtStreamGetPriority(other, &priority) != 0);
  CHECK(aclrtSetStreamOverflowSwitch(other, 1) != 0);
  std::thread([&] {  // a thread without a device
    uint32_t none = 0;
    CHECK(aclrtGetStreamAvailableNum(&none) == ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(aclrtStreamGetId(kit.stream, &id) == ACL_ERROR_RT_CONTEXT_NULL);
  }).join();
  kit.end();
}

static void stream_settings() {
  Kit kit;
  aclrtStreamAttrValue value = {}, seen = {};
  auto keeps = [&](aclrtStreamAttr type) {
    MUST(aclrtSetStreamAttribute(kit.stream, type, &value));
    MUST(aclrtGetStreamAttribute(kit.stream, type, &seen));
  };
  value.userCustomTag = 1234;
  keeps(ACL_STREAM_ATTR_USER_CUSTOM_TAG);
  CHECK(seen.userCustomTag == 1234);
  value = {};
  value.streamPriority = 5;
  keeps(ACL_STREAM_ATTR_PRIORITY);
  CHECK(seen.streamPriority == 5);
  value = {};
  value.overflowSwitch = 1;
  keeps(ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK);
  CHECK(seen.overflowSwitch == 1);
  value.overflowSwitch = 9;
  CHECK(aclrtSetStreamAttribute(kit.stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value) == kNull);
  CHECK(aclrtSetStreamAttribute(kit.stream, strange<aclrtStreamAttr>(), &value) == kNull);
  CHECK(aclrtSetStreamAttribute(kit.stream, ACL_STREAM_ATTR_PRIORITY, nullptr) == kNull);
  value = {};
  value.failureMode = ACL_STOP_ON_FAILURE;
  keeps(ACL_STREAM_ATTR_FAILURE_MODE);
  CHECK(seen.failureMode == ACL_STOP_ON_FAILURE);
  value.failureMode = ACL_CONTINUE_ON_FAILURE;  // cannot be taken back
  CHECK(aclrtSetStreamAttribute(kit.stream, ACL_STREAM_ATTR_FAILURE_MODE, &value) == kRange);
  aclrtStreamConfigHandle* handle = aclrtCreateStreamConfigHandle();
  size_t flag = ACL_STREAM_FAST_SYNC;
  uint32_t priority = 2;
  MUST(aclrtSetStreamConfigOpt(handle, ACL_RT_STREAM_FLAG, &flag, sizeof flag));
  MUST(aclrtSetStreamConfigOpt(handle, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority));
  CHECK(aclrtSetStreamConfigOpt(handle, ACL_RT_STREAM_PRIORITY, &priority, 1) == kNull);
  CHECK(aclrtSetStreamConfigOpt(handle, strange<aclrtStreamConfigAttr>(), &priority, 4) == kNull);
  CHECK(aclrtSetStreamConfigOpt(nullptr, ACL_RT_STREAM_FLAG, &flag, sizeof flag) == kNull);
  CHECK(aclrtSetStreamConfigOpt(handle, ACL_RT_STREAM_FLAG, nullptr, sizeof flag) == kNull);
  aclrtStream made;
  MUST(aclrtCreateStreamV2(&made, handle));
  uint32_t flags = 0;
  MUST(aclrtStreamGetFlags(made, &flags));
  MUST(aclrtStreamGetPriority(made, &priority));
  CHECK(flags == ACL_STREAM_FAST_SYNC && priority == 2);
  CHECK(aclrtCreateStreamV2(nullptr, handle) == kNull);
  CHECK(aclrtCreateStreamV2(&made, nullptr) == kNull);
  MUST(aclrtDestroyStream(made));
  MUST(aclrtDestroyStreamConfigHandle(handle));
  CHECK(aclrtDestroyStreamConfigHandle(nullptr) == kNull);
  kit.end();
}

static void cores() {
  Kit kit;
  uint32_t all = 0, seen = 0;
  MUST(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &all));
  CHECK(all > 4);
  auto here = [&] {
    MUST(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &seen));
    return seen;
  };
  CHECK(here() == all);
  MUST(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 4));
  CHECK(here() == 4);
  MUST(aclrtSetStreamResLimit(kit.stream, ACL_RT_DEV_RES_CUBE_CORE, 2));
  CHECK(here() == 4);  // not in use by this thread
  MUST(aclrtUseStreamResInCurrentThread(kit.stream));
  CHECK(here() == 2);
  MUST(aclrtSetStreamResLimit(kit.stream, ACL_RT_DEV_RES_CUBE_CORE, 3));
  CHECK(here() == 3);  // the stream's limit, whenever it is set
  MUST(aclrtUnuseStreamResInCurrentThread(nullptr));  // another stream's: nothing happens
  CHECK(here() == 3);
  MUST(aclrtUnuseStreamResInCurrentThread(kit.stream));
  CHECK(here() == 4);
  aclrtStream passing;
  MUST(aclrtCreateStream(&passing));
  MUST(aclrtSetStreamResLimit(passing, ACL_RT_DEV_RES_CUBE_CORE, 1));
  MUST(aclrtUseStreamResInCurrentThread(passing));
  CHECK(here() == 1);
  MUST(aclrtDestroyStream(passing));
  CHECK(here() == 4);
  MUST(aclrtResetStreamResLimit(kit.stream));
  MUST(aclrtGetStreamResLimit(kit.stream, ACL_RT_DEV_RES_CUBE_CORE, &seen));
  CHECK(seen == 4);
  MUST(aclrtResetDeviceResLimit(0));
  CHECK(here() == all);
  CHECK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, all + 1) == kRange);
  CHECK(aclrtSetStreamResLimit(kit.stream, ACL_RT_DEV_RES_CUBE_CORE, all + 1) == kRange);
  CHECK(aclrtSetDeviceResLimit(99, ACL_RT_DEV_RES_CUBE_CORE, 1) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtSetDeviceResLimit(0, strange<aclrtDevResLimitType>(), 1) != 0);
  CHECK(aclrtSetStreamResLimit(kit.stream, strange<aclrtDevResLimitType>(), 1) != 0);
  CHECK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, nullptr) == kNull);
  CHECK(aclrtGetDeviceResLimit(-1, ACL_RT_DEV_RES_CUBE_CORE, &seen) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtGetDeviceResLimit(0, strange<aclrtDevResLimitType>(), &seen) != 0);
  CHECK(aclrtGetStreamResLimit(kit.stream, ACL_RT_DEV_RES_CUBE_CORE, nullptr) == kNull);
  CHECK(aclrtResetDeviceResLimit(2) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, nullptr) == kNull);
  CHECK(aclrtGetResInCurrentThread(strange<aclrtDevResLimitType>(), &seen) != 0);
  CHECK(aclrtUseStreamResInCurrentThread(passing) != 0);  // destroyed
  kit.end();
}

static void timeouts() {
  Kit kit;
  uint32_t ms = 0;
  uint64_t told = 0;
  MUST(aclrtGetOpExecuteTimeout(&ms));
  CHECK(ms == 1091000);  // the product's default, which is also the most
  MUST(aclrtSetOpExecuteTimeOut(2));
  MUST(aclrtGetOpExecuteTimeout(&ms));
  CHECK(ms == 2000);
  MUST(aclrtSetOpExecuteTimeOut(0xFFFFFFFFu));
  MUST(aclrtGetOpExecuteTimeout(&ms));
  CHECK(ms == 1091000);
  MUST(aclrtSetOpExecuteTimeOutWithMs(1500));
  MUST(aclrtGetOpExecuteTimeout(&ms));
  CHECK(ms == 1500);
  MUST(aclrtSetOpExecuteTimeOutV2(1700001, &told));
  CHECK(told == 1701000);
  MUST(aclrtSetOpExecuteTimeOutV2(0, &told));
  CHECK(told == 1091000000ull);
  MUST(aclrtSetOpExecuteTimeOutV2(~uint64_t{0}, &told));
  CHECK(told == 1091000000ull);
  CHECK(aclrtSetOpExecuteTimeOutV2(1, nullptr) == kNull);
  CHECK(aclrtGetOpExecuteTimeout(nullptr) == kNull);
  int64_t value = 0;
  MUST(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  MUST(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  CHECK(value == 1);
  CHECK(aclrtSetSysParamOpt(strange<aclSysParamOpt>(), 1) == kRange);
  kit.end();
}

// A wait whose time is over makes the waiting stream faulty, and no other.
static void event_waits() {
  Kit kit;
  aclrtStream other;
  MUST(aclrtCreateStream(&other));
  aclrtEvent event;
  MUST(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
  MUST(aclrtRecordEventWithFlag(event, kit.stream, ACL_EVENT_RECORD_DEFAULT));
  MUST(aclrtStreamWaitEventWithTimeout(other, event, 1));
  CHECK(aclrtSynchronizeStream(other) == ACL_ERROR_RT_TASK_TIMEOUT);
  MUST(aclrtStreamWaitEventWithFlag(other, event, 1, ACL_EVENT_WAIT_DEFAULT));
  CHECK(aclrtSynchronizeStream(other) == ACL_ERROR_RT_TASK_TIMEOUT);
  MUST(aclrtSetOpWaitTimeout(1));
  MUST(aclrtStreamWaitEvent(other, event));
  CHECK(aclrtSynchronizeStream(other) == ACL_ERROR_RT_TASK_TIMEOUT);
  MUST(aclrtSetOpWaitTimeout(0));
  MUST(aclrtStreamWaitEventWithTimeout(other, event, 0));  // for ever
  gate = true;
  MUST(aclrtSynchronizeStream(other));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(aclrtStreamWaitEventWithTimeout(other, event, -1) == kRange);
  CHECK(aclrtStreamWaitEventWithTimeout(other, nullptr, 1) == kNull);
  CHECK(aclrtStreamWaitEventWithFlag(other, event, 0, 2) != 0);
  CHECK(aclrtStreamWaitEventWithFlag(other, nullptr, 0, 0) == kNull);
  CHECK(aclrtRecordEventWithFlag(event, kit.stream, 2) != 0);
  CHECK(aclrtRecordEventWithFlag(nullptr, kit.stream, 0) == kNull);
  CHECK(aclrtRecordEventWithFlag(event, kit.stream, ACL_EVENT_RECORD_EXTERNAL) != 0);  // no capture
  aclrtEvent outside;
  MUST(aclrtCreateEventExWithFlag(&outside, ACL_EVENT_EXTERNAL));
  CHECK(aclrtStreamWaitEventWithFlag(other, outside, 1, ACL_EVENT_WAIT_EXTERNAL) == kRange);
  MUST(aclrtDestroyEvent(outside));
  MUST(aclrtDestroyEvent(event));
  MUST(aclrtDestroyStream(other));
  kit.end();
}

static void event_facts() {
  Kit kit;
  uint32_t left = 0, fewer = 0, id = 0, other_id = 0;
  MUST(aclrtGetEventAvailNum(&left));
  aclrtEvent event, other;
  MUST(aclrtCreateEvent(&event));
  MUST(aclrtCreateEvent(&other));
  MUST(aclrtGetEventAvailNum(&fewer));
  CHECK(fewer == left - 2);
  MUST(aclrtGetEventId(event, &id));
  MUST(aclrtGetEventId(other, &other_id));
  CHECK(id != other_id);
  aclrtEventStatus status;
  MUST(aclrtQueryEvent(event, &status));
  CHECK(status == ACL_EVENT_STATUS_NOT_READY);
  uint64_t first = 0, second = 0;
  CHECK(aclrtEventGetTimestamp(event, &first) != 0);  // never recorded
  MUST(aclrtRecordEvent(event, kit.stream));
  MUST(aclrtRecordEvent(other, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclrtQueryEvent(event, &status));
  CHECK(status == ACL_EVENT_STATUS_COMPLETE);
  MUST(aclrtEventGetTimestamp(event, &first));
  MUST(aclrtEventGetTimestamp(other, &second));
  float ms = -1;
  MUST(aclrtEventElapsedTime(&ms, event, other));
  CHECK(first > 0 && second >= first && ms >= 0 && ms * 1000 < second - first + 2);
  CHECK(aclrtGetEventAvailNum(nullptr) == kNull);
  CHECK(aclrtGetEventId(event, nullptr) == kNull);
  CHECK(aclrtGetEventId(nullptr, &id) == kNull);
  CHECK(aclrtQueryEvent(event, nullptr) == kNull);
  CHECK(aclrtEventGetTimestamp(nullptr, &first) == kNull);
  CHECK(aclrtEventGetTimestamp(event, nullptr) == kNull);
  MUST(aclrtDestroyEvent(other));
  MUST(aclrtDestroyEvent(event));
  CHECK(aclrtGetEventId(event, &id) == kRange);
  CHECK(aclrtQueryEvent(event, &status) == kRange);
  CHECK(aclrtEventGetTimestamp(event, &first) == kRange);
  kit.end();
}

static int begun = 0, ended = 0;
static std::string told;
static aclError on_init(const char* text, size_t length, void* data) {
  told.assign(text, length);
  ++*static_cast<int*>(data);
  return ACL_SUCCESS;
}
static aclError refuse_init(const char*, size_t, void*) { return ACL_ERROR_FAILURE; }
static aclError on_finalize(void* data) {
  ++*static_cast<int*>(data);
  return ACL_SUCCESS;
}
static aclError refuse_finalize(void*) { return ACL_ERROR_FAILURE; }

static void init_callbacks() {
  const auto kModel = ACL_REG_TYPE_ACL_MODEL;
  CHECK(aclInitCallbackRegister(kModel, nullptr, nullptr) == kNull);
  CHECK(aclInitCallbackUnRegister(kModel, nullptr) == kNull);
  CHECK(aclFinalizeCallbackRegister(kModel, nullptr, nullptr) == kNull);
  CHECK(aclFinalizeCallbackUnRegister(kModel, nullptr) == kNull);
  CHECK(aclInitCallbackUnRegister(kModel, on_init) == ACL_ERROR_INTERNAL_ERROR);
  CHECK(aclFinalizeCallbackUnRegister(kModel, on_finalize) == ACL_ERROR_INTERNAL_ERROR);
  MUST(aclInitCallbackRegister(kModel, on_init, &begun));
  CHECK(aclInitCallbackRegister(kModel, on_init, &begun) == ACL_ERROR_INTERNAL_ERROR);
  MUST(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, on_init, &begun));
  MUST(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, on_init, &begun));
  MUST(aclFinalizeCallbackRegister(kModel, on_finalize, &ended));
  CHECK(aclFinalizeCallbackRegister(kModel, on_finalize, &ended) == ACL_ERROR_INTERNAL_ERROR);
  MUST(aclInit(nullptr));
  CHECK(begun == 3 && ended == 0 && told.empty());
  MUST(aclInitCallbackRegister(ACL_REG_TYPE_ACL_DVPP, on_init, &begun));  // late: at once
  CHECK(begun == 4);
  MUST(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, on_init));
  MUST(aclFinalize());
  CHECK(ended == 1);
  MUST(aclInit(nullptr));
  CHECK(begun == 7);
  MUST(aclFinalizeCallbackUnRegister(kModel, on_finalize));
  MUST(aclFinalizeCallbackRegister(kModel, refuse_finalize, nullptr));
  CHECK(aclFinalize() == ACL_ERROR_FAILURE);
  MUST(aclFinalizeCallbackUnRegister(kModel, refuse_finalize));
  MUST(aclFinalize());
  MUST(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, refuse_init, nullptr));
  CHECK(aclInit(nullptr) == ACL_ERROR_FAILURE);
}

static std::atomic<int> heard{0};
static uint32_t facts[5];
static void on_exception(aclrtExceptionInfo* info) {
  facts[0] = aclrtGetTaskIdFromExceptionInfo(info);
  facts[1] = aclrtGetStreamIdFromExceptionInfo(info);
  facts[2] = aclrtGetThreadIdFromExceptionInfo(info);
  facts[3] = aclrtGetDeviceIdFromExceptionInfo(info);
  facts[4] = aclrtGetErrorCodeFromExceptionInfo(info);
  ++heard;
}

static void exceptions() {
  Kit kit;
  CHECK(aclrtExceptionInfoCallbackRegister(nullptr) == kNull);
  CHECK(aclrtExceptionInfoCallbackUnregister(nullptr) == kNull);
  MUST(aclrtExceptionInfoCallbackUnregister(on_exception));  // never registered: no operation
  MUST(aclrtExceptionInfoCallbackRegister(on_exception));
  MUST(aclrtExceptionInfoCallbackRegister(on_exception));  // once for all
  Addition broken;
  aclTensor* nowhere = Kit::tensor(nullptr, {8});
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnAddGetWorkspaceSize(nowhere, broken.other, broken.alpha, broken.result, &bytes, &executor));
  MUST(aclnnAdd(nullptr, bytes, executor, kit.stream));
  CHECK(aclrtSynchronizeStream(kit.stream) != 0);
  CHECK(heard == 1);
  int32_t stream_id = -1;
  MUST(aclrtStreamGetId(kit.stream, &stream_id));
  CHECK(facts[1] == static_cast<uint32_t>(stream_id) && facts[3] == 0 && facts[4] != 0);
  CHECK(aclrtGetTaskIdFromExceptionInfo(nullptr) == 0xFFFFFFFFu);
  CHECK(aclrtGetStreamIdFromExceptionInfo(nullptr) == 0xFFFFFFFFu);
  CHECK(aclrtGetThreadIdFromExceptionInfo(nullptr) == 0xFFFFFFFFu);
  CHECK(aclrtGetDeviceIdFromExceptionInfo(nullptr) == 0xFFFFFFFFu);
  MUST(aclrtExceptionInfoCallbackUnregister(on_exception));
  aclrtMemUceInfo faults[2];
  size_t count = 7;
  MUST(aclrtGetMemUceInfo(0, faults, 2, &count));
  CHECK(count == 0);
  CHECK(aclrtGetMemUceInfo(9, faults, 2, &count) != 0);
  CHECK(aclrtGetMemUceInfo(0, nullptr, 2, &count) == kNull);
  CHECK(aclrtGetMemUceInfo(0, faults, 2, nullptr) == kNull);
  CHECK(aclrtGetMemUceInfo(0, faults, 0, &count) == kNull);
  MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
  MUST(aclrtMemsetAsync(broken.a, 32, 1, 32, kit.stream));
  MUST(aclrtDeviceTaskAbort(0, 1000));
  gate = true;
  CHECK(aclrtSynchronizeStream(kit.stream) == ACL_ERROR_RT_STREAM_ABORT);
  CHECK(aclrtDeviceTaskAbort(9, 0) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtDeviceTaskAbort(0, 36 * 60 * 1000 + 1) == kRange);
  MUST(aclDestroyTensor(nowhere));
  broken.destroy_handles();
  broken.free_memory();
  kit.end();
}

// Run with devices 2 and 3 of four visible.
static void numbering() {
  Kit kit;
  uint32_t visible = 0;
  MUST(aclrtGetDeviceCount(&visible));
  CHECK(visible == 2);
  using Asks = aclError (*)(const int32_t, int32_t* const);
  const Asks outwards[] = {aclrtGetLogicDevIdByUserDevId, aclrtGetPhyDevIdByUserDevId,
                           aclrtGetPhyDevIdByLogicDevId};
  const Asks inwards[] = {aclrtGetUserDevIdByLogicDevId, aclrtGetUserDevIdByPhyDevId,
                          aclrtGetLogicDevIdByPhyDevId};
  int32_t id = -1;
  for (Asks ask : outwards) {
    MUST(ask(1, &id));
    CHECK(id == 3);
    CHECK(ask(1, nullptr) == kNull);
    for (int32_t none : {-1, 2, INT32_MAX}) CHECK(ask(none, &id) == ACL_ERROR_RT_INVALID_DEVICEID);
  }
  for (Asks ask : inwards) {
    MUST(ask(3, &id));
    CHECK(id == 1);
    CHECK(ask(3, nullptr) == kNull);
    for (int32_t none : {-1, 0, 4}) CHECK(ask(none, &id) == ACL_ERROR_RT_INVALID_DEVICEID);
  }
  aclrtUuid uuid = {}, other = {};
  MUST(aclrtDeviceGetUuid(0, &uuid));
  MUST(aclrtDeviceGetUuid(1, &other));
  CHECK(memcmp(&uuid, &other, sizeof uuid) != 0);
  CHECK(aclrtDeviceGetUuid(0, nullptr) == kNull);
  CHECK(aclrtDeviceGetUuid(2, &uuid) == ACL_ERROR_RT_INVALID_DEVICEID);
  uint32_t installed = 0;
  CHECK(drvGetDevNum(&installed) == 0 && installed == 4);
  kit.end();
}

static void peers() {
  Kit kit;
  int32_t able = 0, status = 9;
  MUST(aclrtDeviceCanAccessPeer(&able, 0, 1));
  CHECK(able == 1);
  CHECK(aclrtDeviceCanAccessPeer(&able, 1, 1) == kNull);
  CHECK(aclrtDeviceCanAccessPeer(nullptr, 0, 1) == kNull);
  auto state = [&](int32_t from, int32_t to) {
    MUST(aclrtDevicePeerAccessStatus(from, to, &status));
    return status;
  };
  CHECK(state(0, 1) == 0);
  MUST(aclrtDeviceEnablePeerAccess(1, 0));
  CHECK(state(0, 1) == 1 && state(1, 0) == 0);  // one way
  MUST(aclrtDeviceDisablePeerAccess(1));
  CHECK(state(0, 1) == 0);
  CHECK(aclrtDeviceEnablePeerAccess(0, 0) == kNull);
  CHECK(aclrtDeviceDisablePeerAccess(0) == kNull);
  CHECK(aclrtDeviceEnablePeerAccess(1, 1) == ACL_ERROR_FEATURE_UNSUPPORTED);
  CHECK(aclrtDeviceEnablePeerAccess(9, 0) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtDeviceDisablePeerAccess(-1) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtDevicePeerAccessStatus(0, 9, &status) != 0);
  CHECK(aclrtDevicePeerAccessStatus(0, 1, nullptr) == kNull);
  kit.end();
}

static void capabilities() {
  Kit kit;
  const aclCannAttr* list = nullptr;
  size_t count = 0;
  MUST(aclGetCannAttributeList(&list, &count));
  CHECK(count > 0);
  int32_t value = -1;
  for (size_t i = 0; i < count; ++i) {
    MUST(aclGetCannAttribute(list[i], &value));
    CHECK(value == 0 || value == 1);
  }
  CHECK(aclGetCannAttributeList(nullptr, &count) == kNull);
  CHECK(aclGetCannAttributeList(&list, nullptr) == kNull);
  CHECK(aclGetCannAttribute(list[0], nullptr) == kNull);
  CHECK(aclGetCannAttribute(strange<aclCannAttr>(), &value) == kNull);
  int64_t much = 0, cubes = 0;
  MUST(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &much));
  MUST(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &cubes));
  CHECK(much > 0 && much == cubes);
  CHECK(aclGetDeviceCapability(7, ACL_DEVICE_INFO_AI_CORE_NUM, &much) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclGetDeviceCapability(0xFFFFFFFFu, ACL_DEVICE_INFO_AI_CORE_NUM, &much) ==
        ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclGetDeviceCapability(0, strange<aclDeviceInfo>(), &much) == kNull);
  CHECK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, nullptr) == kNull);
  CHECK(aclrtGetDeviceInfo(0, strange<aclrtDevAttr>(), &much) != 0);
  CHECK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, nullptr) == kNull);
  MUST(aclrtGetDeviceCapability(0, static_cast<aclrtDevFeatureType>(1), &value));
  CHECK(aclrtGetDeviceCapability(8, static_cast<aclrtDevFeatureType>(1), &value) ==
        ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtGetDeviceCapability(0, static_cast<aclrtDevFeatureType>(1), nullptr) == kNull);
  aclrtDeviceStatus status;
  MUST(aclrtQueryDeviceStatus(0, &status));
  CHECK(status == ACL_RT_DEVICE_STATUS_NORMAL);
  CHECK(aclrtQueryDeviceStatus(5, &status) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtQueryDeviceStatus(0, nullptr) == kNull);
  aclrtUtilizationInfo use = {};
  MUST(aclrtGetDeviceUtilizationRate(0, &use));
  CHECK(use.memoryUtilization == -1);  // its document: not measured
  CHECK(aclrtGetDeviceUtilizationRate(0, nullptr) == kNull);
  CHECK(aclrtGetDeviceUtilizationRate(6, &use) == ACL_ERROR_RT_INVALID_DEVICEID);
  int32_t active = -1;
  uint32_t flags = 9;
  MUST(aclrtGetPrimaryCtxState(0, &flags, &active));
  CHECK(active == 1);
  MUST(aclrtGetPrimaryCtxState(1, nullptr, &active));
  CHECK(active == 0);
  CHECK(aclrtGetPrimaryCtxState(4, nullptr, &active) == ACL_ERROR_RT_INVALID_DEVICEID);
  int32_t major = 0, minor = -1, patch = -1;
  MUST(aclrtGetVersion(&major, &minor, &patch));
  CHECK(major >= 1 && minor >= 0 && patch >= 0);
  CHECK(aclrtGetVersion(nullptr, &minor, &patch) == kNull);
  aclCANNPackageVersion version;
  CHECK(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, nullptr) == kNull);
  CHECK(aclsysGetCANNVersion(strange<aclCANNPackageName>(), &version) == kNull);
  CHECK(aclsimFindings() == 0 && aclsimProduct(-1) == nullptr && aclsimProduct(0) != nullptr);
  void* at = Kit::device(1 << 20);
  MUST(aclrtFree(at));
  CHECK(aclsimMemoryPeak(0) >= 1 << 20 && aclsimMemoryPeak(99) == 0);
  kit.end();
}

static void described() {
  const int64_t dims[] = {2, 3};
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT16, 2, dims, ACL_FORMAT_NCHW);
  CHECK(aclGetTensorDescType(desc) == ACL_FLOAT16 && aclGetTensorDescFormat(desc) == ACL_FORMAT_NCHW);
  CHECK(aclGetTensorDescElementCount(desc) == 6 && aclGetTensorDescSize(desc) == 12);
  CHECK(aclGetTensorDescDim(desc, 1) == 3 && aclGetTensorDescDim(desc, 2) == -1);
  CHECK(aclGetTensorDescName(desc) == std::string());
  aclSetTensorDescName(desc, "weights");
  CHECK(aclGetTensorDescName(desc) == std::string("weights"));
  aclSetTensorDescName(desc, nullptr);
  CHECK(aclGetTensorDescName(desc) == std::string());
  CHECK(aclGetTensorDescAddress(desc) == nullptr);
  MUST(aclSetTensorFormat(desc, ACL_FORMAT_ND));
  MUST(aclSetTensorStorageFormat(desc, ACL_FORMAT_ND));
  MUST(aclSetTensorOriginFormat(desc, ACL_FORMAT_ND));
  MUST(aclSetTensorShape(desc, 2, dims));
  MUST(aclSetTensorStorageShape(desc, 0, nullptr));
  const int64_t other[] = {4, 5, 6};
  MUST(aclSetTensorOriginShape(desc, 3, other));
  int axes[] = {1, 0};
  MUST(aclSetTensorConst(desc, axes, sizeof axes));
  CHECK(aclSetTensorConst(desc, nullptr, 8) == kNull);
  CHECK(aclSetTensorShape(desc, 2, nullptr) == kNull);
  CHECK(aclSetTensorStorageShape(desc, -1, dims) == kNull);
  CHECK(aclSetTensorOriginShape(desc, 2, nullptr) == kNull);
  CHECK(aclSetTensorFormat(nullptr, ACL_FORMAT_ND) == kNull);
  CHECK(aclSetTensorConst(nullptr, axes, 8) == kNull);
  aclDestroyTensorDesc(desc);
  CHECK(aclSetTensorOriginFormat(desc, ACL_FORMAT_ND) == kNull);  // destroyed
  CHECK(aclGetTensorDescElementCount(desc) == 0 && aclGetTensorDescDim(desc, 0) == -1);
  CHECK(aclGetTensorDescType(desc) == ACL_DT_UNDEFINED);
  CHECK(aclGetTensorDescFormat(nullptr) == ACL_FORMAT_UNDEFINED);
  CHECK(aclGetTensorDescName(desc) == std::string() && aclGetTensorDescAddress(desc) == nullptr);
  aclDestroyTensorDesc(desc);
  aclDestroyTensorDesc(nullptr);
  aclDataBuffer* buffer = aclCreateDataBuffer(axes, 8);
  CHECK(aclGetDataBufferAddr(buffer) == axes && aclGetDataBufferSizeV2(buffer) == 8);
  MUST(aclUpdateDataBuffer(buffer, nullptr, 4));
  CHECK(aclGetDataBufferAddr(buffer) == nullptr && aclGetDataBufferSize(buffer) == 4);
  MUST(aclDestroyDataBuffer(buffer));
  CHECK(aclUpdateDataBuffer(buffer, axes, 8) == kNull);
  CHECK(aclGetDataBufferAddr(buffer) == nullptr && aclGetDataBufferSizeV2(buffer) == 0);
  CHECK(aclDestroyDataBuffer(buffer) == kNull && aclDestroyDataBuffer(nullptr) == kNull);
}

static void attributes() {
  aclopAttr* attr = aclopCreateAttr();
  const uint8_t flags[] = {1, 0};
  const char* texts[] = {"a", nullptr};
  const aclDataType dtypes[] = {ACL_FLOAT, ACL_INT8};
  const int64_t first[] = {1, 2};
  const int64_t* lists[] = {first, nullptr};
  int counts[] = {2, 0};
  MUST(aclopSetAttrDataType(attr, "dtype", ACL_FLOAT));
  MUST(aclopSetAttrListBool(attr, "flags", 2, flags));
  MUST(aclopSetAttrListString(attr, "texts", 1, texts));
  MUST(aclopSetAttrListDataType(attr, "dtypes", 2, dtypes));
  MUST(aclopSetAttrListListInt(attr, "lists", 1, counts, lists));
  MUST(aclopSetAttrListBool(attr, "none", 0, nullptr));
  CHECK(aclopSetAttrListString(attr, "texts", 2, texts) == kNull);  // the second is null
  CHECK(aclopSetAttrListString(attr, "texts", 1, nullptr) == kNull);
  CHECK(aclopSetAttrListBool(attr, "flags", 2, nullptr) == kNull);
  CHECK(aclopSetAttrListBool(attr, "flags", -1, flags) == kNull);
  CHECK(aclopSetAttrListDataType(attr, "dtypes", 2, nullptr) == kNull);
  CHECK(aclopSetAttrListListInt(attr, "lists", 2, counts, lists) == kNull);
  CHECK(aclopSetAttrListListInt(attr, "lists", 1, nullptr, lists) == kNull);
  counts[0] = -1;
  CHECK(aclopSetAttrListListInt(attr, "lists", 1, counts, lists) == kNull);
  CHECK(aclopSetAttrDataType(attr, nullptr, ACL_FLOAT) == kNull);
  CHECK(aclopSetAttrListBool(nullptr, "flags", 2, flags) == kNull);
  aclopDestroyAttr(attr);
  CHECK(aclopSetAttrListBool(attr, "flags", 2, flags) == kNull);  // destroyed
  char value[32];
  MUST(aclSetCompileopt(ACL_PRECISION_MODE, "allow_fp32_to_fp16"));
  CHECK(aclGetCompileoptSize(ACL_PRECISION_MODE) == strlen("allow_fp32_to_fp16") + 1);
  MUST(aclGetCompileopt(ACL_PRECISION_MODE, value, sizeof value));
  CHECK(value == std::string("allow_fp32_to_fp16"));
  CHECK(aclGetCompileopt(ACL_PRECISION_MODE, value, 3) != 0);
  CHECK(aclGetCompileopt(ACL_PRECISION_MODE, nullptr, 3) == kNull);
  CHECK(aclGetCompileopt(strange<aclCompileOpt>(), value, sizeof value) != 0);
  CHECK(aclGetCompileoptSize(strange<aclCompileOpt>()) == 0);
}

// aclopExecute finds the kernel of a type by its name, and refuses one that is none.
static void by_type() {
  Kit kit;
  const int64_t dims[] = {4};
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT, 1, dims, ACL_FORMAT_ND);
  void* in = Kit::floats({-1, 2, -3, 4});
  void* out = Kit::floats({0, 0, 0, 0});
  aclDataBuffer* from = aclCreateDataBuffer(in, 16);
  aclDataBuffer* to = aclCreateDataBuffer(out, 16);
  const aclTensorDesc* descs[] = {desc};
  const aclDataBuffer* inputs[] = {from};
  aclDataBuffer* outputs[] = {to};
  MUST(aclopExecute("Relu", 1, descs, inputs, 1, descs, outputs, nullptr, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK((Kit::back(out, 4) == std::vector<float>{0, 2, 0, 4}));
  CHECK(aclopExecute(nullptr, 1, descs, inputs, 1, descs, outputs, nullptr, kit.stream) == kNull);
  CHECK(aclopExecute("Relu", 1, nullptr, inputs, 1, descs, outputs, nullptr, kit.stream) != 0);
  CHECK(aclopExecute("Relu", -1, descs, inputs, 1, descs, outputs, nullptr, kit.stream) != 0);
  aclopExecute("NoSuchType", 1, descs, inputs, 1, descs, outputs, nullptr, kit.stream);
  aclrtSynchronizeStream(kit.stream);
  MUST(aclopExecute("Relu", 1, descs, inputs, 1, descs, outputs, nullptr, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclDestroyDataBuffer(from));
  MUST(aclDestroyDataBuffer(to));
  aclDestroyTensorDesc(desc);
  MUST(aclrtFree(in));
  MUST(aclrtFree(out));
  kit.end();
}

static void addresses_of_executors() {
  Kit kit;
  MUST(aclnnInit(nullptr));
  Addition sum(4);
  uint64_t size = 0;
  const bool flags[] = {true, false};
  const float numbers[] = {1, 2, 3};
  aclBoolArray* bools = aclCreateBoolArray(flags, 2);
  aclFloatArray* floats = aclCreateFloatArray(numbers, 3);
  const aclScalar* scalars[] = {Kit::scalar(1)};
  aclScalarList* list = aclCreateScalarList(scalars, 1);
  MUST(aclGetBoolArraySize(bools, &size));
  CHECK(size == 2);
  MUST(aclGetFloatArraySize(floats, &size));
  CHECK(size == 3);
  MUST(aclGetScalarListSize(list, &size));
  CHECK(size == 1);
  CHECK(aclGetBoolArraySize(nullptr, &size) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(aclGetFloatArraySize(floats, nullptr) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(aclGetScalarListSize(nullptr, &size) == ACLNN_ERR_PARAM_NULLPTR);
  MUST(aclDestroyBoolArray(bools));
  MUST(aclDestroyFloatArray(floats));
  MUST(aclDestroyScalarList(list));
  MUST(sum.plan());
  MUST(aclSetAclOpExecutorRepeatable(sum.executor));
  void* two = Kit::floats({2, 2, 2, 2});
  void* three = Kit::floats({3, 3, 3, 3});
  void* out = Kit::floats({0, 0, 0, 0});
  MUST(AclSetInputTensorAddr(sum.executor, 0, sum.self, two));
  MUST(AclSetTensorAddr(sum.executor, 1, sum.other, three));
  MUST(AclSetOutputTensorAddr(sum.executor, 0, sum.result, out));
  MUST(sum.run(kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(Kit::back(out, 4) == std::vector<float>(4, 5));
  CHECK(AclSetTensorAddr(nullptr, 0, sum.self, two) == ACLNN_ERR_INNER_NULLPTR);
  CHECK(AclSetInputTensorAddr(sum.executor, 0, nullptr, two) == ACLNN_ERR_INNER_NULLPTR);
  aclTensor* stranger = Kit::tensor(two, {4});
  CHECK(AclSetOutputTensorAddr(sum.executor, 9, stranger, two) == ACLNN_ERR_PARAM_INVALID);
  MUST(aclDestroyAclOpExecutor(sum.executor));
  CHECK(AclSetTensorAddr(sum.executor, 0, sum.self, two) != 0);  // destroyed
  MUST(aclDestroyTensor(stranger));
  // Members of lists: the parts of a concatenation.
  void* parts[] = {Kit::floats({1, 1}), Kit::floats({2, 2})};
  void* whole = Kit::floats({0, 0, 0, 0});
  aclTensor* members[] = {Kit::tensor(parts[0], {2}), Kit::tensor(parts[1], {2})};
  aclTensorList* tensors = aclCreateTensorList(members, 2);
  aclTensor* joined = Kit::tensor(whole, {4});
  aclOpExecutor* executor = nullptr;
  MUST(aclnnCatGetWorkspaceSize(tensors, 0, joined, &size, &executor));
  MUST(aclSetAclOpExecutorRepeatable(executor));
  void* nine = Kit::floats({9, 9});
  auto cat = [&](std::vector<float> expected) {
    MUST(aclnnCat(nullptr, size, executor, kit.stream));
    MUST(aclrtSynchronizeStream(kit.stream));
    CHECK(Kit::back(whole, 4) == expected);
  };
  MUST(aclSetDynamicInputTensorAddr(executor, 0, 1, tensors, nine));
  cat({1, 1, 9, 9});
  MUST(aclSetDynamicTensorAddr(executor, 0, 0, tensors, nine));
  cat({9, 9, 9, 9});
  MUST(AclSetDynamicTensorAddr(executor, 0, 0, tensors, parts[1]));
  MUST(AclSetDynamicInputTensorAddr(executor, 0, 1, tensors, parts[0]));
  cat({2, 2, 1, 1});
  CHECK(aclSetDynamicInputTensorAddr(executor, 0, 2, tensors, nine) == ACLNN_ERR_PARAM_INVALID);
  CHECK(aclSetDynamicOutputTensorAddr(executor, 0, 0, tensors, nine) == ACLNN_ERR_PARAM_INVALID);
  CHECK(AclSetDynamicOutputTensorAddr(nullptr, 0, 0, tensors, nine) == ACLNN_ERR_INNER_NULLPTR);
  CHECK(aclSetDynamicTensorAddr(executor, 0, 0, nullptr, nine) == ACLNN_ERR_INNER_NULLPTR);
  MUST(aclDestroyAclOpExecutor(executor));
  MUST(aclDestroyTensorList(tensors));
  MUST(aclDestroyTensor(joined));
  sum.destroy_handles();
  sum.free_memory();
  for (void* at : {two, three, out, parts[0], parts[1], whole, nine}) MUST(aclrtFree(at));
  MUST(aclnnFinalize());
  kit.end();
  CHECK(aclsimLiveHandles(nullptr) == 0);
}

static void* advise(aclrtAllocator, size_t, aclrtAllocatorAddr) { return nullptr; }
static void* allocate(aclrtAllocator, size_t) { return nullptr; }
static void release(aclrtAllocator, aclrtAllocatorBlock) {}
static void* address_of(aclrtAllocatorBlock block) { return block; }

static void allocators() {
  Kit kit;
  aclrtAllocatorDesc desc = aclrtAllocatorCreateDesc();
  int object = 0;
  MUST(aclrtAllocatorSetObjToDesc(desc, &object));
  MUST(aclrtAllocatorSetAllocFuncToDesc(desc, allocate));
  MUST(aclrtAllocatorSetFreeFuncToDesc(desc, release));
  MUST(aclrtAllocatorSetAllocAdviseFuncToDesc(desc, advise));
  MUST(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(desc, address_of));
  CHECK(aclrtAllocatorSetAllocAdviseFuncToDesc(nullptr, advise) != 0);
  MUST(aclrtAllocatorRegister(kit.stream, desc));
  aclrtAllocatorDesc seen_desc;
  aclrtAllocator seen;
  aclrtAllocatorAllocFunc alloc;
  aclrtAllocatorFreeFunc free_it;
  aclrtAllocatorAllocAdviseFunc seen_advise;
  aclrtAllocatorGetAddrFromBlockFunc get;
  MUST(aclrtAllocatorGetByStream(kit.stream, &seen_desc, &seen, &alloc, &free_it, &seen_advise, &get));
  CHECK(seen == &object && seen_advise == advise && alloc == allocate);
  MUST(aclrtAllocatorUnregister(kit.stream));
  MUST(aclrtAllocatorDestroyDesc(desc));
  CHECK(aclrtAllocatorSetAllocAdviseFuncToDesc(desc, advise) != 0);  // destroyed
  kit.end();
}

static void marks() {
  Kit kit;
  void* domain = mstxDomainCreateA("mine");
  CHECK(domain && !mstxDomainCreateA(nullptr) && !mstxDomainCreateA(""));
  mstxMarkA("here", kit.stream);
  mstxMarkA(nullptr, kit.stream);
  mstxDomainMarkA(domain, "there", kit.stream);
  mstxDomainMarkA(nullptr, "nowhere", nullptr);
  uint64_t range = mstxRangeStartA("all", nullptr), inner = mstxDomainRangeStartA(domain, "part", nullptr);
  CHECK(range && inner && range != inner && mstxRangeStartA(nullptr, nullptr) == 0);
  mstxDomainRangeEnd(domain, inner);
  mstxRangeEnd(range);
  mstxRangeEnd(range);  // ended already
  mstxRangeEnd(0);
  mstxDomainDestroy(domain);
  mstxDomainMarkA(domain, "late", nullptr);  // destroyed: harmless, also twice
  mstxDomainRangeEnd(domain, 12345);
  mstxDomainDestroy(domain);
  mstxDomainDestroy(nullptr);
  void* stamp = aclprofCreateStamp();
  MUST(aclprofSetStampTraceMessage(stamp, "step", 4));
  MUST(aclprofMark(stamp));
  MUST(aclprofMarkEx("mark", 4, kit.stream));
  uint32_t id = 0;
  MUST(aclprofRangeStart(stamp, &id));
  MUST(aclprofRangeStop(id));
  CHECK(aclprofRangeStop(id) != 0 && aclprofRangeStop(9999) != 0);
  CHECK(aclprofMark(nullptr) == kNull && aclprofMarkEx(nullptr, 4, kit.stream) == kNull);
  CHECK(aclprofRangeStart(nullptr, &id) == kNull && aclprofRangeStart(stamp, nullptr) == kNull);
  aclprofDestroyStamp(stamp);
  aclprofStepInfo* step = aclprofCreateStepInfo();
  MUST(aclprofGetStepTimestamp(step, ACL_STEP_START, kit.stream));
  MUST(aclprofGetStepTimestamp(step, ACL_STEP_END, kit.stream));
  CHECK(aclprofGetStepTimestamp(step, strange<aclprofStepTag>(), kit.stream) == kNull);
  CHECK(aclprofGetStepTimestamp(nullptr, ACL_STEP_START, kit.stream) == kNull);
  aclprofDestroyStepInfo(step);
  MUST(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, "200MB", 5));
  CHECK(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, nullptr, 5) == kNull);
  CHECK(aclprofSetConfig(strange<aclprofConfigType>(), "1", 1) == kNull);
  kit.end();
}

// What clients link to and no public header declares: nulls harm nothing, what is not there says so.
static void without_headers() {
  int64_t value = 0;
  int32_t version = 0;
  CHECK(drvGetDevNum(nullptr) != 0 && halGetAPIVersion(nullptr) != 0);
  CHECK(halGetAPIVersion(&version) == 0 && version > 0);
  CHECK(halGetDeviceInfo(0, 0, 0, &value) != 0 && halGetDeviceInfo(0, 0, 0, nullptr) != 0);
  CHECK(halHostRegister(nullptr, 0, 0, 0, nullptr) != 0 && halHostUnregister(nullptr, 0) != 0);
  CHECK(MsprofRegisterCallback(0, nullptr) == 0);
  CHECK(MsprofReportCompactInfo(0, nullptr, 0) == 0 && MsprofReportAdditionalInfo(0, nullptr, 0) == 0);
  CHECK(MsprofGetHashId("a", 1) != MsprofGetHashId("b", 1));
  CHECK(MsprofGetHashId(nullptr, 5) == MsprofGetHashId("", 0));
  uint64_t before = MsprofSysCycleTime();
  CHECK(MsprofSysCycleTime() >= before);
  const int absent = ACL_ERROR_FEATURE_UNSUPPORTED;
  CHECK(rtDevBinaryRegister(nullptr, nullptr) == absent && rtDevBinaryUnRegister(nullptr) == absent);
  CHECK(rtFunctionRegister(nullptr, nullptr, nullptr, nullptr, 0) == absent);
  CHECK(rtGetC2cCtrlAddr(nullptr, nullptr) == absent && rtLaunch(nullptr) == absent);
  CHECK(InitHugeMemThreadLocal(nullptr, false) == 0);
  ReleaseHugeMem(nullptr, false);
  UnInitHugeMemThreadLocal(nullptr, false);
  void* operators = dlopen("libopapi.so", RTLD_LAZY);  // where MindSpore looks for them
  CHECK(operators && dlsym(operators, "InitHugeMemThreadLocal"));
  aclAppLog(ACL_ERROR, nullptr, nullptr, 1, "%s", "told");
  aclAppLog(ACL_ERROR, "f", "file", 1, nullptr);
}

static std::atomic<int> gone{0};
static void count_gone(void*) { ++gone; }

static void ends_of_models() {
  Kit kit;
  void* at = Kit::floats({0, 0});
  for (bool unregistered : {false, true}) {
    MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    MUST(aclrtMemsetAsync(at, 8, 1, 8, kit.stream));
    aclmdlRI model = nullptr;
    MUST(aclmdlRICaptureEnd(kit.stream, &model));
    MUST(aclmdlRIDestroyRegisterCallback(model, count_gone, nullptr));
    CHECK(aclmdlRIDestroyUnregisterCallback(model, nullptr) == kNull);
    if (unregistered) MUST(aclmdlRIDestroyUnregisterCallback(model, count_gone));
    MUST(aclmdlRIDestroy(model));
    CHECK(gone == 1);
    CHECK(aclmdlRIDestroyUnregisterCallback(model, count_gone) != 0);  // destroyed
  }
  CHECK(aclmdlRIDestroyUnregisterCallback(nullptr, count_gone) == kNull);
  MUST(aclrtFree(at));
  kit.end();
}

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void()>> parts = {
      {"batches", batches}, {"batches_refuse", batches_refuse}, {"words", words}, {"rows", rows},
      {"allocations", allocations}, {"reserved", reserved}, {"stream_facts", stream_facts},
      {"stream_settings", stream_settings}, {"cores", cores}, {"timeouts", timeouts},
      {"event_waits", event_waits}, {"event_facts", event_facts},
      {"init_callbacks", init_callbacks}, {"exceptions", exceptions}, {"numbering", numbering},
      {"peers", peers}, {"capabilities", capabilities}, {"described", described},
      {"attributes", attributes}, {"by_type", by_type},
      {"addresses_of_executors", addresses_of_executors}, {"allocators", allocators},
      {"marks", marks}, {"without_headers", without_headers}, {"ends_of_models", ends_of_models}};
  auto part = parts.find(argc > 1 ? argv[1] : "");
  if (part == parts.end()) return 1;
  part->second();
  puts("done");
  return 0;
}
