// Owns the entry points that allocate and free; blocks belong to the allocators of the devices.
#include <algorithm>

#include "registry.h"

namespace launch {

std::atomic<uint32_t> returned_count{0};

}  // namespace launch

using namespace launch;

namespace {

// What mt_release could not free at once. It is called as Python objects die, holding Python's
// lock, and the thread inside the allocator may be waiting for work that waits for that lock.
std::mutex returned_mutex;
std::vector<uint64_t> returned;

uint64_t allocate(uint64_t stream_handle, uint64_t bytes, mt_purpose purpose) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  Using<Stream> use(entry, stream);
  if (!use) return fail_state("mt_alloc"), 0;
  if (enter(stream->context)) return 0;
  collect();
  return stream->device->allocator.allocate(stream->pool, bytes, purpose, MT_PHASE_RUNTIME);
}

// Takes pinned memory off the list of what the session frees; whether it was on it.
bool forget_host(uint64_t address) {
  std::lock_guard<std::mutex> lock(registry.mutex);
  auto& held = registry.host_memory;
  const auto at = std::find(held.begin(), held.end(), as<void>(address));
  if (at == held.end()) return false;
  held.erase(at);
  return true;
}

}  // namespace

void launch::collect_returned() {
  std::vector<uint64_t> now;
  {
    std::lock_guard<std::mutex> lock(returned_mutex);
    now.swap(returned);
    returned_count.store(0);
  }
  for (uint64_t address : now) mt_free(address);
}

extern "C" {

uint64_t mt_alloc(uint64_t stream, uint64_t bytes) { return allocate(stream, bytes, MT_TENSOR); }

uint64_t mt_alloc_for(uint64_t stream, uint64_t bytes, int32_t purpose) {
  return allocate(stream, bytes, static_cast<mt_purpose>(purpose));
}

// After the session everything was returned with its device: freeing late is no error.
int32_t mt_free(uint64_t address) {
  Inside entry;
  if (!entry.ready()) return 0;
  for (uint32_t k = 0; k < registry.count.load(std::memory_order_acquire); ++k)
    if (registry.open[k]->allocator.free(address) == Allocator::kFreed) return 0;
  return fail(MT_PHASE_ARGUMENTS, MT_UNKNOWN_POINTER, "mt_free", address);
}

int32_t mt_release(uint64_t address, uint64_t of) {
  Inside entry;
  if (!entry.allows(of)) return 0;
  for (uint32_t k = 0; k < registry.count.load(std::memory_order_acquire); ++k) {
    // Without caching, freeing waits for the device.
    const auto freed = memory_caching ? registry.open[k]->allocator.free(address, false)
                                      : Allocator::kBusy;
    if (freed == Allocator::kFreed) return 0;
    if (freed == Allocator::kUnknown) continue;
    std::lock_guard<std::mutex> lock(returned_mutex);
    returned.push_back(address);
    returned_count.store(static_cast<uint32_t>(returned.size()));
    return 0;
  }
  return fail(MT_PHASE_ARGUMENTS, MT_UNKNOWN_POINTER, "mt_release", address);
}

int32_t mt_record_stream(uint64_t address, uint64_t stream) {
  Inside entry;
  if (!entry.ready()) return fail_state("mt_record_stream");
  Using<Stream> use(entry, as<Stream>(stream));
  if (!use) return fail_state("mt_record_stream");
  for (uint32_t k = 0; k < registry.count.load(); ++k)
    if (registry.open[k]->allocator.record(address, as<Stream>(stream))) return 0;
  return fail(MT_PHASE_ARGUMENTS, MT_UNKNOWN_POINTER, "mt_record_stream", address);
}

int32_t mt_block_at(uint64_t address, mt_block* block) {
  Inside entry;
  if (!entry.ready()) return fail_state("mt_block_at");
  for (uint32_t k = 0; k < registry.count.load(); ++k)
    if (registry.open[k]->allocator.describe(address, block)) return 0;
  return fail(MT_PHASE_ARGUMENTS, MT_UNKNOWN_POINTER, "mt_block_at", address);
}

uint64_t mt_pool_open(uint64_t stream_handle) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  Using<Stream> use(entry, stream);
  if (!use) return fail_state("mt_pool_open"), 0;
  Pool* pool = stream->device->allocator.add_pool(stream);
  pool->kept = true;
  pool->before = stream->pool;
  stream->pool = pool;
  return number(pool);
}

int32_t mt_pool_leave(uint64_t stream_handle) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  Using<Stream> use(entry, stream);
  if (!use) return fail_state("mt_pool_leave");
  if (stream->pool->before) stream->pool = stream->pool->before;
  return 0;
}

int32_t mt_pool_close(uint64_t stream_handle, uint64_t pool) {
  Inside entry;
  Stream* stream = as<Stream>(stream_handle);
  Using<Stream> use(entry, stream);
  if (!use) return 0;
  if (int32_t code = enter(stream->context)) return code;
  if (int32_t code = synchronize(stream)) return code;
  stream->device->allocator.merge_pool(as<Pool>(pool), stream->device->stream->pool);
  return 0;
}

uint64_t mt_host_alloc(uint64_t device, uint64_t bytes) {
  Inside entry;
  if (enter_device(entry, as<Device>(device), "mt_host_alloc")) return 0;
  void* address = nullptr;
  if (check(acl.aclrtMallocHost(&address, bytes), "aclrtMallocHost", bytes)) return 0;
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.host_memory.push_back(address);
  return reinterpret_cast<uint64_t>(address);
}

int32_t mt_host_keep(uint64_t address) {
  Inside entry;
  if (!entry.ready()) return fail_state("mt_host_keep");
  if (forget_host(address)) return 0;
  return fail(MT_PHASE_ARGUMENTS, MT_UNKNOWN_POINTER, "mt_host_keep", address);
}

int32_t mt_host_free(uint64_t device, uint64_t address) {
  Inside entry;
  if (!entry.ready()) return 0;
  if (int32_t code = enter_device(entry, as<Device>(device), "mt_host_free")) return code;
  if (!forget_host(address)) return fail(MT_PHASE_ARGUMENTS, MT_UNKNOWN_POINTER, "mt_host_free", address);
  return check(acl.aclrtFreeHost(as<void>(address)), "aclrtFreeHost");
}

}  // extern "C"
