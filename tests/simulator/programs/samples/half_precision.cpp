// prints: 1.5 -2 65504
#include <aclnnop/aclnn_cast.h>

#include "sample.h"

int main() {
  Session session;
  std::vector<aclFloat16> halves;
  for (float value : {1.5f, -2.0f, 65504.0f}) halves.push_back(aclFloatToFloat16(value));
  DeviceTensor<aclFloat16> self(halves, {3}, ACL_FLOAT16);
  DeviceTensor<float> out({0, 0, 0}, {3}, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnCastGetWorkspaceSize(self.handle, ACL_FLOAT, out.handle, &size, &executor));
  run(aclnnCast, size, executor, session.stream);
  out.print();
}
