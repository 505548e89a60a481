// Times launches on the device: an event before each and one after, read when both have passed.
#pragma once

#include "core.h"

namespace layers {

void time_launches();
bool device_time_is_on();
// Around a call: records the events of a launch; takes what has passed where the program waits;
// gives all events back before a context goes.
void device_time_before(const Frame& frame, const Call& call);
void device_time_after(const Frame& frame, const Call& call);
void device_time_after_fork();

}  // namespace layers
