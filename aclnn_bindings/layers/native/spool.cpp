#include "spool.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "clock.h"
#include "core.h"

namespace layers {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, of Linux 5.14

SpoolHead* head = nullptr;
SlotHead* slots = nullptr;
char* data_start = nullptr;
// As they were when it was opened: other processes can write there.
uint32_t slot_count = 0, slot_size = 0;
uint32_t process_number = 0;
uint64_t own_namespace = 0;
std::atomic<uint32_t> epoch{0};  // changes at a fork: slots of the parent are not ours

struct Writer {
  SlotHead* slot;
  char* data;
  uint32_t epoch;
  uint32_t state;  // of the slot, as long as it is this thread's
  bool writing;    // between `reserve` and `commit`
};
// Nothing to construct or destroy, so that reading it costs no check of whether it was.
thread_local Writer writer LAYER_TLS = {nullptr, nullptr, 0, 0, false};

// Makes the slot this thread's alone; false when another thread closed it for want of slots.
bool lock_slot() {
  if (!writer.slot) return false;
  uint32_t filling = writer.state;
  if (writer.epoch == epoch.load(std::memory_order_relaxed) &&
      writer.slot->state.compare_exchange_strong(filling, writer.state | kWriting,
                                                 std::memory_order_acq_rel))
    return true;
  writer.slot = nullptr;
  return false;
}

void unlock_slot() { writer.slot->state.store(writer.state, std::memory_order_release); }

// Of a locked slot: the collector may have it.
void close_slot() {
  writer.slot->function = 0;
  writer.slot->state.store((writer.state & ~kStateBits) | kFull, std::memory_order_release);
  writer.slot = nullptr;
}

// Touched by a thread that takes a slot; gives it back when the thread ends.
struct AtThreadEnd {
  bool watched = false;
  ~AtThreadEnd() {
    if (!writer.writing && lock_slot()) close_slot();
  }
};
thread_local AtThreadEnd at_thread_end;

uint64_t pid_namespace() {
  struct stat facts;
  return stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

// Where process ids count otherwise, only the heartbeat tells.
bool collector_lives() {
  return !head->stopped.load(std::memory_order_relaxed) &&
         (own_namespace != head->pid_namespace ||
          kill(static_cast<pid_t>(head->collector), 0) == 0 || errno != ESRCH);
}

bool take_free_slot() {
  static std::atomic<uint32_t> start{0};
  for (uint32_t i = 0, at = start.load(std::memory_order_relaxed); i < slot_count; ++i) {
    uint32_t number = (at + i) % slot_count;
    SlotHead& slot = slots[number];
    uint32_t seen = slot.state.load(std::memory_order_relaxed);
    uint32_t taken = ((seen & ~kStateBits) + kOneTaking) | kFilling;
    if ((seen & kStateBits) != kFree ||
        !slot.state.compare_exchange_strong(seen, taken | kWriting, std::memory_order_acq_rel))
      continue;
    slot.process = process_number;
    slot.pid = static_cast<uint32_t>(getpid());
    slot.pid_namespace = own_namespace;
    slot.function = 0;
    slot.thread = static_cast<uint32_t>(syscall(SYS_gettid));
    slot.sequence = head->next_sequence.fetch_add(1) + 1;
    char* data = data_start + static_cast<uint64_t>(number) * slot_size;
    writer = {&slot, data, epoch.load(), taken, false};
    at_thread_end.watched = true;
    // All pages of the slot at once, rather than a fault for each; older kernels refuse.
    madvise(writer.data, slot_size, kPopulateWrite);
    start.store(number + 1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

bool any_slot_is_full() {
  for (uint32_t i = 0; i < slot_count; ++i)
    if ((slots[i].state.load(std::memory_order_relaxed) & kStateBits) == kFull) return true;
  return false;
}

// Closes a quarter of other threads' slots, for there are more live threads than slots: first of
// those that are in no call. Their threads take new ones when they have something to write.
void close_idle_slots() {
  uint32_t closed = 0;
  for (bool in_call : {false, true})
    for (uint32_t i = 0; i < slot_count && closed <= slot_count / 4; ++i) {
      SlotHead& slot = slots[i];
      uint32_t seen = slot.state.load(std::memory_order_relaxed);
      if ((seen & kStateBits) == kFilling && in_call == (slot.function != 0) &&
          slot.state.compare_exchange_strong(seen, (seen & ~kStateBits) | kFull,
                                             std::memory_order_acq_rel))
        ++closed;
    }
}

// How long a collector may take none of the full slots, its disk being slow.
constexpr uint64_t kPatienceNs = 10'000'000'000;
constexpr useconds_t kShortestUs = 200, kLongestUs = 10'000;

// Waits for the collector rather than fill memory; the slot is locked then.
bool wait_for_slot() {
  uint32_t beat = head->heartbeat.load();
  uint64_t since = now_ns();
  useconds_t pause = kShortestUs;
  while (!take_free_slot()) {
    if (head->heartbeat.load() != beat) {
      beat = head->heartbeat.load();
      since = now_ns();
    }
    if (now_ns() - since > kPatienceNs || (pause == kLongestUs && !collector_lives())) {
      step_aside("the recording's collector is gone");
      return false;
    }
    if (!any_slot_is_full()) close_idle_slots();
    usleep(pause);
    pause = std::min(2 * pause, kLongestUs);
  }
  return true;
}

}  // namespace

bool open_spool(const char* path) {
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  struct stat facts;
  void* data = fstat(file, &facts) == 0 && facts.st_size > static_cast<off_t>(kSlotsAt)
                   ? mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ | PROT_WRITE,
                          MAP_SHARED, file, 0)
                   : MAP_FAILED;
  close(file);
  if (data == MAP_FAILED) return false;
  auto* found = static_cast<SpoolHead*>(data);
  if (found->magic != kSpoolMagic ||
      kSlotsAt + found->slot_count * (sizeof(SlotHead) + uint64_t{found->slot_size}) >
          static_cast<uint64_t>(facts.st_size))
    return false;
  slots = reinterpret_cast<SlotHead*>(static_cast<char*>(data) + kSlotsAt);
  data_start = reinterpret_cast<char*>(slots + found->slot_count);
  slot_count = found->slot_count;
  slot_size = found->slot_size;
  process_number = found->next_process.fetch_add(1);
  own_namespace = pid_namespace();
  head = found;
  return true;
}

bool spool_is_open() { return head != nullptr; }

uint64_t next_call_number() {
  return head ? head->next_call.fetch_add(1, std::memory_order_relaxed) : 0;
}

uint32_t piece_size() { return slot_size / 2; }

char* reserve(uint32_t size) {
  if (!head) return nullptr;
  if (writer.writing) {  // a signal's handler, in the middle of a record
    head->lost.fetch_add(1);
    return nullptr;
  }
  bool locked = lock_slot();
  if (locked && writer.slot->used.load(std::memory_order_relaxed) + size > slot_size) {
    close_slot();
    locked = false;
  }
  if (!locked && !wait_for_slot()) {
    head->lost.fetch_add(1);
    return nullptr;
  }
  writer.writing = true;
  return writer.data + writer.slot->used.load(std::memory_order_relaxed);
}

void commit(uint32_t size) {
  uint32_t used = writer.slot->used.load(std::memory_order_relaxed);
  writer.slot->used.store(used + size, std::memory_order_release);
  writer.writing = false;
  unlock_slot();
}

// Threads that wait for slots anyway are not made to wait for this too.
void mark_running(uint32_t function, uint32_t detail, uint64_t number) {
  if (!head || writer.writing || (!lock_slot() && (function == 0 || !take_free_slot()))) return;
  writer.slot->detail = detail;
  writer.slot->number = number;
  writer.slot->function = function;
  unlock_slot();
}

void spool_after_fork() {
  if (!head) return;
  epoch.fetch_add(1);
  writer = {nullptr, nullptr, 0, 0, false};
  own_namespace = pid_namespace();
  process_number = head->next_process.fetch_add(1);
}

}  // namespace layers
