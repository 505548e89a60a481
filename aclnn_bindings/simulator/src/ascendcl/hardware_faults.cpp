#include "ascendcl/hardware_faults.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <vector>

#include "ascendcl/config.h"
#include "ascendcl/memory.h"

namespace aclsim {

namespace {

constexpr size_t kMostFaults = 256;
constexpr uint64_t kRegion = 64 << 10;  // bytes of memory that are bad
constexpr uint64_t kColumn = 64;        // of which one byte in so many is
constexpr char kStuckBit = 1 << 4;

struct BadMemory {
  int device;
  uint64_t first;  // byte of the device's memory
  size_t number;
};

struct BadLink {
  int from, to;
  LinkFault fault;
  uint64_t every;  // of so many messages one is corrupted; 0: none
  size_t number;
};

struct HardwareFaults {
  std::vector<BadMemory> memories;
  std::vector<BadLink> links;
};

// By hand: <regex> costs this file three seconds of compiling.
struct Fields {
  std::string device, peer, kind, number;
};

bool skip(const std::string& text, size_t* at, const char* word) {
  const size_t size = strlen(word);
  if (text.compare(*at, size, word) != 0) return false;
  *at += size;
  return true;
}

std::string take(const std::string& text, size_t* at, char first, char last) {
  const size_t begin = *at;
  while (*at < text.size() && text[*at] >= first && text[*at] <= last) ++*at;
  return text.substr(begin, *at - begin);
}

// npu<device>/memory:<kind>[@<number>] or npu<device>-npu<peer>/link:<kind>[@<number>].
bool read_fields(const std::string& text, Fields* fields) {
  size_t at = 0;
  if (!skip(text, &at, "npu")) return false;
  fields->device = take(text, &at, '0', '9');
  const bool link = skip(text, &at, "-npu");
  fields->peer = link ? take(text, &at, '0', '9') : "";
  if (fields->device.empty() || (link && fields->peer.empty())) return false;
  if (!skip(text, &at, link ? "/link:" : "/memory:")) return false;
  fields->kind = take(text, &at, 'a', 'z');
  if (!skip(text, &at, "@")) return at == text.size();
  fields->number = take(text, &at, '0', '9');
  return !fields->number.empty() && at == text.size();
}

std::string check_device(const std::string& text, int* device) {
  *device = text.size() > 3 ? -1 : std::atoi(text.c_str());
  if (*device >= 0 && *device < config().installed) return "";
  return "there are " + std::to_string(config().installed) + " devices, counted from 0";
}

std::string parse_memory(const Fields& fields, size_t number, HardwareFaults* faults) {
  BadMemory bad{0, std::strtoull(fields.number.c_str(), nullptr, 10) << 20, number};
  if (fields.kind != "stuck") return "the kinds of memory are stuck";
  if (fields.number.empty()) return "stuck needs a number: stuck@MIB";
  if (bad.first >= config().memory) return "the device has no memory there";
  const std::string wrong = check_device(fields.device, &bad.device);
  if (wrong.empty()) faults->memories.push_back(bad);
  return wrong;
}

std::string parse_link(const Fields& fields, size_t number, HardwareFaults* faults) {
  const std::string &kind = fields.kind, &every = fields.number;
  BadLink bad{0, 0, LinkFault::None, std::strtoull(every.c_str(), nullptr, 10), number};
  if (kind == "corrupt" && !bad.every) return "corrupt needs a number: corrupt@N, from 1 on";
  if (kind == "dead") bad.fault = LinkFault::Dead;
  else if (kind == "silent") bad.fault = LinkFault::Silent;
  else if (kind != "corrupt") return "the kinds of a link are dead, silent, corrupt";
  if (kind != "corrupt" && !every.empty()) return kind + " takes no number";
  std::string wrong = check_device(fields.device, &bad.from);
  if (wrong.empty()) wrong = check_device(fields.peer, &bad.to);
  if (wrong.empty() && bad.from == bad.to) return "a link joins two devices";
  if (wrong.empty()) faults->links.push_back(bad);
  return wrong;
}

bool parse(const std::string& one, size_t number, std::string* wrong, HardwareFaults* faults) {
  Fields fields;
  if (!read_fields(one, &fields)) return false;
  *wrong = fields.peer.empty() ? parse_memory(fields, number, faults)
                               : parse_link(fields, number, faults);
  return true;
}

// Wrong ones refuse the calls of operators: see nnopbase/fault_plan.h.
HardwareFaults read_all() {
  HardwareFaults faults;
  const char* text = getenv("ACLSIM_FAULTS");
  const std::string all = text ? text : "";
  size_t number = 0;
  for (size_t at = 0; at < all.size(); ++number) {
    const size_t end = std::min(all.find(',', at), all.size());
    std::string wrong;
    parse(all.substr(at, end - at), number, &wrong, &faults);
    at = end + 1;
  }
  return faults;
}

const HardwareFaults& planted() {
  static const HardwareFaults faults = read_all();
  return faults;
}

}  // namespace

bool parse_hardware_fault(const std::string& one, std::string* wrong) {
  HardwareFaults faults;
  return parse(one, 0, wrong, &faults);
}

bool hardware_faults_planted = getenv("ACLSIM_FAULTS") && *getenv("ACLSIM_FAULTS");

void write_to_bad_memory(const void* at, uint64_t bytes) {
  const auto block = planted().memories.empty() ? nullptr : find_allocation(at);
  if (!block || block->place != Place::Device || block->mapped) return;
  const uint64_t begin = block->offset + (static_cast<const char*>(at) - block->base);
  for (const BadMemory& bad : planted().memories) {
    if (bad.device != config().visible[block->device]) continue;
    const uint64_t last = std::min(begin + bytes, bad.first + kRegion);
    uint64_t i = (std::max(begin, bad.first) + kColumn - 1) / kColumn * kColumn;
    for (; i < last; i += kColumn) {
      char& byte = block->base[i - block->offset];
      if (!(byte & kStuckBit)) note_strike(bad.number);
      byte = static_cast<char>(byte | kStuckBit);
    }
  }
}

LinkFault link_fault(int from, int to) {
  if (!hardware_faults_planted) return LinkFault::None;
  for (const BadLink& bad : planted().links) {
    if (bad.from != from || bad.to != to || bad.fault == LinkFault::None) continue;
    note_strike(bad.number);
    return bad.fault;
  }
  return LinkFault::None;
}

void cross_link(int from, int to, char* at, uint64_t bytes) {
  if (!hardware_faults_planted) return;
  static std::mutex mutex;
  static std::mt19937_64 draw{std::random_device{}()};
  for (const BadLink& bad : planted().links) {
    if (bad.from != from || bad.to != to || !bad.every || !bytes) continue;
    std::lock_guard<std::mutex> lock(mutex);
    if (draw() % bad.every != 0) continue;
    const uint64_t bit = draw() % (bytes * 8);
    at[bit / 8] = static_cast<char>(at[bit / 8] ^ 1 << bit % 8);
    note_strike(bad.number);
  }
}

void note_strike(size_t number) {
  static const char* path = getenv("ACLSIM_STRIKES");
  static std::atomic<bool> noted[kMostFaults];
  if (!path || number >= kMostFaults || noted[number].exchange(true)) return;
  const int file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  const char struck = 1;
  if (pwrite(file, &struck, 1, static_cast<off_t>(number)) < 0) noted[number] = false;
  close(file);
}

}  // namespace aclsim
