// Owns devices, contexts, streams and events of the session, and which context a thread has.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "acl.h"
#include "state.h"

namespace launch {

struct Device;
struct Pool;

struct Context {
  Handle handle;
  std::atomic<uint64_t> session;  // 0 once closed
  uint64_t serial;  // unique in the process, so that a recycled handle is not taken for current
  Device* device;
  bool owned;  // made by aclrtCreateContext
};

struct Stream {
  std::atomic<uint64_t> session;  // 0 once closed
  std::atomic<uint32_t> users;
  Handle handle;
  Context* context;
  Device* device;
  Pool* pool;
  // What was launched last, as plans say it, for an error that only the wait for it meets.
  static constexpr uint32_t kRecent = 8;
  std::atomic<const char*> recent[kRecent];
  std::atomic<uint32_t> launched;
};

struct Event {
  std::atomic<uint64_t> session;  // 0 once closed
  std::atomic<uint32_t> users;
  std::atomic<uint32_t> holds{2};  // see give_up
  Handle handle;
  Context* context;
  size_t place;  // among the registry's events
};

// The serial of the context that we last made current on this thread.
extern thread_local uint64_t current_context LAUNCH_TLS;

int32_t switch_context(const Context* context);

// Makes `context` current on the calling thread; 0 or the recorded failure's code.
// ACL's current context is per thread, and a thread starts without one (aclrtSetCurrentContext).
// Another library of the process may have changed it since, so ACL is asked each time.
inline int32_t enter(const Context* context) {
  Handle handle = nullptr;
  if (current_context == context->serial && acl.aclrtGetCurrentContext(&handle) == 0 &&
      handle == context->handle)
    return 0;
  return switch_context(context);
}

int32_t synchronize(Stream* stream);
// Records a failure of `stream`'s queued work with what was launched there last.
int32_t fail_waiting(const Stream* stream, int32_t code, const char* call);
// What ACL says, and what was launched last on `stream`, which may be null.
std::string message_with_recent(const Stream* stream);
// Keeps a failure of the device's queued work that the present caller did not ask about, such as
// one met while memory is given back: the first of them stays until a caller has seen it.
void note_unseen(Device* device, int32_t code, const char* call, const Stream* stream = nullptr);
// The failure that nobody has seen yet, recorded for the calling thread; 0 if there is none.
int32_t surface(Device* device);
int32_t create_event(Handle* handle, uint32_t flags);
// Expects the registry's mutex to be held and the context to be current; 0 after a failure.
uint64_t open_stream(Context* context, uint32_t priority, uint32_t flags);
int32_t close_devices();

}  // namespace launch
