// prints: 2 4 main 1
// A host function that waits its turn in the stream; then a callback run by a thread that asks.
#include <aclnnop/aclnn_add.h>

#include <pthread.h>

#include "sample.h"

static void tell(void *pinned) { std::printf("%g ", *static_cast<float *>(pinned)); }

static pthread_t teller;
static void remember(void *) { teller = pthread_self(); }

int main() {
  Session session;
  DeviceTensor<float> x({1}, {1}, ACL_FLOAT);
  Scalar one(1);
  float *pinned = nullptr;
  OK_OR_EXIT(aclrtMallocHost(reinterpret_cast<void **>(&pinned), sizeof(float)));
  for (int i = 0; i < 2; ++i) {
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    OK_OR_EXIT(aclnnInplaceAddGetWorkspaceSize(x.handle, x.handle, one.handle, &size, &executor));
    OK_OR_EXIT(aclnnInplaceAdd(nullptr, size, executor, session.stream));
    OK_OR_EXIT(aclrtMemcpyAsync(pinned, sizeof(float), x.data, sizeof(float),
                                ACL_MEMCPY_DEVICE_TO_HOST, session.stream));
    OK_OR_EXIT(aclrtLaunchHostFunc(session.stream, tell, pinned));
  }
  OK_OR_EXIT(aclrtSynchronizeStream(session.stream));

  aclrtStream other = nullptr;
  OK_OR_EXIT(aclrtCreateStream(&other));
  OK_OR_EXIT(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), other));
  OK_OR_EXIT(aclrtLaunchCallback(remember, nullptr, ACL_CALLBACK_BLOCK, other));
  OK_OR_EXIT(aclrtProcessReport(5000));
  OK_OR_EXIT(aclrtSynchronizeStream(other));
  std::printf("main %d", pthread_equal(teller, pthread_self()) != 0);
  OK_OR_EXIT(aclrtUnSubscribeReport(static_cast<uint64_t>(pthread_self()), other));
  OK_OR_EXIT(aclrtDestroyStream(other));
  OK_OR_EXIT(aclrtFreeHost(pinned));
}
