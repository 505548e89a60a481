#include "nnopbase/executor.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <acldvppop/acldvpp_base.h>

#include "ascendcl/capture.h"
#include "ascendcl/device.h"
#include "nnopbase/faults.h"
#include "ascendcl/memory.h"
#include "nnopbase/precision.h"
#include "nnopbase/rules.h"
#include "nnopbase/saturation.h"
#include "ascendcl/strict.h"

namespace aclsim {

struct Block {
  Block* next;
  alignas(16) char room[1];
};

struct Held {
  std::vector<std::shared_ptr<Allocation>> blocks;
};

namespace {

void release(Executor* executor) {
  while (executor->blocks) {
    Block* next = executor->blocks->next;
    free(executor->blocks);
    executor->blocks = next;
  }
  if (executor->magic.load(std::memory_order_relaxed) != dead_magic(Kind::Executor)) {
    retire(executor, Kind::Executor, Death::Destroyed);
  }
  recycle(thread(), executor, Kind::Executor);
}

void unreference(Executor* executor) {
  if (executor->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Executor* shared = executor->shared;
  release(executor);
  if (shared) unreference(shared);
}

void let_go(Executor* executor) {
  if (ACLSIM_LIKELY(!executor->held)) return;
  for (auto& block : executor->held->blocks) block->in_use.fetch_sub(1);
  delete executor->held;
  executor->held = nullptr;
}

Executor* of(Task* task) {
  return reinterpret_cast<Executor*>(reinterpret_cast<char*>(task) - offsetof(Executor, task));
}

// A null address is an exception on the device, not a crash of the process.
const char* null_address(const Call& call) {
  for (int i = 0; i < call.count; ++i) {
    const Arg& arg = call.args[i];
    if (arg.kind == ArgKind::Tensor && arg.tensor && !arg.tensor->data && arg.tensor->numel()) {
      return call.name(i);
    }
    for (int64_t m = 0; arg.kind == ArgKind::TensorList && arg.tensors && m < arg.size; ++m) {
      const Tensor* t = arg.tensors[m];
      if (t && !t->data && t->numel()) return call.name(i);
    }
  }
  return nullptr;
}

aclError replay(Task* task, Stream* stream) {
  Executor* executor = of(task);
  Call& call = executor->call;
  aclError code = ACL_SUCCESS;
  if (const char* name = null_address(call)) {
    code = call.trap(ACL_ERROR_RT_AICORE_EXCEPTION, "the address of %s is null", name);
  } else if (call.op->run) {
    code = ACLSIM_UNLIKELY(faults_planted) ? run_with_fault(call, stream)
                                           : run_in_precision(call, stream->saturates);
  }
  if (ACLSIM_UNLIKELY(stream->saturates) && code == ACL_SUCCESS) saturate(call);
  if (ACLSIM_UNLIKELY(code != ACL_SUCCESS)) set_stream_error(stream, code, executor->trap);
  return code;
}

// What profiles show of a launch: `,"in":[[dtype, format, [shape]], …],"out":[…]`.
void append_tensor(const Tensor& t, std::string* to) {
  if (to->back() != '[') *to += ',';
  *to += '[';
  append_json_text(to, dtype_name(t.dtype));
  *to += ',' + std::to_string(t.format) + ",[";
  for (int d = 0; d < t.rank; ++d) *to += (d ? "," : "") + std::to_string(t.dims[d]);
  *to += "]]";
}
void describe(const Task* task, std::string* to) {
  const Executor* executor = of(const_cast<Task*>(task));
  const Call& call = executor->call;
  for (bool output : {false, true}) {
    *to += output ? "],\"out\":[" : ",\"in\":[";
    for (int i = 0; i < call.count; ++i) {
      const Arg& arg = call.args[i];
      if (executor->entry->spec->params[i].output != output) continue;
      if (arg.kind == ArgKind::Tensor && arg.tensor) append_tensor(*arg.tensor, to);
      for (int64_t m = 0; arg.kind == ArgKind::TensorList && arg.tensors && m < arg.size; ++m) {
        if (arg.tensors[m]) append_tensor(*arg.tensors[m], to);
      }
    }
  }
  *to += ']';
}

void drop(Task* task) {
  let_go(of(task));
  unreference(of(task));
}

aclError run(Task* task, Stream* stream) {
  aclError code = replay(task, stream);
  drop(task);
  return code;
}

// The handle's life ends; the memory lives on until the queued work has run.
void end_handle(Executor* executor, Death death) {
  count_live(thread(), Kind::Executor, -1);
  if (strict()) forget_origin(executor);
  retire(executor, Kind::Executor, death);
}

aclnnStatus runtime_failure(Executor* executor, aclError code) {
  aclnnStatus status =
      failed(ACLNN_ERR_RUNTIME_ERROR, "EZ9903", "%s could not be launched: runtime error %d.",
             executor->entry->spec->name, code);
  if (!executor->repeatable) {
    end_handle(executor, Death::Launched);
    unreference(executor);
  }
  return status;
}

Tensor* copy_tensor(Executor* to, const Tensor* from) {
  if (!from) return nullptr;
  auto* made = static_cast<Tensor*>(take(to, sizeof(Tensor)));
  *made = *from;
  return made;
}

// One launch of a repeatable executor: its own tensors, because addresses may change before it
// runs; everything else is read from the original, which lives as long.
Executor* snapshot(Executor* original) {
  Executor* copy = make_executor(*original->entry);
  char* room = copy->cursor;
  copy->call = original->call;
  copy->call.executor = copy;
  copy->cursor = room;
  copy->shared = original;
  original->references.fetch_add(1, std::memory_order_relaxed);
  int count = original->call.count;
  copy->call.args = static_cast<Arg*>(take(copy, sizeof(Arg) * count));
  for (int i = 0; i < count; ++i) {
    Arg& arg = copy->call.args[i];
    arg = original->call.args[i];
    if (arg.kind == ArgKind::Tensor) {
      arg.tensor = copy_tensor(copy, arg.tensor);
    } else if (arg.kind == ArgKind::TensorList && arg.tensors) {
      auto** list = static_cast<Tensor**>(take(copy, sizeof(Tensor*) * (arg.size + 1)));
      for (int64_t m = 0; m < arg.size; ++m) list[m] = copy_tensor(copy, arg.tensors[m]);
      arg.tensors = list;
    }
  }
  return copy;
}

struct Reach {
  const char* base;
  uint64_t bytes;
};

Reach reach_of(const Tensor& t) {
  int64_t low = t.offset, high = t.offset;
  for (int d = 0; d < t.rank; ++d) {
    int64_t step = (t.dims[d] - 1) * t.strides[d];
    (step < 0 ? low : high) += step;
  }
  auto size = static_cast<int64_t>(dtype_size(t.dtype));
  return {static_cast<const char*>(t.data) + low * size,
          static_cast<uint64_t>((high - low + 1) * size)};
}

bool hold(Executor* executor, const char* name, Reach reach, const char* short_what) {
  const char* op = executor->entry->spec->name;
  Extent extent = find_extent(reach.base, reach.bytes);
  std::shared_ptr<Allocation> block = std::move(extent.block);
  char remedy[200];
  if (!block || !block->seen_by_device()) {
    snprintf(remedy, sizeof remedy, "%s of %s must lie in memory from aclrtMalloc that is still "
             "allocated.", name, op);
    report_memory("pointer-outside-device-memory", op, reach.base, reach.bytes, nullptr, remedy);
    return false;
  }
  uint64_t room = extent.bytes;
  if (reach.bytes > room) {
    snprintf(remedy, sizeof remedy, "%s of %s needs %llu bytes from there, and %llu are left.",
             name, op, static_cast<unsigned long long>(reach.bytes),
             static_cast<unsigned long long>(room));
    report_memory(short_what, op, block->base, block->asked, block->origin, remedy);
    return false;
  }
  block->in_use.fetch_add(1);
  executor->held->blocks.push_back(std::move(block));
  return true;
}

// Strict mode: every address of a launch lies in live device memory that is large enough, and
// stays marked as used until the launch has run.
bool check_addresses(Executor* executor) {
  Call& call = executor->call;
  executor->held = new Held;
  bool good = true;
  auto one = [&](const Tensor* t, int i) {
    if (t && t->numel() && t->data) {
      good &= hold(executor, call.name(i), reach_of(*t), "view-past-allocation");
    }
  };
  for (int i = 0; i < call.count; ++i) {
    const Arg& arg = call.args[i];
    if (arg.kind == ArgKind::Tensor) one(arg.tensor, i);
    for (int64_t m = 0; arg.kind == ArgKind::TensorList && arg.tensors && m < arg.size; ++m) {
      one(arg.tensors[m], i);
    }
  }
  if (call.workspace_size) {
    Reach reach{static_cast<const char*>(call.workspace), call.workspace_size};
    good &= hold(executor, "workspace", reach, "workspace-too-small");
  }
  return good;
}

ACLSIM_NOINLINE aclnnStatus dead_executor(const char* op, Executor* executor) {
  if (strict()) report_dead(op, executor, Kind::Executor);
  return failed(ACLNN_ERR_INNER, "EZ9999",
                "%s failed because %p is not a live executor: phase 2 uses an executor up.", op,
                static_cast<void*>(executor));
}

aclnnStatus bad_workspace(Executor* executor, uint64_t size, bool missing) {
  aclnnStatus code;
  if (missing) {
    if (strict()) report_misuse("workspace-missing", executor->entry->spec->name, executor,
                                Kind::Executor, "Pass device memory of the size phase 1 asked for.");
    code = executor->call.fail(ACLNN_ERR_PARAM_NULLPTR,
                               "workspace is null; phase 1 asked for %llu bytes.",
                               static_cast<unsigned long long>(executor->call.workspace_size));
  } else {
    if (strict()) report_misuse("workspace-too-small", executor->entry->spec->name, executor,
                                Kind::Executor, "Pass device memory of the size phase 1 asked for.");
    code = executor->call.fail(ACLNN_ERR_PARAM_INVALID,
                               "workspaceSize is %llu; phase 1 asked for %llu bytes.",
                               static_cast<unsigned long long>(size),
                               static_cast<unsigned long long>(executor->call.workspace_size));
  }
  // The executor is destroyed, as after every second phase.
  end_handle(executor, Death::Launched);
  unreference(executor);
  return code;
}

void apply_resize(const Executor::Resized& to) {
  aclTensor* tensor = to.tensor;
  if (!tensor || !tensor->is(Kind::Tensor) || tensor->is_wide()) return;
  tensor->view.rank = to.rank;
  int64_t step = 1;
  for (int i = to.rank - 1; i >= 0; --i) {
    tensor->view.dims[i] = to.dims[i];
    tensor->view.strides[i] = step;
    step *= to.dims[i];
  }
}
void apply_resizes(const Executor* executor) {
  for (int i = 0; i < executor->resized_count; ++i) apply_resize(executor->resized[i]);
}

ACLSIM_NOINLINE aclnnStatus abandon(Executor* executor, aclnnStatus code) {
  release(executor);
  return code;
}

}  // namespace

Executor* make_executor(Entry& entry) {
  ThreadState* state = thread();
  Executor* x = acquire<aclOpExecutor>(state, Kind::Executor);
  x->task.run = run;
  x->task.replay = replay;
  x->task.name = entry.spec->name;
  x->task.drop = drop;
  x->task.describe = describe;
  x->task.on_worker = false;
  x->entry = &entry;
  x->shared = nullptr;
  x->references.store(1, std::memory_order_relaxed);
  x->repeatable = false;
  x->trap[0] = 0;
  x->blocks = nullptr;
  x->cursor = x->room;
  x->end = x->room + sizeof x->room;
  x->misused = nullptr;
  x->resized_count = 0;
  x->held = nullptr;
  Call& call = x->call;
  call.op = entry.row;
  call.count = 0;
  call.soc = config().soc->soc;
  call.deterministic = runtime().params[ACL_OPT_DETERMINISTIC].load(std::memory_order_relaxed);
  call.hf32 = call.halves = false;
  call.workspace_size = 0;
  call.workspace = nullptr;
  call.state = nullptr;
  call.executor = x;
  return x;
}

void* executor_memory(Executor* executor, size_t bytes) {
  size_t room = bytes > 4096 ? bytes : 4096;
  auto* block = static_cast<Block*>(aligned_alloc(16, (sizeof(Block) + room + 15) / 16 * 16));
  block->next = executor->blocks;
  executor->blocks = block;
  executor->cursor = block->room + bytes;
  executor->end = block->room + room;
  return block->room;
}

aclnnStatus finish_plan(Executor* executor, int count, uint64_t* size, aclOpExecutor** out) {
  executor->call.count = count;
  if (ACLSIM_UNLIKELY(executor->misused != nullptr)) {
    if (strict()) report_dead(executor->entry->spec->name, executor->misused, executor->misused_as);
    return abandon(executor, executor->call.fail(ACLNN_ERR_PARAM_INVALID, "%p is not a live %s.",
                                                 static_cast<void*>(executor->misused),
                                                 kind_c_type(executor->misused_as)));
  }
  if (ACLSIM_UNLIKELY(!size || !out)) {
    return abandon(executor, executor->call.fail(ACLNN_ERR_PARAM_NULLPTR, "%s is null.",
                                                 size ? "executor" : "workspaceSize"));
  }
  aclnnStatus code = check_rules(executor);
  if (ACLSIM_LIKELY(code == ACL_SUCCESS) && strict()) code = check_views(executor);
  const Op* row = executor->entry->row;
  const bool faulty = ACLSIM_UNLIKELY(faults_planted) && code == ACL_SUCCESS;
  if (faulty) code = plant_before_check(executor->call);
  if (ACLSIM_LIKELY(code == ACL_SUCCESS) && row->check) code = row->check(executor->call);
  if (faulty && code == ACL_SUCCESS) plant_after_check(executor->call);
  if (ACLSIM_UNLIKELY(code != ACL_SUCCESS)) return abandon(executor, code);
  *size = executor->call.workspace_size;
  *out = static_cast<aclOpExecutor*>(executor);
  count_live(thread(), Kind::Executor, 1);
  if (strict()) remember_origin(executor);
  return ACL_SUCCESS;
}

aclnnStatus launch(Entry& entry, void* workspace, uint64_t size, aclOpExecutor* given,
                   aclrtStream handle) {
  if (ACLSIM_UNLIKELY(!given)) {
    return failed(ACLNN_ERR_PARAM_NULLPTR, "EZ1001", "%s failed because executor is null.",
                  entry.spec->name);
  }
  CallSpan span(entry.spec->name);
  Executor* executor = given;
  if (ACLSIM_UNLIKELY(!executor->is(Kind::Executor))) return dead_executor(entry.spec->name, executor);
  uint64_t needed = executor->call.workspace_size;
  if (ACLSIM_UNLIKELY(needed && (!workspace || size < needed))) {
    return bad_workspace(executor, size, !workspace);
  }
  ThreadState* state = thread();
  aclError code = ACL_SUCCESS;
  Stream* stream = find_own_stream(state, handle, entry.spec->name, &code);
  if (ACLSIM_UNLIKELY(!stream)) return runtime_failure(executor, code);
  Executor* launched = ACLSIM_UNLIKELY(executor->repeatable) ? snapshot(executor) : executor;
  launched->call.workspace = workspace;
  if (strict() && !check_addresses(launched) && strict_fails()) {
    let_go(launched);
    if (launched != executor) unreference(launched);
    return runtime_failure(executor, ACL_ERROR_RT_PARAM_INVALID);
  }
  if (ACLSIM_LIKELY(launched == executor)) end_handle(executor, Death::Launched);
  bool waits = launched->entry->row->flags & kDynamicOut;
  if (ACLSIM_UNLIKELY(waits && recording(stream))) {
    code = check_not_captured(entry.spec->name, stream);
    let_go(launched);
    unreference(launched);
    return failed(ACLNN_ERR_RUNTIME_ERROR, "EZ9903",
                  "%s cannot be captured: the shape of its output is known only after it ran "
                  "(runtime error %d).", entry.spec->name, code);
  }
  if (ACLSIM_UNLIKELY(waits)) launched->references.fetch_add(1);
  code = submit(stream, &launched->task);
  if (ACLSIM_UNLIKELY(waits)) {
    aclError ran = code == ACL_SUCCESS ? drain(stream) : code;
    if (ran == ACL_SUCCESS) apply_resizes(launched);
    unreference(launched);
    if (code == ACL_SUCCESS) code = ran;
  }
  if (ACLSIM_LIKELY(code == ACL_SUCCESS)) return ACL_SUCCESS;
  return failed(ACLNN_ERR_RUNTIME_ERROR, "EZ9903", "%s could not be launched: runtime error %d.",
                entry.spec->name, code);
}

void destroy_executor(Executor* executor) {
  end_handle(executor, Death::Destroyed);
  unreference(executor);
}

void abandon_plan(Executor* executor) { release(executor); }

const char* Call::name(int i) const { return executor->entry->spec->params[i].name; }

void* Call::scratch(size_t bytes) { return take(executor, bytes); }

// What an operator of acldvppop answers where one of ACLNN says ACLNN_ERR_PARAM_…
// (acldvpp_base.h): both count their parameter errors from …001.
aclnnStatus own_code(const char* name, aclnnStatus code) {
  const bool parameter = code == ACLNN_ERR_PARAM_NULLPTR || code == ACLNN_ERR_PARAM_INVALID;
  if (!parameter || strncmp(name, "acldvpp", 7) != 0) return code;
  return code - ACLNN_ERR_PARAM_NULLPTR + ACLDVPP_ERR_PARAM_NULLPTR;
}

aclnnStatus Call::fail(aclnnStatus code, const char* format, ...) const {
  code = own_code(executor->entry->spec->name, code);
  char text[768];
  size_t n = snprintf(text, sizeof text, "%s failed. ", executor->entry->spec->name);
  va_list args;
  va_start(args, format);
  vsnprintf(text + n, sizeof text - n, format, args);
  va_end(args);
  return failed(code, aclnn_error_id(code), "%s", text);
}

aclError Call::trap(aclError code, const char* format, ...) const {
  size_t n = snprintf(executor->trap, sizeof executor->trap, "%s: ", executor->entry->spec->name);
  va_list args;
  va_start(args, format);
  vsnprintf(executor->trap + n, sizeof executor->trap - n, format, args);
  va_end(args);
  return code;
}

void Call::resize(TensorAt i, const int64_t* dims, int rank) {
  Executor::Resized& to = executor->resized[executor->resized_count++];
  to.tensor = args[i].tensor->origin;
  to.rank = rank;
  for (int d = 0; d < rank; ++d) to.dims[d] = dims[d];
}

}  // namespace aclsim
