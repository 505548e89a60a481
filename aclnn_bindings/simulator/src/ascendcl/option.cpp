// Options of the process, the context and the device: determinism, float modes, time-outs, cores.
#include <algorithm>
#include <atomic>

#include "ascendcl/device.h"

using namespace aclsim;

namespace {

bool known(aclSysParamOpt opt) {
  return opt >= ACL_OPT_DETERMINISTIC && opt <= ACL_OPT_ENABLE_KERNEL_EARLY_START;
}
aclError bad_option(const char* function) {
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                "%s failed because the option is not a member of aclSysParamOpt.", function);
}

std::atomic<uint64_t> execute_timeout_ms{0};  // 0: the product's default
std::atomic<aclrtFloatOverflowMode> overflow_mode{ACL_RT_OVERFLOW_MODE_UNDEF};  // not set

// A2 and A3 have both modes and begin with infinities; Ascend950 has no saturation, the others
// have nothing else (aclrtFloatOverflowMode document, CANN 9.1).
bool has_mode(aclrtFloatOverflowMode mode) {
  switch (config().soc->soc) {
    case Soc::Ascend910B:
    case Soc::Ascend910_93: return true;
    case Soc::Ascend950: return mode == ACL_RT_OVERFLOW_MODE_INFNAN;
    default: return mode == ACL_RT_OVERFLOW_MODE_SATURATION;
  }
}
aclrtFloatOverflowMode overflow_mode_in_use() {
  const aclrtFloatOverflowMode set = overflow_mode.load();
  if (set != ACL_RT_OVERFLOW_MODE_UNDEF) return set;
  return has_mode(ACL_RT_OVERFLOW_MODE_INFNAN) ? ACL_RT_OVERFLOW_MODE_INFNAN
                                               : ACL_RT_OVERFLOW_MODE_SATURATION;
}

// Documented defaults of the operator time-out, seconds.
uint32_t default_timeout_s() {
  switch (config().soc->soc) {
    case Soc::Ascend310P: return 547;
    case Soc::Ascend910: return 68;
    default: return 1091;
  }
}

// Documented maxima, seconds: of 0, and of what is more.
uint32_t longest_timeout_s() {
  return config().soc->soc == Soc::Ascend910 ? 2176 : default_timeout_s();
}
void set_execute_timeout(uint64_t milliseconds) {
  const uint64_t longest = longest_timeout_s() * uint64_t{1000};
  execute_timeout_ms.store(milliseconds ? std::min(milliseconds, longest) : longest);
}
uint32_t execute_timeout() {  // ms
  const uint64_t set = execute_timeout_ms.load();
  return set ? static_cast<uint32_t>(set) : default_timeout_s() * 1000;
}

uint32_t product_cores(aclrtDevResLimitType type) {
  return type == ACL_RT_DEV_RES_CUBE_CORE ? config().soc->cube_cores : config().soc->vector_cores;
}
bool core_type(aclrtDevResLimitType type) {
  return type == ACL_RT_DEV_RES_CUBE_CORE || type == ACL_RT_DEV_RES_VECTOR_CORE;
}
aclError bad_core_type(const char* function) {
  return bad_value(function, "type", "unknown", "an aclrtDevResLimitType");
}
aclError bad_device(const char* function, int32_t id) {
  return failed(ACL_ERROR_RT_INVALID_DEVICEID, "EE1003", "%s failed because device %d does not exist.",
                function, id);
}

aclError check_cores(const char* function, aclrtDevResLimitType type, uint32_t value) {
  if (!core_type(type)) return bad_core_type(function);
  if (value >= 1 && value <= product_cores(type)) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                "%s failed because value %u is invalid. Expected value: [1, %u].", function, value,
                product_cores(type));
}

}  // namespace

// The last set wins, process or context; operators read the process's value in phase 1.
ACLSIM_API aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  thread();
  if (!known(opt)) return bad_option(__func__);
  runtime().params[opt].store(value);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  thread();
  ACLSIM_REQUIRE(value);
  if (!known(opt)) return bad_option(__func__);
  *value = runtime().params[opt].load();
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  ACLSIM_CONTEXT(context);
  if (!known(opt)) return bad_option(__func__);
  context->params[opt] = value;
  context->params_set |= 1u << opt;
  runtime().params[opt].store(value);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  ACLSIM_REQUIRE(value);
  ACLSIM_CONTEXT(context);
  if (!known(opt)) return bad_option(__func__);
  if (!(context->params_set >> opt & 1)) {
    return failed(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "EE1018",
                  "%s failed because option %d was not set for this context.", __func__,
                  static_cast<int>(opt));
  }
  *value = context->params[opt];
  return ACL_SUCCESS;
}

bool aclsim::floats_saturate() {
  return overflow_mode_in_use() == ACL_RT_OVERFLOW_MODE_SATURATION;
}

// The mode is the process's, set before a device is: MindSpore 2.10 sets it ahead of aclInit. It
// holds for streams that are created later (aclrtSetDeviceSatMode document).
ACLSIM_API aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  thread();
  if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN) {
    return bad_value(__func__, "mode", "unknown", "saturation or inf/nan");
  }
  if (!has_mode(mode)) {
    return failed(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006",
                  "%s failed because %s has no %s mode.", __func__, config().soc->name,
                  mode == ACL_RT_OVERFLOW_MODE_INFNAN ? "inf/nan" : "saturation");
  }
  overflow_mode.store(mode);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  thread();
  ACLSIM_REQUIRE(mode);
  *mode = overflow_mode_in_use();
  return ACL_SUCCESS;
}

// Kernels of the simulator do not hang on hardware; the time-outs are kept and reported.
ACLSIM_API aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  thread();
  set_execute_timeout(timeout * uint64_t{1000});
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout) {
  thread();
  set_execute_timeout(timeout);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  thread();
  ACLSIM_REQUIRE(actualTimeout);
  set_execute_timeout(timeout / 1000 + (timeout % 1000 != 0));  // kept in whole milliseconds
  *actualTimeout = uint64_t{execute_timeout()} * 1000;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs) {
  thread();
  ACLSIM_REQUIRE(timeoutMs);
  *timeoutMs = execute_timeout();
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  thread();
  runtime().wait_timeout_s.store(timeout);  // of the waits that are queued from here on
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                           uint32_t value) {
  thread();
  if (deviceId < 0 || deviceId >= config().devices) return bad_device(__func__, deviceId);
  aclError code = check_cores(__func__, type, value);
  if (code == ACL_SUCCESS) runtime().devices[deviceId].core_limits[type] = value;
  return code;
}
ACLSIM_API aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                           uint32_t* value) {
  thread();
  ACLSIM_REQUIRE(value);
  if (deviceId < 0 || deviceId >= config().devices) return bad_device(__func__, deviceId);
  if (!core_type(type)) return bad_core_type(__func__);
  uint32_t limit = runtime().devices[deviceId].core_limits[type];
  *value = limit ? limit : product_cores(type);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  thread();
  if (deviceId < 0 || deviceId >= config().devices) return bad_device(__func__, deviceId);
  for (uint32_t& limit : runtime().devices[deviceId].core_limits) limit = 0;
  return ACL_SUCCESS;
}

// Limits per stream are kept in the stream's attributes 6 and 7; results do not depend on them.
ACLSIM_API aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                           uint32_t value) {
  ACLSIM_STREAM(on, stream);
  aclError code = check_cores(__func__, type, value);
  if (code == ACL_SUCCESS) on->attributes[6 + type] = value;
  return code;
}
ACLSIM_API aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                           uint32_t* value) {
  ACLSIM_REQUIRE(value);
  ACLSIM_STREAM(on, stream);
  if (!core_type(type)) return bad_core_type(__func__);
  uint32_t limit = on->attributes[6 + type];
  return limit ? (*value = limit, ACL_SUCCESS)
               : aclrtGetDeviceResLimit(on->context->device, type, value);
}
ACLSIM_API aclError aclrtResetStreamResLimit(aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  on->attributes[6] = on->attributes[7] = 0;
  return ACL_SUCCESS;
}
namespace {
// The stream whose limits count for operators of this thread: its later limits count too. A stream
// that was destroyed has none.
__thread Stream* used_stream __attribute__((tls_model("initial-exec")));
__thread int32_t used_id __attribute__((tls_model("initial-exec")));

Stream* stream_in_use() {
  Stream* stream = used_stream;
  return stream && stream->is(Kind::Stream) && stream->id == used_id ? stream : nullptr;
}
}
ACLSIM_API aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  used_stream = on;
  used_id = on->id;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  if (stream_in_use() == on) used_stream = nullptr;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  ACLSIM_REQUIRE(value);
  ACLSIM_CONTEXT(context);
  if (!core_type(type)) return bad_core_type(__func__);
  const Stream* used = stream_in_use();
  if (used && used->attributes[6 + type]) {
    *value = used->attributes[6 + type];
    return ACL_SUCCESS;
  }
  return aclrtGetDeviceResLimit(context->device, type, value);
}
