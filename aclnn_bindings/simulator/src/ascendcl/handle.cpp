#include "ascendcl/handle.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <mutex>

#include "ascendcl/error.h"

namespace aclsim {

__thread ThreadState* current_thread __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

struct KindNames {
  const char* name;
  const char* c_type;
};
const KindNames kNames[kKinds] = {
    {"tensor", "aclTensor"},          {"scalar", "aclScalar"},
    {"int_array", "aclIntArray"},     {"bool_array", "aclBoolArray"},
    {"float_array", "aclFloatArray"}, {"tensor_list", "aclTensorList"},
    {"scalar_list", "aclScalarList"}, {"executor", "aclOpExecutor"},
    {"stream", "aclrtStream"},        {"event", "aclrtEvent"},
    {"context", "aclrtContext"},      {"device_memory", "device memory"},
    {"host_memory", "host memory"},   {"tensor_desc", "aclTensorDesc"},
    {"data_buffer", "aclDataBuffer"}, {"op_attr", "aclopAttr"},
    {"notify", "aclrtNotify"},        {"model", "aclmdlRI"},
    {"task", "task"},                 {"record", "record"},
};

// The rest of the process's threads; leaked on purpose, so that no destructor runs at exit
// while a worker still uses it.
struct Registry {
  std::mutex mutex;
  ThreadState* threads = nullptr;
  int64_t live[kKinds] = {};  // of threads that ended
  std::deque<Handle*> quarantined[kKinds];
  pthread_key_t key;
  Registry() { pthread_key_create(&key, [](void* state) { end_thread(state); }); }
  static void end_thread(void* state);
};

Registry& registry() {
  static Registry* made = new Registry;
  return *made;
}

// Batches of free handles that any thread may take.
struct Shared {
  std::mutex mutex;
  Handle* batches = nullptr;
};
Shared& shared(int kind) {
  static Shared* made = new Shared[kKinds];
  return made[kind];
}

constexpr size_t kQuarantine = 4096;
constexpr int kSlab = 16;

void share(Handle* first, int count, int kind) {
  first->batch_size = static_cast<uint16_t>(count);
  Shared& pool = shared(kind);
  std::lock_guard<std::mutex> lock(pool.mutex);
  first->next_batch = pool.batches;
  pool.batches = first;
}

Handle* take_batch(int kind) {
  Shared& pool = shared(kind);
  std::lock_guard<std::mutex> lock(pool.mutex);
  Handle* first = pool.batches;
  if (first) pool.batches = first->next_batch;
  return first;
}

void Registry::end_thread(void* raw) {
  auto* state = static_cast<ThreadState*>(raw);
  Registry& all = registry();
  for (int k = 0; k < kKinds; ++k) spill(state, static_cast<Kind>(k));
  std::lock_guard<std::mutex> lock(all.mutex);
  for (int k = 0; k < kKinds; ++k) all.live[k] += state->live[k].load(std::memory_order_relaxed);
  *state->link = state->next;
  if (state->next) state->next->link = state->link;
  drop_errors(state->errors);
  current_thread = nullptr;
  delete state;
}

}  // namespace

const char* kind_name(Kind kind) { return kNames[static_cast<int>(kind)].name; }
const char* kind_c_type(Kind kind) { return kNames[static_cast<int>(kind)].c_type; }

ThreadState* register_thread() {
  config();
  auto* state = new ThreadState();
  state->thread_id = static_cast<uint64_t>(syscall(SYS_gettid));
  Registry& all = registry();
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    state->next = all.threads;
    state->link = &all.threads;
    if (state->next) state->next->link = &state->next;
    all.threads = state;
  }
  pthread_setspecific(all.key, state);
  current_thread = state;
  return state;
}

Handle* refill(ThreadState* state, Kind kind, size_t size) {
  int k = static_cast<int>(kind);
  Handle* list = take_batch(k);
  int count = list ? list->batch_size : kSlab;
  if (!list) {
    size_t step = (size + 63) / 64 * 64;
    auto* slab = static_cast<char*>(aligned_alloc(64, step * kSlab));
    if (!slab) throw std::bad_alloc();
    memset(slab, 0, step * kSlab);
    for (int i = 0; i < kSlab; ++i) {
      auto* handle = new (slab + i * step) Handle();
      handle->next = list;
      list = handle;
    }
  }
  state->free[k] = list->next;
  state->free_count[k] = count - 1;
  return list;
}

void spill(ThreadState* state, Kind kind) {
  int k = static_cast<int>(kind);
  if (!state->free[k]) return;
  share(state->free[k], state->free_count[k], k);
  state->free[k] = nullptr;
  state->free_count[k] = 0;
}

void quarantine(Handle* handle, Kind kind) {
  Registry& all = registry();
  Handle* oldest = nullptr;
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    auto& queue = all.quarantined[static_cast<int>(kind)];
    queue.push_back(handle);
    if (queue.size() > kQuarantine) {
      oldest = queue.front();
      queue.pop_front();
    }
  }
  if (!oldest) return;
  oldest->next = nullptr;
  share(oldest, 1, static_cast<int>(kind));
}

int64_t live_count(Kind kind) {
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  int64_t total = all.live[static_cast<int>(kind)];
  for (ThreadState* t = all.threads; t; t = t->next) {
    total += t->live[static_cast<int>(kind)].load(std::memory_order_relaxed);
  }
  return total;
}

}  // namespace aclsim
