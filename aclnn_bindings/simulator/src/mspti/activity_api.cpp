// msptiActivity…: what a client enables, and the buffers that it reads.
#include <mspti/mspti.h>

#include "ascendcl/common.h"
#include "mspti/records.h"
#include "mspti/watch.h"

using namespace aclsim::mspti;

namespace {
bool known(msptiActivityKind kind) { return record_bytes(kind) != 0; }
bool known(msptiExternalCorrelationKind kind) {
  return kind > MSPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
         kind < MSPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}
}  // namespace

ACLSIM_API msptiResult
msptiActivityRegisterCallbacks(msptiBuffersCallbackRequestFunc funcBufferRequested,
                               msptiBuffersCallbackCompleteFunc funcBufferCompleted) {
  if (!funcBufferRequested || !funcBufferCompleted) return MSPTI_ERROR_INVALID_PARAMETER;
  give_callbacks(funcBufferRequested, funcBufferCompleted);
  return MSPTI_SUCCESS;
}

ACLSIM_API msptiResult msptiActivityEnable(msptiActivityKind kind) {
  if (!known(kind)) return MSPTI_ERROR_INVALID_PARAMETER;
  enable(kind, true);
  return MSPTI_SUCCESS;
}
ACLSIM_API msptiResult msptiActivityDisable(msptiActivityKind kind) {
  if (!known(kind)) return MSPTI_ERROR_INVALID_PARAMETER;
  enable(kind, false);
  return MSPTI_SUCCESS;
}
ACLSIM_API bool msptiActivityIsEnabled(msptiActivityKind kind) {
  return known(kind) && enabled(kind);
}

ACLSIM_API msptiResult msptiActivityEnableMarkerDomain(const char* name) {
  if (!name || !*name) return MSPTI_ERROR_INVALID_PARAMETER;
  enable_domain(name, true);
  return MSPTI_SUCCESS;
}
ACLSIM_API msptiResult msptiActivityDisableMarkerDomain(const char* name) {
  if (!name || !*name) return MSPTI_ERROR_INVALID_PARAMETER;
  enable_domain(name, false);
  return MSPTI_SUCCESS;
}

// `*record` is the record before the one asked for; null for the first.
ACLSIM_API msptiResult msptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                                  msptiActivity** record) {
  if (!buffer || !record) return MSPTI_ERROR_INVALID_PARAMETER;
  auto* at = reinterpret_cast<uint8_t*>(*record);
  size_t next = at ? static_cast<size_t>(at - buffer) + record_bytes((*record)->kind) : 0;
  if (next >= validBufferSizeBytes) return MSPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<msptiActivity*>(buffer + next);
  return MSPTI_SUCCESS;
}

ACLSIM_API msptiResult msptiActivityFlushAll(uint32_t) {
  flush();
  return MSPTI_SUCCESS;
}
ACLSIM_API msptiResult msptiActivityFlushPeriod(uint32_t time) {
  flush_every(time);
  return MSPTI_SUCCESS;
}

ACLSIM_API msptiResult msptiActivityPushExternalCorrelationId(msptiExternalCorrelationKind kind,
                                                              uint64_t id) {
  if (!known(kind)) return MSPTI_ERROR_INVALID_PARAMETER;
  push_external(kind, id);
  return MSPTI_SUCCESS;
}
ACLSIM_API msptiResult msptiActivityPopExternalCorrelationId(msptiExternalCorrelationKind kind,
                                                             uint64_t* lastId) {
  if (!known(kind)) return MSPTI_ERROR_INVALID_PARAMETER;
  return pop_external(kind, lastId) ? MSPTI_SUCCESS : MSPTI_ERROR_QUEUE_EMPTY;
}
