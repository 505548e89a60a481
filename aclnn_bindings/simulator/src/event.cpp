// Events: moments on a stream that hosts and other streams wait for.
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "device.h"
#include "strict.h"

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

struct Event : Handle {
  uint32_t flags;
  bool extended;      // aclrtCreateEventExWithFlag
  int32_t device;
  int32_t id;
  SpinLock lock;      // guards `latest`
  Record* latest;
};

constexpr uint32_t kKnownFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS |
                                 ACL_EVENT_TIME_LINE | ACL_EVENT_DEVICE_USE_ONLY |
                                 ACL_EVENT_EXTERNAL;

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
  bool alone = flags & (ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL);
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

aclError record(Event* event, Stream* stream) {
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
  return submit(stream, make_task([made](Stream*) -> aclError {
    finish(made);
    let_go(made);
    return ACL_SUCCESS;
  }));
}

aclError wait_on(const char* function, Stream* stream, Event* event) {
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
  if (!seen) return ACL_SUCCESS;
  seen->waits.fetch_add(1);
  return submit(stream, make_task([=](Stream* on) -> aclError {
    if (on) await(seen, -1, &on->aborted);
    seen->waits.fetch_sub(1);
    let_go(seen);
    return ACL_SUCCESS;
  }));
}

aclError synchronize(const char* function, Event* event, int timeout_ms) {
  Record* seen = latest_of(event);
  if (!seen) return ACL_SUCCESS;
  bool done = !seen->submitted || await(seen, timeout_ms);
  let_go(seen);
  if (done) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "EE1002",
                "%s: the event was not reached within %d ms.", function, timeout_ms);
}

// Nanoseconds of a finished record.
aclError timestamp(const char* function, Event* event, uint64_t* at) {
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

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtCreateEvent(aclrtEvent* event) {
  return create(__func__, event,
                ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE, false);
}
ACLSIM_API aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return create(__func__, event, flag, false);
}
ACLSIM_API aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  if (flag == ACL_EVENT_IPC) return unsupported(__func__, "events between processes");
  return create(__func__, event, flag, true);
}

// May come before the event is reached: queued waits keep what they need.
ACLSIM_API aclError aclrtDestroyEvent(aclrtEvent event) {
  ThreadState* state = thread();
  ACLSIM_EVENT(mine, event);
  {
    std::lock_guard<SpinLock> lock(mine->lock);
    let_go(mine->latest);
    mine->latest = nullptr;
  }
  if (!mine->extended) {
    Lock lock(runtime().mutex);
    --runtime().devices[mine->device].events;
  }
  count_live(state, Kind::Event, -1);
  if (strict()) forget_origin(mine);
  retire(mine, Kind::Event, Death::Destroyed);
  recycle(state, mine, Kind::Event);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  ACLSIM_EVENT(mine, event);
  return record(mine, on);
}
ACLSIM_API aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  if (flag != ACL_EVENT_RECORD_DEFAULT) return unsupported(__func__, "external records");
  return aclrtRecordEvent(event, stream);
}

ACLSIM_API aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  ACLSIM_EVENT(mine, event);
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

ACLSIM_API aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  ACLSIM_STREAM(on, stream);
  ACLSIM_EVENT(mine, event);
  return wait_on(__func__, on, mine);
}
ACLSIM_API aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t,
                                                 uint32_t flag) {
  if (flag != ACL_EVENT_WAIT_DEFAULT) return unsupported(__func__, "external waits");
  return aclrtStreamWaitEvent(stream, event);
}
ACLSIM_API aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
                                                    int32_t timeout) {
  if (timeout < -1) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003", "%s failed because timeout %d is invalid.",
                  __func__, timeout);
  }
  return aclrtStreamWaitEvent(stream, event);
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
  Record* seen = latest_of(event);
  bool done = seen ? seen->done.load() : event->extended;
  let_go(seen);
  return done;
}
}  // namespace

ACLSIM_API aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  ACLSIM_REQUIRE(status);
  ACLSIM_EVENT(mine, event);
  *status = reached(mine) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  ACLSIM_REQUIRE(status);
  ACLSIM_EVENT(mine, event);
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
