/* MSPTI: records of what a program asks of CANN and of what its devices run, for tools in the process.
 *
 * Names, numbers and layouts as public documents give them: "msPTI C API" (hiascend.com, CANN
 * 8.3.RC1, atlasprofiling_16_0140 and the pages below it; the same text in gitcode.com/Ascend/mspti,
 * docs/en/c_api/context) and, for what those leave out (values of callback ids,
 * msptiActivityIsEnabled), csrc/include of that repository (Mulan PSL v2). Sizes and times are in
 * bytes and in nanoseconds of the wall clock. */
#ifndef ACLSIM_MSPTI_H
#define ACLSIM_MSPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MSPTI_INVALID_DEVICE_ID ((uint32_t)0xFFFFFFFFU)
#define MSPTI_INVALID_STREAM_ID ((uint32_t)0xFFFFFFFFU)
#define MSPTI_INVALID_CORRELATION_ID ((uint64_t)0)

/* Records have no padding inside, and a multiple of 8 bytes. */
#define ACLSIM_MSPTI_RECORD __attribute__((__packed__)) __attribute__((aligned(8)))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  MSPTI_SUCCESS = 0,
  MSPTI_ERROR_INVALID_PARAMETER = 1,
  MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 2,
  MSPTI_ERROR_MAX_LIMIT_REACHED = 3,
  MSPTI_ERROR_DEVICE_OFFLINE = 4,
  MSPTI_ERROR_QUEUE_EMPTY = 5,
  MSPTI_ERROR_WITHOUT_LD_PRELOAD = 6,
  MSPTI_ERROR_INNER = 999,
  MSPTI_ERROR_FORCE_INT = 0x7fffffff
} msptiResult;

typedef enum {
  MSPTI_ACTIVITY_KIND_INVALID = 0,
  MSPTI_ACTIVITY_KIND_MARKER = 1,
  MSPTI_ACTIVITY_KIND_KERNEL = 2,
  MSPTI_ACTIVITY_KIND_API = 3,
  MSPTI_ACTIVITY_KIND_HCCL = 4,
  MSPTI_ACTIVITY_KIND_MEMORY = 5,
  MSPTI_ACTIVITY_KIND_MEMSET = 6,
  MSPTI_ACTIVITY_KIND_MEMCPY = 7,
  MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION = 8,
  MSPTI_ACTIVITY_KIND_COMMUNICATION = 9,
  MSPTI_ACTIVITY_KIND_ACL_API = 10,
  MSPTI_ACTIVITY_KIND_NODE_API = 11,
  MSPTI_ACTIVITY_KIND_RUNTIME_API = 12,
  MSPTI_ACTIVITY_KIND_COUNT,
  MSPTI_ACTIVITY_KIND_FORCE_INT = 0x7fffffff
} msptiActivityKind;

typedef enum {
  MSPTI_ACTIVITY_FLAG_NONE = 0,
  MSPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS = 1,
  MSPTI_ACTIVITY_FLAG_MARKER_START = 2,
  MSPTI_ACTIVITY_FLAG_MARKER_END = 4,
  MSPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS_WITH_DEVICE = 8,
  MSPTI_ACTIVITY_FLAG_MARKER_START_WITH_DEVICE = 16,
  MSPTI_ACTIVITY_FLAG_MARKER_END_WITH_DEVICE = 32
} msptiActivityFlag;

typedef enum {
  MSPTI_ACTIVITY_SOURCE_KIND_HOST = 0,
  MSPTI_ACTIVITY_SOURCE_KIND_DEVICE = 1
} msptiActivitySourceKind;

typedef enum {
  MSPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION = 0,
  MSPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE = 1
} msptiActivityMemoryOperationType;

typedef enum {
  MSPTI_ACTIVITY_MEMORY_UNKNOWN = 0,
  MSPTI_ACTIVITY_MEMORY_DEVICE = 1
} msptiActivityMemoryKind;

typedef enum {
  MSPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN = 0,
  MSPTI_ACTIVITY_MEMCPY_KIND_HOST = 1,
  MSPTI_ACTIVITY_MEMCPY_KIND_HTOD = 2,
  MSPTI_ACTIVITY_MEMCPY_KIND_DTOH = 3,
  MSPTI_ACTIVITY_MEMCPY_KIND_DTOD = 4,
  MSPTI_ACTIVITY_MEMCPY_KIND_DEFAULT = 5
} msptiActivityMemcpyKind;

typedef enum {
  MSPTI_EXTERNAL_CORRELATION_KIND_INVALID = 0,
  MSPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN = 1,
  MSPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 = 2,
  MSPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1 = 3,
  MSPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 = 4,
  MSPTI_EXTERNAL_CORRELATION_KIND_SIZE,
  MSPTI_EXTERNAL_CORRELATION_KIND_FORCE_INT = 0x7fffffff
} msptiExternalCorrelationKind;

/* The numbers of HcclDataType. */
typedef enum {
  MSPTI_ACTIVITY_COMMUNICATION_INT8 = 0,
  MSPTI_ACTIVITY_COMMUNICATION_INT16 = 1,
  MSPTI_ACTIVITY_COMMUNICATION_INT32 = 2,
  MSPTI_ACTIVITY_COMMUNICATION_FP16 = 3,
  MSPTI_ACTIVITY_COMMUNICATION_FP32 = 4,
  MSPTI_ACTIVITY_COMMUNICATION_INT64 = 5,
  MSPTI_ACTIVITY_COMMUNICATION_UINT64 = 6,
  MSPTI_ACTIVITY_COMMUNICATION_UINT8 = 7,
  MSPTI_ACTIVITY_COMMUNICATION_UINT16 = 8,
  MSPTI_ACTIVITY_COMMUNICATION_UINT32 = 9,
  MSPTI_ACTIVITY_COMMUNICATION_FP64 = 10,
  MSPTI_ACTIVITY_COMMUNICATION_BFP16 = 11,
  MSPTI_ACTIVITY_COMMUNICATION_INT128 = 12,
  MSPTI_ACTIVITY_COMMUNICATION_HIF8 = 14,
  MSPTI_ACTIVITY_COMMUNICATION_FP8E4M3 = 15,
  MSPTI_ACTIVITY_COMMUNICATION_FP8E5M2 = 16,
  MSPTI_ACTIVITY_COMMUNICATION_FP8E8M0 = 17,
  MSPTI_ACTIVITY_COMMUNICATION_INVALID_TYPE = 0x0000FFFF
} msptiCommunicationDataType;

typedef struct ACLSIM_MSPTI_RECORD {
  msptiActivityKind kind;
} msptiActivity;

typedef union __attribute__((__packed__)) {
  struct {
    uint32_t processId;
    uint32_t threadId;
  } pt;
  struct {
    uint32_t deviceId;
    uint32_t streamId;
  } ds;
} msptiObjectId;

typedef struct ACLSIM_MSPTI_RECORD {
  msptiActivityKind kind;
  msptiActivityFlag flag;
  msptiActivitySourceKind sourceKind;
  uint64_t timestamp;
  uint64_t id;
  msptiObjectId objectId; /* pt from the host, ds from a device */
  const char* name;       /* null where a range ends */
  const char* domain;
} msptiActivityMarker;

typedef struct ACLSIM_MSPTI_RECORD {
  msptiActivityKind kind; /* MSPTI_ACTIVITY_KIND_API, _ACL_API, _NODE_API or _RUNTIME_API */
  uint64_t start;
  uint64_t end;
  struct {
    uint32_t processId;
    uint32_t threadId;
  } pt;
  uint64_t correlationId;
  const char* name;
} msptiActivityApi;

typedef struct ACLSIM_MSPTI_RECORD {
  msptiActivityKind kind;
  uint64_t start;
  uint64_t end;
  struct {
    uint32_t deviceId;
    uint32_t streamId;
  } ds;
  uint64_t correlationId; /* of the call that launched it */
  const char* type;
  const char* name;
} msptiActivityKernel;

typedef struct ACLSIM_MSPTI_RECORD {
  msptiActivityKind kind;
  uint64_t start;
  uint64_t end;
  struct {
    uint32_t deviceId;
    uint32_t streamId;
  } ds;
  double bandWidth; /* GB/s */
  const char* name;
  const char* commName;
} msptiActivityHccl;

typedef struct ACLSIM_MSPTI_RECORD {
  msptiActivityKind kind;
  msptiCommunicationDataType dataType;
  uint64_t count;
  struct {
    uint32_t deviceId;
    uint32_t streamId;
  } ds;
  uint64_t start;
  uint64_t end;
  const char* algType;
  const char* name;
  const char* commName;
  uint64_t correlationId;
} msptiActivityCommunication;

typedef struct ACLSIM_MSPTI_RECORD {
  msptiActivityKind kind;
  msptiActivityMemoryOperationType memoryOperationType;
  msptiActivityMemoryKind memoryKind;
  uint64_t correlationId;
  uint64_t start;
  uint64_t end;
  uint64_t address;
  uint64_t bytes;
  uint32_t processId;
  uint32_t deviceId;
  uint32_t streamId;
} msptiActivityMemory;

typedef struct ACLSIM_MSPTI_RECORD {
  msptiActivityKind kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t streamId;
  uint64_t correlationId;
  uint8_t isAsync;
} msptiActivityMemset;

typedef struct ACLSIM_MSPTI_RECORD {
  msptiActivityKind kind;
  msptiActivityMemcpyKind copyKind;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t streamId;
  uint64_t correlationId;
  uint8_t isAsync;
} msptiActivityMemcpy;

typedef struct ACLSIM_MSPTI_RECORD {
  msptiActivityKind kind;
  msptiExternalCorrelationKind externalKind;
  uint64_t externalId;
  uint64_t correlationId;
} msptiActivityExternalCorrelation;

typedef void (*msptiBuffersCallbackRequestFunc)(uint8_t** buffer, size_t* size,
                                                size_t* maxNumRecords);
typedef void (*msptiBuffersCallbackCompleteFunc)(uint8_t* buffer, size_t size, size_t validSize);

msptiResult msptiActivityRegisterCallbacks(msptiBuffersCallbackRequestFunc funcBufferRequested,
                                           msptiBuffersCallbackCompleteFunc funcBufferCompleted);
msptiResult msptiActivityEnable(msptiActivityKind kind);
msptiResult msptiActivityDisable(msptiActivityKind kind);
bool msptiActivityIsEnabled(msptiActivityKind kind);
msptiResult msptiActivityEnableMarkerDomain(const char* name);
msptiResult msptiActivityDisableMarkerDomain(const char* name);
msptiResult msptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                       msptiActivity** record);
msptiResult msptiActivityFlushAll(uint32_t flag);
msptiResult msptiActivityFlushPeriod(uint32_t time);
msptiResult msptiActivityPushExternalCorrelationId(msptiExternalCorrelationKind kind, uint64_t id);
msptiResult msptiActivityPopExternalCorrelationId(msptiExternalCorrelationKind kind,
                                                  uint64_t* lastId);

typedef struct msptiSubscriber_st* msptiSubscriberHandle;
typedef uint32_t msptiCallbackId;

typedef enum {
  MSPTI_CB_DOMAIN_INVALID = 0,
  MSPTI_CB_DOMAIN_RUNTIME = 1,
  MSPTI_CB_DOMAIN_HCCL = 2,
  MSPTI_CB_DOMAIN_SIZE,
  MSPTI_CB_DOMAIN_FORCE_INT = 0x7fffffff
} msptiCallbackDomain;

typedef enum {
  MSPTI_API_ENTER = 0,
  MSPTI_API_EXIT = 1,
  MSPTI_API_CBSITE_FORCE_INT = 0x7fffffff
} msptiApiCallbackSite;

typedef enum {
  MSPTI_CBID_RUNTIME_INVALID = 0,
  MSPTI_CBID_RUNTIME_DEVICE_SET = 1,
  MSPTI_CBID_RUNTIME_DEVICE_RESET = 2,
  MSPTI_CBID_RUNTIME_CONTEXT_CREATED = 5,
  MSPTI_CBID_RUNTIME_CONTEXT_DESTROY = 6,
  MSPTI_CBID_RUNTIME_STREAM_CREATED = 7,
  MSPTI_CBID_RUNTIME_STREAM_DESTROY = 8,
  MSPTI_CBID_RUNTIME_STREAM_SYNCHRONIZED = 9,
  MSPTI_CBID_RUNTIME_LAUNCH = 10,
  MSPTI_CBID_RUNTIME_MALLOC = 15,
  MSPTI_CBID_RUNTIME_FREE = 16,
  MSPTI_CBID_RUNTIME_MALLOC_HOST = 17,
  MSPTI_CBID_RUNTIME_FREE_HOST = 18,
  MSPTI_CBID_RUNTIME_MALLOC_CACHED = 19,
  MSPTI_CBID_RUNTIME_MEMCPY = 22,
  MSPTI_CBID_RUNTIME_MEMCPY_ASYNC = 24,
  MSPTI_CBID_RUNTIME_MEM_CPY2D = 25,
  MSPTI_CBID_RUNTIME_MEM_CPY2D_ASYNC = 26,
  MSPTI_CBID_RUNTIME_MEM_SET = 27,
  MSPTI_CBID_RUNTIME_MEM_SET_ASYNC = 28,
  MSPTI_CBID_RUNTIME_MEM_GET_INFO = 29,
  MSPTI_CBID_RUNTIME_SIZE = 37,
  MSPTI_CBID_RUNTIME_FORCE_INT = 0x7fffffff
} msptiCallbackIdRuntime;

typedef enum {
  MSPTI_CBID_HCCL_INVALID = 0,
  MSPTI_CBID_HCCL_ALLREDUCE = 1,
  MSPTI_CBID_HCCL_BROADCAST = 2,
  MSPTI_CBID_HCCL_ALLGATHER = 3,
  MSPTI_CBID_HCCL_REDUCE_SCATTER = 4,
  MSPTI_CBID_HCCL_REDUCE = 5,
  MSPTI_CBID_HCCL_ALL_TO_ALL = 6,
  MSPTI_CBID_HCCL_ALL_TO_ALLV = 7,
  MSPTI_CBID_HCCL_BARRIER = 8,
  MSPTI_CBID_HCCL_SCATTER = 9,
  MSPTI_CBID_HCCL_SEND = 10,
  MSPTI_CBID_HCCL_RECV = 11,
  MSPTI_CBID_HCCL_SENDRECV = 12,
  MSPTI_CBID_HCCL_SIZE,
  MSPTI_CBID_HCCL_FORCE_INT = 0x7fffffff
} msptiCallbackIdHccl;

/* `functionParams`, `functionReturnValue` and `symbolName` are null in the simulator. */
typedef struct {
  msptiApiCallbackSite callbackSite;
  const char* functionName;
  const void* functionParams;
  const void* functionReturnValue;
  const char* symbolName;
  uint64_t correlationId;
  uint64_t reserved1;
  uint64_t reserved2;
  uint64_t* correlationData; /* eight bytes that the exit gets as the entry left them */
} msptiCallbackData;

typedef void (*msptiCallbackFunc)(void* userdata, msptiCallbackDomain domain, msptiCallbackId cbid,
                                  const msptiCallbackData* cbdata);

msptiResult msptiSubscribe(msptiSubscriberHandle* subscriber, msptiCallbackFunc callback,
                           void* userdata);
msptiResult msptiUnsubscribe(msptiSubscriberHandle subscriber);
msptiResult msptiEnableCallback(uint32_t enable, msptiSubscriberHandle subscriber,
                                msptiCallbackDomain domain, msptiCallbackId cbid);
msptiResult msptiEnableDomain(uint32_t enable, msptiSubscriberHandle subscriber,
                              msptiCallbackDomain domain);

#ifdef __cplusplus
}
#endif

#endif
