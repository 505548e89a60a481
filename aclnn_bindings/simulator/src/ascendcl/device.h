// Devices, contexts and the process: who is current where, and what is counted per device.
#pragma once

#include <mutex>

#include "ascendcl/stream.h"

namespace aclsim {

constexpr int kSysParams = 8;

struct Context : Handle {
  int32_t device;
  bool primary;
  Context* sibling;                   // next context of the process
  Stream* default_stream;
  Stream* streams;                    // created ones and the default one
  std::atomic<aclError> stopped;      // set by a stream that stops on failure
  int64_t params[kSysParams];
  uint32_t params_set;                // bit per option
};

struct Device {
  int32_t references;
  Context* primary;
  int32_t streams, events;
  std::atomic<uint64_t> used, peak;
  uint32_t core_limits[2];            // aclrtSetDeviceResLimit; 0: the product's
  std::atomic<uint64_t> peers;        // bit per device that it may reach
};

struct Runtime {
  std::recursive_mutex mutex;
  uint64_t initialised;               // reference count of aclInit
  bool finalized;
  bool forked;
  std::string first_config;
  int default_device;                 // -1: none
  std::atomic<uint32_t> wait_timeout_s;  // aclrtSetOpWaitTimeout; 0: none
  Device devices[64];
  Context* contexts;
  std::atomic<int64_t> params[kSysParams];
  int32_t next_stream_id;
};

ACLSIM_SHARED Runtime& runtime();
using Lock = std::lock_guard<std::recursive_mutex>;

// The thread's current context, or null with `code` 107002 and a message.
ACLSIM_SHARED Context* current_context(ThreadState* state, const char* function, aclError* code);
inline Device& device_of(Context* context) { return runtime().devices[context->device]; }

// Begins every function that needs a context; `context` is then usable.
#define ACLSIM_CONTEXT(context)                                              \
  ::aclsim::CallSpan context_span(__func__);                                 \
  ::aclsim::ThreadState* state = ::aclsim::thread();                         \
  aclError context_code = ACL_SUCCESS;                                       \
  ::aclsim::Context* context =                                               \
      ::aclsim::current_context(state, __func__, &context_code);             \
  if (ACLSIM_UNLIKELY(!context)) return context_code

// Begins every function that takes a stream of the current context; null is its default stream.
#define ACLSIM_STREAM(name, handle)                                          \
  ::aclsim::CallSpan stream_span(__func__);                                  \
  ::aclsim::ThreadState* state = ::aclsim::thread();                         \
  aclError stream_code = ACL_SUCCESS;                                        \
  ::aclsim::Stream* name =                                                   \
      ::aclsim::find_own_stream(state, handle, __func__, &stream_code);      \
  if (ACLSIM_UNLIKELY(!name)) return stream_code

}  // namespace aclsim
