// What libgraph asks of the table of type names.
#pragma once

#include "ascendcl/common.h"

ACLSIM_API bool aclsimKnowsType(const char* type);
