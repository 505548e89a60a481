#include "status.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace layers {
namespace {

struct StatusPage {
  uint64_t magic;
  std::atomic<uint32_t> started, failed;
  uint64_t rules;
  char reason[232];
  std::atomic<uint64_t> matched[1];  // `rules` of them
};
static_assert(offsetof(StatusPage, matched) == 256, "status.py makes 256 bytes");

StatusPage* page = nullptr;
uint64_t rules = 0;

}  // namespace

bool open_status(const char* path) {
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  struct stat facts;
  void* data = fstat(file, &facts) == 0 && facts.st_size >= 256
                   ? mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ | PROT_WRITE,
                          MAP_SHARED, file, 0)
                   : MAP_FAILED;
  close(file);
  if (data == MAP_FAILED) return false;
  auto* found = static_cast<StatusPage*>(data);
  if (found->magic != kStatusMagic ||
      static_cast<uint64_t>(facts.st_size) < 256 + found->rules * sizeof(uint64_t))
    return false;
  rules = found->rules;
  page = found;
  return true;
}

void note_started() {
  if (page) page->started.fetch_add(1);
}

void note_failure(const char* reason) {
  if (page && page->failed.fetch_add(1) == 0)
    snprintf(page->reason, sizeof page->reason, "process %d: %s", static_cast<int>(getpid()),
             reason);
}

void note_match(size_t rule) {
  if (page && rule < rules) page->matched[rule].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace layers
