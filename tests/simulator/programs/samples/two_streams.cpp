// prints: 4 8
// A producer stream and a consumer stream, ordered by an event; the host waits once.
#include <aclnnop/aclnn_add.h>

#include "sample.h"

int main() {
  Session session;
  aclrtStream consumer = nullptr;
  aclrtEvent produced = nullptr;
  OK_OR_EXIT(aclrtCreateStream(&consumer));
  OK_OR_EXIT(aclrtCreateEvent(&produced));
  {
    DeviceTensor<float> a({1, 2}, {2}, ACL_FLOAT), b({0, 0}, {2}, ACL_FLOAT);
    DeviceTensor<float> c({0, 0}, {2}, ACL_FLOAT);
    float one = 1;
    aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
    uint64_t size = 0;
    aclOpExecutor *first = nullptr, *second = nullptr;
    OK_OR_EXIT(aclnnAddGetWorkspaceSize(a.handle, a.handle, alpha, b.handle, &size, &first));
    OK_OR_EXIT(aclnnAdd(nullptr, size, first, session.stream));
    OK_OR_EXIT(aclrtRecordEvent(produced, session.stream));
    OK_OR_EXIT(aclrtStreamWaitEvent(consumer, produced));
    OK_OR_EXIT(aclnnAddGetWorkspaceSize(b.handle, b.handle, alpha, c.handle, &size, &second));
    OK_OR_EXIT(aclnnAdd(nullptr, size, second, consumer));
    OK_OR_EXIT(aclrtSynchronizeStream(consumer));
    c.print();
    OK_OR_EXIT(aclDestroyScalar(alpha));
  }
  OK_OR_EXIT(aclrtDestroyEvent(produced));
  OK_OR_EXIT(aclrtDestroyStream(consumer));
}
