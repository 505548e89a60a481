// prints: 161002 out
// What a refusal looks like: the output's shape is not the broadcast shape.
#include <aclnnop/aclnn_add.h>

#include <cstring>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> self({1, 2, 3, 4}, {2, 2}, ACL_FLOAT);
  DeviceTensor<float> out({0, 0, 0}, {3}, ACL_FLOAT);
  float one = 1;
  aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  int code = aclnnAddGetWorkspaceSize(self.handle, self.handle, alpha, out.handle, &size,
                                       &executor);
  const char *why = aclGetRecentErrMsg();
  bool named = why && std::strstr(why, "[2,2]") && std::strstr(why, "[3]") && !executor;
  std::printf("%d %s", code, named ? "out" : why);
  OK_OR_EXIT(aclDestroyScalar(alpha));
}
