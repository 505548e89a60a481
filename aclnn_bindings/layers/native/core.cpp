#include "core.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "callers.h"
#include "clock.h"
#include "data.h"
#include "device_time.h"
#include "faults.h"
#include "findings.h"
#include "recorder.h"
#include "roles.h"
#include "settings.h"
#include "spool.h"
#include "status.h"
#include "strict.h"
#include "tracking.h"

extern "C" {
// For a process that puts itself between its own code and the install: looks at calls as the file
// of settings says, from now on and until it is stopped. Whether it does.
__attribute__((visibility("default"))) int layers_start(const char* settings);
__attribute__((visibility("default"))) void layers_stop(void);
__attribute__((visibility("hidden"))) int layers_before(layers::Frame* frame);
__attribute__((visibility("hidden"))) void layers_after(layers::Frame* frame);
}

namespace layers {
namespace {

// Whether any layer looks. Off from the start, or once a layer failed.
std::atomic<bool> active{false};
// Layers that look at every call; where there are only faults, the others are forwarded for good.
bool every_call = false;

struct Core {
  Settings settings;
  Table table;
  std::vector<Function> functions;
};

Core* core = nullptr;
std::once_flag started;

void after_fork_in_child() {
  forget_details();
  forget_objects_ids();
  spool_after_fork();
  strict_after_fork();
  device_time_after_fork();
}

void load_functions(Core* made) {
  made->functions.resize(made->table.size());
  for (uint32_t i = 0; i < made->table.size(); ++i) {
    const Row& row = made->table.row(i);
    const char* name = made->table.name(i);
    made->functions[i] = {i, &row, made->table.parameters(row), name, role_of(name, row)};
  }
}

// Something asked for is not done: the program is told, and so is the command that started it.
void refuse(const std::string& reason) {
  fprintf(stderr, "mindtorch layers: %s\n", reason.c_str());
  note_failure(reason.c_str());
}

// Somebody removed the variable from this process's environment: no layer looks at it.
void refuse_without_settings() {
  const std::string path = inherited_settings();
  Settings settings;
  if (path.empty() || !settings.read(path.c_str())) return;
  open_status(settings.status.c_str());
  refuse(std::string(kSettingsVariable) + " was removed from the environment of process " +
         std::to_string(getpid()) + ": none of its calls is seen");
}

void start(const char* path) {
  auto* made = new Core;
  core = made;
  if (!path || !*path) return refuse_without_settings();
  if (!made->settings.read(path))
    return refuse(std::string(path) + " cannot be read by this user, or from here");
  if (!made->settings.status.empty() && !open_status(made->settings.status.c_str()))
    return refuse(made->settings.status + " cannot be opened by this user, or from here");
  note_started();
  if (!made->settings.any_layer()) return;
  if (!made->table.open(made->settings.table.c_str()))
    return refuse(made->settings.table + " is no table of functions");
  for (const std::string& folder : made->settings.internal) add_internal_folder(folder.c_str());
  if (!made->settings.spool.empty() && !open_spool(made->settings.spool.c_str()))
    return refuse(made->settings.spool + " is no spool, or cannot be opened by this user");
  load_functions(made);
  for (const std::string& rule : made->settings.faults)
    if (!add_fault(rule)) refuse("no fault: " + rule);
  prepare_faults(made->functions);
  record_stacks(made->settings.stacks);
  if (made->settings.device_time && spool_is_open()) time_launches();
  for (const std::string& rule : made->settings.data)
    if (!add_data_rule(rule)) refuse("no rule for data: " + rule);
  if (made->settings.data_limit) limit_data(made->settings.data_limit);
  if (!made->settings.findings.empty())
    start_strict(made->settings);
  every_call = spool_is_open() || strict_is_on();
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  active.store(true);
}

// Slots that hold the real function, with the stub that each held before.
struct Bound {
  std::mutex mutex;
  std::vector<std::pair<void**, void*>> slots;
};

Bound& bound() {
  static Bound* made = new Bound;
  return *made;
}

void bind_slot(void** slot, void* target) {
  void* stub = __atomic_exchange_n(slot, target, __ATOMIC_ACQ_REL);
  if (stub == target) return;  // another thread was faster
  std::lock_guard<std::mutex> lock(bound().mutex);
  bound().slots.emplace_back(slot, stub);
}

void unbind_slots() {
  std::lock_guard<std::mutex> lock(bound().mutex);
  for (const auto& entry : bound().slots) __atomic_store_n(entry.first, entry.second, __ATOMIC_RELEASE);
  bound().slots.clear();
}

// Looks again, after a stop: as a process of its own, whose handles and ids begin anew. The spool
// and the table stay those of the first start.
void start_again(const char* path) {
  Settings settings;
  if (!settings.read(path) || settings.spool != core->settings.spool ||
      settings.table != core->settings.table)
    return;
  forget_objects();
  after_fork_in_child();
  record_stacks(settings.stacks);
  forget_data_rules();
  for (const std::string& rule : settings.data) add_data_rule(rule);
  unbind_slots();
  active.store(true);
}

void* real_function(ShimDescriptor* shim, uint64_t index) {
  void* handle = library_of(shim);
  if (!handle) {
    handle = dlopen(shim->real, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) handle = dlopen(shim->real, RTLD_LAZY);
    __atomic_store_n(&shim->handle, handle, __ATOMIC_RELEASE);
  }
  const char* name = shim->strings + shim->names[index];
  void* found = handle ? dlsym(handle, name) : nullptr;
  if (!found) {
    fprintf(stderr, "mindtorch layers: %s: not found in %s: the library changed while it was in "
            "use; run the program again\n", name, shim->real);
    abort();
  }
  return found;
}

// Where real functions are, per shim and symbol; a slot that stays with its stub has it here.
struct Targets {
  std::mutex mutex;
  std::vector<std::pair<ShimDescriptor*, std::vector<std::atomic<void*>>*>> shims;
};

std::vector<std::atomic<void*>>& targets_of(ShimDescriptor* shim) {
  static Targets* all = new Targets;
  static thread_local ShimDescriptor* last LAYER_TLS = nullptr;
  static thread_local std::vector<std::atomic<void*>>* found LAYER_TLS = nullptr;
  if (shim == last) return *found;
  std::lock_guard<std::mutex> lock(all->mutex);
  found = nullptr;
  for (auto& entry : all->shims)
    if (entry.first == shim) found = entry.second;
  if (!found) {
    found = new std::vector<std::atomic<void*>>(shim->count);
    all->shims.emplace_back(shim, found);
  }
  last = shim;
  return *found;
}

void* target_of(ShimDescriptor* shim, uint64_t index) {
  std::atomic<void*>& place = targets_of(shim)[index];
  void* target = place.load(std::memory_order_acquire);
  if (target) return target;
  target = real_function(shim, index);
  place.store(target, std::memory_order_release);
  return target;
}

Call* call_in(Frame* frame) {
  static_assert(sizeof(Call) <= sizeof frame->scratch, "a call lies in the frame");
  return reinterpret_cast<Call*>(frame->scratch);
}

bool is_looked_at(const ShimDescriptor& shim, uint64_t index) {
  return active.load(std::memory_order_relaxed) &&
         (every_call || is_faulty(core->functions[shim.numbers[index]]));
}

constexpr uint64_t kUnknownStack = 32;  // words copied for a function without a signature

// ACLNN_ERR_PARAM_INVALID, ACL_ERROR_INVALID_PARAM.
int32_t refusal_of(const Function& function) {
  return strncmp(function.name, "aclnn", 5) ? 100000 : 161002;
}

Action begin(Frame* frame) {
  const Function& function = core->functions[frame->shim->numbers[frame->index]];
  Call* call = new (frame->scratch) Call{};
  call->function = &function;
  call->number = next_call_number();
  frame->stack_words = function.row->known ? function.row->stack_words : kUnknownStack;
  if (faults_are_on()) {
    call->start = now_ns();
    if (fault_before(frame, call)) return kReturn;
  }
  track_before(*frame, call);
  if (strict_is_on()) strict_before(*frame, *call);
  if (spool_is_open()) record_before(*frame, call);
  if (strict_is_on() && call->function->role != Role::Finalize && findings_fail_call()) {
    fail_call(frame, call, refusal_of(function));
    return kReturn;
  }
  if (spool_is_open() && data_is_on()) data_before(*frame, call);
  if (device_time_is_on()) device_time_before(*frame, *call);
  call->start = now_ns();
  return kCall;
}

void finish(Frame* frame) {
  uint64_t end = now_ns();
  Call* call = call_in(frame);
  if (call->function->row->returns == Returns::Status)
    call->status = static_cast<int32_t>(frame->results[0]);
  if (device_time_is_on() && !(call->flags & kInjected)) device_time_after(*frame, *call);
  track_after(*frame, call);
  if (faults_are_on()) fault_after(*frame, *call);
  if (strict_is_on() && !(call->flags & kInjected)) strict_after(*frame, *call);
  if (spool_is_open() && data_is_on()) data_after(*frame, *call);
  if (spool_is_open()) record_after(*frame, *call, end);
  call->~Call();
}

}  // namespace

uint64_t argument(const Frame& frame, const Parameter& p) {
  uint64_t word = p.place == Place::Integer ? frame.integers[p.index]
                  : p.place == Place::Stack ? frame.stack[p.index]
                  : p.place == Place::Vector ? frame.vectors[p.index].low
                                             : 0;
  if (p.width >= 8 || p.kind == Kind::Real) return word;
  unsigned shift = 64 - 8u * p.width;
  return p.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(word << shift) >> shift)
                     : word << shift >> shift;
}

double real_argument(const Frame& frame, const Parameter& p) {
  uint64_t word = argument(frame, p);
  if (p.width == 4) {
    auto half = static_cast<uint32_t>(word);
    float value;
    memcpy(&value, &half, 4);
    return static_cast<double>(value);
  }
  double value;
  memcpy(&value, &word, 8);
  return value;
}

void* real_named(ShimDescriptor* shim, const char* name) {
  void* library = library_of(shim);
  return library ? dlsym(library, name) : nullptr;
}

void step_aside(const char* reason) {
  if (!active.exchange(false)) return;
  note_failure(reason);
  fprintf(stderr, "mindtorch layers: %s; layers step aside, the program goes on\n", reason);
}

const Function* function_number(uint32_t number) {
  return number < core->functions.size() ? &core->functions[number] : nullptr;
}

}  // namespace layers

int layers_start(const char* settings) {
  using namespace layers;
  bool first = false;
  std::call_once(started, [&] {
    first = true;
    start(settings);
  });
  if (!first) start_again(settings);
  return active.load();
}

void layers_stop(void) { layers::active.store(false); }

int layers_before(layers::Frame* frame) {
  using namespace layers;
  int saved = errno;
  std::call_once(started, [] { start(getenv(kSettingsVariable)); });
  ShimDescriptor* shim = frame->shim;
  frame->target = target_of(shim, frame->index);
  int action = kJump;
  if (!is_looked_at(*shim, frame->index)) {
    bind_slot(&shim->slots[frame->index], frame->target);
  } else if (!is_internal(frame->caller)) {
    try {
      action = begin(frame);
    } catch (const std::exception& error) {
      step_aside(error.what());
    }
  }
  errno = saved;
  return action;
}

void layers_after(layers::Frame* frame) {
  int saved = errno;
  try {
    layers::finish(frame);
  } catch (const std::exception& error) {
    layers::step_aside(error.what());
  }
  errno = saved;
}
