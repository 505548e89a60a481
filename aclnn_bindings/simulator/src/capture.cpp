// Model capture is not simulated: capturing refuses (see the generated refusals), and questions
// about it answer truthfully that nothing is being captured.
#include "device.h"

using namespace aclsim;

ACLSIM_API aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                           aclmdlRI* modelRI) {
  ACLSIM_STREAM(on, stream);
  (void)on;
  if (status) *status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  if (modelRI) *modelRI = nullptr;
  return ACL_SUCCESS;
}

// The mode decides what other calls may do while a capture is active; none ever is.
ACLSIM_API aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  ACLSIM_REQUIRE(mode);
  if (*mode < ACL_MODEL_RI_CAPTURE_MODE_GLOBAL || *mode > ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because the mode is not an aclmdlRICaptureMode.", __func__);
  }
  ThreadState* state = thread();
  auto before = static_cast<aclmdlRICaptureMode>(state->capture_mode);
  state->capture_mode = *mode;
  *mode = before;
  return ACL_SUCCESS;
}
