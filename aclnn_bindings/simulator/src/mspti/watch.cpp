#include "mspti/watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <acl/acl_rt.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "ascendcl/profile.h"
#include "mspti/callbacks.h"
#include "mspti/records.h"

namespace aclsim::mspti {
namespace {

std::atomic<uint32_t> kinds{0};  // a bit each

struct Known {
  std::mutex mutex;
  std::map<uint64_t, Work> queued;  // by ticket, until the task has run
  std::set<std::string> domains_off;
};
Known& known() {
  static auto* made = new Known;
  return *made;
}

uint32_t thread_number() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

// External ids that were pushed, by kind, the innermost last.
struct Pushed {
  uint32_t thread;
  uint64_t id;
};
struct External {
  std::mutex mutex;
  std::vector<Pushed> ids[MSPTI_EXTERNAL_CORRELATION_KIND_SIZE];
};
External& external() {
  static auto* made = new External;
  return *made;
}

// The last that the calling thread pushed; `ids.rend()` for none.
auto own_of(std::vector<Pushed>& ids) {
  uint32_t thread = thread_number();
  return std::find_if(ids.rbegin(), ids.rend(), [=](const Pushed& p) { return p.thread == thread; });
}
bool begins(const char* name, const char* with) { return !strncmp(name, with, strlen(with)); }

// Every call is one of AscendCL; operators' are those of the aclnn component and of dispatch too,
// and aclrt… those of the runtime (msptiActivityKind document).
bool covers(msptiActivityKind kind, const char* call) {
  switch (kind) {
    case MSPTI_ACTIVITY_KIND_ACL_API: return true;
    case MSPTI_ACTIVITY_KIND_API:
    case MSPTI_ACTIVITY_KIND_NODE_API: return begins(call, "aclnn");
    case MSPTI_ACTIVITY_KIND_RUNTIME_API: return begins(call, "aclrt");
    default: return false;
  }
}

// One of each kind: the calling thread's innermost (the document), or, where it pushed none, the
// innermost of all. CANN's own library keeps one stack for all threads, and clients that launch from
// a queue's thread rely on that (external_correlation_reporter.cpp of gitcode.com/Ascend/mspti;
// torch_npu's test_mspti_backend.py).
void append_external(uint64_t correlation) {
  if (!enabled(MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
  std::lock_guard<std::mutex> lock(external().mutex);
  for (int kind = 1; kind < MSPTI_EXTERNAL_CORRELATION_KIND_SIZE; ++kind) {
    std::vector<Pushed>& ids = external().ids[kind];
    if (ids.empty()) continue;
    auto own = own_of(ids);
    append(msptiActivityExternalCorrelation{MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                            static_cast<msptiExternalCorrelationKind>(kind),
                                            own == ids.rend() ? ids.back().id : own->id,
                                            correlation});
  }
}

void left(const char* call, uint64_t correlation, uint64_t begin, uint64_t end) {
  constexpr msptiActivityKind apis[] = {MSPTI_ACTIVITY_KIND_ACL_API, MSPTI_ACTIVITY_KIND_API,
                                        MSPTI_ACTIVITY_KIND_NODE_API,
                                        MSPTI_ACTIVITY_KIND_RUNTIME_API};
  bool told = false;
  for (msptiActivityKind kind : apis) {
    if (!enabled(kind) || !covers(kind, call)) continue;
    if (!told) append_external(correlation);
    told = true;
    append(msptiActivityApi{kind, wall_time(begin), wall_time(end),
                            {static_cast<uint32_t>(getpid()), thread_number()}, correlation,
                            lasting_text(call)});
  }
  call_left(call, correlation);
}

void queued(uint64_t ticket, const Work& work) {
  std::lock_guard<std::mutex> lock(known().mutex);
  known().queued[ticket] = work;
}

// What was said of a task when it was queued; what is replayed may come again.
Work work_of(const Ran& ran) {
  std::lock_guard<std::mutex> lock(known().mutex);
  auto at = known().queued.find(ran.ticket);
  if (at == known().queued.end()) return {};
  Work work = at->second;
  if (!ran.replayed) known().queued.erase(at);
  return work;
}

uint32_t stream_of(const Ran& ran) {
  return ran.stream == kNoStream ? MSPTI_INVALID_STREAM_ID : static_cast<uint32_t>(ran.stream);
}

msptiActivityMemcpyKind copy_kind(uint32_t how) {
  switch (how) {
    case ACL_MEMCPY_HOST_TO_HOST: return MSPTI_ACTIVITY_MEMCPY_KIND_HOST;
    case ACL_MEMCPY_HOST_TO_DEVICE: return MSPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    case ACL_MEMCPY_DEVICE_TO_HOST: return MSPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    case ACL_MEMCPY_DEVICE_TO_DEVICE: return MSPTI_ACTIVITY_MEMCPY_KIND_DTOD;
    default: return MSPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
  }
}

void append_kernel(const Ran& ran) {
  if (!enabled(MSPTI_ACTIVITY_KIND_KERNEL)) return;
  append(msptiActivityKernel{MSPTI_ACTIVITY_KIND_KERNEL, wall_time(ran.begin), wall_time(ran.end),
                             {static_cast<uint32_t>(ran.device), stream_of(ran)}, ran.correlation,
                             "KERNEL_AICORE", lasting_text(ran.name)});
}

void append_copy(const Ran& ran, const Work& work) {
  if (!enabled(MSPTI_ACTIVITY_KIND_MEMCPY)) return;
  append(msptiActivityMemcpy{MSPTI_ACTIVITY_KIND_MEMCPY, copy_kind(work.how), work.amount,
                             wall_time(ran.begin), wall_time(ran.end),
                             static_cast<uint32_t>(ran.device), stream_of(ran), ran.correlation,
                             work.asynchronous});
}

void append_fill(const Ran& ran, const Work& work) {
  if (!enabled(MSPTI_ACTIVITY_KIND_MEMSET)) return;
  append(msptiActivityMemset{MSPTI_ACTIVITY_KIND_MEMSET, work.how, work.amount,
                             wall_time(ran.begin), wall_time(ran.end),
                             static_cast<uint32_t>(ran.device), stream_of(ran), ran.correlation,
                             work.asynchronous});
}

// As `msprof` shows HcclAllReduce: hcom_allReduce_.
std::string title_of(const char* function) {
  std::string title = std::string("hcom_") + (function + strlen("Hccl")) + "_";
  title[5] = static_cast<char>(tolower(title[5]));
  return title;
}

uint64_t element_bytes(uint32_t dtype) {
  constexpr uint8_t bytes[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2, 16, 0, 1, 1, 1, 1};
  return dtype < sizeof bytes ? bytes[dtype] : 0;
}

void append_exchange(const Ran& ran, const Work& work) {
  const char* name = lasting_text(title_of(ran.name).c_str());
  const char* group = lasting_text(work.group ? work.group : "");
  auto device = static_cast<uint32_t>(ran.device);
  uint64_t begin = wall_time(ran.begin), end = wall_time(ran.end);
  if (enabled(MSPTI_ACTIVITY_KIND_HCCL)) {
    double speed = end > begin ? static_cast<double>(work.amount * element_bytes(work.how)) /
                                     static_cast<double>(end - begin) : 0;
    append(msptiActivityHccl{MSPTI_ACTIVITY_KIND_HCCL, begin, end, {device, stream_of(ran)}, speed,
                             name, group});
  }
  if (enabled(MSPTI_ACTIVITY_KIND_COMMUNICATION)) {
    append(msptiActivityCommunication{MSPTI_ACTIVITY_KIND_COMMUNICATION,
                                      static_cast<msptiCommunicationDataType>(work.how),
                                      work.amount, {device, stream_of(ran)}, begin, end,
                                      "SHARED_MEMORY", name, group, ran.correlation});
  }
}

void ran(const Ran& ran, const Work* said) {
  Work work = said ? *said : work_of(ran);
  switch (work.kind) {
    case Work::Copy: return append_copy(ran, work);
    case Work::Fill: return append_fill(ran, work);
    case Work::Exchange: return append_exchange(ran, work);
    case Work::None:
      if (ran.operation) append_kernel(ran);
  }
}

void allocated(const Allocated& block) {
  if (!enabled(MSPTI_ACTIVITY_KIND_MEMORY)) return;
  append(msptiActivityMemory{
      MSPTI_ACTIVITY_KIND_MEMORY,
      block.released ? MSPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                     : MSPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
      MSPTI_ACTIVITY_MEMORY_DEVICE, block.correlation, wall_time(block.begin),
      wall_time(block.end), reinterpret_cast<uintptr_t>(block.address), block.bytes,
      static_cast<uint32_t>(getpid()), static_cast<uint32_t>(block.device),
      MSPTI_INVALID_STREAM_ID});
}

bool domain_on(const char* domain) {
  std::lock_guard<std::mutex> lock(known().mutex);
  return !known().domains_off.count(domain ? domain : "default");
}

void marked(const Mark& mark) {
  if (!enabled(MSPTI_ACTIVITY_KIND_MARKER) || !domain_on(mark.domain)) return;
  constexpr msptiActivityFlag flags[2][3] = {
      {MSPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, MSPTI_ACTIVITY_FLAG_MARKER_START,
       MSPTI_ACTIVITY_FLAG_MARKER_END},
      {MSPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS_WITH_DEVICE,
       MSPTI_ACTIVITY_FLAG_MARKER_START_WITH_DEVICE, MSPTI_ACTIVITY_FLAG_MARKER_END_WITH_DEVICE}};
  msptiActivityMarker record = {MSPTI_ACTIVITY_KIND_MARKER, flags[mark.with_device][mark.phase],
                                MSPTI_ACTIVITY_SOURCE_KIND_HOST, wall_time(mark.at), mark.id, {},
                                mark.message, mark.domain};
  if (mark.on_device) {
    record.sourceKind = MSPTI_ACTIVITY_SOURCE_KIND_DEVICE;
    record.objectId.ds.deviceId = static_cast<uint32_t>(mark.device);
    record.objectId.ds.streamId = static_cast<uint32_t>(mark.stream);
  } else {
    record.objectId.pt.processId = static_cast<uint32_t>(getpid());
    record.objectId.pt.threadId = thread_number();
  }
  append(record);
}

constexpr ProfileWatcher kWatcher = {call_entered, left, queued, ran, allocated, marked};

}  // namespace

bool enabled(msptiActivityKind kind) { return kinds.load(std::memory_order_relaxed) >> kind & 1; }

void enable(msptiActivityKind kind, bool on) {
  if (on) {
    kinds.fetch_or(1u << kind);
  } else {
    kinds.fetch_and(~(1u << kind));
  }
  update_watch();
}

void enable_domain(const std::string& name, bool on) {
  std::lock_guard<std::mutex> lock(known().mutex);
  if (on) {
    known().domains_off.erase(name);
  } else {
    known().domains_off.insert(name);
  }
}

void push_external(msptiExternalCorrelationKind kind, uint64_t id) {
  std::lock_guard<std::mutex> lock(external().mutex);
  external().ids[kind].push_back({thread_number(), id});
}
bool pop_external(msptiExternalCorrelationKind kind, uint64_t* id) {
  std::lock_guard<std::mutex> lock(external().mutex);
  std::vector<Pushed>& ids = external().ids[kind];
  auto own = own_of(ids);
  if (own == ids.rend()) return false;
  if (id) *id = own->id;
  ids.erase(std::prev(own.base()));
  return true;
}

void update_watch() { profile_watch(kinds.load() || subscribed() ? &kWatcher : nullptr); }

}  // namespace aclsim::mspti
