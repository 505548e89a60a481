// Beginning and end of image processing: kept in order, nothing else depends on them here.
#include <acldvppop/acldvpp_init.h>

#include <atomic>

#include "ascendcl/common.h"

namespace {
std::atomic<bool> begun{false};
}

ACLSIM_API acldvppStatus acldvppInit(const char*) {
  return begun.exchange(true) ? ACLDVPP_ERR_REPEAT_INITIALIZE : ACLDVPP_SUCCESS;
}
ACLSIM_API acldvppStatus acldvppFinalize() {
  return begun.exchange(false) ? ACLDVPP_SUCCESS : ACLDVPP_ERR_UNINITIALIZE;
}
