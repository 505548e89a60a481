// mstx…: marks and ranges of libms_tools_ext, by domain; they appear in profiles. With a stream,
// tools are told when the stream passes them too (msptiActivityFlag document).
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "ascendcl/capture.h"
#include "ascendcl/profile.h"
#include "ascendcl/stream.h"

namespace aclsim {
namespace {

struct Domain {
  std::string name;
};
struct Range {
  const char* domain;  // null: the default one
  std::string message;
  uint64_t begin;
  aclrtStream stream;
};
struct Ranges {
  std::mutex mutex;
  std::map<uint64_t, Range> open;
  std::set<const Domain*> domains;  // that live
  uint64_t next = 1;  // 0 is no range; marks take numbers of the same row
};
Ranges& ranges() {
  static auto* made = new Ranges;
  return *made;
}

// No domain, and one that was destroyed, stand for the default one, null.
const char* name_of(const void* domain) {
  std::lock_guard<std::mutex> lock(ranges().mutex);
  auto at = ranges().domains.find(static_cast<const Domain*>(domain));
  return at == ranges().domains.end() ? nullptr : lasting_text((*at)->name.c_str());
}
const char* shown(const char* domain) { return domain ? domain : "default"; }

// The stream tells its own time when it comes there; while it is captured, nothing is queued.
void note_on(aclrtStream handle, Mark mark) {
  aclError code = ACL_SUCCESS;
  Stream* stream = find_own_stream(thread(), handle, "mstx", &code);
  if (!stream || recording(stream)) return;
  mark.on_device = true;
  mark.device = stream->context->device;
  mark.stream = stream->id;
  submit(stream, make_task([mark](Stream*) -> aclError {
    Mark now = mark;
    now.at = profile_clock();
    profile_note(now);
    return ACL_SUCCESS;
  }));
}

void note(Mark::Phase phase, uint64_t id, const char* domain, const char* message,
          aclrtStream stream) {
  Mark mark = {phase, false, stream != nullptr, id, profile_clock(), 0, 0, message, domain};
  profile_note(mark);
  if (stream) note_on(stream, mark);
}

uint64_t next_mark_number() {
  std::lock_guard<std::mutex> lock(ranges().mutex);
  return ranges().next++;
}

void mark(const char* domain, const char* message, aclrtStream stream) {
  if (!message || !profiling()) return;
  uint64_t now = profile_clock();
  profile_mark(shown(domain), message, now, now);
  note(Mark::At, next_mark_number(), domain, lasting_text(message), stream);
}
uint64_t start(const char* domain, const char* message, aclrtStream stream) {
  if (!message) return 0;
  uint64_t id = next_mark_number();
  if (profiling()) note(Mark::Begin, id, domain, lasting_text(message), stream);
  std::lock_guard<std::mutex> lock(ranges().mutex);
  ranges().open[id] = {domain, message, profile_clock(), stream};
  return id;
}
void stop(uint64_t id) {
  Range range;
  {
    std::lock_guard<std::mutex> lock(ranges().mutex);
    auto at = ranges().open.find(id);
    if (at == ranges().open.end()) return;
    range = std::move(at->second);
    ranges().open.erase(at);
  }
  if (!profiling()) return;
  profile_mark(shown(range.domain), range.message.c_str(), range.begin, profile_clock());
  note(Mark::End, id, range.domain, nullptr, range.stream);
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API void mstxMarkA(const char* message, aclrtStream stream) { mark(nullptr, message, stream); }
ACLSIM_API uint64_t mstxRangeStartA(const char* message, aclrtStream stream) {
  return start(nullptr, message, stream);
}
ACLSIM_API void mstxRangeEnd(uint64_t id) { stop(id); }

ACLSIM_API void* mstxDomainCreateA(const char* name) {
  if (!name || !*name) return nullptr;
  auto* made = new Domain{name};
  std::lock_guard<std::mutex> lock(ranges().mutex);
  ranges().domains.insert(made);
  return made;
}
ACLSIM_API void mstxDomainDestroy(void* domain) {
  std::lock_guard<std::mutex> lock(ranges().mutex);
  auto* mine = static_cast<Domain*>(domain);
  if (ranges().domains.erase(mine)) delete mine;
}
ACLSIM_API void mstxDomainMarkA(void* domain, const char* message, aclrtStream stream) {
  mark(name_of(domain), message, stream);
}
ACLSIM_API uint64_t mstxDomainRangeStartA(void* domain, const char* message, aclrtStream stream) {
  return start(name_of(domain), message, stream);
}
ACLSIM_API void mstxDomainRangeEnd(void*, uint64_t id) { stop(id); }
