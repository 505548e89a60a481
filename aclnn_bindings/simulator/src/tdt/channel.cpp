// Data channels (acl/acl_tdt.h): named queues of datasets between host and device. Nothing on the
// simulated device reads or writes them, so that what is sent to a channel can be received from
// it; the names are the process's, and a handle is one end of such a queue.
#include <acl/acl_tdt.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ascendcl/error.h"

struct acltdtDataItem {
  acltdtTensorType type;
  std::vector<int64_t> dims;
  aclDataType dtype;
  void* data;                                 // the client's, or `kept`
  size_t size;
  std::shared_ptr<std::vector<char>> kept;    // of an item that went through a channel
};

struct acltdtDataset {
  std::vector<acltdtDataItem*> items;                     // the client's
  std::vector<std::unique_ptr<acltdtDataItem>> received;  // the dataset's own
  std::string name;
};

namespace {

using Sent = std::vector<acltdtDataItem>;

struct Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Sent> waiting;
  size_t capacity;
  bool stopped = false;
};

constexpr size_t kCapacity = 128;  // of a channel made without one

std::mutex registry_mutex;
std::map<std::string, std::weak_ptr<Queue>>& registry() {
  static auto* queues = new std::map<std::string, std::weak_ptr<Queue>>;  // outlives destructors
  return *queues;
}

// Until `ready` or the time is over: -1 waits for ever, 0 does not wait. False when it is over, or
// when the channel was stopped.
template <class Ready>
bool wait(Queue& queue, std::unique_lock<std::mutex>& lock, int32_t timeout_ms, Ready ready) {
  auto done = [&] { return queue.stopped || ready(); };
  if (timeout_ms < 0) {
    queue.changed.wait(lock, done);
  } else {
    queue.changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), done);
  }
  return !queue.stopped && ready();
}

acltdtDataItem copied(const acltdtDataItem& item) {
  acltdtDataItem copy = item;
  const char* from = static_cast<const char*>(item.data);
  copy.kept = std::make_shared<std::vector<char>>(from, from + (from ? item.size : 0));
  copy.data = copy.kept->data();
  return copy;
}

}  // namespace

struct acltdtChannelHandle {
  std::shared_ptr<Queue> queue;
  std::string name;
};

using namespace aclsim;

ACLSIM_API acltdtChannelHandle* acltdtCreateChannelWithCapacity(uint32_t deviceId, const char* name,
                                                                size_t capacity) {
  thread();
  if (!name || !*name || deviceId >= static_cast<uint32_t>(config().devices) || capacity == 0) {
    failed(ACL_ERROR_INVALID_PARAM, "EH0007",
           "%s failed: expected a device of this process, a name and a capacity of 1 or more.",
           __func__);
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(registry_mutex);
  std::weak_ptr<Queue>& known = registry()[name];
  std::shared_ptr<Queue> queue = known.lock();
  if (!queue) {
    queue = std::make_shared<Queue>();
    queue->capacity = capacity;
    known = queue;
  }
  return new acltdtChannelHandle{queue, name};
}
ACLSIM_API acltdtChannelHandle* acltdtCreateChannel(uint32_t deviceId, const char* name) {
  return acltdtCreateChannelWithCapacity(deviceId, name, kCapacity);
}
ACLSIM_API aclError acltdtStopChannel(acltdtChannelHandle* handle) {
  ACLSIM_REQUIRE(handle);
  std::lock_guard<std::mutex> lock(handle->queue->mutex);
  handle->queue->stopped = true;
  handle->queue->changed.notify_all();
  return ACL_SUCCESS;
}
ACLSIM_API aclError acltdtDestroyChannel(acltdtChannelHandle* handle) {
  ACLSIM_REQUIRE(handle);
  std::lock_guard<std::mutex> lock(registry_mutex);
  std::string name = handle->name;
  delete handle;
  if (registry()[name].expired()) registry().erase(name);
  return ACL_SUCCESS;
}
ACLSIM_API aclError acltdtCleanChannel(acltdtChannelHandle* handle) {
  ACLSIM_REQUIRE(handle);
  std::lock_guard<std::mutex> lock(handle->queue->mutex);
  handle->queue->waiting.clear();
  handle->queue->changed.notify_all();
  return ACL_SUCCESS;
}
ACLSIM_API aclError acltdtQueryChannelSize(const acltdtChannelHandle* handle, size_t* size) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_REQUIRE(size);
  std::lock_guard<std::mutex> lock(handle->queue->mutex);
  *size = handle->queue->waiting.size();
  return ACL_SUCCESS;
}

ACLSIM_API aclError acltdtSendTensor(const acltdtChannelHandle* handle, const acltdtDataset* dataset,
                                     int32_t timeout) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_REQUIRE(dataset);
  if (timeout < -1) return bad_value(__func__, "timeout", "below -1", "-1 or more");
  Sent sent;
  for (const acltdtDataItem* item : dataset->items) sent.push_back(copied(*item));
  for (const auto& item : dataset->received) sent.push_back(copied(*item));
  Queue& queue = *handle->queue;
  std::unique_lock<std::mutex> lock(queue.mutex);
  if (!wait(queue, lock, timeout, [&] { return queue.waiting.size() < queue.capacity; })) {
    return failed(ACL_ERROR_RT_QUEUE_FULL, "EE1011", "%s failed: channel %s is %s.", __func__,
                  handle->name.c_str(), queue.stopped ? "stopped" : "full");
  }
  queue.waiting.push_back(std::move(sent));
  queue.changed.notify_all();
  return ACL_SUCCESS;
}
// The time-out of an empty channel is no error to report: clients poll with it.
ACLSIM_API aclError acltdtReceiveTensor(const acltdtChannelHandle* handle, acltdtDataset* dataset,
                                        int32_t timeout) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_REQUIRE(dataset);
  if (timeout < -1) return bad_value(__func__, "timeout", "below -1", "-1 or more");
  if (!dataset->items.empty() || !dataset->received.empty()) {
    return bad_value(__func__, "dataset", "with items", "an empty dataset");
  }
  Queue& queue = *handle->queue;
  std::unique_lock<std::mutex> lock(queue.mutex);
  if (!wait(queue, lock, timeout, [&] { return !queue.waiting.empty(); })) {
    return ACL_ERROR_RT_QUEUE_EMPTY;
  }
  for (acltdtDataItem& item : queue.waiting.front()) {
    dataset->received.push_back(std::make_unique<acltdtDataItem>(std::move(item)));
  }
  dataset->name = handle->name;
  queue.waiting.pop_front();
  queue.changed.notify_all();
  return ACL_SUCCESS;
}

ACLSIM_API acltdtDataset* acltdtCreateDataset() { return new acltdtDataset; }
ACLSIM_API aclError acltdtDestroyDataset(acltdtDataset* dataset) {
  ACLSIM_REQUIRE(dataset);
  delete dataset;
  return ACL_SUCCESS;
}
ACLSIM_API aclError acltdtAddDataItem(acltdtDataset* dataset, acltdtDataItem* dataItem) {
  ACLSIM_REQUIRE(dataset);
  ACLSIM_REQUIRE(dataItem);
  if (!dataset->received.empty()) {
    return failed(ACL_ERROR_FEATURE_UNSUPPORTED, "EH0001",
                  "%s failed: a received dataset takes no items.", __func__);
  }
  dataset->items.push_back(dataItem);
  return ACL_SUCCESS;
}
ACLSIM_API acltdtDataItem* acltdtGetDataItem(const acltdtDataset* dataset, size_t index) {
  if (!dataset) return nullptr;
  if (index < dataset->items.size()) return dataset->items[index];
  return index < dataset->received.size() ? dataset->received[index].get() : nullptr;
}
ACLSIM_API size_t acltdtGetDatasetSize(const acltdtDataset* dataset) {
  return dataset ? dataset->items.size() + dataset->received.size() : 0;
}
ACLSIM_API const char* acltdtGetDatasetName(const acltdtDataset* dataset) {
  return dataset ? dataset->name.c_str() : nullptr;
}

ACLSIM_API acltdtDataItem* acltdtCreateDataItem(acltdtTensorType tdtType, const int64_t* dims,
                                                size_t dimNum, aclDataType dataType, void* data,
                                                size_t size) {
  thread();
  bool tensor = tdtType == ACL_TENSOR_DATA_TENSOR || tdtType == ACL_TENSOR_DATA_SLICE_TENSOR ||
                tdtType == ACL_TENSOR_DATA_END_TENSOR;
  bool mark = tdtType == ACL_TENSOR_DATA_END_OF_SEQUENCE || tdtType == ACL_TENSOR_DATA_ABNORMAL;
  if ((!tensor && !mark) || (dimNum && !dims) || (size && !data)) {
    failed(ACL_ERROR_INVALID_PARAM, "EH0007",
           "%s failed: expected a tensor or an end, with dims and data where they are counted.",
           __func__);
    return nullptr;
  }
  return new acltdtDataItem{tdtType, std::vector<int64_t>(dims, dims + dimNum), dataType, data,
                            size, nullptr};
}
ACLSIM_API aclError acltdtDestroyDataItem(acltdtDataItem* dataItem) {
  ACLSIM_REQUIRE(dataItem);
  delete dataItem;
  return ACL_SUCCESS;
}
ACLSIM_API acltdtTensorType acltdtGetTensorTypeFromItem(const acltdtDataItem* dataItem) {
  return dataItem ? dataItem->type : ACL_TENSOR_DATA_UNDEFINED;
}
ACLSIM_API aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem* dataItem) {
  return dataItem ? dataItem->dtype : ACL_DT_UNDEFINED;
}
ACLSIM_API void* acltdtGetDataAddrFromItem(const acltdtDataItem* dataItem) {
  return dataItem ? dataItem->data : nullptr;
}
ACLSIM_API size_t acltdtGetDataSizeFromItem(const acltdtDataItem* dataItem) {
  return dataItem ? dataItem->size : 0;
}
ACLSIM_API size_t acltdtGetDimNumFromItem(const acltdtDataItem* dataItem) {
  return dataItem ? dataItem->dims.size() : 0;
}
ACLSIM_API aclError acltdtGetDimsFromItem(const acltdtDataItem* dataItem, int64_t* dims,
                                          size_t dimNum) {
  ACLSIM_REQUIRE(dataItem);
  if (dimNum < dataItem->dims.size()) {
    return bad_value(__func__, "dimNum", "too small", "the item's number of dims or more");
  }
  if (!dataItem->dims.empty()) ACLSIM_REQUIRE(dims);
  for (size_t i = 0; i < dataItem->dims.size(); ++i) dims[i] = dataItem->dims[i];
  return ACL_SUCCESS;
}
