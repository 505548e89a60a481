// The life of a model: how it comes to be, runs its tasks, and ends. A model runs its tasks one after
// the other in the order in which they were noted: every wait comes after its record there, so that
// order honours all forks and joins.
#include "ascendcl/graph.h"

#include <cstdlib>

#include "ascendcl/memory.h"
#include "ascendcl/strict.h"

namespace aclsim {

void drop_tasks(Content* content) {
  for (Node& node : content->nodes) node.task->drop(node.task);
  for (Task* task : content->replaced) task->drop(task);
  content->nodes.clear();
  content->replaced.clear();
}

void put_task(Content* content, size_t place, Task* task) {
  Task*& at = content->nodes[place].task;
  if (at == content->current) {
    content->replaced.push_back(at);
  } else {
    at->drop(at);
  }
  at = task;
}

namespace {
void end_condition(Condition* condition) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  captures().conditions.erase(condition);
  leave_mapping(condition->value);
  free(condition->value);
  delete condition;
}

void release_content(Graph* graph) {
  Content* content = graph->content;
  forget_names(graph);
  drop_tasks(content);
  for (Graph* branch : content->branches) end_graph(branch);
  for (Condition* condition : content->conditions) end_condition(condition);
  for (const Hook& hook : content->hooks) hook.run(hook.data);
  delete content;
  graph->content = nullptr;
}

// The task to run next, from node `i` on.
Task* next_task(Content* content, size_t* i) {
  std::lock_guard<std::mutex> lock(content->mutex);
  content->current = nullptr;
  for (Task* task : content->replaced) task->drop(task);
  content->replaced.clear();
  const std::vector<Node>& nodes = content->nodes;
  while (*i < nodes.size() && nodes[*i].disabled) ++*i;
  return content->current = *i < nodes.size() ? nodes[(*i)++].task : nullptr;
}
}  // namespace

void end_graph(Graph* graph) {
  count_live(thread(), Kind::Model, -1);
  if (strict()) forget_origin(graph);
  retire(graph, Kind::Model, Death::Destroyed);
  release_content(graph);
  recycle(thread(), graph, Kind::Model);
}

Graph* make_graph() {
  static std::atomic<uint32_t> next{1};
  auto* graph = acquire<Graph>(thread(), Kind::Model);
  graph->id = next.fetch_add(1);
  graph->content = new Content;
  count_live(thread(), Kind::Model, 1);
  if (strict()) remember_origin(graph);
  return graph;
}

aclError replay(Content* content, Stream* stream) {
  std::lock_guard<std::mutex> lock(content->run);
  for (Condition* condition : content->conditions) {
    if (condition->assigned) *condition->value = condition->initial;
  }
  size_t i = 0;
  aclError code = ACL_SUCCESS;
  while (Task* task = next_task(content, &i)) {
    if (stream->aborted.load()) break;
    code = profiling() ? profile_task(task, stream, task->replay) : task->replay(task, stream);
    if (code != ACL_SUCCESS) break;
  }
  i = content->nodes.size();
  next_task(content, &i);
  return code;
}

ACLSIM_NOINLINE aclError not_a_model(const char* function, Graph* graph) {
  if (!graph) return null_pointer(function, "modelRI");
  if (strict()) report_dead(function, graph, Kind::Model);
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011", "%s failed because %p is not a live model.",
                function, static_cast<void*>(graph));
}

aclError check_complete(const char* function, Graph* graph) {
  if (graph->content->branch) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                  "%s failed because the model is a branch of another one.", function);
  }
  if (graph->content->complete) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_MODEL_CAPTURED, "EE1018",
                "%s failed because the model is still being captured.", function);
}

}  // namespace aclsim
