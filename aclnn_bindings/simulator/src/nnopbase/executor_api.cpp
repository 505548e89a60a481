// Reuse of executors: repeatable ones, their destruction, and new addresses for their tensors.
#include "ascendcl/device.h"
#include "nnopbase/executor.h"
#include "ascendcl/strict.h"

using namespace aclsim;

namespace {

ACLSIM_NOINLINE aclnnStatus inner_null(const char* function, const char* parameter) {
  return failed(ACLNN_ERR_INNER_NULLPTR, "EZ9999", "%s failed because %s is null.", function,
                parameter);
}

ACLSIM_NOINLINE aclnnStatus unknown(const char* function, Executor* executor) {
  if (strict()) report_dead(function, executor, Kind::Executor);
  return failed(ACLNN_ERR_INNER, "EZ9999", "%s failed because %p is not a live executor.",
                function, static_cast<void*>(executor));
}

enum class Side { Any, Input, Output };

bool on_side(const ParamSpec& param, Side side) {
  return side == Side::Any || param.output == (side == Side::Output);
}

ACLSIM_NOINLINE aclnnStatus bad_index(const char* function, const char* name, size_t index) {
  return failed(ACLNN_ERR_PARAM_INVALID, "EZ1001",
                "%s failed because %s %zu names no tensor of the call.", function, name, index);
}

// The n-th argument of a kind on a side, null or not; -1 when there is none.
int nth(Executor* x, Side side, ArgKind kind, size_t index) {
  for (int i = 0; i < x->call.count; ++i) {
    if (x->call.args[i].kind != kind || !on_side(x->entry->spec->params[i], side)) continue;
    if (index-- == 0) return i;
  }
  return -1;
}

// By the tensor when the call knows it (hand-written ops ignore the index), else by the index.
aclnnStatus set_address(const char* function, aclOpExecutor* executor, size_t index,
                        aclTensor* tensor, void* addr, Side side) {
  if (!executor) return inner_null(function, "executor");
  if (!tensor) return inner_null(function, "tensor");
  if (!executor->is(Kind::Executor)) return unknown(function, executor);
  if (strict() && !tensor->is(Kind::Tensor)) report_dead(function, tensor, Kind::Tensor);
  bool found = false;
  for (int i = 0; i < executor->call.count; ++i) {
    Arg& arg = executor->call.args[i];
    if (arg.kind != ArgKind::Tensor || !on_side(executor->entry->spec->params[i], side)) continue;
    if (arg.tensor && arg.tensor->origin == tensor) {
      arg.tensor->data = addr;
      found = true;
    }
  }
  if (!found) {
    int at = nth(executor, side, ArgKind::Tensor, index);
    if (at < 0 || !executor->call.args[at].tensor) return bad_index(function, "index", index);
    executor->call.args[at].tensor->data = addr;
  }
  if (tensor->is(Kind::Tensor)) tensor->view.data = addr;
  return ACL_SUCCESS;
}

aclnnStatus set_member(const char* function, aclOpExecutor* executor, size_t ir_index,
                       size_t relative, aclTensorList* tensors, void* addr, Side side) {
  if (!executor) return inner_null(function, "executor");
  if (!tensors) return inner_null(function, "tensors");
  if (!executor->is(Kind::Executor)) return unknown(function, executor);
  // irIndex counts the operator's inputs or outputs, lists and tensors alike.
  int at = -1;
  size_t seen = 0;
  for (int i = 0; i < executor->call.count && at < 0; ++i) {
    ArgKind kind = executor->call.args[i].kind;
    if (kind != ArgKind::Tensor && kind != ArgKind::TensorList) continue;
    if (!on_side(executor->entry->spec->params[i], side)) continue;
    if (seen++ == ir_index && kind == ArgKind::TensorList) at = i;
  }
  if (at < 0) at = nth(executor, side, ArgKind::TensorList, 0);
  if (at < 0) return bad_index(function, "irIndex", ir_index);
  Arg& list = executor->call.args[at];
  if (!list.tensors || relative >= static_cast<size_t>(list.size) || !list.tensors[relative]) {
    return bad_index(function, "relativeIndex", relative);
  }
  list.tensors[relative]->data = addr;
  if (tensors->is(Kind::TensorList) && relative < tensors->size && tensors->data[relative]) {
    tensors->data[relative]->view.data = addr;
  }
  return ACL_SUCCESS;
}

}  // namespace

ACLSIM_API aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  if (!executor) return inner_null(__func__, "executor");
  if (!executor->is(Kind::Executor)) return unknown(__func__, executor);
  if (executor->entry->row->flags & (kNotRepeatable | kDynamicOut)) {
    return failed(ACLNN_ERR_INNER, "EZ9999",
                  "%s failed because an executor of %s cannot be reused: it copies on the host.",
                  __func__, executor->entry->spec->name);
  }
  executor->repeatable = true;
  return ACL_SUCCESS;
}

ACLSIM_API aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  if (!executor) return inner_null(__func__, "executor");
  if (!executor->is(Kind::Executor)) return unknown(__func__, executor);
  destroy_executor(executor);
  return ACL_SUCCESS;
}

ACLSIM_API aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index,
                                        aclTensor* tensor, void* addr) {
  return set_address(__func__, executor, index, tensor, addr, Side::Any);
}
ACLSIM_API aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index,
                                             aclTensor* tensor, void* addr) {
  return set_address(__func__, executor, index, tensor, addr, Side::Input);
}
ACLSIM_API aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index,
                                              aclTensor* tensor, void* addr) {
  return set_address(__func__, executor, index, tensor, addr, Side::Output);
}
ACLSIM_API aclnnStatus AclSetTensorAddr(aclOpExecutor* executor, const size_t index,
                                        aclTensor* tensor, void* addr) {
  return set_address(__func__, executor, index, tensor, addr, Side::Any);
}
ACLSIM_API aclnnStatus AclSetInputTensorAddr(aclOpExecutor* executor, const size_t index,
                                             aclTensor* tensor, void* addr) {
  return set_address(__func__, executor, index, tensor, addr, Side::Input);
}
ACLSIM_API aclnnStatus AclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index,
                                              aclTensor* tensor, void* addr) {
  return set_address(__func__, executor, index, tensor, addr, Side::Output);
}
ACLSIM_API aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                               const size_t relativeIndex, aclTensorList* tensors,
                                               void* addr) {
  return set_member(__func__, executor, irIndex, relativeIndex, tensors, addr, Side::Any);
}
ACLSIM_API aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                                    const size_t relativeIndex,
                                                    aclTensorList* tensors, void* addr) {
  return set_member(__func__, executor, irIndex, relativeIndex, tensors, addr, Side::Input);
}
ACLSIM_API aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                                     const size_t relativeIndex,
                                                     aclTensorList* tensors, void* addr) {
  return set_member(__func__, executor, irIndex, relativeIndex, tensors, addr, Side::Output);
}
ACLSIM_API aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                               const size_t relativeIndex, aclTensorList* tensors,
                                               void* addr) {
  return set_member(__func__, executor, irIndex, relativeIndex, tensors, addr, Side::Any);
}
ACLSIM_API aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                                    const size_t relativeIndex,
                                                    aclTensorList* tensors, void* addr) {
  return set_member(__func__, executor, irIndex, relativeIndex, tensors, addr, Side::Input);
}
ACLSIM_API aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                                     const size_t relativeIndex,
                                                     aclTensorList* tensors, void* addr) {
  return set_member(__func__, executor, irIndex, relativeIndex, tensors, addr, Side::Output);
}

// The light alternative to aclInit; calling both families is no error (aclnnInit document).
ACLSIM_API aclnnStatus aclnnInit(const char*) {
  thread();
  Lock lock(runtime().mutex);
  runtime().finalized = false;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus aclnnFinalize() {
  thread();
  return ACL_SUCCESS;
}

// Memory that the phases of a thread's calls share: executors own theirs here, so that there is
// nothing to take or to give back. MindSpore runs no kernel of a graph without these, which no public
// header declares (signatures: torch_npu's open source, op_api_common.h).
ACLSIM_API int32_t InitHugeMemThreadLocal(void*, bool) { return 0; }
ACLSIM_API void UnInitHugeMemThreadLocal(void*, bool) {}
ACLSIM_API void ReleaseHugeMem(void*, bool) {}
