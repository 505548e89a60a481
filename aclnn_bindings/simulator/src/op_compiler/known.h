// What libgraph asks of the table of type names.
#pragma once

#include "ascendcl/common.h"

ACLSIM_API bool aclsim_knows_type(const char* type);
