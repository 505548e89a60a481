// Owns device memory of one device: stream-ordered pools of cached blocks; refuses other devices'.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "bins.h"
#include "device.h"

namespace launch {

// Free blocks that one stream may use at once: what was enqueued before on that stream is done
// with a block before anything enqueued later touches it.
struct Pool {
  Stream* stream;
  SmallBins small;
  LargeBins large;
  bool kept = false;       // captured work uses it: its segments stay, free or not
  Pool* before = nullptr;  // what the stream had, while a kept pool stands in for it
};

// Bytes before a guarded block, and at least so many behind it.
constexpr uint64_t kGuard = 512;
inline uint64_t before_block() { return memory_guard ? kGuard : 0; }

class Allocator {
 public:
  Allocator(Context* context, uint32_t event_flags) : context_(context), event_flags_(event_flags) {}
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Address of a block of at least `bytes`, 0 after recording a failure in `phase`.
  uint64_t allocate(Pool* pool, uint64_t bytes, mt_purpose purpose, mt_phase phase);
  enum Freed { kFreed, kUnknown, kBusy };
  // kUnknown: no live block starts at `address`. kBusy: another thread is in here; `wait` waits.
  Freed free(uint64_t address, bool wait = true);
  bool record(uint64_t address, Stream* stream);
  // Records `stream` on each address that is a block of another stream; others are skipped.
  void note(const uint64_t* addresses, uint64_t count, Stream* stream);
  // The streams with work on the block that holds `address`: its own, and those recorded on it.
  std::vector<Stream*> users(uint64_t address);
  bool describe(uint64_t address, mt_block* block);
  int32_t empty();
  void limit(uint64_t bytes);
  void read(mt_memory* memory);
  void reset_peak();
  uint64_t holdings(mt_holding* rows, uint64_t room);
  uint64_t trespasses(mt_trespass* rows, uint64_t room);
  Pool* add_pool(Stream* stream);
  // Hands what `from` holds to `to`; the stream of `from` must be idle.
  void merge_pool(Pool* from, Pool* to);
  void close();

 private:
  struct Pending {
    Stream* stream;
    Handle event;  // null: the stream was being captured
    Block* block;
  };

  Block* find(uint64_t address) const;
  void guard(Block* block);
  void inspect(Block* block);
  void inspect_all();
  Block* take(Pool* pool, uint64_t bytes, bool small);
  Block* borrow(Pool* pool, uint64_t bytes, bool small);
  Block* grow(Pool* pool, uint64_t bytes, bool small, mt_phase phase);
  Block* add_segment(Pool* pool, void* address, uint64_t bytes, bool small);
  int32_t obtain(void** address, uint64_t bytes);
  void split(Block* block, uint64_t bytes);
  void release(Block* block);
  void put(Block* block);
  void remove(Block* block);
  Block* absorb(Block* block);
  void coalesce(Pool* pool);
  void coalesce_all();
  void defer(Block* block);
  bool captures(const Stream* stream) const;
  bool is_done(Pending* pending);
  void settle();
  void finish_pending();
  bool trim(uint64_t bytes);
  uint64_t drop_segments();
  void drop(Block* block);
  Handle mark(Stream* stream);
  Handle take_event();

  std::mutex mutex_;
  Context* context_;
  uint32_t event_flags_;
  BlockIndex index_;
  std::vector<Pool*> pools_;
  std::unordered_map<uint64_t, Block*> segments_;  // first block of each, by address
  std::deque<Pending> pending_;
  std::vector<Handle> events_;
  mt_memory stats_{};
  uint64_t most_used_ = 0, trimmed_to_ = 0;
  std::vector<Block*> quarantine_;
  uint64_t quarantined_ = 0;  // bytes of those
  uint64_t guards_ = 0;       // blocks that were guarded
  std::vector<mt_trespass> trespasses_;
};

}  // namespace launch
