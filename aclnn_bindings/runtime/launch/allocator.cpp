// Owns allocation, freeing and splitting of cached blocks; see allocator.h.
// Sizes: aclrtMalloc's document (CANN 9.1) asks sub-allocators to keep 32 bytes of padding behind
// each block and 64-byte starts; blocks are multiples of 512 bytes, which satisfies both.
#include "allocator.h"

#include <algorithm>

namespace launch {

namespace {

constexpr uint64_t kPadding = 32;
constexpr uint64_t kMostQuarantined = 256 << 20;  // bytes that wait for a look at their guards
constexpr uint64_t kLargeSegment = 20 << 20;     // for requests below 10 MiB
constexpr uint64_t kHugePage = 2 << 20;          // granularity of ACL_MEM_MALLOC_HUGE_FIRST
constexpr int32_t kHugeFirst = 0;                // ACL_MEM_MALLOC_HUGE_FIRST (acl_rt.h)

// Whether freed blocks stay in the pool. What captured work uses always does.
bool caches(const Pool* pool) { return memory_caching || pool->kept; }

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

uint64_t segment_bytes(uint64_t bytes, bool small) {
  if (small) return kSmallSegment;
  return bytes < kLargeSegment / 2 ? kLargeSegment : round_up(bytes, kHugePage);
}

void add(mt_gauge& gauge, uint64_t amount) {
  gauge.current += amount;
  gauge.allocated += amount;
  if (gauge.current > gauge.peak) gauge.peak = gauge.current;
}

void subtract(mt_gauge& gauge, uint64_t amount) {
  gauge.current -= amount;
  gauge.freed += amount;
}

void add_both(mt_gauge* gauges, bool small, uint64_t amount) {
  add(gauges[0], amount);
  add(gauges[small ? 1 : 2], amount);
}

void subtract_both(mt_gauge* gauges, bool small, uint64_t amount) {
  subtract(gauges[0], amount);
  subtract(gauges[small ? 1 : 2], amount);
}

}  // namespace

uint64_t Allocator::allocate(Pool* pool, uint64_t bytes, mt_purpose purpose, mt_phase phase) {
  const uint64_t around = memory_guard ? 2 * kGuard : kPadding;
  const uint64_t rounded = round_up(bytes + around, kGranule);
  const bool small = rounded <= kSmallLimit;
  if (rounded < bytes) {
    fail(phase, MT_OVER_LIMIT, "mt_alloc", bytes);
    return 0;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (quarantined_ > kMostQuarantined) inspect_all();
  if (!pending_.empty()) settle();
  const bool cached = caches(pool);
  Block* block = cached ? take(pool, rounded, small) : nullptr;
  if (!block) block = grow(pool, cached || memory_guard ? rounded : bytes, small, phase);
  if (!block) return 0;
  if (cached) split(block, rounded);
  block->used = true;
  block->requested = bytes;
  block->purpose = static_cast<uint8_t>(purpose);
  add_both(stats_.allocation, block->small, 1);
  add_both(stats_.allocated_bytes, block->small, block->bytes);
  add_both(stats_.requested_bytes, block->small, bytes);
  stats_.purpose_bytes[purpose] += block->bytes;
  if (memory_guard) guard(block);
  return block->address + before_block();
}

Block* Allocator::take(Pool* pool, uint64_t bytes, bool small) {
  Block* block = small ? pool->small.find(bytes) : pool->large.find(bytes);
  if (block) remove(block);
  return block;
}

void Allocator::put(Block* block) {
  if (block->small) {
    block->pool->small.put(block);
  } else {
    block->pool->large.put(block);
  }
}

void Allocator::remove(Block* block) {
  if (block->small) {
    block->pool->small.remove(block);
  } else {
    block->pool->large.remove(block);
  }
}

void Allocator::split(Block* block, uint64_t bytes) {
  const uint64_t rest = block->bytes - bytes;
  if (block->small ? rest < kGranule : rest <= kSmallLimit) return;
  auto* tail = new Block(*block);
  tail->address = block->address + bytes;
  tail->bytes = rest;
  tail->before = block;
  tail->users = nullptr;
  tail->pending = 0;
  tail->guard = 0;
  tail->used = tail->quarantined = false;
  if (block->after) block->after->before = tail;
  block->after = tail;
  block->bytes = bytes;
  index_.insert(tail);
  put(tail);
}

Allocator::Freed Allocator::free(uint64_t address, bool wait) {
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  if (wait) lock.lock();
  else if (!lock.try_lock()) return kBusy;
  Block* block = find(address);
  if (!block || !block->used || block->pending || block->quarantined) return kUnknown;
  subtract_both(stats_.allocation, block->small, 1);
  subtract_both(stats_.allocated_bytes, block->small, block->bytes);
  subtract_both(stats_.requested_bytes, block->small, block->requested);
  stats_.purpose_bytes[block->purpose] -= block->bytes;
  if (block->guard) {
    block->quarantined = true;
    quarantine_.push_back(block);
    quarantined_ += block->bytes;
  } else if (block->users) {
    defer(block);
  } else {
    release(block);
  }
  return kFreed;
}

// Small blocks keep their size for the next request of it; large ones merge at once.
void Allocator::release(Block* block) {
  block->used = false;
  if (!caches(block->pool) && !block->before && !block->after) {
    if (enter(context_) != 0) {
      drain_messages();
    } else if (const int32_t code = acl.aclrtSynchronizeDevice()) {
      note_unseen(context_->device, code, "aclrtSynchronizeDevice");
    }
    return drop(block);
  }
  put(block->small ? block : absorb(block));
}

// Merges free neighbours into `block`, which is in no bin, and returns the merged block.
Block* Allocator::absorb(Block* block) {
  if (Block* after = block->after; after && !after->used) {
    remove(after);
    index_.erase(after);
    block->bytes += after->bytes;
    block->after = after->after;
    if (block->after) block->after->before = block;
    delete after;
  }
  Block* before = block->before;
  if (!before || before->used) return block;
  remove(before);
  index_.erase(block);
  before->bytes += block->bytes;
  before->after = block->after;
  if (before->after) before->after->before = before;
  delete block;
  return before;
}

void Allocator::coalesce(Pool* pool) {
  for (auto& [address, first] : segments_) {
    if (first->pool != pool || !first->small) continue;
    for (Block* block = first; block; block = block->after) {
      if (block->used || !block->after || block->after->used) continue;
      remove(block);
      while (block->after && !block->after->used) block = absorb(block);
      put(block);
    }
  }
}

void Allocator::coalesce_all() {
  for (Pool* pool : pools_) coalesce(pool);
}

Block* Allocator::grow(Pool* pool, uint64_t bytes, bool small, mt_phase phase) {
  const bool cached = caches(pool);
  if (small && cached) {
    coalesce(pool);
    if (Block* block = take(pool, bytes, small)) return block;
  }
  if (Block* block = cached ? borrow(pool, bytes, small) : nullptr) return block;
  void* address = nullptr;
  uint64_t segment = cached ? segment_bytes(bytes, small) : std::max<uint64_t>(bytes, 1);
  if (cached && trim(segment)) {
    if (Block* block = take(pool, bytes, small)) return block;
  }
  int32_t code = obtain(&address, segment);
  if (code == 0) return add_segment(pool, address, segment, small);
  ++stats_.retries;
  if (memory_guard) inspect_all();
  finish_pending();
  drop_segments();
  if (Block* block = cached ? take(pool, bytes, small) : nullptr) return block;
  code = obtain(&address, segment);
  if (code != 0 && segment > bytes) {
    segment = bytes;
    code = obtain(&address, segment);
  }
  if (code == 0) {
    drain_messages();
    return add_segment(pool, address, segment, small);
  }
  ++stats_.ooms;
  fail(phase, code, acl.aclrtMallocAlign32 ? "aclrtMallocAlign32" : "aclrtMalloc", bytes);
  return nullptr;
}

int32_t Allocator::obtain(void** address, uint64_t bytes) {
  const uint64_t reserved = stats_.reserved_bytes[0].current;
  if (stats_.limit && reserved + bytes > stats_.limit) return MT_OVER_LIMIT;
  // aclrtMalloc adds 32 bytes to what is asked, which would spill into one more huge page;
  // our padding is inside the blocks already.
  const bool padded = !memory_caching || !acl.aclrtMallocAlign32;
  return !padded ? acl.aclrtMallocAlign32(address, bytes, kHugeFirst)
                                : acl.aclrtMalloc(address, bytes, kHugeFirst);
}

Block* Allocator::add_segment(Pool* pool, void* address, uint64_t bytes, bool small) {
  auto* block = new Block{};
  block->address = reinterpret_cast<uint64_t>(address);
  block->bytes = bytes;
  block->pool = pool;
  block->small = small;
  index_.insert(block);
  segments_.emplace(block->address, block);
  add_both(stats_.segment, small, 1);
  add_both(stats_.reserved_bytes, small, bytes);
  return block;
}

// Returns wholly free segments to the device; the caller has made the device idle, because
// aclrtFree does not wait for work that is still queued. Gives the bytes returned.
uint64_t Allocator::drop_segments() {
  coalesce_all();
  uint64_t bytes = 0;
  for (auto at = segments_.begin(); at != segments_.end();) {
    Block* block = at->second;
    if (block->used || block->after || block->pool->kept) {
      ++at;
      continue;
    }
    ++at;
    bytes += block->bytes;
    remove(block);
    drop(block);
  }
  return bytes;
}

// Returns one segment, in no bin, to the device.
void Allocator::drop(Block* block) {
  index_.erase(block);
  segments_.erase(block->address);
  acl.aclrtFree(reinterpret_cast<void*>(block->address));
  subtract_both(stats_.segment, block->small, 1);
  subtract_both(stats_.reserved_bytes, block->small, block->bytes);
  delete block;
}

int32_t Allocator::empty() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (memory_guard) inspect_all();
  finish_pending();
  drop_segments();
  return 0;
}

void Allocator::limit(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.limit = bytes;
}

Pool* Allocator::add_pool(Stream* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  pools_.push_back(new Pool{stream, {}, {}});
  return pools_.back();
}

void Allocator::merge_pool(Pool* from, Pool* to) {
  std::lock_guard<std::mutex> lock(mutex_);
  settle();
  for (auto& [address, first] : segments_) {
    for (Block* block = first; block; block = block->after) {
      if (block->users) {
        auto& users = *block->users;
        users.erase(std::remove(users.begin(), users.end(), from->stream), users.end());
      }
      if (block->pool != from) continue;
      if (!block->used) remove(block);
      block->pool = to;
      if (!block->used) put(block);
    }
  }
  pools_.erase(std::remove(pools_.begin(), pools_.end(), from), pools_.end());
  delete from;
}

std::vector<Stream*> Allocator::users(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& segment : segments_) {
    for (Block* block = segment.second; block; block = block->after) {
      if (address < block->address) break;
      if (address >= block->address + block->bytes) continue;
      std::vector<Stream*> streams{block->pool->stream};
      if (block->users) streams.insert(streams.end(), block->users->begin(), block->users->end());
      return streams;
    }
  }
  return {};
}

// Returns everything, blocks in use too, because their device goes away; the device is idle.
void Allocator::close() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Pending& pending : pending_)
    if (pending.event) acl.aclrtDestroyEvent(pending.event);
  for (Handle event : events_) acl.aclrtDestroyEvent(event);
  for (auto& [address, first] : segments_) {
    acl.aclrtFree(reinterpret_cast<void*>(address));
    for (Block* block = first; block;) {
      Block* after = block->after;
      delete block->users;
      delete block;
      block = after;
    }
  }
  for (Pool* pool : pools_) delete pool;
  pending_.clear();
  events_.clear();
  segments_.clear();
  pools_.clear();
  quarantine_.clear();
  index_.clear();
}

}  // namespace launch
