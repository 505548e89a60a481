#include "objects.h"

#include <sched.h>

#include <mutex>
#include <unordered_map>

namespace layers {
namespace {

constexpr int kShards = 64;
constexpr size_t kRecent = 256;  // geometries that are found without a lock

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

// Handles in one array, at their hash or soon behind: making and ending one allocates nothing.
class Live {
 public:
  ObjectPtr* find(const void* handle) {
    for (size_t at = home(handle); slots_[at].handle; at = next(at))
      if (slots_[at].handle == handle) return &slots_[at].object;
    return nullptr;
  }
  ObjectPtr& operator[](const void* handle) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    size_t at = home(handle);
    while (slots_[at].handle && slots_[at].handle != handle) at = next(at);
    count_ += slots_[at].handle == nullptr;
    slots_[at].handle = handle;
    return slots_[at].object;
  }
  // `place` is what `find` gave. What stands behind it moves up, so that no search ends too soon.
  void erase(ObjectPtr* place) {
    size_t hole = static_cast<size_t>(reinterpret_cast<Slot*>(place) - slots_.data());
    for (size_t at = next(hole); slots_[at].handle; at = next(at)) {
      if (distance(home(slots_[at].handle), at) < distance(hole, at)) continue;
      slots_[hole] = std::move(slots_[at]);
      hole = at;
    }
    slots_[hole] = {};
    --count_;
  }

 private:
  struct Slot {
    ObjectPtr object;  // first: `erase` goes from it to its slot
    const void* handle = nullptr;
  };
  size_t home(const void* handle) const {
    uint64_t bits = reinterpret_cast<uintptr_t>(handle) * 0x9E3779B97F4A7C15ull;
    return static_cast<size_t>(bits >> 32) & (slots_.size() - 1);
  }
  size_t next(size_t at) const { return (at + 1) & (slots_.size() - 1); }
  size_t distance(size_t from, size_t to) const { return (to - from) & (slots_.size() - 1); }
  void grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    count_ = 0;
    for (Slot& slot : before)
      if (slot.handle) (*this)[slot.handle] = std::move(slot.object);
  }
  std::vector<Slot> slots_ = std::vector<Slot>(16);  // a power of two, at most half full
  size_t count_ = 0;
};

struct alignas(64) Shard {
  SpinLock mutex;
  Live live;
};

Shard* shards() {
  static Shard* made = new Shard[kShards];
  return made;
}

Shard& shard_of(const void* handle) {
  auto bits = reinterpret_cast<uintptr_t>(handle);
  return shards()[(bits >> 4 ^ bits >> 10 ^ bits >> 16) % kShards];
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
  if (!handle) return;
  Shard& shard = shard_of(handle);
  std::lock_guard<SpinLock> lock(shard.mutex);
  shard.live[handle].swap(object);  // what it was is freed after the lock
}

ObjectPtr find_object(const void* handle) {
  if (!handle) return nullptr;
  Shard& shard = shard_of(handle);
  std::lock_guard<SpinLock> lock(shard.mutex);
  const ObjectPtr* place = shard.live.find(handle);
  return place ? *place : nullptr;
}

ObjectPtr take_object(const void* handle) {
  if (!handle) return nullptr;
  Shard& shard = shard_of(handle);
  std::lock_guard<SpinLock> lock(shard.mutex);
  ObjectPtr* place = shard.live.find(handle);
  if (!place) return nullptr;
  ObjectPtr last = std::move(*place);
  shard.live.erase(place);
  return last;
}

const Geometry* intern_geometry(const Geometry& wanted, bool* made) {
  static std::atomic<const Geometry*> recent[kRecent];
  uint64_t hash = hash_of(wanted);
  std::atomic<const Geometry*>& place = recent[hash % kRecent];
  const Geometry* last = place.load(std::memory_order_acquire);
  *made = false;
  if (last && last->id != 0 && same(*last, wanted)) return last;
  last = intern_among_all(wanted, hash, made);
  place.store(last, std::memory_order_release);
  return last;
}

void forget_objects() {
  for (int i = 0; i < kShards; ++i) {
    Live none;
    std::lock_guard<SpinLock> lock(shards()[i].mutex);
    std::swap(shards()[i].live, none);
  }
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
