// Operators by type name without a compilation step of their own: libacl_op_compiler has the table.
#include <dlfcn.h>

#include <string>

#include "ascendcl/error.h"

#include <acl/acl_op_compiler.h>

using namespace aclsim;

namespace {

using Execute = decltype(&aclopCompileAndExecuteV2);

// The library beside this one.
Execute find_execute() {
  Dl_info here;
  if (!dladdr(reinterpret_cast<void*>(&find_execute), &here) || !here.dli_fname) return nullptr;
  std::string path = here.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "libacl_op_compiler.so";
  void* library = dlopen(path.c_str(), RTLD_LAZY);
  return library ? reinterpret_cast<Execute>(dlsym(library, "aclopCompileAndExecuteV2")) : nullptr;
}

}  // namespace

ACLSIM_API aclError aclopExecuteV2(const char* opType, int numInputs, aclTensorDesc* inputDesc[],
                                   aclDataBuffer* inputs[], int numOutputs,
                                   aclTensorDesc* outputDesc[], aclDataBuffer* outputs[],
                                   aclopAttr* attr, aclrtStream stream) {
  static const Execute execute = find_execute();
  if (!execute) {
    return failed(ACL_ERROR_INTERNAL_ERROR, "EE1006", "%s: libacl_op_compiler.so is missing.", __func__);
  }
  return execute(opType, numInputs, inputDesc, inputs, numOutputs, outputDesc, outputs, attr,
                 ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, stream);
}
ACLSIM_API aclError aclopExecute(const char* opType, int numInputs,
                                 const aclTensorDesc* const inputDesc[],
                                 const aclDataBuffer* const inputs[], int numOutputs,
                                 const aclTensorDesc* const outputDesc[],
                                 aclDataBuffer* const outputs[], const aclopAttr* attr,
                                 aclrtStream stream) {
  return aclopExecuteV2(opType, numInputs, const_cast<aclTensorDesc**>(inputDesc),
                        const_cast<aclDataBuffer**>(inputs), numOutputs,
                        const_cast<aclTensorDesc**>(outputDesc),
                        const_cast<aclDataBuffer**>(outputs), const_cast<aclopAttr*>(attr), stream);
}
