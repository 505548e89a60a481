// The answer of every exported function that the simulator does not implement.
#pragma once

#include "ascendcl/error.h"

namespace aclsim {

inline aclError refuse(const char* function) {
  return failed(ACL_ERROR_FEATURE_UNSUPPORTED, "EE1006",
                "%s is not supported by the simulator. Run it on a device, or ask for it in the "
                "project's issues.", function);
}

}  // namespace aclsim
