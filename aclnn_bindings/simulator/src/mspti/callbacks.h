// The one subscriber, and which calls it is told of.
#pragma once

#include <cstdint>

#include <mspti/mspti.h>

namespace aclsim::mspti {

bool subscribed();
void call_entered(const char* function, uint64_t correlation);
void call_left(const char* function, uint64_t correlation);

}  // namespace aclsim::mspti
