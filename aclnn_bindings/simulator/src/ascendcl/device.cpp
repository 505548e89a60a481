// Devices and contexts: who is current on which thread, and what ends with what.
#include "ascendcl/device.h"

#include <pthread.h>

#include "ascendcl/capture.h"
#include "ascendcl/memory.h"
#include "ascendcl/strict.h"

namespace aclsim {

namespace {

void in_child() {
  Runtime& all = runtime();
  all.forked = true;
  if (current_thread) current_thread->context = nullptr;
}

Context* new_context(int32_t device, bool primary) {
  auto* context = acquire<Context>(thread(), Kind::Context);
  context->device = device;
  context->primary = primary;
  context->streams = nullptr;
  context->stopped = ACL_SUCCESS;
  context->params_set = 0;
  context->sibling = runtime().contexts;
  runtime().contexts = context;
  context->default_stream = make_stream(context, 0, 0);
  if (strict()) {
    forget_origin(context->default_stream);  // nobody can leak what nobody created
    if (!primary) remember_origin(context);
  }
  count_live(thread(), Kind::Context, 1);
  return context;
}

// Waits for the context's work and takes its streams with it.
void end_context(Context* context, bool force) {
  for (Stream* s = context->streams; s && !force; s = s->sibling) drain(s);
  while (context->streams) {
    Stream* stream = context->streams;
    bool created = stream != context->default_stream;
    if (created) count_live(thread(), Kind::Stream, -1);
    if (strict()) forget_origin(stream);
    destroy_stream(stream, force);
  }
  Runtime& all = runtime();
  for (Context** at = &all.contexts; *at; at = &(*at)->sibling) {
    if (*at == context) {
      *at = context->sibling;
      break;
    }
  }
  if (strict()) forget_origin(context);
  count_live(thread(), Kind::Context, -1);
  retire(context, Kind::Context, Death::Destroyed);
  recycle(thread(), context, Kind::Context);
}

aclError check_device(const char* function, int32_t device) {
  if (device >= 0 && device < config().devices) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_INVALID_DEVICEID, "EE1003",
                "%s failed because device %d does not exist. Expected value: [0, %d).", function,
                device, config().devices);
}

ACLSIM_NOINLINE Context* no_context(ThreadState* state, const char* function, aclError* code) {
  Runtime& all = runtime();
  if (state->context && state->context->was(Kind::Context) && strict()) {
    report_dead(function, state->context, Kind::Context);
  } else if (!state->context && all.default_device >= 0 && !all.forked) {
    if (aclrtSetDevice(all.default_device) == ACL_SUCCESS) return state->context;
  } else if (!state->context && strict()) {
    report_misuse("no-context", function, nullptr, Kind::Context,
                  "Call aclrtSetDevice or aclrtSetCurrentContext on this thread first.");
  }
  *code = failed(ACL_ERROR_RT_CONTEXT_NULL, "EE1018",
                 all.forked ? "%s failed because this process was forked after the device was set; "
                              "set the device in the process that uses it."
                            : "%s failed because the thread has no current context. Call "
                              "aclrtSetDevice first.", function);
  return nullptr;
}

ACLSIM_NOINLINE Context* after_finalize(const char* function, aclError* code) {
  report_misuse("call-after-finalize", function, nullptr, Kind::Context,
                "Call aclFinalize last.");
  *code = failed(ACL_ERROR_UNINITIALIZE, "EE1018", "%s failed because aclFinalize was called.",
                 function);
  return nullptr;
}

}  // namespace

Runtime& runtime() {
  static Runtime* made = [] {
    auto* all = new Runtime();
    all->default_device = -1;
    pthread_atfork(nullptr, nullptr, in_child);
    return all;
  }();
  return *made;
}

Context* current_context(ThreadState* state, const char* function, aclError* code) {
  Context* context = state->context;
  if (ACLSIM_UNLIKELY(strict() && runtime().finalized)) {
    Context* none = after_finalize(function, code);
    if (strict_fails()) return none;
  }
  if (ACLSIM_LIKELY(context && context->is(Kind::Context))) return context;
  return no_context(state, function, code);
}

}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtGetDeviceCount(uint32_t* count) {
  ACLSIM_REQUIRE(count);
  *count = config().devices;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtSetDevice(int32_t deviceId) {
  CallSpan span(__func__);
  ThreadState* state = thread();
  Runtime& all = runtime();
  aclError code = check_device(__func__, deviceId);
  if (code != ACL_SUCCESS) return code;
  if (strict() && all.finalized) {
    after_finalize(__func__, &code);
    if (strict_fails()) return code;
  }
  if (all.forked) {
    return failed(ACL_ERROR_RT_CONTEXT_NULL, "EE1018",
                  "%s failed because this process was forked after the simulator was used; start "
                  "it anew instead.", __func__);
  }
  Lock lock(all.mutex);
  Device& device = all.devices[deviceId];
  if (!device.primary) device.primary = new_context(deviceId, true);
  ++device.references;
  state->context = device.primary;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtGetDevice(int32_t* deviceId) {
  ACLSIM_REQUIRE(deviceId);
  // Asking is no misuse: clients ask to learn whether a device was set.
  ThreadState* state = thread();
  if (!state->context || !state->context->is(Kind::Context)) {
    if (runtime().default_device >= 0 && !state->context) {
      *deviceId = runtime().default_device;
      return ACL_SUCCESS;
    }
    // The answer "none": a message left behind would be printed as the cause of a later failure.
    return state->last_error = ACL_ERROR_RT_CONTEXT_NULL;
  }
  *deviceId = state->context->device;
  return ACL_SUCCESS;
}

namespace {
aclError reset_device(const char* function, int32_t id, bool force) {
  CallSpan span(function);
  thread();
  aclError code = check_device(function, id);
  if (code != ACL_SUCCESS) return code;
  Lock lock(runtime().mutex);
  Device& device = runtime().devices[id];
  if (!device.primary || runtime().forked) {
    return failed(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "EE1018",
                  "%s failed because device %d was not set, or was reset already.", function, id);
  }
  if (!force && --device.references > 0) return ACL_SUCCESS;
  Context* context = device.primary;
  device.primary = nullptr;
  device.references = 0;
  end_context(context, force);
  release_deferred();
  return ACL_SUCCESS;
}
}  // namespace

ACLSIM_API aclError aclrtResetDevice(int32_t deviceId) {
  return reset_device(__func__, deviceId, false);
}
ACLSIM_API aclError aclrtResetDeviceForce(int32_t deviceId) {
  return reset_device(__func__, deviceId, true);
}

ACLSIM_API aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  CallSpan span(__func__);
  ThreadState* state = thread();
  ACLSIM_REQUIRE(context);
  aclError code = check_device(__func__, deviceId);
  if (code != ACL_SUCCESS) return code;
  Lock lock(runtime().mutex);
  state->context = new_context(deviceId, false);
  *context = state->context;
  return ACL_SUCCESS;
}

namespace {
ACLSIM_NOINLINE aclError bad_context(const char* function, Context* context) {
  if (strict() && context->was(Kind::Context)) report_dead(function, context, Kind::Context);
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                "%s failed because %p is not a live context.", function,
                static_cast<void*>(context));
}
}  // namespace

ACLSIM_API aclError aclrtDestroyContext(aclrtContext context) {
  CallSpan span(__func__);
  ThreadState* state = thread();
  ACLSIM_REQUIRE(context);
  auto* given = static_cast<Context*>(context);
  if (!given->is(Kind::Context)) return bad_context(__func__, given);
  if (given->primary) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                  "%s failed because a device's own context ends with aclrtResetDevice.", __func__);
  }
  Lock lock(runtime().mutex);
  end_context(given, false);
  if (state->context == given) state->context = nullptr;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtSetCurrentContext(aclrtContext context) {
  ThreadState* state = thread();
  ACLSIM_REQUIRE(context);
  auto* given = static_cast<Context*>(context);
  if (!given->is(Kind::Context)) return bad_context(__func__, given);
  state->context = given;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtGetCurrentContext(aclrtContext* context) {
  ACLSIM_REQUIRE(context);
  ACLSIM_CONTEXT(current);
  *context = current;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  ACLSIM_REQUIRE(stream);
  ACLSIM_CONTEXT(context);
  *stream = context->default_stream;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  thread();
  aclError code = check_device(__func__, deviceId);
  if (code != ACL_SUCCESS) return code;
  Lock lock(runtime().mutex);
  if (flags) *flags = 0;
  if (active) *active = runtime().devices[deviceId].primary != nullptr;
  return ACL_SUCCESS;
}

namespace {
aclError synchronize_device(const char* function, int timeout_ms) {
  ThreadState* state = thread();
  aclError code = ACL_SUCCESS;
  Context* context = current_context(state, function, &code);
  if (!context) return code;
  code = check_device_not_captured(function, context->device);
  if (code != ACL_SUCCESS) return code;
  // Streams are collected first: waiting under the lock would stop other threads.
  Stream* waiting[2048];
  int count = 0;
  {
    Lock lock(runtime().mutex);
    for (Context* c = runtime().contexts; c; c = c->sibling) {
      for (Stream* s = c->device == context->device ? c->streams : nullptr; s; s = s->sibling) {
        if (count == 2048) break;
        s->holders.fetch_add(1);  // who destroys it meanwhile waits for us
        waiting[count++] = s;
      }
    }
  }
  aclError first = ACL_SUCCESS;
  for (int i = 0; i < count; ++i) {
    code = drain(waiting[i], timeout_ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    if (first == ACL_SUCCESS) first = code;
    waiting[i]->holders.fetch_sub(1);
  }
  release_deferred();
  return first;
}
}  // namespace

ACLSIM_API aclError aclrtSynchronizeDevice() { return synchronize_device(__func__, -1); }
ACLSIM_API aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  if (timeout < -1 || timeout == 0) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because timeout %d is invalid. Expected value: -1 or more than 0.",
                  __func__, timeout);
  }
  return synchronize_device(__func__, timeout);
}
