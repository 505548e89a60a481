// prints: -1 3 1 1
// Optional outputs are null; the second row has no spread, so only the bias stays.
#include <aclnnop/aclnn_layer_norm.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> x({1, 3, 5, 5}, {2, 2}, ACL_FLOAT), out({0, 0, 0, 0}, {2, 2}, ACL_FLOAT);
  DeviceTensor<float> weight({2, 2}, {2}, ACL_FLOAT), bias({1, 1}, {2}, ACL_FLOAT);
  const int64_t axes[] = {2};
  aclIntArray *normalized = aclCreateIntArray(axes, 1);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnLayerNormGetWorkspaceSize(x.handle, normalized, weight.handle, bias.handle, 1e-12,
                                            out.handle, nullptr, nullptr, &size, &executor));
  run(aclnnLayerNorm, size, executor, session.stream);
  out.print();
  OK_OR_EXIT(aclDestroyIntArray(normalized));
}
