// Owns waits for the device that a signal of the host may end, such as Ctrl-C's.
#pragma once

#include <atomic>

#include "acl.h"
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
template <class Timed, class Plain>
Waited wait(Timed timed, const char* timed_name, Plain plain, const char* plain_name,
            int32_t expired) {
  constexpr int32_t kSlice = 500, kNotSupported = 207000;
  const auto heeds = heed.load(std::memory_order_relaxed);
  while (heeds) {
    const int32_t code = timed(kSlice);
    if (code != expired && code != kNotSupported) return {code, timed_name};
    drain_messages();
    if (code == kNotSupported) break;
    if (heeds()) return {MT_INTERRUPTED, timed_name};
  }
  return {plain(), plain_name};
}

inline Waited wait_for_stream(Handle stream) {
  constexpr int32_t kExpired = 507046;  // ACL_ERROR_RT_STREAM_SYNC_TIMEOUT
  constexpr auto kPlain = "aclrtSynchronizeStream";
  const auto plain = [&] { return acl.aclrtSynchronizeStream(stream); };
  if (!acl.aclrtSynchronizeStreamWithTimeout) return {plain(), kPlain};
  const auto timed = [&](int32_t ms) { return acl.aclrtSynchronizeStreamWithTimeout(stream, ms); };
  return wait(timed, "aclrtSynchronizeStreamWithTimeout", plain, kPlain, kExpired);
}

inline Waited wait_for_event(Handle event) {
  constexpr int32_t kExpired = 507047;  // ACL_ERROR_RT_EVENT_SYNC_TIMEOUT
  constexpr auto kPlain = "aclrtSynchronizeEvent";
  const auto plain = [&] { return acl.aclrtSynchronizeEvent(event); };
  if (!acl.aclrtSynchronizeEventWithTimeout) return {plain(), kPlain};
  const auto timed = [&](int32_t ms) { return acl.aclrtSynchronizeEventWithTimeout(event, ms); };
  return wait(timed, "aclrtSynchronizeEventWithTimeout", plain, kPlain, kExpired);
}

inline Waited wait_for_device() {
  constexpr int32_t kExpired = 507046;  // as of streams
  constexpr auto kPlain = "aclrtSynchronizeDevice";
  const auto plain = [&] { return acl.aclrtSynchronizeDevice(); };
  if (!acl.aclrtSynchronizeDeviceWithTimeout) return {plain(), kPlain};
  const auto timed = [&](int32_t ms) { return acl.aclrtSynchronizeDeviceWithTimeout(ms); };
  return wait(timed, "aclrtSynchronizeDeviceWithTimeout", plain, kPlain, kExpired);
}

}  // namespace launch
