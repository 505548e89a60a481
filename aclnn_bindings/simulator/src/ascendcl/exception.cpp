// What programs learn of device exceptions: callbacks, and the questions that these may ask.
#include <algorithm>
#include <mutex>
#include <vector>

#include "ascendcl/device.h"
#include "ascendcl/exception.h"

struct rtExceptionInfo {
  uint32_t task, stream, thread, device, code;
};

namespace aclsim {
namespace {

struct Listeners {
  std::mutex mutex;
  aclrtExceptionInfoCallback single = nullptr;  // aclrtSetExceptionInfoCallback: one per process
  std::vector<aclrtExceptionInfoCallback> registered;
};
Listeners& listeners() {
  static Listeners* made = new Listeners;
  return *made;
}

constexpr uint32_t kNone = 0xFFFFFFFFu;  // documented answer for a missing exception

}  // namespace

void tell_exception(Stream* stream, aclError code) {
  std::vector<aclrtExceptionInfoCallback> all;
  {
    std::lock_guard<std::mutex> lock(listeners().mutex);
    all = listeners().registered;
    if (listeners().single) all.push_back(listeners().single);
  }
  if (all.empty()) return;
  rtExceptionInfo info = {};
  info.task = static_cast<uint32_t>(stream->completed.load());
  info.stream = static_cast<uint32_t>(stream->id);
  info.thread = static_cast<uint32_t>(thread()->thread_id);
  info.device = static_cast<uint32_t>(stream->context->device);
  info.code = static_cast<uint32_t>(code);
  for (auto callback : all) callback(&info);
}

}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  thread();
  std::lock_guard<std::mutex> lock(listeners().mutex);
  listeners().single = callback;  // null takes it away
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
  ACLSIM_REQUIRE(callback);
  std::lock_guard<std::mutex> lock(listeners().mutex);
  auto& all = listeners().registered;  // each function once
  if (std::find(all.begin(), all.end(), callback) == all.end()) all.push_back(callback);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
  ACLSIM_REQUIRE(callback);
  std::lock_guard<std::mutex> lock(listeners().mutex);
  auto& all = listeners().registered;
  all.erase(std::remove(all.begin(), all.end(), callback), all.end());
  return ACL_SUCCESS;
}
ACLSIM_API uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info ? info->task : kNone;
}
ACLSIM_API uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info ? info->stream : kNone;
}
ACLSIM_API uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info ? info->thread : kNone;
}
ACLSIM_API uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info ? info->device : kNone;
}
ACLSIM_API uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info ? info->code : kNone;
}

// Hardware faults do not happen here: the answers say that there are none.
ACLSIM_API aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo) {
  ACLSIM_REQUIRE(errorInfo);
  if (deviceId < 0 || deviceId >= config().devices) {
    return bad_value(__func__, "deviceId", "unknown", "a device id");
  }
  memset(errorInfo, 0, sizeof *errorInfo);
  errorInfo->errorType = ACL_RT_NO_ERROR;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray,
                                       size_t arraySize, size_t* retSize) {
  ACLSIM_REQUIRE(memUceInfoArray);
  ACLSIM_REQUIRE(retSize);
  if (deviceId < 0 || deviceId >= config().devices) {
    return bad_value(__func__, "deviceId", "unknown", "a device id");
  }
  if (!arraySize) return bad_value(__func__, "arraySize", "0", "must be greater than 0");
  *retSize = 0;
  return ACL_SUCCESS;
}
// With no faulty memory there is nothing to repair: the addresses are as good as before.
ACLSIM_API aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray,
                                      size_t arraySize) {
  ACLSIM_REQUIRE(memUceInfoArray);
  if (deviceId < 0 || deviceId >= config().devices) {
    return bad_value(__func__, "deviceId", "unknown", "a device id");
  }
  constexpr size_t kMost = sizeof(aclrtMemUceInfoArray::memUceInfoArray) / sizeof(aclrtMemUceInfo);
  if (!arraySize || arraySize > kMost) {
    return bad_value(__func__, "arraySize", "out of range", "1 to 20");
  }
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo* errorInfo) {
  ACLSIM_REQUIRE(errorInfo);
  if (deviceId < 0 || deviceId >= config().devices) {
    return bad_value(__func__, "deviceId", "unknown", "a device id");
  }
  return ACL_SUCCESS;
}

// Drops what the device's streams have queued, and waits for what they run.
ACLSIM_API aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
  thread();
  constexpr uint32_t kLongest = 36 * 60 * 1000;  // ms, its document
  if (timeout > kLongest) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because timeout %u is invalid. Expected value: [0, %u].", __func__,
                  timeout, kLongest);
  }
  if (deviceId < 0 || deviceId >= config().devices) {
    return failed(ACL_ERROR_RT_INVALID_DEVICEID, "EE1003", "%s failed because device %d does not exist.",
                  __func__, deviceId);
  }
  Lock lock(runtime().mutex);
  for (Context* c = runtime().contexts; c; c = c->sibling) {
    for (Stream* s = c->device == deviceId ? c->streams : nullptr; s; s = s->sibling) {
      if (!idle(s)) s->aborted.store(true);
    }
  }
  return ACL_SUCCESS;
}
