// Captured work: streams that note tasks in a model instead of running them, and models that run
// what was noted, again and again.
#pragma once

#include <string>
#include <vector>

#include "ascendcl/device.h"

namespace aclsim {

// Takes the tasks of a stream while it captures, or while it re-issues a group of tasks.
struct Recorder {
  virtual ~Recorder() = default;
  virtual aclError take(Stream* stream, Task* task) = 0;
};

inline bool recording(const Stream* stream) {
  return ACLSIM_UNLIKELY(stream->recorder.load(std::memory_order_relaxed) != nullptr);
}

// Where a capture stands: how many tasks of each of its streams come before.
using Progress = std::vector<uint32_t>;

// What an event knows of the capture in which it was recorded last.
struct CapturedRecord {
  uint64_t capture = 0;  // 0: none
  Progress progress;
};

// True while the capture in which the event was recorded goes on.
bool still_captured(const CapturedRecord& record);
// The event is recorded on a capturing stream.
aclError capture_record(const char* function, Stream* stream, CapturedRecord* record);
// A stream waits for an event that was recorded in a capture; it joins that capture.
aclError capture_wait(const char* function, Stream* stream, const CapturedRecord& record);

// 107027 for a stream that captures, which then is invalid: it cannot be waited for, asked or
// destroyed.
ACLSIM_SHARED aclError check_not_captured(const char* function, Stream* stream);
// 107028 for an event whose record is captured: it was not reached.
aclError check_event_not_captured(const char* function, const CapturedRecord& record);
// 107030 while a capture goes on that forbids synchronous work on this thread.
aclError check_synchronous(const char* function);
// Host work that cannot be noted (pageable memory): 107041 on a stream that captures.
aclError check_asynchronous(const char* function, Stream* stream);
aclError check_device_not_captured(const char* function, int32_t device);

}  // namespace aclsim
