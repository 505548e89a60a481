// Owns the list of the session's devices, contexts, streams and events.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "allocator.h"
#include "device.h"

namespace launch {

struct Device {
  std::atomic<uint64_t> session;  // 0 once closed
  int32_t id;
  uint32_t event_flags;
  Context primary;
  Stream* stream;  // the default one, made by us so that it can be captured and waited for
  Allocator allocator;
  std::atomic<uint32_t> streams{0};  // open streams; inputs are tracked when there are several
  // A failure of queued work that no caller has seen; `unseen` is read without the mutex.
  std::atomic<int32_t> unseen{0};
  std::mutex unseen_mutex;
  std::string unseen_message;
  const char* unseen_call = "";

  Device(uint64_t session_, int32_t id_, uint32_t event_flags_)
      : session(session_),
        id(id_),
        event_flags(event_flags_),
        primary{},
        stream(nullptr),
        allocator(&primary, event_flags_) {}
};

constexpr uint32_t kMaxDevices = 64;

// Objects are kept, closed or not, so that a stale handle finds a closed object. Events may be
// many: these are the open ones, and each belongs to whoever opened it, who gives it up by
// mt_event_free.
struct Registry {
  std::mutex mutex;
  // The session's devices; read without the mutex, hence of fixed room.
  Device* open[kMaxDevices];
  std::atomic<uint32_t> count{0};
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Event*> events;
  std::vector<void*> host_memory;
};

extern Registry registry;

template <class Object>
Object* as(uint64_t handle) {
  return reinterpret_cast<Object*>(handle);
}

// 0 when `device` is open and its primary context is current on this thread.
inline int32_t enter_device(const Inside& entry, const Device* device, const char* call) {
  if (!device || !entry.allows(device->session.load())) return fail_state(call);
  return enter(&device->primary);
}

template <class Object>
uint64_t number(const Object* object) {
  return reinterpret_cast<uint64_t>(object);
}

// Frees what Python objects gave back while the allocator was busy.
extern std::atomic<uint32_t> returned_count;
void collect_returned();
inline void collect() {
  if (returned_count.load(std::memory_order_relaxed)) collect_returned();
}

inline void count_sync() { __atomic_fetch_add(&counts.host_syncs, 1, __ATOMIC_RELAXED); }

}  // namespace launch
