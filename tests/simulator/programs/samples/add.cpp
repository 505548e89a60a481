// prints: 3 5 7 9
#include <aclnnop/aclnn_add.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> self({1, 2, 3, 4}, {2, 2}, ACL_FLOAT);
  DeviceTensor<float> other({1, 1.5f, 2, 2.5f}, {2, 2}, ACL_FLOAT);
  DeviceTensor<float> out({0, 0, 0, 0}, {2, 2}, ACL_FLOAT);
  float two = 2;
  aclScalar *alpha = aclCreateScalar(&two, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnAddGetWorkspaceSize(self.handle, other.handle, alpha, out.handle, &size,
                                      &executor));
  run(aclnnAdd, size, executor, session.stream);
  out.print();
  OK_OR_EXIT(aclDestroyScalar(alpha));
}
