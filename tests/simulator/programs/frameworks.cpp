// What frameworks ask for beside kernels: data channels, allocators, float modes; a part per run.
#include <acl/acl_rt_allocator.h>
#include <acl/acl_tdt.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "kit.h"

// Frameworks choose the mode before they take a device.
static void float_modes() {
  aclrtFloatOverflowMode mode;
  MUST(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
  MUST(aclrtGetDeviceSatMode(&mode));
  CHECK(mode == ACL_RT_OVERFLOW_MODE_INFNAN);
  CHECK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF) != ACL_SUCCESS);
  Kit kit;
  MUST(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
  MUST(aclrtGetDeviceSatMode(&mode));
  CHECK(mode == ACL_RT_OVERFLOW_MODE_SATURATION);
  kit.end();
}

static void channels() {
  Kit kit;
  acltdtChannelHandle* out = acltdtCreateChannelWithCapacity(0, "numbers", 2);
  acltdtChannelHandle* in = acltdtCreateChannel(0, "numbers");
  CHECK(out && in);
  CHECK(!acltdtCreateChannel(0, nullptr) && !acltdtCreateChannel(99, "numbers"));
  float values[6] = {1, 2, 3, 4, 5, 6};
  int64_t dims[2] = {2, 3};
  acltdtDataItem* item = acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 2, ACL_FLOAT, values,
                                              sizeof values);
  acltdtDataset* sent = acltdtCreateDataset();
  MUST(acltdtAddDataItem(sent, item));
  MUST(acltdtSendTensor(out, sent, 0));
  MUST(acltdtSendTensor(out, sent, 0));
  CHECK(acltdtSendTensor(out, sent, 0) == ACL_ERROR_RT_QUEUE_FULL);
  values[0] = 99;  // a channel holds copies
  size_t size = 0;
  MUST(acltdtQueryChannelSize(in, &size));
  CHECK(size == 2);

  acltdtDataset* received = acltdtCreateDataset();
  MUST(acltdtReceiveTensor(in, received, -1));
  CHECK(std::string(acltdtGetDatasetName(received)) == "numbers");
  CHECK(acltdtGetDatasetSize(received) == 1 && !acltdtGetDataItem(received, 1));
  acltdtDataItem* got = acltdtGetDataItem(received, 0);
  CHECK(acltdtGetTensorTypeFromItem(got) == ACL_TENSOR_DATA_TENSOR);
  CHECK(acltdtGetDataTypeFromItem(got) == ACL_FLOAT);
  CHECK(acltdtGetDataSizeFromItem(got) == sizeof values && acltdtGetDimNumFromItem(got) == 2);
  int64_t shape[2];
  CHECK(acltdtGetDimsFromItem(got, shape, 1) != ACL_SUCCESS);
  MUST(acltdtGetDimsFromItem(got, shape, 2));
  CHECK(shape[0] == 2 && shape[1] == 3);
  CHECK(static_cast<float*>(acltdtGetDataAddrFromItem(got))[0] == 1);
  CHECK(acltdtReceiveTensor(in, received, 0) != ACL_SUCCESS);  // takes an empty dataset
  MUST(acltdtDestroyDataset(received));

  MUST(acltdtCleanChannel(in));
  received = acltdtCreateDataset();
  CHECK(acltdtReceiveTensor(in, received, 10) == ACL_ERROR_RT_QUEUE_EMPTY);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    MUST(acltdtStopChannel(out));
  });
  CHECK(acltdtReceiveTensor(in, received, -1) == ACL_ERROR_RT_QUEUE_EMPTY);  // stopped, not hung
  stopper.join();
  MUST(acltdtDestroyDataset(received));
  MUST(acltdtDestroyDataset(sent));
  MUST(acltdtDestroyDataItem(item));
  MUST(acltdtDestroyChannel(in));
  MUST(acltdtDestroyChannel(out));
  kit.end();
}

static void* take(aclrtAllocator, size_t) { return nullptr; }
static void give(aclrtAllocator, aclrtAllocatorBlock) {}
static void* at(aclrtAllocatorBlock block) { return block; }

static void allocators() {
  Kit kit;
  int object = 0;
  aclrtAllocatorDesc desc = aclrtAllocatorCreateDesc();
  CHECK(aclrtAllocatorRegister(kit.stream, desc) != ACL_SUCCESS);  // nothing is said of it yet
  MUST(aclrtAllocatorSetObjToDesc(desc, &object));
  MUST(aclrtAllocatorSetAllocFuncToDesc(desc, take));
  MUST(aclrtAllocatorSetFreeFuncToDesc(desc, give));
  MUST(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(desc, at));
  MUST(aclrtAllocatorRegister(kit.stream, desc));
  aclrtAllocatorDesc known;
  aclrtAllocator allocator;
  aclrtAllocatorAllocFunc alloc;
  aclrtAllocatorFreeFunc free;
  aclrtAllocatorAllocAdviseFunc advise;
  aclrtAllocatorGetAddrFromBlockFunc address;
  MUST(aclrtAllocatorGetByStream(kit.stream, &known, &allocator, &alloc, &free, &advise, &address));
  CHECK(known == desc && allocator == &object && alloc == take && free == give && !advise &&
        address == at);
  MUST(aclrtAllocatorUnregister(kit.stream));
  CHECK(aclrtAllocatorGetByStream(kit.stream, &known, &allocator, &alloc, &free, &advise,
                                  &address) != ACL_SUCCESS);
  MUST(aclrtAllocatorDestroyDesc(desc));
  CHECK(aclrtAllocatorDestroyDesc(desc) != ACL_SUCCESS);
  CHECK(aclrtAllocatorSetObjToDesc(desc, &object) != ACL_SUCCESS);
  kit.end();
}

int main(int, char** argv) {
  const std::map<std::string, std::function<void()>> parts = {
      {"float_modes", float_modes}, {"channels", channels}, {"allocators", allocators}};
  parts.at(argv[1])();
  printf("done\n");
}
