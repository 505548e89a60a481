// What the test programs share: one device, one stream, and tensors of floats on the device.
#pragma once

#include <acl/acl.h>
#include <aclnn/opdev/op_errno.h>
#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_addcmul.h>
#include <aclnnop/aclnn_softmax.h>
#include <aclnnop/aclnn_cat.h>
#include <aclsim/aclsim.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define MUST(call)                                                            \
  do {                                                                        \
    int code_ = (call);                                                       \
    if (code_ != 0) {                                                         \
      const char* text_ = aclGetRecentErrMsg();                               \
      printf("%s:%d %s -> %d %s\n", __FILE__, __LINE__, #call, code_, text_ ? text_ : ""); \
      exit(2);                                                                \
    }                                                                         \
  } while (0)
#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      printf("%s:%d not so: %s\n", __FILE__, __LINE__, #condition);   \
      exit(3);                                                        \
    }                                                                 \
  } while (0)

struct Kit {
  aclrtStream stream = nullptr;
  Kit() {
    MUST(aclInit(nullptr));
    MUST(aclrtSetDevice(0));
    MUST(aclrtCreateStream(&stream));
  }
  void end() {
    MUST(aclrtDestroyStream(stream));
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
  }
  static void* device(size_t bytes) {
    void* at = nullptr;
    MUST(aclrtMalloc(&at, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return at;
  }
  static void* floats(const std::vector<float>& values) {
    void* at = device(values.size() * 4);
    MUST(aclrtMemcpy(at, values.size() * 4, values.data(), values.size() * 4,
                     ACL_MEMCPY_HOST_TO_DEVICE));
    return at;
  }
  static std::vector<float> back(void* at, size_t count) {
    std::vector<float> values(count);
    MUST(aclrtMemcpy(values.data(), count * 4, at, count * 4, ACL_MEMCPY_DEVICE_TO_HOST));
    return values;
  }
  // A contiguous tensor over `at`.
  static aclTensor* tensor(void* at, std::vector<int64_t> dims, aclDataType dtype = ACL_FLOAT) {
    return aclCreateTensor(dims.data(), dims.size(), dtype, nullptr, 0, ACL_FORMAT_ND, dims.data(),
                           dims.size(), at);
  }
  static aclScalar* scalar(float value) { return aclCreateScalar(&value, ACL_FLOAT); }
};

// a + 1 * b into out, planned.
struct Addition {
  void *a, *b, *out;
  aclTensor *self, *other, *result;
  aclScalar* alpha;
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  explicit Addition(int64_t n = 8)
      : a(Kit::device(n * 4)), b(Kit::device(n * 4)), out(Kit::device(n * 4)),
        self(Kit::tensor(a, {n})), other(Kit::tensor(b, {n})), result(Kit::tensor(out, {n})),
        alpha(Kit::scalar(1)) {}
  int plan() { return aclnnAddGetWorkspaceSize(self, other, alpha, result, &workspace, &executor); }
  int run(aclrtStream stream) { return aclnnAdd(nullptr, workspace, executor, stream); }
  void destroy_handles() {
    MUST(aclDestroyTensor(self));
    MUST(aclDestroyTensor(other));
    MUST(aclDestroyTensor(result));
    MUST(aclDestroyScalar(alpha));
  }
  void free_memory() {
    MUST(aclrtFree(a));
    MUST(aclrtFree(b));
    MUST(aclrtFree(out));
  }
};
