// prints: 1 2 5 3 4 6
#include <aclnnop/aclnn_cat.h>

#include "sample.h"

int main() {
  Session session;
  // The list owns its members: it is what gets destroyed.
  DeviceTensor<float> a({1, 2, 3, 4}, {2, 2}, ACL_FLOAT, false);
  DeviceTensor<float> b({5, 6}, {2, 1}, ACL_FLOAT, false);
  DeviceTensor<float> out({0, 0, 0, 0, 0, 0}, {2, 3}, ACL_FLOAT);
  const aclTensor *members[] = {a.handle, b.handle};
  aclTensorList *list = aclCreateTensorList(members, 2);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnCatGetWorkspaceSize(list, 1, out.handle, &size, &executor));
  run(aclnnCat, size, executor, session.stream);
  out.print();
  OK_OR_EXIT(aclDestroyTensorList(list));
}
