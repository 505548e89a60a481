// What a captured model is made of, for the files that make, run and change models.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>

#include "ascendcl/capture.h"

namespace aclsim {

struct Node {
  Task* task;
  int32_t stream;
  const struct Group* group;  // that it was noted in, or null
  bool disabled;              // by aclmdlRITaskDisable and aclmdlRIUpdate
};

struct Graph;

// A task as the program names it. What is asked of it waits for aclmdlRIUpdate.
struct ModelTask {
  Graph* graph;
  size_t place;  // among the model's nodes
  bool disable = false;
  Task* next = nullptr;
};

// A stream by which the program asks for a model's tasks; the model runs on another. The context
// may end before the model, hence the number.
struct ModelStream {
  Graph* graph;
  Stream* stream;
  int32_t id, captured;
};

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
  std::vector<int32_t> captured;  // ids of the streams that took part, the origin first
  std::vector<std::unique_ptr<ModelTask>> tasks;
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

struct Captures {
  std::mutex mutex;
  std::set<Condition*> conditions;
  std::set<ModelTask*> tasks;
  std::vector<ModelStream> streams;
  std::set<Capture*> active;
  std::atomic<int32_t> count{0};
  uint64_t next = 1;
};
Captures& captures();

Capture* capture_of(const Stream* stream);
// The stream's tasks go to the capture from here on.
void join(Capture* capture, Stream* stream);
// Marks the capture, where there is one, as invalid; gives `code` with its text.
aclError invalidate(Capture* capture, aclError code, const char* id, const char* function,
                    const char* why);
aclError not_capturing(const char* function, const Stream* stream);

Graph* make_graph();
void end_graph(Graph* graph);
void drop_tasks(Content* content);
// Lets go of the tasks and streams by which the program knows the model.
void forget_names(Graph* graph);
// Puts another task in a node's place; the old one ends when no replay uses it.
void put_task(Content* content, size_t place, Task* task);
aclError replay(Content* content, Stream* stream);
// 107027 for a model that is still being captured, or that is a branch of another one.
aclError check_complete(const char* function, Graph* graph);
aclError not_a_model(const char* function, Graph* graph);

#define ACLSIM_MODEL(name, handle)         \
  auto* name = static_cast<Graph*>(handle); \
  if (!name || !name->is(Kind::Model)) return not_a_model(__func__, name)

}  // namespace aclsim
