// prints: 53
// Two layers, relu(x * w1 + b) * w2, queued at once and waited for once.
#include <aclnnop/aclnn_addmm.h>
#include <aclnnop/aclnn_matmul.h>
#include <aclnnop/aclnn_relu.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> x({1, 2}, {1, 2}, ACL_FLOAT), bias({-2, 0, 1}, {3}, ACL_FLOAT);
  DeviceTensor<float> w1({1, -1, 0, 0, 1, 2}, {2, 3}, ACL_FLOAT), w2({7, 8, 9}, {3, 1}, ACL_FLOAT);
  DeviceTensor<float> hidden({0, 0, 0}, {1, 3}, ACL_FLOAT), out({0}, {1, 1}, ACL_FLOAT);
  Scalar one(1);
  Queue queue(session.stream);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnAddmmGetWorkspaceSize(bias.handle, x.handle, w1.handle, one.handle, one.handle,
                                        hidden.handle, 0, &size, &executor));
  queue.launch(aclnnAddmm, size, executor);
  OK_OR_EXIT(aclnnInplaceReluGetWorkspaceSize(hidden.handle, &size, &executor));
  queue.launch(aclnnInplaceRelu, size, executor);
  OK_OR_EXIT(aclnnMatmulGetWorkspaceSize(hidden.handle, w2.handle, out.handle, 0, &size,
                                         &executor));
  queue.launch(aclnnMatmul, size, executor);
  queue.wait();
  out.print();
}
