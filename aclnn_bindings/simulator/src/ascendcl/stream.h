// Streams: an in-order queue with a worker each, and the tasks that it runs.
#pragma once

#include <string>
#include <utility>

#include "ascendcl/error.h"
#include "ascendcl/profile.h"

namespace aclsim {

struct Stream;

// One piece of queued work. `run` and `drop` both give the task's memory back; `run`'s code
// makes the stream faulty. `replay` does the work and keeps the task, for captured work.
struct Task {
  Task* next;
  bool on_worker;  // callbacks of the program: never run by a thread that waits for the stream
  aclError (*run)(Task*, Stream*);
  aclError (*replay)(Task*, Stream*);
  const char* name;  // of an operator, or of other work that profiles show; else null
  void (*drop)(Task*);
  void (*describe)(const Task*, std::string*);  // an operator's tensors as JSON; else null
  uint64_t ticket;       // of profiles: this task
  uint64_t correlation;  // of profiles: the call that queued it; 0 for none
};

class SpinLock {
 public:
  void lock() {
    while (ACLSIM_UNLIKELY(flag_.exchange(1, std::memory_order_acquire))) wait();
  }
  void unlock() { flag_.store(0, std::memory_order_release); }

 private:
  void wait();
  std::atomic<uint32_t> flag_{0};
};

struct Recorder;
struct Worker;  // thread, parking place and first error of a stream; made with the first task

struct Stream : Handle {
  Context* context;
  Stream* sibling;            // next stream of the context
  int32_t id;
  uint32_t flags, priority;
  SpinLock lock;              // guards the queue, `submitted`, `running`, `parked`, `closing`
  Task* head;
  Task* tail;
  bool running;               // a thread, the worker or one that waits, runs tasks
  std::atomic<bool> ready;    // there are tasks, and nobody runs them
  bool parked;                // the worker sleeps and must be woken
  bool closing;
  std::atomic<uint64_t> submitted, completed;
  std::atomic<uint32_t> waiters;
  std::atomic<uint32_t> holders;  // threads that found it in its context's list
  std::atomic<aclError> error;  // the first since the last synchronisation
  std::atomic<uint32_t> stop_on_failure;
  std::atomic<bool> aborted;    // aclrtStreamAbort: drop instead of run
  Worker* worker;
  std::atomic<Recorder*> recorder;  // takes the tasks instead of the queue (capture.h)
  uint32_t overflow_switch;
  bool saturates;               // overflow mode of the process when the stream was created
  uint32_t attributes[8];
  uint64_t report_thread;       // aclrtSubscribeReport
};

// The stream behind a handle: null is the current context's default stream. On failure returns
// null and `code` says why (107002 no context, 107017/107000 not a stream).
ACLSIM_SHARED Stream* find_stream(ThreadState* state, aclrtStream handle, const char* function,
                                  aclError* code);
// The same, refusing streams of another context (107003).
ACLSIM_SHARED Stream* find_own_stream(ThreadState* state, aclrtStream handle,
                                      const char* function,
                        aclError* code);

// Queues a task, or runs it at once with inline streams. Fails when the stream or its context
// stopped; the task is then dropped.
ACLSIM_SHARED aclError submit(Stream* stream, Task* task);
inline aclError submit(Stream* stream, Task* task, const char* name) {
  task->name = name;
  return submit(stream, task);
}

// Waits until everything submitted so far has run. timeout_ms < 0 waits for ever. Returns
// the stream's first error (and clears it unless it stops on failure), else `expired` where the
// time was over.
aclError drain(Stream* stream, int timeout_ms, aclError expired);
ACLSIM_SHARED aclError drain(Stream* stream);
bool idle(Stream* stream);
ACLSIM_SHARED void set_stream_error(Stream* stream, aclError code, const char* text);

Stream* make_stream(Context* context, uint32_t flags, uint32_t priority);
bool floats_saturate();  // the mode that aclrtSetDeviceSatMode set, or the product's
void destroy_stream(Stream* stream, bool force);
void forget_allocator(Stream* stream);  // a client's, registered for the stream

// A small closure as a task: `body(Stream*)` returns an ACL code, `release()` gives back what the
// closure holds, whether the task ran or was dropped.
struct SmallTask : Handle {
  Task task;
  alignas(16) unsigned char body[104];
};

struct HoldsNothing {
  void operator()() const {}
};

template <class F, class R>
struct Closure {
  F body;
  R release;
  static SmallTask* small(Task* task) {
    return reinterpret_cast<SmallTask*>(reinterpret_cast<char*>(task) - offsetof(SmallTask, task));
  }
  static Closure& of(Task* task) { return *reinterpret_cast<Closure*>(small(task)->body); }
  static aclError run(Task* task, Stream* stream) {
    aclError code = of(task).body(stream);
    drop(task);
    return code;
  }
  static aclError replay(Task* task, Stream* stream) { return of(task).body(stream); }
  static void drop(Task* task) {
    of(task).release();
    recycle(thread(), small(task), Kind::Task);
  }
};

template <class F, class R = HoldsNothing>
Task* make_task(F body, bool on_worker = false, R release = {}) {
  using Made = Closure<F, R>;
  static_assert(sizeof(Made) <= sizeof(SmallTask::body), "closure too large");
  static_assert(std::is_trivially_destructible<Made>::value, "closures run no destructors");
  auto* small = acquire<SmallTask>(thread(), Kind::Task);
  new (small->body) Made{std::move(body), std::move(release)};
  small->task.on_worker = on_worker;
  small->task.run = Made::run;
  small->task.replay = Made::replay;
  small->task.name = nullptr;
  small->task.drop = Made::drop;
  small->task.describe = nullptr;
  return &small->task;
}

}  // namespace aclsim
