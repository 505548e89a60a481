#include "data.h"

#include <fnmatch.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "blocks.h"
#include "recorder.h"
#include "roles.h"
#include "spool.h"
#include "tracking.h"

namespace layers {
namespace {

struct DataRules {
  bool all = false, first = false;
  uint64_t every = 0;
  std::vector<std::string> globs;
  uint64_t limit = 64u << 20;
  std::atomic<uint64_t> launches{0};
  std::mutex mutex;
  std::unordered_set<uint64_t> seen;
  bool any() const { return all || first || every || !globs.empty(); }
};

DataRules& rules() {
  static DataRules* made = new DataRules;
  return *made;
}

struct PieceHead {
  uint64_t number, offset, total;
  uint16_t parameter, member;
  uint8_t after, unused[3];
};
static_assert(sizeof(PieceHead) == 32, "the format's piece");

bool wanted(const Call& call, const Launch& launch) {
  DataRules& all = rules();
  uint64_t nth = all.launches.fetch_add(1);
  if (all.all || (all.every && nth % all.every == 0)) return true;
  for (const std::string& glob : all.globs)
    if (!fnmatch(glob.c_str(), call.function->name, 0)) return true;
  if (!all.first) return false;
  std::lock_guard<std::mutex> lock(all.mutex);
  return all.seen.insert(static_cast<uint64_t>(launch.function) << 32 | launch.detail).second;
}

using Synchronize = int32_t (*)(void*);
using Copy = int32_t (*)(void*, size_t, const void*, size_t, int32_t);

template <class T>
T real(const Frame& frame, const char* name) {
  return reinterpret_cast<T>(real_named(frame.shim, name));
}

void put_pieces(PieceHead head, const char* data) {
  uint32_t most = piece_size() - 256;
  for (head.offset = 0; head.offset < head.total; head.offset += most) {
    auto size = static_cast<size_t>(std::min<uint64_t>(most, head.total - head.offset));
    std::string piece(reinterpret_cast<const char*>(&head), sizeof head);
    piece.append(data + head.offset, size);
    put_row(RowType::Data, 0, 0, piece.data(), piece.size());
  }
}

void put_tensors(const Frame& frame, const Call& call, bool after) {
  auto wait = real<Synchronize>(frame, "aclrtSynchronizeStream");
  auto copy = real<Copy>(frame, "aclrtMemcpy");
  auto* stream = pointer_argument<void*>(frame, *call.function, 3);
  if (!wait || !copy || wait(stream) != 0) return;
  const auto& launch = static_cast<const Launch&>(*call.object);
  const Function* one = function_number(call.function->row->partner);
  std::string held;
  uint16_t member = 0;
  for (size_t i = 0; i < launch.uses.size(); ++i) {
    uint16_t position = launch.positions[i];
    member = i && launch.positions[i - 1] == position ? static_cast<uint16_t>(member + 1) : 0;
    uintptr_t start, end;
    if (!(one->parameters[position].access & (after ? 2 : 1)) ||
        !extent_of(launch.uses[i], &start, &end) || end - start > rules().limit)
      continue;
    held.resize(end - start);
    constexpr int32_t kFromDevice = 2;  // ACL_MEMCPY_DEVICE_TO_HOST
    if (copy(&held[0], held.size(), reinterpret_cast<void*>(start), held.size(), kFromDevice) != 0)
      continue;
    put_pieces({call.number, 0, held.size(), position, member, after, {}}, held.data());
  }
}

}  // namespace

bool add_data_rule(const std::string& text) {
  DataRules& all = rules();
  keep_uses();
  if (text == "all") return all.all = true;
  if (text == "first") return all.first = true;
  if (text.compare(0, 2, "1/") == 0) return (all.every = std::stoull(text.substr(2))) > 0;
  if (text.compare(0, 3, "op=") != 0) return false;
  all.globs.push_back(text.substr(3));
  return true;
}

void forget_data_rules() {
  DataRules& all = rules();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.all = all.first = false;
  all.every = 0;
  all.globs.clear();
  all.seen.clear();
}

void limit_data(uint64_t bytes) { rules().limit = bytes; }

bool data_is_on() { return rules().any(); }

void data_before(const Frame& frame, Call* call) {
  if (call->function->role != Role::PhaseTwo || !call->object ||
      call->object->kind != Kind::Executor ||
      !wanted(*call, static_cast<const Launch&>(*call->object)))
    return;
  call->flags |= kHasData;
  put_tensors(frame, *call, false);
}

void data_after(const Frame& frame, const Call& call) {
  if (call.flags & kHasData && call.status == 0) put_tensors(frame, call, true);
}

}  // namespace layers
