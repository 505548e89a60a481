// Profiling: what the program called and what the devices ran, when, in files that `msprof` renders.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ascendcl/common.h"

namespace aclsim {

struct Stream;
struct Task;

extern ACLSIM_SHARED std::atomic<bool> profiler_on;
inline bool profiling() {
  return ACLSIM_UNLIKELY(profiler_on.load(std::memory_order_relaxed));
}

// CLOCK_MONOTONIC_RAW in nanoseconds, as clients of the profiler time their own work.
ACLSIM_SHARED uint64_t profile_clock();

// A call of the program while it lives on its thread; what it queues is tied to it.
class ACLSIM_SHARED CallSpan {
 public:
  explicit CallSpan(const char* name) {
    if (profiling()) open(name);
  }
  ~CallSpan() {
    if (ACLSIM_UNLIKELY(begin_ != 0)) close();
  }
  CallSpan(const CallSpan&) = delete;
  CallSpan& operator=(const CallSpan&) = delete;

 private:
  friend uint64_t profile_queued(const char* task);
  void open(const char* name);
  void close();

  uint64_t begin_ = 0;
  const char* name_;
  CallSpan* outer_;
};

// The number that ties a task, queued now by this thread, to the call that queued it.
ACLSIM_SHARED uint64_t profile_queued(const char* task);
// Runs the task by `run` and notes when, on which stream, and what it worked on.
aclError profile_task(Task* task, Stream* stream, aclError (*run)(Task*, Stream*));
// Device memory in use, after it changed.
void profile_memory(int32_t device, uint64_t used);
// A message of the program at one time, or from one to another.
void profile_mark(const char* domain, const char* message, uint64_t begin, uint64_t end);
// Ends what still runs: at aclFinalize and at the process's end.
void profile_end();
// ACLSIM_PROFILE, a folder: the whole process is profiled, as `msprof` starts programs.
void profile_from_environment();

ACLSIM_SHARED void append_json_text(std::string* to, const char* text);

}  // namespace aclsim
