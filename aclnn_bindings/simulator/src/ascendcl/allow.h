// Findings of strict mode that are known and accepted, from files that ACLSIM_ALLOW names.
#pragma once

#include <string>

namespace aclsim {

// True when a rule of a file matches; `created` is the text of the creation stack, innermost first.
bool allowed_finding(const std::string& finding, const std::string& call, const std::string& object,
                     const std::string& created);

}  // namespace aclsim
