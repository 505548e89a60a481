// Capturing streams (aclmdlRICapture…): where a capture begins and ends, and groups of its tasks that
// can be re-issued later.

#include "ascendcl/graph.h"

using namespace aclsim;

namespace {

// Tasks that replace those of a group.
struct Update : Recorder {
  Group* group;
  std::vector<Task*> tasks;
  aclError take(Stream*, Task* task) override {
    tasks.push_back(task);
    return ACL_SUCCESS;
  }
};

uint32_t at(const Progress& progress, size_t i) { return i < progress.size() ? progress[i] : 0; }

// Some work of a stream is not joined into the origin.
bool unjoined(const Capture& capture) {
  for (size_t i = 1; i < capture.streams.size(); ++i) {
    if (at(capture.known[0], i) < at(capture.known[i], i)) return true;
  }
  return false;
}

// Lets all streams go; the model stays with the caller.
void finish(Capture* capture) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  captures().active.erase(capture);
  captures().count.fetch_sub(1);
  for (Stream* stream : capture->streams) {
    stream->recorder.store(nullptr);
    capture->graph->content->captured.push_back(stream->id);
  }
}

// The tasks of the group become those of the update; the old ones end with the replay that may
// be using them.
void replace(Group* group, std::vector<Task*>* tasks) {
  Content* content = group->graph->content;
  std::lock_guard<std::mutex> lock(content->mutex);
  for (size_t i = 0; i < tasks->size(); ++i) put_task(content, group->nodes[i], (*tasks)[i]);
  tasks->clear();
}

bool same_kind(const Task* a, const Task* b) { return a->replay == b->replay && a->name == b->name; }

void drop_all(std::vector<Task*>* tasks) {
  for (Task* task : *tasks) task->drop(task);
  tasks->clear();
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
  if (!capture) return not_capturing(__func__, on);
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

ACLSIM_API aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  Capture* capture = capture_of(on);
  if (!capture) return not_capturing(__func__, on);
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
  if (!capture) return not_capturing(__func__, on);
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
    size_t issued = update->tasks.size();
    drop_all(&update->tasks);
    delete update;
    return failed(ACL_ERROR_RT_MODEL_UPDATE_FAILED, "EE1018",
                  "%s failed because the %zu tasks are not of the number and kind of the group's "
                  "%zu.", __func__, issued, places.size());
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
