// Events of the runtime as records and as calls of the subscriber.
#pragma once

#include <string>

#include <mspti/mspti.h>

namespace aclsim::mspti {

bool enabled(msptiActivityKind kind);
void enable(msptiActivityKind kind, bool on);
void enable_domain(const std::string& name, bool on);

void push_external(msptiExternalCorrelationKind kind, uint64_t id);
bool pop_external(msptiExternalCorrelationKind kind, uint64_t* id);  // false: none is there

// Events are watched while a kind is enabled or somebody is subscribed.
void update_watch();

}  // namespace aclsim::mspti
