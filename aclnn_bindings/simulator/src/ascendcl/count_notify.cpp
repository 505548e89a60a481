// Counting notifies (aclrtCntNotify… documents). Of the products, Ascend950 has them.
#include <chrono>

#include "ascendcl/device.h"
#include "ascendcl/notify.h"

using namespace aclsim;

namespace {

bool valid(aclrtCntNotifyRecordMode mode) {
  return mode == ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE ||
         mode == ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE ||
         mode == ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE ||
         mode == ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE;
}
uint32_t changed(uint32_t value, const aclrtCntNotifyRecordInfo& info) {
  switch (info.mode) {
    case ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE: return value + info.value;
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE: return value | info.value;
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE: return value & info.value;
    default: return info.value;
  }
}
bool satisfied(uint32_t value, const aclrtCntNotifyWaitInfo& info) {
  switch (info.mode) {
    case ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE: return value < info.value;
    case ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE: return value == info.value;
    case ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE: return value > info.value;
    case ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE: return value >= info.value;
    default: return (value & info.value) == info.value;
  }
}

aclError change(Stream* on, const Notify& notify, aclrtCntNotifyRecordInfo info) {
  auto* signal = new std::shared_ptr<Signal>(*notify.signal);
  return submit(on, make_task([=](Stream*) -> aclError {
    std::lock_guard<std::mutex> lock((*signal)->mutex);
    (*signal)->value = changed((*signal)->value, info);
    (*signal)->changed.notify_all();
    return ACL_SUCCESS;
  }, false, [signal] { delete signal; }), "NOTIFY_RECORD");
}

// Looks again every 20 ms whether the stream was aborted.
aclError await(Signal* signal, const aclrtCntNotifyWaitInfo& info, Stream* live) {
  using std::chrono::steady_clock;
  auto end = steady_clock::now() + std::chrono::seconds(info.timeout);
  std::unique_lock<std::mutex> lock(signal->mutex);
  while (!satisfied(signal->value, info)) {
    if (live->aborted.load()) return ACL_SUCCESS;
    if (info.timeout && steady_clock::now() >= end) return ACL_ERROR_RT_TS_ERROR;
    signal->changed.wait_for(lock, std::chrono::milliseconds(20));
  }
  if (info.isClear) signal->value = 0;
  return ACL_SUCCESS;
}

}  // namespace

ACLSIM_API aclError aclrtCntNotifyCreate(aclrtCntNotify* cntNotify, uint64_t flag) {
  ACLSIM_REQUIRE(cntNotify);
  ACLSIM_CONTEXT(context);
  (void)context;
  if (flag) return bad_value(__func__, "flag", "nonzero", "0");
  if (config().soc->soc != Soc::Ascend950) {
    return failed(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006",
                  "%s failed: %s has no counting notifies; Ascend950 has.", __func__,
                  config().soc->name);
  }
  *cntNotify = make_notify(state, true);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtCntNotifyDestroy(aclrtCntNotify cntNotify) {
  ThreadState* state = thread();
  ACLSIM_NOTIFY(mine, cntNotify, true);
  end_notify(state, mine);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t* notifyId) {
  ACLSIM_REQUIRE(notifyId);
  ACLSIM_NOTIFY(mine, cntNotify, true);
  *notifyId = mine->id;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream,
                                         aclrtCntNotifyRecordInfo* info) {
  ACLSIM_REQUIRE(info);
  ACLSIM_STREAM(on, stream);
  ACLSIM_NOTIFY(mine, cntNotify, true);
  if (!valid(info->mode)) return bad_value(__func__, "mode", "unknown", "an aclrtCntNotifyRecordMode");
  return change(on, *mine, *info);
}
ACLSIM_API aclError aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  ACLSIM_NOTIFY(mine, cntNotify, true);
  return change(on, *mine, {ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 0});
}
// The timeout is in seconds; 0 waits for ever.
ACLSIM_API aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify cntNotify, aclrtStream stream,
                                                  aclrtCntNotifyWaitInfo* info) {
  ACLSIM_REQUIRE(info);
  ACLSIM_STREAM(on, stream);
  ACLSIM_NOTIFY(mine, cntNotify, true);
  if (info->mode < 0 || info->mode > ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE) {
    return bad_value(__func__, "mode", "unknown", "an aclrtCntNotifyWaitMode");
  }
  auto* signal = new std::shared_ptr<Signal>(*mine->signal);
  aclrtCntNotifyWaitInfo asked = *info;
  return submit(on, make_task([=](Stream* live) { return await(signal->get(), asked, live); }, true,
                              [signal] { delete signal; }), "NOTIFY_WAIT");
}
