// The shared file through which a process hands records to the collector: slots that one thread
// fills at a time. What was written is in the kernel's pages, so that it outlives a killed process.
// Layout: `spool.py`, which makes the file.
#pragma once

#include <atomic>
#include <cstdint>

namespace layers {

constexpr uint64_t kSpoolMagic = 0x324F4F50534C434DULL;  // "MCLSPOO2"

struct SpoolHead {
  uint64_t magic;
  uint32_t slot_count, slot_size;
  uint32_t collector;                      // process id of who empties the slots
  std::atomic<uint32_t> heartbeat;         // it counts, as long as it runs
  std::atomic<uint64_t> next_call;         // numbers of calls, across processes
  std::atomic<uint32_t> next_process;      // numbers of processes
  std::atomic<uint32_t> stopped;           // the collector takes no more
  std::atomic<uint64_t> lost;              // records that found no room
  std::atomic<uint64_t> next_sequence;     // order in which slots were taken
  uint64_t pid_namespace;                  // inode of the collector's; process ids count there
};

// The low bits of a slot's state; the rest counts how often the slot was taken.
enum SlotState : uint32_t { kFree = 0, kFilling = 1, kFull = 2, kWriting = 3, kStateBits = 3 };
constexpr uint32_t kOneTaking = 4;

struct alignas(64) SlotHead {
  std::atomic<uint32_t> state;
  uint32_t process;            // number in the spool
  uint32_t pid, thread;
  std::atomic<uint32_t> used;  // bytes that are complete
  uint32_t drained;            // the collector's
  std::atomic<uint32_t> function;  // + 1, of the call under way; 0: none
  uint32_t detail;                 // of that call
  uint64_t number;
  uint64_t sequence;
  uint64_t pid_namespace;      // inode of the one that `pid` counts in; 0: unknown
};
static_assert(sizeof(SlotHead) == 64, "spool.py makes 64 bytes");
constexpr uint64_t kSlotsAt = 4096;

// Maps the file; false when it is none.
bool open_spool(const char* path);
bool spool_is_open();
uint64_t next_call_number();
// Room for `size` bytes (a multiple of 64) in the calling thread's slot, which nobody else takes
// until `commit` makes them readable; null when the collector is gone, and then for ever. One piece
// holds at most `piece_size()`.
char* reserve(uint32_t size);
void commit(uint32_t size);
uint32_t piece_size();
// The call that this thread is in, for whoever reads what a crash left.
void mark_running(uint32_t function, uint32_t detail, uint64_t number);
// After a fork the child has slots and numbers of its own.
void spool_after_fork();

}  // namespace layers
