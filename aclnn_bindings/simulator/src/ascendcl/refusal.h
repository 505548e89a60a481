// Work that no device would have begun: told at the next synchronisation of its stream, once.
#pragma once

#include "ascendcl/stream.h"

namespace aclsim {

// Called on the stream's time. Unlike a task that fails, it does not stop a stream that stops on
// failure: nothing failed on the device.
ACLSIM_SHARED void note_refusal(Stream* stream, aclError code, const char* text);

}  // namespace aclsim
