#include "mspti/callbacks.h"

#include <cstring>
#include <mutex>
#include <vector>

#include "ascendcl/common.h"
#include "mspti/watch.h"
#include "per_thread.h"

struct msptiSubscriber_st {
  msptiCallbackFunc callback;
  void* userdata;
  uint64_t on[MSPTI_CB_DOMAIN_SIZE];  // a bit for each id
};

namespace aclsim::mspti {
namespace {

struct Subscription {
  std::mutex mutex;
  msptiSubscriber_st* now = nullptr;
};
Subscription& subscription() {
  static auto* made = new Subscription;
  return *made;
}

struct Site {
  msptiCallbackDomain domain = MSPTI_CB_DOMAIN_INVALID;
  msptiCallbackId id = 0;
};
struct Named {
  const char* function;
  Site site;
};
constexpr msptiCallbackDomain kRuntime = MSPTI_CB_DOMAIN_RUNTIME, kHccl = MSPTI_CB_DOMAIN_HCCL;
constexpr Named kSites[] = {
    {"aclrtSetDevice", {kRuntime, MSPTI_CBID_RUNTIME_DEVICE_SET}},
    {"aclrtResetDevice", {kRuntime, MSPTI_CBID_RUNTIME_DEVICE_RESET}},
    {"aclrtCreateContext", {kRuntime, MSPTI_CBID_RUNTIME_CONTEXT_CREATED}},
    {"aclrtDestroyContext", {kRuntime, MSPTI_CBID_RUNTIME_CONTEXT_DESTROY}},
    {"aclrtCreateStream", {kRuntime, MSPTI_CBID_RUNTIME_STREAM_CREATED}},
    {"aclrtDestroyStream", {kRuntime, MSPTI_CBID_RUNTIME_STREAM_DESTROY}},
    {"aclrtSynchronizeStream", {kRuntime, MSPTI_CBID_RUNTIME_STREAM_SYNCHRONIZED}},
    {"aclrtMalloc", {kRuntime, MSPTI_CBID_RUNTIME_MALLOC}},
    {"aclrtFree", {kRuntime, MSPTI_CBID_RUNTIME_FREE}},
    {"aclrtMallocHost", {kRuntime, MSPTI_CBID_RUNTIME_MALLOC_HOST}},
    {"aclrtFreeHost", {kRuntime, MSPTI_CBID_RUNTIME_FREE_HOST}},
    {"aclrtMallocCached", {kRuntime, MSPTI_CBID_RUNTIME_MALLOC_CACHED}},
    {"aclrtMemcpy", {kRuntime, MSPTI_CBID_RUNTIME_MEMCPY}},
    {"aclrtMemcpyAsync", {kRuntime, MSPTI_CBID_RUNTIME_MEMCPY_ASYNC}},
    {"aclrtMemcpy2d", {kRuntime, MSPTI_CBID_RUNTIME_MEM_CPY2D}},
    {"aclrtMemcpy2dAsync", {kRuntime, MSPTI_CBID_RUNTIME_MEM_CPY2D_ASYNC}},
    {"aclrtMemset", {kRuntime, MSPTI_CBID_RUNTIME_MEM_SET}},
    {"aclrtMemsetAsync", {kRuntime, MSPTI_CBID_RUNTIME_MEM_SET_ASYNC}},
    {"aclrtGetMemInfo", {kRuntime, MSPTI_CBID_RUNTIME_MEM_GET_INFO}},
    {"HcclAllReduce", {kHccl, MSPTI_CBID_HCCL_ALLREDUCE}},
    {"HcclBroadcast", {kHccl, MSPTI_CBID_HCCL_BROADCAST}},
    {"HcclAllGather", {kHccl, MSPTI_CBID_HCCL_ALLGATHER}},
    {"HcclReduceScatter", {kHccl, MSPTI_CBID_HCCL_REDUCE_SCATTER}},
    {"HcclReduce", {kHccl, MSPTI_CBID_HCCL_REDUCE}},
    {"HcclAlltoAll", {kHccl, MSPTI_CBID_HCCL_ALL_TO_ALL}},
    {"HcclAlltoAllV", {kHccl, MSPTI_CBID_HCCL_ALL_TO_ALLV}},
    {"HcclBarrier", {kHccl, MSPTI_CBID_HCCL_BARRIER}},
    {"HcclScatter", {kHccl, MSPTI_CBID_HCCL_SCATTER}},
    {"HcclSend", {kHccl, MSPTI_CBID_HCCL_SEND}},
    {"HcclRecv", {kHccl, MSPTI_CBID_HCCL_RECV}},
    {"HcclBatchSendRecv", {kHccl, MSPTI_CBID_HCCL_SENDRECV}},
};

Site site_of(const char* function) {
  if (!strncmp(function, "aclnn", 5)) return {kRuntime, MSPTI_CBID_RUNTIME_LAUNCH};
  for (const Named& one : kSites) {
    if (!strcmp(one.function, function)) return one.site;
  }
  return {};
}

// What an entry's callback left for the exit's, innermost last.
struct Left {
  uint64_t correlation, data;
};
struct Entries {
  std::vector<Left> open;
  bool inside = false;  // a callback calls functions of its own: it is not told of those
};
Entries& entries() { return aclnn_bindings::per_thread<Entries>(); }

// The subscriber is used by its copy: it may be gone before the callback returns.
void tell(msptiApiCallbackSite when, const char* function, uint64_t correlation, uint64_t* data) {
  Site site = site_of(function);
  if (site.domain == MSPTI_CB_DOMAIN_INVALID || entries().inside) return;
  msptiSubscriber_st to = {};
  {
    std::lock_guard<std::mutex> lock(subscription().mutex);
    if (subscription().now) to = *subscription().now;
  }
  if (!to.callback || !(to.on[site.domain] >> site.id & 1)) return;
  msptiCallbackData about = {when, function, nullptr, nullptr, nullptr, correlation, 0, 0, data};
  entries().inside = true;
  to.callback(to.userdata, site.domain, site.id, &about);
  entries().inside = false;
}

msptiCallbackId end_of(msptiCallbackDomain domain) {
  return domain == kRuntime ? MSPTI_CBID_RUNTIME_SIZE : domain == kHccl ? MSPTI_CBID_HCCL_SIZE : 0;
}

// Switches the callbacks whose bits are given.
msptiResult set(uint32_t enable, msptiSubscriberHandle subscriber, msptiCallbackDomain domain,
                uint64_t bits) {
  std::lock_guard<std::mutex> lock(subscription().mutex);
  if (!subscriber || subscriber != subscription().now) return MSPTI_ERROR_INVALID_PARAMETER;
  uint64_t& on = subscriber->on[domain];
  on = enable ? on | bits : on & ~bits;
  return MSPTI_SUCCESS;
}

}  // namespace

bool subscribed() {
  std::lock_guard<std::mutex> lock(subscription().mutex);
  return subscription().now && subscription().now->callback;
}

void call_entered(const char* function, uint64_t correlation) {
  if (!subscribed()) return;
  entries().open.push_back({correlation, 0});
  uint64_t data = 0;
  tell(MSPTI_API_ENTER, function, correlation, &data);
  entries().open.back().data = data;
}

void call_left(const char* function, uint64_t correlation) {
  std::vector<Left>& open = entries().open;
  while (!open.empty() && open.back().correlation > correlation) open.pop_back();
  if (open.empty() || open.back().correlation != correlation) return;
  uint64_t data = open.back().data;
  open.pop_back();
  tell(MSPTI_API_EXIT, function, correlation, &data);
}

}  // namespace aclsim::mspti

using namespace aclsim::mspti;

ACLSIM_API msptiResult msptiSubscribe(msptiSubscriberHandle* subscriber, msptiCallbackFunc callback,
                                      void* userdata) {
  if (!subscriber) return MSPTI_ERROR_INVALID_PARAMETER;
  {
    std::lock_guard<std::mutex> lock(subscription().mutex);
    if (subscription().now) return MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    *subscriber = subscription().now = new msptiSubscriber_st{callback, userdata, {}};
  }
  update_watch();
  return MSPTI_SUCCESS;
}

ACLSIM_API msptiResult msptiUnsubscribe(msptiSubscriberHandle subscriber) {
  {
    std::lock_guard<std::mutex> lock(subscription().mutex);
    if (!subscriber || subscriber != subscription().now) return MSPTI_ERROR_INVALID_PARAMETER;
    subscription().now = nullptr;
  }
  delete subscriber;
  update_watch();
  return MSPTI_SUCCESS;
}

ACLSIM_API msptiResult msptiEnableCallback(uint32_t enable, msptiSubscriberHandle subscriber,
                                           msptiCallbackDomain domain, msptiCallbackId cbid) {
  if (!cbid || cbid >= end_of(domain)) return MSPTI_ERROR_INVALID_PARAMETER;
  return set(enable, subscriber, domain, uint64_t{1} << cbid);
}

ACLSIM_API msptiResult msptiEnableDomain(uint32_t enable, msptiSubscriberHandle subscriber,
                                         msptiCallbackDomain domain) {
  if (!end_of(domain)) return MSPTI_ERROR_INVALID_PARAMETER;
  return set(enable, subscriber, domain, ~uint64_t{0});
}
