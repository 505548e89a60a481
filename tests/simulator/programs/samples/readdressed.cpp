// prints: -1 -2 -3 -4
// One plan over two batches: between runs the executor is pointed at other memory.
#include <aclnnop/aclnn_neg.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> a({1, 2}, {2}, ACL_FLOAT), b({3, 4}, {2}, ACL_FLOAT);
  DeviceTensor<float> first({0, 0}, {2}, ACL_FLOAT), second({0, 0}, {2}, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnNegGetWorkspaceSize(a.handle, first.handle, &size, &executor));
  OK_OR_EXIT(aclSetAclOpExecutorRepeatable(executor));
  OK_OR_EXIT(aclnnNeg(nullptr, size, executor, session.stream));
  OK_OR_EXIT(aclSetInputTensorAddr(executor, 0, a.handle, b.data));
  OK_OR_EXIT(aclSetOutputTensorAddr(executor, 0, first.handle, second.data));
  OK_OR_EXIT(aclnnNeg(nullptr, size, executor, session.stream));
  OK_OR_EXIT(aclrtSynchronizeStream(session.stream));
  OK_OR_EXIT(aclDestroyAclOpExecutor(executor));
  first.print();
  second.print();
}
