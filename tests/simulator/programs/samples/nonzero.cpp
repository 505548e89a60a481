// prints: [2,1] 1 3
// How much an operator found is known only when it ran: the output's view shape tells.
#include <aclnnop/aclnn_nonzero.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> self({0, 5, 0, 7}, {4}, ACL_FLOAT);
  DeviceTensor<int64_t> out(std::vector<int64_t>(4), {4, 1}, ACL_INT64);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnNonzeroGetWorkspaceSize(self.handle, out.handle, &size, &executor));
  run(aclnnNonzero, size, executor, session.stream);
  int64_t *found = nullptr;
  uint64_t rank = 0;
  OK_OR_EXIT(aclGetViewShape(out.handle, &found, &rank));
  std::printf("[%d,%d] ", static_cast<int>(found[0]), static_cast<int>(found[1]));
  std::vector<int64_t> values = out.values();
  for (int64_t i = 0; i < found[0]; ++i) std::printf("%d ", static_cast<int>(values[i]));
  delete[] found;  // aclGetViewShape's document: the caller's to delete
}
