// Owns the guards around blocks: what they hold, and what was written over it; see mt_memory_guard.
// A block that is freed waits in a quarantine until its guards were looked at, because the work
// that used it may still be queued.

#include "allocator.h"

namespace launch {

namespace {

constexpr int32_t kToDevice = 1, kToHost = 2;  // ACL_MEMCPY_HOST_TO_DEVICE, _DEVICE_TO_HOST (acl_rt.h)
constexpr uint64_t kAtOnce = 64 << 10;         // bytes of a block that one copy fills
constexpr int32_t kButForRoom = 2;  // mode of mt_memory_guard

// Byte `at` of the guards of a block. Each block has others, so that a copy that runs over both
// ends changes them; as a float of any width they are NaN or huge, so that who reads them shows.
uint8_t guard_byte(uint64_t guard, uint64_t at) {
  uint64_t mixed = (guard + at / 8) * 0x9E3779B97F4A7C15u;
  mixed ^= mixed >> 29;
  mixed *= 0xBF58476D1CE4E5B9u;
  const uint64_t byte = mixed >> (8 * (at % 8)) & 0xFF;
  return static_cast<uint8_t>((byte & 0x80) | (0x7B + byte % 5));
}

// Bytes [from, to) of the guards of a block.
void write_guard(char* bytes, uint64_t guard, uint64_t from, uint64_t to) {
  for (uint64_t at = from; at < to; ++at) *bytes++ = static_cast<char>(guard_byte(guard, at));
}

// How many bytes of [from, to) of a block are no longer its guard; `first` gets the first one.
uint64_t changed(const Block* block, uint64_t from, uint64_t to, uint64_t* first) {
  std::vector<char> now(to - from);
  acl.aclrtMemcpy(now.data(), now.size(), reinterpret_cast<void*>(block->address + from),
                  now.size(), kToHost);
  uint64_t count = 0;
  for (uint64_t at = from; at < to; ++at) {
    if (static_cast<uint8_t>(now[at - from]) == guard_byte(block->guard, at)) continue;
    if (!count++) *first = at;
  }
  return count;
}

void rewrite(const Block* block, uint64_t from, const std::vector<char>& bytes) {
  acl.aclrtMemcpy(reinterpret_cast<void*>(block->address + from), bytes.size(), bytes.data(),
                  bytes.size(), kToDevice);
}

// Writes the guards before and behind a block.
void rewrite_guards(const Block* block) {
  const uint64_t end = kGuard + block->requested;
  std::vector<char> text(kGuard);
  write_guard(text.data(), block->guard, 0, kGuard);
  rewrite(block, 0, text);
  text.resize(block->bytes - end);
  write_guard(text.data(), block->guard, end, block->bytes);
  rewrite(block, end, text);
}

}  // namespace

Block* Allocator::find(uint64_t address) const { return index_.find(address - before_block()); }

// Fills the guards of a fresh block, and what is between them with garbage.
void Allocator::guard(Block* block) {
  if (block->pool->kept) return;  // a capture would take the copies along
  block->guard = ++guards_ * 0x2545F4914F6CDD1Du | 1;
  const uint64_t bytes = block->requested, end = kGuard + bytes;
  if (memory_garbage >= 0 && block->bytes <= kAtOnce) {
    std::vector<char> text(block->bytes, static_cast<char>(memory_garbage));
    write_guard(text.data(), block->guard, 0, kGuard);
    write_guard(text.data() + end, block->guard, end, block->bytes);
    return rewrite(block, 0, text);
  }
  rewrite_guards(block);
  if (memory_garbage < 0 || !bytes) return;
  acl.aclrtMemsetAsync(reinterpret_cast<void*>(block->address + kGuard), bytes, memory_garbage,
                       bytes, block->pool->stream->handle);
}

// Records what was written over the guards of a block, and writes them again.
void Allocator::inspect(Block* block) {
  const uint64_t end = kGuard + block->requested;
  const uint64_t room = memory_guard == kButForRoom ? (end + 31) / 32 * 32 + 32 : end;
  uint64_t first = room, unused = 0;
  const uint64_t before = changed(block, 0, kGuard, &unused);
  const uint64_t behind = changed(block, room, block->bytes, &first);
  if (!before && !behind) return;
  trespasses_.push_back({block->address + kGuard, block->requested, before, behind, first - end,
                         block->purpose, 0});
  rewrite_guards(block);
}

// Waits for the device, looks at all guards, and releases what was in quarantine.
void Allocator::inspect_all() {
  if (enter(context_) != 0) return drain_messages();
  if (const int32_t code = acl.aclrtSynchronizeDevice())
    note_unseen(context_->device, code, "aclrtSynchronizeDevice");
  for (auto& segment : segments_)
    for (Block* block = segment.second; block; block = block->after)
      if (block->used && block->guard) inspect(block);
  std::vector<Block*> freed;
  freed.swap(quarantine_);
  quarantined_ = 0;
  for (Block* block : freed) {
    delete block->users;
    block->users = nullptr;
    block->quarantined = false;
    block->guard = 0;
    release(block);
  }
}

uint64_t Allocator::trespasses(mt_trespass* rows, uint64_t room) {
  std::lock_guard<std::mutex> lock(mutex_);
  inspect_all();
  const uint64_t count = trespasses_.size();
  for (uint64_t k = 0; k < count && k < room; ++k) rows[k] = trespasses_[k];
  trespasses_.clear();
  return count;
}

}  // namespace launch
