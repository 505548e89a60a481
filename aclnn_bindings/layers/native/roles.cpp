#include "roles.h"

#include <cstring>
#include <string>
#include <unordered_map>

namespace layers {
namespace {

const std::unordered_map<std::string, Role>& roles() {
  static const auto* made = new std::unordered_map<std::string, Role>{
      {"aclCreateTensor", Role::CreateTensor},
      {"aclInitTensor", Role::InitTensor},
      {"aclDestroyTensor", Role::DestroyTensor},
      {"aclSetRawTensorAddr", Role::SetTensorAddress},
      {"aclSetTensorAddr", Role::SetExecutorAddress},
      {"aclSetInputTensorAddr", Role::SetExecutorAddress},
      {"aclSetOutputTensorAddr", Role::SetExecutorAddress},
      {"AclSetTensorAddr", Role::SetExecutorAddress},
      {"AclSetInputTensorAddr", Role::SetExecutorAddress},
      {"AclSetOutputTensorAddr", Role::SetExecutorAddress},
      {"aclCreateScalar", Role::CreateScalar},
      {"aclCreateIntArray", Role::CreateIntArray},
      {"aclCreateBoolArray", Role::CreateBoolArray},
      {"aclCreateFloatArray", Role::CreateFloatArray},
      {"aclDestroyScalar", Role::DestroyValue},
      {"aclDestroyIntArray", Role::DestroyValue},
      {"aclDestroyBoolArray", Role::DestroyValue},
      {"aclDestroyFloatArray", Role::DestroyValue},
      {"aclCreateTensorList", Role::CreateTensorList},
      {"aclCreateScalarList", Role::CreateScalarList},
      {"aclDestroyTensorList", Role::DestroyList},
      {"aclDestroyScalarList", Role::DestroyList},
      {"aclSetAclOpExecutorRepeatable", Role::Repeat},
      {"aclDestroyAclOpExecutor", Role::DestroyExecutor},
      {"aclrtMalloc", Role::Malloc},
      {"aclrtMallocAlign32", Role::Malloc},
      {"aclrtMallocCached", Role::Malloc},
      {"aclrtMallocWithCfg", Role::Malloc},
      {"aclrtMallocForTaskScheduler", Role::Malloc},
      {"aclrtReserveMemAddress", Role::Reserve},
      {"aclrtReleaseMemAddress", Role::Release},
      {"aclrtFree", Role::Free},
      {"aclrtFreeWithDevSync", Role::FreeWithSync},
      {"aclrtMallocHost", Role::MallocHost},
      {"aclrtMallocHostWithCfg", Role::MallocHost},
      {"aclrtFreeHost", Role::FreeHost},
      {"aclrtMemcpy", Role::Copy},
      {"aclrtMemcpyAsync", Role::CopyAsync},
      {"aclrtMemset", Role::Fill},
      {"aclrtMemsetAsync", Role::FillAsync},
      {"aclrtCreateStream", Role::CreateStream},
      {"aclrtCreateStreamWithConfig", Role::CreateStream},
      {"aclrtCreateStreamV2", Role::CreateStream},
      {"aclrtDestroyStream", Role::DestroyStream},
      {"aclrtDestroyStreamForce", Role::DestroyStream},
      {"aclrtCreateEvent", Role::CreateEvent},
      {"aclrtCreateEventWithFlag", Role::CreateEvent},
      {"aclrtCreateEventExWithFlag", Role::CreateEvent},
      {"aclrtDestroyEvent", Role::DestroyEvent},
      {"aclrtRecordEvent", Role::RecordEvent},
      {"aclrtRecordEventWithFlag", Role::RecordEvent},
      {"aclrtStreamWaitEvent", Role::WaitEvent},
      {"aclrtStreamWaitEventWithTimeout", Role::WaitEvent},
      {"aclrtStreamWaitEventWithFlag", Role::WaitEvent},
      {"aclrtSynchronizeStream", Role::SynchronizeStream},
      {"aclrtSynchronizeStreamWithTimeout", Role::SynchronizeStream},
      {"aclrtSynchronizeEvent", Role::SynchronizeEvent},
      {"aclrtSynchronizeEventWithTimeout", Role::SynchronizeEvent},
      {"aclrtSynchronizeDevice", Role::SynchronizeDevice},
      {"aclrtSynchronizeDeviceWithTimeout", Role::SynchronizeDevice},
      {"aclrtStreamQuery", Role::QueryStream},
      {"aclrtQueryEvent", Role::QueryEvent},
      {"aclrtQueryEventStatus", Role::QueryEvent},
      {"aclrtSetDevice", Role::SetDevice},
      {"aclrtResetDevice", Role::ResetDevice},
      {"aclrtResetDeviceForce", Role::ResetDevice},
      {"aclrtCreateContext", Role::CreateContext},
      {"aclrtDestroyContext", Role::DestroyContext},
      {"aclrtSetCurrentContext", Role::SetContext},
      {"aclInit", Role::Initialize},
      {"aclFinalize", Role::Finalize},
  };
  return *made;
}

bool ends_with(const char* name, const char* suffix) {
  size_t length = strlen(name), wanted = strlen(suffix);
  return length > wanted && !strcmp(name + length - wanted, suffix);
}

}  // namespace

Role role_of(const char* name, const Row& row) {
  if (!row.known) return Role::Other;
  if (row.partner != kNone)
    return ends_with(name, "GetWorkspaceSize") ? Role::PhaseOne : Role::PhaseTwo;
  auto found = roles().find(name);
  return found == roles().end() ? Role::Other : found->second;
}

}  // namespace layers
