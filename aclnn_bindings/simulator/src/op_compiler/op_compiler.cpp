// libacl_op_compiler: compile options, and operators that run by their type names.
#include <acl/acl_op_compiler.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "ascendcl/refusal.h"
#include "ascendcl/stream.h"
#include "op_compiler/type_call.h"

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

aclError execute(const char* function, const char* type, int inputs,
                 const aclTensorDesc* const* input_desc, const aclDataBuffer* const* input,
                 int outputs, const aclTensorDesc* const* output_desc,
                 aclDataBuffer* const* output, const aclopAttr* attr, aclrtStream stream,
                 aclTensorDesc* const* shapes = nullptr) {
  if (!type) return null_pointer(function, "opType");
  if (inputs < 0 || outputs < 0 || (inputs && (!input_desc || !input)) ||
      (outputs && (!output_desc || !output))) {
    return null_pointer(function, "inputs or outputs");
  }
  TypeRow row = find_type(type);
  if (!row) {
    return failed(ACL_ERROR_OP_NOT_FOUND, "EE1006",
                  "%s: operator %s is not among those that run by their type name, and its ACLNN "
                  "form is not among the simulator's operators.", function, type);
  }
  TypeCall call(type, stream, attr);
  for (int i = 0; i < inputs; ++i) call.add_input(input_desc[i], input[i]);
  for (int i = 0; i < outputs; ++i) {
    call.add_output(output_desc[i], output[i], shapes ? shapes[i] : nullptr);
  }
  aclError code = row(call);
  return code == ACL_SUCCESS ? call.end() : code;
}

// An asynchronous call that cannot be run is told at the stream's next synchronisation, and what
// comes after runs. Clients that queue calls (torch_npu) would drop all later work for ever if the
// call itself failed, and if the stream failed, which they ask to stop then.
aclError refuse_on_stream(const char* function, aclError code, aclrtStream handle) {
  if (code == ACL_SUCCESS) return code;
  aclError found = ACL_SUCCESS;
  Stream* stream = find_own_stream(thread(), handle, function, &found);
  if (!stream) return found;
  const char* why = aclGetRecentErrMsg();
  char* text = strdup(why ? why : function);
  return submit(stream, make_task([text](Stream* on) -> aclError {
    note_refusal(on, ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, text);
    return ACL_SUCCESS;
  }, false, [text] { free(text); }));
}
}  // namespace

ACLSIM_API aclError aclopCompileAndExecute(const char* opType, int numInputs,
                                           const aclTensorDesc* const inputDesc[],
                                           const aclDataBuffer* const inputs[], int numOutputs,
                                           const aclTensorDesc* const outputDesc[],
                                           aclDataBuffer* const outputs[], const aclopAttr* attr,
                                           aclopEngineType, aclopCompileType, const char*,
                                           aclrtStream stream) {
  aclError code = execute(__func__, opType, numInputs, inputDesc, inputs, numOutputs, outputDesc,
                          outputs, attr, stream);
  return opType ? refuse_on_stream(__func__, code, stream) : code;
}
ACLSIM_API aclError aclopCompileAndExecuteV2(const char* opType, int numInputs,
                                             aclTensorDesc* inputDesc[], aclDataBuffer* inputs[],
                                             int numOutputs, aclTensorDesc* outputDesc[],
                                             aclDataBuffer* outputs[], aclopAttr* attr,
                                             aclopEngineType, aclopCompileType, const char*,
                                             aclrtStream stream) {
  return execute(__func__, opType, numInputs, inputDesc, inputs, numOutputs, outputDesc, outputs,
                 attr, stream, outputDesc);
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
