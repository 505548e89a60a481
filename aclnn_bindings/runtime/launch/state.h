// Owns the session's life (not started, ready, stopped, forked), failures and counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "acl.h"
#include "entry.h"

// Where a thread's own data lies. On x86-64 in the loader's static block, without a call: 256 bytes
// of the 1,664 that glibc keeps for libraries which come late. On AArch64 other libraries have often
// used those up, and its descriptors (TLSDESC, the default there) cost next to nothing.
#if defined(__x86_64__)
#define LAUNCH_TLS __attribute__((tls_model("initial-exec")))
#else
#define LAUNCH_TLS
#endif

namespace launch {

// A session's number while it is ready; 0 otherwise. Plans, streams and devices carry the number
// of the session that made them, so that one compare refuses what outlived it.
extern std::atomic<uint64_t> session;
extern std::atomic<uint32_t> inside;  // threads that are inside an entry point
extern int32_t launch_blocking;
extern int32_t memory_caching;
extern int32_t memory_guard;    // see mt_memory_guard
extern int32_t memory_garbage;  // the byte that fills guarded memory; -1: none
extern mt_counts counts;

// Holds the session open: mt_stop waits until no thread is inside one of these, nor launches a plan.
class Inside {
 public:
  Inside() {
    inside.fetch_add(1);
    session_ = session.load();
  }
  ~Inside() { inside.fetch_sub(1, std::memory_order_release); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  bool allows(uint64_t made_in) const { return made_in == session_ && session_ != 0; }
  bool ready() const { return session_ != 0; }
  // The session that is held open; mt_session may be 0 already, as its end waits for us.
  uint64_t number() const { return session_; }

 private:
  uint64_t session_;
};

// Holds one stream, event or plan open: whoever closes it waits until nobody is inside one of
// these. Handles may be 0 or closed; what they point to lives until its owner gives it up.
template <class Object>
class Using {
 public:
  Using(const Inside& entry, Object* object) : object_(object) {
    if (!object_) return;
    object_->users.fetch_add(1);
    open_ = entry.allows(object_->session.load());
  }
  ~Using() {
    if (object_) object_->users.fetch_sub(1, std::memory_order_release);
  }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;
  explicit operator bool() const { return open_; }

 private:
  Object* object_;
  bool open_ = false;
};

// Waits until `count` is 0, at most ten seconds: a thread that hangs in the device must not hang
// others, nor the end of the process. Whether it is 0.
bool wait_until_left(const std::atomic<uint32_t>& count);

// Marks the object closed and waits until nobody uses it. 0: the caller releases what it holds;
// MT_CLOSED_HANDLE: it was closed already; MT_STILL_USED, and it stays open.
template <class Object>
int32_t shut(Object* object) {
  const uint64_t made_in = object->session.exchange(0);
  if (made_in == 0) return MT_CLOSED_HANDLE;
  if (wait_until_left(object->users)) return 0;
  object->session.store(made_in);
  return MT_STILL_USED;
}

// Plans and events are held by two: the session's list of what is open, and the caller's handle.
// Whoever gives up the second hold deletes.
template <class Object>
void give_up(Object* object) {
  if (object->holds.fetch_sub(1) == 1) delete object;
}

// Records the calling thread's failure with CANN's own message and returns `code`.
int32_t fail(mt_phase phase, int32_t code, const char* call, uint64_t detail = 0);
// The same with a message that CANN gave earlier.
int32_t fail_with(mt_phase phase, int32_t code, const char* call, const std::string& message);
// CANN's message of the thread's last failure; reading it takes it away.
std::string take_message();
// Records why the session or the handle cannot be used: forked, stopped, not started, closed.
int32_t fail_state(const char* call);
// Forgets messages of a failure that was handled.
void drain_messages();

inline int32_t check(int32_t code, const char* call, uint64_t detail = 0) {
  return code == 0 ? 0 : fail(MT_PHASE_RUNTIME, code, call, detail);
}

}  // namespace launch
