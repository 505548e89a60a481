// What a capture notes and refuses: which streams take part, what comes before what, which calls
// have to wait until it ends.
#include "ascendcl/capture.h"

#include <algorithm>

#include "ascendcl/graph.h"

namespace aclsim {

Captures& captures() {
  static Captures* const all = new Captures;
  return *all;
}

Capture* capture_of(const Stream* stream) { return dynamic_cast<Capture*>(stream->recorder.load()); }

void join(Capture* capture, Stream* stream) {
  capture->streams.push_back(stream);
  capture->known.emplace_back(capture->streams.size(), 0);
  capture->open.push_back(nullptr);
  stream->recorder.store(capture);
}

namespace {
void merge(Progress* into, const Progress& other) {
  into->resize(std::max(into->size(), other.size()), 0);
  for (size_t i = 0; i < other.size(); ++i) (*into)[i] = std::max((*into)[i], other[i]);
}
}  // namespace

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
  content->nodes.push_back({task, stream->id, open[place], false});
  content->on_worker |= task->on_worker;
  known[place].resize(std::max(known[place].size(), place + 1), 0);
  ++known[place][place];
  return ACL_SUCCESS;
}

aclError invalidate(Capture* capture, aclError code, const char* id, const char* function,
                    const char* why) {
  if (capture) capture->invalid.store(true);
  return failed(code, id, "%s failed because %s.", function, why);
}

aclError not_capturing(const char* function, const Stream* stream) {
  return failed(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "EE1018",
                "%s failed because stream %d is not being captured.", function, stream->id);
}

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
