// Names of work that profiles show and models tell the type of.
#pragma once

namespace aclsim {

constexpr const char* kEventRecord = "EVENT_RECORD";
constexpr const char* kEventWait = "EVENT_WAIT";
constexpr const char* kEventReset = "EVENT_RESET";
constexpr const char* kValueWrite = "VALUE_WRITE";
constexpr const char* kValueWait = "VALUE_WAIT";

}  // namespace aclsim
