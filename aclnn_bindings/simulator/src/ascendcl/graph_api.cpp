// Captured models (aclmdlRI…): running, naming, printing and ending them, and their conditional tasks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "ascendcl/graph.h"
#include "ascendcl/memory.h"
#include "ascendcl/strict.h"

using namespace aclsim;

namespace {

aclError execute(Graph* graph, Stream* stream) {
  Content* content = graph->content;
  content->running.fetch_add(1);
  return submit(stream, make_task([content](Stream* on) { return replay(content, on); },
                                  content->on_worker, [content] { content->running.fetch_sub(1); }),
                "MODEL_EXECUTE");
}

// One conditional task (aclmdlRICondTaskParams document).
struct Choice {
  aclmdlRICondTaskType type;
  Condition* condition;
  std::vector<Graph*> branches;

  aclError run(Stream* stream) const {
    auto value = [&] { return __atomic_load_n(condition->value, __ATOMIC_ACQUIRE); };
    aclError code = ACL_SUCCESS;
    if (type == ACL_MODEL_RI_COND_TYPE_WHILE) {
      while (code == ACL_SUCCESS && value() && !stream->aborted.load()) {
        code = replay(branches[0]->content, stream);
      }
      return code;
    }
    uint64_t chosen = type == ACL_MODEL_RI_COND_TYPE_IF ? !value() : value();
    return chosen < branches.size() ? replay(branches[chosen]->content, stream) : code;
  }
};

void append_json(std::string* text, const Node& node, size_t i) {
  char line[160];
  snprintf(line, sizeof line, "%s\n    {\"task\": %zu, \"stream\": %d, \"name\": \"%s\"}",
           i ? "," : "", i, node.stream, node.task->name ? node.task->name : "task");
  *text += line;
}

Condition* find_condition(aclmdlRICondHandle handle) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  auto* condition = static_cast<Condition*>(handle);
  return captures().conditions.count(condition) ? condition : nullptr;
}

aclError no_condition(const char* function) {
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                "%s failed because the condition handle is not that of a live model.", function);
}

// Branches per type: 1 or 2, 1, any (aclmdlRICondTaskParams document).
bool fits(const aclmdlRICondTaskParams& params) {
  switch (params.type) {
    case ACL_MODEL_RI_COND_TYPE_IF: return params.size == 1 || params.size == 2;
    case ACL_MODEL_RI_COND_TYPE_WHILE: return params.size == 1;
    case ACL_MODEL_RI_COND_TYPE_SWITCH: return params.size > 0;
    default: return false;
  }
}

}  // namespace

ACLSIM_API aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  ACLSIM_MODEL(graph, modelRI);
  ACLSIM_STREAM(on, stream);
  aclError code = check_complete(__func__, graph);
  if (code == ACL_SUCCESS) code = check_not_captured(__func__, on);
  return code == ACL_SUCCESS ? execute(graph, on) : code;
}
ACLSIM_API aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
  ACLSIM_MODEL(graph, modelRI);
  if (timeout < -1 || timeout == 0) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because timeout %d is invalid. Expected value: -1 or more than 0.",
                  __func__, timeout);
  }
  ACLSIM_STREAM(on, nullptr);
  aclError code = check_complete(__func__, graph);
  if (code == ACL_SUCCESS) code = check_synchronous(__func__);
  if (code == ACL_SUCCESS) code = execute(graph, on);
  return code == ACL_SUCCESS ? aclrtSynchronizeStreamWithTimeout(on, timeout) : code;
}

ACLSIM_API aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  ACLSIM_MODEL(graph, modelRI);
  aclError code = check_complete(__func__, graph);
  if (code != ACL_SUCCESS) return code;
  if (graph->content->running.load()) {
    return failed(ACL_ERROR_RT_MODEL_RUNNING, "EE1018",
                  "%s failed because the model is running: synchronise its stream first.", __func__);
  }
  end_graph(graph);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func,
                                                    void* userData) {
  ACLSIM_REQUIRE(func);
  ACLSIM_MODEL(graph, modelRI);
  graph->content->hooks.push_back({func, userData});
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback func) {
  ACLSIM_REQUIRE(func);
  ACLSIM_MODEL(graph, modelRI);
  auto& hooks = graph->content->hooks;
  auto gone = std::remove_if(hooks.begin(), hooks.end(), [&](const Hook& h) { return h.run == func; });
  hooks.erase(gone, hooks.end());
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t* modelRIId) {
  ACLSIM_REQUIRE(modelRIId);
  ACLSIM_MODEL(graph, modelRI);
  *modelRIId = graph->id;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclmdlRISetName(aclmdlRI modelRI, const char* name) {
  ACLSIM_REQUIRE(name);
  ACLSIM_MODEL(graph, modelRI);
  graph->content->name = name;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char* name) {
  ACLSIM_REQUIRE(name);
  ACLSIM_MODEL(graph, modelRI);
  if (maxLen <= graph->content->name.size()) {
    return bad_value(__func__, "maxLen", "too small", "the name's length and one");
  }
  snprintf(name, maxLen, "%s", graph->content->name.c_str());
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char* path, uint32_t flags) {
  ACLSIM_REQUIRE(path);
  ACLSIM_MODEL(graph, modelRI);
  if (flags > ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE) return bad_value(__func__, "flags", "unknown", "0 or 1");
  std::string text = "{\"model\": " + std::to_string(graph->id) + ",\n  \"tasks\": [";
  const std::vector<Node>& nodes = graph->content->nodes;
  for (size_t i = 0; i < nodes.size(); ++i) append_json(&text, nodes[i], i);
  text += "]}\n";
  FILE* file = fopen(path, "w");
  bool written = file && fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file) fclose(file);
  if (written) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_FILE_OPEN, "EE1003", "%s failed because %s cannot be written.", __func__,
                path);
}

// One line a task on standard output (aclmdlRIDebugPrint document: device, stream and task).
ACLSIM_API aclError aclmdlRIDebugPrint(aclmdlRI modelRI) {
  ACLSIM_MODEL(graph, modelRI);
  aclError code = check_complete(__func__, graph);
  if (code != ACL_SUCCESS) return code;
  int32_t device = -1;
  aclrtGetDevice(&device);
  const std::vector<Node>& nodes = graph->content->nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    printf("model %u device %d stream %d task %zu %s\n", graph->id, device, nodes[i].stream, i,
           nodes[i].task->name ? nodes[i].task->name : "task");
  }
  fflush(stdout);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue,
                                             aclmdlRICondHandleFlag flag,
                                             aclmdlRICondHandle* handle) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_MODEL(graph, modelRI);
  ACLSIM_CONTEXT(context);
  if (flag != 0 && flag != ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT) {
    return bad_value(__func__, "flag", "unknown", "0 or 1");
  }
  constexpr size_t kRoom = 512;
  auto* value = static_cast<uint64_t*>(aligned_alloc(kRoom, kRoom));
  *value = defaultLaunchValue;
  enter_mapping(value, kRoom, context->device);
  auto* condition = new Condition{value, defaultLaunchValue, flag != 0};
  graph->content->conditions.push_back(condition);
  std::lock_guard<std::mutex> lock(captures().mutex);
  captures().conditions.insert(condition);
  *handle = condition;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle, uint64_t** ptr) {
  ACLSIM_REQUIRE(ptr);
  Condition* condition = find_condition(handle);
  if (!condition) return no_condition(__func__);
  *ptr = condition->value;
  return ACL_SUCCESS;
}

// The branches are models to capture with aclmdlRICaptureToModelRIBegin; they end with this one.
ACLSIM_API aclError aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream,
                                        uint32_t flags) {
  ACLSIM_REQUIRE(params.modelRIArray);
  ACLSIM_STREAM(on, stream);
  if (flags) return bad_value(__func__, "flags", "nonzero", "0");
  Condition* condition = find_condition(params.handle);
  if (!condition) return no_condition(__func__);
  if (!fits(params)) return bad_value(__func__, "params.size", "unfit", "the type's branches");
  Capture* capture = capture_of(on);
  if (!capture) return not_capturing(__func__, on);
  auto* choice = new Choice{params.type, condition, {}};
  for (uint32_t i = 0; i < params.size; ++i) {
    Graph* branch = make_graph();
    if (strict()) forget_origin(branch);  // it ends with its model: nobody can leak it
    branch->content->branch = true;
    choice->branches.push_back(branch);
    capture->graph->content->branches.push_back(branch);
    params.modelRIArray[i] = branch;
  }
  // A branch may have callbacks of the program: the stream's own thread runs the model.
  return submit(on, make_task([choice](Stream* live) { return choice->run(live); }, true,
                              [choice] { delete choice; }));
}
