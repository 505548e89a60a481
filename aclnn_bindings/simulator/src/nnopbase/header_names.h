// Who calls, and what the header of its package names the parameters.
#pragma once

#include <string>
#include <vector>

namespace aclsim {

struct CallerSymbol {
  std::string library;   // path of the file that holds the address
  std::string function;  // its exported function there without `GetWorkspaceSize`; "" if unknown
};
CallerSymbol caller_symbol(const void* address);

// Names of the parameters of `function`'s first phase, but for the last two, as a header of the
// package declares them (`op_api/include` beside `op_api/lib`); none where it has no such header.
std::vector<std::string> header_names(const std::string& library, const std::string& function);

}  // namespace aclsim
