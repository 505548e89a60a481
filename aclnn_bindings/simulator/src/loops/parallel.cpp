// The kernel thread pool: see parallel.h.
#include "loops/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <pthread.h>

namespace aclsim {
namespace {

struct Job {
  RangeBody body = nullptr;
  void* context = nullptr;
  int64_t n = 0, piece = 0;
};

// Never destroyed: its threads park on it until the process ends.
class Pool {
 public:
  static Pool* get() {
    static std::once_flag once;
    static Pool* pool = nullptr;
    std::call_once(once, [] {
      pool = new Pool;
      // A forked child has no workers; it gets a pool of its own without any.
      pthread_atfork(nullptr, nullptr, [] { new (pool) Pool; pool->started_ = true; });
    });
    return pool;
  }

  bool try_run(const Job& job) {
    std::unique_lock<std::mutex> owner(owner_, std::try_to_lock);
    if (!owner.owns_lock()) return false;
    start();
    if (workers_ == 0) return false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = job;
      next_.store(0, std::memory_order_relaxed);
      open_ = true;
      generation_.fetch_add(1, std::memory_order_release);
    }
    if (parked_.load() > 0) wake_.notify_all();
    work(job);
    // Only workers that took the job are waited for: one that the system has not woken yet will
    // find it closed.
    {
      std::lock_guard<std::mutex> lock(mutex_);
      open_ = false;
    }
    if (spin([this] { return active_.load(std::memory_order_acquire) == 0; })) return true;
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return active_.load() == 0; });
    return true;
  }

 private:
  static constexpr int kSpins = 4000;  // some tens of microseconds: the gap between two kernels

  void start() {
    if (started_) return;
    started_ = true;
    const int wanted = kernel_threads() - 1;
    for (int i = 0; i < wanted; ++i) {
      std::thread([this] { serve(); }).detach();
      ++workers_;
    }
  }
  // Whether it comes true while a thread may well wait for it: sleeping takes as long.
  template <class Condition>
  static bool spin(Condition condition) {
    for (int i = 0; i < kSpins; ++i) {
      if (condition()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    return false;
  }
  void await(uint64_t seen) {
    if (spin([&] { return generation_.load(std::memory_order_acquire) != seen; })) return;
    std::unique_lock<std::mutex> lock(mutex_);
    parked_.fetch_add(1);
    wake_.wait(lock, [&] { return generation_.load() != seen; });
    parked_.fetch_sub(1);
  }
  void serve() {
    uint64_t seen = 0;
    for (;;) {
      await(seen);
      Job job;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        seen = generation_.load();
        if (!open_) continue;
        active_.fetch_add(1);
        job = job_;
      }
      work(job);
      std::lock_guard<std::mutex> lock(mutex_);
      if (active_.fetch_sub(1) == 1) done_.notify_one();
    }
  }
  void work(const Job& job) {
    for (;;) {
      const int64_t begin = next_.fetch_add(job.piece, std::memory_order_relaxed);
      if (begin >= job.n) return;
      job.body(job.context, begin, std::min(begin + job.piece, job.n));
    }
  }

  std::mutex owner_, mutex_;
  std::condition_variable wake_, done_;
  Job job_;
  std::atomic<int64_t> next_{0};
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> parked_{0};
  std::atomic<int> active_{0};
  int workers_ = 0;
  bool open_ = false, started_ = false;
};

thread_local bool inside = false;  // a body that asks again runs its range itself

}  // namespace

void parallel_range(int64_t n, int64_t grain, RangeBody body, void* context) {
  const int threads = kernel_threads();
  if (threads > 1 && !inside) {
    const int64_t pieces = std::min<int64_t>(threads * 4, (n + grain - 1) / grain);
    const Job job{body, context, n, (n + pieces - 1) / pieces};
    inside = true;
    const bool ran = Pool::get()->try_run(job);
    inside = false;
    if (ran) return;
  }
  body(context, 0, n);
}

}  // namespace aclsim
