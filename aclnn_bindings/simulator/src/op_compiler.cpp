// libacl_op_compiler: compile options are kept; compiling an operator by its type name refuses.
#include <acl/acl_op_compiler.h>

#include <cstdio>
#include <mutex>
#include <string>

#include "stream.h"

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

// The one operator that runs by its type name: torch_npu copies with it between base formats.
aclError identity(const char* function, int inputs, const aclTensorDesc* const* from_desc,
                  const aclDataBuffer* const* from, int outputs,
                  const aclTensorDesc* const* to_desc, aclDataBuffer* const* to,
                  aclrtStream handle) {
  if (inputs < 1 || outputs < 1 || !from_desc || !from || !to_desc || !to) {
    return null_pointer(function, "inputs or outputs");
  }
  void* source = aclGetDataBufferAddr(from[0]);
  void* target = aclGetDataBufferAddr(to[0]);
  size_t bytes = aclGetTensorDescSize(from_desc[0]);
  bool same = aclGetTensorDescType(from_desc[0]) == aclGetTensorDescType(to_desc[0]) &&
              bytes == aclGetTensorDescSize(to_desc[0]) && bytes &&
              bytes <= aclGetDataBufferSizeV2(from[0]) && bytes <= aclGetDataBufferSizeV2(to[0]);
  if (!same || !source || !target) {
    return failed(ACL_ERROR_OP_INPUT_NOT_MATCH, "EE1003",
                  "%s: Identity copies between tensors of one dtype and size.", function);
  }
  aclError code = ACL_SUCCESS;
  Stream* stream = find_own_stream(thread(), handle, function, &code);
  if (!stream) return code;
  return submit(stream, make_task([=](Stream* on) -> aclError {
    if (on) memmove(target, source, bytes);
    return ACL_SUCCESS;
  }));
}
}  // namespace

ACLSIM_API aclError aclopCompileAndExecute(const char* opType, int numInputs,
                                           const aclTensorDesc* const inputDesc[],
                                           const aclDataBuffer* const inputs[], int numOutputs,
                                           const aclTensorDesc* const outputDesc[],
                                           aclDataBuffer* const outputs[], const aclopAttr*,
                                           aclopEngineType, aclopCompileType, const char*,
                                           aclrtStream stream) {
  if (!opType || strcmp(opType, "Identity") != 0) return no_operator(__func__, opType);
  return identity(__func__, numInputs, inputDesc, inputs, numOutputs, outputDesc, outputs, stream);
}
ACLSIM_API aclError aclopCompileAndExecuteV2(const char* opType, int numInputs,
                                             aclTensorDesc* inputDesc[], aclDataBuffer* inputs[],
                                             int numOutputs, aclTensorDesc* outputDesc[],
                                             aclDataBuffer* outputs[], aclopAttr*, aclopEngineType,
                                             aclopCompileType, const char*, aclrtStream stream) {
  if (!opType || strcmp(opType, "Identity") != 0) return no_operator(__func__, opType);
  return identity(__func__, numInputs, inputDesc, inputs, numOutputs, outputDesc, outputs, stream);
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
