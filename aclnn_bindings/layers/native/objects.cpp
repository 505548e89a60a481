#include "objects.h"

#include <sched.h>

#include <mutex>
#include <unordered_map>

namespace layers {
namespace {

constexpr int kShards = 64;

// Held for some tens of nanoseconds; a waiter soon yields.
class SpinLock {
 public:
  void lock() {
    for (int round = 0; held_.test_and_set(std::memory_order_acquire); ++round)
      if (round > 64) sched_yield();
  }
  void unlock() { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_ = ATOMIC_FLAG_INIT;
};

struct alignas(64) Shard {
  SpinLock mutex;
  std::unordered_map<const void*, ObjectPtr> live;
};

Shard& shard_of(const void* handle) {
  static Shard* shards = new Shard[kShards];
  auto bits = reinterpret_cast<uintptr_t>(handle);
  return shards[(bits >> 4 ^ bits >> 10 ^ bits >> 16) % kShards];
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 29;
}

uint64_t hash_of(const Geometry& g) {
  uint64_t hash = mix(static_cast<uint64_t>(g.dtype) << 32 | static_cast<uint32_t>(g.format),
                      static_cast<uint64_t>(g.offset));
  for (const auto* part : {&g.shape, &g.strides, &g.storage}) {
    hash = mix(hash, part->size());
    for (int64_t n : *part) hash = mix(hash, static_cast<uint64_t>(n));
  }
  return hash;
}

bool same(const Geometry& a, const Geometry& b) {
  return a.dtype == b.dtype && a.format == b.format && a.offset == b.offset &&
         a.shape == b.shape && a.strides == b.strides && a.storage == b.storage;
}

struct Geometries {
  std::mutex mutex;
  std::unordered_multimap<uint64_t, Geometry*> known;
  uint32_t next = 1;
};

Geometries& geometries() {
  static Geometries* made = new Geometries;
  return *made;
}

const Geometry* intern_among_all(const Geometry& wanted, uint64_t hash, bool* made) {
  Geometries& all = geometries();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto range = all.known.equal_range(hash);
  for (auto at = range.first; at != range.second; ++at) {
    if (!same(*at->second, wanted)) continue;
    *made = at->second->id == 0;
    if (*made) at->second->id = all.next++;
    return at->second;
  }
  *made = true;
  auto* kept = new Geometry(wanted);
  kept->id = all.next++;
  all.known.emplace(hash, kept);
  return kept;
}

}  // namespace

void put_object(const void* handle, ObjectPtr object) {
  Shard& shard = shard_of(handle);
  std::lock_guard<SpinLock> lock(shard.mutex);
  shard.live[handle].swap(object);  // what it was is freed after the lock
}

ObjectPtr find_object(const void* handle) {
  if (!handle) return nullptr;
  Shard& shard = shard_of(handle);
  std::lock_guard<SpinLock> lock(shard.mutex);
  auto found = shard.live.find(handle);
  return found == shard.live.end() ? nullptr : found->second;
}

ObjectPtr take_object(const void* handle) {
  Shard& shard = shard_of(handle);
  std::lock_guard<SpinLock> lock(shard.mutex);
  auto found = shard.live.find(handle);
  if (found == shard.live.end()) return nullptr;
  ObjectPtr last = std::move(found->second);
  shard.live.erase(found);
  return last;
}

const Geometry* intern_geometry(const Geometry& wanted, bool* made) {
  static thread_local const Geometry* recent[64];
  uint64_t hash = hash_of(wanted);
  const Geometry*& last = recent[hash % 64];
  *made = false;
  if (last && last->id != 0 && same(*last, wanted)) return last;
  last = intern_among_all(wanted, hash, made);
  return last;
}

void forget_objects_ids() {
  Geometries& all = geometries();
  for (auto& entry : all.known) {
    entry.second->id = 0;
    entry.second->detail = 0;
  }
  all.next = 1;
}

}  // namespace layers
