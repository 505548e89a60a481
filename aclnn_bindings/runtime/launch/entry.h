// Gives C++ the entry points of api.h with C linkage.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "api.h"
#ifdef __cplusplus
}
#endif
