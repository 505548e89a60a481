// prints: 0.5 1.5 10
// A step of gradient descent over a list of parameters: each of them minus half its gradient.
#include <aclnnop/aclnn_foreach_add_list.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> p1({1, 2}, {2}, ACL_FLOAT, false), p2({8}, {1, 1}, ACL_FLOAT, false);
  DeviceTensor<float> g1({1, 1}, {2}, ACL_FLOAT, false), g2({-4}, {1, 1}, ACL_FLOAT, false);
  DeviceTensor<float> rate({-0.5f}, {1}, ACL_FLOAT);
  const aclTensor *parameters[] = {p1.handle, p2.handle}, *gradients[] = {g1.handle, g2.handle};
  aclTensorList *params = aclCreateTensorList(parameters, 2);
  aclTensorList *grads = aclCreateTensorList(gradients, 2);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnForeachAddListGetWorkspaceSize(params, grads, rate.handle, params, &size,
                                                 &executor));
  run(aclnnForeachAddList, size, executor, session.stream);
  p1.print();
  p2.print();
  OK_OR_EXIT(aclDestroyTensorList(params));
  OK_OR_EXIT(aclDestroyTensorList(grads));
}
