// prints: 6 15
#include <aclnnop/aclnn_reduce_sum.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> self({1, 2, 3, 4, 5, 6}, {2, 3}, ACL_FLOAT);
  DeviceTensor<float> out({0, 0}, {2}, ACL_FLOAT);
  int64_t axes[] = {-1};
  aclIntArray *dims = aclCreateIntArray(axes, 1);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnReduceSumGetWorkspaceSize(self.handle, dims, false, ACL_FLOAT, out.handle, &size,
                                            &executor));
  run(aclnnReduceSum, size, executor, session.stream);
  out.print();
  OK_OR_EXIT(aclDestroyIntArray(dims));
}
