// Profiling: what the program called and what the devices ran, when, in files that `msprof` renders.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ascendcl/common.h"

namespace aclsim {

struct Stream;
struct Task;

// A bit for each reader: a profile's file, and a tool in the process.
constexpr uint32_t kFileReads = 1, kWatcherReads = 2;
extern ACLSIM_SHARED std::atomic<uint32_t> profile_readers;
inline bool profiling() {
  return ACLSIM_UNLIKELY(profile_readers.load(std::memory_order_relaxed) != 0);
}

// CLOCK_MONOTONIC_RAW in nanoseconds, as clients of the profiler time their own work.
ACLSIM_SHARED uint64_t profile_clock();

// What a task copies, fills or exchanges, as the call that queues it says.
struct Work {
  enum Kind : uint32_t { None, Copy, Fill, Exchange };
  Kind kind = None;
  uint32_t how = 0;     // Copy: an aclrtMemcpyKind, by the addresses; Fill: the value; Exchange: dtype
  uint64_t amount = 0;  // bytes; Exchange: elements
  const char* group = nullptr;  // Exchange: the communicator's name
  bool asynchronous = true;
};

// One piece of work that ran, and when; `stream` is kNoStream for what a call did itself.
struct Ran {
  const char* name;
  bool operation;  // a kernel with its tensors
  bool replayed;   // of a captured graph: the same ticket may run again
  int32_t device, stream;
  uint64_t ticket, correlation, begin, end;
};
constexpr int32_t kNoStream = -1;

struct Allocated {
  const void* address;
  uint64_t bytes;
  bool released;
  int32_t device;
  uint64_t correlation, begin, end;
};

// A message at one time, of the program or where a stream passed it.
struct Mark {
  enum Phase { At, Begin, End };
  Phase phase;
  bool on_device, with_device;  // made by the stream; told by the host, with a stream
  uint64_t id, at;
  int32_t device, stream;
  const char* message;  // null where a range ends
  const char* domain;
};

// A tool in the process that is told of all events as they happen (libmspti). `work` is null where
// nothing was said of it. Every function may be called by any thread.
struct ProfileWatcher {
  void (*entered)(const char* call, uint64_t correlation);
  void (*left)(const char* call, uint64_t correlation, uint64_t begin, uint64_t end);
  void (*queued)(uint64_t ticket, const Work& work);
  void (*ran)(const Ran& ran, const Work* work);
  void (*allocated)(const Allocated& block);
  void (*marked)(const Mark& mark);
};
// Begins to tell the watcher, which lives on; null ends it.
ACLSIM_SHARED void profile_watch(const ProfileWatcher* watcher);
// From events' times to nanoseconds of the wall clock.
ACLSIM_SHARED uint64_t wall_time(uint64_t profile_time);

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
  friend void profile_queued(Task* task);
  friend uint64_t current_call();
  void open(const char* name);
  void close();

  uint64_t begin_ = 0;
  uint64_t correlation_;
  const char* name_;
  CallSpan* outer_;
};

// The number of the innermost call of this thread; 0 outside of calls.
ACLSIM_SHARED uint64_t current_call();

// Says of the tasks that this thread queues, while it lives, what they do.
class ACLSIM_SHARED Doing {
 public:
  explicit Doing(const Work& work) : work_(work) {
    if (profiling()) begin();
  }
  ~Doing() {
    if (ACLSIM_UNLIKELY(said_)) end();
  }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  void begin();
  void end();
  Work work_;
  bool said_ = false;
};

// Work that the call does itself while it lives.
class ACLSIM_SHARED DoneAtOnce {
 public:
  DoneAtOnce(const Work& work, const char* name) : work_(work), name_(name) {
    if (profiling()) begin_ = profile_clock();
  }
  ~DoneAtOnce() {
    if (ACLSIM_UNLIKELY(begin_ != 0)) tell();
  }
  DoneAtOnce(const DoneAtOnce&) = delete;
  DoneAtOnce& operator=(const DoneAtOnce&) = delete;

 private:
  void tell();
  Work work_;
  const char* name_;
  uint64_t begin_ = 0;
};

// Ties a task, queued now by this thread, to the call that queued it.
void profile_queued(Task* task);
// Runs the task by `run` and notes when, on which stream, and what it worked on.
aclError profile_task(Task* task, Stream* stream, aclError (*run)(Task*, Stream*));
// Device memory in use, after it changed.
void profile_memory(int32_t device, uint64_t used);
// Device memory that was given or taken back.
void profile_block(const void* address, uint64_t bytes, bool released, int32_t device,
                   uint64_t begin);
void profile_note(const Mark& mark);  // for the watcher alone
// A message of the program at one time, or from one to another, for the file alone.
void profile_mark(const char* domain, const char* message, uint64_t begin, uint64_t end);
// Ends what still runs: at aclFinalize and at the process's end.
void profile_end();
// ACLSIM_PROFILE, a folder: the whole process is profiled, as `msprof` starts programs.
void profile_from_environment();

// A copy of a text that lives as long as the process; the same for the same text.
ACLSIM_SHARED const char* lasting_text(const char* text);
ACLSIM_SHARED void append_json_text(std::string* to, const char* text);

}  // namespace aclsim
