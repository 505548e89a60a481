// What the simulated product is: names, capabilities, peers, and device numbering.
#include <unistd.h>

#include <cstdio>

#include "ascendcl/device.h"

using namespace aclsim;

namespace {

aclError no_device(const char* function, int64_t id) {
  return failed(ACL_ERROR_RT_INVALID_DEVICEID, "EE1003",
                "%s failed because device %lld does not exist. Expected value: [0, %d).", function,
                static_cast<long long>(id), config().devices);
}
#define REQUIRE_DEVICE(id) \
  thread();                \
  if ((id) < 0 || (id) >= config().devices) return no_device(__func__, id)

aclError own_peer(const char* function, int32_t id) {
  return failed(ACL_ERROR_INVALID_PARAM, "EH0013",
                "%s failed because device %d cannot be its own peer.", function, id);
}

aclError unknown(const char* function, const char* parameter) {
  return bad_value(function, parameter, "unknown", "a member of its enum");
}

}  // namespace

ACLSIM_API const char* aclrtGetSocName() { return config().soc->name; }

ACLSIM_API aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  ACLSIM_REQUIRE(runMode);
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  ACLSIM_REQUIRE(cannAttrList);
  ACLSIM_REQUIRE(num);
  static const aclCannAttr all[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16,
                                    ACL_CANN_ATTR_JIT_COMPILE};
  *cannAttrList = all;
  *num = sizeof all / sizeof all[0];
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  ACLSIM_REQUIRE(value);
  switch (cannAttr) {
    case ACL_CANN_ATTR_INF_NAN:
    case ACL_CANN_ATTR_BF16: *value = config().soc->bfloat16; break;
    case ACL_CANN_ATTR_JIT_COMPILE: *value = 0; break;
    default: return unknown(__func__, "cannAttr");
  }
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo,
                                           int64_t* value) {
  ACLSIM_REQUIRE(value);
  REQUIRE_DEVICE(static_cast<int64_t>(deviceId));
  switch (deviceInfo) {
    case ACL_DEVICE_INFO_AI_CORE_NUM: *value = config().soc->cube_cores; break;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = config().soc->vector_cores; break;
    case ACL_DEVICE_INFO_L2_SIZE: *value = config().soc->l2_bytes; break;
    default: return unknown(__func__, "deviceInfo");
  }
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  ACLSIM_REQUIRE(value);
  REQUIRE_DEVICE(static_cast<int64_t>(deviceId));
  switch (static_cast<int>(attr)) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM: *value = config().soc->cpu_cores; break;
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = config().soc->cube_cores; break;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = config().soc->vector_cores; break;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = config().memory; break;
    case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = config().soc->l2_bytes; break;
    case ACL_DEV_ATTR_PHY_CHIP_ID: *value = config().visible[deviceId]; break;
    case ACL_DEV_ATTR_IS_VIRTUAL: *value = 1; break;
    default:
      return failed(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006",
                    "%s does not support attribute %d.", __func__, static_cast<int>(attr));
  }
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType, int32_t* value) {
  ACLSIM_REQUIRE(value);
  REQUIRE_DEVICE(deviceId);
  *value = ACL_DEV_FEATURE_NOT_SUPPORT;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId,
                                             int32_t peerDeviceId) {
  ACLSIM_REQUIRE(canAccessPeer);
  REQUIRE_DEVICE(deviceId);
  REQUIRE_DEVICE(peerDeviceId);
  if (deviceId == peerDeviceId) return own_peer(__func__, deviceId);
  *canAccessPeer = 1;
  return ACL_SUCCESS;
}
// All devices share the host's memory, so that copies work without it; what was enabled, one way
// per call, is only told.
ACLSIM_API aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  ACLSIM_CONTEXT(context);
  REQUIRE_DEVICE(peerDeviceId);
  if (flags) {
    return failed(ACL_ERROR_FEATURE_UNSUPPORTED, "EH0007",
                  "%s failed because flags %u is reserved. Expected value: 0.", __func__, flags);
  }
  if (context->device == peerDeviceId) return own_peer(__func__, peerDeviceId);
  device_of(context).peers.fetch_or(uint64_t{1} << peerDeviceId);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  ACLSIM_CONTEXT(context);
  REQUIRE_DEVICE(peerDeviceId);
  if (context->device == peerDeviceId) return own_peer(__func__, peerDeviceId);
  device_of(context).peers.fetch_and(~(uint64_t{1} << peerDeviceId));
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId,
                                                int32_t* status) {
  ACLSIM_REQUIRE(status);
  REQUIRE_DEVICE(deviceId);
  REQUIRE_DEVICE(peerDeviceId);
  *status = static_cast<int32_t>(runtime().devices[deviceId].peers.load() >> peerDeviceId & 1);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  ACLSIM_REQUIRE(deviceStatus);
  REQUIRE_DEVICE(deviceId);
  *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtGetDeviceUtilizationRate(int32_t deviceId,
                                                  aclrtUtilizationInfo* utilizationInfo) {
  ACLSIM_REQUIRE(utilizationInfo);
  REQUIRE_DEVICE(deviceId);
  // -1 is the documented answer for a figure that the product does not measure.
  utilizationInfo->cubeUtilization = utilizationInfo->vectorUtilization = -1;
  utilizationInfo->aicpuUtilization = utilizationInfo->memoryUtilization = -1;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  ACLSIM_REQUIRE(pid);
  *pid = static_cast<int32_t>(getpid());
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) {
  ACLSIM_REQUIRE(uuid);
  REQUIRE_DEVICE(deviceId);
  memset(uuid->bytes, 0, sizeof uuid->bytes);
  snprintf(uuid->bytes, sizeof uuid->bytes, "aclsim-%d", config().visible[deviceId]);
  return ACL_SUCCESS;
}

// User ids number the visible devices; logic and physical ids are the same here.
ACLSIM_API aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId) {
  ACLSIM_REQUIRE(logicDevId);
  REQUIRE_DEVICE(userDevid);
  *logicDevId = config().visible[userDevid];
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t* const phyDevId) {
  ACLSIM_REQUIRE(phyDevId);
  REQUIRE_DEVICE(userDevId);
  *phyDevId = config().visible[userDevId];
  return ACL_SUCCESS;
}
namespace {
aclError user_id(const char* function, int32_t given, int32_t* out) {
  if (!out) return null_pointer(function, "userDevId");
  for (int i = 0; i < config().devices; ++i) {
    if (config().visible[i] == given) {
      *out = i;
      return ACL_SUCCESS;
    }
  }
  return no_device(function, given);
}
}  // namespace
ACLSIM_API aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t* const userDevid) {
  return user_id(__func__, logicDevId, userDevid);
}
ACLSIM_API aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t* const userDevId) {
  return user_id(__func__, phyDevId, userDevId);
}
// What this pair calls logic ids are the user's (its documents).
ACLSIM_API aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t* const phyDevId) {
  ACLSIM_REQUIRE(phyDevId);
  REQUIRE_DEVICE(logicDevId);
  *phyDevId = config().visible[logicDevId];
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t* const logicDevId) {
  return user_id(__func__, phyDevId, logicDevId);
}

ACLSIM_API aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority,
                                                      int32_t* greatestPriority) {
  if (leastPriority) *leastPriority = 7;
  if (greatestPriority) *greatestPriority = 0;
  return ACL_SUCCESS;
}
