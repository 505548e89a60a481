// What several processes, or several pieces of memory, share; one part per run, by name.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>

#include "kit.h"

constexpr size_t kMany = 1 << 20, kPiece = 2 << 20;

// Two processes, each with the simulator to itself, and a pipe in both directions.
struct Pair {
  int out[2], back[2];
  bool child;
  pid_t pid;
  Pair() {
    CHECK(pipe(out) == 0 && pipe(back) == 0);
    pid = fork();
    child = pid == 0;
  }
  template <class T>
  void say(const T& value) {
    CHECK(write(child ? back[1] : out[1], &value, sizeof value) == sizeof value);
  }
  template <class T>
  T hear() {
    T value;
    CHECK(read(child ? out[0] : back[0], &value, sizeof value) == sizeof value);
    return value;
  }
  void end() {
    if (child) _exit(0);
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  }
};
struct Key {
  char text[65];
};

static void addresses() {
  Kit kit;
  for (size_t bytes : {size_t{1}, size_t{100}, size_t{5000}, kMany}) {
    void* at = Kit::device(bytes);
    CHECK(reinterpret_cast<uintptr_t>(at) % 512 == 0);
    MUST(aclrtFree(at));
    MUST(aclrtMallocAlign32(&at, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(reinterpret_cast<uintptr_t>(at) % 512 == 0);
    MUST(aclrtFree(at));
  }
  kit.end();
}

// What answers "no" or "again" is not the cause of what fails later.
static void stale_notices() {
  MUST(aclInit(nullptr));
  CHECK(aclInit(nullptr) == ACL_ERROR_REPEAT_INITIALIZE);
  int32_t device;
  CHECK(aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL);
  CHECK(aclGetRecentErrMsg() == nullptr);
}

static char* map_two(aclrtDrvMemHandle pieces[2]) {
  aclrtPhysicalMemProp prop = {};
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  void* range = nullptr;
  MUST(aclrtReserveMemAddress(&range, 3 * kPiece, 0, nullptr, 0));
  char* base = static_cast<char*>(range);
  for (int i = 0; i < 2; ++i) {
    MUST(aclrtMallocPhysical(&pieces[i], kPiece, &prop, 0));
    MUST(aclrtMapMem(base + i * kPiece, kPiece, 0, pieces[i], 0));
  }
  return base;
}

static void adjacent_mappings() {
  Kit kit;
  aclrtDrvMemHandle pieces[2];
  char* base = map_two(pieces);
  char* middle = base + kPiece - 16;  // four floats in each piece
  std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  MUST(aclrtMemcpy(middle, 32, values.data(), 32, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK(Kit::back(middle, 8) == values);
  aclTensor* tensor = Kit::tensor(middle, {8});
  aclScalar* one = Kit::scalar(1);
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnAddGetWorkspaceSize(tensor, tensor, one, tensor, &workspace, &executor));
  MUST(aclnnAdd(nullptr, workspace, executor, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(Kit::back(middle, 8)[7] == 16);
  MUST(aclrtMemsetAsync(middle, 32, 0, 32, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(Kit::back(middle, 8)[5] == 0);
  // The third piece is not mapped: there the range ends.
  CHECK(aclrtMemset(base, 3 * kPiece, 0, 2 * kPiece) == ACL_SUCCESS);
  CHECK(aclrtMemset(base, 3 * kPiece, 0, 2 * kPiece + 1) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclDestroyTensor(tensor));
  MUST(aclDestroyScalar(one));
  for (int i = 0; i < 2; ++i) {
    MUST(aclrtUnmapMem(base + i * kPiece));
    MUST(aclrtFreePhysical(pieces[i]));
  }
  MUST(aclrtReleaseMemAddress(base));
  kit.end();
}

static void export_memory(Pair& pair) {
  Kit kit;
  void* at = Kit::device(kMany);
  MUST(aclrtMemset(at, kMany, 1, kMany));
  Key key = {};
  CHECK(aclrtIpcMemGetExportKey(at, kMany, key.text, 10, 0) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtIpcMemGetExportKey(static_cast<char*>(at) + 64, 64, key.text, 65, 0) ==
        ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtIpcMemGetExportKey(at, kMany, key.text, sizeof key.text, 0));
  pair.say(key);
  int32_t reader = pair.hear<int32_t>();  // it was refused, and says who it is
  MUST(aclrtIpcMemSetImportPid(key.text, &reader, 1));
  pair.say('g');
  pair.hear<char>();
  std::vector<unsigned char> seen(kMany);
  MUST(aclrtMemcpy(seen.data(), kMany, at, kMany, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(seen[0] == 1 && seen[5] == 7 && seen[kMany - 1] == 1);
  MUST(aclrtIpcMemClose(key.text));
  CHECK(aclrtIpcMemClose(key.text) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtFree(at));
  pair.say('g');
  kit.end();
}
static void import_memory(Pair& pair) {
  Kit kit;
  Key key = pair.hear<Key>();
  void* at = nullptr;
  CHECK(aclrtIpcMemImportByKey(&at, key.text, 0) == ACL_ERROR_RT_NO_PERMISSION);
  CHECK(aclrtIpcMemImportByKey(&at, "no key", 0) == ACL_ERROR_RT_PARAM_INVALID);
  int32_t me = 0;
  MUST(aclrtDeviceGetBareTgid(&me));
  pair.say(me);
  pair.hear<char>();
  MUST(aclrtIpcMemImportByKey(&at, key.text, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS));
  char* bytes = static_cast<char*>(at);
  MUST(aclrtMemsetAsync(bytes + 4, kMany - 4, 7, 4, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(aclrtFree(at) == ACL_ERROR_RT_PARAM_INVALID);  // it belongs to the other process
  pair.say('g');
  pair.hear<char>();
  MUST(aclrtIpcMemClose(key.text));
  CHECK(aclrtIpcMemImportByKey(&at, key.text, 0) == ACL_ERROR_RT_PARAM_INVALID);  // closed, freed
  kit.end();
}
static void memory_of_another_process() {
  Pair pair;
  (pair.child ? import_memory : export_memory)(pair);
  pair.end();
}

static void physical_memory_of_another_process() {
  Pair pair;
  Kit kit;
  aclrtDrvMemHandle piece = nullptr;
  aclrtPhysicalMemProp prop = {};
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  void* range = nullptr;
  MUST(aclrtReserveMemAddress(&range, kPiece, 0, nullptr, 0));
  if (pair.child) {
    auto handle = pair.hear<uint64_t>();
    MUST(aclrtMemImportFromShareableHandle(handle, 1, &piece));
    MUST(aclrtMapMem(range, kPiece, 0, piece, 0));
    MUST(aclrtMemset(range, kPiece, 3, kPiece));
    CHECK(aclsimMemoryInUse(1) == 0);  // the exporter counts it
    pair.say('g');
  } else {
    MUST(aclrtMallocPhysical(&piece, kPiece, &prop, 0));
    MUST(aclrtMapMem(range, kPiece, 0, piece, 0));
    uint64_t handle = 0;
    MUST(aclrtMemExportToShareableHandle(piece, ACL_MEM_HANDLE_TYPE_NONE, 0, &handle));
    int32_t child = pair.pid;
    MUST(aclrtMemSetPidToShareableHandle(handle, &child, 1));
    pair.say(handle);
    pair.hear<char>();
    char last = 0;
    MUST(aclrtMemcpy(&last, 1, static_cast<char*>(range) + kPiece - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(last == 3);
  }
  MUST(aclrtUnmapMem(range));
  MUST(aclrtFreePhysical(piece));
  MUST(aclrtReleaseMemAddress(range));
  kit.end();
  pair.end();
}

static void events_of_another_process() {
  Pair pair;
  Kit kit;
  aclrtEvent event = nullptr;
  aclrtEventRecordedStatus status;
  if (pair.child) {
    MUST(aclrtIpcOpenEventHandle(pair.hear<aclrtIpcEventHandle>(), &event));
    MUST(aclrtQueryEventStatus(event, &status));
    CHECK(status == ACL_EVENT_RECORDED_STATUS_NOT_READY);
    MUST(aclrtStreamWaitEvent(kit.stream, event));
    CHECK(aclrtSynchronizeStreamWithTimeout(kit.stream, 30) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    pair.say('g');
    MUST(aclrtSynchronizeStream(kit.stream));
    MUST(aclrtSynchronizeEvent(event));
    float ms;
    CHECK(aclrtEventElapsedTime(&ms, event, event) == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  } else {
    aclrtIpcEventHandle handle;
    MUST(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    CHECK(aclrtIpcGetEventHandle(event, &handle) == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    MUST(aclrtDestroyEvent(event));
    MUST(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    MUST(aclrtIpcGetEventHandle(event, &handle));
    void* word = Kit::device(8);
    MUST(aclrtMemset(word, 8, 0, 8));
    MUST(aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_EQ, kit.stream));
    MUST(aclrtRecordEvent(event, kit.stream));
    pair.say(handle);
    pair.hear<char>();  // the other waits; now the record may be reached
    uint64_t one = 1;
    MUST(aclrtMemcpy(word, 8, &one, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    MUST(aclrtSynchronizeStream(kit.stream));
    MUST(aclrtFree(word));
  }
  MUST(aclrtDestroyEvent(event));
  kit.end();
  pair.end();
}

// A notify that one device records lets another device go on.
static void notifies_between_devices() {
  Kit kit;
  aclrtNotify notify = nullptr;
  MUST(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
  MUST(aclrtWaitAndResetNotify(notify, kit.stream, 0));
  aclrtStreamStatus status;
  MUST(aclrtStreamQuery(kit.stream, &status));
  CHECK(status == ACL_STREAM_STATUS_NOT_READY);
  MUST(aclrtSetDevice(1));
  aclrtStream other = nullptr;
  MUST(aclrtCreateStream(&other));
  MUST(aclrtRecordNotify(notify, other));
  MUST(aclrtSynchronizeStream(other));
  MUST(aclrtDestroyStream(other));
  MUST(aclrtResetDevice(1));
  MUST(aclrtSetDevice(0));
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclrtDestroyNotify(notify));
  MUST(aclrtResetDevice(0));
  kit.end();
}

static void counting_notifies() {
  Kit kit;
  aclrtStream other = nullptr;
  MUST(aclrtCreateStream(&other));
  aclrtCntNotify count = nullptr;
  CHECK(aclrtCntNotifyCreate(&count, 1) == ACL_ERROR_INVALID_PARAM);
  MUST(aclrtCntNotifyCreate(&count, 0));
  uint32_t id = 0;
  CHECK(aclrtGetNotifyId(count, &id) == ACL_ERROR_RT_PARAM_INVALID);  // of the other sort
  MUST(aclrtCntNotifyGetId(count, &id));
  aclrtCntNotifyWaitInfo three = {};
  three.mode = ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE;
  three.value = 3;
  three.isClear = 1;
  MUST(aclrtCntNotifyWaitWithTimeout(count, kit.stream, &three));
  aclrtCntNotifyRecordInfo one = {ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1};
  aclrtStreamStatus status;
  for (int i = 0; i < 3; ++i) {
    MUST(aclrtStreamQuery(kit.stream, &status));
    CHECK(status == ACL_STREAM_STATUS_NOT_READY);
    MUST(aclrtCntNotifyRecord(count, other, &one));
    MUST(aclrtSynchronizeStream(other));
  }
  MUST(aclrtSynchronizeStream(kit.stream));  // and the count is 0 again
  aclrtCntNotifyRecordInfo bits = {ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE, 6};
  aclrtCntNotifyRecordInfo mask = {ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE, 12};
  MUST(aclrtCntNotifyRecord(count, kit.stream, &bits));
  MUST(aclrtCntNotifyRecord(count, kit.stream, &mask));
  aclrtCntNotifyWaitInfo equal = {};
  equal.mode = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE;
  equal.value = 4;
  equal.timeout = 30;
  MUST(aclrtCntNotifyWaitWithTimeout(count, kit.stream, &equal));
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclrtCntNotifyReset(count, kit.stream));
  equal.timeout = 1;  // seconds, for what never comes
  MUST(aclrtCntNotifyWaitWithTimeout(count, kit.stream, &equal));
  CHECK(aclrtSynchronizeStream(kit.stream) != ACL_SUCCESS);
  MUST(aclrtCntNotifyDestroy(count));
  MUST(aclrtDestroyStream(other));
  kit.end();
}

static void reset_notifies() {
  Kit kit;
  aclrtNotify notify = nullptr;
  MUST(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
  MUST(aclrtRecordNotify(notify, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclrtNotifyBatchReset(&notify, 1));
  MUST(aclrtWaitAndResetNotify(notify, kit.stream, 50));
  CHECK(aclrtSynchronizeStream(kit.stream) != ACL_SUCCESS);  // the record is gone
  aclrtCntNotify count = nullptr;
  CHECK(aclrtCntNotifyCreate(&count, 0) == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);  // not on a 910B
  MUST(aclrtDestroyNotify(notify));
  kit.end();
}

static void reductions() {
  Kit kit;
  void* to = Kit::floats({1, -2, 3, 4});
  void* from = Kit::floats({10, 20, -30, 4});
  auto reduce = [&](aclrtReduceKind kind, aclDataType type = ACL_FLOAT, uint64_t bytes = 16) {
    return aclrtReduceAsync(to, from, bytes, kind, type, kit.stream, nullptr);
  };
  MUST(reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK((Kit::back(to, 4) == std::vector<float>{11, 18, -27, 8}));
  MUST(reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK((Kit::back(to, 4) == std::vector<float>{11, 20, -27, 8}));
  MUST(reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN, ACL_FLOAT, 12));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK((Kit::back(to, 4) == std::vector<float>{10, 20, -30, 8}));
  std::vector<int8_t> bytes = {127, -128, 5, 6}, more = {1, -1, 5, -6};
  MUST(aclrtMemcpy(to, 4, bytes.data(), 4, ACL_MEMCPY_HOST_TO_DEVICE));
  MUST(aclrtMemcpy(from, 4, more.data(), 4, ACL_MEMCPY_HOST_TO_DEVICE));
  MUST(reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT8, 4));
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclrtMemcpy(bytes.data(), 4, to, 4, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK((bytes == std::vector<int8_t>{-128, 127, 10, 0}));
  CHECK(reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL) == ACL_ERROR_INVALID_PARAM);
  CHECK(reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_DOUBLE) == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK(reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, 10) == ACL_ERROR_INVALID_PARAM);
  CHECK(reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, kMany) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtFree(to));
  MUST(aclrtFree(from));
  kit.end();
}

static void usage_and_repair() {
  Kit kit;
  void* at = Kit::device(kMany);
  aclrtMemUsageInfo infos[4];
  size_t count = 0;
  MUST(aclrtGetMemUsageInfo(0, infos, 4, &count));
  CHECK(count == 1 && infos[0].curMemSize >= kMany && infos[0].memPeakSize >= infos[0].curMemSize);
  MUST(aclrtFree(at));
  uint64_t before = infos[0].curMemSize;
  MUST(aclrtGetMemUsageInfo(0, infos, 4, &count));
  CHECK(infos[0].curMemSize <= before - kMany && infos[0].memPeakSize >= before);
  CHECK(aclrtGetMemUsageInfo(9, infos, 4, &count) == ACL_ERROR_RT_INVALID_DEVICEID);
  aclrtMemUceInfo faulty[20] = {};
  MUST(aclrtMemUceRepair(0, faulty, 1));
  CHECK(aclrtMemUceRepair(0, faulty, 21) == ACL_ERROR_INVALID_PARAM);
  aclrtErrorInfo error;
  MUST(aclrtGetErrorVerbose(0, &error));
  MUST(aclrtRepairError(0, &error));
  kit.end();
}

// Only what devices map must begin at a page.
static void registered_host_memory() {
  Kit kit;
  std::vector<char> room(4 * 4096);
  char* page = room.data() + (4096 - reinterpret_cast<uintptr_t>(room.data()) % 4096);
  CHECK(aclrtHostRegisterV2(page + 64, 80, ACL_HOST_REG_MAPPED) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtHostRegisterV2(page, 4096, 0) == ACL_ERROR_INVALID_PARAM);
  MUST(aclrtHostRegisterV2(page + 64, 80, ACL_HOST_REG_PINNED));
  CHECK(aclrtHostRegisterV2(page + 64, 80, ACL_HOST_REG_PINNED) ==
        ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  MUST(aclrtHostUnregister(page + 64));
  MUST(aclrtHostRegisterV2(page, 4096, ACL_HOST_REG_PINNED | ACL_HOST_REG_MAPPED));
  void* seen = nullptr;
  MUST(aclrtHostGetDevicePointer(page, &seen, 0));
  MUST(aclrtHostUnregister(page));
  CHECK(aclrtHostUnregister(page) == ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  kit.end();
}

// As torch_npu swaps: what aclrtMallocHost gave is mapped, used by the device, and given back.
static void pinned_memory_seen_by_the_device() {
  Kit kit;
  void *pinned = nullptr, *device = nullptr, *seen = nullptr;
  char back[16] = {};
  aclrtMallocAttribute one_address = {ACL_RT_MEM_ATTR_VA_FLAG, {}};
  one_address.value.vaFlag = 1;
  aclrtMallocConfig asked = {&one_address, 1};
  MUST(aclrtMallocHostWithCfg(&pinned, 8192, &asked));
  MUST(aclrtMalloc(&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
  const auto copy = [&](void* to, void* from, aclrtMemcpyKind kind) {
    return aclrtMemcpyAsync(to, 16, from, 16, kind, kit.stream);
  };
  memcpy(pinned, "swapped out.....", 16);
  CHECK(copy(device, pinned, ACL_MEMCPY_DEVICE_TO_DEVICE) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtHostRegister(pinned, 8192, ACL_HOST_REGISTER_MAPPED, &seen));
  CHECK(aclrtHostRegister(pinned, 8192, ACL_HOST_REGISTER_MAPPED, &seen) ==
        ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  MUST(copy(device, seen, ACL_MEMCPY_DEVICE_TO_DEVICE));
  MUST(copy(device, pinned, ACL_MEMCPY_HOST_TO_DEVICE));
  MUST(aclrtMemsetAsync(seen, 8192, 0, 8192, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclrtMemcpy(back, 16, device, 16, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(memcmp(back, "swapped out.....", 16) == 0);
  CHECK(static_cast<char*>(pinned)[0] == 0);
  MUST(aclrtHostUnregister(pinned));
  CHECK(aclrtHostUnregister(pinned) == ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(copy(device, pinned, ACL_MEMCPY_DEVICE_TO_DEVICE) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtFree(device));
  MUST(aclrtFreeHost(pinned));
  kit.end();
}

int main(int, char** argv) {
  const std::map<std::string, std::function<void()>> parts = {
      {"addresses", addresses},
      {"stale_notices", stale_notices},
      {"adjacent_mappings", adjacent_mappings},
      {"memory_of_another_process", memory_of_another_process},
      {"physical_memory_of_another_process", physical_memory_of_another_process},
      {"events_of_another_process", events_of_another_process},
      {"notifies_between_devices", notifies_between_devices},
      {"counting_notifies", counting_notifies},
      {"reset_notifies", reset_notifies},
      {"reductions", reductions},
      {"usage_and_repair", usage_and_repair},
      {"registered_host_memory", registered_host_memory},
      {"pinned_memory_seen_by_the_device", pinned_memory_seen_by_the_device},
  };
  parts.at(argv[1])();
  printf("done\n");
}
