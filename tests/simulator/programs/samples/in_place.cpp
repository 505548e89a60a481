// prints: 1 0 3 0 50 0
// One column of a matrix is scaled through a view of its storage, then the whole is clipped.
#include <aclnnop/aclnn_mul.h>
#include <aclnnop/aclnn_relu.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> matrix({1, -2, 3, -4, 5, -6}, {2, 3}, ACL_FLOAT);
  const int64_t shape[] = {2}, strides[] = {3}, held[] = {6}, offset = 1;
  aclTensor *column = aclCreateTensor(shape, 1, ACL_FLOAT, strides, offset, ACL_FORMAT_ND, held, 1,
                                      matrix.data);
  Scalar ten(10);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnInplaceMulsGetWorkspaceSize(column, ten.handle, &size, &executor));
  run(aclnnInplaceMuls, size, executor, session.stream);
  OK_OR_EXIT(aclnnInplaceReluGetWorkspaceSize(matrix.handle, &size, &executor));
  run(aclnnInplaceRelu, size, executor, session.stream);
  matrix.print();
  OK_OR_EXIT(aclDestroyTensor(column));
}
