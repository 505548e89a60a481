// The memory that ranks share, and how they meet: see segment.h.
#include "hccl/segment.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

namespace aclsim {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kHeaderBytes = (sizeof(Header) + 4095) / 4096 * 4096;
constexpr uint64_t kBoxBytes = kMailbox + 4096;  // a page for the mailbox, then the contents

uint64_t segment_bytes(uint64_t ranks) {
  return kHeaderBytes + ranks * kWindow + ranks * ranks * kBoxBytes;
}

std::string missing_ranks(const Segment& segment) {
  std::string text;
  for (uint32_t r = 0; r < segment.ranks; ++r) {
    if (segment.header->seats[r].pid.load()) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(r);
  }
  return text;
}

}  // namespace

char* Segment::window(uint32_t rank) const {
  return reinterpret_cast<char*>(header) + kHeaderBytes + rank * kWindow;
}
Mailbox& Segment::mailbox(uint32_t from, uint32_t to) const {
  uint64_t at = kHeaderBytes + ranks * kWindow + (uint64_t{from} * ranks + to) * kBoxBytes;
  return *reinterpret_cast<Mailbox*>(reinterpret_cast<char*>(header) + at);
}
char* Segment::contents(uint32_t from, uint32_t to) const {
  return reinterpret_cast<char*>(&mailbox(from, to)) + 4096;
}

// Pages come into being when they are touched, so the file is as large as it may ever get.
int make_segment_file(ShareId* id) { return make_shared_file(segment_bytes(kMostRanks), id); }

HcclResult join_segment(const char* function, ShareId id, uint32_t ranks, uint32_t rank,
                        uint32_t device, Segment* segment) {
  if (ranks == 0 || ranks > kMostRanks || rank >= ranks) {
    failed(HCCL_E_PARA, "EI0003", "%s failed because rank %u of %u is invalid. Expected value: "
           "rank < nRanks <= %u.", function, rank, ranks, kMostRanks);
    return HCCL_E_PARA;
  }
  int file = open_shared_file(id, nullptr);
  void* at = file >= 0 ? map_shared_file(file, segment_bytes(ranks)) : nullptr;
  if (!at) {
    if (file >= 0) close(file);
    failed(HCCL_E_TCP_CONNECT, "EI0006", "%s failed because the process that made the root info "
           "cannot be reached.", function);
    return HCCL_E_TCP_CONNECT;
  }
  *segment = {file, id, ranks, static_cast<Header*>(at)};
  uint32_t agreed = 0;
  segment->header->ranks.compare_exchange_strong(agreed, ranks);
  int32_t nobody = 0;
  bool mine = (agreed == 0 || agreed == ranks) &&
              segment->header->seats[rank].pid.compare_exchange_strong(nobody, getpid());
  if (mine) {
    segment->header->seats[rank].device.store(device);
    segment->header->arrived.fetch_add(1);
    wake_waiters(&segment->header->arrived);
    return HCCL_SUCCESS;
  }
  failed(HCCL_E_PARA, "EI0003", "%s failed because rank %u of %u is taken, or another rank gave "
         "another number of ranks.", function, rank, ranks);
  munmap(at, segment_bytes(ranks));
  close(file);
  return HCCL_E_PARA;
}

void leave_segment(Segment* segment, uint32_t rank) {
  Seat& place = segment->header->seats[rank];
  place.pid.store(-1);
  wake_waiters(&place.step);
  for (uint32_t r = 0; r < segment->ranks; ++r) wake_waiters(&segment->header->seats[r].bell);
  munmap(segment->header, segment_bytes(segment->ranks));
  close(segment->file);
  segment->header = nullptr;
}

int timeout_seconds(const char* variable, int fallback) {
  const char* text = getenv(variable);
  char* end = nullptr;
  long value = text ? strtol(text, &end, 10) : fallback;
  return text && (end == text || value < 0) ? fallback : static_cast<int>(value);
}

HcclResult await_ranks(const char* function, const Segment& segment) {
  int seconds = timeout_seconds("HCCL_CONNECT_TIMEOUT", 120);
  auto end = Clock::now() + std::chrono::seconds(seconds);
  std::atomic<uint32_t>& arrived = segment.header->arrived;
  for (uint32_t seen = arrived.load(); seen < segment.ranks; seen = arrived.load()) {
    if (seconds && Clock::now() > end) {
      failed(HCCL_E_TIMEOUT, "EI0006", "%s: ranks %s did not come within %d seconds "
             "(HCCL_CONNECT_TIMEOUT).", function, missing_ranks(segment).c_str(), seconds);
      return HCCL_E_TIMEOUT;
    }
    wait_for_change(&arrived, seen, 20);
  }
  return HCCL_SUCCESS;
}

// A process that ended counts as gone before its parent has asked for its status (state Z).
static bool ended(int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  size_t at = text.rfind(')');
  char state = at != std::string::npos && at + 2 < text.size() ? text[at + 2] : 'R';
  return state == 'Z' || state == 'X';
}

bool alive(const Segment& segment, uint32_t rank) {
  int32_t pid = segment.header->seats[rank].pid.load();
  return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM) && !ended(pid);
}

Wait await(const Segment& segment, uint32_t other, const std::atomic<uint32_t>& word,
           const std::function<bool()>& ready, const Stream* stream, int timeout_s) {
  for (int i = 0; i < 2000; ++i) {
    if (ready()) return Wait::Done;
    ACLSIM_PAUSE();
  }
  auto end = Clock::now() + std::chrono::seconds(timeout_s);
  for (;;) {
    uint32_t seen = word.load();
    if (ready()) return Wait::Done;
    if (stream && stream->aborted.load()) return Wait::Aborted;
    bool gone = !alive(segment, other) || segment.header->failed.load();
    if (gone) return ready() ? Wait::Done : Wait::Lost;
    if (timeout_s && Clock::now() > end) return Wait::TimedOut;
    wait_for_change(&word, seen, 20);
  }
}

}  // namespace aclsim
