// prints: 1 4 9
// Squares on device 1, from values that device 0 holds: memory goes from one device to the other.
#include <aclnnop/aclnn_mul.h>

#include "sample.h"

int main() {
  Session session;
  {
    DeviceTensor<float> here({1, 2, 3}, {3}, ACL_FLOAT);
    int32_t reachable = 0;
    OK_OR_EXIT(aclrtDeviceCanAccessPeer(&reachable, 1, 0));
    OK_OR_EXIT(aclrtSetDevice(1));
    if (reachable) OK_OR_EXIT(aclrtDeviceEnablePeerAccess(0, 0));
    aclrtStream stream = nullptr;
    OK_OR_EXIT(aclrtCreateStream(&stream));
    {
      DeviceTensor<float> there(std::vector<float>(3), {3}, ACL_FLOAT);
      OK_OR_EXIT(aclrtMemcpy(there.data, there.bytes, here.data, here.bytes,
                             ACL_MEMCPY_DEVICE_TO_DEVICE));
      uint64_t size = 0;
      aclOpExecutor *executor = nullptr;
      OK_OR_EXIT(aclnnInplaceMulGetWorkspaceSize(there.handle, there.handle, &size, &executor));
      run(aclnnInplaceMul, size, executor, stream);
      there.print();
    }
    OK_OR_EXIT(aclrtDestroyStream(stream));
    OK_OR_EXIT(aclrtResetDevice(1));
    OK_OR_EXIT(aclrtSetDevice(0));
  }
}
