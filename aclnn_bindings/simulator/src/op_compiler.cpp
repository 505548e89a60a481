// libacl_op_compiler: compile options are kept; compiling an operator by its type name refuses.
#include <acl/acl_op_compiler.h>

#include <cstdio>
#include <mutex>
#include <string>

#include "error.h"

using namespace aclsim;

namespace {
constexpr int kOptions = ACL_OP_DEBUG_OPTION + 1;
std::mutex options_mutex;

std::string* options() {
  static auto* made = new std::string[kOptions];
  return made;
}
bool known(aclCompileOpt opt) { return opt >= 0 && opt < kOptions; }
aclError bad_option(const char* function) {
  return bad_value(function, "opt", "unknown", "an aclCompileOpt");
}

// Clients come here when an operator has no ACLNN kernel: the message must name the operator.
aclError no_operator(const char* function, const char* type) {
  return failed(ACL_ERROR_OP_NOT_FOUND, "EE1006",
                "%s: operator %s cannot be run by its type name on the simulator, and its ACLNN "
                "form is not among its operators.", function, type ? type : "(null)");
}
}  // namespace

ACLSIM_API aclError aclopCompileAndExecute(const char* opType, int, const aclTensorDesc* const[],
                                           const aclDataBuffer* const[], int,
                                           const aclTensorDesc* const[], aclDataBuffer* const[],
                                           const aclopAttr*, aclopEngineType, aclopCompileType,
                                           const char*, aclrtStream) {
  return no_operator(__func__, opType);
}
ACLSIM_API aclError aclopCompileAndExecuteV2(const char* opType, int, aclTensorDesc*[],
                                             aclDataBuffer*[], int, aclTensorDesc*[],
                                             aclDataBuffer*[], aclopAttr*, aclopEngineType,
                                             aclopCompileType, const char*, aclrtStream) {
  return no_operator(__func__, opType);
}

ACLSIM_API aclError aclSetCompileopt(aclCompileOpt opt, const char* value) {
  ACLSIM_REQUIRE(value);
  if (!known(opt)) return bad_option(__func__);
  std::lock_guard<std::mutex> lock(options_mutex);
  options()[opt] = value;
  return ACL_SUCCESS;
}
ACLSIM_API size_t aclGetCompileoptSize(aclCompileOpt opt) {
  std::lock_guard<std::mutex> lock(options_mutex);
  return known(opt) ? options()[opt].size() + 1 : 0;
}
ACLSIM_API aclError aclGetCompileopt(aclCompileOpt opt, char* value, size_t length) {
  ACLSIM_REQUIRE(value);
  if (!known(opt)) return bad_option(__func__);
  std::lock_guard<std::mutex> lock(options_mutex);
  if (length < options()[opt].size() + 1) {
    return bad_value(__func__, "length", "too small", "what aclGetCompileoptSize says");
  }
  snprintf(value, length, "%s", options()[opt].c_str());
  return ACL_SUCCESS;
}
