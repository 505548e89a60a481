// Owns the table of ACL functions that this extension calls; knows nothing of where libraries are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace launch {

// ACL's handles are opaque here: all are pointers in the ABI (acl_base.h, acl_meta.h).
using Handle = void*;
using Status = int32_t;

// X(required, result, name, parameters): types as acl_rt.h and acl_meta.h of CANN 9.1 declare them,
// enums as int32_t.
#define LAUNCH_ACL_FUNCTIONS(X)                                                                   \
  X(1, Status, aclInit, (const char*))                                                            \
  X(1, Status, aclFinalize, (void))                                                               \
  X(0, Status, aclFinalizeReference, (uint64_t*))                                                 \
  X(0, Status, aclnnInit, (const char*))                                                          \
  X(0, Status, aclnnFinalize, (void))                                                             \
  X(0, const char*, aclGetRecentErrMsg, (void))                                                   \
  X(1, Status, aclrtGetDeviceCount, (uint32_t*))                                                  \
  X(1, Status, aclrtSetDevice, (int32_t))                                                         \
  X(1, Status, aclrtResetDevice, (int32_t))                                                       \
  X(1, Status, aclrtSynchronizeDevice, (void))                                                    \
  X(0, Status, aclrtSynchronizeDeviceWithTimeout, (int32_t))                                      \
  X(1, Status, aclrtGetCurrentContext, (Handle*))                                                 \
  X(1, Status, aclrtSetCurrentContext, (Handle))                                                  \
  X(0, Status, aclrtCreateContext, (Handle*, int32_t))                                            \
  X(0, Status, aclrtDestroyContext, (Handle))                                                     \
  X(1, Status, aclrtCreateStream, (Handle*))                                                      \
  X(0, Status, aclrtCreateStreamWithConfig, (Handle*, uint32_t, uint32_t))                        \
  X(1, Status, aclrtDestroyStream, (Handle))                                                      \
  X(1, Status, aclrtSynchronizeStream, (Handle))                                                  \
  X(0, Status, aclrtSynchronizeStreamWithTimeout, (Handle, int32_t))                              \
  X(0, Status, aclrtStreamQuery, (Handle, int32_t*))                                              \
  X(0, Status, aclmdlRICaptureGetInfo, (Handle, int32_t*, Handle*))                               \
  X(1, Status, aclrtStreamWaitEvent, (Handle, Handle))                                            \
  X(0, Status, aclrtCreateEvent, (Handle*))                                                       \
  X(0, Status, aclrtCreateEventWithFlag, (Handle*, uint32_t))                                     \
  X(0, Status, aclrtCreateEventExWithFlag, (Handle*, uint32_t))                                   \
  X(1, Status, aclrtDestroyEvent, (Handle))                                                       \
  X(1, Status, aclrtRecordEvent, (Handle, Handle))                                                \
  X(1, Status, aclrtQueryEventStatus, (Handle, int32_t*))                                         \
  X(1, Status, aclrtSynchronizeEvent, (Handle))                                                   \
  X(0, Status, aclrtSynchronizeEventWithTimeout, (Handle, int32_t))                               \
  X(0, Status, aclrtEventElapsedTime, (float*, Handle, Handle))                                   \
  X(1, Status, aclrtMalloc, (void**, size_t, int32_t))                                            \
  X(0, Status, aclrtMallocAlign32, (void**, size_t, int32_t))                                     \
  X(1, Status, aclrtFree, (void*))                                                                \
  X(1, Status, aclrtMallocHost, (void**, size_t))                                                 \
  X(1, Status, aclrtFreeHost, (void*))                                                            \
  X(1, Status, aclrtMemcpy, (void*, size_t, const void*, size_t, int32_t))                       \
  X(1, Status, aclrtMemcpyAsync, (void*, size_t, const void*, size_t, int32_t, Handle))           \
  X(1, Status, aclrtMemsetAsync, (void*, size_t, int32_t, size_t, Handle))                        \
  X(0, Status, aclrtGetMemInfo, (int32_t, size_t*, size_t*))                                      \
  X(0, Handle, aclCreateTensor,                                                                   \
    (const int64_t*, uint64_t, int32_t, const int64_t*, int64_t, int32_t, const int64_t*,         \
     uint64_t, void*))                                                                            \
  X(0, Status, aclDestroyTensor, (Handle))                                                        \
  X(0, Handle, aclCreateScalar, (void*, int32_t))                                                 \
  X(0, Status, aclDestroyScalar, (Handle))                                                        \
  X(0, Handle, aclCreateIntArray, (const int64_t*, uint64_t))                                     \
  X(0, Status, aclDestroyIntArray, (Handle))                                                      \
  X(0, Handle, aclCreateBoolArray, (const bool*, uint64_t))                                       \
  X(0, Status, aclDestroyBoolArray, (Handle))                                                     \
  X(0, Handle, aclCreateFloatArray, (const float*, uint64_t))                                     \
  X(0, Status, aclDestroyFloatArray, (Handle))                                                    \
  X(0, Handle, aclCreateTensorList, (const Handle*, uint64_t))                                    \
  X(0, Status, aclDestroyTensorList, (Handle))                                                    \
  X(0, Handle, aclCreateScalarList, (const Handle*, uint64_t))                                    \
  X(0, Status, aclDestroyScalarList, (Handle))

struct Acl {
#define X(required, result, name, parameters) result(*name) parameters;
  LAUNCH_ACL_FUNCTIONS(X)
#undef X
};

extern Acl acl;  // null entries: not exported by the libraries in use

}  // namespace launch
