// A program that is its own tool: records of what it does, by MSPTI; one part per run, by name.
#include <mspti/mspti.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "kit.h"

extern "C" {
void mstxMarkA(const char*, aclrtStream);
uint64_t mstxRangeStartA(const char*, aclrtStream);
void mstxRangeEnd(uint64_t);
void* mstxDomainCreateA(const char*);
void mstxDomainMarkA(void*, const char*, aclrtStream);
}

static_assert(sizeof(msptiActivityKernel) == 56 && sizeof(msptiActivityMarker) == 56 &&
                  sizeof(msptiActivityCommunication) == 72 && sizeof(msptiActivityMemory) == 64 &&
                  sizeof(msptiActivityExternalCorrelation) == 24,
              "packed, and whole words");

constexpr int kLaunches = 5;
static size_t buffer_size = 1 << 16, most_records = 0;
static int buffers = 0;
static std::vector<std::vector<uint8_t>> records;

static void request(uint8_t** buffer, size_t* size, size_t* most) {
  *buffer = static_cast<uint8_t*>(malloc(buffer_size));
  *size = buffer_size;
  *most = most_records;
  ++buffers;
}

static size_t bytes_of(msptiActivityKind kind) {
  switch (kind) {
    case MSPTI_ACTIVITY_KIND_MARKER: return sizeof(msptiActivityMarker);
    case MSPTI_ACTIVITY_KIND_KERNEL: return sizeof(msptiActivityKernel);
    case MSPTI_ACTIVITY_KIND_MEMORY: return sizeof(msptiActivityMemory);
    case MSPTI_ACTIVITY_KIND_MEMSET: return sizeof(msptiActivityMemset);
    case MSPTI_ACTIVITY_KIND_MEMCPY: return sizeof(msptiActivityMemcpy);
    case MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(msptiActivityExternalCorrelation);
    default: return sizeof(msptiActivityApi);
  }
}

static void complete(uint8_t* buffer, size_t size, size_t valid) {
  CHECK(size == buffer_size && valid <= size);
  size_t count = 0;
  msptiActivity* record = nullptr;
  while (msptiActivityGetNextRecord(buffer, valid, &record) == MSPTI_SUCCESS) {
    auto* at = reinterpret_cast<uint8_t*>(record);
    records.emplace_back(at, at + bytes_of(record->kind));
    ++count;
  }
  CHECK(!most_records || count <= most_records);
  MUST(msptiActivityFlushAll(1));  // by a callback: nothing happens
  free(buffer);
}

template <class Record>
static std::vector<Record> of_kind(msptiActivityKind kind) {
  std::vector<Record> all;
  for (auto& one : records) {
    auto* record = reinterpret_cast<Record*>(one.data());
    if (record->kind == kind) all.push_back(*record);
  }
  return all;
}

static uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

static void begin(std::initializer_list<msptiActivityKind> kinds, msptiSubscriberHandle* to) {
  MUST(msptiSubscribe(to, nullptr, nullptr));
  MUST(msptiActivityRegisterCallbacks(request, complete));
  for (msptiActivityKind kind : kinds) MUST(msptiActivityEnable(kind));
}
static void end(msptiSubscriberHandle from) {
  MUST(msptiActivityFlushAll(1));
  for (int k = 1; k < MSPTI_ACTIVITY_KIND_COUNT; ++k) {
    MUST(msptiActivityDisable(static_cast<msptiActivityKind>(k)));
  }
  MUST(msptiUnsubscribe(from));
}

static void add(Kit& kit, int times) {
  Addition add;
  for (int i = 0; i < times; ++i) {
    MUST(add.plan());
    MUST(aclnnAdd(nullptr, 0, add.executor, kit.stream));
  }
  MUST(aclrtSynchronizeStream(kit.stream));
  add.destroy_handles();
  add.free_memory();
}

// Each kernel has the number of the call that launched it, runs after that began, and is tied to
// what the thread was in.
static void kernels() {
  Kit kit;
  add(kit, 1);
  msptiSubscriberHandle tool;
  begin({MSPTI_ACTIVITY_KIND_KERNEL, MSPTI_ACTIVITY_KIND_NODE_API,
         MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION}, &tool);
  uint64_t before = now();
  MUST(msptiActivityPushExternalCorrelationId(MSPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 70));
  MUST(msptiActivityPushExternalCorrelationId(MSPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 77));
  add(kit, kLaunches);
  uint64_t id = 0;
  MUST(msptiActivityPopExternalCorrelationId(MSPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id));
  CHECK(id == 77);
  end(tool);
  uint64_t after = now();
  add(kit, 1);
  MUST(msptiActivityFlushAll(1));
  auto ran = of_kind<msptiActivityKernel>(MSPTI_ACTIVITY_KIND_KERNEL);
  auto calls = of_kind<msptiActivityApi>(MSPTI_ACTIVITY_KIND_NODE_API);
  auto external = of_kind<msptiActivityExternalCorrelation>(MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  CHECK(ran.size() == kLaunches && calls.size() == kLaunches && external.size() == kLaunches);
  for (int i = 0; i < kLaunches; ++i) {
    CHECK(std::string(ran[i].name) == "aclnnAdd" && std::string(calls[i].name) == "aclnnAdd");
    CHECK(std::string(ran[i].type) == "KERNEL_AICORE" && ran[i].ds.deviceId == 0);
    CHECK(ran[i].correlationId == calls[i].correlationId && ran[i].correlationId != 0);
    CHECK(external[i].correlationId == ran[i].correlationId && external[i].externalId == 77);
    CHECK(before <= calls[i].start && calls[i].start <= ran[i].start && ran[i].start < ran[i].end);
    CHECK(ran[i].end <= after && calls[i].start < calls[i].end);
    CHECK(i == 0 || ran[i].correlationId > ran[i - 1].correlationId);
    CHECK(calls[i].pt.processId == static_cast<uint32_t>(getpid()));
    CHECK(calls[i].pt.threadId == static_cast<uint32_t>(syscall(SYS_gettid)));
  }
  kit.end();
}

static void memory() {
  Kit kit;
  msptiSubscriberHandle tool;
  begin({MSPTI_ACTIVITY_KIND_MEMORY, MSPTI_ACTIVITY_KIND_MEMSET, MSPTI_ACTIVITY_KIND_MEMCPY,
         MSPTI_ACTIVITY_KIND_RUNTIME_API}, &tool);
  void *device = nullptr, *host = nullptr;
  char pageable[64];
  MUST(aclrtMalloc(&device, 100, ACL_MEM_MALLOC_HUGE_FIRST));
  MUST(aclrtMallocHost(&host, 64));
  MUST(aclrtMemsetAsync(device, 100, 7, 80, kit.stream));
  MUST(aclrtMemcpyAsync(host, 64, device, 48, ACL_MEMCPY_DEVICE_TO_HOST, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  MUST(aclrtMemcpy(device, 64, pageable, 32, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK(aclrtMemcpy(device, 8, pageable, 32, ACL_MEMCPY_HOST_TO_DEVICE) != 0);  // leaves no record
  MUST(aclrtFree(device));
  MUST(aclrtFreeHost(host));
  end(tool);
  auto blocks = of_kind<msptiActivityMemory>(MSPTI_ACTIVITY_KIND_MEMORY);
  CHECK(blocks.size() == 2);
  for (auto& one : blocks) CHECK(one.address == reinterpret_cast<uintptr_t>(device) && one.bytes == 100);
  CHECK(blocks[0].memoryOperationType == MSPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
  CHECK(blocks[1].memoryOperationType == MSPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
  auto fills = of_kind<msptiActivityMemset>(MSPTI_ACTIVITY_KIND_MEMSET);
  CHECK(fills.size() == 1 && fills[0].value == 7 && fills[0].bytes == 80 && fills[0].isAsync);
  auto copies = of_kind<msptiActivityMemcpy>(MSPTI_ACTIVITY_KIND_MEMCPY);
  CHECK(copies.size() == 2 && copies[0].bytes == 48 && copies[1].bytes == 32);
  CHECK(copies[0].copyKind == MSPTI_ACTIVITY_MEMCPY_KIND_DTOH && copies[0].isAsync);
  CHECK(copies[1].copyKind == MSPTI_ACTIVITY_MEMCPY_KIND_HTOD && !copies[1].isAsync);
  CHECK(copies[1].streamId == MSPTI_INVALID_STREAM_ID && copies[0].start >= fills[0].end);
  std::map<uint64_t, std::string> names;
  for (auto& call : of_kind<msptiActivityApi>(MSPTI_ACTIVITY_KIND_RUNTIME_API)) {
    names[call.correlationId] = call.name;
  }
  CHECK(names[blocks[0].correlationId] == "aclrtMalloc" && names[blocks[1].correlationId] == "aclrtFree");
  CHECK(names[fills[0].correlationId] == "aclrtMemsetAsync");
  CHECK(names[copies[0].correlationId] == "aclrtMemcpyAsync");
  CHECK(names[copies[1].correlationId] == "aclrtMemcpy");
  kit.end();
}

// A thread's calls are tied to what it is in itself; those of one that is in nothing, to the last.
static void threads() {
  Kit kit;
  msptiSubscriberHandle tool;
  begin({MSPTI_ACTIVITY_KIND_NODE_API, MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION}, &tool);
  constexpr auto kind = MSPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  MUST(msptiActivityPushExternalCorrelationId(kind, 1));
  std::thread([&] {
    MUST(aclrtSetDevice(0));
    add(kit, 1);  // 1: this thread pushed nothing
    CHECK(msptiActivityPopExternalCorrelationId(kind, nullptr) == MSPTI_ERROR_QUEUE_EMPTY);
    MUST(msptiActivityPushExternalCorrelationId(kind, 2));
    add(kit, 1);  // 2
  }).join();
  add(kit, 1);  // 1
  MUST(msptiActivityPopExternalCorrelationId(kind, nullptr));
  end(tool);
  auto all = of_kind<msptiActivityExternalCorrelation>(MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  CHECK(all.size() == 3 && all[0].externalId == 1 && all[1].externalId == 2 && all[2].externalId == 1);
  kit.end();
}

// A mark with a stream is told by the host, and by the stream when it comes there.
static void markers() {
  Kit kit;
  msptiSubscriberHandle tool;
  begin({MSPTI_ACTIVITY_KIND_MARKER, MSPTI_ACTIVITY_KIND_KERNEL}, &tool);
  void *seen = mstxDomainCreateA("seen"), *hidden = mstxDomainCreateA("hidden");
  MUST(msptiActivityDisableMarkerDomain("hidden"));
  uint64_t range = mstxRangeStartA("step", kit.stream);
  add(kit, 1);
  mstxRangeEnd(range);
  mstxDomainMarkA(seen, "here", nullptr);
  mstxDomainMarkA(hidden, "there", nullptr);
  MUST(aclrtSynchronizeStream(kit.stream));
  end(tool);
  auto all = of_kind<msptiActivityMarker>(MSPTI_ACTIVITY_KIND_MARKER);
  CHECK(all.size() == 5);
  std::map<int, std::vector<msptiActivityMarker>> by;
  for (auto& one : all) by[one.sourceKind].push_back(one);
  auto& host = by[MSPTI_ACTIVITY_SOURCE_KIND_HOST];
  auto& device = by[MSPTI_ACTIVITY_SOURCE_KIND_DEVICE];
  CHECK(host.size() == 3 && device.size() == 2);
  CHECK(std::string(host[0].name) == "step" && !host[1].name && !host[0].domain);
  CHECK(host[0].flag == MSPTI_ACTIVITY_FLAG_MARKER_START_WITH_DEVICE);
  CHECK(host[1].flag == MSPTI_ACTIVITY_FLAG_MARKER_END_WITH_DEVICE && host[0].id == host[1].id);
  CHECK(host[2].flag == MSPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS && host[2].id != host[1].id);
  CHECK(std::string(host[2].name) == "here" && std::string(host[2].domain) == "seen");
  auto kernel = of_kind<msptiActivityKernel>(MSPTI_ACTIVITY_KIND_KERNEL).at(0);
  CHECK(device[0].timestamp <= kernel.start && kernel.end <= device[1].timestamp);
  CHECK(device[0].objectId.ds.streamId == kernel.ds.streamId && device[0].id == range);
  kit.end();
}

// Small buffers come back full, one after the other; nothing is lost or read twice.
static void small() {
  Kit kit;
  buffer_size = 3 * sizeof(msptiActivityKernel) + 8;
  most_records = 2;
  msptiSubscriberHandle tool;
  begin({MSPTI_ACTIVITY_KIND_KERNEL}, &tool);
  add(kit, kLaunches);
  end(tool);
  CHECK(of_kind<msptiActivityKernel>(MSPTI_ACTIVITY_KIND_KERNEL).size() == kLaunches && buffers == 3);
  kit.end();
}

struct Heard {
  int entered = 0, left = 0;
};
static void hear(void* userdata, msptiCallbackDomain domain, msptiCallbackId id,
                 const msptiCallbackData* data) {
  auto* heard = static_cast<Heard*>(userdata);
  CHECK(domain == MSPTI_CB_DOMAIN_RUNTIME && id == MSPTI_CBID_RUNTIME_MALLOC);
  CHECK(std::string(data->functionName) == "aclrtMalloc" && data->correlationId);
  if (data->callbackSite == MSPTI_API_ENTER) {
    ++heard->entered;
    *data->correlationData = 40 + heard->entered;
    void* own = nullptr;
    MUST(aclrtMalloc(&own, 8, ACL_MEM_MALLOC_HUGE_FIRST));  // is not told of
    MUST(aclrtFree(own));
  } else {
    ++heard->left;
    CHECK(*data->correlationData == 40u + static_cast<uint64_t>(heard->left));
  }
}

static void callbacks() {
  Kit kit;
  Heard heard;
  msptiSubscriberHandle tool, other;
  CHECK(msptiSubscribe(nullptr, hear, &heard) == MSPTI_ERROR_INVALID_PARAMETER);
  MUST(msptiSubscribe(&tool, hear, &heard));
  CHECK(msptiSubscribe(&other, hear, &heard) == MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  void* at = nullptr;
  MUST(aclrtMalloc(&at, 8, ACL_MEM_MALLOC_HUGE_FIRST));  // not enabled yet
  MUST(msptiEnableCallback(1, tool, MSPTI_CB_DOMAIN_RUNTIME, MSPTI_CBID_RUNTIME_MALLOC));
  MUST(aclrtFree(at));
  for (int i = 0; i < 3; ++i) {
    MUST(aclrtMalloc(&at, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclrtFree(at));
  }
  CHECK(heard.entered == 3 && heard.left == 3);
  MUST(msptiEnableDomain(0, tool, MSPTI_CB_DOMAIN_RUNTIME));
  MUST(aclrtMalloc(&at, 8, ACL_MEM_MALLOC_HUGE_FIRST));
  MUST(aclrtFree(at));
  CHECK(heard.entered == 3);
  CHECK(msptiEnableCallback(1, tool, MSPTI_CB_DOMAIN_HCCL, 99) == MSPTI_ERROR_INVALID_PARAMETER);
  CHECK(msptiEnableDomain(1, tool, MSPTI_CB_DOMAIN_INVALID) == MSPTI_ERROR_INVALID_PARAMETER);
  MUST(msptiUnsubscribe(tool));
  CHECK(msptiUnsubscribe(tool) == MSPTI_ERROR_INVALID_PARAMETER);
  CHECK(msptiActivityRegisterCallbacks(nullptr, complete) == MSPTI_ERROR_INVALID_PARAMETER);
  CHECK(msptiActivityEnable(MSPTI_ACTIVITY_KIND_INVALID) == MSPTI_ERROR_INVALID_PARAMETER);
  CHECK(msptiActivityEnable(MSPTI_ACTIVITY_KIND_COUNT) == MSPTI_ERROR_INVALID_PARAMETER);
  CHECK(!msptiActivityIsEnabled(MSPTI_ACTIVITY_KIND_KERNEL));
  MUST(msptiActivityEnable(MSPTI_ACTIVITY_KIND_KERNEL));
  CHECK(msptiActivityIsEnabled(MSPTI_ACTIVITY_KIND_KERNEL));
  MUST(msptiActivityDisable(MSPTI_ACTIVITY_KIND_KERNEL));
  CHECK(msptiActivityDisableMarkerDomain("") == MSPTI_ERROR_INVALID_PARAMETER);
  uint64_t id;
  CHECK(msptiActivityPopExternalCorrelationId(MSPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id) ==
        MSPTI_ERROR_QUEUE_EMPTY);
  CHECK(msptiActivityPushExternalCorrelationId(MSPTI_EXTERNAL_CORRELATION_KIND_INVALID, 1) ==
        MSPTI_ERROR_INVALID_PARAMETER);
  CHECK(msptiActivityGetNextRecord(nullptr, 8, nullptr) == MSPTI_ERROR_INVALID_PARAMETER);
  kit.end();
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  std::map<std::string, std::function<void()>> parts = {{"kernels", kernels},
                                                        {"memory", memory},
                                                        {"threads", threads},
                                                        {"markers", markers},
                                                        {"small", small},
                                                        {"callbacks", callbacks}};
  parts.at(arguments[1])();
  printf("done\n");
}
