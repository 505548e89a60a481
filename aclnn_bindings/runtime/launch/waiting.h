// Owns waits for the device that a signal of the host may end, such as Ctrl-C's.
#pragma once

#include <atomic>

#include "acl.h"
#include "device.h"
#include "state.h"

namespace launch {

// Lets Python run its handlers of signals; other than 0: one raised, and the wait is to end.
inline std::atomic<int32_t (*)()> heed{nullptr};

// How a wait ended, and the call of ACL that said so.
struct Waited {
  int32_t code;
  const char* call;
};

// Waits by `timed(ms)` again and again, or by `plain()` where a runtime lacks the former; `expired`
// is what says that the time was over. MT_INTERRUPTED: the work goes on, and nobody waits for it.
// No lock may be held: handlers are Python, which other threads may hold while they want the lock.
// One that is not to begin again gives `expired` where its first slice was over.
template <class Timed, class Plain>
Waited wait(Timed timed, const char* timed_name, Plain plain, const char* plain_name,
            int32_t expired, bool again = true) {
  constexpr int32_t kSlice = 500, kNotSupported = 207000;
  const auto heeds = heed.load(std::memory_order_relaxed);
  while (heeds) {
    const int32_t code = timed(kSlice);
    if (code != expired && code != kNotSupported) return {code, timed_name};
    drain_messages();
    if (code == kNotSupported) break;
    if (heeds()) return {MT_INTERRUPTED, timed_name};
    if (!again) return {expired, timed_name};
  }
  return {plain(), plain_name};
}

constexpr int32_t kStreamExpired = 507046;  // ACL_ERROR_RT_STREAM_SYNC_TIMEOUT

inline Waited wait_for_event(Handle event) {
  constexpr int32_t kExpired = 507047;  // ACL_ERROR_RT_EVENT_SYNC_TIMEOUT
  constexpr auto kPlain = "aclrtSynchronizeEvent";
  const auto plain = [&] { return acl.aclrtSynchronizeEvent(event); };
  if (!acl.aclrtSynchronizeEventWithTimeout) return {plain(), kPlain};
  const auto timed = [&](int32_t ms) { return acl.aclrtSynchronizeEventWithTimeout(event, ms); };
  return wait(timed, "aclrtSynchronizeEventWithTimeout", plain, kPlain, kExpired);
}

// An event behind what a stream has queued by now; null where none can be had.
class Mark {
 public:
  explicit Mark(Handle stream) {
    constexpr uint32_t kSync = 1;  // ACL_EVENT_SYNC (acl_rt.h)
    if (create_event(&event, kSync) == 0 && acl.aclrtRecordEvent(event, stream) == 0) return;
    destroy();
    drain_messages();
  }
  ~Mark() { destroy(); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  Handle event = nullptr;

 private:
  void destroy() {
    if (event) acl.aclrtDestroyEvent(event);
    event = nullptr;
  }
};

// Each wait for the stream itself is for all that is queued when it begins: slices of it would not
// end while another thread goes on queueing. So the second slice is for a place in the queue.
inline Waited wait_for_stream(Handle stream) {
  constexpr auto kPlain = "aclrtSynchronizeStream";
  constexpr auto kTimed = "aclrtSynchronizeStreamWithTimeout";
  const auto plain = [&] { return acl.aclrtSynchronizeStream(stream); };
  if (!acl.aclrtSynchronizeStreamWithTimeout) return {plain(), kPlain};
  const auto timed = [&](int32_t ms) { return acl.aclrtSynchronizeStreamWithTimeout(stream, ms); };
  const Waited first = wait(timed, kTimed, plain, kPlain, kStreamExpired, false);
  if (first.code != kStreamExpired) return first;
  const Mark mark(stream);
  if (!mark.event) return wait(timed, kTimed, plain, kPlain, kStreamExpired);
  const Waited behind = wait_for_event(mark.event);
  if (behind.code) return behind;
  const int32_t failure = timed(1);  // events tell nothing of work that failed
  if (failure != kStreamExpired) return {failure, kTimed};
  drain_messages();
  return {0, kTimed};
}

// `kStreamExpired` after a first slice: then the device's streams are waited for one by one.
inline Waited begin_to_wait_for_device() {
  constexpr auto kPlain = "aclrtSynchronizeDevice";
  const auto plain = [&] { return acl.aclrtSynchronizeDevice(); };
  if (!acl.aclrtSynchronizeDeviceWithTimeout) return {plain(), kPlain};
  const auto timed = [&](int32_t ms) { return acl.aclrtSynchronizeDeviceWithTimeout(ms); };
  return wait(timed, "aclrtSynchronizeDeviceWithTimeout", plain, kPlain, kStreamExpired, false);
}

}  // namespace launch
