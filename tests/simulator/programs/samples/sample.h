// The parts that every ACLNN program repeats: check a code, put host values on the device, take
// them back, run both phases. C++11.
#pragma once

#include <acl/acl.h>
#include <aclnn/aclnn_base.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define OK_OR_EXIT(call)                                                  \
  do {                                                                    \
    int code = (call);                                                    \
    if (code != ACL_SUCCESS) {                                            \
      const char *why = aclGetRecentErrMsg();                             \
      std::printf("%s -> %d\n%s\n", #call, code, why ? why : "");         \
      std::exit(1);                                                       \
    }                                                                     \
  } while (0)

struct Session {
  aclrtStream stream;
  Session() : stream(nullptr) {
    OK_OR_EXIT(aclInit(nullptr));
    OK_OR_EXIT(aclrtSetDevice(0));
    OK_OR_EXIT(aclrtCreateStream(&stream));
  }
  ~Session() {
    OK_OR_EXIT(aclrtDestroyStream(stream));
    OK_OR_EXIT(aclrtResetDevice(0));
    OK_OR_EXIT(aclFinalize());
  }
};

inline int64_t count_of(const std::vector<int64_t> &shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

// Device memory with the host's values, and a contiguous tensor over it.
template <class T>
struct DeviceTensor {
  std::vector<int64_t> shape;
  size_t bytes;
  void *data;
  aclTensor *handle;
  DeviceTensor(const std::vector<T> &host, const std::vector<int64_t> &dims, aclDataType dtype,
               bool own_handle = true)
      : shape(dims), bytes(count_of(dims) * sizeof(T)), data(nullptr), handle(nullptr),
        own_handle_(own_handle) {
    OK_OR_EXIT(aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    OK_OR_EXIT(aclrtMemcpy(data, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    std::vector<int64_t> strides(shape.size(), 1);
    for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i) {
      strides[i] = shape[i + 1] * strides[i + 1];
    }
    handle = aclCreateTensor(shape.data(), shape.size(), dtype, strides.data(), 0, ACL_FORMAT_ND,
                             shape.data(), shape.size(), data);
  }
  ~DeviceTensor() {
    if (own_handle_) OK_OR_EXIT(aclDestroyTensor(handle));  // a list destroys its members itself
    OK_OR_EXIT(aclrtFree(data));
  }
  std::vector<T> values() const {
    std::vector<T> host(bytes / sizeof(T));
    OK_OR_EXIT(aclrtMemcpy(host.data(), bytes, data, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    return host;
  }
  void print() const {
    for (T value : values()) std::printf("%g ", static_cast<double>(value));
    std::printf("\n");
  }

 private:
  bool own_handle_;
  DeviceTensor(const DeviceTensor &);
};

typedef aclnnStatus (*SecondPhase)(void *, uint64_t, aclOpExecutor *, aclrtStream);

// Workspace, second phase, synchronisation.
inline void run(SecondPhase op, uint64_t size, aclOpExecutor *executor, aclrtStream stream) {
  void *workspace = nullptr;
  if (size > 0) OK_OR_EXIT(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
  OK_OR_EXIT(op(workspace, size, executor, stream));
  OK_OR_EXIT(aclrtSynchronizeStream(stream));
  if (workspace) OK_OR_EXIT(aclrtFree(workspace));
}

struct Scalar {
  aclScalar *handle;
  explicit Scalar(float value) : handle(aclCreateScalar(&value, ACL_FLOAT)) {}
  ~Scalar() { OK_OR_EXIT(aclDestroyScalar(handle)); }

 private:
  Scalar(const Scalar &);
};

// Launches one after the other without waiting; workspaces live until the stream has run.
class Queue {
 public:
  explicit Queue(aclrtStream stream) : stream_(stream) {}
  void launch(SecondPhase op, uint64_t size, aclOpExecutor *executor) {
    void *workspace = nullptr;
    if (size > 0) OK_OR_EXIT(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
    if (workspace) workspaces_.push_back(workspace);
    OK_OR_EXIT(op(workspace, size, executor, stream_));
  }
  void wait() {
    OK_OR_EXIT(aclrtSynchronizeStream(stream_));
    for (void *workspace : workspaces_) OK_OR_EXIT(aclrtFree(workspace));
    workspaces_.clear();
  }
  ~Queue() { wait(); }

 private:
  aclrtStream stream_;
  std::vector<void *> workspaces_;
  Queue(const Queue &);
};
