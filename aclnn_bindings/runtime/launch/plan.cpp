// Owns the making of plans, argument by argument in declaration order; see plan.h.
#include "plan.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_set>

#include "registry.h"

namespace launch {

namespace {

std::mutex plans_mutex;
std::vector<Plan*> plans;

void release_constants(Plan& plan) {
  // Lists come after their members and destroy them, so members are not kept here.
  for (auto& constant : plan.constants) constant.destroy(constant.handle);
  plan.constants.clear();
}

// Texts outlive their plans, because a failure that names them may come later. A program that
// makes shapes without end gets the operators' names alone.
const char* kept_text(const std::string& text) {
  constexpr size_t kMost = 1 << 14;
  static std::mutex mutex;
  static std::unordered_set<std::string> kept;
  std::lock_guard<std::mutex> lock(mutex);
  const bool room = kept.size() < kMost || kept.count(text);
  return kept.insert(room ? text : text.substr(0, text.find('('))).first->c_str();
}

// Reads a plan's arguments from words; see mt_word. A number is a word, two's complement where it
// has a sign.
class Reader {
 public:
  Reader(Plan& plan, const uint64_t* words, uint64_t count)
      : plan_(plan), at_(words), end_(words + count) {}

  bool all() {
    while (at_ != end_)
      if (!argument(static_cast<mt_word>(next()))) return false;
    return true;
  }

 private:
  bool argument(mt_word kind) {
    switch (kind) {
      case MT_WORD_VALUE: return value();
      case MT_WORD_ROLE: return role();
      case MT_WORD_TEXT: return text();
      case MT_WORD_SCALAR: return scalar();
      case MT_WORD_SCALARS: return scalars();
      case MT_WORD_INTS:
        return array(acl.aclCreateIntArray, acl.aclDestroyIntArray, "aclCreateIntArray");
      case MT_WORD_BOOLS:
        return array(acl.aclCreateBoolArray, acl.aclDestroyBoolArray, "aclCreateBoolArray");
      case MT_WORD_FLOATS:
        return array(acl.aclCreateFloatArray, acl.aclDestroyFloatArray, "aclCreateFloatArray");
      case MT_WORD_TENSOR: return tensor(place(1, false));
      default: return tensors();
    }
  }

  uint64_t next() { return *at_++; }

  Phase& phase_of(uint64_t phase) { return phase == 2 ? plan_.two : plan_.one; }

  // The frame index of the next argument, -1 after recording that there are too many.
  int place(uint64_t phase, bool is_float) {
    const int at = phase_of(phase).layout.place(is_float);
    if (at < 0) fail(MT_PHASE_ARGUMENTS, MT_TOO_MANY_ARGUMENTS, plan_.name.c_str(), kStack);
    return at;
  }

  bool put(uint64_t phase, bool is_float, uint64_t bits) {
    const int at = place(phase, is_float);
    if (at >= 0) phase_of(phase).frame.words[at] = bits;
    return at >= 0;
  }

  bool value() {
    const uint64_t phase = next(), is_float = next();
    return put(phase, is_float != 0, next());
  }

  bool role() {
    const uint64_t phase = next();
    const int at = place(phase, false);
    if (at >= 0) phase_of(phase).roles[next()] = at;
    return at >= 0;
  }

  bool text() {
    const uint64_t phase = next();
    plan_.texts.emplace_back(reinterpret_cast<const char*>(next()));
    return put(phase, false, reinterpret_cast<uint64_t>(plan_.texts.back().c_str()));
  }

  bool constant(Handle handle, Status (*destroy)(Handle), const char* call) {
    if (!handle) return fail(MT_PHASE_DESCRIPTOR, MT_NULL_DESCRIPTOR, call), false;
    plan_.constants.push_back({handle, destroy});
    return put(1, false, reinterpret_cast<uint64_t>(handle));
  }

  static bool missing(const char* call) {
    return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, call), false;
  }

  Handle made_scalar() {
    const auto dtype = static_cast<int32_t>(next());
    uint64_t bytes[2] = {next(), next()};  // room for a complex128
    return acl.aclCreateScalar(bytes, dtype);
  }

  bool scalar() {
    if (!acl.aclCreateScalar || !acl.aclDestroyScalar) return missing("aclCreateScalar");
    return constant(made_scalar(), acl.aclDestroyScalar, "aclCreateScalar");
  }

  bool scalars() {
    if (!acl.aclCreateScalar || !acl.aclDestroyScalar) return missing("aclCreateScalar");
    if (!acl.aclCreateScalarList || !acl.aclDestroyScalarList)
      return missing("aclCreateScalarList");
    const uint64_t count = next();
    std::vector<Handle> members;
    while (members.size() < count) {
      Handle member = made_scalar();
      if (!member) break;
      members.push_back(member);
    }
    const bool whole = members.size() == count;
    Handle list = whole ? acl.aclCreateScalarList(members.data(), count) : nullptr;
    if (!list)
      for (Handle member : members) acl.aclDestroyScalar(member);
    return constant(list, acl.aclDestroyScalarList, "aclCreateScalarList");
  }

  template <class Element>
  bool array(Handle (*create)(const Element*, uint64_t), Status (*destroy)(Handle),
             const char* call) {
    if (!create || !destroy) return missing(call);
    const uint64_t count = next();
    std::unique_ptr<Element[]> values(new Element[count + 1]());
    for (uint64_t k = 0; k < count; ++k) {
      const uint64_t word = next();
      std::memcpy(&values[k], &word, sizeof(Element));  // the low bytes: a little-endian host
    }
    return constant(create(values.get(), count), destroy, call);
  }

  bool tensor(int at) {
    if (at >= 0) add_tensor(at);
    return at >= 0;
  }

  bool tensors() {
    if (!acl.aclCreateTensorList || !acl.aclDestroyTensorList)
      return missing("aclCreateTensorList");
    const int at = place(1, false);
    if (at < 0) return false;
    const uint64_t count = next();
    plan_.lists.push_back(
        {static_cast<uint32_t>(plan_.tensors.size()), static_cast<uint32_t>(count), at});
    for (uint64_t k = 0; k < count; ++k) add_tensor(-1);
    return true;
  }

  void add_tensor(int at) {
    TensorSpec spec{};
    spec.rank = next();
    spec.storage_rank = next();
    spec.offset = static_cast<int64_t>(next());
    spec.dtype = static_cast<int32_t>(next());
    spec.format = static_cast<int32_t>(next());
    spec.allocate = next();
    const uint64_t total = spec.rank * 2 + spec.storage_rank;
    // One word more than needed: a 0-d tensor still passes a pointer that is not null.
    std::unique_ptr<int64_t[]> numbers(new int64_t[total + 1]());
    for (uint64_t k = 0; k < total; ++k) numbers[k] = static_cast<int64_t>(next());
    spec.dims = numbers.get();
    spec.strides = spec.dims + spec.rank;
    spec.storage_dims = spec.strides + spec.rank;
    plan_.tensors.push_back({spec, std::move(numbers), at});
    ++(spec.allocate ? plan_.allocated : plan_.given);
  }

  Plan& plan_;
  const uint64_t *at_, *end_;
};

bool is_standard(const Phase& two) {
  const Layout& layout = two.layout;
  return layout.general == 4 && layout.vector == 0 && layout.stack == 0 && two.roles[0] == 0 &&
         two.roles[1] == 1 && two.roles[2] == 2 && two.roles[3] == 3;
}

}  // namespace

bool wait_for_launches() {
  std::lock_guard<std::mutex> lock(plans_mutex);
  return std::all_of(plans.begin(), plans.end(),
                     [](const Plan* plan) { return wait_until_left(plan->users); });
}

void close_plans() {
  std::lock_guard<std::mutex> lock(plans_mutex);
  for (Plan* plan : plans) {
    release_constants(*plan);
    plan->session = 0;
    give_up(plan);
  }
  plans.clear();
}

}  // namespace launch

using namespace launch;

extern "C" {

uint64_t mt_plan_make(const char* name, const char* about, uint64_t first, uint64_t second,
                      const uint64_t* words, uint64_t count) {
  Inside entry;
  if (!entry.ready()) return fail_state("mt_plan_make"), 0;
  if (!acl.aclCreateTensor || !acl.aclDestroyTensor)
    return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, "aclCreateTensor"), 0;
  auto plan = std::make_unique<Plan>();
  plan->session = entry.number();
  plan->name = name;
  plan->name_one = plan->name + "GetWorkspaceSize";
  plan->one.function = reinterpret_cast<void*>(first);
  plan->two.function = reinterpret_cast<void*>(second);
  for (Phase* phase : {&plan->one, &plan->two}) std::fill_n(phase->roles, 4, -1);
  plan->about = kept_text(about);
  if (!Reader(*plan, words, count).all()) return release_constants(*plan), 0;
  for (Phase* phase : {&plan->one, &plan->two}) phase->tier = tier_for<uint64_t>(phase->layout);
  plan->standard_two = is_standard(plan->two);
  std::lock_guard<std::mutex> lock(plans_mutex);
  plan->place = plans.size();
  plans.push_back(plan.get());
  return number(plan.release());
}

void mt_plan_close(uint64_t handle) {
  Inside entry;
  Plan* plan = as<Plan>(handle);
  // In a fork the mutex may be held by a thread that is not there; there the session is over.
  if (!plan || !entry.allows(plan->session.load()) || shut(plan)) return;
  std::lock_guard<std::mutex> lock(plans_mutex);
  plans[plan->place] = plans.back();
  plans[plan->place]->place = plan->place;
  plans.pop_back();
  release_constants(*plan);
  give_up(plan);
}

// One that could not be closed stays for the end of the session.
void mt_plan_free(uint64_t handle) {
  mt_plan_close(handle);
  if (handle) give_up(as<Plan>(handle));
}

}  // extern "C"
