// Files that processes share: see sharing.h.
#include "ascendcl/sharing.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <ctime>

#include "ascendcl/error.h"

namespace aclsim {
namespace {

// An identity packs pid, descriptor and number: pids end at 2^22 (Linux PID_MAX_LIMIT).
constexpr int kFileBits = 20, kNumberBits = 22;

// The last page of a file: who may open it.
constexpr uint64_t kNotePage = 4096;
struct Note {
  uint32_t everyone, count;
  int32_t pids[512];
};

uint32_t next_share_number() {
  static std::atomic<uint32_t> next{static_cast<uint32_t>(time(nullptr)) * 131};
  return next.fetch_add(1) & ((1u << kNumberBits) - 1);
}

uint64_t payload(int file) {
  struct stat status;
  bool good = fstat(file, &status) == 0 && static_cast<uint64_t>(status.st_size) > kNotePage;
  return good ? static_cast<uint64_t>(status.st_size) - kNotePage : 0;
}

bool read_note(int file, Note* note) {
  auto at = static_cast<off_t>(payload(file));
  return at && pread(file, note, sizeof *note, at) == sizeof *note;
}

bool write_note(int file, const Note& note) {
  auto at = static_cast<off_t>(payload(file));
  return at && pwrite(file, &note, sizeof note, at) == sizeof note;
}

}  // namespace

int make_shared_file(uint64_t bytes, ShareId* id) {
  uint32_t number = next_share_number();
  char name[32];
  snprintf(name, sizeof name, "aclsim-%06x", number);
  int file = memfd_create(name, MFD_CLOEXEC);
  uint64_t room = (bytes + kNotePage - 1) / kNotePage * kNotePage + kNotePage;
  if (file < 0 || file >= 1 << kFileBits || ftruncate(file, static_cast<off_t>(room)) != 0) {
    if (file >= 0) close(file);
    return -1;
  }
  *id = static_cast<uint64_t>(getpid()) << (kFileBits + kNumberBits) |
        static_cast<uint64_t>(file) << kNumberBits | number;
  return file;
}

int open_shared_file(ShareId id, uint64_t* bytes) {
  auto pid = static_cast<int>(id >> (kFileBits + kNumberBits));
  auto file = static_cast<int>(id >> kNumberBits & ((1u << kFileBits) - 1));
  char path[64], expected[64], found[64] = {};
  snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, file);
  snprintf(expected, sizeof expected, "/memfd:aclsim-%06x", 
           static_cast<uint32_t>(id & ((1u << kNumberBits) - 1)));
  if (readlink(path, found, sizeof found - 1) < 0) return -1;
  if (strncmp(found, expected, strlen(expected)) != 0) return -1;
  int opened = open(path, O_RDWR | O_CLOEXEC);
  if (opened >= 0 && bytes) *bytes = payload(opened);
  return opened;
}

void* map_shared_file(int file, uint64_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void allow_everyone(int file) {
  Note note = {};
  if (!read_note(file, &note)) return;
  note.everyone = 1;
  write_note(file, note);
}

aclError allow_processes(const char* function, int file, const int32_t* pids, size_t count) {
  Note note = {};
  constexpr size_t kMost = sizeof note.pids / sizeof note.pids[0];
  if (!read_note(file, &note) || count > kMost - note.count) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because at most %zu processes may share one memory.", function, kMost);
  }
  for (size_t i = 0; i < count; ++i) note.pids[note.count++] = pids[i];
  return write_note(file, note) ? ACL_SUCCESS : ACL_ERROR_RT_INTERNAL_ERROR;
}

bool allowed(int file) {
  Note note = {};
  if (!read_note(file, &note)) return false;
  bool found = note.everyone != 0;
  for (uint32_t i = 0; i < note.count; ++i) found |= note.pids[i] == getpid();
  return found;
}

void wait_for_change(const std::atomic<uint32_t>* word, uint32_t seen, int timeout_ms) {
  timespec limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void wake_waiters(const std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace aclsim
