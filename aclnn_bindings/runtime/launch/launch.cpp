// Owns the launch: outputs, descriptors, phase 1, workspace, phase 2, and the release of each.
#include <memory>

#include "plan.h"
#include "registry.h"

namespace launch {

namespace {

constexpr uint64_t kAnySession = UINT64_MAX;  // the given addresses say no session
constexpr uint32_t kInline = 32;   // tensor slots that need no heap

int32_t status_of(uint64_t result) { return static_cast<int32_t>(result); }

// One launch. Every handle it acquires is released by its destructor, exactly once, whatever
// happened; allocated outputs are kept only on success.
class Launch {
 public:
  Launch(const Plan& plan, Stream* stream, uint64_t* slots)
      : plan_(plan), stream_(stream), slots_(slots), tensors_(inline_), lists_(inline_lists_) {
    if (plan.tensors.size() > kInline) {
      heap_.reset(new Handle[plan.tensors.size()]);
      tensors_ = heap_.get();
    }
    if (plan.lists.size() > kInline) {
      heap_lists_.reset(new Handle[plan.lists.size()]);
      lists_ = heap_lists_.get();
    }
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  ~Launch() {
    // A list destroys its members (aclDestroyTensorList document, CANN 9.1).
    uint32_t tensor = 0;
    for (uint32_t k = 0; k < made_lists_; ++k) {
      const ListSlot& list = plan_.lists[k];
      for (; tensor < list.first; ++tensor) acl.aclDestroyTensor(tensors_[tensor]);
      acl.aclDestroyTensorList(lists_[k]);
      tensor = list.first + list.count;
    }
    for (; tensor < made_tensors_; ++tensor) acl.aclDestroyTensor(tensors_[tensor]);
  }

  bool run() {
    if (!allocate_outputs()) return false;
    memcpy(frame_.words, plan_.one.frame.words, sizeof(uint64_t) * plan_.one.layout.words());
    if (describe() && prepare() && execute()) return true;
    free_outputs();
    return false;
  }

 private:
  bool allocate_outputs() {
    if (plan_.allocated == 0) return true;
    for (made_outputs_ = 0; made_outputs_ < plan_.tensors.size(); ++made_outputs_) {
      const uint64_t bytes = plan_.tensors[made_outputs_].spec.allocate;
      if (bytes == 0) continue;
      uint64_t& slot = slots_[made_outputs_];
      slot = stream_->device->allocator.allocate(stream_->pool, bytes, MT_TENSOR, MT_PHASE_OUTPUT);
      if (slot) continue;
      free_outputs();
      return false;
    }
    return true;
  }

  void free_outputs() {
    for (uint32_t k = 0; k < made_outputs_; ++k) {
      if (plan_.tensors[k].spec.allocate == 0) continue;
      stream_->device->allocator.free(slots_[k]);
      slots_[k] = 0;
    }
  }

  bool describe() {
    const size_t count = plan_.tensors.size();
    for (; made_tensors_ < count; ++made_tensors_) {
      const TensorSlot& slot = plan_.tensors[made_tensors_];
      const TensorSpec& t = slot.spec;
      // The storage's base address and an offset in elements: a view given by an address inside
      // its storage is refused by some operators with 561103.
      Handle tensor = acl.aclCreateTensor(t.dims, t.rank, t.dtype, t.strides, t.offset, t.format,
                                          t.storage_dims, t.storage_rank,
                                          reinterpret_cast<void*>(slots_[made_tensors_]));
      if (!tensor) return refuse("aclCreateTensor", made_tensors_);
      tensors_[made_tensors_] = tensor;
      if (slot.place >= 0) frame_.words[slot.place] = reinterpret_cast<uint64_t>(tensor);
    }
    for (; made_lists_ < plan_.lists.size(); ++made_lists_) {
      const ListSlot& slot = plan_.lists[made_lists_];
      Handle list = acl.aclCreateTensorList(tensors_ + slot.first, slot.count);
      if (!list) return refuse("aclCreateTensorList", slot.first);
      lists_[made_lists_] = list;
      frame_.words[slot.place] = reinterpret_cast<uint64_t>(list);
    }
    return true;
  }

  static bool refuse(const char* call, uint64_t position) {
    fail(MT_PHASE_DESCRIPTOR, MT_NULL_DESCRIPTOR, call, position);
    return false;
  }

  bool prepare() {
    const int size = plan_.one.roles[MT_ROLE_SIZE], executor = plan_.one.roles[MT_ROLE_EXECUTOR];
    if (size >= 0) frame_.words[size] = reinterpret_cast<uint64_t>(&size_);
    if (executor >= 0) frame_.words[executor] = reinterpret_cast<uint64_t>(&executor_);
    const int32_t code = status_of(plan_.one.tier(plan_.one.function, frame_.words));
    if (code == 0) return true;
    // A failed phase 1 leaves no executor behind.
    fail(MT_PHASE_ONE, code, plan_.name_one.c_str());
    return false;
  }

  bool execute() {
    uint64_t workspace = 0;
    if (size_) {
      workspace = stream_->device->allocator.allocate(stream_->pool, size_, MT_WORKSPACE,
                                                      MT_PHASE_WORKSPACE);
      // Only phase 2 releases an executor that is not repeatable; without its workspace it
      // refuses with 161001 and releases it.
      if (!workspace) return second(0), drain_messages(), false;
    }
    const int32_t code = second(workspace);
    if (code) fail(MT_PHASE_TWO, code, plan_.name.c_str(), size_);
    // Stream order makes it reusable at once: later work runs after this launch.
    if (workspace) stream_->device->allocator.free(workspace);
    if (code == 0 && launch_blocking) return synchronize(stream_) == 0;
    return code == 0;
  }

  int32_t second(uint64_t workspace) {
    if (plan_.standard_two) {
      using Second = int32_t (*)(uint64_t, uint64_t, Handle, Handle);
      return reinterpret_cast<Second>(plan_.two.function)(workspace, size_, executor_,
                                                          stream_->handle);
    }
    Frame frame = plan_.two.frame;
    const uint64_t values[] = {workspace, size_, reinterpret_cast<uint64_t>(executor_),
                               reinterpret_cast<uint64_t>(stream_->handle)};
    for (int role = 0; role < 4; ++role)
      if (plan_.two.roles[role] >= 0) frame.words[plan_.two.roles[role]] = values[role];
    return status_of(plan_.two.tier(plan_.two.function, frame.words));
  }

  const Plan& plan_;
  Stream* stream_;
  uint64_t* slots_;
  Handle* tensors_;
  Handle* lists_;
  uint32_t made_outputs_ = 0, made_tensors_ = 0, made_lists_ = 0;
  uint64_t size_ = 0;
  Handle executor_ = nullptr;
  Frame frame_;
  Handle inline_[kInline];
  Handle inline_lists_[kInline];
  std::unique_ptr<Handle[]> heap_, heap_lists_;
};

bool launch_slots(const Plan& plan, Stream* stream, uint64_t* slots) {
  if (enter(stream->context) != 0) return false;
  collect();
  if (stream->device->streams.load(std::memory_order_relaxed) > 1)
    stream->device->allocator.note(slots, plan.tensors.size(), stream);
  __atomic_fetch_add(&counts.launches, 1, __ATOMIC_RELAXED);
  // Read for words alone, so that two threads at once may take one place.
  const uint32_t at = stream->launched.load(std::memory_order_relaxed);
  stream->launched.store(at + 1, std::memory_order_relaxed);
  stream->recent[at % Stream::kRecent].store(plan.about, std::memory_order_relaxed);
  if (Launch(plan, stream, slots).run()) return true;
  __atomic_fetch_add(&counts.failed_launches, 1, __ATOMIC_RELAXED);
  return false;
}

// Holds a launch's plan and stream open, and by the plan the session: mt_stop waits for the users of
// plans too. A device's own stream closes with the session alone, so its users are not counted:
// counts that threads share are the dearest part of what a launch adds to ACL's calls.
class Underway {
 public:
  Underway(uint64_t plan_handle, uint64_t stream_handle)
      : plan(as<Plan>(plan_handle)), stream(as<Stream>(stream_handle)) {
    if (!plan || !stream) return;
    counted_ = stream != stream->device->stream;
    plan->users.fetch_add(1);
    if (counted_) stream->users.fetch_add(1);
    session_ = session.load();
    open_ = session_ && plan->session.load() == session_ && stream->session.load() == session_;
  }
  ~Underway() {
    if (!plan || !stream) return;
    if (counted_) stream->users.fetch_sub(1, std::memory_order_release);
    plan->users.fetch_sub(1, std::memory_order_release);  // last, for it holds the session
  }
  Underway(const Underway&) = delete;
  Underway& operator=(const Underway&) = delete;

  // Whether all is open and of one session; else the failure is recorded.
  bool usable(uint64_t made_in) const {
    if (!open_) return fail_state(plan && session.load() ? plan->name.c_str() : "mt_run"), false;
    if (made_in == kAnySession || made_in == session_) return true;
    return fail(MT_PHASE_STATE, MT_CLOSED_MEMORY, plan->name.c_str()), false;
  }

  Plan* const plan;
  Stream* const stream;

 private:
  uint64_t session_ = 0;
  bool open_ = false, counted_ = false;
};

bool counts_as(const Plan& plan, uint64_t given, uint64_t wanted) {
  return given == wanted ||
         (fail(MT_PHASE_ARGUMENTS, MT_WRONG_COUNT, plan.name.c_str(), wanted), false);
}

// The first allocated output's address, 1 if there is none.
uint64_t first_made(const Plan& plan, const uint64_t* slots) {
  for (size_t k = 0; plan.allocated && k < plan.tensors.size(); ++k)
    if (plan.tensors[k].spec.allocate) return slots[k];
  return 1;
}

// As `first_made`, 0 after a failure.
uint64_t run_given(uint64_t plan_handle, uint64_t stream_handle, const uint64_t* given,
                   uint64_t count, uint64_t made_in = kAnySession) {
  const Underway underway(plan_handle, stream_handle);
  if (!underway.usable(made_in)) return 0;
  const Plan& plan = *underway.plan;
  if (!counts_as(plan, count, plan.given)) return 0;
  const size_t total = plan.tensors.size();
  if (total > kInline) return fail(MT_PHASE_ARGUMENTS, MT_WRONG_COUNT, "mt_run", kInline), 0;
  uint64_t slots[kInline];
  for (size_t k = 0; k < total; ++k) slots[k] = plan.tensors[k].spec.allocate ? 0 : *given++;
  return launch_slots(plan, underway.stream, slots) ? first_made(plan, slots) : 0;
}

template <class... Address>
uint64_t run(uint64_t plan, uint64_t stream, Address... address) {
  const uint64_t given[] = {address..., 0};
  return run_given(plan, stream, given, sizeof...(Address));
}

}  // namespace

}  // namespace launch

using namespace launch;

extern "C" {

uint64_t mt_run0(uint64_t plan, uint64_t stream) { return run(plan, stream); }

uint64_t mt_run1(uint64_t plan, uint64_t stream, uint64_t a) { return run(plan, stream, a); }

uint64_t mt_run2(uint64_t plan, uint64_t stream, uint64_t a, uint64_t b) {
  return run(plan, stream, a, b);
}

uint64_t mt_run3(uint64_t plan, uint64_t stream, uint64_t a, uint64_t b, uint64_t c) {
  return run(plan, stream, a, b, c);
}

uint64_t mt_run4(uint64_t plan, uint64_t stream, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  return run(plan, stream, a, b, c, d);
}

uint64_t mt_run5(uint64_t plan, uint64_t stream, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                 uint64_t e) {
  return run(plan, stream, a, b, c, d, e);
}

uint64_t mt_run6(uint64_t plan, uint64_t stream, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                 uint64_t e, uint64_t f) {
  return run(plan, stream, a, b, c, d, e, f);
}

uint64_t mt_launch(uint64_t plan, uint64_t stream, const uint64_t* given, uint64_t count,
                   uint64_t made_in) {
  return run_given(plan, stream, given, count, made_in);
}

uint64_t mt_launch_all(uint64_t plan_handle, uint64_t stream_handle, const uint64_t* given,
                       uint64_t count, uint64_t made_in, uint64_t* made, uint64_t room) {
  const Underway underway(plan_handle, stream_handle);
  if (!underway.usable(made_in)) return 0;
  const Plan& plan = *underway.plan;
  if (!counts_as(plan, count, plan.given) || !counts_as(plan, room, plan.allocated)) return 0;
  const size_t total = plan.tensors.size();
  const std::unique_ptr<uint64_t[]> slots(new uint64_t[total + 1]);
  for (size_t k = 0; k < total; ++k) slots[k] = plan.tensors[k].spec.allocate ? 0 : *given++;
  if (!launch_slots(plan, underway.stream, slots.get())) return 0;
  for (size_t k = 0; k < total; ++k)
    if (plan.tensors[k].spec.allocate) *made++ = slots[k];
  return 1;
}

uint64_t mt_run(uint64_t plan_handle, uint64_t stream_handle, uint64_t* slots, uint64_t count) {
  const Underway underway(plan_handle, stream_handle);
  if (!underway.usable(kAnySession)) return 0;
  const Plan& plan = *underway.plan;
  if (!counts_as(plan, count, plan.tensors.size())) return 0;
  return launch_slots(plan, underway.stream, slots) ? first_made(plan, slots) : 0;
}

}  // extern "C"
