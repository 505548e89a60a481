#include "device_time.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "per_thread.h"
#include "recorder.h"
#include "roles.h"

namespace layers {
namespace {

constexpr size_t kMostPending = 4096;   // launches; then the oldest is waited for
constexpr uint32_t kTimeLine = 8;       // ACL_EVENT_TIME_LINE
constexpr int32_t kComplete = 1;        // ACL_EVENT_RECORDED_STATUS_COMPLETE

// What the layer itself calls of the install; aclmdlRICaptureGetInfo may be missing.
struct Install {
  int32_t (*current)(void**);
  int32_t (*make_current)(void*);
  int32_t (*device)(int32_t*);
  int32_t (*create)(void**, uint32_t);
  int32_t (*destroy)(void*);
  int32_t (*record)(void*, void*);
  int32_t (*query)(void*, int32_t*);
  int32_t (*wait)(void*);
  int32_t (*elapsed)(float*, void*, void*);
  int32_t (*capturing)(void*, int32_t*, void**);
  bool complete = false;
};

struct Pair {
  void* before = nullptr;
  void* after = nullptr;
};

struct Pending {
  uint64_t number;
  void* context;
  Pair events;
};

// Events belong to the context that they are made in.
struct Events {
  int32_t device = -1;
  std::vector<Pair> idle;
};

struct Timer {
  std::mutex mutex;
  Install install{};
  std::unordered_map<void*, Events> events;  // by context
  std::deque<Pending> pending;
};

Timer* timer = nullptr;

// The launch that this thread is in.
Pending& current_launch() { return aclnn_bindings::per_thread<Pending>(); }

template <class F>
void bind(ShimDescriptor* shim, F** place, const char* name) {
  *place = reinterpret_cast<F*>(real_named(shim, name));
}

const Install& install_of(ShimDescriptor* shim) {
  Install& all = timer->install;
  if (all.complete || !library_of(shim)) return all;
  bind(shim, &all.current, "aclrtGetCurrentContext");
  bind(shim, &all.make_current, "aclrtSetCurrentContext");
  bind(shim, &all.device, "aclrtGetDevice");
  bind(shim, &all.create, "aclrtCreateEventExWithFlag");
  bind(shim, &all.destroy, "aclrtDestroyEvent");
  bind(shim, &all.record, "aclrtRecordEvent");
  bind(shim, &all.query, "aclrtQueryEventStatus");
  bind(shim, &all.wait, "aclrtSynchronizeEvent");
  bind(shim, &all.elapsed, "aclrtEventElapsedTime");
  bind(shim, &all.capturing, "aclmdlRICaptureGetInfo");
  all.complete = all.current && all.make_current && all.device && all.create && all.destroy && all.record && all.query && all.wait &&
                 all.elapsed;
  return all;
}

void* context_of(const Install& acl) {
  void* context = nullptr;
  return acl.current(&context) == 0 ? context : nullptr;
}

bool is_captured(const Install& acl, void* stream) {
  int32_t status = 0;
  void* model = nullptr;
  return acl.capturing && acl.capturing(stream, &status, &model) == 0 && status != 0;
}

void give_back(const Install& acl, const Pair& events) {
  if (events.before) acl.destroy(events.before);
  if (events.after) acl.destroy(events.after);
}

bool take_pair(const Install& acl, void* context, Pair* events) {
  {
    std::lock_guard<std::mutex> lock(timer->mutex);
    Events& all = timer->events[context];
    if (all.device < 0) acl.device(&all.device);
    if (!all.idle.empty()) {
      *events = all.idle.back();
      all.idle.pop_back();
      return true;
    }
  }
  if (acl.create(&events->before, kTimeLine) == 0 && acl.create(&events->after, kTimeLine) == 0)
    return true;
  give_back(acl, *events);
  return false;
}

// A launch whose events have passed: its row; its events serve again. Under the lock.
void settle(const Install& acl, const Pending& launch) {
  float ms = 0;
  if (acl.elapsed(&ms, launch.events.before, launch.events.after) == 0 && ms >= 0) {
    uint64_t words[2] = {launch.number, static_cast<uint64_t>(static_cast<double>(ms) * 1e6)};
    put_row(RowType::DeviceTime, 0, 0, reinterpret_cast<const char*>(words), sizeof words);
  }
  timer->events[launch.context].idle.push_back(launch.events);
}

bool has_passed(const Install& acl, const Pending& launch) {
  int32_t status = 0;
  return acl.query(launch.events.after, &status) == 0 && status == kComplete;
}

// Of the current context: launches that have passed, of `most` that were made first; with `wait`
// also the others.
void settle_passed(const Install& acl, size_t most, bool wait) {
  void* context = context_of(acl);
  if (!context) return;
  std::lock_guard<std::mutex> lock(timer->mutex);
  auto& all = timer->pending;
  size_t kept = 0, seen = 0;
  for (; seen < all.size() && seen < most; ++seen) {
    Pending& launch = all[seen];
    bool ready = launch.context == context &&
                 (has_passed(acl, launch) || (wait && acl.wait(launch.events.after) == 0));
    if (ready) settle(acl, launch);
    else all[kept++] = launch;
  }
  all.erase(all.begin() + static_cast<long>(kept), all.begin() + static_cast<long>(seen));
}

// Events would be leaks of the program's, were they alive when their context goes.
void end_current(const Install& acl) {
  settle_passed(acl, kMostPending, true);
  void* context = context_of(acl);
  std::lock_guard<std::mutex> lock(timer->mutex);
  for (const Pair& events : timer->events[context].idle) give_back(acl, events);
  timer->events.erase(context);
}

// From a thread on which another context may be current.
void end_contexts(const Install& acl, const std::vector<void*>& contexts) {
  void* before = context_of(acl);
  for (void* context : contexts)
    if (context == before || acl.make_current(context) == 0) end_current(acl);
  if (before) acl.make_current(before);
}

// The contexts of a device in which launches were timed; with -1 those of all.
std::vector<void*> contexts_of(int32_t device) {
  std::lock_guard<std::mutex> lock(timer->mutex);
  std::vector<void*> contexts;
  for (const auto& entry : timer->events)
    if (device < 0 || entry.second.device == device) contexts.push_back(entry.first);
  return contexts;
}

void begin_launch(const Frame& f, const Call& call, const Install& acl) {
  void* stream = pointer_argument<void*>(f, *call.function, 3);
  void* context = context_of(acl);
  if (!context || is_captured(acl, stream)) return;
  Pending launch{call.number, context, {}};
  if (!take_pair(acl, context, &launch.events)) return;
  if (acl.record(launch.events.before, stream) == 0) current_launch() = launch;
  else give_back(acl, launch.events);
}

}  // namespace

void time_launches() { timer = new Timer; }

bool device_time_is_on() { return timer != nullptr; }

void device_time_before(const Frame& f, const Call& call) {
  const Install& acl = install_of(f.shim);
  if (!acl.complete) return;
  switch (call.function->role) {
    case Role::PhaseTwo: return begin_launch(f, call, acl);
    case Role::Finalize: return end_contexts(acl, contexts_of(-1));
    case Role::ResetDevice:
      return end_contexts(
          acl, contexts_of(static_cast<int32_t>(integer_argument(f, *call.function, 0))));
    case Role::DestroyContext:
      return end_contexts(acl, {pointer_argument<void*>(f, *call.function, 0)});
    case Role::DestroyStream: return settle_passed(acl, kMostPending, true);
    default: return;
  }
}

void device_time_after(const Frame& f, const Call& call) {
  const Install& acl = install_of(f.shim);
  if (!acl.complete) return;
  switch (call.function->role) {
    case Role::PhaseTwo: {
      Pending& current = current_launch();
      if (!current.context) return;
      Pending launch = current;
      current.context = nullptr;
      void* stream = pointer_argument<void*>(f, *call.function, 3);
      if (call.status != 0 || acl.record(launch.events.after, stream) != 0)
        return give_back(acl, launch.events);
      bool full;
      {
        std::lock_guard<std::mutex> lock(timer->mutex);
        timer->pending.push_back(launch);
        full = timer->pending.size() >= kMostPending;
      }
      return settle_passed(acl, full ? kMostPending / 2 : 1, full);
    }
    case Role::Copy:
    case Role::SynchronizeStream:
    case Role::SynchronizeEvent:
    case Role::SynchronizeDevice: return settle_passed(acl, kMostPending, false);
    default: return;
  }
}

void device_time_after_fork() {
  if (timer) timer = new Timer;
}

}  // namespace layers
