// prints: 507015 7 30 10
// An index past the end fails on the device, and the host hears of it when it waits; after a reset
// of the device the work is done again.
#include <aclnnop/aclnn_index_select.h>

#include <cstring>

#include "sample.h"

static int pick(aclrtStream stream, const std::vector<int64_t> &wanted, bool print) {
  DeviceTensor<float> from({10, 20, 30}, {3}, ACL_FLOAT), out({0, 0}, {2}, ACL_FLOAT);
  DeviceTensor<int64_t> index(wanted, {2}, ACL_INT64);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnIndexSelectGetWorkspaceSize(from.handle, 0, index.handle, out.handle, &size,
                                              &executor));
  void *workspace = nullptr;
  if (size > 0) OK_OR_EXIT(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
  OK_OR_EXIT(aclnnIndexSelect(workspace, size, executor, stream));
  int code = aclrtSynchronizeStream(stream);
  if (workspace) OK_OR_EXIT(aclrtFree(workspace));
  if (print) out.print();
  return code;
}

int main() {
  aclrtStream stream = nullptr;
  OK_OR_EXIT(aclInit(nullptr));
  OK_OR_EXIT(aclrtSetDevice(0));
  OK_OR_EXIT(aclrtCreateStream(&stream));
  int code = pick(stream, {2, 7}, false);
  const char *why = aclGetRecentErrMsg();
  std::printf("%d %s ", code, why && std::strstr(why, " 7 ") ? "7" : why);
  OK_OR_EXIT(aclrtDestroyStreamForce(stream));
  OK_OR_EXIT(aclrtResetDeviceForce(0));
  OK_OR_EXIT(aclrtSetDevice(0));
  OK_OR_EXIT(aclrtCreateStream(&stream));
  OK_OR_EXIT(pick(stream, {2, 0}, true));
  OK_OR_EXIT(aclrtDestroyStream(stream));
  OK_OR_EXIT(aclrtResetDevice(0));
  OK_OR_EXIT(aclFinalize());
}
