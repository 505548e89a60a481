#include "strict.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <unordered_set>

#include "blocks.h"
#include "roles.h"
#include "settings.h"
#include "tracking.h"

namespace layers {
namespace {

// What a handle may be; the first eight as Kind counts them.
enum What : uint8_t {
  kTensor, kTensorList, kScalar, kScalarList, kIntArray, kBoolArray, kFloatArray, kExecutor,
  kStream, kEvent, kContext, kWhats,
};
const char* const kNames[kWhats] = {
    "aclTensor", "aclTensorList", "aclScalar", "aclScalarList", "aclIntArray", "aclBoolArray",
    "aclFloatArray", "aclOpExecutor", "aclrtStream", "aclrtEvent", "aclrtContext"};

enum class Death : uint8_t { None, Destroyed, ByList, Launched };

struct Held {
  What what;
  Death death = Death::None;
  OriginPtr made;
  std::vector<const void*> members;
};

struct Strict {
  std::mutex mutex;
  std::unordered_map<const void*, Held> handles;
  Blocks blocks;
  Order order;
  bool finalized = false;
  std::unordered_set<uintptr_t> judged;  // pages of unknown memory that are not the host's
  std::unordered_set<std::string> races;  // pairs of functions and places already told
};

Strict* strict = nullptr;
bool races_only = false;
thread_local int32_t device = 0;  // for the default stream

std::string shown(What what, const void* handle) {
  char text[64];
  snprintf(text, sizeof text, "%s %p", kNames[what], handle);
  return text;
}

std::string shown(uintptr_t address, uint64_t size) {
  char text[64];
  snprintf(text, sizeof text, "0x%" PRIxPTR " (%" PRIu64 " bytes)", address, size);
  return text;
}

void tell(const Call& call, const char* what, std::string object, const Origin* made,
          const char* remedy) {
  if (races_only && strcmp(what, "race")) return;
  report({what, call.function->name, std::move(object), origin_text(made), remedy, 1, call.number});
}

// ---- handles ----

bool what_of(const Parameter& p, What* what) {
  if (p.kind <= Kind::Executor) {
    *what = static_cast<What>(p.kind);
    return true;
  }
  if (p.kind != Kind::Handle || p.thing == Thing::None) return false;
  *what = static_cast<What>(kStream + static_cast<int>(p.thing) - 1);
  return true;
}

bool destroys(Role role) {
  switch (role) {
    case Role::DestroyTensor: case Role::DestroyValue: case Role::DestroyList:
    case Role::DestroyExecutor: case Role::DestroyStream: case Role::DestroyEvent:
    case Role::DestroyContext:
      return true;
    default:
      return false;
  }
}

void tell_dead(const Call& call, What what, const void* handle, const Held& held) {
  bool destroying = destroys(call.function->role);
  std::string object = shown(what, handle);
  if (held.death == Death::ByList)
    return tell(call, destroying ? "list-member-destroyed-again" : "use-after-destroy", object,
                held.made.get(), "Its list owned and destroyed it; leave members of a list alone.");
  if (held.death == Death::Launched)
    return tell(call, "executor-used-twice", object, held.made.get(),
                "Phase 2 used the executor up. Run phase 1 again, or make the executor repeatable "
                "with aclSetAclOpExecutorRepeatable.");
  tell(call, destroying ? "double-destroy" : "use-after-destroy", object, held.made.get(),
       destroying ? "Destroy each handle once." : "Destroy it after its last use.");
}

void check_handle(const Call& call, const Parameter& p, const void* handle) {
  What what;
  if (!handle || !what_of(p, &what)) return;
  auto found = strict->handles.find(handle);
  if (found == strict->handles.end()) return;
  const Held& held = found->second;
  if (held.death != Death::None) {
    if (held.what == what) tell_dead(call, what, handle, held);
  } else if (held.what != what) {
    tell(call, "not-a-handle", shown(held.what, handle), held.made.get(),
         "Pass the handle that the parameter's type names.");
  }
}

void check_handles(const Frame& f, const Call& call) {
  const Function& fn = *call.function;
  for (int i = 0; i < fn.row->count; ++i)
    check_handle(call, fn.parameters[i], pointer_argument<const void*>(f, fn, i));
}

void hold(const void* handle, What what, const std::vector<const void*>* members = nullptr) {
  Held& held = strict->handles[handle];
  held = Held{what, Death::None, origin_here(), {}};
  if (members) held.members = *members;
}

void bury(const void* handle, Death death) {
  auto found = strict->handles.find(handle);
  if (found == strict->handles.end() || found->second.death != Death::None) return;
  found->second.death = death;
  for (const void* member : found->second.members) bury(member, Death::ByList);
  found->second.members.clear();
}

// ---- memory ----

const char kOutside[] = "Pass an address inside a live allocation of device memory.";

// Whether unknown memory is plainly the host's: a file's, the heap's or a stack's. Device memory
// that other means than the allocation functions gave is none of these.
bool is_host_memory(uintptr_t address) {
  if (!strict->judged.insert(address >> 12).second) return false;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t start, end;
    if (sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &start, &end) != 2) continue;
    if (address < start || address >= end) continue;
    size_t name = line.find('/');
    bool file = name != std::string::npos && line.compare(name, 5, "/dev/") != 0;
    bool host = file || line.find("[heap]") != std::string::npos ||
                line.find("[stack]") != std::string::npos;
    if (host) strict->judged.erase(address >> 12);
    return host;
  }
  return false;
}

// The device block of an address; tells of one that surely is none.
Block* block_at(const Call& call, uintptr_t address, uint64_t size) {
  Block* block = strict->blocks.find(address);
  if (block && block->device) return block;
  if (block || strict->blocks.was_freed(address) || is_host_memory(address))
    tell(call, "pointer-outside-device-memory", shown(address, size),
         block ? block->made.get() : nullptr, kOutside);
  return nullptr;
}

StreamKey key_of(const void* stream) {
  return stream ? reinterpret_cast<StreamKey>(stream) : static_cast<StreamKey>(device) + 1;
}

void tell_race(const Call& call, const Access& now, const Access& before) {
  std::string pair = std::string(before.function) + "|" + now.function + "|" +
                     origin_text(before.origin.get()) + "|" + origin_text(now.origin.get());
  if (!strict->races.insert(pair).second) return;
  char text[256];
  snprintf(text, sizeof text, "%s by %s (call %" PRIu64 ") and %s by this one share 0x%" PRIxPTR,
           before.write ? "write" : "read", before.function, before.number,
           now.write ? "write" : "read", std::max(now.start, before.start));
  tell(call, "race", text, before.origin.get(),
       "Record an event after the first and let the other stream wait for it, or synchronise.");
}

void touch(const Call& call, Block* block, Access access) {
  if (strict->order.captured(access.stream)) return;
  access.number = call.number;
  access.function = call.function->name;
  const Access now = access;
  if (const Access* race = strict->blocks.touch(block, std::move(access), strict->order))
    tell_race(call, now, *race);
}

void touch_use(const Call& call, const TensorUse& use, uint8_t access, StreamKey stream,
               uint64_t time, const OriginPtr& here) {
  uintptr_t start, end;
  if (!extent_of(use, &start, &end)) return;
  Block* block = block_at(call, start, end - start);
  if (!block) return;
  if (end > block->end)
    tell(call, "view-past-allocation", shown(start, end - start), block->made.get(),
         "Allocate what shape, strides and offset reach, or correct these.");
  auto base = reinterpret_cast<uintptr_t>(use.data);
  touch(call, block, {start, std::min(end, block->end), (access & 2) != 0, stream, time, 0, "",
                      use.geometry, base, here});
}

void check_views(const Call& call, const Launch& launch) {
  for (const TensorUse& use : launch.uses) {
    if (!use.geometry || use.geometry->storage.empty()) continue;
    const Geometry& g = *use.geometry;
    int64_t room = 1, last = g.offset;
    for (int64_t n : g.storage) room *= n;
    bool empty = false;
    for (size_t i = 0; i < g.shape.size(); ++i) {
      last += std::max<int64_t>(g.strides[i], 0) * (g.shape[i] - 1);
      empty |= g.shape[i] == 0;
    }
    bool private_format = g.format > 3 && g.format != 30 && g.format != 35 && g.format != 47;
    if (empty || private_format || last < room) continue;
    tell(call, "view-past-storage", shown(reinterpret_cast<uintptr_t>(use.data), 0), nullptr,
         "Correct strides, offset or shape: the view reaches past the storage's elements.");
  }
}

void launch(const Frame& f, const Call& call) {
  const Function& fn = *call.function;
  if (!call.object || call.object->kind != Kind::Executor) return;
  const auto& prepared = static_cast<const Launch&>(*call.object);
  auto workspace = integer_argument(f, fn, 0);
  uint64_t size = integer_argument(f, fn, 1);
  if (prepared.workspace && !workspace)
    tell(call, "workspace-missing", shown(workspace, prepared.workspace), nullptr,
         "Allocate the bytes that phase 1 asked for and pass them.");
  else if (size < prepared.workspace)
    tell(call, "workspace-too-small", shown(workspace, size), nullptr,
         "Pass at least the bytes that phase 1 asked for.");
  StreamKey stream = key_of(pointer_argument<const void*>(f, fn, 3));
  uint64_t time = strict->order.launch(stream);
  OriginPtr here = origin_here();
  const Function* one = function_number(fn.row->partner);
  for (size_t i = 0; i < prepared.uses.size(); ++i)
    touch_use(call, prepared.uses[i], one->parameters[prepared.positions[i]].access, stream, time,
              here);
  if (!workspace || !prepared.workspace) return;
  if (Block* block = block_at(call, workspace, size)) {
    if (workspace + prepared.workspace > block->end)
      tell(call, "workspace-too-small", shown(workspace, block->end - workspace),
           block->made.get(), "Allocate at least the bytes that phase 1 asked for.");
    touch(call, block, {workspace, std::min<uintptr_t>(workspace + size, block->end), true, stream,
                        time, 0, "", nullptr, 0, here});
  }
}

// One side of a copy or fill: device memory is checked and noted, host memory is not. What was
// device memory once and is unknown now may be the host's; `named` says that the call calls it
// the device's.
void copied(const Call& call, uintptr_t start, uint64_t size, bool write, bool named,
            StreamKey stream, uint64_t time, const OriginPtr& here) {
  Block* block = strict->blocks.find(start);
  if (!block) {
    if (named && strict->blocks.was_freed(start))
      tell(call, "pointer-outside-device-memory", shown(start, size), nullptr, kOutside);
    return;
  }
  if (start + size > block->end)
    tell(call, "copy-past-allocation", shown(start, size), block->made.get(),
         "Copy at most what the memory holds.");
  if (block->device)
    touch(call, block, {start, std::min<uintptr_t>(start + size, block->end), write, stream, time,
                        0, "", nullptr, 0, here});
}

// aclrtMemcpy[Async](dst, destMax, src, count, kind[, stream]). A copy that waits is work of a
// stream of its own, done when it returns.
void copy(const Frame& f, const Call& call, bool waits) {
  const Function& fn = *call.function;
  uint64_t size = integer_argument(f, fn, 3);
  if (!size) return;
  constexpr StreamKey kHost = ~0ull;
  StreamKey stream = waits ? kHost : key_of(pointer_argument<const void*>(f, fn, 5));
  uint64_t time = strict->order.launch(stream);
  OriginPtr here = origin_here();
  uint64_t kind = integer_argument(f, fn, 4);  // aclrtMemcpyKind: 1 to, 2 from, 3 in the device
  copied(call, integer_argument(f, fn, 0), size, true, kind == 1 || kind == 3, stream, time, here);
  copied(call, integer_argument(f, fn, 2), size, false, kind == 2 || kind == 3, stream, time, here);
  if (waits) strict->order.host_waits_for_stream(kHost);
}

// aclrtMemset[Async](devPtr, maxCount, value, count[, stream]).
void fill(const Frame& f, const Call& call, bool waits) {
  const Function& fn = *call.function;
  uint64_t size = integer_argument(f, fn, 3);
  if (!size) return;
  constexpr StreamKey kHost = ~0ull;
  StreamKey stream = waits ? kHost : key_of(pointer_argument<const void*>(f, fn, 4));
  uint64_t time = strict->order.launch(stream);
  copied(call, integer_argument(f, fn, 0), size, true, true, stream, time, origin_here());
  if (waits) strict->order.host_waits_for_stream(kHost);
}

void free_memory(const Frame& f, const Call& call, bool device_memory) {
  const Function& fn = *call.function;
  auto start = static_cast<uintptr_t>(integer_argument(f, fn, 0));
  if (!start) return;
  Block* block = strict->blocks.find(start);
  if (!block || block->start != start) {
    return tell(call, "free-of-unknown-memory", shown(start, 0), nullptr,
                "Free each allocation once, by the address that allocating it gave.");
  }
  for (const Access& access : block->accesses) {
    if (fn.role == Role::FreeWithSync || !device_memory ||
        strict->order.done(access.stream, access.time))
      continue;
    std::string object = shown(start, block->end - start) + ", used by " + access.function;
    tell(call, "freed-while-in-use", object, block->made.get(),
         "Synchronise the stream that uses it before freeing it.");
    break;
  }
  strict->blocks.remove(start);
}

// ---- life ----

bool may_follow_finalize(const char* name) {
  static const char* const kBegin[] = {"aclrtGet", "aclrtPeek", "aclrtReset", "aclrtFreeHost"};
  if (strncmp(name, "aclrt", 5) && strncmp(name, "aclnn", 5)) return true;
  for (const char* begin : kBegin)
    if (!strncmp(name, begin, strlen(begin))) return true;
  return false;
}

void tell_leaks(const Call& call) {
  if (races_only) return;
  std::map<std::pair<std::string, std::string>, int64_t> leaks;
  for (const auto& [handle, held] : strict->handles)
    if (held.death == Death::None)
      ++leaks[{kNames[held.what], origin_text(held.made.get())}];
  strict->blocks.each([&](const Block& block) {
    ++leaks[{block.device ? "device memory" : "host memory", origin_text(block.made.get())}];
  });
  for (const auto& [leak, count] : leaks) {
    std::string object = leak.first + (count > 1 ? " x" + std::to_string(count) : "");
    report({"leak", call.function->name, object, leak.second,
            "Destroy or free it before aclFinalize.", count, call.number});
  }
}

// Whether a wait has ended the work that it waited for: also where that work had failed, not where
// the wait itself was refused or timed out (507046, 507047).
bool has_waited(const Call& call) {
  return call.status == 0 ||
         (call.status >= 507000 && call.status != 507046 && call.status != 507047);
}

// What asks for a context, or for an error, may find none.
bool asks(const char* name) { return !strncmp(name, "aclrtGet", 8) || !strncmp(name, "aclrtPeek", 9); }

void check_status(const Call& call) {
  if (asks(call.function->name)) return;
  if (call.status == 107002)
    tell(call, "no-context", "aclrtContext", nullptr,
         "Call aclrtSetDevice or aclrtSetCurrentContext on this thread first.");
  else if (call.status == 107003)
    tell(call, "wrong-context", "aclrtContext", nullptr,
         "Make the context current in which the stream was made.");
}

uint64_t out_handle(const Frame& f, const Function& fn) {
  auto* place = pointer_argument<const uint64_t*>(f, fn, 0);
  return place ? *place : 0;
}

void made_by(const Frame& f, const Call& call) {
  const Function& fn = *call.function;
  auto returned = reinterpret_cast<const void*>(f.results[0]);
  auto out = [&] { return reinterpret_cast<const void*>(out_handle(f, fn)); };
  switch (fn.role) {
    case Role::CreateTensor: return hold(returned, kTensor);
    case Role::CreateScalar: return hold(returned, kScalar);
    case Role::CreateIntArray: return hold(returned, kIntArray);
    case Role::CreateBoolArray: return hold(returned, kBoolArray);
    case Role::CreateFloatArray: return hold(returned, kFloatArray);
    case Role::CreateTensorList: return hold(returned, kTensorList, &call.object->members);
    case Role::CreateScalarList: return hold(returned, kScalarList, &call.object->members);
    case Role::CreateStream: return hold(out(), kStream);
    case Role::CreateEvent: return hold(out(), kEvent);
    case Role::CreateContext: return hold(out(), kContext);
    case Role::PhaseOne: {
      auto* place = pointer_argument<const void* const*>(f, fn, fn.row->count - 1);
      if (place && *place) hold(*place, kExecutor);
      return;
    }
    case Role::Malloc:
    case Role::Reserve:
    case Role::MallocHost:
      return strict->blocks.add(out_handle(f, fn), integer_argument(f, fn, 1),
                                fn.role != Role::MallocHost, origin_here());
    default:
      return;
  }
}

void ordered_by(const Frame& f, const Call& call) {
  const Function& fn = *call.function;
  Order& order = strict->order;
  auto handle = [&](int i) { return pointer_argument<const void*>(f, fn, i); };
  switch (fn.role) {
    case Role::WaitEvent:
      return order.wait(key_of(handle(0)), integer_argument(f, fn, 1));
    case Role::SynchronizeStream:
    case Role::DestroyStream:
      return order.host_waits_for_stream(key_of(handle(0)));
    case Role::SynchronizeEvent:
      return order.host_waits_for_event(integer_argument(f, fn, 0));
    case Role::SynchronizeDevice:
    case Role::FreeWithSync:
    case Role::ResetDevice:
      return order.host_waits_for_all();
    case Role::QueryStream: {
      auto* status = pointer_argument<const int32_t*>(f, fn, 1);
      if (!call.status && status && *status == 0) order.host_waits_for_stream(key_of(handle(0)));
      return;
    }
    case Role::QueryEvent: {
      auto* status = pointer_argument<const int32_t*>(f, fn, 1);
      bool recorded = strstr(fn.name, "Status") != nullptr;  // there 1 means complete, else 0
      if (!call.status && status && *status == (recorded ? 1 : 0))
        order.host_waits_for_event(integer_argument(f, fn, 0));
      return;
    }
    case Role::SetDevice:
      device = static_cast<int32_t>(integer_argument(f, fn, 0));
      return;
    default:
      return;
  }
}

}  // namespace

void start_strict(const Settings& settings) {
  const std::string& mode = settings.strict_mode;
  set_findings_file(settings.findings.c_str(), mode == "abort"   ? Mode::Abort
                                               : mode == "error" ? Mode::Error
                                                                 : Mode::Report);
  for (const std::string& globs : settings.allowed) allow_finding(globs);
  races_only = settings.races_only;
  keep_uses();
  strict = new Strict;
}

bool strict_is_on() { return strict != nullptr; }

void strict_before(const Frame& f, const Call& call) {
  std::lock_guard<std::mutex> lock(strict->mutex);
  const Function& fn = *call.function;
  if (!fn.row->known) return;
  if (strict->finalized && !may_follow_finalize(fn.name))
    tell(call, "call-after-finalize", fn.name, nullptr, "aclFinalize comes last.");
  check_handles(f, call);
  auto first = pointer_argument<const void*>(f, fn, 0);
  switch (fn.role) {
    case Role::PhaseOne: {
      Launch seen;
      collect_uses(f, fn, &seen);
      return check_views(call, seen);
    }
    case Role::PhaseTwo: {
      launch(f, call);
      auto* prepared = static_cast<const Launch*>(call.object.get());
      if (prepared && !prepared->repeatable)
        bury(pointer_argument<const void*>(f, fn, 2), Death::Launched);
      return;
    }
    case Role::RecordEvent:
      return strict->order.record(integer_argument(f, fn, 0),
                                  key_of(pointer_argument<const void*>(f, fn, 1)));
    case Role::Copy: return copy(f, call, true);
    case Role::CopyAsync: return copy(f, call, false);
    case Role::Fill: return fill(f, call, true);
    case Role::FillAsync: return fill(f, call, false);
    case Role::Free:
    case Role::FreeWithSync:
    case Role::Release: return free_memory(f, call, true);
    case Role::FreeHost: return free_memory(f, call, false);
    case Role::DestroyEvent: strict->order.forget_event(integer_argument(f, fn, 0)); break;
    case Role::Finalize: return tell_leaks(call);
    default: break;
  }
  if (destroys(fn.role)) bury(first, Death::Destroyed);
}

void strict_after(const Frame& f, const Call& call) {
  std::lock_guard<std::mutex> lock(strict->mutex);
  const Function& fn = *call.function;
  if (!fn.row->known) return;
  if (has_waited(call)) ordered_by(f, call);
  if (call.status != 0) return check_status(call);
  if (fn.role == Role::Finalize) strict->finalized = true;
  if (fn.role == Role::Initialize) strict->finalized = false;
  if (fn.row->returns != Returns::Word || f.results[0]) made_by(f, call);
}

void strict_after_fork() {
  if (strict) strict = new Strict;
}

}  // namespace layers
