// The tasks of a captured model (aclmdlRITask…): which there are, what they do, and what to change,
// which takes effect with aclmdlRIUpdate.
#include <algorithm>
#include <cstring>

#include "ascendcl/graph.h"
#include "ascendcl/strict.h"
#include "ascendcl/value_task.h"

namespace aclsim {
namespace {

bool lives(const ModelStream& one) {
  return one.stream->is(Kind::Stream) && one.stream->id == one.id;
}

// Persistent: nothing is run on it, so that waiting for it returns at once.
void name_stream(Graph* graph, Context* context, int32_t captured) {
  Lock lock(runtime().mutex);
  Stream* stream = make_stream(context, ACL_STREAM_PERSISTENT, 0);
  count_live(thread(), Kind::Stream, 1);
  if (strict()) forget_origin(stream);  // it ends with its model: nobody can leak it
  std::lock_guard<std::mutex> names(captures().mutex);
  captures().streams.push_back({graph, stream, stream->id, captured});
}

std::vector<aclrtStream> streams_of(Graph* graph) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  std::vector<aclrtStream> streams;
  for (const ModelStream& one : captures().streams) {
    if (one.graph == graph && lives(one)) streams.push_back(one.stream);
  }
  return streams;
}

// The model's stream behind a handle; without a graph: none.
ModelStream model_stream(Stream* stream) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  for (const ModelStream& one : captures().streams) {
    if (one.stream == stream && lives(one)) return one;
  }
  return {};
}

// A task keeps its handle as long as the model lives.
ModelTask* name_task(Graph* graph, size_t place) {
  auto& tasks = graph->content->tasks;
  for (const auto& one : tasks) {
    if (one->place == place) return one.get();
  }
  tasks.push_back(std::make_unique<ModelTask>(ModelTask{graph, place}));
  std::lock_guard<std::mutex> lock(captures().mutex);
  captures().tasks.insert(tasks.back().get());
  return tasks.back().get();
}

// Without an array its size is asked for.
template <class T>
aclError give(const char* function, const std::vector<T>& all, T* out, uint32_t* count) {
  auto needed = static_cast<uint32_t>(all.size());
  if (out && *count < needed) {
    return failed(ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY, "EE1003",
                  "%s failed because the array has room for %u. Expected value: at least %u.",
                  function, *count, needed);
  }
  if (out) std::copy(all.begin(), all.end(), out);
  *count = needed;
  return ACL_SUCCESS;
}

ModelTask* find_task(aclmdlRITask handle) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  auto* task = static_cast<ModelTask*>(handle);
  return captures().tasks.count(task) ? task : nullptr;
}

aclError no_task(const char* function, const void* handle) {
  if (!handle) return null_pointer(function, "task");
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                "%s failed because %p is not a task of a live model.", function, handle);
}

#define ACLSIM_TASK(name, handle)     \
  ModelTask* name = find_task(handle); \
  if (!name) return no_task(__func__, handle)

// What the task does now, whatever waits for an update.
Node node_of(const ModelTask& task) {
  Content* content = task.graph->content;
  std::lock_guard<std::mutex> lock(content->mutex);
  return content->nodes[task.place];
}

aclmdlRITaskType type_of(const Task& task) {
  static constexpr struct {
    const char* name;
    aclmdlRITaskType type;
  } kTypes[] = {
      {kEventRecord, ACL_MODEL_RI_TASK_EVENT_RECORD}, {kEventWait, ACL_MODEL_RI_TASK_EVENT_WAIT},
      {kEventReset, ACL_MODEL_RI_TASK_EVENT_RESET},   {kValueWrite, ACL_MODEL_RI_TASK_VALUE_WRITE},
      {kValueWait, ACL_MODEL_RI_TASK_VALUE_WAIT},
  };
  for (const auto& one : kTypes) {
    if (task.name && !strcmp(task.name, one.name)) return one.type;
  }
  return task.describe ? ACL_MODEL_RI_TASK_KERNEL : ACL_MODEL_RI_TASK_DEFAULT;
}

// What a task of one type takes: the union at the end of the struct.
template <class T>
T* details(aclmdlRITaskParams* params) {
  static_assert(sizeof(T) <= sizeof params->rsv2, "it has room for each");
  return reinterpret_cast<T*>(params->rsv2);
}

// The changed task, or null with a code.
Task* changed(const char* function, aclmdlRITaskType type, aclmdlRITaskParams* params,
              aclError* code) {
  if (params->type != type) {
    *code = bad_value(function, "params.type", "not the task's", "what aclmdlRITaskGetType gives");
    return nullptr;
  }
  if (type == ACL_MODEL_RI_TASK_VALUE_WRITE) {
    const auto& p = *details<aclmdlRIValueWriteTaskParams>(params);
    *code = check_word(function, p.devAddr);
    return *code == ACL_SUCCESS ? make_value_write({p.devAddr, p.value}) : nullptr;
  }
  if (type == ACL_MODEL_RI_TASK_VALUE_WAIT) {
    const auto& p = *details<aclmdlRIValueWaitTaskParams>(params);
    *code = check_word(function, p.devAddr);
    if (*code == ACL_SUCCESS) *code = check_wait_flag(function, p.flag);
    return *code == ACL_SUCCESS ? make_value_wait({p.devAddr, p.value, p.flag}) : nullptr;
  }
  *code = failed(ACL_ERROR_FEATURE_UNSUPPORTED, "EE1006",
                 "%s changes writes and waits of values; what operators take is changed with "
                 "aclmdlRICaptureTaskUpdateBegin.", function);
  return nullptr;
}

}  // namespace

void forget_names(Graph* graph) {
  std::vector<Stream*> streams;
  {
    std::lock_guard<std::mutex> lock(captures().mutex);
    auto& all = captures().streams;
    for (const ModelStream& one : all) {
      if (one.graph == graph && lives(one)) streams.push_back(one.stream);
    }
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const ModelStream& one) { return one.graph == graph; }),
              all.end());
    for (const auto& task : graph->content->tasks) captures().tasks.erase(task.get());
  }
  for (Stream* stream : streams) {
    destroy_stream(stream, true);
    count_live(thread(), Kind::Stream, -1);
  }
  for (const auto& task : graph->content->tasks) {
    if (task->next) task->next->drop(task->next);
  }
}

}  // namespace aclsim

using namespace aclsim;

// Streams of the model's own, one for each that was captured.
ACLSIM_API aclError aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream* streams,
                                       uint32_t* numStreams) {
  ACLSIM_REQUIRE(numStreams);
  ACLSIM_MODEL(graph, modelRI);
  ACLSIM_CONTEXT(context);
  if (!graph->content->complete) return check_complete(__func__, graph);
  std::vector<aclrtStream> named = streams_of(graph);
  if (named.empty()) {
    for (int32_t captured : graph->content->captured) name_stream(graph, context, captured);
    named = streams_of(graph);
  }
  return give(__func__, named, streams, numStreams);
}

ACLSIM_API aclError aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask* tasks,
                                             uint32_t* numTasks) {
  ACLSIM_REQUIRE(numTasks);
  ACLSIM_REQUIRE(stream);
  ACLSIM_STREAM(on, stream);
  ModelStream asked = model_stream(on);
  if (!asked.graph) {
    return bad_value(__func__, "stream", "not a model's", "one that aclmdlRIGetStreams gives");
  }
  std::vector<aclmdlRITask> named;
  const std::vector<Node>& nodes = asked.graph->content->nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].stream == asked.captured) named.push_back(name_task(asked.graph, i));
  }
  return give(__func__, named, tasks, numTasks);
}

ACLSIM_API aclError aclmdlRITaskGetType(aclmdlRITask task, aclmdlRITaskType* type) {
  ACLSIM_REQUIRE(type);
  ACLSIM_TASK(mine, task);
  *type = type_of(*node_of(*mine).task);
  return ACL_SUCCESS;
}

// Its place in the order in which the model runs.
ACLSIM_API aclError aclmdlRITaskGetSeqId(aclmdlRITask task, uint32_t* id) {
  ACLSIM_REQUIRE(id);
  ACLSIM_TASK(mine, task);
  *id = static_cast<uint32_t>(mine->place);
  return ACL_SUCCESS;
}

// Operators here have no binary and no raw arguments: of a kernel only type and group are told.
ACLSIM_API aclError aclmdlRITaskGetParams(aclmdlRITask task, aclmdlRITaskParams* params) {
  ACLSIM_REQUIRE(params);
  ACLSIM_TASK(mine, task);
  Node node = node_of(*mine);
  memset(static_cast<void*>(params), 0, sizeof *params);
  params->type = type_of(*node.task);
  params->taskGrp = const_cast<Group*>(node.group);
  if (const auto* write = body_of<ValueWrite>(node.task)) {
    *details<aclmdlRIValueWriteTaskParams>(params) = {write->word, write->value};
  } else if (const auto* wait = body_of<ValueWait>(node.task)) {
    *details<aclmdlRIValueWaitTaskParams>(params) = {wait->word, wait->value, wait->flag};
  }
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclmdlRITaskSetParams(aclmdlRITask task, aclmdlRITaskParams* params) {
  ACLSIM_REQUIRE(params);
  ACLSIM_TASK(mine, task);
  aclError code = ACL_SUCCESS;
  Task* next = changed(__func__, type_of(*node_of(*mine).task), params, &code);
  if (!next) return code;
  if (mine->next) mine->next->drop(mine->next);
  mine->next = next;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclmdlRITaskDisable(aclmdlRITask task) {
  ACLSIM_TASK(mine, task);
  mine->disable = true;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclmdlRIUpdate(aclmdlRI modelRI) {
  ACLSIM_MODEL(graph, modelRI);
  if (!graph->content->complete) return check_complete(__func__, graph);
  Content* content = graph->content;
  std::lock_guard<std::mutex> lock(content->mutex);
  for (const auto& task : content->tasks) {
    content->nodes[task->place].disabled |= task->disable;
    if (task->next) put_task(content, task->place, task->next);
    task->next = nullptr;
  }
  return ACL_SUCCESS;
}
