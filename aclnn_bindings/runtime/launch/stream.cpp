// Owns streams and events, and what travels on them besides operators: copies and fills.
#include "registry.h"

namespace launch {

int32_t synchronize(Stream* stream) {
  count_sync();
  const int32_t code = acl.aclrtSynchronizeStream(stream->handle);
  return code ? fail(MT_PHASE_SYNCHRONIZE, code, "aclrtSynchronizeStream") : surface(stream->device);
}

// Ex events are unlimited and may be recorded again; the older kinds are what old installs have.
int32_t create_event(Handle* handle, uint32_t flags) {
  if (acl.aclrtCreateEventExWithFlag) return acl.aclrtCreateEventExWithFlag(handle, flags);
  if (acl.aclrtCreateEventWithFlag) return acl.aclrtCreateEventWithFlag(handle, flags);
  return acl.aclrtCreateEvent ? acl.aclrtCreateEvent(handle) : int32_t{MT_MISSING_FUNCTION};
}

namespace {

// 0 when `stream` is usable on this thread.
int32_t enter_stream(const Inside& entry, const Stream* stream, const char* call) {
  if (!entry.ready() || !entry.allows(stream->session)) return fail_state(call);
  return enter(stream->context);
}

int32_t enter_event(const Inside& entry, const Event* event, const char* call) {
  if (!entry.ready() || !entry.allows(event->session)) return fail_state(call);
  return enter(event->context);
}

int32_t create_stream(Handle* handle, uint32_t priority, uint32_t flags) {
  if (acl.aclrtCreateStreamWithConfig && (priority || flags)) {
    return check(acl.aclrtCreateStreamWithConfig(handle, priority, flags),
                 "aclrtCreateStreamWithConfig");
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

// Pageable host memory is not for aclrtMemcpyAsync everywhere, and the plain aclrtMemcpy does not
// wait for queued work that still uses a recycled block: so the stream is waited for first.
int32_t copy_now(Stream* stream, uint64_t to, uint64_t room, uint64_t from, uint64_t bytes,
                 int32_t kind) {
  if (bytes == 0) return 0;
  if (int32_t code = synchronize(stream)) return code;
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
  auto stream =
      std::make_unique<Stream>(Stream{context->session, handle, context, device, nullptr});
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
  if (!entry.ready() || !entry.allows(context->session)) return fail_state("mt_stream_open"), 0;
  if (enter(context)) return 0;
  std::lock_guard<std::mutex> lock(registry.mutex);
  return open_stream(context, priority, flags);
}

int32_t mt_stream_close(uint64_t handle) {
  Inside entry;
  if (!entry.ready()) return 0;
  Stream* stream = as<Stream>(handle);
  if (stream->session == 0) return 0;
  if (int32_t code = enter(stream->context)) return code;
  Device* device = stream->device;
  if (stream == device->stream) return fail(MT_PHASE_STATE, MT_STILL_USED, "aclrtDestroyStream");
  count_sync();
  if (const int32_t code = acl.aclrtSynchronizeStream(stream->handle))
    note_unseen(device, code, "aclrtSynchronizeStream");
  stream->session = 0;
  device->allocator.merge_pool(stream->pool, device->stream->pool);
  stream->pool = device->stream->pool;
  --device->streams;
  return check(acl.aclrtDestroyStream(stream->handle), "aclrtDestroyStream");
}

int32_t mt_stream_synchronize(uint64_t handle, int32_t timeout_ms) {
  Inside entry;
  Stream* stream = as<Stream>(handle);
  if (int32_t code = enter_stream(entry, stream, "mt_stream_synchronize")) return code;
  if (timeout_ms < 0) return synchronize(stream);
  if (!acl.aclrtSynchronizeStreamWithTimeout)
    return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, "aclrtSynchronizeStreamWithTimeout");
  count_sync();
  const int32_t code = acl.aclrtSynchronizeStreamWithTimeout(stream->handle, timeout_ms);
  if (code) return fail(MT_PHASE_SYNCHRONIZE, code, "aclrtSynchronizeStreamWithTimeout");
  return surface(stream->device);
}

// 1: all work is done; 0: some is not; below 0: failed.
int32_t mt_stream_query(uint64_t handle) {
  Inside entry;
  Stream* stream = as<Stream>(handle);
  if (enter_stream(entry, stream, "mt_stream_query")) return -1;
  if (!acl.aclrtStreamQuery)
    return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, "aclrtStreamQuery"), -1;
  int32_t status = 0;
  if (check(acl.aclrtStreamQuery(stream->handle, &status), "aclrtStreamQuery")) return -1;
  return status == 0;  // ACL_STREAM_STATUS_COMPLETE
}

uint64_t mt_stream_handle(uint64_t stream) { return number(as<Stream>(stream)->handle); }

uint64_t mt_event_open(uint64_t device_handle, uint32_t flags) {
  Inside entry;
  if (!entry.ready()) return fail_state("mt_event_open"), 0;
  Device* device = as<Device>(device_handle);
  if (enter(&device->primary)) return 0;
  Handle handle = nullptr;
  if (check(create_event(&handle, flags), "aclrtCreateEventExWithFlag")) return 0;
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.events.push_back(
      std::make_unique<Event>(Event{device->session, handle, &device->primary}));
  return number(registry.events.back().get());
}

int32_t mt_event_close(uint64_t handle) {
  Inside entry;
  if (!entry.ready()) return 0;
  Event* event = as<Event>(handle);
  if (int32_t code = enter(event->context)) return code;
  std::lock_guard<std::mutex> lock(registry.mutex);
  auto& events = registry.events;
  for (auto& open : events) {
    if (open.get() != event) continue;
    const int32_t code = acl.aclrtDestroyEvent(event->handle);
    std::swap(open, events.back());
    events.pop_back();
    return check(code, "aclrtDestroyEvent");
  }
  return 0;
}

int32_t mt_event_record(uint64_t event_handle, uint64_t stream_handle) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  if (int32_t code = enter_stream(entry, stream, "mt_event_record")) return code;
  return check(acl.aclrtRecordEvent(as<Event>(event_handle)->handle, stream->handle),
               "aclrtRecordEvent");
}

int32_t mt_event_wait(uint64_t event_handle, uint64_t stream_handle) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  if (int32_t code = enter_stream(entry, stream, "mt_event_wait")) return code;
  return check(acl.aclrtStreamWaitEvent(stream->handle, as<Event>(event_handle)->handle),
               "aclrtStreamWaitEvent");
}

// 1: what was recorded is done; 0: it is not; below 0: failed.
int32_t mt_event_query(uint64_t handle) {
  Inside entry;
  Event* event = as<Event>(handle);
  if (enter_event(entry, event, "mt_event_query")) return -1;
  int32_t status = 0;
  if (check(acl.aclrtQueryEventStatus(event->handle, &status), "aclrtQueryEventStatus")) return -1;
  return status == 1;  // ACL_EVENT_RECORDED_STATUS_COMPLETE
}

int32_t mt_event_synchronize(uint64_t handle) {
  Inside entry;
  Event* event = as<Event>(handle);
  if (int32_t code = enter_event(entry, event, "mt_event_synchronize")) return code;
  count_sync();
  const int32_t code = acl.aclrtSynchronizeEvent(event->handle);
  if (code) return fail(MT_PHASE_SYNCHRONIZE, code, "aclrtSynchronizeEvent");
  return surface(event->context->device);
}

int32_t mt_event_elapsed(uint64_t start, uint64_t end, float* ms) {
  Inside entry;
  if (int32_t code = enter_event(entry, as<Event>(start), "mt_event_elapsed")) return code;
  if (!acl.aclrtEventElapsedTime)
    return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, "aclrtEventElapsedTime");
  return check(acl.aclrtEventElapsedTime(ms, as<Event>(start)->handle, as<Event>(end)->handle),
               "aclrtEventElapsedTime");
}

uint64_t mt_event_handle(uint64_t event) { return number(as<Event>(event)->handle); }

int32_t mt_copy(uint64_t stream_handle, uint64_t to, uint64_t room, uint64_t from, uint64_t bytes,
                int32_t kind, int32_t wait) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  if (int32_t code = enter_stream(entry, stream, "mt_copy")) return code;
  const uint64_t ends[] = {to, from};
  note_use(ends, 2, stream);
  return wait && is_host_copy(kind) ? copy_now(stream, to, room, from, bytes, kind)
                                    : copy_later(stream, to, room, from, bytes, kind, wait != 0);
}

int32_t mt_fill(uint64_t stream_handle, uint64_t to, uint64_t room, int32_t value, uint64_t bytes) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  if (int32_t code = enter_stream(entry, stream, "mt_fill")) return code;
  note_use(&to, 1, stream);
  return check(
      acl.aclrtMemsetAsync(reinterpret_cast<void*>(to), room, value, bytes, stream->handle),
      "aclrtMemsetAsync", bytes);
}

}  // extern "C"
