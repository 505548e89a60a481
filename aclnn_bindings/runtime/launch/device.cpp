// Owns devices and contexts; see device.h and registry.h.
#include "device.h"

#include <atomic>

#include "registry.h"
#include "waiting.h"

namespace launch {

Registry registry;
thread_local uint64_t current_context LAUNCH_TLS = 0;

namespace {

std::atomic<uint64_t> serials{0};

void set_context(Context& context, Device* device, Handle handle, bool owned) {
  context.handle = handle;
  context.session.store(device->session.load());
  context.serial = ++serials;
  context.device = device;
  context.owned = owned;
}

// Thread-level, and counted per device by ACL: done once per device and session; other threads
// get the primary context by aclrtSetCurrentContext, which is not counted.
int32_t open_primary(Device* device) {
  current_context = 0;  // whatever comes of it, the thread leaves the context it had
  if (int32_t code = check(acl.aclrtSetDevice(device->id), "aclrtSetDevice", device->id))
    return code;
  Handle handle = nullptr;
  const int32_t code = acl.aclrtGetCurrentContext(&handle);
  if (code != 0) {
    check(code, "aclrtGetCurrentContext");
    acl.aclrtResetDevice(device->id);
    return code;
  }
  set_context(device->primary, device, handle, false);
  current_context = device->primary.serial;
  return 0;
}

}  // namespace

void note_unseen(Device* device, int32_t code, const char* call, const Stream* stream) {
  std::string message = message_with_recent(stream ? stream : device->stream);
  std::lock_guard<std::mutex> lock(device->unseen_mutex);
  if (device->unseen.load()) return;
  device->unseen_message = std::move(message);
  device->unseen_call = call;
  device->unseen.store(code);
}

int32_t surface(Device* device) {
  if (device->unseen.load(std::memory_order_acquire) == 0) return 0;
  std::lock_guard<std::mutex> lock(device->unseen_mutex);
  const int32_t code = device->unseen.exchange(0);
  if (code == 0) return 0;
  return fail_with(MT_PHASE_SYNCHRONIZE, code, device->unseen_call, device->unseen_message);
}

int32_t switch_context(const Context* context) {
  if (context->session == 0) return fail_state("aclrtSetCurrentContext");
  const int32_t code = acl.aclrtSetCurrentContext(context->handle);
  if (code != 0) return check(code, "aclrtSetCurrentContext");
  current_context = context->serial;
  return 0;
}

namespace {

// A device that hangs must not hang the end of the process: 507013 and 507046 say that it does.
int32_t wait_for_end(const char** call) {
  constexpr int32_t kPatience = 120000;  // ms
  if (acl.aclrtSynchronizeDeviceWithTimeout) {
    *call = "aclrtSynchronizeDeviceWithTimeout";
    return acl.aclrtSynchronizeDeviceWithTimeout(kPatience);
  }
  *call = "aclrtSynchronizeDevice";
  return acl.aclrtSynchronizeDevice();
}

bool hangs(int32_t code) {
  constexpr int32_t kDeviceTimeout = 507013, kStreamTimeout = 507046;  // rt_error_codes.h
  return code == kDeviceTimeout || code == kStreamTimeout;
}

void close_device(Device& device) {
  // Without its context the device's things are released all the same: their handles say which.
  if (const int32_t code = enter(&device.primary)) {
    note_unseen(&device, code, "aclrtSetCurrentContext");
    acl.aclrtSetDevice(device.id);
  }
  const char* call = nullptr;
  if (const int32_t code = wait_for_end(&call)) {
    note_unseen(&device, code, call);
    if (hangs(code)) {  // every call that would release something waits for the device
      device.session = device.primary.session = 0;
      return;
    }
  }
  for (Event* event : registry.events) {
    if (event->context->device == &device) acl.aclrtDestroyEvent(event->handle);
  }
  for (auto& stream : registry.streams) {
    if (stream->session && stream->device == &device) acl.aclrtDestroyStream(stream->handle);
  }
  device.allocator.close();
  for (auto& context : registry.contexts) {
    if (context->session && context->device == &device) acl.aclrtDestroyContext(context->handle);
  }
  // Host memory is not a device's, but freeing it needs a context.
  for (void* memory : registry.host_memory) acl.aclrtFreeHost(memory);
  registry.host_memory.clear();
  acl.aclrtResetDevice(device.id);
  device.session = 0;
  device.primary.session = 0;
}

}  // namespace

int32_t close_devices() {
  std::lock_guard<std::mutex> lock(registry.mutex);
  int32_t failed = 0;
  for (uint32_t k = 0; k < registry.count.load(); ++k) {
    close_device(*registry.open[k]);
    if (failed == 0) failed = surface(registry.open[k]);
  }
  registry.count.store(0);
  drain_messages();
  for (Event* event : registry.events) {
    event->session = 0;
    give_up(event);
  }
  registry.events.clear();
  for (auto& stream : registry.streams) stream->session = 0;
  for (auto& context : registry.contexts) context->session = 0;
  current_context = 0;
  return failed;
}

}  // namespace launch

using namespace launch;

namespace {

bool open(const Inside& entry, uint64_t device) {
  return device && entry.allows(as<Device>(device)->session.load());
}

std::vector<Stream*> streams_of(const Device* device) {
  std::lock_guard<std::mutex> lock(registry.mutex);
  std::vector<Stream*> streams;
  for (const auto& stream : registry.streams)
    if (stream->device == device) streams.push_back(stream.get());
  return streams;
}

// After a first slice, waits for each stream's place in turn: see wait_for_stream. What others
// queued on streams of their own is waited for at the end, and not interrupted.
Waited wait_for_device(const Inside& entry, Device* device) {
  const Waited first = begin_to_wait_for_device();
  if (first.code != kStreamExpired) return first;
  for (Stream* stream : streams_of(device)) {
    Using<Stream> use(entry, stream);
    if (!use) continue;
    if (const int32_t code = enter(stream->context)) return {code, "aclrtSetCurrentContext"};
    const Waited waited = wait_for_stream(stream->handle);
    if (waited.code) return waited;
  }
  if (const int32_t code = enter(&device->primary)) return {code, "aclrtSetCurrentContext"};
  return {acl.aclrtSynchronizeDevice(), "aclrtSynchronizeDevice"};
}

}  // namespace

extern "C" {

int32_t mt_device_count(uint32_t* count) {
  return check(acl.aclrtGetDeviceCount(count), "aclrtGetDeviceCount");
}

uint64_t mt_device_open(int32_t id, uint32_t stream_flags, uint32_t event_flags) {
  Inside entry;
  if (!entry.ready()) return fail_state("mt_device_open"), 0;
  Device* device = nullptr;
  {
    std::lock_guard<std::mutex> lock(registry.mutex);
    const uint32_t count = registry.count.load();
    for (uint32_t k = 0; k < count; ++k)
      if (registry.open[k]->id == id) return number(registry.open[k]);
    if (count == kMaxDevices)
      return fail(MT_PHASE_ARGUMENTS, MT_OVER_LIMIT, "mt_device_open", count), 0;
    auto fresh = std::make_unique<Device>(entry.number(), id, event_flags);
    if (open_primary(fresh.get()) != 0) return 0;
    fresh->stream = as<Stream>(open_stream(&fresh->primary, 0, stream_flags));
    if (!fresh->stream) {
      current_context = 0;
      return acl.aclrtResetDevice(id), 0;
    }
    device = fresh.get();
    registry.devices.push_back(std::move(fresh));
    registry.open[count] = device;
    registry.count.store(count + 1);
  }
  return number(device);
}

int32_t mt_device_synchronize(uint64_t handle) {
  Inside entry;
  Device* device = as<Device>(handle);
  if (int32_t code = enter_device(entry, device, "mt_device_synchronize")) return code;
  count_sync();
  const auto [code, call] = wait_for_device(entry, device);
  return code ? fail_waiting(device->stream, code, call) : surface(device);
}

uint64_t mt_device_stream(uint64_t device) { return number(as<Device>(device)->stream); }
uint64_t mt_device_context(uint64_t device) { return number(&as<Device>(device)->primary); }

int32_t mt_device_memory(uint64_t handle, uint64_t* free_bytes, uint64_t* total_bytes) {
  Inside entry;
  if (int32_t code = enter_device(entry, as<Device>(handle), "mt_device_memory")) return code;
  if (!acl.aclrtGetMemInfo)
    return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, "aclrtGetMemInfo");
  constexpr int32_t kHbm = 1;  // ACL_HBM_MEM (acl_rt.h); falls back to DDR by itself
  size_t unused = 0, total = 0;
  const int32_t code = acl.aclrtGetMemInfo(kHbm, &unused, &total);
  *free_bytes = unused;
  *total_bytes = total;
  return check(code, "aclrtGetMemInfo");
}

uint64_t mt_context_open(uint64_t handle) {
  Inside entry;
  Device* device = as<Device>(handle);
  if (!device || !entry.allows(device->session.load())) return fail_state("mt_context_open"), 0;
  if (!acl.aclrtCreateContext || !acl.aclrtDestroyContext)
    return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, "aclrtCreateContext"), 0;
  Handle made = nullptr;
  if (check(acl.aclrtCreateContext(&made, device->id), "aclrtCreateContext", device->id)) return 0;
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.contexts.push_back(std::make_unique<Context>());
  set_context(*registry.contexts.back(), device, made, true);
  current_context = registry.contexts.back()->serial;
  return number(registry.contexts.back().get());
}

int32_t mt_context_close(uint64_t handle) {
  Inside entry;
  if (!entry.ready()) return 0;
  Context* context = as<Context>(handle);
  if (!context || context->session == 0 || !context->owned) return 0;
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (auto& stream : registry.streams) {
    if (stream->session && stream->context == context)
      return fail(MT_PHASE_STATE, MT_STILL_USED, "aclrtDestroyContext");
  }
  context->session = 0;
  const int32_t code = acl.aclrtDestroyContext(context->handle);
  current_context = 0;
  return check(code, "aclrtDestroyContext");
}

int32_t mt_context_use(uint64_t handle) {
  Inside entry;
  Context* context = as<Context>(handle);
  if (!context || !entry.allows(context->session.load())) return fail_state("mt_context_use");
  return switch_context(context);
}

uint64_t mt_context_handle(uint64_t handle) {
  Inside entry;
  const Context* context = as<Context>(handle);
  if (!context || !entry.allows(context->session.load())) return fail_state("mt_context_handle"), 0;
  return number(context->handle);
}

void mt_context_forget(void) { current_context = 0; }

int32_t mt_memory_empty(uint64_t handle) {
  Inside entry;
  Device* device = as<Device>(handle);
  if (int32_t code = enter_device(entry, device, "mt_memory_empty")) return code;
  collect();
  const int32_t code = device->allocator.empty();
  return code ? code : surface(device);
}

int32_t mt_memory_limit(uint64_t handle, uint64_t bytes) {
  Inside entry;
  if (!open(entry, handle)) return fail_state("mt_memory_limit");
  as<Device>(handle)->allocator.limit(bytes);
  return 0;
}

int32_t mt_memory_read(uint64_t handle, mt_memory* memory) {
  Inside entry;
  if (!open(entry, handle)) return fail_state("mt_memory_read");
  collect();
  as<Device>(handle)->allocator.read(memory);
  return 0;
}

int32_t mt_memory_reset_peak(uint64_t handle) {
  Inside entry;
  if (!open(entry, handle)) return fail_state("mt_memory_reset_peak");
  as<Device>(handle)->allocator.reset_peak();
  return 0;
}

uint64_t mt_memory_holdings(uint64_t handle, mt_holding* rows, uint64_t room) {
  Inside entry;
  return open(entry, handle) ? as<Device>(handle)->allocator.holdings(rows, room) : 0;
}

uint64_t mt_memory_trespasses(uint64_t handle, mt_trespass* rows, uint64_t room) {
  Inside entry;
  return open(entry, handle) ? as<Device>(handle)->allocator.trespasses(rows, room) : 0;
}

}  // extern "C"
