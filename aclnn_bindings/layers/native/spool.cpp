#include "spool.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "clock.h"
#include "core.h"

namespace layers {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, of Linux 5.14

SpoolHead* head = nullptr;
SlotHead* slots = nullptr;
char* data_start = nullptr;
uint32_t process_number = 0;
std::atomic<uint32_t> epoch{0};  // changes at a fork: slots of the parent are not ours

struct Writer {
  SlotHead* slot;
  char* data;
  uint32_t epoch;
};
// Nothing to construct or destroy, so that reading it costs no check of whether it was.
thread_local Writer writer LAYER_TLS = {nullptr, nullptr, 0};

void release() {
  if (writer.slot) writer.slot->function = 0;
  if (writer.slot && writer.epoch == epoch.load())
    writer.slot->state.store(kFull, std::memory_order_release);
  writer.slot = nullptr;
}

// Touched by a thread that takes a slot; gives it back when the thread ends.
struct AtThreadEnd {
  bool watched = false;
  ~AtThreadEnd() { release(); }
};
thread_local AtThreadEnd at_thread_end;

bool collector_lives() {
  return !head->stopped.load(std::memory_order_relaxed) &&
         (kill(static_cast<pid_t>(head->collector), 0) == 0 || errno != ESRCH);
}

bool take_free_slot() {
  static std::atomic<uint32_t> start{0};
  for (uint32_t i = 0, at = start.load(std::memory_order_relaxed); i < head->slot_count; ++i) {
    uint32_t number = (at + i) % head->slot_count;
    SlotHead& slot = slots[number];
    uint32_t free = kFree;
    if (slot.state.load(std::memory_order_relaxed) != kFree ||
        !slot.state.compare_exchange_strong(free, kFilling, std::memory_order_acq_rel))
      continue;
    slot.process = process_number;
    slot.pid = static_cast<uint32_t>(getpid());
    slot.function = 0;
    slot.thread = static_cast<uint32_t>(syscall(SYS_gettid));
    writer.slot = &slot;
    writer.data = data_start + static_cast<uint64_t>(number) * head->slot_size;
    writer.epoch = epoch.load();
    at_thread_end.watched = true;
    // All pages of the slot at once, rather than a fault for each; older kernels refuse.
    madvise(writer.data, head->slot_size, kPopulateWrite);
    start.store(number + 1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

// How long a collector may take none of the full slots, its disk being slow, in rounds of 0.2 ms.
constexpr int kPatience = 50000;

// Waits for the collector rather than fill memory.
bool wait_for_slot() {
  uint32_t beat = head->heartbeat.load();
  for (int round = 0, since = 0; !take_free_slot(); ++round) {
    if (head->heartbeat.load() != beat) {
      beat = head->heartbeat.load();
      since = round;
    }
    if (round - since > kPatience || (round % 64 == 63 && !collector_lives())) {
      step_aside("the recording's collector is gone");
      return false;
    }
    usleep(200);
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
  if (found->magic != kSpoolMagic) return false;
  slots = reinterpret_cast<SlotHead*>(static_cast<char*>(data) + kSlotsAt);
  data_start = reinterpret_cast<char*>(slots + found->slot_count);
  process_number = found->next_process.fetch_add(1);
  head = found;
  return true;
}

bool spool_is_open() { return head != nullptr; }

uint64_t next_call_number() {
  return head ? head->next_call.fetch_add(1, std::memory_order_relaxed) : 0;
}

uint32_t piece_size() { return head->slot_size / 2; }

char* reserve(uint32_t size) {
  if (!head) return nullptr;
  if (writer.slot && writer.epoch != epoch.load(std::memory_order_relaxed)) writer.slot = nullptr;
  if (writer.slot && writer.slot->used.load(std::memory_order_relaxed) + size > head->slot_size)
    release();
  if (!writer.slot && !wait_for_slot()) {
    head->lost.fetch_add(1);
    return nullptr;
  }
  return writer.data + writer.slot->used.load(std::memory_order_relaxed);
}

void commit(uint32_t size) {
  uint32_t used = writer.slot->used.load(std::memory_order_relaxed);
  writer.slot->used.store(used + size, std::memory_order_release);
}

void mark_running(uint32_t function, uint32_t detail, uint64_t number) {
  if (!writer.slot && (function == 0 || !reserve(64))) return;
  if (writer.epoch != epoch.load(std::memory_order_relaxed)) return;
  writer.slot->detail = detail;
  writer.slot->number = number;
  writer.slot->function = function;
}

void spool_after_fork() {
  if (!head) return;
  epoch.fetch_add(1);
  process_number = head->next_process.fetch_add(1);
}

}  // namespace layers
