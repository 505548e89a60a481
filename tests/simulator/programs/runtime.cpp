// Checks one part of the runtime per run, by name.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "kit.h"

using Clock = std::chrono::steady_clock;
static std::atomic<bool> gate{false};
static std::atomic<int> ran{0};
static void wait_for_gate(void*) {
  while (!gate.load()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}
static void count_up(void*) { ran.fetch_add(1); }
static std::string message() {
  const char* text = aclGetRecentErrMsg();
  return text ? text : "";
}
static bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

static void initialise() {
  CHECK(aclInit(nullptr) == ACL_SUCCESS);
  CHECK(aclInit(nullptr) == ACL_ERROR_REPEAT_INITIALIZE);
  uint64_t left = 9;
  CHECK(aclFinalizeReference(&left) == ACL_SUCCESS && left == 1);
  CHECK(aclFinalize() == ACL_SUCCESS);
  CHECK(aclFinalize() == ACL_ERROR_REPEAT_FINALIZE);
  CHECK(aclFinalizeReference(nullptr) == ACL_ERROR_REPEAT_FINALIZE);
  CHECK(aclInit(nullptr) == ACL_SUCCESS);
  CHECK(aclInit("/does/not/exist.json") == ACL_ERROR_REPEAT_INITIALIZE);
  CHECK(aclFinalize() == ACL_SUCCESS);
  CHECK(aclInit("/does/not/exist.json") == ACL_ERROR_INVALID_FILE);
}

static void configuration() {
  auto file = [](const char* text) {
    static char path[] = "/tmp/aclsim-config-XXXXXX";
    static int handle = mkstemp(path);
    CHECK(ftruncate(handle, 0) == 0 && pwrite(handle, text, strlen(text), 0) > 0);
    return static_cast<const char*>(path);
  };
  CHECK(aclInit(file("{\"a\": [}")) == ACL_ERROR_PARSE_FILE);
  CHECK(aclInit(file("{{{{{{{{{{{\"too deep\"}}}}}}}}}}}")) == ACL_ERROR_PARSE_FILE);
  const char* path = file("{\"defaultDevice\": {\"default_device\": \"1\"}, \"err_msg_mode\": \"1\"}");
  MUST(aclInit(path));
  int32_t device = -1;
  MUST(aclrtGetDevice(&device));  // nobody had to set it
  CHECK(device == 1);
  void* at = nullptr;
  MUST(aclrtMalloc(&at, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  MUST(aclrtFree(at));
  aclrtSetDevice(77);
  std::thread([] { CHECK(contains(message(), "device 77")); }).join();  // one log per process
  MUST(aclFinalize());
  CHECK(aclInit(nullptr) == ACL_ERROR_INVALID_PARAM);  // another configuration than the first
  MUST(aclInit(path));
  unlink(path);
}

static void devices() {
  MUST(aclInit(nullptr));
  uint32_t count = 0;
  MUST(aclrtGetDeviceCount(&count));
  CHECK(count == 2);
  int32_t device = -1;
  CHECK(aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL);
  CHECK(aclrtSetDevice(2) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtSetDevice(-1) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtResetDevice(0) == ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  MUST(aclrtSetDevice(1));
  MUST(aclrtGetDevice(&device));
  CHECK(device == 1);
  aclrtContext primary = nullptr, again = nullptr;
  MUST(aclrtGetCurrentContext(&primary));
  std::thread([&] {
    aclrtContext none;
    CHECK(aclrtGetCurrentContext(&none) == ACL_ERROR_RT_CONTEXT_NULL);
    MUST(aclrtSetDevice(1));
    MUST(aclrtGetCurrentContext(&again));
  }).join();
  CHECK(again == primary);  // threads share the primary context
  aclrtContext own = nullptr;
  MUST(aclrtCreateContext(&own, 0));
  MUST(aclrtGetDevice(&device));
  CHECK(device == 0);
  MUST(aclrtSetCurrentContext(primary));
  MUST(aclrtGetDevice(&device));
  CHECK(device == 1);
  CHECK(aclrtSetCurrentContext(nullptr) == ACL_ERROR_INVALID_PARAM);
  MUST(aclrtDestroyContext(own));
  CHECK(aclrtSetCurrentContext(own) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtResetDevice(1));  // set twice
  MUST(aclrtResetDevice(1));
  CHECK(aclrtResetDevice(1) == ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  CHECK(aclrtSynchronizeDevice() == ACL_ERROR_RT_CONTEXT_NULL);
}

static void asynchronous() {
  Kit kit;
  MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
  for (int i = 0; i < 1000; ++i) MUST(aclrtLaunchHostFunc(kit.stream, count_up, nullptr));
  CHECK(ran.load() == 0);
  aclrtStreamStatus status;
  MUST(aclrtStreamQuery(kit.stream, &status));
  CHECK(status == ACL_STREAM_STATUS_NOT_READY);
  CHECK(aclrtSynchronizeStreamWithTimeout(kit.stream, 20) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  CHECK(aclrtSynchronizeStreamWithTimeout(kit.stream, 0) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtSynchronizeStreamWithTimeout(kit.stream, -2) == ACL_ERROR_RT_PARAM_INVALID);
  gate = true;
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(ran.load() == 1000);
  MUST(aclrtStreamQuery(kit.stream, &status));
  CHECK(status == ACL_STREAM_STATUS_COMPLETE);
  CHECK(aclrtDestroyStream(nullptr) == ACL_ERROR_INVALID_PARAM);
  kit.end();
}

static void events_order_streams() {
  Kit kit;
  aclrtStream other;
  MUST(aclrtCreateStream(&other));
  aclrtEvent event;
  MUST(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  aclrtEventRecordedStatus recorded;
  MUST(aclrtQueryEventStatus(event, &recorded));
  CHECK(recorded == ACL_EVENT_RECORDED_STATUS_COMPLETE);  // never recorded
  float ms = 0;
  CHECK(aclrtEventElapsedTime(&ms, event, event) == ACL_ERROR_RT_INTERNAL_ERROR);
  MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
  MUST(aclrtRecordEvent(event, kit.stream));
  MUST(aclrtStreamWaitEvent(other, event));
  MUST(aclrtLaunchHostFunc(other, count_up, nullptr));
  MUST(aclrtQueryEventStatus(event, &recorded));
  CHECK(recorded == ACL_EVENT_RECORDED_STATUS_NOT_READY);
  CHECK(aclrtEventElapsedTime(&ms, event, event) == ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  CHECK(aclrtSynchronizeEventWithTimeout(event, 20) == ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(ran.load() == 0);
  gate = true;
  MUST(aclrtSynchronizeStream(other));
  CHECK(ran.load() == 1);
  MUST(aclrtSynchronizeEvent(event));
  aclrtEvent later;
  MUST(aclrtCreateEventExWithFlag(&later, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  MUST(aclrtRecordEvent(later, other));
  MUST(aclrtDestroyStream(other));
  MUST(aclrtEventElapsedTime(&ms, event, later));
  CHECK(ms >= 0 && ms < 60000);
  CHECK(aclrtResetEvent(event, kit.stream) == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK(aclrtCreateEventWithFlag(&later, 0) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtCreateEventWithFlag(&later, 0x10000) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtDestroyEvent(event));
  MUST(aclrtDestroyEvent(later));
  kit.end();
}

// torch_npu destroys an event on one device's queue before another's waits for it. Such a wait is
// ordered all the same, 300 events later it is refused; anything else is refused at once.
static void destroyed_events_still_order() {
  Kit kit;
  aclrtStream other;
  MUST(aclrtCreateStream(&other));
  aclrtEvent event;
  MUST(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
  MUST(aclrtRecordEvent(event, kit.stream));
  MUST(aclrtDestroyEvent(event));
  MUST(aclrtStreamWaitEvent(other, event));
  MUST(aclrtLaunchHostFunc(other, count_up, nullptr));
  CHECK(aclrtDestroyEvent(event) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtRecordEvent(event, kit.stream) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtSynchronizeEvent(event) == ACL_ERROR_RT_PARAM_INVALID);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(ran.load() == 0);
  std::vector<aclrtEvent> more(300);
  for (aclrtEvent& each : more) {
    MUST(aclrtCreateEventExWithFlag(&each, ACL_EVENT_SYNC));
    CHECK(each != event);  // its memory is not used again while waits may come
  }
  for (aclrtEvent each : more) MUST(aclrtDestroyEvent(each));
  CHECK(aclrtStreamWaitEvent(other, event) == ACL_ERROR_RT_PARAM_INVALID);
  gate = true;
  MUST(aclrtSynchronizeStream(other));
  CHECK(ran.load() == 1);
  MUST(aclrtDestroyStream(other));
  kit.end();
}

static void old_events() {
  Kit kit;
  aclrtStream other;
  MUST(aclrtCreateStream(&other));
  aclrtEvent event;
  MUST(aclrtCreateEvent(&event));
  aclrtEventRecordedStatus recorded;
  MUST(aclrtQueryEventStatus(event, &recorded));
  CHECK(recorded == ACL_EVENT_RECORDED_STATUS_NOT_READY);
  MUST(aclrtStreamWaitEvent(other, event));  // waits for a record that comes later
  MUST(aclrtLaunchHostFunc(other, count_up, nullptr));
  aclrtEventWaitStatus waiting;
  MUST(aclrtQueryEventWaitStatus(event, &waiting));
  CHECK(waiting == ACL_EVENT_WAIT_STATUS_NOT_READY);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(ran.load() == 0);
  MUST(aclrtRecordEvent(event, kit.stream));
  MUST(aclrtSynchronizeStream(other));
  CHECK(ran.load() == 1);
  MUST(aclrtQueryEventWaitStatus(event, &waiting));
  CHECK(waiting == ACL_EVENT_WAIT_STATUS_COMPLETE);
  MUST(aclrtResetEvent(event, kit.stream));
  MUST(aclrtQueryEventStatus(event, &recorded));
  CHECK(recorded == ACL_EVENT_RECORDED_STATUS_NOT_READY);
  aclrtEvent timeless;
  MUST(aclrtCreateEventWithFlag(&timeless, ACL_EVENT_TIME_LINE));
  CHECK(aclrtStreamWaitEvent(other, timeless) == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  MUST(aclrtDestroyEvent(timeless));
  MUST(aclrtDestroyEvent(event));
  MUST(aclrtDestroyStream(other));
  kit.end();
}

static void callbacks() {
  Kit kit;
  CHECK(aclrtLaunchCallback(count_up, nullptr, ACL_CALLBACK_BLOCK, kit.stream) ==
        ACL_ERROR_RT_STREAM_NO_CB_REG);
  std::atomic<bool> stop{false};
  std::atomic<bool> ready{false};
  std::thread reader([&] {
    MUST(aclrtSetDevice(0));
    MUST(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), kit.stream));
    ready = true;
    while (!stop) aclrtProcessReport(20);
    MUST(aclrtUnSubscribeReport(static_cast<uint64_t>(pthread_self()), kit.stream));
  });
  while (!ready) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) {
    MUST(aclrtLaunchCallback(count_up, nullptr, ACL_CALLBACK_BLOCK, kit.stream));
  }
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(ran.load() == 10);
  CHECK(aclrtProcessReport(20) == ACL_ERROR_RT_THREAD_SUBSCRIBE);
  message();
  MUST(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), nullptr));
  CHECK(aclrtProcessReport(20) == ACL_ERROR_RT_WAIT_TIMEOUT);
  CHECK(message().empty());  // who asks in a loop leaves no cause of later failures
  MUST(aclrtUnSubscribeReport(static_cast<uint64_t>(pthread_self()), nullptr));
  stop = true;
  reader.join();
  MUST(aclrtResetDevice(0));
  kit.end();
}

static void memory() {
  Kit kit;
  void* at = nullptr;
  CHECK(aclrtMalloc(&at, 0, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtFree(nullptr) == ACL_ERROR_INVALID_PARAM);
  size_t free_before = 0, total = 0, free_after = 0;
  MUST(aclrtGetMemInfo(ACL_HBM_MEM, &free_before, &total));
  CHECK(total == (64u << 20));
  for (size_t size : {1u, 31u, 100u, 4096u, 300000u}) {
    MUST(aclrtMalloc(&at, size, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(reinterpret_cast<uintptr_t>(at) % 64 == 0);
    MUST(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
    CHECK(free_before - free_after == (size + 31) / 32 * 32 + 32);
    MUST(aclrtFree(at));
    MUST(aclrtMallocAlign32(&at, size, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
    CHECK(free_before - free_after == (size + 31) / 32 * 32);
    MUST(aclrtFree(at));
  }
  CHECK(aclrtMalloc(&at, 65u << 20, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_RT_MEMORY_ALLOCATION);
  CHECK(contains(message(), "67108864 bytes are in use"));
  MUST(aclrtMalloc(&at, 60u << 20, ACL_MEM_MALLOC_HUGE_FIRST));
  void* second = nullptr;
  CHECK(aclrtMalloc(&second, 8u << 20, ACL_MEM_MALLOC_NORMAL_ONLY) == ACL_ERROR_RT_MEMORY_ALLOCATION);
  aclrtPtrAttributes attributes;
  MUST(aclrtPointerGetAttributes(static_cast<char*>(at) + 100, &attributes));
  CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE && attributes.location.id == 0);
  MUST(aclrtPointerGetAttributes(&total, &attributes));
  CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  CHECK(sizeof attributes == 28);
  MUST(aclrtFree(at));
  CHECK(aclrtFree(at) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtMallocHost(&at, 100));
  MUST(aclrtPointerGetAttributes(at, &attributes));
  CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_HOST);
  CHECK(aclrtFree(at) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtFreeHost(at));
  kit.end();
}

static void copies() {
  Kit kit;
  char host[64], back[64];
  for (int i = 0; i < 64; ++i) host[i] = static_cast<char>(i);
  void* a = Kit::device(64);
  void* b = Kit::device(64);
  CHECK(aclrtMemcpy(nullptr, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
  CHECK(aclrtMemcpy(nullptr, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtMemcpy(a, 8, host, 9, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtMemcpy(a, 8, host, 8, static_cast<aclrtMemcpyKind>(99)) == ACL_ERROR_INVALID_PARAM);
  MUST(aclrtMemcpy(a, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
  MUST(aclrtMemcpyAsync(b, 64, a, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, kit.stream));
  MUST(aclrtMemcpyAsync(back, 64, b, 64, ACL_MEMCPY_DEVICE_TO_HOST, kit.stream));  // pageable: waits
  CHECK(memcmp(host, back, 64) == 0);
  CHECK(aclrtMemcpyAsync(b, 64, a, 64, ACL_MEMCPY_HOST_TO_DEVICE, kit.stream) ==
        ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtMemcpyAsync(back, 64, host, 64, ACL_MEMCPY_HOST_TO_HOST, kit.stream) ==
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  void* pinned = nullptr;
  MUST(aclrtMallocHost(&pinned, 64));
  memcpy(pinned, host, 64);
  MUST(aclrtMemset(b, 64, 7, 64));
  MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
  MUST(aclrtMemcpyAsync(b, 64, pinned, 64, ACL_MEMCPY_HOST_TO_DEVICE, kit.stream));  // returns at once
  MUST(aclrtMemcpy(back, 64, b, 64, ACL_MEMCPY_DEVICE_TO_HOST));  // waits for no stream
  CHECK(back[5] == 7);
  gate = true;
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclrtMemcpy(back, 64, b, 64, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(memcmp(host, back, 64) == 0);
  MUST(aclrtMemset(b, 64, 0, 64));
  MUST(aclrtMemcpy2d(b, 16, host, 8, 4, 3, ACL_MEMCPY_HOST_TO_DEVICE));
  MUST(aclrtMemcpy(back, 64, b, 64, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(back[0] == 0 && back[3] == 3 && back[4] == 0 && back[16] == 8 && back[35] == 19);
  CHECK(aclrtMemset(b, 8, 1, 9) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtMemsetAsync(b, 64, 3, 64, nullptr));  // the default stream
  MUST(aclrtSynchronizeStream(nullptr));
  MUST(aclrtMemcpy(back, 64, b, 64, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(back[63] == 3);
  MUST(aclrtFreeHost(pinned));
  MUST(aclrtFree(a));
  MUST(aclrtFree(b));
  kit.end();
}

static void messages() {
  Kit kit;
  CHECK(aclGetRecentErrMsg() == nullptr);
  aclrtSetDevice(77);
  aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST);
  std::string text = message();
  CHECK(text.compare(0, 6, "[PID: ") == 0);
  CHECK(contains(text, "Invalid_Argument_Null_Pointer(EH0008): aclrtMalloc failed because devPtr cannot "
                       "be a NULL pointer."));
  CHECK(contains(text, "TraceBack (most recent call last):\n"));
  CHECK(text.find("aclrtMalloc") < text.find("aclrtSetDevice"));  // newest first
  CHECK(aclGetRecentErrMsg() == nullptr);
  CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == ACL_SUCCESS);
  aclrtSetDevice(77);
  std::thread([] { CHECK(aclGetRecentErrMsg() == nullptr); }).join();  // per thread
  CHECK(!message().empty());
  CHECK(aclrtSnapShotProcessUnlock(0, nullptr) == ACL_ERROR_FEATURE_UNSUPPORTED);
  CHECK(contains(message(), "aclrtSnapShotProcessUnlock is not supported by the simulator"));
  kit.end();
}

static void executors() {
  Kit kit;
  std::vector<float> ones(8, 1), twos(8, 2);
  Addition add;
  MUST(aclrtMemcpy(add.a, 32, ones.data(), 32, ACL_MEMCPY_HOST_TO_DEVICE));
  MUST(aclrtMemcpy(add.b, 32, twos.data(), 32, ACL_MEMCPY_HOST_TO_DEVICE));
  // A failed phase 1 creates nothing.
  add.executor = nullptr;
  CHECK(aclnnAddGetWorkspaceSize(nullptr, add.other, add.alpha, add.result, &add.workspace,
                                 &add.executor) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(add.executor == nullptr && aclsimLiveHandles("executor") == 0);
  CHECK(contains(message(), "AclNN_Parameter_Error(EZ1001): aclnnAdd failed. Parameter self is null"));
  CHECK(add.run(kit.stream) == ACLNN_ERR_PARAM_NULLPTR);
  // Descriptors are consumed at launch: they may go before the stream runs.
  MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
  MUST(add.plan());
  CHECK(aclsimLiveHandles("executor") == 1);
  std::thread([&] {  // phase 2 may come from another thread
    MUST(aclrtSetDevice(0));
    MUST(add.run(kit.stream));
  }).join();
  CHECK(aclsimLiveHandles("executor") == 0);
  add.destroy_handles();
  gate = true;
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(Kit::back(add.out, 8)[7] == 3);
  // Repeatable: runs many times, with new addresses, until destroyed.
  add.self = Kit::tensor(add.a, {8});
  add.other = Kit::tensor(add.b, {8});
  add.result = Kit::tensor(add.out, {8});
  add.alpha = Kit::scalar(1);
  MUST(add.plan());
  MUST(aclSetAclOpExecutorRepeatable(add.executor));
  MUST(add.run(kit.stream));
  void* fives = Kit::floats(std::vector<float>(8, 5));
  void* sixes = Kit::floats(std::vector<float>(8, 6));
  MUST(aclSetInputTensorAddr(add.executor, 0, add.self, fives));
  MUST(aclSetTensorAddr(add.executor, 1, add.other, sixes));
  MUST(add.run(kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(Kit::back(add.out, 8)[0] == 11);
  CHECK(aclSetInputTensorAddr(nullptr, 0, add.self, fives) == ACLNN_ERR_INNER_NULLPTR);
  CHECK(aclSetInputTensorAddr(add.executor, 0, nullptr, fives) == ACLNN_ERR_INNER_NULLPTR);
  aclTensor* stranger = Kit::tensor(add.a, {8});
  CHECK(aclSetOutputTensorAddr(add.executor, 5, stranger, fives) == ACLNN_ERR_PARAM_INVALID);
  MUST(aclDestroyTensor(stranger));
  MUST(aclDestroyAclOpExecutor(add.executor));
  CHECK(aclDestroyAclOpExecutor(nullptr) == ACLNN_ERR_INNER_NULLPTR);
  CHECK(aclDestroyAclOpExecutor(add.executor) == ACLNN_ERR_INNER);
  CHECK(aclSetAclOpExecutorRepeatable(nullptr) == ACLNN_ERR_INNER_NULLPTR);
  // A null address is a device exception, not a crash.
  MUST(aclSetRawTensorAddr(add.self, nullptr));
  MUST(add.plan());
  MUST(add.run(kit.stream));
  CHECK(aclrtSynchronizeStream(kit.stream) == ACL_ERROR_RT_AICORE_EXCEPTION);
  CHECK(contains(message(), "aclnnAdd: the address of self is null"));
  MUST(aclrtSynchronizeStream(kit.stream));
  add.destroy_handles();
  add.free_memory();
  MUST(aclrtFree(fives));
  MUST(aclrtFree(sixes));
  CHECK(aclsimLiveHandles("tensor") == 0 && aclsimLiveHandles("scalar") == 0);
  MUST(aclrtResetDevice(0));
  kit.end();
  CHECK(aclsimLiveHandles(nullptr) == 0);
}

static void descriptors() {
  Kit kit;
  int64_t dims[] = {2, 3}, strides[] = {4, 1}, storage[] = {10};
  CHECK(aclCreateTensor(nullptr, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr) == nullptr);
  CHECK(aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 1, nullptr) == nullptr);
  aclTensor* t = aclCreateTensor(dims, 2, ACL_BF16, strides, 3, ACL_FORMAT_NCHW, storage, 1, &kit);
  int64_t* out = nullptr;
  uint64_t n = 0;
  MUST(aclGetViewShape(t, &out, &n));
  CHECK(n == 2 && out[0] == 2 && out[1] == 3);
  delete[] out;
  MUST(aclGetViewStrides(t, &out, &n));
  CHECK(n == 2 && out[0] == 4 && out[1] == 1);
  delete[] out;
  MUST(aclGetStorageShape(t, &out, &n));
  CHECK(n == 1 && out[0] == 10);
  delete[] out;
  int64_t offset = 0;
  aclDataType dtype;
  aclFormat format;
  void* address;
  MUST(aclGetViewOffset(t, &offset));
  MUST(aclGetDataType(t, &dtype));
  MUST(aclGetFormat(t, &format));
  MUST(aclGetRawTensorAddr(t, &address));
  CHECK(offset == 3 && dtype == ACL_BF16 && format == ACL_FORMAT_NCHW && address == &kit);
  CHECK(aclGetViewShape(nullptr, &out, &n) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(aclGetViewShape(t, nullptr, &n) == ACLNN_ERR_PARAM_NULLPTR);
  std::vector<int64_t> many(25, 1);
  MUST(aclInitTensor(t, many.data(), 25, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, many.data(), 25, nullptr));
  MUST(aclGetViewShape(t, &out, &n));
  CHECK(n == 25);
  delete[] out;
  uint64_t size;
  aclOpExecutor* executor;
  aclScalar* one = Kit::scalar(1);
  CHECK(aclnnAddGetWorkspaceSize(t, t, one, t, &size, &executor) == ACLNN_ERR_PARAM_INVALID);
  CHECK(contains(message(), "cannot be larger than 8 dimensions"));
  MUST(aclDestroyTensor(t));
  MUST(aclDestroyTensor(nullptr));
  CHECK(aclCreateScalar(nullptr, ACL_FLOAT) == nullptr);
  std::vector<int64_t> values(100, 4);
  aclIntArray* ints = aclCreateIntArray(values.data(), 100);
  MUST(aclGetIntArraySize(ints, &size));
  CHECK(size == 100);
  MUST(aclDestroyIntArray(ints));
  const aclTensor* members[20];
  for (auto& member : members) member = Kit::tensor(nullptr, {4});
  aclTensorList* list = aclCreateTensorList(members, 20);
  MUST(aclGetTensorListSize(list, &size));
  CHECK(size == 20 && aclsimLiveHandles("tensor") == 20);
  MUST(aclDestroyTensorList(list));
  CHECK(aclsimLiveHandles("tensor") == 0);
  MUST(aclDestroyScalar(one));
  CHECK(aclFloat16ToFloat(aclFloatToFloat16(1.5f)) == 1.5f);
  CHECK(aclFloatToFloat16(65520.0f) == 0x7C00 && aclFloatToFloat16(1e-8f) == 0);
  CHECK(aclDataTypeSize(ACL_COMPLEX128) == 16 && aclDataTypeSize(ACL_BF16) == 2);
  kit.end();
}

static void failure_modes() {
  Kit kit;
  Addition add;
  MUST(aclrtSetStreamFailureMode(kit.stream, ACL_STOP_ON_FAILURE));
  CHECK(aclrtSetStreamFailureMode(kit.stream, 7) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclSetRawTensorAddr(add.self, nullptr));
  MUST(add.plan());
  MUST(add.run(kit.stream));
  CHECK(aclrtSynchronizeStream(kit.stream) == ACL_ERROR_RT_AICORE_EXCEPTION);
  CHECK(aclrtSynchronizeStream(kit.stream) == ACL_ERROR_RT_AICORE_EXCEPTION);  // stays
  CHECK(aclrtLaunchHostFunc(kit.stream, count_up, nullptr) == ACL_ERROR_RT_AICORE_EXCEPTION);
  CHECK(ran.load() == 0);
}

static void abort_drops_queued_work() {
  Kit kit;
  MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
  for (int i = 0; i < 5; ++i) MUST(aclrtLaunchHostFunc(kit.stream, count_up, nullptr));
  MUST(aclrtStreamAbort(kit.stream));
  gate = true;
  CHECK(aclrtSynchronizeStream(kit.stream) == ACL_ERROR_RT_STREAM_ABORT);
  CHECK(ran.load() == 0);
  MUST(aclrtLaunchHostFunc(kit.stream, count_up, nullptr));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(ran.load() == 1);
  kit.end();
}

static void stream_limit() {
  Kit kit;
  std::vector<aclrtStream> streams;
  aclrtStream next;
  int code;
  while ((code = aclrtCreateStream(&next)) == ACL_SUCCESS) streams.push_back(next);
  CHECK(code == ACL_ERROR_RT_NO_STREAM_RESOURCE);
  CHECK(streams.size() == 1984 - 2);  // the default stream and the kit's count
  for (aclrtStream stream : streams) MUST(aclrtDestroyStream(stream));
  kit.end();
}

static void fork_is_refused_in_the_child() {
  Kit kit;
  MUST(aclrtLaunchHostFunc(kit.stream, count_up, nullptr));
  pid_t child = fork();
  if (child == 0) {
    bool refused = aclrtSynchronizeStream(nullptr) == ACL_ERROR_RT_CONTEXT_NULL &&
                   contains(message(), "forked") && aclrtSetDevice(0) == ACL_ERROR_RT_CONTEXT_NULL;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  kit.end();
}

static void options() {
  Kit kit;
  int64_t value = -1;
  MUST(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  CHECK(value == 0);
  CHECK(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value) == ACL_ERROR_RT_SYSPARAMOPT_NOT_SET);
  MUST(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  MUST(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  CHECK(value == 1);
  aclrtRunMode mode;
  MUST(aclrtGetRunMode(&mode));
  CHECK(mode == ACL_HOST);
  CHECK(strcmp(aclrtGetSocName(), getenv("EXPECT_SOC")) == 0);
  char version[ACL_PKG_VERSION_MAX_SIZE];
  char package[] = "opp-kernel";
  CHECK(aclsysGetVersionStr(package, version) == (getenv("ASCEND_HOME_PATH") ? 0 : ACL_ERROR_INVALID_FILE));
  aclmdlRICaptureStatus capture = ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  MUST(aclmdlRICaptureGetInfo(kit.stream, &capture, nullptr));
  CHECK(capture == ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  kit.end();
}

static void physical_memory() {
  Kit kit;
  size_t unit = 0;
  aclrtPhysicalMemProp prop = {};
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  MUST(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &unit));
  void* range = nullptr;
  MUST(aclrtReserveMemAddress(&range, 4 * unit, 0, nullptr, 0));
  aclrtDrvMemHandle first, second;
  MUST(aclrtMallocPhysical(&first, unit, &prop, 0));
  MUST(aclrtMallocPhysical(&second, unit, &prop, 0));
  CHECK(aclsimMemoryInUse(0) == 2 * unit);
  MUST(aclrtMapMem(range, unit, 0, first, 0));
  MUST(aclrtMapMem(static_cast<char*>(range) + unit, unit, 0, second, 0));
  MUST(aclrtMemset(range, unit, 5, unit));
  char byte = 0;
  MUST(aclrtMemcpy(&byte, 1, static_cast<char*>(range) + unit - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(byte == 5);
  CHECK(aclrtFree(range) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtReleaseMemAddress(range) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtUnmapMem(range));
  MUST(aclrtUnmapMem(static_cast<char*>(range) + unit));
  MUST(aclrtFreePhysical(first));
  MUST(aclrtFreePhysical(second));
  MUST(aclrtReleaseMemAddress(range));
  CHECK(aclsimMemoryInUse(0) == 0);
  kit.end();
}

// Prints phase 1's code for aclnnAdd in the dtype that argument 2 numbers.
static int wanted_dtype = 0;
static void product_rules() {
  Kit kit;
  auto dtype = static_cast<aclDataType>(wanted_dtype);
  void* at = Kit::device(256);
  aclTensor* t = Kit::tensor(at, {4}, dtype);
  aclScalar* one = Kit::scalar(1);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  int code = aclnnAddGetWorkspaceSize(t, t, one, t, &size, &executor);
  printf("%d %s\n", code, message().c_str());
  code = aclnnAddcmulGetWorkspaceSize(t, t, t, one, t, &size, &executor);
  printf("%d %s\n", code, message().c_str());
}

// Leaves with work queued and running: the process must end all the same.
static void exit_while_busy() {
  static Kit kit;
  MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
  for (int i = 0; i < 10; ++i) MUST(aclrtLaunchHostFunc(kit.stream, count_up, nullptr));
}

static std::atomic<uint32_t> exception_code{0};
static void on_exception(aclrtExceptionInfo* info) {
  exception_code = aclrtGetErrorCodeFromExceptionInfo(info);
}

static void signals() {
  Kit kit;
  aclrtStream other;
  MUST(aclrtCreateStream(&other));
  aclrtNotify notify;
  MUST(aclrtCreateNotify(&notify, 0));
  MUST(aclrtWaitAndResetNotify(notify, other, 0));
  MUST(aclrtLaunchHostFunc(other, count_up, nullptr));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(ran.load() == 0);
  MUST(aclrtRecordNotify(notify, kit.stream));
  MUST(aclrtSynchronizeStream(other));
  CHECK(ran.load() == 1);
  MUST(aclrtDestroyNotify(notify));
  void* word = Kit::device(8);
  MUST(aclrtMemset(word, 8, 0, 8));
  MUST(aclrtValueWait(word, 5, ACL_STREAM_WAIT_VALUE_GEQ, other));
  MUST(aclrtLaunchHostFunc(other, count_up, nullptr));
  MUST(aclrtValueWrite(word, 4, 0, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(ran.load() == 1);
  MUST(aclrtValueWrite(word, 6, 0, kit.stream));
  MUST(aclrtSynchronizeStream(other));
  CHECK(ran.load() == 2);
  CHECK(aclrtValueWait(&kit, 5, 0, other) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclrtFree(word));
  MUST(aclrtDestroyStream(other));
  MUST(aclrtSetExceptionInfoCallback(on_exception));
  Addition add;
  MUST(aclSetRawTensorAddr(add.self, nullptr));
  MUST(add.plan());
  MUST(add.run(kit.stream));
  CHECK(aclrtSynchronizeStream(kit.stream) == ACL_ERROR_RT_AICORE_EXCEPTION);
  CHECK(exception_code == static_cast<uint32_t>(ACL_ERROR_RT_AICORE_EXCEPTION));
  add.destroy_handles();
  add.free_memory();
  kit.end();
}

// More launches than a queue is deep, each to be counted once: the host is held back, not the work.
static void deep_queue() {
  Kit kit;
  void* at = Kit::floats({0});
  void* one = Kit::floats({1});
  aclTensor* self = Kit::tensor(at, {1});
  aclTensor* other = Kit::tensor(one, {1});
  aclScalar* alpha = Kit::scalar(1);
  for (int i = 0; i < 60000; ++i) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    MUST(aclnnInplaceAddGetWorkspaceSize(self, other, alpha, &size, &executor));
    MUST(aclnnInplaceAdd(nullptr, size, executor, kit.stream));
  }
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(Kit::back(at, 1)[0] == 60000);
  CHECK(aclsimLiveHandles("executor") == 0);
  MUST(aclDestroyTensor(self));
  MUST(aclDestroyTensor(other));
  MUST(aclDestroyScalar(alpha));
  MUST(aclrtFree(at));
  MUST(aclrtFree(one));
  kit.end();
}

// Kernels that share their work among threads, on two streams at once.
static void large_work() {
  Kit kit;
  aclrtStream other;
  MUST(aclrtCreateStream(&other));
  const int64_t n = 1 << 20, rows = 512;
  std::vector<float> ones(n, 1);
  void* a = Kit::floats(ones);
  void* sums[2] = {Kit::device(n * 4), Kit::device(n * 4)};
  void* soft[2] = {Kit::device(n * 4), Kit::device(n * 4)};
  aclScalar* two = Kit::scalar(2);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2; ++i) {
      aclrtStream stream = i ? other : kit.stream;
      aclTensor* in = Kit::tensor(a, {rows, n / rows});
      aclTensor* sum = Kit::tensor(sums[i], {rows, n / rows});
      aclTensor* out = Kit::tensor(soft[i], {rows, n / rows});
      uint64_t size = 0;
      aclOpExecutor* executor = nullptr;
      MUST(aclnnAddGetWorkspaceSize(in, in, two, sum, &size, &executor));
      MUST(aclnnAdd(nullptr, size, executor, stream));
      MUST(aclnnSoftmaxGetWorkspaceSize(sum, 1, out, &size, &executor));
      void* workspace = size ? Kit::device(size) : nullptr;
      MUST(aclnnSoftmax(workspace, size, executor, stream));
      MUST(aclDestroyTensor(in));
      MUST(aclDestroyTensor(sum));
      MUST(aclDestroyTensor(out));
      if (workspace) {
        MUST(aclrtSynchronizeStream(stream));
        MUST(aclrtFree(workspace));
      }
    }
  }
  MUST(aclrtSynchronizeDevice());
  for (int i = 0; i < 2; ++i) {
    CHECK(Kit::back(sums[i], n)[n - 1] == 3);
    float expected = static_cast<float>(rows) / n;
    float found = Kit::back(soft[i], n)[n / 2];
    CHECK(found > expected * 0.999f && found < expected * 1.001f);
    MUST(aclrtFree(sums[i]));
    MUST(aclrtFree(soft[i]));
  }
  MUST(aclrtFree(a));
  MUST(aclDestroyScalar(two));
  MUST(aclrtDestroyStream(other));
  kit.end();
}

// Many threads, each with its own stream: counts come out right, nothing is lost.
static void many_threads() {
  Kit kit;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      MUST(aclrtSetDevice(0));
      aclrtStream own;
      MUST(aclrtCreateStream(&own));
      Addition both[2];  // one per stream: streams are not ordered among each other
      for (int i = 0; i < 500; ++i) {
        Addition& add = both[i % 2];
        MUST(add.plan());
        MUST(add.run(i % 2 ? own : kit.stream));
        add.destroy_handles();
        add.self = Kit::tensor(add.a, {8});
        add.other = Kit::tensor(add.b, {8});
        add.result = Kit::tensor(add.out, {8});
        add.alpha = Kit::scalar(1);
      }
      MUST(aclrtSynchronizeStream(own));
      MUST(aclrtSynchronizeStream(kit.stream));
      for (Addition& add : both) {
        add.destroy_handles();
        add.free_memory();
      }
      MUST(aclrtDestroyStream(own));
      MUST(aclrtResetDevice(0));
    });
  }
  for (auto& thread : threads) thread.join();
  kit.end();
  CHECK(aclsimLiveHandles(nullptr) == 0);
}

// A stream may end, and memory be freed, while other threads wait for the whole device.
static void ends_while_others_wait() {
  Kit kit;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      MUST(aclrtSetDevice(0));
      while (!done) MUST(aclrtSynchronizeDevice());
      MUST(aclrtResetDevice(0));
    });
  }
  constexpr size_t kBytes = 200000;
  for (int i = 0; i < 1000; ++i) {
    aclrtStream stream;
    void* memory;
    MUST(aclrtCreateStream(&stream));
    MUST(aclrtMalloc(&memory, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int k = 0; k < 8; ++k) MUST(aclrtMemsetAsync(memory, kBytes, k, kBytes, stream));
    MUST(aclrtFree(memory));  // the work is still queued: its pages stay until it is done
    MUST(aclrtDestroyStream(stream));
  }
  done = true;
  for (auto& thread : threads) thread.join();
  kit.end();
  CHECK(aclsimLiveHandles(nullptr) == 0);
}

int main(int argc, char** argv) {
  std::map<std::string, std::function<void()>> parts = {
      {"initialise", initialise}, {"configuration", configuration}, {"devices", devices}, {"asynchronous", asynchronous},
      {"events_order_streams", events_order_streams}, {"old_events", old_events},
      {"destroyed_events_still_order", destroyed_events_still_order},
      {"callbacks", callbacks}, {"memory", memory}, {"copies", copies}, {"messages", messages},
      {"executors", executors}, {"descriptors", descriptors}, {"failure_modes", failure_modes},
      {"abort_drops_queued_work", abort_drops_queued_work}, {"stream_limit", stream_limit},
      {"fork_is_refused_in_the_child", fork_is_refused_in_the_child}, {"options", options},
      {"physical_memory", physical_memory}, {"signals", signals}, {"product_rules", product_rules},
      {"exit_while_busy", exit_while_busy}, {"many_threads", many_threads}, {"large_work", large_work},
      {"deep_queue", deep_queue}, {"ends_while_others_wait", ends_while_others_wait}};
  auto part = parts.find(argc > 1 ? argv[1] : "");
  if (part == parts.end()) return 1;
  if (argc > 2) wanted_dtype = atoi(argv[2]);
  part->second();
  puts("done");
  return 0;
}
