// Plants one fault per run, by name; prints the code of the call that commits it.
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "kit.h"

static std::atomic<bool> gate{false};
static void wait_for_gate(void*) {
  while (!gate.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int main(int argc, char** argv) {
  std::string fault = argc > 1 ? argv[1] : "";
  Kit kit;
  Addition add;
  int code = 0;
  bool finish = true;
  std::map<std::string, std::function<void()>> faults;

  faults["clean"] = [&] {
    MUST(add.plan());
    MUST(add.run(kit.stream));
  };
  faults["tensor-use-after-destroy"] = [&] {
    aclTensor* dead = Kit::tensor(add.a, {8});
    MUST(aclDestroyTensor(dead));
    uint64_t size;
    aclOpExecutor* executor;
    code = aclnnAddGetWorkspaceSize(dead, add.other, add.alpha, add.result, &size, &executor);
  };
  faults["tensor-getter-after-destroy"] = [&] {
    aclTensor* dead = Kit::tensor(add.a, {8});
    MUST(aclDestroyTensor(dead));
    aclFormat format;
    code = aclGetFormat(dead, &format);
  };
  faults["stream-use-after-destroy"] = [&] {
    aclrtStream dead;
    MUST(aclrtCreateStream(&dead));
    MUST(aclrtDestroyStream(dead));
    code = aclrtSynchronizeStream(dead);
  };
  faults["event-use-after-destroy"] = [&] {
    aclrtEvent dead;
    MUST(aclrtCreateEvent(&dead));
    MUST(aclrtDestroyEvent(dead));
    code = aclrtRecordEvent(dead, kit.stream);
  };
  faults["tensor-double-destroy"] = [&] {
    aclTensor* dead = Kit::tensor(add.a, {8});
    MUST(aclDestroyTensor(dead));
    code = aclDestroyTensor(dead);
  };
  faults["scalar-double-destroy"] = [&] {
    aclScalar* dead = Kit::scalar(1);
    MUST(aclDestroyScalar(dead));
    code = aclDestroyScalar(dead);
  };
  faults["event-double-destroy"] = [&] {
    aclrtEvent dead;
    MUST(aclrtCreateEvent(&dead));
    MUST(aclrtDestroyEvent(dead));
    code = aclrtDestroyEvent(dead);
  };
  faults["stream-double-destroy"] = [&] {
    aclrtStream dead;
    MUST(aclrtCreateStream(&dead));
    MUST(aclrtDestroyStream(dead));
    code = aclrtDestroyStream(dead);
  };
  faults["wrong-kind"] = [&] {
    aclScalar* scalar = Kit::scalar(1);
    uint64_t size;
    aclOpExecutor* executor;
    code = aclnnAddGetWorkspaceSize(reinterpret_cast<aclTensor*>(scalar), add.other, add.alpha,
                                    add.result, &size, &executor);
    MUST(aclDestroyScalar(scalar));
  };
  faults["leak-tensor"] = [&] {
    for (int i = 0; i < 3; ++i) Kit::tensor(add.a, {8});
  };
  faults["leak-memory"] = [&] { Kit::device(64); };
  faults["leak-event"] = [&] {
    aclrtEvent event;
    MUST(aclrtCreateEvent(&event));
  };
  faults["leak-executor"] = [&] { MUST(add.plan()); };
  faults["executor-used-twice"] = [&] {
    MUST(add.plan());
    MUST(add.run(kit.stream));
    code = add.run(kit.stream);
  };
  faults["list-member-destroyed-again"] = [&] {
    const aclTensor* members[] = {Kit::tensor(add.a, {8}), Kit::tensor(add.b, {8})};
    aclTensorList* list = aclCreateTensorList(members, 2);
    MUST(aclDestroyTensorList(list));
    code = aclDestroyTensor(members[1]);
  };
  faults["workspace-missing"] = [&] {
    aclTensor* big = Kit::tensor(Kit::device(4 * 64 * 64), {64, 64});
    aclTensor* out = Kit::tensor(Kit::device(4 * 64 * 64), {64, 64});
    uint64_t size;
    aclOpExecutor* executor;
    MUST(aclnnSoftmaxGetWorkspaceSize(big, 0, out, &size, &executor));
    CHECK(size > 0);
    code = aclnnSoftmax(nullptr, size, executor, kit.stream);
    finish = false;
  };
  faults["workspace-too-small"] = [&] {
    aclTensor* big = Kit::tensor(Kit::device(4 * 64 * 64), {64, 64});
    aclTensor* out = Kit::tensor(Kit::device(4 * 64 * 64), {64, 64});
    uint64_t size;
    aclOpExecutor* executor;
    MUST(aclnnSoftmaxGetWorkspaceSize(big, 0, out, &size, &executor));
    CHECK(size > 100);
    code = aclnnSoftmax(Kit::device(8), size, executor, kit.stream);
    finish = false;
  };
  faults["workspace-freed-while-queued"] = [&] {
    aclTensor* big = Kit::tensor(Kit::device(4 * 64 * 64), {64, 64});
    aclTensor* out = Kit::tensor(Kit::device(4 * 64 * 64), {64, 64});
    uint64_t size;
    aclOpExecutor* executor;
    MUST(aclnnSoftmaxGetWorkspaceSize(big, 0, out, &size, &executor));
    void* workspace = Kit::device(size);
    MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
    MUST(aclnnSoftmax(workspace, size, executor, kit.stream));
    code = aclrtFree(workspace);
    gate = true;
    MUST(aclrtSynchronizeStream(kit.stream));
    finish = false;
  };
  faults["buffer-freed-while-queued"] = [&] {
    MUST(add.plan());
    MUST(aclrtLaunchHostFunc(kit.stream, wait_for_gate, nullptr));
    MUST(add.run(kit.stream));
    code = aclrtFree(add.a);
    gate = true;
    MUST(aclrtSynchronizeStream(kit.stream));
    add.a = Kit::device(32);
  };
  faults["host-pointer"] = [&] {
    static float host[8];
    MUST(aclSetRawTensorAddr(add.self, host));
    MUST(add.plan());
    code = add.run(kit.stream);
  };
  faults["freed-pointer"] = [&] {
    void* gone = Kit::device(32);
    MUST(aclrtFree(gone));
    MUST(aclSetRawTensorAddr(add.self, gone));
    MUST(add.plan());
    code = add.run(kit.stream);
  };
  faults["view-past-storage"] = [&] {
    int64_t dims[] = {4}, strides[] = {3}, storage[] = {8};
    aclTensor* view = aclCreateTensor(dims, 1, ACL_FLOAT, strides, 1, ACL_FORMAT_ND, storage, 1, add.a);
    aclTensor* out = Kit::tensor(add.out, {4});
    uint64_t size;
    aclOpExecutor* executor = nullptr;
    code = aclnnAddGetWorkspaceSize(view, view, add.alpha, out, &size, &executor);
    if (executor) MUST(aclDestroyAclOpExecutor(executor));
    MUST(aclDestroyTensor(view));
    MUST(aclDestroyTensor(out));
  };
  faults["view-past-allocation"] = [&] {
    aclTensor* big = Kit::tensor(add.a, {64});  // the allocation holds 8
    aclTensor* out = Kit::tensor(Kit::device(256), {64});
    uint64_t size;
    aclOpExecutor* executor;
    MUST(aclnnAddGetWorkspaceSize(big, big, add.alpha, out, &size, &executor));
    code = aclnnAdd(nullptr, size, executor, kit.stream);
    finish = false;
  };
  faults["copy-past-allocation"] = [&] {
    std::vector<char> host(4096);
    code = aclrtMemcpy(add.a, 4096, host.data(), 4096, ACL_MEMCPY_HOST_TO_DEVICE);
  };
  faults["double-free"] = [&] {
    void* gone = Kit::device(32);
    MUST(aclrtFree(gone));
    code = aclrtFree(gone);
  };
  faults["no-context"] = [&] {
    std::thread([&] { code = aclrtSynchronizeDevice(); }).join();
  };
  faults["wrong-context"] = [&] {
    aclrtContext mine, other;
    MUST(aclrtGetCurrentContext(&mine));
    MUST(aclrtCreateContext(&other, 1));
    aclrtEvent event;
    MUST(aclrtCreateEvent(&event));
    code = aclrtRecordEvent(event, kit.stream);
    MUST(aclrtDestroyEvent(event));
    MUST(aclrtDestroyContext(other));
    MUST(aclrtSetCurrentContext(mine));
  };
  faults["call-after-finalize"] = [&] {
    MUST(aclrtSynchronizeStream(kit.stream));
    add.destroy_handles();
    add.free_memory();
    MUST(aclrtDestroyStream(kit.stream));
    MUST(aclFinalize());
    void* at;
    code = aclrtMalloc(&at, 64, ACL_MEM_MALLOC_HUGE_FIRST);
    finish = false;
  };

  auto chosen = faults.find(fault);
  if (chosen == faults.end()) {
    for (const auto& entry : faults) printf("%s\n", entry.first.c_str());
    return 1;
  }
  chosen->second();
  printf("code %d\n", code);
  if (finish) {
    MUST(aclrtSynchronizeStream(kit.stream));
    add.destroy_handles();
    add.free_memory();
    MUST(aclrtDestroyStream(kit.stream));
    MUST(aclrtResetDevice(0));
    printf("finalize %d\n", aclFinalize());
  }
  return 0;
}
