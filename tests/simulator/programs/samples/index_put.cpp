// prints: 0 10 0 40 0
#include <aclnnop/aclnn_index_put_impl.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> self({0, 0, 0, 0, 0}, {5}, ACL_FLOAT);
  DeviceTensor<int64_t> index({1, 3, 3}, {3}, ACL_INT64, false);
  DeviceTensor<float> values({10, 15, 25}, {3}, ACL_FLOAT);
  const aclTensor *members[] = {index.handle};
  aclTensorList *indices = aclCreateTensorList(members, 1);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnIndexPutImplGetWorkspaceSize(self.handle, indices, values.handle, true, false,
                                               &size, &executor));
  run(aclnnIndexPutImpl, size, executor, session.stream);
  self.print();
  OK_OR_EXIT(aclDestroyTensorList(indices));
}
