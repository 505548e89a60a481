#include "ascendcl/stream.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <thread>

#include "ascendcl/capture.h"
#include "ascendcl/device.h"
#include "ascendcl/exception.h"
#include "ascendcl/refusal.h"
#include "ascendcl/strict.h"

namespace aclsim {

struct Worker {
  std::mutex mutex;                 // guards `error_text` and the two sleeps
  std::condition_variable wake;     // the worker waits for work
  std::condition_variable done;     // hosts wait for completion
  bool wake_token = false;
  std::string error_text;
  std::recursive_mutex inline_run;  // inline streams: one task at a time
  std::thread thread;
};

namespace {

using Clock = std::chrono::steady_clock;
// An idle worker spins this long before it sleeps: long enough to catch the next op of a loop,
// short enough to burn no core. The same for a host that waits.
constexpr auto kSpin = std::chrono::microseconds(20);

template <class Ready>
bool spin_until(Ready ready) {
  auto end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      ACLSIM_PAUSE();
    }
    sched_yield();  // on a busy machine the thread that is waited for may need this core
  } while (Clock::now() < end);
  return ready();
}

void finish_one(Stream* stream) {
  stream->completed.store(stream->completed.load(std::memory_order_relaxed) + 1);
  if (ACLSIM_UNLIKELY(stream->waiters.load() != 0)) {
    std::lock_guard<std::mutex> lock(stream->worker->mutex);
    stream->worker->done.notify_all();
  }
}

bool dropping(Stream* stream) {
  return stream->aborted.load(std::memory_order_relaxed) ||
         stream->context->stopped.load(std::memory_order_relaxed) != ACL_SUCCESS;
}

void run_one(Stream* stream, Task* task) {
  if (ACLSIM_UNLIKELY(dropping(stream))) {
    task->drop(task);
  } else {
    aclError code = profiling() ? profile_task(task, stream, task->run) : task->run(task, stream);
    if (ACLSIM_UNLIKELY(code != ACL_SUCCESS)) set_stream_error(stream, code, nullptr);
  }
  finish_one(stream);
}

// Called with the lock held, after any change of the queue or of `running`.
void update_ready(Stream* stream) {
  stream->ready.store(stream->head && !stream->running, std::memory_order_relaxed);
}

// The next batch of tasks, or null when the stream closes and nothing is left. The worker keeps
// the right to run from one batch to the next only while there is one.
Task* next_batch(Stream* stream, bool* mine) {
  for (;;) {
    stream->lock.lock();
    if (*mine) stream->running = false;
    Task* batch = stream->running ? nullptr : stream->head;
    *mine = batch != nullptr;
    if (batch) {
      stream->running = true;
      stream->head = stream->tail = nullptr;
    }
    update_ready(stream);
    bool closing = stream->closing && !stream->head;
    stream->lock.unlock();
    if (batch || closing) return batch;
    if (spin_until([&] { return stream->ready.load(std::memory_order_relaxed); })) continue;
    stream->lock.lock();
    bool sleep = !stream->ready.load(std::memory_order_relaxed) && !stream->closing;
    stream->parked = sleep;
    stream->lock.unlock();
    if (!sleep) continue;
    std::unique_lock<std::mutex> lock(stream->worker->mutex);
    stream->worker->wake.wait(lock, [&] { return stream->worker->wake_token; });
    stream->worker->wake_token = false;
  }
}

void work(Stream* stream) {
  thread();
  bool mine = false;
  while (Task* task = next_batch(stream, &mine)) {
    while (task) {
      Task* next = task->next;
      run_one(stream, task);
      task = next;
    }
  }
}

void wake_worker(Stream* stream) {
  std::lock_guard<std::mutex> lock(stream->worker->mutex);
  stream->worker->wake_token = true;
  stream->worker->wake.notify_one();
}

// A thread that waits for a stream runs its tasks itself where nobody does: no hand-over, and no
// wait for a worker that the system has not scheduled yet.
void help(Stream* stream, uint64_t target) {
  stream->lock.lock();
  if (stream->running) return stream->lock.unlock();
  stream->running = true;
  while (stream->head && !stream->head->on_worker &&
         stream->completed.load(std::memory_order_relaxed) < target) {
    Task* task = stream->head;
    stream->head = task->next;
    if (!stream->head) stream->tail = nullptr;
    update_ready(stream);
    stream->lock.unlock();
    run_one(stream, task);
    stream->lock.lock();
  }
  stream->running = false;
  update_ready(stream);
  bool wake = stream->head && stream->parked;
  if (wake) stream->parked = false;
  stream->lock.unlock();
  if (wake) wake_worker(stream);
}

// False when `timeout_ms` passes before the stream's first `target` tasks have run.
bool await(Stream* stream, uint64_t target, int timeout_ms) {
  auto done = [&] { return stream->completed.load() >= target; };
  if (done() || spin_until(done)) return true;
  stream->waiters.fetch_add(1);
  std::unique_lock<std::mutex> lock(stream->worker->mutex);
  bool finished = true;
  if (timeout_ms < 0) {
    stream->worker->done.wait(lock, done);
  } else {
    finished = stream->worker->done.wait_for(lock, std::chrono::milliseconds(timeout_ms), done);
  }
  lock.unlock();
  stream->waiters.fetch_sub(1);
  return finished;
}

// Threads inherit the signal mask: workers leave signals to the program's own threads.
void start_worker(Stream* stream) {
  Lock lock(runtime().mutex);
  if (stream->worker->thread.joinable()) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  stream->worker->thread = std::thread(work, stream);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ACLSIM_NOINLINE aclError refuse_task(Stream* stream, Task* task, aclError code) {
  task->drop(task);
  return failed(code, "EE9999",
                "Stream %d takes no more work: its context stopped after error %d.", stream->id,
                code);
}

aclError run_inline(Stream* stream, Task* task) {
  std::lock_guard<std::recursive_mutex> lock(stream->worker->inline_run);
  stream->submitted.store(stream->submitted.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
  run_one(stream, task);
  return ACL_SUCCESS;
}

}  // namespace

void SpinLock::wait() {
  for (int i = 0; flag_.load(std::memory_order_relaxed); ++i) {
    if (i < 64) {
      ACLSIM_PAUSE();
    } else {
      sched_yield();
    }
  }
}

// A queue is as deep as a device's would be: then the host helps or waits, as it does there.
constexpr uint64_t kDepth = 16384;

ACLSIM_NOINLINE static void wait_for_room(Stream* stream, uint64_t submitted) {
  uint64_t target = submitted - kDepth / 2;
  help(stream, target);
  await(stream, target, -1);
}

aclError submit(Stream* stream, Task* task) {
  task->ticket = task->correlation = 0;
  if (profiling()) profile_queued(task);
  if (recording(stream)) return stream->recorder.load()->take(stream, task);
  aclError stopped = stream->context->stopped.load(std::memory_order_relaxed);
  if (ACLSIM_UNLIKELY(stopped != ACL_SUCCESS)) return refuse_task(stream, task, stopped);
  task->next = nullptr;
  if (config().inline_streams) return run_inline(stream, task);
  stream->lock.lock();
  if (stream->tail) {
    stream->tail->next = task;
  } else {
    stream->head = task;
  }
  stream->tail = task;
  uint64_t before = stream->submitted.load(std::memory_order_relaxed);
  stream->submitted.store(before + 1, std::memory_order_relaxed);
  update_ready(stream);
  bool wake = stream->parked && !stream->running;  // who runs wakes the worker when it stops
  if (wake) stream->parked = false;
  stream->lock.unlock();
  if (ACLSIM_UNLIKELY(before == 0)) start_worker(stream);
  if (wake) wake_worker(stream);
  if (ACLSIM_UNLIKELY(before - stream->completed.load(std::memory_order_relaxed) > kDepth &&
                      before > stream->completed.load(std::memory_order_relaxed))) {
    wait_for_room(stream, before);
  }
  return ACL_SUCCESS;
}

bool idle(Stream* stream) {
  return stream->completed.load() >= stream->submitted.load(std::memory_order_relaxed);
}

void set_stream_error(Stream* stream, aclError code, const char* text) {
  if (text) tell_exception(stream, code);  // a kernel's; run_one repeats it without the text
  std::lock_guard<std::mutex> lock(stream->worker->mutex);
  if (text && stream->worker->error_text.empty()) stream->worker->error_text = text;
  aclError none = ACL_SUCCESS;
  stream->error.compare_exchange_strong(none, code);
  if (stream->stop_on_failure.load(std::memory_order_relaxed)) {
    none = ACL_SUCCESS;
    stream->context->stopped.compare_exchange_strong(none, code);
  }
}

void note_refusal(Stream* stream, aclError code, const char* text) {
  std::lock_guard<std::mutex> lock(stream->worker->mutex);
  if (stream->worker->error_text.empty()) stream->worker->error_text = text;
  aclError none = ACL_SUCCESS;
  stream->error.compare_exchange_strong(none, code);
}

// Hands the first error to the caller, with the text that the worker noted.
static aclError take_error(Stream* stream) {
  if (ACLSIM_LIKELY(stream->error.load() == ACL_SUCCESS)) return ACL_SUCCESS;
  std::string text;
  aclError code;
  {
    std::lock_guard<std::mutex> lock(stream->worker->mutex);
    code = stream->error.load();
    text = stream->worker->error_text;
    bool stopped = stream->context->stopped.load() != ACL_SUCCESS;
    if (!stream->stop_on_failure.load() || !stopped) {
      stream->error.store(ACL_SUCCESS);
      stream->worker->error_text.clear();
    }
  }
  return failed(code, "EE9999", "Work on stream %d failed with %d. %s", stream->id, code,
                text.c_str());
}

aclError drain(Stream* stream, int timeout_ms, aclError expired) {
  uint64_t target = stream->submitted.load(std::memory_order_relaxed);
  if (timeout_ms < 0 && stream->completed.load() < target) help(stream, target);
  if (!await(stream, target, timeout_ms)) {
    if (stream->error.load() != ACL_SUCCESS) return take_error(stream);
    return failed(expired, "EE1002", "Waiting for stream %d took longer than %d ms.", stream->id,
                  timeout_ms);
  }
  if (ACLSIM_UNLIKELY(stream->aborted.load(std::memory_order_relaxed))) {
    stream->aborted.store(false);
    return failed(ACL_ERROR_RT_STREAM_ABORT, "EE9999", "Stream %d was aborted.", stream->id);
  }
  return take_error(stream);
}

aclError drain(Stream* stream) { return drain(stream, -1, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT); }

Stream* make_stream(Context* context, uint32_t flags, uint32_t priority) {
  auto* stream = acquire<Stream>(thread(), Kind::Stream);
  stream->context = context;
  stream->id = runtime().next_stream_id++;
  stream->flags = flags;
  stream->priority = priority;
  stream->head = stream->tail = nullptr;
  stream->running = stream->parked = stream->closing = false;
  stream->ready = false;
  stream->submitted = 0;
  stream->completed = 0;
  stream->waiters = 0;
  stream->holders = 0;
  stream->error = ACL_SUCCESS;
  stream->stop_on_failure = 0;
  stream->aborted = false;
  stream->worker = new Worker;
  stream->recorder = nullptr;
  stream->overflow_switch = 0;
  stream->saturates = floats_saturate();
  memset(stream->attributes, 0, sizeof stream->attributes);
  stream->report_thread = 0;
  stream->sibling = context->streams;
  context->streams = stream;
  ++device_of(context).streams;
  if (strict()) remember_origin(stream);
  return stream;
}

void destroy_stream(Stream* stream, bool force) {
  if (force) stream->aborted.store(true);
  if (stream->worker->thread.joinable()) {
    stream->lock.lock();
    stream->closing = true;
    bool wake = stream->parked;
    stream->parked = false;
    stream->ready.store(true, std::memory_order_relaxed);  // ends the worker's spin
    stream->lock.unlock();
    if (wake) wake_worker(stream);
    stream->worker->thread.join();
  }
  {
    Lock lock(runtime().mutex);
    for (Stream** at = &stream->context->streams; *at; at = &(*at)->sibling) {
      if (*at == stream) {
        *at = stream->sibling;
        break;
      }
    }
    --device_of(stream->context).streams;
  }
  while (stream->holders.load()) sched_yield();
  forget_allocator(stream);
  retire(stream, Kind::Stream, Death::Destroyed);
  delete stream->worker;
  stream->worker = nullptr;
  recycle(thread(), stream, Kind::Stream);
}

ACLSIM_NOINLINE static Stream* not_a_stream(Stream* stream, const char* function, aclError* code) {
  if (strict() && stream->was(Kind::Stream)) {
    report_dead(function, stream, Kind::Stream);
  }
  *code = failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                 "%s failed because parameter stream %p is not a live stream.", function,
                 static_cast<void*>(stream));
  return nullptr;
}

Stream* find_stream(ThreadState* state, aclrtStream handle, const char* function,
                    aclError* code) {
  if (ACLSIM_UNLIKELY(!handle)) {
    Context* context = current_context(state, function, code);
    return context ? context->default_stream : nullptr;
  }
  auto* stream = static_cast<Stream*>(handle);
  if (ACLSIM_UNLIKELY(!stream->is(Kind::Stream))) return not_a_stream(stream, function, code);
  return stream;
}

Stream* find_own_stream(ThreadState* state, aclrtStream handle, const char* function,
                        aclError* code) {
  Context* context = current_context(state, function, code);
  if (ACLSIM_UNLIKELY(!context)) return nullptr;
  Stream* stream = find_stream(state, handle, function, code);
  if (ACLSIM_UNLIKELY(stream && stream->context != context)) {
    if (strict()) report_misuse("wrong-context", function, stream, Kind::Stream,
                                "Make the stream's context current first, or use a stream of this one.");
    *code = failed(ACL_ERROR_RT_STREAM_CONTEXT, "EE1010",
                   "%s failed because the stream belongs to another context than the current one.",
                   function);
    return nullptr;
  }
  return stream;
}

}  // namespace aclsim
