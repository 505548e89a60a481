// prints: 58 64 139 154
#include <aclnnop/aclnn_matmul.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> a({1, 2, 3, 4, 5, 6}, {2, 3}, ACL_FLOAT);
  DeviceTensor<float> b({7, 8, 9, 10, 11, 12}, {3, 2}, ACL_FLOAT);
  DeviceTensor<float> out({0, 0, 0, 0}, {2, 2}, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnMatmulGetWorkspaceSize(a.handle, b.handle, out.handle, 1, &size, &executor));
  run(aclnnMatmul, size, executor, session.stream);
  out.print();
}
