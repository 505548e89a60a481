// Signals in memory: notifies, and values that streams write and wait for.
#include "ascendcl/notify.h"

#include <chrono>
#include <thread>

#include "ascendcl/device.h"
#include "ascendcl/memory.h"
#include "ascendcl/strict.h"

namespace aclsim {

Notify* make_notify(ThreadState* state, bool counting) {
  static std::atomic<uint32_t> next{0};
  auto* made = acquire<Notify>(state, Kind::Notify);
  made->id = next.fetch_add(1);
  made->counting = counting;
  made->signal = new std::shared_ptr<Signal>(std::make_shared<Signal>());
  count_live(state, Kind::Notify, 1);
  if (strict()) remember_origin(made);
  return made;
}

void end_notify(ThreadState* state, Notify* notify) {
  count_live(state, Kind::Notify, -1);
  if (strict()) forget_origin(notify);
  retire(notify, Kind::Notify, Death::Destroyed);
  delete notify->signal;
  recycle(state, notify, Kind::Notify);
}

ACLSIM_NOINLINE aclError not_a_notify(const char* function, Notify* notify) {
  if (!notify) return null_pointer(function, "notify");
  if (strict() && !notify->is(Kind::Notify)) report_dead(function, notify, Kind::Notify);
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                "%s failed because %p is not a live notify of its sort.", function,
                static_cast<void*>(notify));
}

namespace {

// The documented comparisons of aclrtValueWait.
bool satisfied(uint64_t found, uint64_t value, uint32_t flag) {
  switch (flag) {
    case ACL_STREAM_WAIT_VALUE_EQ: return found == value;
    case ACL_STREAM_WAIT_VALUE_AND: return (found & value) != 0;
    case ACL_STREAM_WAIT_VALUE_NOR: return ~(found | value) != 0;
    default: return static_cast<int64_t>(found - value) >= 0;
  }
}

aclError check_word(const char* function, void* address) {
  if (!address) return null_pointer(function, "devAddr");
  std::shared_ptr<Allocation> block = find_allocation(address);
  if (block && reinterpret_cast<uintptr_t>(address) % 8 == 0) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                "%s failed because %p is not an 8-byte aligned address of acl memory.", function,
                address);
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) {
  ACLSIM_REQUIRE(notify);
  ACLSIM_CONTEXT(context);
  (void)context;
  if (flag > ACL_NOTIFY_DEVICE_USE_ONLY) return bad_value(__func__, "flag", "unknown", "0 or 1");
  *notify = make_notify(state, false);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtDestroyNotify(aclrtNotify notify) {
  ThreadState* state = thread();
  ACLSIM_NOTIFY(mine, notify, false);
  end_notify(state, mine);
  return ACL_SUCCESS;
}
// At once, in no stream's order.
ACLSIM_API aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num) {
  thread();
  ACLSIM_REQUIRE(notifies);
  if (!num) return bad_value(__func__, "num", "0", "must be greater than 0");
  for (size_t i = 0; i < num; ++i) {
    ACLSIM_NOTIFY(mine, notifies[i], false);
    std::lock_guard<std::mutex> lock((*mine->signal)->mutex);
    (*mine->signal)->value = 0;
  }
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId) {
  ACLSIM_REQUIRE(notifyId);
  ACLSIM_NOTIFY(mine, notify, false);
  *notifyId = mine->id;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  ACLSIM_NOTIFY(mine, notify, false);
  auto* signal = new std::shared_ptr<Signal>(*mine->signal);
  return submit(on, make_task([signal](Stream*) -> aclError {
    std::lock_guard<std::mutex> lock((*signal)->mutex);
    (*signal)->value = 1;
    (*signal)->changed.notify_all();
    return ACL_SUCCESS;
  }, false, [signal] { delete signal; }), "NOTIFY_RECORD");
}
// The stream waits, at most `timeout` ms unless 0, and takes the signal away again.
ACLSIM_API aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream,
                                            uint32_t timeout) {
  ACLSIM_STREAM(on, stream);
  ACLSIM_NOTIFY(mine, notify, false);
  auto* signal = new std::shared_ptr<Signal>(*mine->signal);
  return submit(on, make_task([=](Stream* live) -> aclError {
    std::unique_lock<std::mutex> lock((*signal)->mutex);
    auto ready = [&] { return (*signal)->value || live->aborted.load(); };
    auto step = std::chrono::milliseconds(timeout ? timeout : 50);
    bool came = (*signal)->changed.wait_for(lock, step, ready);
    while (!came && !timeout) came = (*signal)->changed.wait_for(lock, step, ready);
    (*signal)->value = 0;
    return came ? ACL_SUCCESS : ACL_ERROR_RT_TS_ERROR;
  }, true, [signal] { delete signal; }), "NOTIFY_WAIT");
}

ACLSIM_API aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag,
                                    aclrtStream stream) {
  if (flag) return bad_value(__func__, "flag", "nonzero", "0");
  ACLSIM_STREAM(on, stream);
  aclError code = check_word(__func__, devAddr);
  if (code != ACL_SUCCESS) return code;
  return submit(on, make_task([=](Stream*) -> aclError {
    __atomic_store_n(static_cast<uint64_t*>(devAddr), value, __ATOMIC_RELEASE);
    return ACL_SUCCESS;
  }), "VALUE_WRITE");
}
ACLSIM_API aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag,
                                   aclrtStream stream) {
  if (flag > ACL_STREAM_WAIT_VALUE_NOR) return bad_value(__func__, "flag", "unknown", "0 to 3");
  ACLSIM_STREAM(on, stream);
  aclError code = check_word(__func__, devAddr);
  if (code != ACL_SUCCESS) return code;
  return submit(on, make_task([=](Stream* live) -> aclError {
    auto* word = static_cast<uint64_t*>(devAddr);
    while (!live->aborted.load() &&
           !satisfied(__atomic_load_n(word, __ATOMIC_ACQUIRE), value, flag)) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return ACL_SUCCESS;
  }, true), "VALUE_WAIT");
}
