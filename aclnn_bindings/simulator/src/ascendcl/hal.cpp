// What clients ask the driver's library (libascend_hal) for before they start the runtime.
#include "ascendcl/config.h"

using namespace aclsim;

namespace {
constexpr int32_t kNone = 0, kInvalidValue = 3, kNotSupported = 0xfffe;  // DRV_ERROR_…
// Older than 0x071905: from there on, clients time by the device's counter, which is not simulated.
constexpr int32_t kVersion = 0x071900;
}  // namespace

// All devices of the machine, whether or not ASCEND_RT_VISIBLE_DEVICES shows them.
ACLSIM_API int32_t drvGetDevNum(uint32_t* count) {
  if (!count) return kInvalidValue;
  *count = static_cast<uint32_t>(config().installed);
  return kNone;
}
ACLSIM_API int32_t halGetAPIVersion(int32_t* version) {
  if (!version) return kInvalidValue;
  *version = kVersion;
  return kNone;
}
ACLSIM_API int32_t halGetDeviceInfo(uint32_t, int32_t, int32_t, int64_t* value) {
  return value ? kNotSupported : kInvalidValue;
}
ACLSIM_API int32_t halHostRegister(void*, uint64_t, uint32_t, uint32_t, void**) {
  return kNotSupported;
}
ACLSIM_API int32_t halHostUnregister(void*, uint32_t) { return kNotSupported; }
