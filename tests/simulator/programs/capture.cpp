// Captures and models (aclmdlRI…), one part per run, by name.
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "kit.h"

// out = a + b and then out = out + b, noted on a stream.
struct Work {
  void *a, *b, *out;
  aclScalar* one = Kit::scalar(1);
  Work() : a(Kit::floats(std::vector<float>(8, 1))), b(Kit::floats(std::vector<float>(8, 10))),
           out(Kit::floats(std::vector<float>(8, 0))) {}
  void add(void* x, void* y, void* to, aclrtStream stream) {
    aclTensor *left = Kit::tensor(x, {8}), *right = Kit::tensor(y, {8}), *sum = Kit::tensor(to, {8});
    uint64_t workspace = 0;
    aclOpExecutor* executor = nullptr;
    MUST(aclnnAddGetWorkspaceSize(left, right, one, sum, &workspace, &executor));
    MUST(aclnnAdd(nullptr, workspace, executor, stream));
    for (aclTensor* t : {left, right, sum}) MUST(aclDestroyTensor(t));
  }
  void end() {
    MUST(aclDestroyScalar(one));
    for (void* p : {a, b, out}) MUST(aclrtFree(p));
  }
};
static void fill(void* at, float value) {
  std::vector<float> values(8, value);
  MUST(aclrtMemcpy(at, 32, values.data(), 32, ACL_MEMCPY_HOST_TO_DEVICE));
}
static void run(aclmdlRI model, aclrtStream stream) {
  MUST(aclmdlRIExecuteAsync(model, stream));
  MUST(aclrtSynchronizeStream(stream));
}

static void replays() {
  Kit kit;
  Work work;
  aclmdlRICaptureStatus status;
  aclmdlRI model = nullptr, seen = nullptr;
  MUST(aclmdlRICaptureGetInfo(kit.stream, &status, &seen));
  CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_NONE && seen == nullptr);
  MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  work.add(work.a, work.b, work.out, kit.stream);
  work.add(work.out, work.b, work.out, kit.stream);
  MUST(aclrtMemcpyAsync(work.a, 32, work.out, 32, ACL_MEMCPY_DEVICE_TO_DEVICE, kit.stream));
  MUST(aclmdlRICaptureGetInfo(kit.stream, &status, &seen));
  CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE && seen != nullptr);
  MUST(aclmdlRICaptureEnd(kit.stream, &model));
  CHECK(model == seen);
  CHECK(Kit::back(work.out, 8)[0] == 0);  // noted, not run
  for (float expected : {21, 41, 61}) {
    run(model, kit.stream);
    CHECK(Kit::back(work.out, 8) == std::vector<float>(8, expected));
  }
  fill(work.a, 0);  // addresses count, not what was there
  MUST(aclmdlRIExecute(model, -1));
  CHECK(Kit::back(work.out, 8)[7] == 20);
  uint32_t id = 0;
  char name[16];
  MUST(aclmdlRIGetId(model, &id));
  MUST(aclmdlRISetName(model, "step"));
  MUST(aclmdlRIGetName(model, sizeof name, name));
  CHECK(std::string(name) == "step");
  MUST(aclmdlRIDebugJsonPrint(model, "/dev/stdout", 0));
  MUST(aclmdlRIDebugPrint(model));
  MUST(aclmdlRIDestroy(model));
  CHECK(aclmdlRIDestroy(model) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclmdlRIExecuteAsync(model, kit.stream) == ACL_ERROR_RT_PARAM_INVALID);
  work.end();
  kit.end();
}

// The tasks of a model's streams, in order.
static std::vector<aclmdlRITask> tasks_of(aclmdlRI model, std::vector<aclrtStream>* streams) {
  uint32_t count = 0;
  MUST(aclmdlRIGetStreams(model, nullptr, &count));
  streams->resize(count);
  if (count) {
    uint32_t small = count - 1;
    CHECK(aclmdlRIGetStreams(model, streams->data(), &small) == ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY);
  }
  MUST(aclmdlRIGetStreams(model, streams->data(), &count));
  std::vector<aclmdlRITask> all;
  for (aclrtStream stream : *streams) {
    uint32_t tasks = 0;
    MUST(aclmdlRIGetTasksByStream(stream, nullptr, &tasks));
    std::vector<aclmdlRITask> some(tasks);
    MUST(aclmdlRIGetTasksByStream(stream, some.data(), &tasks));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

static void tasks() {
  Kit kit;
  Work work;
  auto* word = static_cast<uint64_t*>(Kit::device(64));
  MUST(aclrtMemset(word, 64, 0, 64));
  aclmdlRI model = nullptr, other = nullptr;
  MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  work.add(work.a, work.b, work.out, kit.stream);
  work.add(work.out, work.b, work.out, kit.stream);
  aclrtTaskGrp group = nullptr;
  MUST(aclmdlRICaptureTaskGrpBegin(kit.stream));
  MUST(aclrtValueWrite(word, 7, 0, kit.stream));
  MUST(aclmdlRICaptureTaskGrpEnd(kit.stream, &group));
  MUST(aclrtValueWait(word, 7, ACL_STREAM_WAIT_VALUE_EQ, kit.stream));
  MUST(aclrtMemsetAsync(word + 1, 8, 1, 8, kit.stream));
  MUST(aclmdlRICaptureEnd(kit.stream, &model));
  MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));  // the same stream
  work.add(work.a, work.b, work.out, kit.stream);
  MUST(aclmdlRICaptureEnd(kit.stream, &other));
  std::vector<aclrtStream> streams, streams_of_other;
  std::vector<aclmdlRITask> all = tasks_of(model, &streams);
  CHECK(tasks_of(other, &streams_of_other).size() == 1 && streams_of_other[0] != streams[0]);
  CHECK(streams.size() == 1 && all.size() == 5 && all == tasks_of(model, &streams));
  const aclmdlRITaskType expected[] = {ACL_MODEL_RI_TASK_KERNEL, ACL_MODEL_RI_TASK_KERNEL,
                                       ACL_MODEL_RI_TASK_VALUE_WRITE, ACL_MODEL_RI_TASK_VALUE_WAIT,
                                       ACL_MODEL_RI_TASK_DEFAULT};
  for (uint32_t i = 0; i < 5; ++i) {
    aclmdlRITaskType type;
    uint32_t id = 99;
    MUST(aclmdlRITaskGetType(all[i], &type));
    MUST(aclmdlRITaskGetSeqId(all[i], &id));
    CHECK(type == expected[i] && id == i);
  }
  aclmdlRITaskParams params;
  auto& write = params.valueWriteTaskParams;
  auto& wait = params.valueWaitTaskParams;
  MUST(aclmdlRITaskGetParams(all[0], &params));
  CHECK(params.type == ACL_MODEL_RI_TASK_KERNEL && params.taskGrp == nullptr);
  MUST(aclmdlRITaskGetParams(all[3], &params));
  CHECK(wait.devAddr == word && wait.value == 7);
  wait.value = 9;
  MUST(aclmdlRITaskSetParams(all[3], &params));
  CHECK(aclmdlRITaskSetParams(all[2], &params) == ACL_ERROR_INVALID_PARAM);  // another type
  MUST(aclmdlRITaskGetParams(all[2], &params));
  CHECK(params.taskGrp == group && write.value == 7);
  write.devAddr = &params;  // not acl memory
  CHECK(aclmdlRITaskSetParams(all[2], &params) == ACL_ERROR_RT_PARAM_INVALID);
  write = {word, 9};
  MUST(aclmdlRITaskSetParams(all[2], &params));
  MUST(aclmdlRITaskDisable(all[1]));
  run(model, kit.stream);  // nothing is changed before the update
  CHECK(*word == 7 && Kit::back(work.out, 8)[0] == 21);
  MUST(aclmdlRIUpdate(model));
  run(model, kit.stream);
  CHECK(*word == 9 && Kit::back(work.out, 8)[0] == 11);
  CHECK(aclmdlRIGetTasksByStream(kit.stream, nullptr, &params.rsv0[0]) == ACL_ERROR_INVALID_PARAM);
  MUST(aclmdlRIDestroy(model));
  aclmdlRITaskType type;
  CHECK(aclmdlRITaskGetType(all[0], &type) == ACL_ERROR_RT_PARAM_INVALID);
  MUST(aclmdlRIDestroy(other));
  MUST(aclrtFree(word));
  work.end();
  kit.end();
}

static void forks_and_joins() {
  Kit kit;
  Work work;
  aclrtStream side = nullptr;
  aclrtEvent fork = nullptr, join = nullptr;
  MUST(aclrtCreateStream(&side));
  MUST(aclrtCreateEventExWithFlag(&fork, ACL_EVENT_SYNC));
  MUST(aclrtCreateEventExWithFlag(&join, ACL_EVENT_SYNC));
  aclmdlRI model = nullptr;
  auto body = [&](bool joined) {
    MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    work.add(work.a, work.b, work.out, kit.stream);  // 11
    MUST(aclrtRecordEvent(fork, kit.stream));
    MUST(aclrtStreamWaitEvent(side, fork));
    work.add(work.out, work.b, work.out, side);  // 21
    MUST(aclrtRecordEvent(join, side));
    if (joined) MUST(aclrtStreamWaitEvent(kit.stream, join));
    aclmdlRICaptureStatus status;
    MUST(aclmdlRICaptureGetInfo(side, &status, nullptr));
    CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  };
  body(false);
  CHECK(aclmdlRICaptureEnd(side, &model) == ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED);
  CHECK(aclmdlRICaptureEnd(kit.stream, &model) == ACL_ERROR_RT_STREAM_UNJOINED);
  body(true);
  MUST(aclmdlRICaptureEnd(kit.stream, &model));
  CHECK(aclmdlRICaptureEnd(side, &model) == ACL_ERROR_RT_STREAM_NOT_CAPTURED);  // it was let go
  run(model, side);
  CHECK(Kit::back(work.out, 8)[0] == 21);
  MUST(aclmdlRIDestroy(model));
  MUST(aclrtDestroyEvent(fork));
  MUST(aclrtDestroyEvent(join));
  MUST(aclrtDestroyStream(side));
  work.end();
  kit.end();
}

static void refusals() {
  Kit kit;
  Work work;
  aclmdlRI model = nullptr;
  aclrtStream own = nullptr;
  MUST(aclrtCtxGetCurrentDefaultStream(&own));
  auto begin = [&] { MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)); };
  auto ended_as = [&](int code) { CHECK(aclmdlRICaptureEnd(kit.stream, &model) == code); };
  CHECK(aclmdlRICaptureBegin(nullptr, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclmdlRICaptureBegin(own, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclmdlRICaptureBegin(kit.stream, aclmdlRICaptureMode(7)) == ACL_ERROR_RT_PARAM_INVALID);
  ended_as(ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  begin();
  CHECK(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) ==
        ACL_ERROR_RT_STREAM_CAPTURED);
  MUST(aclmdlRICaptureEnd(kit.stream, &model));  // an empty model
  run(model, kit.stream);
  MUST(aclmdlRIDestroy(model));
  // To wait for the captured stream is refused, and the capture goes on.
  begin();
  CHECK(aclrtSynchronizeStream(kit.stream) == ACL_ERROR_RT_STREAM_CAPTURED);
  CHECK(aclrtSynchronizeStreamWithTimeout(kit.stream, 10) == ACL_ERROR_RT_STREAM_CAPTURED);
  MUST(aclmdlRICaptureEnd(kit.stream, &model));
  MUST(aclmdlRIDestroy(model));
  // What else cannot be done while a stream is captured makes the capture invalid.
  aclrtEvent event = nullptr, old = nullptr;
  MUST(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  MUST(aclrtCreateEvent(&old));
  float host[8] = {}, ms;
  aclrtStreamStatus state;
  aclrtEventRecordedStatus recorded;
  const std::vector<std::pair<int, std::function<int()>>> wrong = {
      {ACL_ERROR_RT_STREAM_CAPTURED, [&] { return aclrtStreamQuery(kit.stream, &state); }},
      {ACL_ERROR_RT_STREAM_CAPTURED, [&] { return aclrtDestroyStream(kit.stream); }},
      {ACL_ERROR_RT_STREAM_CAPTURED, [&] { return aclrtSynchronizeDevice(); }},
      {ACL_ERROR_RT_EVENT_CAPTURED, [&] { return aclrtSynchronizeEvent(event); }},
      {ACL_ERROR_RT_EVENT_CAPTURED, [&] { return aclrtQueryEventStatus(event, &recorded); }},
      {ACL_ERROR_RT_EVENT_CAPTURED, [&] { return aclrtEventElapsedTime(&ms, event, event); }},
      {ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
       [&] { return aclrtMemcpy(host, 32, work.a, 32, ACL_MEMCPY_DEVICE_TO_HOST); }},
      {ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, [&] { return aclrtMemset(work.a, 32, 0, 32); }},
      {ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
       [&] { return aclrtMemcpyAsync(host, 32, work.a, 32, ACL_MEMCPY_DEVICE_TO_HOST, kit.stream); }},
      {ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, [&] { return aclrtStreamWaitEvent(nullptr, event); }},
  };
  for (const auto& one : wrong) {
    begin();
    MUST(aclrtRecordEvent(event, kit.stream));
    CHECK(one.second() == one.first);
    aclmdlRICaptureStatus status;
    MUST(aclmdlRICaptureGetInfo(kit.stream, &status, nullptr));
    CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
    CHECK(aclrtMemsetAsync(work.a, 32, 0, 32, kit.stream) ==
          ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
    ended_as(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
  }
  begin();
  CHECK(aclrtRecordEvent(old, kit.stream) == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  aclrtEvent fresh = nullptr;
  MUST(aclrtCreateEventExWithFlag(&fresh, ACL_EVENT_SYNC));
  CHECK(aclrtStreamWaitEvent(kit.stream, fresh) == ACL_ERROR_RT_CAPTURE_DEPENDENCY);
  ended_as(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
  MUST(aclrtSynchronizeStream(kit.stream));  // all is well again
  for (aclrtEvent e : {event, old, fresh}) MUST(aclrtDestroyEvent(e));
  work.end();
  kit.end();
}

static void modes() {
  Kit kit;
  Work work;
  aclmdlRI model = nullptr;
  float host[8];
  auto copy = [&] { return aclrtMemcpy(host, 32, work.a, 32, ACL_MEMCPY_DEVICE_TO_HOST); };
  auto elsewhere = [&](auto f) {
    int code = -1;
    std::thread([&] { MUST(aclrtSetDevice(0)); code = f(); MUST(aclrtResetDevice(0)); }).join();
    return code;
  };
  MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK(elsewhere(copy) == ACL_SUCCESS);
  CHECK(elsewhere([&] { return aclmdlRICaptureEnd(kit.stream, &model); }) ==
        ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD);
  MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  MUST(copy());
  CHECK(elsewhere([&] { return aclmdlRICaptureEnd(kit.stream, &model); }) == ACL_SUCCESS);
  MUST(aclmdlRIDestroy(model));
  MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  MUST(aclmdlRICaptureThreadExchangeMode(&mode));
  CHECK(mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
  MUST(copy());  // this thread may now
  CHECK(elsewhere(copy) == ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT);
  CHECK(aclmdlRICaptureEnd(kit.stream, &model) == ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
  work.end();
  kit.end();
}

// Groups of tasks get other arguments, while a model that waits for them is under way.
static void updates() {
  Kit kit;
  Work work;
  aclrtStream other = nullptr;
  aclrtEvent updated = nullptr;
  aclrtTaskGrp group = nullptr;
  aclmdlRI model = nullptr;
  MUST(aclrtCreateStream(&other));
  MUST(aclrtCreateEventExWithFlag(&updated, ACL_EVENT_EXTERNAL));
  MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  MUST(aclrtStreamWaitEvent(kit.stream, updated));
  MUST(aclrtResetEvent(updated, kit.stream));
  MUST(aclmdlRICaptureTaskGrpBegin(kit.stream));
  work.add(work.a, work.b, work.out, kit.stream);
  MUST(aclmdlRICaptureTaskGrpEnd(kit.stream, &group));
  work.add(work.out, work.b, work.out, kit.stream);
  MUST(aclmdlRICaptureEnd(kit.stream, &model));
  std::vector<void*> used;
  for (float value : {100, 200}) {
    fill(work.a, 1);
    MUST(aclmdlRIExecuteAsync(model, kit.stream));
    CHECK(aclrtSynchronizeStreamWithTimeout(kit.stream, 30) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK(aclmdlRIDestroy(model) == ACL_ERROR_RT_MODEL_RUNNING);
    void* instead = Kit::floats(std::vector<float>(8, value));
    MUST(aclmdlRICaptureTaskUpdateBegin(other, group));
    CHECK(aclmdlRICaptureTaskUpdateBegin(other, group) == ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    work.add(instead, work.b, work.out, other);
    // As torch_npu does after each launch when it launches in blocking mode.
    aclrtStreamStatus state;
    MUST(aclrtSynchronizeStream(other));
    MUST(aclrtStreamQuery(other, &state));
    CHECK(state == ACL_STREAM_STATUS_COMPLETE);
    MUST(aclmdlRICaptureTaskUpdateEnd(other));
    MUST(aclrtRecordEvent(updated, other));
    MUST(aclrtSynchronizeStream(kit.stream));
    CHECK(Kit::back(work.out, 8)[0] == value + 20);
    used.push_back(instead);  // the model reads it as long as it lives
  }
  CHECK(aclmdlRICaptureTaskUpdateEnd(other) == ACL_ERROR_STREAM_TASK_GROUP_STATUS);
  MUST(aclmdlRICaptureTaskUpdateBegin(other, group));
  MUST(aclrtMemsetAsync(work.out, 32, 0, 32, other));
  CHECK(aclmdlRICaptureTaskUpdateEnd(other) == ACL_ERROR_RT_MODEL_UPDATE_FAILED);
  MUST(aclrtSynchronizeStream(other));
  MUST(aclmdlRIDestroy(model));
  for (void* at : used) MUST(aclrtFree(at));
  MUST(aclrtDestroyEvent(updated));
  MUST(aclrtDestroyStream(other));
  work.end();
  kit.end();
}

static std::atomic<int> calls{0};
static void called(void*) { calls.fetch_add(1); }
static void callbacks() {
  Kit kit;
  aclmdlRI model = nullptr;
  MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  MUST(aclrtLaunchHostFunc(kit.stream, called, nullptr));
  MUST(aclmdlRICaptureEnd(kit.stream, &model));
  CHECK(calls.load() == 0);
  for (int i = 1; i < 4; ++i) {
    run(model, kit.stream);
    CHECK(calls.load() == i);
  }
  MUST(aclmdlRIDestroyRegisterCallback(model, called, nullptr));
  MUST(aclmdlRIDestroy(model));
  CHECK(calls.load() == 4);
  kit.end();
}

// x becomes x + 1 in a branch; the condition is a word that the host or captured work sets.
struct Conditional {
  Kit kit;
  Work work;
  aclmdlRI model = nullptr;
  aclmdlRICondHandle handle = nullptr;
  uint64_t* word = nullptr;
  Conditional(aclmdlRICondTaskType type, std::vector<float> steps, uint32_t initial,
              std::function<void(uint64_t*, aclrtStream)> at_end = nullptr) {
    aclmdlRI capturing = nullptr;
    aclrtStream side = nullptr;
    MUST(aclrtCreateStream(&side));
    MUST(aclmdlRICaptureBegin(kit.stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    MUST(aclmdlRICaptureGetInfo(kit.stream, nullptr, &capturing));
    MUST(aclmdlRICondHandleCreate(capturing, initial, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT,
                                  &handle));
    MUST(aclmdlRICondHandleGetCondPtr(handle, &word));
    std::vector<aclmdlRI> branches(steps.size());
    aclmdlRICondTaskParams params = {handle, type, uint32_t(steps.size()), branches.data()};
    MUST(aclmdlRIAddCondTask(params, kit.stream, 0));
    for (size_t i = 0; i < steps.size(); ++i) {
      MUST(aclmdlRICaptureToModelRIBegin(side, branches[i], ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
      for (float n = 0; n < steps[i]; ++n) work.add(work.out, work.a, work.out, side);
      if (at_end) at_end(word, side);
      aclmdlRI ended = nullptr;
      MUST(aclmdlRICaptureEnd(side, &ended));
      CHECK(ended == branches[i]);
      CHECK(aclmdlRICaptureToModelRIBegin(side, ended, ACL_MODEL_RI_CAPTURE_MODE_RELAXED) ==
            ACL_ERROR_RT_MODEL_CAPTURED);
      CHECK(aclmdlRIDestroy(ended) == ACL_ERROR_RT_PARAM_INVALID);
    }
    MUST(aclmdlRICaptureEnd(kit.stream, &model));
    MUST(aclrtDestroyStream(side));
  }
  float result() {
    fill(work.out, 0);
    run(model, kit.stream);
    return Kit::back(work.out, 8)[0];
  }
  void end() {
    MUST(aclmdlRIDestroy(model));
    uint64_t* gone = nullptr;
    CHECK(aclmdlRICondHandleGetCondPtr(handle, &gone) == ACL_ERROR_RT_PARAM_INVALID);
    work.end();
    kit.end();
  }
};
static void if_true() {
  Conditional c(ACL_MODEL_RI_COND_TYPE_IF, {1, 2}, 7);
  CHECK(c.result() == 1 && c.result() == 1);
  c.end();
}
static void if_false() {
  Conditional c(ACL_MODEL_RI_COND_TYPE_IF, {1, 2}, 0);
  CHECK(c.result() == 2);
  c.end();
}
static void switches() {
  Conditional c(ACL_MODEL_RI_COND_TYPE_SWITCH, {1, 2, 3}, 2);
  CHECK(c.result() == 3);
  c.end();
}
static std::atomic<int> rounds{0};
static void count_down(void* word) {
  if (rounds.fetch_add(1) % 5 == 4) *static_cast<uint64_t*>(word) = 0;
}
static void loops() {
  Conditional c(ACL_MODEL_RI_COND_TYPE_WHILE, {1}, 1, [](uint64_t* word, aclrtStream side) {
    MUST(aclrtLaunchHostFunc(side, count_down, word));
  });
  CHECK(c.result() == 5 && c.result() == 5);  // the word is set again before every run
  c.end();
}

int main(int, char** argv) {
  const std::map<std::string, std::function<void()>> parts = {
      {"replays", replays}, {"forks_and_joins", forks_and_joins}, {"refusals", refusals},
      {"modes", modes},     {"updates", updates},                 {"callbacks", callbacks},
      {"if_true", if_true}, {"if_false", if_false},               {"switches", switches},
      {"loops", loops},     {"tasks", tasks}};
  setvbuf(stdout, nullptr, _IOLBF, 0);
  parts.at(argv[1])();
  printf("done\n");
}
