// prints: 5 4 3 2 1 0
// Pinned memory, asynchronous copies both ways, arange and flip between them, one wait.
#include <aclnnop/aclnn_arange.h>
#include <aclnnop/aclnn_flip.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> numbers(std::vector<float>(6), {6}, ACL_FLOAT);
  DeviceTensor<float> turned(std::vector<float>(6), {6}, ACL_FLOAT);
  float *host = nullptr;
  OK_OR_EXIT(aclrtMallocHost(reinterpret_cast<void **>(&host), 24));
  float from = 0, to = 6, by = 1;
  aclScalar *start = aclCreateScalar(&from, ACL_FLOAT), *end = aclCreateScalar(&to, ACL_FLOAT);
  aclScalar *step = aclCreateScalar(&by, ACL_FLOAT);
  int64_t axis = 0;
  aclIntArray *dims = aclCreateIntArray(&axis, 1);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnArangeGetWorkspaceSize(start, end, step, numbers.handle, &size, &executor));
  OK_OR_EXIT(aclnnArange(nullptr, size, executor, session.stream));
  OK_OR_EXIT(aclnnFlipGetWorkspaceSize(numbers.handle, dims, turned.handle, &size, &executor));
  OK_OR_EXIT(aclnnFlip(nullptr, size, executor, session.stream));
  OK_OR_EXIT(aclrtMemcpyAsync(host, 24, turned.data, 24, ACL_MEMCPY_DEVICE_TO_HOST,
                              session.stream));
  OK_OR_EXIT(aclrtSynchronizeStream(session.stream));
  for (int i = 0; i < 6; ++i) std::printf("%g ", host[i]);
  OK_OR_EXIT(aclrtFreeHost(host));
  OK_OR_EXIT(aclDestroyScalar(start));
  OK_OR_EXIT(aclDestroyScalar(end));
  OK_OR_EXIT(aclDestroyScalar(step));
  OK_OR_EXIT(aclDestroyIntArray(dims));
}
