// Error messages per thread, in the form that aclGetRecentErrMsg hands out.
#pragma once

#include <string>

#include "ascendcl/handle.h"

namespace aclsim {

// Records "<title>(<id>): text" for the calling thread and returns `code`, which becomes the
// thread's last error. Ids are CANN's: EH.. for ACL, EE.. for the runtime, EZ.. for ACLNN.
ACLSIM_SHARED aclError failed(aclError code, const char* id, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
// Only records the text.
ACLSIM_SHARED void note_error(const char* id, const char* text);
// The id that ACLNN uses for a status: by its first digit.
ACLSIM_SHARED const char* aclnn_error_id(aclnnStatus code);
// "ACL_ERROR_RT_PARAM_INVALID" for the codes that streams carry; "error" for the rest.
void drop_errors(ErrorLog* log);
void errors_per_process(bool shared);  // aclInit json: err_msg_mode "1"

inline aclError null_pointer(const char* function, const char* parameter) {
  return failed(ACL_ERROR_INVALID_PARAM, "EH0008",
                "%s failed because %s cannot be a NULL pointer.", function, parameter);
}
inline aclError bad_value(const char* function, const char* parameter, const char* value,
                          const char* expected) {
  return failed(ACL_ERROR_INVALID_PARAM, "EH0007",
                "%s failed because value %s for parameter %s is invalid. Expected value: %s.",
                function, value, parameter, expected);
}

#define ACLSIM_REQUIRE(pointer) \
  if (ACLSIM_UNLIKELY(!(pointer))) return ::aclsim::null_pointer(__func__, #pointer)

}  // namespace aclsim
