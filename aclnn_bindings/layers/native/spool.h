// The shared file through which a process hands records to the collector: slots that one thread
// fills at a time. What was written is in the kernel's pages, so that it outlives a killed process.
// Layout: `spool.py`, which makes the file.
#pragma once

#include <atomic>
#include <cstdint>

namespace layers {

constexpr uint64_t kSpoolMagic = 0x314F4F50534C434DULL;  // "MCLSPOO1"

struct SpoolHead {
  uint64_t magic;
  uint32_t slot_count, slot_size;
  uint32_t collector;                  // process id of who empties the slots
  std::atomic<uint32_t> heartbeat;     // it counts, as long as it runs
  std::atomic<uint64_t> next_call;     // numbers of calls, across processes
  std::atomic<uint32_t> next_process;  // numbers of processes
  std::atomic<uint32_t> stopped;       // the collector takes no more
  std::atomic<uint64_t> lost;          // records that found no room
};

enum SlotState : uint32_t { kFree = 0, kFilling = 1, kFull = 2 };

struct SlotHead {
  std::atomic<uint32_t> state;
  uint32_t process;            // number in the spool
  uint32_t pid, thread;
  std::atomic<uint32_t> used;  // bytes that are complete
  uint32_t drained;            // the collector's
  uint32_t function, detail;   // the call under way: its function + 1, or 0
  uint64_t number;
  uint32_t unused[6];
};
static_assert(sizeof(SlotHead) == 64, "spool.py makes 64 bytes");
constexpr uint64_t kSlotsAt = 4096;

// Maps the file; false when it is none.
bool open_spool(const char* path);
bool spool_is_open();
uint64_t next_call_number();
// Room for `size` bytes (a multiple of 64) in the calling thread's slot; null when the collector is
// gone, and then for ever. `commit` makes them readable. One piece holds at most `piece_size()`.
char* reserve(uint32_t size);
void commit(uint32_t size);
uint32_t piece_size();
// The call that this thread is in, for whoever reads what a crash left.
void mark_running(uint32_t function, uint32_t detail, uint64_t number);
// After a fork the child has slots and numbers of its own.
void spool_after_fork();

}  // namespace layers
