// Tells the program's callbacks that a kernel failed.
#pragma once

#include "ascendcl/stream.h"

namespace aclsim {

void tell_exception(Stream* stream, aclError code);

}  // namespace aclsim
