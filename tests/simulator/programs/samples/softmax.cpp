// prints: 0.25 0.75 0.75 0.25
#include <aclnnop/aclnn_softmax.h>

#include <cmath>

#include "sample.h"

int main() {
  Session session;
  float three = std::log(3.0f);
  DeviceTensor<float> self({0, three, three, 0}, {2, 2}, ACL_FLOAT);
  DeviceTensor<float> out({0, 0, 0, 0}, {2, 2}, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnSoftmaxGetWorkspaceSize(self.handle, 1, out.handle, &size, &executor));
  run(aclnnSoftmax, size, executor, session.stream);
  out.print();
}
