// The checks of handles, memory and order on any install: what a program may not do with the API.
#pragma once

#include "core.h"

namespace layers {

struct Settings;

void start_strict(const Settings& settings);
bool strict_is_on();
void strict_before(const Frame& frame, const Call& call);
void strict_after(const Frame& frame, const Call& call);
void strict_after_fork();

}  // namespace layers
