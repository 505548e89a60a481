// prints: 9 7 4 | 2 4 1
#include <aclnnop/aclnn_topk.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> self({1, 4, 9, 2, 7}, {5}, ACL_FLOAT);
  DeviceTensor<float> values({0, 0, 0}, {3}, ACL_FLOAT);
  DeviceTensor<int64_t> indices({0, 0, 0}, {3}, ACL_INT64);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnTopkGetWorkspaceSize(self.handle, 3, 0, true, true, values.handle, indices.handle,
                                       &size, &executor));
  run(aclnnTopk, size, executor, session.stream);
  for (float v : values.values()) std::printf("%g ", v);
  std::printf("| ");
  for (int64_t i : indices.values()) std::printf("%lld ", static_cast<long long>(i));
}
