// prints: 1 3 6 10
// Planned on one thread and launched from another, which takes over the context.
#include <aclnnop/aclnn_cumsum.h>

#include <thread>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> self({1, 2, 3, 4}, {4}, ACL_FLOAT), out({0, 0, 0, 0}, {4}, ACL_FLOAT);
  aclrtContext context = nullptr;
  OK_OR_EXIT(aclrtGetCurrentContext(&context));
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnCumsumGetWorkspaceSize(self.handle, 0, ACL_FLOAT, out.handle, &size, &executor));
  std::thread worker([&] {
    OK_OR_EXIT(aclrtSetCurrentContext(context));
    run(aclnnCumsum, size, executor, session.stream);
  });
  worker.join();
  out.print();
}
