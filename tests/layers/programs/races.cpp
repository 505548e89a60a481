// Plants one race between streams, named by argument 1, or runs its ordered twin (argument 2).
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_relu.h>

#include "sample.h"

struct Bench {
  Session session;
  aclrtStream first = session.stream, second = nullptr;
  aclrtEvent event = nullptr;
  void *a, *b, *c;
  bool ordered;
  std::vector<aclTensor*> made;

  explicit Bench(bool with_order) : ordered(with_order) {
    OK_OR_EXIT(aclrtCreateStream(&second));
    OK_OR_EXIT(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    for (void** at : {&a, &b, &c}) {
      OK_OR_EXIT(aclrtMalloc(at, 1024, ACL_MEM_MALLOC_HUGE_FIRST));
      OK_OR_EXIT(aclrtMemset(*at, 1024, 0, 1024));
    }
  }
  ~Bench() {
    OK_OR_EXIT(aclrtSynchronizeDevice());
    for (aclTensor* tensor : made) OK_OR_EXIT(aclDestroyTensor(tensor));
    for (void* at : {a, b, c}) OK_OR_EXIT(aclrtFree(at));
    OK_OR_EXIT(aclrtDestroyEvent(event));
    OK_OR_EXIT(aclrtDestroyStream(second));
  }
  aclTensor* view(void* data, int64_t count, int64_t stride = 1, int64_t offset = 0) {
    int64_t storage = 256;
    made.push_back(aclCreateTensor(&count, 1, ACL_FLOAT, &stride, offset, ACL_FORMAT_ND, &storage, 1, data));
    return made.back();
  }
  void relu(aclTensor* from, aclTensor* to, aclrtStream stream) {
    uint64_t size;
    aclOpExecutor* executor;
    OK_OR_EXIT(aclnnReluGetWorkspaceSize(from, to, &size, &executor));
    OK_OR_EXIT(aclnnRelu(nullptr, size, executor, stream));
  }
  void wait(aclrtStream waits, aclrtStream done) {
    if (!ordered) return;
    OK_OR_EXIT(aclrtRecordEvent(event, done));
    OK_OR_EXIT(aclrtStreamWaitEvent(waits, event));
  }
};

int main(int count, char** words) {
  Bench t(count > 2 && !strcmp(words[2], "ordered"));
  std::map<std::string, std::function<void()>> races;
  races["read-after-write"] = [&] {
    t.relu(t.view(t.a, 64), t.view(t.b, 64), t.first);
    t.wait(t.second, t.first);
    t.relu(t.view(t.b, 64), t.view(t.c, 64), t.second);
  };
  races["write-after-read"] = [&] {
    t.relu(t.view(t.a, 64), t.view(t.b, 64), t.first);
    t.wait(t.second, t.first);
    t.relu(t.view(t.c, 64), t.view(t.a, 64), t.second);
  };
  races["write-after-write"] = [&] {
    t.relu(t.view(t.a, 64), t.view(t.c, 64), t.first);
    t.wait(t.second, t.first);
    t.relu(t.view(t.b, 64), t.view(t.c, 64), t.second);
  };
  races["part-of-a-tensor"] = [&] {
    t.relu(t.view(t.a, 64), t.view(t.b, 64), t.first);
    t.wait(t.second, t.first);
    t.relu(t.view(t.b, 4, 1, 60), t.view(t.c, 4), t.second);
  };
  races["strided-columns-that-meet"] = [&] {
    t.relu(t.view(t.a, 32), t.view(t.b, 32, 2), t.first);
    t.wait(t.second, t.first);
    t.relu(t.view(t.a, 16), t.view(t.b, 16, 4), t.second);
  };
  races["event-recorded-too-early"] = [&] {
    if (!t.ordered) OK_OR_EXIT(aclrtRecordEvent(t.event, t.first));
    t.relu(t.view(t.a, 64), t.view(t.b, 64), t.first);
    if (t.ordered) OK_OR_EXIT(aclrtRecordEvent(t.event, t.first));
    OK_OR_EXIT(aclrtStreamWaitEvent(t.second, t.event));
    t.relu(t.view(t.b, 64), t.view(t.c, 64), t.second);
  };
  races["wait-after-the-launch"] = [&] {
    t.relu(t.view(t.a, 64), t.view(t.b, 64), t.first);
    OK_OR_EXIT(aclrtRecordEvent(t.event, t.first));
    if (t.ordered) OK_OR_EXIT(aclrtStreamWaitEvent(t.second, t.event));
    t.relu(t.view(t.b, 64), t.view(t.c, 64), t.second);
    if (!t.ordered) OK_OR_EXIT(aclrtStreamWaitEvent(t.second, t.event));
  };
  races["copy-before-the-kernel-ends"] = [&] {
    std::vector<char> host(256);
    t.relu(t.view(t.a, 64), t.view(t.b, 64), t.first);
    if (t.ordered) OK_OR_EXIT(aclrtSynchronizeStream(t.first));
    OK_OR_EXIT(aclrtMemcpy(host.data(), 256, t.b, 256, ACL_MEMCPY_DEVICE_TO_HOST));
  };
  races["asynchronous-copies"] = [&] {
    OK_OR_EXIT(aclrtMemcpyAsync(t.b, 256, t.a, 256, ACL_MEMCPY_DEVICE_TO_DEVICE, t.first));
    t.wait(t.second, t.first);
    OK_OR_EXIT(aclrtMemcpyAsync(t.c, 256, t.b, 256, ACL_MEMCPY_DEVICE_TO_DEVICE, t.second));
  };
  races["fill-beside-a-kernel"] = [&] {
    t.relu(t.view(t.a, 64), t.view(t.b, 64), t.first);
    t.wait(t.second, t.first);
    OK_OR_EXIT(aclrtMemsetAsync(t.b, 256, 0, 256, t.second));
  };
  races["two-threads"] = [&] {
    auto launch = [&](void* from, void* to, aclrtStream stream) {
      std::thread([&] {
        OK_OR_EXIT(aclrtSetDevice(0));
        t.relu(t.view(from, 64), t.view(to, 64), stream);
      }).join();
    };
    launch(t.a, t.b, t.first);
    if (t.ordered) OK_OR_EXIT(aclrtSynchronizeStream(t.first));
    launch(t.b, t.c, t.second);
  };
  // Not races, whatever the order.
  races["none: two readers"] = [&] {
    t.relu(t.view(t.a, 64), t.view(t.b, 64), t.first);
    t.relu(t.view(t.a, 64), t.view(t.c, 64), t.second);
  };
  races["none: halves"] = [&] {
    t.relu(t.view(t.a, 32), t.view(t.b, 32), t.first);
    t.relu(t.view(t.a, 32), t.view(t.b, 32, 1, 32), t.second);
  };
  races["none: strided columns"] = [&] {
    t.relu(t.view(t.a, 32), t.view(t.b, 32, 2), t.first);
    t.relu(t.view(t.a, 32), t.view(t.b, 32, 2, 1), t.second);
  };
  races["none: polled"] = [&] {
    t.relu(t.view(t.a, 64), t.view(t.b, 64), t.first);
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    while (status != ACL_STREAM_STATUS_COMPLETE) OK_OR_EXIT(aclrtStreamQuery(t.first, &status));
    t.relu(t.view(t.b, 64), t.view(t.c, 64), t.second);
  };
  races["none: through a third stream"] = [&] {
    aclrtStream third;
    OK_OR_EXIT(aclrtCreateStream(&third));
    t.ordered = true;
    t.relu(t.view(t.a, 64), t.view(t.b, 64), t.first);
    t.wait(third, t.first), t.wait(t.second, third);
    t.relu(t.view(t.b, 64), t.view(t.c, 64), t.second);
    OK_OR_EXIT(aclrtDestroyStream(third));
  };
  auto chosen = races.find(count > 1 ? words[1] : "");
  if (chosen == races.end()) {
    for (const auto& entry : races) printf("%s\n", entry.first.c_str());
    return 0;
  }
  chosen->second();
}
