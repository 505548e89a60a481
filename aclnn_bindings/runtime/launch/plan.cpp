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

Phase& phase_of(Plan& plan, int32_t phase) { return phase == 2 ? plan.two : plan.one; }

// The frame index of the next argument, -1 after recording that there are too many.
int place(Plan& plan, int32_t phase, bool is_float) {
  const int at = phase_of(plan, phase).layout.place(is_float);
  if (at < 0) fail(MT_PHASE_ARGUMENTS, MT_TOO_MANY_ARGUMENTS, plan.name.c_str(), kStack);
  return at;
}

int32_t put(Plan& plan, int32_t phase, bool is_float, uint64_t bits) {
  const int at = place(plan, phase, is_float);
  if (at < 0) return MT_TOO_MANY_ARGUMENTS;
  phase_of(plan, phase).frame.words[at] = bits;
  return 0;
}

int32_t put_constant(Plan& plan, Handle handle, Status (*destroy)(Handle), const char* call) {
  if (!handle) return fail(MT_PHASE_DESCRIPTOR, MT_NULL_DESCRIPTOR, call);
  plan.constants.push_back({handle, destroy});
  return put(plan, 1, false, reinterpret_cast<uint64_t>(handle));
}

int32_t missing(const char* call) { return fail(MT_PHASE_STATE, MT_MISSING_FUNCTION, call); }

void add_tensor(Plan& plan, const mt_tensor& spec, int at) {
  const uint64_t total = spec.rank * 2 + spec.storage_rank;
  // One word more than needed: a 0-d tensor still passes a pointer that is not null.
  std::unique_ptr<int64_t[]> numbers(new int64_t[total + 1]());
  TensorSlot slot{spec, nullptr, at};
  std::copy_n(spec.dims, spec.rank, numbers.get());
  std::copy_n(spec.strides, spec.rank, numbers.get() + spec.rank);
  std::copy_n(spec.storage_dims, spec.storage_rank, numbers.get() + spec.rank * 2);
  slot.spec.dims = numbers.get();
  slot.spec.strides = numbers.get() + spec.rank;
  slot.spec.storage_dims = numbers.get() + spec.rank * 2;
  slot.numbers = std::move(numbers);
  plan.tensors.push_back(std::move(slot));
  ++(spec.allocate ? plan.allocated : plan.given);
}

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

uint64_t mt_plan_open(const char* name, uint64_t first, uint64_t second) {
  Inside entry;
  if (!entry.ready()) return fail_state("mt_plan_open"), 0;
  if (!acl.aclCreateTensor || !acl.aclDestroyTensor) return missing("aclCreateTensor"), 0;
  auto* plan = new Plan{};
  plan->session = entry.number();
  plan->name = name;
  plan->name_one = plan->name + "GetWorkspaceSize";
  plan->one.function = reinterpret_cast<void*>(first);
  plan->two.function = reinterpret_cast<void*>(second);
  for (Phase* phase : {&plan->one, &plan->two}) std::fill_n(phase->roles, 4, -1);
  plan->about = kept_text(plan->name);
  std::lock_guard<std::mutex> lock(plans_mutex);
  plan->place = plans.size();
  plans.push_back(plan);
  return number(plan);
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

int32_t mt_plan_about(uint64_t plan, const char* text) {
  as<Plan>(plan)->about = kept_text(text);
  return 0;
}

int32_t mt_plan_value(uint64_t plan, int32_t phase, int32_t is_float, uint64_t bits) {
  Inside entry;
  if (!entry.allows(as<Plan>(plan)->session.load())) return fail_state("mt_plan_value");
  return put(*as<Plan>(plan), phase, is_float != 0, bits);
}

int32_t mt_plan_role(uint64_t handle, int32_t phase, int32_t role) {
  Inside entry;
  if (!entry.allows(as<Plan>(handle)->session.load())) return fail_state("mt_plan_role");
  Plan& plan = *as<Plan>(handle);
  const int at = place(plan, phase, false);
  if (at < 0) return MT_TOO_MANY_ARGUMENTS;
  phase_of(plan, phase).roles[role] = at;
  return 0;
}

int32_t mt_plan_text(uint64_t handle, int32_t phase, const char* text) {
  Inside entry;
  if (!entry.allows(as<Plan>(handle)->session.load())) return fail_state("mt_plan_text");
  Plan& plan = *as<Plan>(handle);
  plan.texts.emplace_back(text);
  return put(plan, phase, false, reinterpret_cast<uint64_t>(plan.texts.back().c_str()));
}

int32_t mt_plan_scalar(uint64_t handle, const void* value, int32_t dtype) {
  Inside entry;
  if (!entry.allows(as<Plan>(handle)->session.load())) return fail_state("mt_plan_scalar");
  if (!acl.aclCreateScalar || !acl.aclDestroyScalar) return missing("aclCreateScalar");
  Handle scalar = acl.aclCreateScalar(const_cast<void*>(value), dtype);
  return put_constant(*as<Plan>(handle), scalar, acl.aclDestroyScalar, "aclCreateScalar");
}

int32_t mt_plan_scalar_list(uint64_t handle, const void* values, const int32_t* dtypes,
                            uint64_t count) {
  Inside entry;
  if (!entry.allows(as<Plan>(handle)->session.load())) return fail_state("mt_plan_scalar_list");
  if (!acl.aclCreateScalarList || !acl.aclDestroyScalarList) return missing("aclCreateScalarList");
  constexpr uint64_t kStep = 16;  // bytes between values: room for a complex128
  const char* bytes = static_cast<const char*>(values);
  std::vector<Handle> members;
  for (uint64_t k = 0; k < count; ++k) {
    Handle member = acl.aclCreateScalar(const_cast<char*>(bytes + k * kStep), dtypes[k]);
    if (!member) break;
    members.push_back(member);
  }
  Handle list = members.size() == count ? acl.aclCreateScalarList(members.data(), count) : nullptr;
  if (!list)
    for (Handle member : members) acl.aclDestroyScalar(member);
  return put_constant(*as<Plan>(handle), list, acl.aclDestroyScalarList, "aclCreateScalarList");
}

int32_t mt_plan_array(uint64_t handle, int32_t kind, const void* values, uint64_t count) {
  Inside entry;
  if (!entry.allows(as<Plan>(handle)->session.load())) return fail_state("mt_plan_array");
  Plan& plan = *as<Plan>(handle);
  switch (kind) {
    case MT_INT_ARRAY:
      if (!acl.aclCreateIntArray || !acl.aclDestroyIntArray) return missing("aclCreateIntArray");
      return put_constant(plan, acl.aclCreateIntArray(static_cast<const int64_t*>(values), count),
                          acl.aclDestroyIntArray, "aclCreateIntArray");
    case MT_BOOL_ARRAY:
      if (!acl.aclCreateBoolArray || !acl.aclDestroyBoolArray) return missing("aclCreateBoolArray");
      return put_constant(plan, acl.aclCreateBoolArray(static_cast<const bool*>(values), count),
                          acl.aclDestroyBoolArray, "aclCreateBoolArray");
    default:
      if (!acl.aclCreateFloatArray || !acl.aclDestroyFloatArray)
        return missing("aclCreateFloatArray");
      return put_constant(plan, acl.aclCreateFloatArray(static_cast<const float*>(values), count),
                          acl.aclDestroyFloatArray, "aclCreateFloatArray");
  }
}

int32_t mt_plan_tensor(uint64_t handle, const mt_tensor* tensor) {
  Inside entry;
  if (!entry.allows(as<Plan>(handle)->session.load())) return fail_state("mt_plan_tensor");
  Plan& plan = *as<Plan>(handle);
  const int at = place(plan, 1, false);
  if (at < 0) return MT_TOO_MANY_ARGUMENTS;
  add_tensor(plan, *tensor, at);
  return 0;
}

int32_t mt_plan_tensor_list(uint64_t handle, const mt_tensor* tensors, uint64_t count) {
  Inside entry;
  if (!entry.allows(as<Plan>(handle)->session.load())) return fail_state("mt_plan_tensor_list");
  if (!acl.aclCreateTensorList || !acl.aclDestroyTensorList) return missing("aclCreateTensorList");
  Plan& plan = *as<Plan>(handle);
  const int at = place(plan, 1, false);
  if (at < 0) return MT_TOO_MANY_ARGUMENTS;
  plan.lists.push_back(
      {static_cast<uint32_t>(plan.tensors.size()), static_cast<uint32_t>(count), at});
  for (uint64_t k = 0; k < count; ++k) add_tensor(plan, tensors[k], -1);
  return 0;
}

int32_t mt_plan_ready(uint64_t handle) {
  Inside entry;
  if (!entry.allows(as<Plan>(handle)->session.load())) return fail_state("mt_plan_ready");
  Plan& plan = *as<Plan>(handle);
  for (Phase* phase : {&plan.one, &plan.two}) phase->tier = tier_for<uint64_t>(phase->layout);
  plan.standard_two = is_standard(plan.two);
  return 0;
}

}  // extern "C"
