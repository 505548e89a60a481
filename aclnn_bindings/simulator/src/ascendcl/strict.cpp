#include "ascendcl/strict.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>

#include "ascendcl/allow.h"
#include "ascendcl/error.h"
#include "ascendcl/memory.h"

namespace aclsim {

struct Origin {
  int depth;
  void* frames[12];
};

namespace {

thread_local bool accepted = false;  // the finding that this thread reported last

struct Findings {
  std::mutex mutex;
  std::unordered_set<const Handle*> live[kKinds];  // with an origin, for the leak report
  std::atomic<int64_t> count{0};
};

Findings& findings() {
  static Findings* made = new Findings;
  return *made;
}

Kind kind_of(const Handle* handle) {
  uint32_t kind = handle->magic.load(std::memory_order_relaxed) & 0xFFFF;
  return kind < kKinds ? static_cast<Kind>(kind) : Kind::Count;
}

bool ours(const char* file) {
  const char* base = strrchr(file, '/');
  base = base ? base + 1 : file;
  return !strncmp(base, "libascendcl", 11) || !strncmp(base, "libnnopbase", 11) ||
         !strncmp(base, "libopapi", 8) || !strncmp(base, "libaclnn_layers", 15) ||
         !strncmp(base, "libasan", 7) || !strncmp(base, "libtsan", 7);
}

// The innermost frames outside the simulator: "program(function+0x12)", inner first.
std::string origin_text(const Origin* origin) {
  if (!origin) return "";
  std::string text;
  int shown = 0;
  for (int i = 0; i < origin->depth && shown < 3; ++i) {
    Dl_info info;
    if (!dladdr(origin->frames[i], &info) || !info.dli_fname || ours(info.dli_fname)) continue;
    const char* base = strrchr(info.dli_fname, '/');
    const char* from = static_cast<const char*>(info.dli_saddr ? info.dli_saddr : info.dli_fbase);
    char frame[256];
    snprintf(frame, sizeof frame, "%s%s(%s+0x%zx)", shown ? " < " : "",
             base ? base + 1 : info.dli_fname, info.dli_sname ? info.dli_sname : "",
             static_cast<size_t>(static_cast<char*>(origin->frames[i]) - from));
    text += frame;
    ++shown;
  }
  return text;
}

std::string json_text(const std::string& plain) {
  std::string out = "\"";
  for (char c : plain) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

struct Finding {
  const char* what;
  const char* function;
  std::string object;
  std::string origin;
  std::string remedy;
  int64_t count = 1;
};

// False for a finding that is accepted: nobody hears of it.
bool emit(const Finding& finding) {
  accepted = allowed_finding(finding.what, finding.function, finding.object, finding.origin);
  if (accepted) return false;
  findings().count.fetch_add(1);
  std::string now;
  {
    Origin* here = make_origin();
    now = origin_text(here);
    drop_origin(here);
  }
  if (const char* path = config().report) {
    std::string line = std::string("{\"finding\":") + json_text(finding.what) +
                       ",\"call\":" + json_text(finding.function) +
                       ",\"object\":" + json_text(finding.object) +
                       ",\"count\":" + std::to_string(finding.count) +
                       ",\"created\":" + json_text(finding.origin) +
                       ",\"at\":" + json_text(now) +
                       ",\"remedy\":" + json_text(finding.remedy) +
                       ",\"pid\":" + std::to_string(getpid()) + "}\n";
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file >= 0) {
      ssize_t written = write(file, line.data(), line.size());
      (void)written;  // a full disk must not change what the program does
      close(file);
    }
  } else {
    fprintf(stderr, "aclsim strict: %s in %s: %s%s%s. %s%s%s\n", finding.what, finding.function,
            finding.object.c_str(), finding.origin.empty() ? "" : ", created at ",
            finding.origin.c_str(), finding.remedy.c_str(), now.empty() ? "" : " At ",
            now.c_str());
  }
  std::string text = std::string("Strict mode: ") + finding.what + " in " + finding.function +
                     ": " + finding.object + ". " + finding.remedy;
  note_error("EE9999", text.c_str());
  if (strict_mode == Strict::Abort) abort();
  return true;
}

std::string describe(const Handle* handle, Kind kind) {
  char text[96];
  if (!handle) return kind_c_type(kind);
  snprintf(text, sizeof text, "%s %p", kind_c_type(kind), static_cast<const void*>(handle));
  return text;
}

}  // namespace

Origin* make_origin() {
  auto* origin = new Origin;
  origin->depth = backtrace(origin->frames, 12);
  return origin;
}

void drop_origin(Origin* origin) { delete origin; }

void remember_origin(Handle* handle) {
  Origin* origin = make_origin();
  Findings& all = findings();
  std::lock_guard<std::mutex> lock(all.mutex);
  drop_origin(handle->origin);
  handle->origin = origin;
  all.live[static_cast<int>(kind_of(handle))].insert(handle);
}

// The origin stays with the dead handle, so that a later use can still name it.
void forget_origin(Handle* handle) {
  Kind kind = kind_of(handle);
  if (kind == Kind::Count) return;
  Findings& all = findings();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.live[static_cast<int>(kind)].erase(handle);
}

void report_misuse(const char* what, const char* function, const Handle* handle, Kind kind,
                   const char* remedy) {
  emit({what, function, describe(handle, kind), handle ? origin_text(handle->origin) : "", remedy});
}

void report_dead(const char* function, const Handle* handle, Kind kind) {
  if (!handle->was(kind)) {
    Kind other = kind_of(handle);
    bool known = (handle->magic.load() & 0xFFFF0000u) == kLive && other != Kind::Count;
    std::string remedy = known ? std::string("It is an ") + kind_c_type(other) +
                                     "; pass the handle that the parameter's type names."
                               : "Pass a handle that the matching create function returned.";
    return report_misuse("not-a-handle", function, known ? handle : nullptr, kind, remedy.c_str());
  }
  bool destroying = strncmp(function, "aclDestroy", 10) == 0 ||
                    strncmp(function, "aclrtDestroy", 12) == 0 ||
                    strncmp(function, "aclopDestroy", 12) == 0;
  if (handle->death == Death::ByList) {
    report_misuse(destroying ? "list-member-destroyed-again" : "use-after-destroy", function,
                  handle, kind, "Its list owned and destroyed it; leave members of a list alone.");
  } else if (handle->death == Death::Launched) {
    report_misuse("executor-used-twice", function, handle, kind,
                  "Phase 2 used the executor up. Run phase 1 again, or make the executor "
                  "repeatable with aclSetAclOpExecutorRepeatable.");
  } else if (destroying) {
    report_misuse("double-destroy", function, handle, kind, "Destroy each handle once.");
  } else {
    report_misuse("use-after-destroy", function, handle, kind,
                  "Destroy it after its last use.");
  }
}

void report_memory(const char* what, const char* function, const void* address, uint64_t size,
                   const Origin* origin, const char* remedy) {
  char text[96];
  snprintf(text, sizeof text, "%p (%llu bytes)", address, static_cast<unsigned long long>(size));
  emit({what, function, text, origin_text(origin), remedy});
}

int64_t report_leaks() {
  int64_t leaked = 0;
  for (int k = 0; k < static_cast<int>(Kind::Task); ++k) {
    auto kind = static_cast<Kind>(k);
    std::map<std::string, int64_t> origins;
    if (kind == Kind::DeviceMemory || kind == Kind::HostMemory) {
      count_allocations(kind == Kind::DeviceMemory, [&](const Origin* o) { ++origins[origin_text(o)]; });
    } else {
      std::lock_guard<std::mutex> lock(findings().mutex);
      for (const Handle* h : findings().live[k]) ++origins[origin_text(h->origin)];
    }
    for (const auto& entry : origins) {
      Finding finding{"leak", "aclFinalize", kind_c_type(kind), entry.first,
                      "Destroy or free it before aclFinalize.", entry.second};
      if (entry.second > 1) finding.object += " x" + std::to_string(entry.second);
      if (emit(finding)) leaked += entry.second;
    }
  }
  return leaked;
}

bool strict_fails() { return strict_mode >= Strict::Error && !accepted; }

int64_t finding_count() { return findings().count.load(); }

}  // namespace aclsim
