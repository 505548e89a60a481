#include "callers.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace layers {
namespace {

struct Range {
  uintptr_t start, end;
  bool internal;
};

struct Ranges {
  std::vector<Range> sorted;
};

struct State {
  std::mutex mutex;
  std::vector<std::string> folders;
  // Published once complete and never freed: readers take no lock.
  std::atomic<const Ranges*> ranges{nullptr};
};

State& state() {
  static State* made = new State;
  return *made;
}

bool below(const char* path, const std::string& folder) {
  return !strncmp(path, folder.c_str(), folder.size()) && path[folder.size()] == '/';
}

bool installed(const char* name) {
  char resolved[4096];
  const char* path = realpath(name, resolved) ? resolved : name;
  if (strstr(path, "libaclnn_layers.so")) return true;
  for (const std::string& folder : state().folders)
    if (below(path, folder) || below(name, folder)) return true;
  return false;
}

int collect(dl_phdr_info* info, size_t, void* out) {
  bool internal = info->dlpi_name && *info->dlpi_name && installed(info->dlpi_name);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    static_cast<Ranges*>(out)->sorted.push_back({start, start + segment.p_memsz, internal});
  }
  return 0;
}

const Range* find(const Ranges* ranges, uintptr_t address) {
  if (!ranges) return nullptr;
  auto after = std::upper_bound(ranges->sorted.begin(), ranges->sorted.end(), address,
                                [](uintptr_t a, const Range& r) { return a < r.start; });
  if (after == ranges->sorted.begin()) return nullptr;
  --after;
  return address < after->end ? &*after : nullptr;
}

const Ranges* read_again() {
  State& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto* made = new Ranges;
  dl_iterate_phdr(collect, made);
  std::sort(made->sorted.begin(), made->sorted.end(),
            [](const Range& a, const Range& b) { return a.start < b.start; });
  all.ranges.store(made, std::memory_order_release);
  return made;
}

}  // namespace

void add_internal_folder(const char* folder) { state().folders.emplace_back(folder); }

bool is_internal(const void* address) {
  auto at = reinterpret_cast<uintptr_t>(address);
  const Ranges* known = state().ranges.load(std::memory_order_acquire);
  const Range* range = find(known, at);
  if (!range) {
    // Code that is in no file (a JIT's) would have the list read at each call: ask the loader's
    // counters first.
    static thread_local unsigned long long seen = ~0ull;
    unsigned long long loaded = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* out) {
          *static_cast<unsigned long long*>(out) = info->dlpi_adds;
          return 1;
        },
        &loaded);
    if (loaded != seen) {
      seen = loaded;
      range = find(read_again(), at);
    }
  }
  return range && range->internal;
}

}  // namespace layers
