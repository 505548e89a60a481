// Notifies: signals between streams.
#include "ascendcl/notify.h"

#include <chrono>

#include "ascendcl/device.h"
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
