// prints: 1 -1 3 -1 | 0 1
// A comparison makes a mask, the mask keeps values from being filled; rows ask for any of it.
#include <aclnnop/aclnn_any.h>
#include <aclnnop/aclnn_gt_scalar.h>
#include <aclnnop/aclnn_masked_fill_scalar.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> x({1, 5, 3, 7}, {4}, ACL_FLOAT), table({1, 3, 5, 0}, {2, 2}, ACL_FLOAT);
  DeviceTensor<uint8_t> mask({0, 0, 0, 0}, {4}, ACL_BOOL), above({0, 0, 0, 0}, {2, 2}, ACL_BOOL);
  DeviceTensor<uint8_t> rows({0, 0}, {2}, ACL_BOOL);
  Scalar four(4), minus_one(-1);
  const int64_t last = 1;
  aclIntArray *dims = aclCreateIntArray(&last, 1);
  Queue queue(session.stream);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnGtScalarGetWorkspaceSize(x.handle, four.handle, mask.handle, &size, &executor));
  queue.launch(aclnnGtScalar, size, executor);
  OK_OR_EXIT(aclnnInplaceMaskedFillScalarGetWorkspaceSize(x.handle, mask.handle, minus_one.handle,
                                                          &size, &executor));
  queue.launch(aclnnInplaceMaskedFillScalar, size, executor);
  OK_OR_EXIT(aclnnGtScalarGetWorkspaceSize(table.handle, four.handle, above.handle, &size,
                                           &executor));
  queue.launch(aclnnGtScalar, size, executor);
  OK_OR_EXIT(aclnnAnyGetWorkspaceSize(above.handle, dims, false, rows.handle, &size, &executor));
  queue.launch(aclnnAny, size, executor);
  queue.wait();
  x.print();
  std::printf("| ");
  rows.print();
  OK_OR_EXIT(aclDestroyIntArray(dims));
}
