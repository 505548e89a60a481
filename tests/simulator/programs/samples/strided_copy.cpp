// prints: 1 4 2 5 3 6
#include <aclnnop/aclnn_copy.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> storage({1, 2, 3, 4, 5, 6}, {2, 3}, ACL_FLOAT);
  DeviceTensor<float> out({0, 0, 0, 0, 0, 0}, {3, 2}, ACL_FLOAT);
  // The same storage seen transposed.
  int64_t shape[] = {3, 2}, strides[] = {1, 3}, held[] = {6};
  aclTensor *transposed = aclCreateTensor(shape, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, held, 1,
                                          storage.data);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnInplaceCopyGetWorkspaceSize(out.handle, transposed, &size, &executor));
  run(aclnnInplaceCopy, size, executor, session.stream);
  out.print();
  OK_OR_EXIT(aclDestroyTensor(transposed));
}
