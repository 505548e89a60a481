// The stream functions of the C interface.
#include "ascendcl/capture.h"
#include "ascendcl/device.h"
#include "ascendcl/graph.h"
#include "ascendcl/memory.h"
#include "ascendcl/strict.h"

using namespace aclsim;

namespace {

aclError create(const char* function, aclrtStream* out, uint32_t priority, uint32_t flags) {
  CallSpan span(function);
  ThreadState* state = thread();
  if (!out) return null_pointer(function, "stream");
  aclError code = ACL_SUCCESS;
  Context* context = current_context(state, function, &code);
  if (!context) return code;
  Lock lock(runtime().mutex);
  if (device_of(context).streams >= config().soc->stream_limit) {
    return failed(ACL_ERROR_RT_NO_STREAM_RESOURCE, "EE1023",
                  "%s failed because device %d has no more than %d streams.", function,
                  context->device, config().soc->stream_limit);
  }
  *out = make_stream(context, flags, priority);
  count_live(state, Kind::Stream, 1);
  return ACL_SUCCESS;
}

aclError destroy(const char* function, aclrtStream handle, bool force) {
  CallSpan span(function);
  ThreadState* state = thread();
  if (!handle) return null_pointer(function, "stream");
  aclError code = ACL_SUCCESS;
  Stream* stream = find_own_stream(state, handle, function, &code);
  if (!stream) return code;
  if (stream == stream->context->default_stream) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                  "%s failed because a context's default stream cannot be destroyed.", function);
  }
  code = check_not_captured(function, stream);
  if (code != ACL_SUCCESS) return code;
  if (!force) drain(stream);
  if (strict()) forget_origin(stream);
  destroy_stream(stream, force);
  count_live(state, Kind::Stream, -1);
  release_deferred();
  return ACL_SUCCESS;
}

bool not_run(Stream* stream) {  // tasks of these are kept for a model or run by others
  return stream->flags & (ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY);
}

// Refused while the stream is captured, yet the capture stays valid, as torch_npu's tests have it
// on hardware (Ascend/pytorch, test/npu/test_aclgraph_rng_state.py).
// aclrtSynchronizeStream switches to the stream's context for the call instead of refusing.
aclError synchronize(const char* function, aclrtStream handle, int timeout_ms) {
  aclError code = ACL_SUCCESS;
  Stream* stream = find_stream(thread(), handle, function, &code);
  if (!stream) return code;
  if (not_run(stream)) return ACL_SUCCESS;
  if (capture_of(stream)) {  // one that re-issues tasks of a model has nothing to wait for
    return failed(ACL_ERROR_RT_STREAM_CAPTURED, "EE1018",
                  "%s failed because the stream is being captured: its work has not run.", function);
  }
  code = drain(stream, timeout_ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  release_deferred();
  return code;
}

}  // namespace

ACLSIM_API aclError aclrtCreateStream(aclrtStream* stream) { return create(__func__, stream, 0, 0); }
ACLSIM_API aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority,
                                                uint32_t flag) {
  return create(__func__, stream, priority, flag & 0x3F);  // unknown bits are ignored
}
ACLSIM_API aclError aclrtDestroyStream(aclrtStream stream) {
  return destroy(__func__, stream, false);
}
ACLSIM_API aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return destroy(__func__, stream, true);
}

ACLSIM_API aclError aclrtSynchronizeStream(aclrtStream stream) {
  return synchronize(__func__, stream, -1);
}
ACLSIM_API aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  if (timeout < -1 || timeout == 0) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because timeout %d is invalid. Expected value: -1 or more than 0.",
                  __func__, timeout);
  }
  return synchronize(__func__, stream, timeout);
}

ACLSIM_API aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  ACLSIM_REQUIRE(status);
  ACLSIM_STREAM(on, stream);
  aclError code = capture_of(on) ? check_not_captured(__func__, on) : ACL_SUCCESS;
  if (code != ACL_SUCCESS) return code;
  *status = idle(on) ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtStreamAbort(aclrtStream stream) {
  ACLSIM_REQUIRE(stream);
  ACLSIM_STREAM(on, stream);
  if (!idle(on)) on->aborted.store(true);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  ACLSIM_REQUIRE(streamId);
  ACLSIM_STREAM(on, stream);
  *streamId = on->id;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  ACLSIM_REQUIRE(flags);
  ACLSIM_STREAM(on, stream);
  *flags = on->flags;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  ACLSIM_REQUIRE(priority);
  ACLSIM_STREAM(on, stream);
  *priority = on->priority;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtGetStreamAvailableNum(uint32_t* streamCount) {
  ACLSIM_REQUIRE(streamCount);
  ACLSIM_CONTEXT(context);
  *streamCount = config().soc->stream_limit - device_of(context).streams;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  if (mode != ACL_CONTINUE_ON_FAILURE && mode != ACL_STOP_ON_FAILURE) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because mode %llu is invalid. Expected value: 0 or 1.", __func__,
                  static_cast<unsigned long long>(mode));
  }
  ACLSIM_STREAM(on, stream);
  // STOP can be set once per stream and not be taken back.
  if (on->stop_on_failure.load() && mode == ACL_CONTINUE_ON_FAILURE) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1018",
                  "%s failed because the stream stops on failure already.", __func__);
  }
  on->stop_on_failure.store(static_cast<uint32_t>(mode));
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  ACLSIM_STREAM(on, stream);
  if (flag > 1) return bad_value(__func__, "flag", "other", "0 or 1");
  on->overflow_switch = flag;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  ACLSIM_REQUIRE(flag);
  ACLSIM_STREAM(on, stream);
  *flag = on->overflow_switch;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                            aclrtStreamAttrValue* value) {
  ACLSIM_REQUIRE(value);
  ACLSIM_STREAM(on, stream);
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE: return aclrtSetStreamFailureMode(stream, value->failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      return aclrtSetStreamOverflowSwitch(stream, value->overflowSwitch);
    case ACL_STREAM_ATTR_PRIORITY: on->priority = value->streamPriority; break;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
    case ACL_STREAM_ATTR_CACHE_OP_INFO: on->attributes[stmAttrType] = value->userCustomTag; break;
    default: return bad_value(__func__, "stmAttrType", "unknown", "an aclrtStreamAttr");
  }
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                            aclrtStreamAttrValue* value) {
  ACLSIM_REQUIRE(value);
  ACLSIM_STREAM(on, stream);
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE: value->failureMode = on->stop_on_failure.load(); break;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK: value->overflowSwitch = on->overflow_switch; break;
    case ACL_STREAM_ATTR_PRIORITY: value->streamPriority = on->priority; break;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
    case ACL_STREAM_ATTR_CACHE_OP_INFO: value->userCustomTag = on->attributes[stmAttrType]; break;
    default: return bad_value(__func__, "stmAttrType", "unknown", "an aclrtStreamAttr");
  }
  return ACL_SUCCESS;
}

// A configuration handle is the documented struct; its fields are what creation reads.
ACLSIM_API aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle() {
  thread();
  return new aclrtStreamConfigHandle();
}
ACLSIM_API aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle) {
  ACLSIM_REQUIRE(handle);
  delete handle;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle,
                                            aclrtStreamConfigAttr attr, const void* attrValue,
                                            size_t valueSize) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_REQUIRE(attrValue);
  void* field = nullptr;
  size_t size = 0;
  switch (attr) {
    case ACL_RT_STREAM_WORK_ADDR_PTR: field = &handle->workptr, size = sizeof(void*); break;
    case ACL_RT_STREAM_WORK_SIZE: field = &handle->workSize, size = sizeof(size_t); break;
    case ACL_RT_STREAM_FLAG: field = &handle->flag, size = sizeof(size_t); break;
    case ACL_RT_STREAM_PRIORITY: field = &handle->priority, size = sizeof(uint32_t); break;
    default: return bad_value(__func__, "attr", "unknown", "an aclrtStreamConfigAttr");
  }
  if (valueSize != size) return bad_value(__func__, "valueSize", "wrong", "the attribute's size");
  memcpy(field, attrValue, size);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle) {
  ACLSIM_REQUIRE(handle);
  return create(__func__, stream, handle->priority, static_cast<uint32_t>(handle->flag) & 0x3F);
}
