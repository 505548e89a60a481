// prints: same other within
// Random numbers are a function of seed and offset.
#include <aclnnop/aclnn_uniform.h>

#include "sample.h"

static std::vector<float> draw(aclrtStream stream, uint64_t seed, uint64_t offset) {
  DeviceTensor<float> out(std::vector<float>(1000), {1000}, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnInplaceUniformGetWorkspaceSize(out.handle, 2, 3, seed, offset, &size, &executor));
  run(aclnnInplaceUniform, size, executor, stream);
  return out.values();
}

int main() {
  Session session;
  std::vector<float> first = draw(session.stream, 7, 0);
  std::printf("%s ", first == draw(session.stream, 7, 0) ? "same" : "differs");
  std::printf("%s ", first == draw(session.stream, 7, 1000) ? "same" : "other");
  bool within = true;
  for (float value : first) within = within && value >= 2 && value <= 3;
  std::printf("%s", within ? "within" : "outside");
}
