// Models made by capturing streams (aclmdlRI…): what a capture notes and refuses, and how a model
// runs. A model runs its tasks one after the other in the order in which they were noted: every
// wait comes after its record there, so that order honours all forks and joins.
#include "ascendcl/capture.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>

#include "ascendcl/memory.h"
#include "ascendcl/strict.h"

namespace aclsim {
namespace {

struct Node {
  Task* task;
  int32_t stream;
};

struct Graph;

// Tasks between aclmdlRICaptureTaskGrpBegin and End: what an update replaces.
struct Group {
  Graph* graph;
  std::vector<size_t> nodes;
};

struct Hook {
  aclrtCallback run;
  void* data;
};

// A word in device memory that conditional tasks look at.
struct Condition {
  uint64_t* value;
  uint64_t initial;
  bool assigned;  // to `initial` before every run of its model
};

struct Graph : Handle {
  uint32_t id;
  struct Content* content;
};

struct Content {
  std::string name;
  std::mutex mutex;            // guards nodes, `current` and `replaced`
  std::mutex run;              // one replay at a time
  std::vector<Node> nodes;
  Task* current = nullptr;     // the task that runs now
  std::vector<Task*> replaced; // dropped when the current task has ended
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<Hook> hooks;     // called when the model is destroyed
  std::vector<Condition*> conditions;
  std::vector<Graph*> branches;  // of conditional tasks: they live as long
  bool branch = false;         // belongs to a conditional task of another model
  std::atomic<int32_t> running{0};
  bool on_worker = false;      // has callbacks of the program
  bool complete = false;
};

// One capture: a model that grows.
struct Capture : Recorder {
  uint64_t serial;
  Graph* graph;
  Stream* origin;
  uint64_t thread_id;
  aclmdlRICaptureMode mode;
  std::atomic<bool> invalid{false};
  std::mutex mutex;               // guards what follows
  std::vector<Stream*> streams;   // the origin first; places of Progress
  std::vector<Progress> known;    // per stream: what comes before its next task
  std::vector<Group*> open;       // per stream: the group being noted, or null

  size_t place_of(const Stream* stream) const {
    return std::find(streams.begin(), streams.end(), stream) - streams.begin();
  }
  aclError take(Stream* stream, Task* task) override;
};

// Tasks that replace those of a group.
struct Update : Recorder {
  Group* group;
  std::vector<Task*> tasks;
  aclError take(Stream*, Task* task) override {
    tasks.push_back(task);
    return ACL_SUCCESS;
  }
};

struct Captures {
  std::set<Condition*> conditions;
  std::mutex mutex;
  std::set<Capture*> active;
  std::atomic<int32_t> count{0};
  uint64_t next = 1;
};
Captures& captures() {
  static Captures* made = new Captures;
  return *made;
}

Capture* capture_of(const Stream* stream) { return dynamic_cast<Capture*>(stream->recorder.load()); }

void join(Capture* capture, Stream* stream) {
  capture->streams.push_back(stream);
  capture->known.emplace_back(capture->streams.size(), 0);
  capture->open.push_back(nullptr);
  stream->recorder.store(capture);
}

uint32_t at(const Progress& progress, size_t i) { return i < progress.size() ? progress[i] : 0; }

void merge(Progress* into, const Progress& other) {
  into->resize(std::max(into->size(), other.size()), 0);
  for (size_t i = 0; i < other.size(); ++i) (*into)[i] = std::max((*into)[i], other[i]);
}

aclError Capture::take(Stream* stream, Task* task) {
  if (invalid.load()) {
    task->drop(task);
    return failed(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, "EE1018",
                  "Stream %d takes no work: its capture is invalid after an earlier error.",
                  stream->id);
  }
  std::lock_guard<std::mutex> lock(mutex);
  size_t place = place_of(stream);
  Content* content = graph->content;
  std::lock_guard<std::mutex> nodes(content->mutex);
  if (open[place]) open[place]->nodes.push_back(content->nodes.size());
  content->nodes.push_back({task, stream->id});
  content->on_worker |= task->on_worker;
  known[place].resize(std::max(known[place].size(), place + 1), 0);
  ++known[place][place];
  return ACL_SUCCESS;
}

// Some work of a stream is not joined into the origin.
bool unjoined(const Capture& capture) {
  for (size_t i = 1; i < capture.streams.size(); ++i) {
    if (at(capture.known[0], i) < at(capture.known[i], i)) return true;
  }
  return false;
}

void end_graph(Graph* graph);

void drop_tasks(Content* content) {
  for (Node& node : content->nodes) node.task->drop(node.task);
  for (Task* task : content->replaced) task->drop(task);
  content->nodes.clear();
  content->replaced.clear();
}

void end_condition(Condition* condition) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  captures().conditions.erase(condition);
  leave_mapping(condition->value);
  free(condition->value);
  delete condition;
}

void release_content(Graph* graph) {
  Content* content = graph->content;
  drop_tasks(content);
  for (Graph* branch : content->branches) end_graph(branch);
  for (Condition* condition : content->conditions) end_condition(condition);
  for (const Hook& hook : content->hooks) hook.run(hook.data);
  delete content;
  graph->content = nullptr;
}

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

// Lets all streams go; the model stays with the caller.
void finish(Capture* capture) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  captures().active.erase(capture);
  captures().count.fetch_sub(1);
  for (Stream* stream : capture->streams) stream->recorder.store(nullptr);
}

Task* next_task(Content* content, size_t i) {
  std::lock_guard<std::mutex> lock(content->mutex);
  content->current = nullptr;
  for (Task* task : content->replaced) task->drop(task);
  content->replaced.clear();
  return content->current = i < content->nodes.size() ? content->nodes[i].task : nullptr;
}

aclError replay(Content* content, Stream* stream) {
  std::lock_guard<std::mutex> lock(content->run);
  for (Condition* condition : content->conditions) {
    if (condition->assigned) *condition->value = condition->initial;
  }
  size_t i = 0;
  aclError code = ACL_SUCCESS;
  while (Task* task = next_task(content, i++)) {
    if (stream->aborted.load()) break;
    code = task->replay(task, stream);
    if (code != ACL_SUCCESS) break;
  }
  next_task(content, ~size_t{0});
  return code;
}

aclError execute(Graph* graph, Stream* stream) {
  Content* content = graph->content;
  content->running.fetch_add(1);
  return submit(stream, make_task([content](Stream* on) { return replay(content, on); },
                                  content->on_worker, [content] { content->running.fetch_sub(1); }));
}

// The tasks of the group become those of the update; the old ones end with the replay that may
// be using them.
void replace(Group* group, std::vector<Task*>* tasks) {
  Content* content = group->graph->content;
  std::lock_guard<std::mutex> lock(content->mutex);
  for (size_t i = 0; i < tasks->size(); ++i) {
    Task*& place = content->nodes[group->nodes[i]].task;
    if (place == content->current) {
      content->replaced.push_back(place);
    } else {
      place->drop(place);
    }
    place = (*tasks)[i];
  }
  tasks->clear();
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

bool same_kind(const Task* a, const Task* b) { return a->replay == b->replay && a->name == b->name; }

void drop_all(std::vector<Task*>* tasks) {
  for (Task* task : *tasks) task->drop(task);
  tasks->clear();
}

ACLSIM_NOINLINE aclError not_a_model(const char* function, Graph* graph) {
  if (!graph) return null_pointer(function, "modelRI");
  if (strict()) report_dead(function, graph, Kind::Model);
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011", "%s failed because %p is not a live model.",
                function, static_cast<void*>(graph));
}

#define ACLSIM_MODEL(name, handle)         \
  auto* name = static_cast<Graph*>(handle); \
  if (!name || !name->is(Kind::Model)) return not_a_model(__func__, name)

aclError check_complete(const char* function, Graph* graph) {
  if (graph->content->branch) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                  "%s failed because the model is a branch of another one.", function);
  }
  if (graph->content->complete) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_MODEL_CAPTURED, "EE1018",
                "%s failed because the model is still being captured.", function);
}

aclError invalidate(Capture* capture, aclError code, const char* id, const char* function,
                    const char* why) {
  if (capture) capture->invalid.store(true);
  return failed(code, id, "%s failed because %s.", function, why);
}

aclError check_begin(const char* function, aclrtStream handle, aclmdlRICaptureMode mode,
                     Stream* stream) {
  if (mode < ACL_MODEL_RI_CAPTURE_MODE_GLOBAL || mode > ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because mode %d is not an aclmdlRICaptureMode.", function, mode);
  }
  if (handle == stream->context->default_stream) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011",
                  "%s failed because a context's default stream cannot be captured.", function);
  }
  constexpr uint32_t kForeign =
      ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;
  if (stream->flags & kForeign) {
    return failed(ACL_ERROR_RT_INTERNAL_ERROR, "EE1011",
                  "%s failed because streams with flags %#x cannot be captured.", function,
                  stream->flags);
  }
  if (!recording(stream)) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_STREAM_CAPTURED, "EE1018",
                "%s failed because stream %d is captured already.", function, stream->id);
}

// Why a capture cannot end in a model, or success.
aclError check_end(const char* function, Stream* stream, Capture* capture) {
  if (capture->origin != stream) {
    return failed(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, "EE1018",
                  "%s failed because stream %d joined the capture; it ends on stream %d.", function,
                  stream->id, capture->origin->id);
  }
  const char* why = nullptr;
  aclError code = ACL_SUCCESS;
  if (capture->mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED &&
      capture->thread_id != thread()->thread_id) {
    code = ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD;
    why = "another thread began the capture, and its mode is not relaxed";
  } else if (capture->invalid.load()) {
    code = ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED;
    why = "an earlier error made the capture invalid";
  } else if (unjoined(*capture)) {
    code = ACL_ERROR_RT_STREAM_UNJOINED;
    why = "work of another stream is not joined: let this stream wait for an event of it";
  }
  return why ? failed(code, "EE1018", "%s failed because %s.", function, why) : ACL_SUCCESS;
}

void append_json(std::string* text, const Node& node, size_t i) {
  char line[160];
  snprintf(line, sizeof line, "%s\n    {\"task\": %zu, \"stream\": %d, \"name\": \"%s\"}",
           i ? "," : "", i, node.stream, node.task->name ? node.task->name : "task");
  *text += line;
}

}  // namespace

bool still_captured(const CapturedRecord& record) {
  if (!record.capture || !captures().count.load()) return false;
  std::lock_guard<std::mutex> lock(captures().mutex);
  for (Capture* capture : captures().active) {
    if (capture->serial == record.capture) return true;
  }
  return false;
}

aclError capture_record(const char* function, Stream* stream, CapturedRecord* record) {
  Capture* capture = capture_of(stream);
  if (!capture) {
    return failed(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "EE1018",
                  "%s failed because stream %d re-issues tasks of a model.", function, stream->id);
  }
  std::lock_guard<std::mutex> lock(capture->mutex);
  record->capture = capture->serial;
  record->progress = capture->known[capture->place_of(stream)];
  return ACL_SUCCESS;
}

aclError capture_wait(const char* function, Stream* stream, const CapturedRecord& record) {
  Capture* mine = capture_of(stream);
  Capture* theirs = nullptr;
  {
    std::lock_guard<std::mutex> lock(captures().mutex);
    for (Capture* one : captures().active) {
      if (one->serial == record.capture) theirs = one;
    }
  }
  if (!theirs) {
    return invalidate(mine, ACL_ERROR_RT_CAPTURE_DEPENDENCY, "EE1018", function,
                      "the event was not recorded in this capture");
  }
  if (mine && mine != theirs) {
    mine->invalid.store(true);
    return invalidate(theirs, ACL_ERROR_STREAM_CAPTURE_CONFLICT, "EE1018", function,
                      "the event and the stream belong to different captures");
  }
  if (stream == stream->context->default_stream) {
    return invalidate(theirs, ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, "EE1018", function,
                      "a context's default stream cannot join a capture");
  }
  std::lock_guard<std::mutex> lock(theirs->mutex);
  if (!mine) join(theirs, stream);
  merge(&theirs->known[theirs->place_of(stream)], record.progress);
  return ACL_SUCCESS;
}

aclError check_not_captured(const char* function, Stream* stream) {
  if (!recording(stream)) return ACL_SUCCESS;
  return invalidate(capture_of(stream), ACL_ERROR_RT_STREAM_CAPTURED, "EE1018", function,
                    "the stream is being captured: its work has not run");
}

aclError check_event_not_captured(const char* function, const CapturedRecord& record) {
  if (ACLSIM_LIKELY(captures().count.load() == 0)) return ACL_SUCCESS;
  std::lock_guard<std::mutex> lock(captures().mutex);
  for (Capture* capture : captures().active) {
    if (capture->serial != record.capture) continue;
    return invalidate(capture, ACL_ERROR_RT_EVENT_CAPTURED, "EE1018", function,
                      "the event was recorded in a capture: it is not reached before the model runs");
  }
  return ACL_SUCCESS;
}

aclError check_device_not_captured(const char* function, int32_t device) {
  if (ACLSIM_LIKELY(captures().count.load() == 0)) return ACL_SUCCESS;
  std::lock_guard<std::mutex> lock(captures().mutex);
  for (Capture* capture : captures().active) {
    if (capture->origin->context->device != device) continue;
    return invalidate(capture, ACL_ERROR_RT_STREAM_CAPTURED, "EE1018", function,
                      "a stream of the device is being captured");
  }
  return ACL_SUCCESS;
}

aclError check_synchronous(const char* function) {
  if (ACLSIM_LIKELY(captures().count.load() == 0)) return ACL_SUCCESS;
  ThreadState* state = thread();
  if (state->capture_mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return ACL_SUCCESS;
  std::lock_guard<std::mutex> lock(captures().mutex);
  for (Capture* capture : captures().active) {
    if (capture->mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) continue;
    bool here = capture->thread_id == state->thread_id;
    bool anywhere = capture->mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL &&
                    state->capture_mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
    if (!here && !anywhere) continue;
    return invalidate(capture, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "EE1018", function,
                      "a capture goes on whose mode forbids synchronous work");
  }
  return ACL_SUCCESS;
}

aclError check_asynchronous(const char* function, Stream* stream) {
  if (!recording(stream)) return ACL_SUCCESS;
  return invalidate(capture_of(stream), ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC, "EE1018", function,
                    "pageable host memory is copied at once, which a capture cannot note; use "
                    "memory from aclrtMallocHost");
}

}  // namespace aclsim

using namespace aclsim;

namespace {
aclError begin(Stream* on, aclmdlRICaptureMode mode, Graph* graph) {
  auto* capture = new Capture;
  capture->graph = graph;
  capture->origin = on;
  capture->thread_id = thread()->thread_id;
  capture->mode = mode;
  std::lock_guard<std::mutex> lock(captures().mutex);
  capture->serial = captures().next++;
  captures().active.insert(capture);
  captures().count.fetch_add(1);
  join(capture, on);
  return ACL_SUCCESS;
}
}  // namespace

ACLSIM_API aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
  ACLSIM_REQUIRE(stream);
  ACLSIM_STREAM(on, stream);
  aclError code = check_begin(__func__, stream, mode, on);
  return code == ACL_SUCCESS ? begin(on, mode, make_graph()) : code;
}

// Captures a branch of a conditional task.
ACLSIM_API aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI modelRI,
                                                  aclmdlRICaptureMode mode) {
  ACLSIM_REQUIRE(stream);
  ACLSIM_STREAM(on, stream);
  ACLSIM_MODEL(graph, modelRI);
  aclError code = check_begin(__func__, stream, mode, on);
  if (code != ACL_SUCCESS) return code;
  bool taken = !graph->content->branch || graph->content->complete;
  {
    std::lock_guard<std::mutex> lock(captures().mutex);
    for (Capture* one : captures().active) taken |= one->graph == graph;
  }
  if (!taken) return begin(on, mode, graph);
  return failed(ACL_ERROR_RT_MODEL_CAPTURED, "EE1018",
                "%s failed because the model is no branch of a conditional task that is still to be "
                "captured.", __func__);
}

ACLSIM_API aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI) {
  ACLSIM_REQUIRE(stream);
  ACLSIM_REQUIRE(modelRI);
  ACLSIM_STREAM(on, stream);
  Capture* capture = capture_of(on);
  if (!capture) {
    return failed(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "EE1018",
                  "%s failed because stream %d is not being captured.", __func__, on->id);
  }
  aclError code = check_end(__func__, on, capture);
  if (code == ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED) return code;
  finish(capture);
  Graph* graph = capture->graph;
  delete capture;
  if (code != ACL_SUCCESS) {
    graph->content->branch ? drop_tasks(graph->content) : end_graph(graph);
    return code;
  }
  graph->content->complete = true;
  *modelRI = graph;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                           aclmdlRI* modelRI) {
  ACLSIM_STREAM(on, stream);
  Capture* capture = capture_of(on);
  if (status) {
    *status = !capture                 ? ACL_MODEL_RI_CAPTURE_STATUS_NONE
              : capture->invalid.load() ? ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED
                                        : ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  }
  if (modelRI) *modelRI = capture ? capture->graph : nullptr;
  return ACL_SUCCESS;
}

// Swaps the calling thread's mode with the caller's.
ACLSIM_API aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  ACLSIM_REQUIRE(mode);
  if (*mode < ACL_MODEL_RI_CAPTURE_MODE_GLOBAL || *mode > ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because the mode is not an aclmdlRICaptureMode.", __func__);
  }
  ThreadState* state = thread();
  auto before = static_cast<aclmdlRICaptureMode>(state->capture_mode);
  state->capture_mode = *mode;
  *mode = before;
  return ACL_SUCCESS;
}

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

ACLSIM_API aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  Capture* capture = capture_of(on);
  if (!capture) {
    return failed(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "EE1018",
                  "%s failed because stream %d is not being captured.", __func__, on->id);
  }
  std::lock_guard<std::mutex> lock(capture->mutex);
  Group*& open = capture->open[capture->place_of(on)];
  if (open) {
    return invalidate(capture, ACL_ERROR_STREAM_TASK_GROUP_STATUS, "EE1018", __func__,
                      "the stream has an open group of tasks");
  }
  auto& groups = capture->graph->content->groups;
  groups.push_back(std::make_unique<Group>(Group{capture->graph, {}}));
  open = groups.back().get();
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp* handle) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_STREAM(on, stream);
  Capture* capture = capture_of(on);
  if (!capture) {
    return failed(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "EE1018",
                  "%s failed because stream %d is not being captured.", __func__, on->id);
  }
  std::lock_guard<std::mutex> lock(capture->mutex);
  Group*& open = capture->open[capture->place_of(on)];
  if (!open) {
    return invalidate(capture, ACL_ERROR_STREAM_TASK_GROUP_STATUS, "EE1018", __func__,
                      "the stream has no open group of tasks");
  }
  *handle = open;
  open = nullptr;
  return ACL_SUCCESS;
}

// Between Begin and End the stream's calls are not run: they replace the group's, in order.
ACLSIM_API aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) {
  ACLSIM_REQUIRE(handle);
  ACLSIM_STREAM(on, stream);
  aclError code = ACL_SUCCESS;
  if (capture_of(on)) return check_not_captured(__func__, on);
  if (recording(on)) code = ACL_ERROR_STREAM_TASK_GROUP_STATUS;
  if (code != ACL_SUCCESS) {
    return failed(code, "EE1018", "%s failed because the stream re-issues a group already.", __func__);
  }
  auto* group = static_cast<Group*>(handle);
  code = check_complete(__func__, group->graph);
  if (code != ACL_SUCCESS) return code;
  auto* update = new Update;
  update->group = group;
  on->recorder.store(update);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  auto* update = dynamic_cast<Update*>(on->recorder.load());
  if (!update) {
    return failed(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "EE1018",
                  "%s failed because the stream re-issues no group of tasks.", __func__);
  }
  on->recorder.store(nullptr);
  Content* content = update->group->graph->content;
  const std::vector<size_t>& places = update->group->nodes;
  bool fits = places.size() == update->tasks.size();
  for (size_t i = 0; fits && i < places.size(); ++i) {
    std::lock_guard<std::mutex> lock(content->mutex);
    fits = same_kind(content->nodes[places[i]].task, update->tasks[i]);
  }
  if (!fits) {
    size_t given = update->tasks.size();
    drop_all(&update->tasks);
    delete update;
    return failed(ACL_ERROR_RT_MODEL_UPDATE_FAILED, "EE1018",
                  "%s failed because the %zu tasks are not of the number and kind of the group's "
                  "%zu.", __func__, given, places.size());
  }
  content->running.fetch_add(1);
  return submit(on, make_task([update](Stream*) -> aclError {
    replace(update->group, &update->tasks);
    return ACL_SUCCESS;
  }, false, [update, content] {
    drop_all(&update->tasks);
    delete update;
    content->running.fetch_sub(1);
  }));
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

namespace {
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
  if (!capture) {
    return failed(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "EE1018",
                  "%s failed because stream %d is not being captured.", __func__, on->id);
  }
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
