// prints: 2 4 8 16 32
// One plan, many runs: x = x + x, the executor made repeatable.
#include <aclnnop/aclnn_add.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> x({1}, {1}, ACL_FLOAT);
  float one = 1;
  aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnInplaceAddGetWorkspaceSize(x.handle, x.handle, alpha, &size, &executor));
  OK_OR_EXIT(aclSetAclOpExecutorRepeatable(executor));
  for (int i = 0; i < 5; ++i) {
    OK_OR_EXIT(aclnnInplaceAdd(nullptr, size, executor, session.stream));
    OK_OR_EXIT(aclrtSynchronizeStream(session.stream));
    std::printf("%g ", x.values()[0]);
  }
  OK_OR_EXIT(aclDestroyAclOpExecutor(executor));
  OK_OR_EXIT(aclDestroyScalar(alpha));
}
