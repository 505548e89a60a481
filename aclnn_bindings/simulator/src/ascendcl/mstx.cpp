// mstx…: marks and ranges of libms_tools_ext, by domain; they appear in profiles.
#include <map>
#include <mutex>
#include <string>

#include "ascendcl/error.h"
#include "ascendcl/profile.h"

namespace aclsim {
namespace {

struct Domain {
  std::string name;
};
struct Range {
  std::string domain, message;
  uint64_t begin;
};
struct Ranges {
  std::mutex mutex;
  std::map<uint64_t, Range> open;
  uint64_t next = 1;  // 0 is no range
};
Ranges& ranges() {
  static auto* made = new Ranges;
  return *made;
}

constexpr const char* kDefault = "default";
const char* name_of(const Domain* domain) { return domain ? domain->name.c_str() : kDefault; }

void mark(const char* domain, const char* message) {
  if (!message || !profiling()) return;
  uint64_t now = profile_clock();
  profile_mark(domain, message, now, now);
}
uint64_t start(const char* domain, const char* message) {
  if (!message) return 0;
  std::lock_guard<std::mutex> lock(ranges().mutex);
  ranges().open[ranges().next] = {domain, message, profile_clock()};
  return ranges().next++;
}
void stop(uint64_t id) {
  std::lock_guard<std::mutex> lock(ranges().mutex);
  auto at = ranges().open.find(id);
  if (at == ranges().open.end()) return;
  const Range& range = at->second;
  if (profiling()) {
    profile_mark(range.domain.c_str(), range.message.c_str(), range.begin, profile_clock());
  }
  ranges().open.erase(at);
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API void mstxMarkA(const char* message, aclrtStream) { mark(kDefault, message); }
ACLSIM_API uint64_t mstxRangeStartA(const char* message, aclrtStream) {
  return start(kDefault, message);
}
ACLSIM_API void mstxRangeEnd(uint64_t id) { stop(id); }

ACLSIM_API void* mstxDomainCreateA(const char* name) {
  return name && *name ? new Domain{name} : nullptr;
}
ACLSIM_API void mstxDomainDestroy(void* domain) { delete static_cast<Domain*>(domain); }
ACLSIM_API void mstxDomainMarkA(void* domain, const char* message, aclrtStream) {
  mark(name_of(static_cast<Domain*>(domain)), message);
}
ACLSIM_API uint64_t mstxDomainRangeStartA(void* domain, const char* message, aclrtStream) {
  return start(name_of(static_cast<Domain*>(domain)), message);
}
ACLSIM_API void mstxDomainRangeEnd(void*, uint64_t id) { stop(id); }
