// Events: moments on a stream that hosts and other streams wait for.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "ascendcl/capture.h"
#include "ascendcl/device.h"
#include "ascendcl/sharing.h"
#include "ascendcl/strict.h"
#include "ascendcl/task_names.h"

namespace aclsim {
namespace {

using Clock = std::chrono::steady_clock;

// One recording. The event keeps the latest; waits keep the one they saw.
struct Record : Handle {
  std::atomic<int32_t> references;
  std::atomic<int32_t> waits;      // queued waits that did not pass yet
  std::atomic<bool> done;
  std::atomic<bool> submitted;     // false: a wait came before the record (old-mode events)
  uint64_t finished;  // ns of the steady clock
};

// An event of several processes (ACL_EVENT_IPC): how many records were queued, and the last one
// that was reached. 32 bits, so that a futex can wait for them; they may wrap.
struct SharedEvent {
  std::atomic<uint32_t> recorded, reached;
};

// An external event (ACL_EVENT_EXTERNAL): a signal that records set, waits look for and resets
// take away, also when a captured model does so.
using Signal = std::atomic<uint32_t>;

struct Event : Handle {
  CapturedRecord* captured;  // the latest record was noted by a capture; null: never
  Signal* external;
  SharedEvent* shared;  // null: of this process alone
  int shared_file;
  ShareId shared_id;
  uint32_t flags;
  bool extended;      // aclrtCreateEventExWithFlag
  int32_t device;
  int32_t id;
  SpinLock lock;      // guards `latest` and `lingers`
  Record* latest;
  bool lingers;       // destroyed, but waits still find `latest`
};

constexpr uint32_t kKnownFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS |
                                 ACL_EVENT_TIME_LINE | ACL_EVENT_DEVICE_USE_ONLY |
                                 ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;

struct Wakeup {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int32_t> waiters{0};
};
Wakeup& wakeup() {
  static Wakeup* made = new Wakeup;
  return *made;
}

Record* make_record(bool submitted) {
  auto* record = acquire<Record>(thread(), Kind::Record);
  record->references.store(1, std::memory_order_relaxed);
  record->waits.store(0, std::memory_order_relaxed);
  record->done.store(false, std::memory_order_relaxed);
  record->submitted = submitted;
  record->finished = 0;
  return record;
}

Record* keep(Record* record) {
  record->references.fetch_add(1, std::memory_order_relaxed);
  return record;
}

void let_go(Record* record) {
  if (record && record->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    recycle(thread(), record, Kind::Record);
  }
}

void finish(Record* record) {
  record->finished = Clock::now().time_since_epoch().count();
  record->done.store(true);
  if (wakeup().waiters.load() == 0) return;
  std::lock_guard<std::mutex> lock(wakeup().mutex);
  wakeup().changed.notify_all();
}

// False when the time is over; timeout_ms < 0 waits for ever.
bool await(Record* record, int timeout_ms, const std::atomic<bool>* abort = nullptr) {
  auto ready = [&] { return record->done.load() || (abort && abort->load()); };
  for (int i = 0; i < 2000; ++i) {
    if (ready()) return true;
    ACLSIM_PAUSE();
  }
  wakeup().waiters.fetch_add(1);
  bool done;
  {
    std::unique_lock<std::mutex> lock(wakeup().mutex);
    auto limit = std::chrono::milliseconds(timeout_ms < 0 ? 50 : timeout_ms);
    done = wakeup().changed.wait_for(lock, limit, ready);
    while (!done && timeout_ms < 0) done = wakeup().changed.wait_for(lock, limit, ready);
  }
  wakeup().waiters.fetch_sub(1);
  return done;
}

Record* latest_of(Event* event) {
  std::lock_guard<SpinLock> lock(event->lock);
  return event->latest ? keep(event->latest) : nullptr;
}

aclError create(const char* function, aclrtEvent* out, uint32_t flags, bool extended) {
  ThreadState* state = thread();
  if (!out) return null_pointer(function, "event");
  aclError code = ACL_SUCCESS;
  Context* context = current_context(state, function, &code);
  if (!context) return code;
  bool alone = flags & (ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC);
  if (!(flags & kKnownFlags) || (flags & ~kKnownFlags) || (alone && (flags & (flags - 1)))) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because flag %#x is invalid. Expected value: a combination of "
                  "ACL_EVENT flags.", function, flags);
  }
  Lock lock(runtime().mutex);
  Device& device = device_of(context);
  if (!extended && device.events >= config().soc->event_limit) {
    return failed(ACL_ERROR_RT_NO_EVENT_RESOURCE, "EE1023",
                  "%s failed because device %d has no more than %d events.", function,
                  context->device, config().soc->event_limit);
  }
  static int32_t next_id = 0;
  auto* event = acquire<Event>(state, Kind::Event);
  event->flags = flags;
  event->extended = extended;
  event->device = context->device;
  event->id = next_id++;
  event->latest = nullptr;
  event->lingers = false;
  event->shared = nullptr;
  event->captured = nullptr;
  event->external = flags & ACL_EVENT_EXTERNAL ? new Signal(0) : nullptr;
  if (!extended) ++device.events;
  count_live(state, Kind::Event, 1);
  if (strict()) remember_origin(event);
  *out = event;
  return ACL_SUCCESS;
}

ACLSIM_NOINLINE aclError not_an_event(const char* function, Event* event) {
  if (!event) return null_pointer(function, "event");
  if (strict()) report_dead(function, event, Kind::Event);
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011", "%s failed because %p is not a live event.",
                function, static_cast<void*>(event));
}

#define ACLSIM_EVENT(name, handle)                                            \
  auto* name = static_cast<Event*>(handle);                                   \
  if (ACLSIM_UNLIKELY(!name || !name->is(Kind::Event))) return not_an_event(__func__, name)

ACLSIM_NOINLINE aclError unsupported(const char* function, const char* why) {
  return failed(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006", "%s is not supported: %s.", function,
                why);
}

// False when the time is over; timeout_ms < 0 waits for ever.
bool await_shared(SharedEvent* shared, uint32_t target, int timeout_ms,
                  const std::atomic<bool>* abort = nullptr) {
  auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    uint32_t seen = shared->reached.load();
    if (static_cast<int32_t>(seen - target) >= 0 || (abort && abort->load())) return true;
    if (timeout_ms >= 0 && Clock::now() >= end) return false;
    wait_for_change(&shared->reached, seen, 20);
  }
}

aclError record_shared(SharedEvent* shared, Stream* stream) {
  uint32_t mine = shared->recorded.fetch_add(1) + 1;
  return submit(stream, make_task([](Stream*) { return ACL_SUCCESS; }, false, [=] {
    uint32_t before = shared->reached.load();
    while (static_cast<int32_t>(before - mine) < 0 &&
           !shared->reached.compare_exchange_weak(before, mine)) {
    }
    wake_waiters(&shared->reached);
  }), kEventRecord);
}

// The signal stays for ever, as queued or captured work may look at it later (4 bytes).
aclError set_signal(Signal* signal, uint32_t value, Stream* stream) {
  return submit(stream, make_task([=](Stream*) -> aclError {
    signal->store(value);
    wake_waiters(signal);
    return ACL_SUCCESS;
  }), value ? kEventRecord : kEventReset);
}
aclError await_signal(Signal* signal, Stream* stream, int timeout_ms) {
  return submit(stream, make_task([=](Stream* on) -> aclError {
    const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
    while (!signal->load() && !on->aborted.load()) {
      if (timeout_ms >= 0 && Clock::now() >= end) return ACL_ERROR_RT_TASK_TIMEOUT;
      wait_for_change(signal, 0, 20);
    }
    return ACL_SUCCESS;
  }, true), kEventWait);
}

aclError record_captured(const char* function, Event* event, Stream* stream) {
  if (!event->extended) return unsupported(function, "only extended events can be captured");
  if (!event->captured) event->captured = new CapturedRecord;
  return capture_record(function, stream, event->captured);
}

aclError record(const char* function, Event* event, Stream* stream) {
  if (event->external) return set_signal(event->external, 1, stream);
  if (event->shared) return record_shared(event->shared, stream);
  if (recording(stream)) return record_captured(function, event, stream);
  if (event->captured) event->captured->capture = 0;
  Record* made = nullptr;
  {
    std::lock_guard<SpinLock> lock(event->lock);
    if (event->latest && !event->latest->submitted) {
      made = event->latest;  // a wait came first; it waits for this record
      made->submitted = true;
    } else {
      let_go(event->latest);
      made = event->latest = make_record(true);
    }
    keep(made);
  }
  return submit(stream, make_task([](Stream*) { return ACL_SUCCESS; }, false, [made] {
    finish(made);  // also when the stream drops its work: nobody shall wait for ever
    let_go(made);
  }), kEventRecord);
}

// A wait whose time is over makes its stream faulty (aclrtStreamWaitEventWithTimeout and
// aclrtSetOpWaitTimeout documents). Which code is told is not documented: a task that ran out of
// time has this one.
aclError wait_on_shared(SharedEvent* shared, Stream* stream, int timeout_ms) {
  uint32_t target = shared->recorded.load();
  return submit(stream, make_task([=](Stream* on) -> aclError {
    bool came = await_shared(shared, target, timeout_ms, &on->aborted);
    return came ? ACL_SUCCESS : ACL_ERROR_RT_TASK_TIMEOUT;
  }), kEventWait);
}

aclError wait_for(Stream* stream, Record* seen, int timeout_ms) {
  if (!seen) return ACL_SUCCESS;
  seen->waits.fetch_add(1);
  return submit(stream, make_task([=](Stream* on) -> aclError {
    bool came = await(seen, timeout_ms, &on->aborted);
    return came ? ACL_SUCCESS : ACL_ERROR_RT_TASK_TIMEOUT;
  }, false, [seen] {
    seen->waits.fetch_sub(1);
    let_go(seen);
  }), kEventWait);
}

aclError wait_on(const char* function, Stream* stream, Event* event, int timeout_ms) {
  if (event->external) return await_signal(event->external, stream, timeout_ms);
  if (event->shared) return wait_on_shared(event->shared, stream, timeout_ms);
  bool captured = event->captured && still_captured(*event->captured);
  if (captured) return capture_wait(function, stream, *event->captured);
  if (recording(stream)) {
    return event->extended ? capture_wait(function, stream, {})
                           : unsupported(function, "only extended events can be captured");
  }
  if (!event->extended && !(event->flags & ACL_EVENT_SYNC)) {
    return unsupported(function, "the event was created without ACL_EVENT_SYNC");
  }
  Record* seen = nullptr;
  {
    std::lock_guard<SpinLock> lock(event->lock);
    // An extended event that was never recorded counts as complete; an old one waits for its
    // first record, also when that comes later.
    if (!event->latest && !event->extended && !config().inline_streams) {
      event->latest = make_record(false);
    }
    if (event->latest) seen = keep(event->latest);
  }
  return wait_for(stream, seen, timeout_ms);
}

// The last extended events that were destroyed. torch_npu destroys an event in one device's queue
// while another device's has yet to wait for it (DataParallel); without strict mode that wait is
// for the record that the event had.
constexpr size_t kLingering = 256;

void linger(ThreadState* state, Event* event) {
  static SpinLock guard;
  static Event* destroyed[kLingering];
  static size_t next = 0;
  Event* oldest;
  {
    std::lock_guard<SpinLock> lock(guard);
    oldest = std::exchange(destroyed[next++ % kLingering], event);
  }
  if (!oldest) return;
  {
    std::lock_guard<SpinLock> lock(oldest->lock);
    let_go(std::exchange(oldest->latest, nullptr));
    oldest->lingers = false;
  }
  recycle(state, oldest, Kind::Event);
}

ACLSIM_NOINLINE aclError wait_on_destroyed(const char* function, Stream* stream, Event* event,
                                           int timeout_ms) {
  if (!event || !event->was(Kind::Event)) return not_an_event(function, event);
  Record* seen = nullptr;
  bool found = false;
  {
    std::lock_guard<SpinLock> lock(event->lock);
    found = event->lingers && !recording(stream);
    if (found && event->latest) seen = keep(event->latest);
  }
  return found ? wait_for(stream, seen, timeout_ms) : not_an_event(function, event);
}

bool reach(Event* event, int timeout_ms) {
  if (event->external) return event->external->load() != 0;
  if (event->shared) {
    return await_shared(event->shared, event->shared->recorded.load(), timeout_ms);
  }
  Record* seen = latest_of(event);
  bool done = !seen || !seen->submitted || await(seen, timeout_ms);
  let_go(seen);
  return done;
}

aclError check_event(const char* function, Event* event) {
  return event->captured ? check_event_not_captured(function, *event->captured) : ACL_SUCCESS;
}

aclError synchronize(const char* function, Event* event, int timeout_ms) {
  aclError code = check_event(function, event);
  if (code != ACL_SUCCESS) return code;
  bool done = reach(event, timeout_ms);
  if (done) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "EE1002",
                "%s: the event was not reached within %d ms.", function, timeout_ms);
}

// Nanoseconds of a finished record.
aclError timestamp(const char* function, Event* event, uint64_t* at) {
  if (event->flags & (ACL_EVENT_EXTERNAL | ACL_EVENT_IPC)) {
    return unsupported(function, "external and IPC events have no times");
  }
  aclError code = check_event(function, event);
  if (code != ACL_SUCCESS) return code;
  Record* seen = latest_of(event);
  if (!seen || !seen->submitted) {
    let_go(seen);
    return failed(ACL_ERROR_RT_INTERNAL_ERROR, "EE1018", "%s failed because the event was not "
                  "recorded.", function);
  }
  bool usable = seen->done.load() && (event->flags & ACL_EVENT_TIME_LINE);
  *at = seen->finished;
  let_go(seen);
  if (usable) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "EE1018",
                "%s failed because the event has no time yet: synchronise it first, and create it "
                "with ACL_EVENT_TIME_LINE.", function);
}

// An event over the state in `file`, which becomes the event's own.
aclError open_event(const char* function, aclrtEvent* out, int file, ShareId id) {
  void* state = file >= 0 ? map_shared_file(file, sizeof(SharedEvent)) : nullptr;
  aclError code = state ? create(function, out, ACL_EVENT_IPC, true)
                        : failed(ACL_ERROR_RT_NO_EVENT_RESOURCE, "EE1023",
                                 "%s failed because the event's state cannot be shared.", function);
  if (code != ACL_SUCCESS) {
    if (state) munmap(state, sizeof(SharedEvent));
    if (file >= 0) close(file);
    return code;
  }
  auto* event = static_cast<Event*>(*out);
  event->shared = static_cast<SharedEvent*>(state);
  event->shared_file = file;
  event->shared_id = id;
  return ACL_SUCCESS;
}

// The state stays mapped (a page): queued records and waits may outlive the event.
void close_event(Event* event) {
  if (event->shared) close(event->shared_file);
  event->shared = nullptr;
  delete event->captured;
  event->captured = nullptr;
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtCreateEvent(aclrtEvent* event) {
  return create(__func__, event,
                ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE, false);
}
ACLSIM_API aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  if (flag == ACL_EVENT_IPC) return unsupported(__func__, "use aclrtCreateEventExWithFlag");
  return create(__func__, event, flag, false);
}
ACLSIM_API aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  if (flag != ACL_EVENT_IPC) return create(__func__, event, flag, true);
  ShareId id = 0;
  int file = make_shared_file(sizeof(SharedEvent), &id);
  return open_event(__func__, event, file, id);
}

// May come before the event is reached: queued waits keep what they need.
ACLSIM_API aclError aclrtDestroyEvent(aclrtEvent event) {
  ThreadState* state = thread();
  ACLSIM_EVENT(mine, event);
  bool lingers = mine->extended && !mine->external && !mine->shared && !strict();
  close_event(mine);
  if (!mine->extended) {
    Lock lock(runtime().mutex);
    --runtime().devices[mine->device].events;
  }
  count_live(state, Kind::Event, -1);
  if (strict()) forget_origin(mine);
  {
    std::lock_guard<SpinLock> lock(mine->lock);
    mine->lingers = lingers;
    if (!lingers) let_go(std::exchange(mine->latest, nullptr));
    retire(mine, Kind::Event, Death::Destroyed);
  }
  if (lingers) {
    linger(state, mine);
  } else {
    recycle(state, mine, Kind::Event);
  }
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  ACLSIM_EVENT(mine, event);
  return record(__func__, mine, on);
}
ACLSIM_API aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  if (flag > ACL_EVENT_RECORD_EXTERNAL) return bad_value(__func__, "flag", "unknown", "0 or 1");
  ACLSIM_EVENT(mine, event);
  if (flag == ACL_EVENT_RECORD_EXTERNAL && !mine->external) {
    return unsupported(__func__, "external records need an event made with ACL_EVENT_EXTERNAL");
  }
  return aclrtRecordEvent(event, stream);
}

ACLSIM_API aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  ACLSIM_EVENT(mine, event);
  if (mine->external) return set_signal(mine->external, 0, on);
  if (mine->extended || !(mine->flags & ACL_EVENT_SYNC)) {
    return unsupported(__func__, "only events made by aclrtCreateEvent or by "
                                 "aclrtCreateEventWithFlag with ACL_EVENT_SYNC are reset");
  }
  (void)on;
  std::lock_guard<SpinLock> lock(mine->lock);
  let_go(mine->latest);
  mine->latest = nullptr;
  return ACL_SUCCESS;
}

namespace {
// `seconds` 0: what aclrtSetOpWaitTimeout said, which is no limit where it was not called.
aclError stream_waits(const char* function, aclrtStream stream, aclrtEvent event,
                      uint32_t seconds) {
  ThreadState* state = thread();
  aclError code = ACL_SUCCESS;
  Stream* on = find_own_stream(state, stream, function, &code);
  if (!on) return code;
  if (!seconds) seconds = runtime().wait_timeout_s.load();
  const int timeout_ms = seconds ? static_cast<int>(std::min(seconds, 2000000u) * 1000) : -1;
  auto* mine = static_cast<Event*>(event);
  if (!mine || !mine->is(Kind::Event)) return wait_on_destroyed(function, on, mine, timeout_ms);
  return wait_on(function, on, mine, timeout_ms);
}
}  // namespace

ACLSIM_API aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  CallSpan span(__func__);
  return stream_waits(__func__, stream, event, 0);
}
ACLSIM_API aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event,
                                                 uint32_t timeout, uint32_t flag) {
  if (flag > ACL_EVENT_WAIT_EXTERNAL) return bad_value(__func__, "flag", "unknown", "0 or 1");
  ACLSIM_EVENT(mine, event);
  if (flag == ACL_EVENT_WAIT_EXTERNAL && !mine->external) {
    return unsupported(__func__, "external waits need an event made with ACL_EVENT_EXTERNAL");
  }
  if (flag == ACL_EVENT_WAIT_EXTERNAL && timeout) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because timeout %u is invalid. Expected value: 0, for an external wait.",
                  __func__, timeout);
  }
  return stream_waits(__func__, stream, event, timeout);
}
ACLSIM_API aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
                                                    int32_t timeout) {
  if (timeout < 0) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because timeout %d is invalid. Expected value: [0, INT_MAX].", __func__,
                  timeout);
  }
  return stream_waits(__func__, stream, event, static_cast<uint32_t>(timeout));
}

ACLSIM_API aclError aclrtSynchronizeEvent(aclrtEvent event) {
  ACLSIM_EVENT(mine, event);
  return synchronize(__func__, mine, -1);
}
ACLSIM_API aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  ACLSIM_EVENT(mine, event);
  if (timeout < -1 || timeout == 0) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because timeout %d is invalid. Expected value: -1 or more than 0.",
                  __func__, timeout);
  }
  return synchronize(__func__, mine, timeout);
}

namespace {
// Extended events count as complete before their first record, old ones as not ready.
bool reached(Event* event) {
  if (event->external) return event->external->load() != 0;
  if (event->shared) return reach(event, 0);
  Record* seen = latest_of(event);
  bool done = seen ? seen->done.load() : event->extended;
  let_go(seen);
  return done;
}
}  // namespace

ACLSIM_API aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  ACLSIM_REQUIRE(status);
  ACLSIM_EVENT(mine, event);
  aclError code = check_event(__func__, mine);
  if (code != ACL_SUCCESS) return code;
  *status = reached(mine) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  ACLSIM_REQUIRE(status);
  ACLSIM_EVENT(mine, event);
  aclError code = check_event(__func__, mine);
  if (code != ACL_SUCCESS) return code;
  *status = reached(mine) ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  ACLSIM_REQUIRE(status);
  ACLSIM_EVENT(mine, event);
  if (mine->extended) return unsupported(__func__, "extended events do not count waits");
  Record* seen = latest_of(mine);
  *status = seen && seen->waits.load() ? ACL_EVENT_WAIT_STATUS_NOT_READY
                                       : ACL_EVENT_WAIT_STATUS_COMPLETE;
  let_go(seen);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  ACLSIM_REQUIRE(ms);
  ACLSIM_EVENT(start, startEvent);
  ACLSIM_EVENT(end, endEvent);
  uint64_t from = 0, to = 0;
  aclError code = timestamp(__func__, start, &from);
  if (code == ACL_SUCCESS) code = timestamp(__func__, end, &to);
  if (code != ACL_SUCCESS) return code;
  *ms = static_cast<float>(static_cast<double>(static_cast<int64_t>(to - from)) / 1e6);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp_us) {
  ACLSIM_REQUIRE(timestamp_us);
  ACLSIM_EVENT(mine, event);
  uint64_t at = 0;
  aclError code = timestamp(__func__, mine, &at);
  if (code == ACL_SUCCESS) *timestamp_us = at / 1000;
  return code;
}
ACLSIM_API aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  ACLSIM_REQUIRE(eventId);
  ACLSIM_EVENT(mine, event);
  *eventId = static_cast<uint32_t>(mine->id);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetEventAvailNum(uint32_t* eventCount) {
  ACLSIM_REQUIRE(eventCount);
  ACLSIM_CONTEXT(context);
  *eventCount = config().soc->event_limit - device_of(context).events;
  return ACL_SUCCESS;
}

// The handle names the event's state to other processes while this one lives and keeps the event
// (aclrtIpcGetEventHandle document).
ACLSIM_API aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle* handle) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_EVENT(mine, event);
  if (!mine->shared) return unsupported(__func__, "the event was created without ACL_EVENT_IPC");
  memset(handle, 0, sizeof *handle);
  memcpy(handle->reserved, &mine->shared_id, sizeof mine->shared_id);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* event) {
  ACLSIM_REQUIRE(event);
  thread();
  ShareId id = 0;
  memcpy(&id, handle.reserved, sizeof id);
  int file = id ? open_shared_file(id, nullptr) : -1;
  if (file >= 0) return open_event(__func__, event, file, id);
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                "%s failed because no living process has the event.", __func__);
}
