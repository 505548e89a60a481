#include "recorder.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "per_thread.h"
#include "python_stack.h"
#include "roles.h"
#include "spool.h"
#include "tracking.h"

namespace layers {
namespace {

constexpr uint32_t kRow = 64;
constexpr uint32_t kAbsent = 0xFFFFFFFFu;   // a null pointer
constexpr uint32_t kUnknown = 0xFFFFFFFEu;  // a handle that the program did not make
constexpr uint32_t kLongestText = 4096;
constexpr int kWordsInCall = 3, kWordsInRow = 7;

struct CallRow {
  uint8_t type, words;
  uint16_t flags;
  uint32_t function;
  uint64_t number, start;
  uint32_t duration;
  int32_t status;
  uint32_t detail, stack;
  uint64_t word[kWordsInCall];
};
static_assert(sizeof(CallRow) == kRow, "the format's row");

struct PayloadRow {
  uint8_t type, unused[3];
  uint32_t id, length, extra;
};

uint32_t rows_of(uint32_t length) {
  return (static_cast<uint32_t>(sizeof(PayloadRow)) + length + kRow - 1) / kRow * kRow;
}

template <class T>
void put(std::string* blob, T value) {
  blob->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A geometry's number in this process: in the child of a fork those of the parent are told again.
uint32_t told_id(const Geometry& g) {
  if (g.id) return g.id;
  bool made = false;
  const Geometry* told = intern_geometry(g, &made);
  if (made) announce_geometry(*told);
  return told->id;
}

void put_tensor(std::string* blob, const void* handle) {
  if (!handle) return put(blob, kAbsent);
  ObjectPtr object = find_object(handle);
  put(blob, object && object->geometry ? told_id(*object->geometry) : kUnknown);
}

void put_scalar(std::string* blob, const void* handle) {
  ObjectPtr object = find_object(handle);
  put(blob, object ? object->dtype : -1);
  put(blob, !handle ? kAbsent : object ? static_cast<uint32_t>(object->words.size()) : kUnknown);
  if (object) blob->append(object->words);
}

void put_members(std::string* blob, const void* handle, Kind kind) {
  ObjectPtr object = find_object(handle);
  if (!object) return put(blob, handle ? kUnknown : kAbsent);
  put(blob, static_cast<uint32_t>(object->members.size()));
  for (const void* member : object->members)
    kind == Kind::TensorList ? put_tensor(blob, member) : put_scalar(blob, member);
}

void put_array(std::string* blob, const void* handle) {
  ObjectPtr object = find_object(handle);
  if (!object) return put(blob, handle ? kUnknown : kAbsent);
  put(blob, static_cast<uint32_t>(object->words.size()));
  blob->append(object->words);
}

void put_text(std::string* blob, const char* text) {
  if (!text) return put(blob, kAbsent);
  auto length = static_cast<uint32_t>(strnlen(text, kLongestText));
  put(blob, length);
  blob->append(text, length);
}

bool in_detail(Kind kind) { return kind < Kind::Executor || kind == Kind::String; }

void put_parameter(std::string* blob, const Frame& f, const Parameter& p) {
  auto handle = reinterpret_cast<const void*>(argument(f, p));
  switch (p.kind) {
    case Kind::Tensor: return put_tensor(blob, handle);
    case Kind::Scalar: return put_scalar(blob, handle);
    case Kind::TensorList:
    case Kind::ScalarList: return put_members(blob, handle, p.kind);
    case Kind::IntArray:
    case Kind::BoolArray:
    case Kind::FloatArray: return put_array(blob, handle);
    case Kind::String: return put_text(blob, reinterpret_cast<const char*>(handle));
    case Kind::Real: return put(blob, real_argument(f, p));
    case Kind::Integer: return put(blob, argument(f, p));
    default: return put(blob, static_cast<uint64_t>(handle != nullptr));
  }
}

// Details seen before, so that a training loop's calls are written once. Forgotten as a whole when
// they grow: ids go on, and the same detail may then be written again under another.
class Details {
 public:
  uint32_t intern(uint32_t function, const std::string& blob) {
    uint64_t hash = hash_of(function, blob);
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = known_.find(hash);
    if (found != known_.end()) return found->second;
    if (known_.size() > kMost) known_.clear();
    uint32_t id = next_++;
    known_.emplace(hash, id);
    put_row(RowType::Detail, id, function, blob.data(), blob.size());
    return id;
  }
  void forget() {
    known_.clear();
    next_ = 1;
  }

 private:
  static constexpr size_t kMost = 1u << 20;
  static uint64_t hash_of(uint32_t function, const std::string& blob) {
    uint64_t hash = (function + 1) * 0x9E3779B97F4A7C15ull;
    size_t i = 0;
    for (; i + 8 <= blob.size(); i += 8) {
      uint64_t word;
      memcpy(&word, blob.data() + i, 8);
      hash = mix(hash, word);
    }
    uint64_t tail = blob.size();
    for (; i < blob.size(); ++i) tail = tail << 8 | static_cast<unsigned char>(blob[i]);
    return mix(hash, tail);
  }
  static uint64_t mix(uint64_t hash, uint64_t word) {
    __uint128_t wide = static_cast<__uint128_t>(hash ^ word) * 0xD6E8FEB86659FD93ull;
    return static_cast<uint64_t>(wide) ^ static_cast<uint64_t>(wide >> 64);
  }
  std::mutex mutex_;
  std::unordered_map<uint64_t, uint32_t> known_;
  uint32_t next_ = 1;
};

Details& details() {
  static Details* made = new Details;
  return *made;
}

bool stacks_wanted = false;

struct Stacks {
  std::mutex mutex;
  std::unordered_map<std::string, uint32_t> known;
};

Stacks& stacks() {
  static Stacks* made = new Stacks;
  return *made;
}

uint32_t stack_here() {
  std::string text = python_stack();
  if (text.empty()) return 0;
  Stacks& all = stacks();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto [place, made] = all.known.emplace(text, static_cast<uint32_t>(all.known.size() + 1));
  if (made) put_row(RowType::Stack, place->second, 0, text.data(), text.size());
  return place->second;
}

bool makes(Role role) {
  return role == Role::CreateTensor || role == Role::CreateTensorList || role == Role::CreateScalar ||
         role == Role::CreateScalarList || role == Role::CreateIntArray ||
         role == Role::CreateBoolArray || role == Role::CreateFloatArray;
}

Kind made_kind(Role role) {
  switch (role) {
    case Role::CreateTensor: return Kind::Tensor;
    case Role::CreateTensorList: return Kind::TensorList;
    case Role::CreateScalar: return Kind::Scalar;
    case Role::CreateScalarList: return Kind::ScalarList;
    case Role::CreateIntArray: return Kind::IntArray;
    case Role::CreateBoolArray: return Kind::BoolArray;
    default: return Kind::FloatArray;
  }
}

// Keeps its memory from call to call.
std::string& empty_blob() {
  struct Blob {
    std::string bytes;
  };
  std::string& bytes = aclnn_bindings::per_thread<Blob>().bytes;
  bytes.clear();
  return bytes;
}

uint32_t detail_of(const Frame& f, const Function& fn) {
  std::string& blob = empty_blob();
  int last = fn.role == Role::PhaseOne ? fn.row->count - 2 : fn.row->count;
  bool any = fn.role == Role::PhaseOne;
  for (int i = 0; i < last; ++i) {
    const Parameter& p = fn.parameters[i];
    if (fn.role != Role::PhaseOne && !in_detail(p.kind)) continue;
    // A handle that the call ends is gone already; its number among the words says which it was.
    if (fn.role != Role::PhaseOne && p.kind != Kind::String) continue;
    put_parameter(&blob, f, p);
    any = true;
  }
  return any ? details().intern(fn.number, blob) : 0;
}

uint64_t out_value(const Frame& f, const Parameter& p) {
  auto at = reinterpret_cast<const char*>(argument(f, p));
  uint64_t value = 0;
  if (at) memcpy(&value, at, p.out_width);
  return value;
}

struct Words {
  uint64_t word[kWordsInCall + kWordsInRow];
  int count = 0;
  void add(uint64_t value) {
    if (count < kWordsInCall + kWordsInRow) word[count++] = value;
  }
};

uint64_t word_of(const Frame& f, const Parameter& p) {
  if (p.kind != Kind::Real) return argument(f, p);
  double value = real_argument(f, p);
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}

void plain_words(const Frame& f, const Call& call, Words* words) {
  const Function& fn = *call.function;
  bool failed = fn.row->returns == Returns::Status && call.status != 0;
  for (int i = 0; i < fn.row->count; ++i) {
    const Parameter& p = fn.parameters[i];
    if (p.kind == Kind::String) continue;
    words->add(p.out_width && !failed ? out_value(f, p) : word_of(f, p));
  }
  if (fn.row->returns == Returns::Word) words->add(f.results[0]);
}

Words words_of(const Frame& f, const Call& call) {
  const Function& fn = *call.function;
  Words words;
  if (fn.role == Role::PhaseTwo) {
    words.add(integer_argument(f, fn, 3));
    words.add(integer_argument(f, fn, 1));
    words.add(call.phase_one);
  } else if (fn.role == Role::PhaseOne) {
    bool done = call.status == 0;
    words.add(done ? out_value(f, fn.parameters[fn.row->count - 2]) : 0);
    words.add(done ? out_value(f, fn.parameters[fn.row->count - 1]) : 0);
  } else if (makes(fn.role)) {
    words.add(f.results[0]);
    if (fn.role == Role::CreateTensor) words.add(integer_argument(f, fn, 8));
  } else {
    plain_words(f, call, &words);
  }
  return words;
}

uint16_t flags_of(Role role) {
  CallFlags flag = role == Role::PhaseOne   ? kPhaseOne
                   : role == Role::PhaseTwo ? kPhaseTwo
                   : makes(role)            ? kMakes
                                            : kNoFlags;
  return static_cast<uint16_t>(flag);
}

// What a call made, as the detail of a phase 1 would name it.
uint32_t new_made_detail(const Frame& f, const Call& call) {
  std::string& blob = empty_blob();
  auto handle = reinterpret_cast<const void*>(f.results[0]);
  Parameter as{made_kind(call.function->role), Place::Integer, 0, 8, 0, 0, Thing::None, 0};
  Frame one;
  one.integers[0] = reinterpret_cast<uint64_t>(handle);
  put_parameter(&blob, one, as);
  return details().intern(call.function->number, blob);
}

uint32_t made_detail(const Frame& f, const Call& call) {
  const Geometry* geometry = call.object ? call.object->geometry : nullptr;
  if (geometry && geometry->detail) return geometry->detail.load(std::memory_order_relaxed);
  uint32_t detail = new_made_detail(f, call);
  if (geometry) geometry->detail = detail;
  return detail;
}

}  // namespace

void put_row(RowType type, uint32_t id, uint32_t extra, const char* data, size_t length) {
  auto kept = static_cast<uint32_t>(std::min<size_t>(length, piece_size() - kRow));
  char* at = reserve(rows_of(kept));
  if (!at) return;
  PayloadRow head{static_cast<uint8_t>(type), {}, id, kept, extra};
  memcpy(at, &head, sizeof head);
  memcpy(at + sizeof head, data, kept);
  commit(rows_of(kept));
}

void announce_geometry(const Geometry& g) {
  if (!spool_is_open()) return;
  std::string blob;
  put(&blob, g.dtype);
  put(&blob, g.format);
  put(&blob, g.offset);
  for (const auto* part : {&g.shape, &g.strides, &g.storage}) {
    put(&blob, static_cast<uint32_t>(part->size()));
    blob.append(reinterpret_cast<const char*>(part->data()), part->size() * 8);
  }
  put_row(RowType::Geometry, g.id, 0, blob.data(), blob.size());
}

void record_before(const Frame& f, Call* call) {
  const Function& fn = *call->function;
  if (fn.role == Role::PhaseTwo) {
    if (auto* launch = static_cast<const Launch*>(call->object.get())) {
      call->detail = launch->detail;
      call->phase_one = launch->phase_one;
      call->stack = launch->stack;
    }
  } else if (!makes(fn.role) && fn.row->known) {
    call->detail = detail_of(f, fn);
    if (stacks_wanted && fn.role == Role::PhaseOne) call->stack = stack_here();
  }
  mark_running(fn.number + 1, call->detail, call->number);
}

void record_after(const Frame& f, const Call& call, uint64_t end) {
  mark_running(0, 0, 0);
  const Function& fn = *call.function;
  Words words = words_of(f, call);
  bool more = words.count > kWordsInCall;
  uint64_t took = end > call.start ? end - call.start : 0;
  bool long_call = took > 0xFFFFFFFFull;
  CallRow row{};
  row.type = static_cast<uint8_t>(RowType::Call);
  row.words = static_cast<uint8_t>(words.count);
  row.flags = static_cast<uint16_t>(flags_of(fn.role) | call.flags);
  if (more) row.flags |= kMoreWords;
  if (long_call) row.flags |= kMicroseconds;
  row.function = fn.number;
  row.number = call.number;
  row.start = call.start;
  row.duration = static_cast<uint32_t>(long_call ? took / 1000 : took);
  row.status = call.status;
  row.detail = makes(fn.role) && f.results[0] ? made_detail(f, call) : call.detail;
  row.stack = call.stack;
  memcpy(row.word, words.word, sizeof row.word);
  char* at = reserve(more ? 2 * kRow : kRow);
  if (!at) return;
  memcpy(at, &row, kRow);
  if (more) {
    memset(at + kRow, 0, kRow);
    at[kRow] = static_cast<char>(RowType::Words);
    memcpy(at + kRow + 8, words.word + kWordsInCall,
           8 * static_cast<size_t>(words.count - kWordsInCall));
  }
  commit(more ? 2 * kRow : kRow);
}

void record_stacks(bool on) { stacks_wanted = on; }

void forget_details() {
  details().forget();
  stacks().known.clear();
}

}  // namespace layers
