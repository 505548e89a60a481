// Owns the safety of blocks that more than one stream uses, and the account of what is held.
#include <algorithm>

#include "allocator.h"

namespace launch {

namespace {

constexpr uint64_t kFreely = 128 << 20;  // held without a look at what is in use

constexpr int32_t kComplete = 1;  // ACL_EVENT_RECORDED_STATUS_COMPLETE (acl_rt.h)

void add_user(Block* block, Stream* stream) {
  if (!block->users) block->users = new std::vector<Stream*>();
  auto& users = *block->users;
  if (std::find(users.begin(), users.end(), stream) == users.end()) users.push_back(stream);
}

bool is_capturing(const Pool* pool) { return pool->kept && pool->stream->pool == pool; }

}  // namespace

bool Allocator::record(uint64_t address, Stream* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  Block* block = find(address);
  if (!block || !block->used) return false;
  if (block->pool != stream->pool) add_user(block, stream);
  return true;
}

void Allocator::note(const uint64_t* addresses, uint64_t count, Stream* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (uint64_t k = 0; k < count; ++k) {
    Block* block = find(addresses[k]);
    if (block && block->used && block->pool != stream->pool) add_user(block, stream);
  }
}

// Waits for a stream on behalf of nobody who would ask whether its work failed.
static void wait_unasked(Stream* stream) {
  if (enter(stream->context) != 0) return drain_messages();
  if (const int32_t code = acl.aclrtSynchronizeStream(stream->handle))
    note_unseen(stream->device, code, "aclrtSynchronizeStream", stream);
}

// Whether the stream, or one that it forked from, is being captured. An event in a capture stands for
// work that has not run, and to ask for it ends the capture.
bool Allocator::captures(const Stream* stream) const {
  if (is_capturing(stream->pool)) return true;
  if (!acl.aclmdlRICaptureGetInfo || std::none_of(pools_.begin(), pools_.end(), is_capturing))
    return false;
  int32_t status = 0;
  Handle model = nullptr;
  return acl.aclmdlRICaptureGetInfo(stream->handle, &status, &model) == 0 && status != 0;
}

// A freed block that other streams used is free once what they had queued by now is done.
// Events come from a pool: creating one was measured at 350 us on hardware.
void Allocator::defer(Block* block) {
  std::vector<Stream*> users;
  users.swap(*block->users);
  delete block->users;
  block->users = nullptr;
  for (Stream* stream : users) {
    if (stream->session == 0) continue;
    if (stream->context->device != context_->device) {
      // An event is of one device; copies between devices are rare enough to wait for.
      wait_unasked(stream);
      continue;
    }
    Handle event = nullptr;
    if (!captures(stream) && !(event = mark(stream))) continue;
    pending_.push_back({stream, event, block});
    ++block->pending;
  }
  if (block->pending == 0) {
    release(block);
    return;
  }
  ++stats_.pending_blocks;
  stats_.pending_bytes += block->bytes;
}

// An event behind what the stream has queued; null after waiting for it, where none is to be had.
Handle Allocator::mark(Stream* stream) {
  enter(stream->context);
  Handle event = take_event();
  if (event && acl.aclrtRecordEvent(event, stream->handle) == 0) return event;
  drain_messages();
  wait_unasked(stream);
  if (event) events_.push_back(event);
  return nullptr;
}

Handle Allocator::take_event() {
  if (!events_.empty()) {
    Handle event = events_.back();
    events_.pop_back();
    return event;
  }
  Handle event = nullptr;
  if (create_event(&event, event_flags_) == 0) return event;
  drain_messages();
  return nullptr;
}

// Whether the stream has done what it had queued when the block was freed; for a block freed in the
// midst of a capture, what it had queued when the capture was over.
bool Allocator::is_done(Pending* pending) {
  if (!pending->event) {
    if (pending->stream->session == 0) return true;
    if (captures(pending->stream)) return false;
    pending->event = mark(pending->stream);
    if (!pending->event) return true;
  }
  int32_t status = 0;
  return acl.aclrtQueryEventStatus(pending->event, &status) == 0 && status == kComplete;
}

// Frees the blocks whose events have completed. Events of one stream complete in order, so one
// that has not ends the search of its stream.
void Allocator::settle() {
  std::vector<Stream*> busy;
  for (auto at = pending_.begin(); at != pending_.end();) {
    const bool skip = std::find(busy.begin(), busy.end(), at->stream) != busy.end();
    if (skip || !is_done(&*at)) {
      if (!skip) busy.push_back(at->stream);
      ++at;
      continue;
    }
    if (at->event) events_.push_back(at->event);
    if (--at->block->pending == 0) {
      --stats_.pending_blocks;
      stats_.pending_bytes -= at->block->bytes;
      release(at->block);
    }
    at = pending_.erase(at);
  }
}

namespace {

// Bytes of the segment that begins with `first`; 0 while any of it is in use.
uint64_t free_bytes(const Block* first) {
  uint64_t bytes = 0;
  for (const Block* block = first; block; block = block->after) {
    if (block->used) return 0;
    bytes += block->bytes;
  }
  return bytes;
}

// Whether all that was queued on `stream` is done.
bool is_idle(const Stream* stream) {
  int32_t status = -1;
  const int32_t code = acl.aclrtStreamQuery(stream->handle, &status);
  if (code) note_unseen(stream->device, code, "aclrtStreamQuery", stream);
  return code == 0 && status == 0;  // ACL_STREAM_STATUS_COMPLETE (acl_rt.h)
}

}  // namespace

// Takes the smallest wholly free segment that is large enough from a stream with nothing to do, so
// that streams which work in turn hold what one of them needs. The block is in no bin.
Block* Allocator::borrow(Pool* pool, uint64_t bytes, bool small) {
  // A query in the midst of a capture is refused by ACL, and ends the capture.
  if (pools_.size() < 2 || !acl.aclrtStreamQuery) return nullptr;
  if (std::any_of(pools_.begin(), pools_.end(), is_capturing)) return nullptr;
  Block* best = nullptr;
  uint64_t best_bytes = ~uint64_t{0};
  std::vector<const Pool*> busy;
  for (auto& [address, first] : segments_) {
    const Pool* owner = first->pool;
    if (owner == pool || owner->kept || first->small != small) continue;
    if (owner->stream->context != pool->stream->context) continue;
    if (std::find(busy.begin(), busy.end(), owner) != busy.end()) continue;
    const uint64_t room = free_bytes(first);
    if (room < bytes || room >= best_bytes) continue;
    if (!is_idle(owner->stream)) {
      busy.push_back(owner);
      continue;
    }
    best = first;
    best_bytes = room;
  }
  if (!best) return nullptr;
  remove(best);
  while (best->after) best = absorb(best);
  best->pool = pool;
  return best;
}

// Before one more segment of `bytes`: gives wholly free ones back once more is held than twice what
// was ever in use, as sizes that grow leave behind segments that nothing fits any more. What is in
// use in part stays; then it is asked again only once half as much as was in use has been added.
bool Allocator::trim(uint64_t bytes) {
  most_used_ = std::max(most_used_, stats_.allocated_bytes[0].peak);
  const uint64_t held = stats_.reserved_bytes[0].current + bytes;
  if (held <= std::max({kFreely, 2 * most_used_, trimmed_to_ + most_used_ / 2})) return false;
  if (std::any_of(pools_.begin(), pools_.end(), is_capturing)) return false;  // no wait then
  finish_pending();
  drop_segments();
  trimmed_to_ = stats_.reserved_bytes[0].current + bytes;
  return true;
}

void Allocator::finish_pending() {
  __atomic_fetch_add(&counts.host_syncs, 1, __ATOMIC_RELAXED);
  if (const int32_t code = acl.aclrtSynchronizeDevice())
    note_unseen(context_->device, code, "aclrtSynchronizeDevice");
  settle();
}

bool Allocator::describe(uint64_t address, mt_block* out) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Block* block = find(address);
  if (!block || !block->used) return false;
  *out = {block->address + before_block(), block->bytes, block->requested,
          reinterpret_cast<uint64_t>(block->pool->stream), block->purpose,
          static_cast<int32_t>(block->pending)};
  return true;
}

void Allocator::read(mt_memory* memory) {
  std::lock_guard<std::mutex> lock(mutex_);
  *memory = stats_;
  auto count = [memory](const Block* block) {
    ++memory->free_blocks;
    memory->free_bytes += block->bytes;
    memory->largest_free = std::max(memory->largest_free, block->bytes);
  };
  for (const Pool* pool : pools_) {
    pool->small.each(count);
    pool->large.each(count);
  }
}

void Allocator::reset_peak() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (int k = 0; k < 3; ++k) {
    for (mt_gauge* gauge : {&stats_.allocation[k], &stats_.allocated_bytes[k],
                            &stats_.requested_bytes[k], &stats_.segment[k],
                            &stats_.reserved_bytes[k]}) {
      gauge->peak = gauge->current;
    }
  }
}

uint64_t Allocator::holdings(mt_holding* rows, uint64_t room) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::unordered_map<const Pool*, mt_holding> held;
  for (auto& [address, first] : segments_) {
    for (const Block* block = first; block; block = block->after) {
      mt_holding& row = held[block->pool];
      uint64_t* by_purpose[] = {&row.tensors, &row.workspaces, &row.buffers};
      *(block->used ? by_purpose[block->purpose] : &row.cached) += block->bytes;
    }
  }
  uint64_t count = 0;
  for (const Pool* pool : pools_) {
    if (count == room) break;
    rows[count] = held[pool];
    rows[count++].stream = reinterpret_cast<uint64_t>(pool->stream);
  }
  return count;
}

}  // namespace launch
