// Owns the session's life, failures and counters; see state.h.
#include "state.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <cstring>
#include <string>

#include "device.h"
#include "per_thread.h"
#include "plan.h"
#include "registry.h"

namespace launch {

Acl acl;
std::atomic<uint64_t> session{0};
std::atomic<uint32_t> inside{0};
int32_t launch_blocking = 0;
int32_t memory_caching = 1;
int32_t memory_guard = 0;
int32_t memory_garbage = -1;
mt_counts counts;

namespace {

struct Row {
  const char* name;
  int32_t required;
  void** at;
};

#define X(required, result, name, parameters) \
  {#name, required, reinterpret_cast<void**>(&acl.name)},
const Row kRows[] = {LAUNCH_ACL_FUNCTIONS(X)};
#undef X
constexpr uint32_t kRowCount = sizeof(kRows) / sizeof(kRows[0]);

// aclInit's answer when the process initialised ACL before us (acl_base.h).
constexpr int32_t kRepeatInitialize = 100002;

uint64_t sessions_made = 0;
bool initialised_by_us = false;
bool light_by_us = false;  // aclnnInit is documented once per process
bool forked = false;
bool watching_forks = false;

struct Failure {
  mt_failure failure{};
  std::string call, message;  // copies: a plan's name may go before the failure is read
};

Failure& thread_failure() { return aclnn_bindings::per_thread<Failure>(); }

void in_child() {
  if (session.load() == 0) return;
  forked = true;
  session.store(0);
  inside.store(0);
}

void watch_forks() {
  if (!watching_forks) pthread_atfork(nullptr, nullptr, in_child);
  watching_forks = true;
}

}  // namespace

bool wait_until_left(const std::atomic<uint32_t>& count) {
  constexpr std::chrono::seconds kPatience{10};
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (count.load() > 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    sched_yield();
  }
  return true;
}

int32_t fail(mt_phase phase, int32_t code, const char* call, uint64_t detail) {
  fail_with(phase, code, call, code > 0 ? take_message() : "");
  thread_failure().failure.detail = detail;
  return code;
}

int32_t fail_with(mt_phase phase, int32_t code, const char* call, const std::string& message) {
  Failure& last = thread_failure();
  last.call = call;
  last.message = message;
  last.failure = {static_cast<int32_t>(phase), code, last.call.c_str(), last.message.c_str(), 0};
  return code;
}

std::string take_message() {
  const char* text = acl.aclGetRecentErrMsg ? acl.aclGetRecentErrMsg() : nullptr;
  return text ? text : "";
}

int32_t fail_state(const char* call) {
  int32_t reason = MT_CLOSED_HANDLE;
  if (forked) {
    reason = MT_FORKED;
  } else if (session.load() == 0) {
    reason = sessions_made ? MT_STOPPED : MT_NOT_STARTED;
  }
  return fail(MT_PHASE_STATE, reason, call);
}

void drain_messages() {
  if (acl.aclGetRecentErrMsg) acl.aclGetRecentErrMsg();
}

}  // namespace launch

using namespace launch;

extern "C" {

uint64_t mt_library_open(const char* path, int32_t whole, char* why, uint64_t room) {
  void* library = dlopen(path, (whole ? RTLD_NOW : RTLD_LAZY) | RTLD_LOCAL);
  if (!library && room) {
    const char* text = dlerror();
    strncpy(why, text ? text : "dlopen gave no reason", room - 1);
    why[room - 1] = '\0';
  }
  return reinterpret_cast<uint64_t>(library);
}

uint64_t mt_library_symbol(uint64_t library, const char* name) {
  return reinterpret_cast<uint64_t>(dlsym(reinterpret_cast<void*>(library), name));
}

const char* mt_function_name(uint32_t index) {
  return index < kRowCount ? kRows[index].name : nullptr;
}

int32_t mt_function_required(uint32_t index) {
  return index < kRowCount ? kRows[index].required : 0;
}

void mt_function_bind(uint32_t index, uint64_t address) {
  if (index < kRowCount) *kRows[index].at = reinterpret_cast<void*>(address);
}

int32_t mt_start(const char* config) {
  if (forked) return fail_state("mt_start");
  if (session.load()) return 0;
  const int32_t code = acl.aclInit(config);
  if (code != 0 && code != kRepeatInitialize) return check(code, "aclInit");
  initialised_by_us = code == 0;
  if (code != 0) drain_messages();
  if (acl.aclnnInit) {
    const int32_t light = acl.aclnnInit(config);
    // It is documented for once in a process, and operators initialise themselves without it.
    light_by_us = light == 0;
    if (light != 0) drain_messages();
  }
  watch_forks();
  session.store(++sessions_made);
  return 0;
}

int32_t mt_stop(void) {
  if (session.load() == 0) return 0;
  const uint64_t stopping = session.exchange(0);
  if (!wait_until_left(inside) || !wait_for_launches()) {
    session.store(stopping);
    return fail(MT_PHASE_STATE, MT_STILL_USED, "mt_stop");
  }
  collect_returned();
  close_plans();
  const int32_t devices = close_devices();
  if (acl.aclnnFinalize && light_by_us) acl.aclnnFinalize();
  int32_t code = 0;
  const char* call = "aclFinalize";
  // A count of references is given back one by one where ACL can do that; else the final word
  // is left to whoever initialised first.
  if (acl.aclFinalizeReference) {
    uint64_t left = 0;
    call = "aclFinalizeReference";
    code = acl.aclFinalizeReference(&left);
  } else if (initialised_by_us) {
    code = acl.aclFinalize();
  }
  return devices ? devices : check(code, call);
}

uint64_t mt_session(void) { return session.load(); }
void mt_launch_blocking(int32_t on) { launch_blocking = on; }
void mt_memory_caching(int32_t on) { memory_caching = on; }
void mt_memory_guard(int32_t mode) { memory_guard = mode; }
int32_t mt_memory_garbage(int32_t value) {
  memory_garbage = value;
  return memory_guard;
}
int32_t mt_is_launch_blocking(void) { return launch_blocking; }
const mt_failure* mt_last_failure(void) { return &thread_failure().failure; }
const mt_counts* mt_counters(void) { return &counts; }

const char* mt_recent_message(void) {
  return acl.aclGetRecentErrMsg ? acl.aclGetRecentErrMsg() : nullptr;
}

}  // extern "C"
