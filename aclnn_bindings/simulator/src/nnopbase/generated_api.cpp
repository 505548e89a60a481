// The functions that generated custom operators call, with the names, parameters and order that
// generated files of public repositories declare. Weak ones among them are left out where the
// simulator has nothing to say: such code looks before it calls.
#include <chrono>
#include <cstring>
#include <dlfcn.h>

#include "ascendcl/strict.h"
#include "nnopbase/custom_op.h"
#include "nnopbase/plan.h"

using namespace aclsim;

namespace {

enum AttributeKind : uint32_t { kBool, kFloat, kInt, kString };

// An executor whose first phase this thread began and did not end yet: dropped where it never does.
thread_local Executor* unfinished = nullptr;

Executor* executor_of(void* handle) {
  auto* executor = static_cast<Executor*>(handle);
  return executor && executor->is(Kind::Executor) ? executor : nullptr;
}

aclnnStatus no_executor(const char* function) {
  return failed(ACLNN_ERR_INNER_NULLPTR, "EZ9999", "%s failed because it was given no live executor.",
                function);
}

aclnnStatus no_parameter(const char* function, size_t index) {
  return failed(ACLNN_ERR_INNER, "EZ9999", "%s failed because the operator has no parameter %zu.",
                function, index);
}

using Place = Arg* (*)(Executor*, size_t);

// Sets the argument at an index to what `copied` makes of it.
template <class Copy>
aclnnStatus set(const char* function, void* handle, Place place, size_t index, ArgKind kind,
                Copy copied) {
  Executor* executor = executor_of(handle);
  if (!executor) return no_executor(function);
  Arg* arg = place(executor, index);
  if (!arg) return no_parameter(function, index);
  arg->kind = kind;
  arg->size = 0;
  arg->handle = nullptr;
  copied(ArgumentCopier(executor), *arg);
  return ACL_SUCCESS;
}

aclnnStatus set_tensor(const char* function, void* executor, Place place, const aclTensor* tensor,
                       size_t index) {
  return set(function, executor, place, index, ArgKind::Tensor,
             [&](ArgumentCopier to, Arg& arg) { arg.tensor = to.copy(tensor); });
}
aclnnStatus set_tensors(const char* function, void* executor, Place place,
                        const aclTensorList* list, size_t index) {
  return set(function, executor, place, index, ArgKind::TensorList, [&](ArgumentCopier to, Arg& arg) {
    arg.tensors = to.list<Tensor>(list, Kind::TensorList, arg);
  });
}
aclnnStatus set_ints(const char* function, void* executor, Place place, const aclIntArray* array,
                     size_t index) {
  return set(function, executor, place, index, ArgKind::IntArray, [&](ArgumentCopier to, Arg& arg) {
    arg.ints = to.array<int64_t>(array, Kind::IntArray, arg);
  });
}
aclnnStatus set_bools(const char* function, void* executor, Place place, const aclBoolArray* array,
                      size_t index) {
  return set(function, executor, place, index, ArgKind::BoolArray, [&](ArgumentCopier to, Arg& arg) {
    arg.bools = to.array<bool>(array, Kind::BoolArray, arg);
  });
}
aclnnStatus set_floats(const char* function, void* executor, Place place,
                       const aclFloatArray* array, size_t index) {
  return set(function, executor, place, index, ArgKind::FloatArray,
             [&](ArgumentCopier to, Arg& arg) {
               arg.floats = to.array<float>(array, Kind::FloatArray, arg);
             });
}

// A copy of a value in the executor's memory.
void* held(void* executor, const void* from, size_t size) {
  void* to = take(static_cast<Executor*>(executor), size + 1);
  if (size) memcpy(to, from, size);
  static_cast<char*>(to)[size] = 0;
  return to;
}

aclnnStatus set_attribute(const char* function, void* executor, void* from, size_t size,
                          size_t index, uint32_t kind) {
  const ArgKind kinds[] = {ArgKind::Bool, ArgKind::Float, ArgKind::Int, ArgKind::String};
  if (kind > kString) return no_parameter(function, index);
  return set(function, executor, attribute_at, index, kinds[kind], [&](ArgumentCopier, Arg& arg) {
    switch (kind) {
      case kBool: arg.flag = *static_cast<bool*>(from); break;
      case kFloat: {
        const bool wide = size == sizeof(double);
        arg.number = wide ? *static_cast<double*>(from) : *static_cast<float*>(from);
        break;
      }
      case kInt: arg.integer = *static_cast<int64_t*>(from); break;
      default: arg.text = static_cast<char*>(held(executor, from, size));
    }
  });
}

aclnnStatus set_array(const char* function, void* executor, void* from, size_t count,
                      size_t index, uint32_t kind) {
  const ArgKind kinds[] = {ArgKind::BoolArray, ArgKind::FloatArray, ArgKind::IntArray};
  const size_t sizes[] = {sizeof(bool), sizeof(float), sizeof(int64_t)};
  if (kind > kInt) return no_parameter(function, index);
  return set(function, executor, attribute_at, index, kinds[kind], [&](ArgumentCopier, Arg& arg) {
    arg.size = static_cast<int64_t>(count);
    arg.handle = held(executor, from, count * sizes[kind]);
  });
}

// Older generated code gives no type: sizes tell numbers apart, and texts end with a zero.
uint32_t guessed_kind(const void* from, size_t size) {
  if (size == sizeof(bool)) return kBool;
  if (size == sizeof(float) && memchr(from, 0, size) != static_cast<const char*>(from) + 3) {
    return kFloat;
  }
  return size == sizeof(int64_t) ? kInt : kString;
}

}  // namespace

ACLSIM_API aclnnStatus NnopbaseCreateExecutorSpace(void** space) {
  if (!space) return no_executor(__func__);
  static char only;
  *space = &only;
  return ACL_SUCCESS;
}

ACLSIM_API void* NnopbaseGetExecutor(void* space, const char* opType, char* inputsDesc,
                                     uint32_t inputNum, char* outputsDesc, uint32_t outputNum,
                                     char* attrsDesc, uint32_t attrsNum) {
  if (!space || !opType) return nullptr;
  if (unfinished && unfinished->is(Kind::Executor)) abandon_plan(unfinished);
  CustomEntry* entry = custom_entry(opType, __builtin_return_address(0), {inputsDesc, inputNum},
                                    {outputsDesc, outputNum}, {attrsDesc, attrsNum});
  unfinished = entry ? make_custom_executor(entry) : nullptr;
  return unfinished ? static_cast<aclOpExecutor*>(unfinished) : nullptr;
}

ACLSIM_API aclnnStatus NnopbaseAddInput(void* executor, const aclTensor* tensor,
                                        const uint32_t index) {
  return set_tensor(__func__, executor, input_at, tensor, index);
}
ACLSIM_API aclnnStatus NnopbaseAddIgnoreContinuesInput(void* executor, const aclTensor* tensor,
                                                       const uint32_t index) {
  const aclnnStatus code = set_tensor(__func__, executor, input_at, tensor, index);
  if (code == ACL_SUCCESS) custom_call(executor_of(executor))->own_strides[index] = true;
  return code;
}
ACLSIM_API aclnnStatus NnopbaseAddOutput(void* executor, const aclTensor* tensor,
                                         const uint32_t index) {
  return set_tensor(__func__, executor, output_at, tensor, index);
}
ACLSIM_API aclnnStatus NnopbaseAddDynamicInput(void* executor, const aclTensorList* list,
                                               const uint32_t index) {
  return set_tensors(__func__, executor, input_at, list, index);
}
ACLSIM_API aclnnStatus NnopbaseAddDynamicOutput(void* executor, const aclTensorList* list,
                                                const uint32_t index) {
  return set_tensors(__func__, executor, output_at, list, index);
}
ACLSIM_API aclnnStatus NnopbaseAddIntArrayInput(void* executor, const aclIntArray* array,
                                                const uint32_t index) {
  return set_ints(__func__, executor, input_at, array, index);
}
ACLSIM_API aclnnStatus NnopbaseAddBoolArrayInput(void* executor, const aclBoolArray* array,
                                                 const uint32_t index) {
  return set_bools(__func__, executor, input_at, array, index);
}
ACLSIM_API aclnnStatus NnopbaseAddFloatArrayInput(void* executor, const aclFloatArray* array,
                                                  const uint32_t index) {
  return set_floats(__func__, executor, input_at, array, index);
}
ACLSIM_API aclnnStatus NnopbaseAddScalarInput(void* executor, const aclScalar* scalar,
                                              const uint32_t index, const int32_t, const int32_t) {
  return set(__func__, executor, input_at, index, ArgKind::Scalar,
             [&](ArgumentCopier to, Arg& arg) { arg.scalar = to.copy(scalar); });
}
ACLSIM_API aclnnStatus NnopbaseAddScalarListInput(void* executor, const aclScalarList* list,
                                                  const uint32_t index, const int32_t,
                                                  const int32_t) {
  return set(__func__, executor, input_at, index, ArgKind::ScalarList,
             [&](ArgumentCopier to, Arg& arg) {
               arg.scalars = to.list<Scalar>(list, Kind::ScalarList, arg);
             });
}

ACLSIM_API aclnnStatus NnopbaseAddAttrWithDtype(void* executor, void* attrAddr, size_t attrLen,
                                                const size_t index, const uint32_t dtype) {
  return set_attribute(__func__, executor, attrAddr, attrLen, index, dtype);
}
ACLSIM_API aclnnStatus NnopbaseAddAttr(void* executor, void* attrAddr, size_t attrLen,
                                       const size_t index) {
  const uint32_t kind = guessed_kind(attrAddr, attrLen);
  return set_attribute(__func__, executor, attrAddr, attrLen, index, kind);
}
ACLSIM_API aclnnStatus NnopbaseAddIntArrayAttr(void* executor, const aclIntArray* array,
                                               const size_t index) {
  return set_ints(__func__, executor, attribute_at, array, index);
}
ACLSIM_API aclnnStatus NnopbaseAddFloatArrayAttr(void* executor, const aclFloatArray* array,
                                                 const size_t index) {
  return set_floats(__func__, executor, attribute_at, array, index);
}
ACLSIM_API aclnnStatus NnopbaseAddBoolArrayAttr(void* executor, const aclBoolArray* array,
                                                const size_t index) {
  return set_bools(__func__, executor, attribute_at, array, index);
}
ACLSIM_API aclnnStatus NnopbaseAddArrayAttrWithDtype(void* executor, void* array, const size_t len,
                                                     const size_t, const size_t index,
                                                     const uint32_t dtype) {
  return set_array(__func__, executor, array, len, index, dtype);
}
ACLSIM_API aclnnStatus NnopbaseAddArrayAttr(void* executor, void* array, const size_t len,
                                            const size_t elementSize, const size_t index) {
  const uint32_t kind = elementSize == sizeof(bool) ? kBool
                        : elementSize == sizeof(float) ? kFloat : kInt;
  return set_array(__func__, executor, array, len, index, kind);
}

ACLSIM_API aclnnStatus NnopbaseSetRef(void* handle, const size_t inputIrIdx,
                                      const size_t outputIrIdx) {
  Executor* executor = executor_of(handle);
  if (!executor) return no_executor(__func__);
  if (!input_at(executor, inputIrIdx)) return no_parameter(__func__, inputIrIdx);
  if (!output_at(executor, outputIrIdx)) return no_parameter(__func__, outputIrIdx);
  custom_call(executor)->input_of[outputIrIdx] = static_cast<int16_t>(inputIrIdx);
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus NnopbaseAddSupportList(void* handle, GeneratedSupportList* list,
                                              uint32_t* socSupportList, size_t socSupportListLen) {
  Executor* executor = executor_of(handle);
  if (!executor) return no_executor(__func__);
  CustomCall* custom = custom_call(executor);
  custom->supports = list;
  custom->socs = socSupportList;
  custom->soc_count = socSupportListLen;
  return ACL_SUCCESS;
}
// 1: formats must be those of the list, plain ones too.
ACLSIM_API aclnnStatus NnopbaseSetFormatMatchMode(void* handle, const uint32_t mode) {
  Executor* executor = executor_of(handle);
  if (!executor) return no_executor(__func__);
  custom_call(executor)->strict_formats = mode == 1;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus NnopbaseAddTilingId(void*, void*) { return ACL_SUCCESS; }
ACLSIM_API void NnopbaseAddOpTypeId(void*, const uint32_t) {}
// The names themselves come from the package's header, which older generated code has too.
ACLSIM_API aclnnStatus NnopbaseAddParamName(void* handle, const uint32_t, const char*, const bool) {
  Executor* executor = executor_of(handle);
  if (!executor) return no_executor(__func__);
  custom_call(executor)->named = true;
  return ACL_SUCCESS;
}
ACLSIM_API void NnopbaseSetMatchArgsFlag(void*) {}
ACLSIM_API bool NnopbaseMatchArgs(void*, uint64_t*) { return false; }

ACLSIM_API aclnnStatus NnopbaseRunForWorkspace(void* handle, uint64_t* workspaceLen) {
  unfinished = nullptr;
  Executor* executor = executor_of(handle);
  return executor ? finish_custom_plan(executor, workspaceLen) : no_executor(__func__);
}
ACLSIM_API aclnnStatus NnopbaseRunWithWorkspace(void* handle, aclrtStream stream, void* workspace,
                                                uint64_t workspaceSize) {
  auto* executor = static_cast<aclOpExecutor*>(handle);
  if (!executor) return no_executor(__func__);
  return launch(*executor->entry, workspace, workspaceSize, executor, stream);
}

// Views are made dense by the launch itself, within the workspace that it asks for: generated code
// is told that there is nothing for aclnnContiguous and its kin to do.
ACLSIM_API aclnnStatus NnopbaseGetUnContiguousTensors(void*, const aclTensorList** inTensors) {
  if (inTensors) *inTensors = nullptr;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus NnopbaseSetUnContExecutor(void*, aclOpExecutor*, const size_t) {
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus NnopbaseGetUnContExecutor(void*, aclOpExecutor** inExe, size_t* inWsSize) {
  if (inExe) *inExe = nullptr;
  if (inWsSize) *inWsSize = 0;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus NnopbaseGetRefUnContiguousTensors(void*, const aclTensorList** unContTensors,
                                                         const aclTensorList** contTensors) {
  if (unContTensors) *unContTensors = nullptr;
  if (contTensors) *contTensors = nullptr;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus NnopbaseSetViewCopyExecutor(void*, aclOpExecutor*) { return ACL_SUCCESS; }
ACLSIM_API aclnnStatus NnopbaseGetViewCopyExecutor(void*, aclOpExecutor** exe) {
  if (exe) *exe = nullptr;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus NnopbaseReleaseRefContiguousTensors(void*, const aclTensorList** tensors) {
  if (tensors) *tensors = nullptr;
  return ACL_SUCCESS;
}
ACLSIM_API void* NnopbaseGetApiFunc(const char* funcName) {
  return funcName ? dlsym(RTLD_DEFAULT, funcName) : nullptr;
}

// Operators that join a kernel with a collective: the bound kernel sees the group as an attribute.
ACLSIM_API aclnnStatus NnopbaseSetMc2(void* const) { return ACL_SUCCESS; }
ACLSIM_API aclnnStatus NnopbaseSetHcomGroup(void* const, char* const) { return ACL_SUCCESS; }
ACLSIM_API void NnopbaseSetHcclServerType(void*, uint32_t) {}
ACLSIM_API void NnopbaseSetHcclServerTypeList(void*, uint32_t*, uint32_t*, size_t) {}
ACLSIM_API void NnopbaseSetUserHandle(void* handle, void* user) {
  if (Executor* executor = executor_of(handle)) custom_call(executor)->user_handle = user;
}
ACLSIM_API void* NnopbaseGetUserHandle(void* handle) {
  Executor* executor = executor_of(handle);
  return executor ? custom_call(executor)->user_handle : nullptr;
}

ACLSIM_API uint64_t NnopbaseMsprofSysTime() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch()).count();
}
ACLSIM_API void NnopbaseReportApiInfo(const uint64_t, void*) {}

// Of C++ linkage. Statuses of functions here left their message already.
__attribute__((visibility("default"))) void NnopbaseOpLogE(const aclnnStatus code,
                                                           const char* const expr) {
  if (code != ACLNN_ERR_PARAM_NULLPTR || !expr || !strstr(expr, "!= nullptr")) return;
  const std::string checked(expr, strstr(expr, " != nullptr"));
  failed(code, aclnn_error_id(code), "The custom operator failed. Parameter %s is null.",
         checked.c_str());
}
