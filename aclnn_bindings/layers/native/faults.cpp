#include "faults.h"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "recorder.h"
#include "roles.h"
#include "status.h"

namespace layers {

struct FaultRule {
  std::string glob;
  uint64_t nth;
  bool delay;
  bool armed;
  int64_t value;
  size_t number;  // among all that were asked for
  std::atomic<uint64_t> seen{0};
};

namespace {

constexpr int32_t kOutOfMemory = 207001;  // ACL_ERROR_RT_MEMORY_ALLOCATION

struct Faults {
  std::vector<std::unique_ptr<FaultRule>> rules;
  std::vector<std::vector<FaultRule*>> by_function;
  size_t count = 0;    // rules that were asked for
  uint64_t limit = 0;  // bytes of device memory; 0: none
  size_t limit_number = 0;
  std::mutex mutex;
  uint64_t held = 0;
  std::unordered_map<uint64_t, uint64_t> sizes;
};

Faults& faults() {
  static Faults* made = new Faults;
  return *made;
}

// What `layers_fail_call` asked for, over all functions with an armed rule.
std::atomic<uint64_t> calls{0}, chosen{0};
std::atomic<const char*> failed{nullptr};

bool is_chosen(const Function& function) {
  if (calls.fetch_add(1) + 1 != chosen.load()) return false;
  failed.store(function.name);
  return true;
}

bool over_limit(const Frame& frame, const Call& call) {
  Faults& all = faults();
  if (!all.limit || call.function->role != Role::Malloc) return false;
  std::lock_guard<std::mutex> lock(all.mutex);
  const uint64_t room = all.limit - std::min(all.held, all.limit);
  if (integer_argument(frame, *call.function, 1) <= room) return false;
  note_match(all.limit_number);
  return true;
}

}  // namespace

bool add_fault(const std::string& text) {
  std::istringstream words(text);
  std::string glob, nth, action;
  int64_t value = 0;
  size_t number = faults().count++;
  if (!(words >> glob)) return false;
  if (glob == "memory") {
    faults().limit_number = number;
    return static_cast<bool>(words >> faults().limit);
  }
  if (!(words >> nth >> action >> value)) return false;
  auto rule = std::make_unique<FaultRule>();
  rule->glob = glob;
  rule->nth = std::stoull(nth);
  rule->delay = action == "delay";
  rule->armed = action == "armed";
  rule->value = value;
  rule->number = number;
  faults().rules.push_back(std::move(rule));
  return true;
}

void prepare_faults(const std::vector<Function>& functions) {
  Faults& all = faults();
  all.by_function.resize(functions.size());
  for (const Function& function : functions)
    for (auto& rule : all.rules)
      if (!fnmatch(rule->glob.c_str(), function.name, 0))
        all.by_function[function.number].push_back(rule.get());
}

void fail_call(Frame* frame, Call* call, int64_t status) {
  bool word = call->function->row->returns == Returns::Word;
  frame->results[0] = word ? 0 : static_cast<uint64_t>(status);
  frame->results[1] = 0;
  call->flags |= kInjected;
}

bool faults_are_on() { return !faults().rules.empty() || faults().limit; }

bool is_faulty(const Function& function) {
  const Faults& all = faults();
  bool memory = function.role == Role::Malloc || function.role == Role::Free ||
                function.role == Role::FreeWithSync;
  return !all.by_function[function.number].empty() || (all.limit && memory);
}

bool fault_before(Frame* frame, Call* call) {
  bool fails = false;
  for (FaultRule* rule : faults().by_function[call->function->number]) {
    if (rule->armed) {
      note_match(rule->number);
      if (rule->value && is_chosen(*call->function)) {
        fail_call(frame, call, rule->value);
        fails = true;
      }
      break;
    }
    uint64_t count = rule->seen.fetch_add(1) + 1;
    if (rule->nth && rule->nth != count) continue;
    note_match(rule->number);
    if (rule->delay) {
      usleep(static_cast<useconds_t>(rule->value));
      call->flags |= kInjected;
    } else {
      fail_call(frame, call, rule->value);
      fails = true;
    }
  }
  if (!fails && over_limit(*frame, *call)) {
    fail_call(frame, call, kOutOfMemory);
    fails = true;
  }
  return fails;
}

void fault_after(const Frame& frame, const Call& call) {
  Faults& all = faults();
  if (!all.limit || call.status != 0) return;
  const Function& fn = *call.function;
  std::lock_guard<std::mutex> lock(all.mutex);
  if (fn.role == Role::Malloc) {
    uint64_t size = integer_argument(frame, fn, 1);
    all.sizes[*pointer_argument<uint64_t*>(frame, fn, 0)] = size;
    all.held += size;
  } else if (fn.role == Role::Free || fn.role == Role::FreeWithSync) {
    auto found = all.sizes.find(integer_argument(frame, fn, 0));
    if (found == all.sizes.end()) return;
    all.held -= found->second;
    all.sizes.erase(found);
  }
}

}  // namespace layers

uint64_t layers_fail_call(uint64_t nth) {
  layers::chosen.store(0);
  layers::failed.store(nullptr);
  const uint64_t before = layers::calls.exchange(0);
  layers::chosen.store(nth);
  return before;
}

const char* layers_failed_call(void) { return layers::failed.load(); }
