// Owns streams and events, and what travels on them besides operators: copies and fills.
#include <algorithm>

#include "registry.h"
#include "waiting.h"

namespace launch {

int32_t synchronize(Stream* stream) {
  count_sync();
  const int32_t code = acl.aclrtSynchronizeStream(stream->handle);
  return code ? fail_waiting(stream, code, "aclrtSynchronizeStream") : surface(stream->device);
}

int32_t fail_waiting(const Stream* stream, int32_t code, const char* call) {
  return fail_with(MT_PHASE_SYNCHRONIZE, code, call, message_with_recent(stream));
}

std::string message_with_recent(const Stream* stream) {
  std::string message = take_message();
  if (!stream) return message;
  const uint32_t end = stream->launched.load();
  std::string last;
  for (uint32_t k = 1; k <= std::min(end, Stream::kRecent); ++k) {
    const char* text = stream->recent[(end - k) % Stream::kRecent].load();
    if (text) last += (last.empty() ? "" : "; ") + std::string(text);
  }
  if (!last.empty()) message += "\nlaunched last on this stream, newest first: " + last;
  return message;
}

namespace {

// Whether a function is not there, or a driver is older than the toolkit that exports it (207000,
// ACL_ERROR_RT_FEATURE_NOT_SUPPORT).
bool lacks(int32_t code) {
  constexpr int32_t kNotSupported = 207000;
  if (code == kNotSupported) drain_messages();
  return code == kNotSupported || code == MT_MISSING_FUNCTION;
}

}  // namespace

// Ex events are unlimited and may be recorded again; the older kinds are what old installs have.
int32_t create_event(Handle* handle, uint32_t flags) {
  int32_t code = MT_MISSING_FUNCTION;
  if (acl.aclrtCreateEventExWithFlag) code = acl.aclrtCreateEventExWithFlag(handle, flags);
  if (lacks(code) && acl.aclrtCreateEventWithFlag)
    code = acl.aclrtCreateEventWithFlag(handle, flags);
  if (lacks(code) && acl.aclrtCreateEvent) code = acl.aclrtCreateEvent(handle);
  return code;
}

namespace {

// 0 when the stream or event that is held is open, and its context current on this thread.
template <class Object>
int32_t enter_open(const Using<Object>& use, const Object* object, const char* call) {
  return use ? enter(object->context) : fail_state(call);
}

int32_t create_stream(Handle* handle, uint32_t priority, uint32_t flags) {
  if (acl.aclrtCreateStreamWithConfig && (priority || flags)) {
    const int32_t code = acl.aclrtCreateStreamWithConfig(handle, priority, flags);
    if (!lacks(code)) return check(code, "aclrtCreateStreamWithConfig");
  }
  return check(acl.aclrtCreateStream(handle), "aclrtCreateStream");
}

// A copy may read another device's memory, whose allocator must know of it too.
void note_use(const uint64_t* addresses, uint64_t count, Stream* stream) {
  const uint32_t devices = registry.count.load(std::memory_order_acquire);
  if (devices == 1 && stream->device->streams == 1) return;
  for (uint32_t k = 0; k < devices; ++k) registry.open[k]->allocator.note(addresses, count, stream);
}

constexpr int32_t kToDevice = 1, kToHost = 2, kBufferToDevice = 5;  // aclrtMemcpyKind (acl_rt.h)

bool is_host_copy(int32_t kind) { return kind == kToDevice || kind == kToHost; }

void count_copy(int32_t kind, uint64_t bytes) {
  if (kind == kToDevice || kind == kBufferToDevice) {
    __atomic_fetch_add(&counts.copies_to_device, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts.bytes_to_device, bytes, __ATOMIC_RELAXED);
  } else if (kind == kToHost) {
    __atomic_fetch_add(&counts.copies_to_host, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts.bytes_to_host, bytes, __ATOMIC_RELAXED);
  } else {
    __atomic_fetch_add(&counts.copies_on_device, 1, __ATOMIC_RELAXED);
  }
}

// Waits for the other streams that have work on the block: one that wrote what is to be read, or
// reads what is to be written. A stream that captures has none that runs (107027).
int32_t wait_for_users(uint64_t address, Stream* stream) {
  constexpr int32_t kCaptured = 107027;
  const uint32_t devices = registry.count.load(std::memory_order_acquire);
  if (devices == 1 && stream->device->streams == 1) return 0;
  for (uint32_t k = 0; k < devices; ++k) {
    for (Stream* user : registry.open[k]->allocator.users(address)) {
      if (user == stream) continue;
      Inside entry;
      Using<Stream> use(entry, user);  // another thread may be closing it
      if (!use) continue;
      if (int32_t code = enter(user->context)) return code;
      count_sync();
      const auto [code, call] = wait_for_stream(user->handle);
      if (code == kCaptured) {
        drain_messages();
      } else if (code) {
        return fail_waiting(user, code, call);
      }
    }
  }
  return enter(stream->context);
}

// As `synchronize`, where nothing is under way that host memory must outlive.
int32_t wait_heeding(Stream* stream) {
  count_sync();
  const auto [code, call] = wait_for_stream(stream->handle);
  return code ? fail_waiting(stream, code, call) : surface(stream->device);
}

// Pageable host memory is not for aclrtMemcpyAsync everywhere, and the plain aclrtMemcpy does not
// wait for queued work that still uses a recycled block: so the stream is waited for first.
int32_t copy_now(Stream* stream, uint64_t to, uint64_t room, uint64_t from, uint64_t bytes,
                 int32_t kind) {
  if (bytes == 0) return 0;
  if (int32_t code = wait_for_users(kind == kToHost ? from : to, stream)) return code;
  if (int32_t code = wait_heeding(stream)) return code;
  const int32_t code = acl.aclrtMemcpy(as<void>(to), room, as<void>(from), bytes, kind);
  if (code) return check(code, "aclrtMemcpy", bytes);
  count_copy(kind, bytes);
  return 0;
}

int32_t copy_later(Stream* stream, uint64_t to, uint64_t room, uint64_t from, uint64_t bytes,
                   int32_t kind, bool wait) {
  const int32_t code =
      acl.aclrtMemcpyAsync(as<void>(to), room, as<void>(from), bytes, kind, stream->handle);
  if (code) return check(code, "aclrtMemcpyAsync", bytes);
  count_copy(kind, bytes);
  return wait ? synchronize(stream) : 0;
}

}  // namespace

uint64_t open_stream(Context* context, uint32_t priority, uint32_t flags) {
  Handle handle = nullptr;
  if (create_stream(&handle, priority, flags)) return 0;
  Device* device = context->device;
  auto stream = std::make_unique<Stream>();
  stream->session.store(context->session.load());
  stream->handle = handle;
  stream->context = context;
  stream->device = device;
  stream->pool = device->allocator.add_pool(stream.get());
  ++device->streams;
  registry.streams.push_back(std::move(stream));
  return number(registry.streams.back().get());
}

}  // namespace launch

using namespace launch;

extern "C" {

uint64_t mt_stream_open(uint64_t context_handle, uint32_t priority, uint32_t flags) {
  Inside entry;
  Context* context = as<Context>(context_handle);
  if (!context || !entry.allows(context->session.load())) return fail_state("mt_stream_open"), 0;
  if (enter(context)) return 0;
  std::lock_guard<std::mutex> lock(registry.mutex);
  return open_stream(context, priority, flags);
}

int32_t mt_stream_close(uint64_t handle) {
  Inside entry;
  if (!entry.ready()) return 0;
  Stream* stream = as<Stream>(handle);
  if (!stream || !entry.allows(stream->session.load())) return 0;
  if (int32_t code = enter(stream->context)) return code;
  Device* device = stream->device;
  if (stream == device->stream) return fail(MT_PHASE_STATE, MT_STILL_USED, "aclrtDestroyStream");
  if (const int32_t code = shut(stream))
    return code == MT_CLOSED_HANDLE ? 0 : fail(MT_PHASE_STATE, code, "aclrtDestroyStream");
  count_sync();
  if (const int32_t code = acl.aclrtSynchronizeStream(stream->handle))
    note_unseen(device, code, "aclrtSynchronizeStream", stream);
  device->allocator.merge_pool(stream->pool, device->stream->pool);
  stream->pool = device->stream->pool;
  --device->streams;
  return check(acl.aclrtDestroyStream(stream->handle), "aclrtDestroyStream");
}

void mt_heed(uint64_t address) { heed.store(reinterpret_cast<int32_t (*)()>(address)); }

int32_t mt_stream_synchronize(uint64_t handle, int32_t timeout_ms) {
  Inside entry;
  Stream* stream = as<Stream>(handle);
  Using<Stream> use(entry, stream);
  if (int32_t code = enter_open(use, stream, "mt_stream_synchronize")) return code;
  if (timeout_ms < 0) return wait_heeding(stream);
  if (!acl.aclrtSynchronizeStreamWithTimeout)
    return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, "aclrtSynchronizeStreamWithTimeout");
  count_sync();
  const int32_t code = acl.aclrtSynchronizeStreamWithTimeout(stream->handle, timeout_ms);
  if (code) return fail_waiting(stream, code, "aclrtSynchronizeStreamWithTimeout");
  return surface(stream->device);
}

// 1: all work is done; 0: some is not; below 0: failed.
int32_t mt_stream_query(uint64_t handle) {
  Inside entry;
  Stream* stream = as<Stream>(handle);
  Using<Stream> use(entry, stream);
  if (enter_open(use, stream, "mt_stream_query")) return -1;
  if (!acl.aclrtStreamQuery)
    return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, "aclrtStreamQuery"), -1;
  int32_t status = 0;
  if (check(acl.aclrtStreamQuery(stream->handle, &status), "aclrtStreamQuery")) return -1;
  return status == 0;  // ACL_STREAM_STATUS_COMPLETE
}

uint64_t mt_stream_handle(uint64_t handle) {
  Inside entry;
  const Stream* stream = as<Stream>(handle);
  if (!stream || !entry.allows(stream->session.load())) return fail_state("mt_stream_handle"), 0;
  return number(stream->handle);
}

uint64_t mt_event_open(uint64_t device_handle, uint32_t flags) {
  Inside entry;
  Device* device = as<Device>(device_handle);
  if (enter_device(entry, device, "mt_event_open")) return 0;
  Handle handle = nullptr;
  if (check(create_event(&handle, flags), "aclrtCreateEventExWithFlag")) return 0;
  std::lock_guard<std::mutex> lock(registry.mutex);
  Event* event = new Event{};
  event->session.store(device->session.load());
  event->handle = handle;
  event->context = &device->primary;
  event->place = registry.events.size();
  registry.events.push_back(event);
  return number(event);
}

int32_t mt_event_close(uint64_t handle) {
  Inside entry;
  Event* event = as<Event>(handle);
  if (!event || !entry.allows(event->session.load())) return 0;
  if (int32_t code = enter(event->context)) return code;
  if (const int32_t code = shut(event))
    return code == MT_CLOSED_HANDLE ? 0 : fail(MT_PHASE_STATE, code, "aclrtDestroyEvent");
  std::lock_guard<std::mutex> lock(registry.mutex);
  auto& events = registry.events;
  events[event->place] = events.back();
  events[event->place]->place = event->place;
  events.pop_back();
  const int32_t code = check(acl.aclrtDestroyEvent(event->handle), "aclrtDestroyEvent");
  give_up(event);
  return code;
}

// One that could not be closed stays for the end of the session.
int32_t mt_event_free(uint64_t handle) {
  const int32_t code = mt_event_close(handle);
  if (handle) give_up(as<Event>(handle));
  return code;
}

int32_t mt_event_record(uint64_t event_handle, uint64_t stream_handle) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  Event* event = as<Event>(event_handle);
  Using<Stream> use(entry, stream);
  Using<Event> use_event(entry, event);
  if (!use_event) return fail_state("mt_event_record");
  if (int32_t code = enter_open(use, stream, "mt_event_record")) return code;
  return check(acl.aclrtRecordEvent(event->handle, stream->handle),
               "aclrtRecordEvent");
}

int32_t mt_event_wait(uint64_t event_handle, uint64_t stream_handle) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  Event* event = as<Event>(event_handle);
  Using<Stream> use(entry, stream);
  Using<Event> use_event(entry, event);
  if (!use_event) return fail_state("mt_event_wait");
  if (int32_t code = enter_open(use, stream, "mt_event_wait")) return code;
  return check(acl.aclrtStreamWaitEvent(stream->handle, event->handle),
               "aclrtStreamWaitEvent");
}

// 1: what was recorded is done; 0: it is not; below 0: failed.
int32_t mt_event_query(uint64_t handle) {
  Inside entry;
  Event* event = as<Event>(handle);
  Using<Event> use(entry, event);
  if (enter_open(use, event, "mt_event_query")) return -1;
  int32_t status = 0;
  if (check(acl.aclrtQueryEventStatus(event->handle, &status), "aclrtQueryEventStatus")) return -1;
  return status == 1;  // ACL_EVENT_RECORDED_STATUS_COMPLETE
}

int32_t mt_event_synchronize(uint64_t handle) {
  Inside entry;
  Event* event = as<Event>(handle);
  Using<Event> use(entry, event);
  if (int32_t code = enter_open(use, event, "mt_event_synchronize")) return code;
  count_sync();
  const auto [code, call] = wait_for_event(event->handle);
  Device* device = event->context->device;
  return code ? fail_waiting(device->stream, code, call) : surface(device);
}

int32_t mt_event_elapsed(uint64_t start, uint64_t end, float* ms) {
  Inside entry;
  Using<Event> use(entry, as<Event>(start)), use_end(entry, as<Event>(end));
  if (!use_end) return fail_state("mt_event_elapsed");
  if (int32_t code = enter_open(use, as<Event>(start), "mt_event_elapsed")) return code;
  if (!acl.aclrtEventElapsedTime)
    return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, "aclrtEventElapsedTime");
  return check(acl.aclrtEventElapsedTime(ms, as<Event>(start)->handle, as<Event>(end)->handle),
               "aclrtEventElapsedTime");
}

uint64_t mt_event_handle(uint64_t handle) {
  Inside entry;
  const Event* event = as<Event>(handle);
  if (!event || !entry.allows(event->session.load())) return fail_state("mt_event_handle"), 0;
  return number(event->handle);
}

int32_t mt_copy(uint64_t stream_handle, uint64_t to, uint64_t room, uint64_t from, uint64_t bytes,
                int32_t kind, int32_t wait) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  Using<Stream> use(entry, stream);
  if (int32_t code = enter_open(use, stream, "mt_copy")) return code;
  const uint64_t ends[] = {to, from};
  note_use(ends, 2, stream);
  return wait && is_host_copy(kind) ? copy_now(stream, to, room, from, bytes, kind)
                                    : copy_later(stream, to, room, from, bytes, kind, wait != 0);
}

int32_t mt_fill(uint64_t stream_handle, uint64_t to, uint64_t room, int32_t value, uint64_t bytes) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  Using<Stream> use(entry, stream);
  if (int32_t code = enter_open(use, stream, "mt_fill")) return code;
  note_use(&to, 1, stream);
  return check(
      acl.aclrtMemsetAsync(reinterpret_cast<void*>(to), room, value, bytes, stream->handle),
      "aclrtMemsetAsync", bytes);
}

}  // extern "C"
