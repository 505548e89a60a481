// Beginning and ending a profile; its events are written by profile.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace aclsim {

enum class ProfileCode { Good, Running, NoFile };

// Makes PROF_… below `folder` and takes events of the devices (a bit each) from now on.
ProfileCode profile_open(const std::string& folder, uint64_t devices, uint64_t kinds);
bool profile_close();  // false: none was open

}  // namespace aclsim
