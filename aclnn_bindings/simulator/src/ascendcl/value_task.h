// Work on a word in device memory, as closures that a model can show and change.
#pragma once

#include "ascendcl/stream.h"
#include "ascendcl/task_names.h"

namespace aclsim {

struct ValueWrite {
  void* word;
  uint64_t value;
  aclError operator()(Stream* stream) const;
};

struct ValueWait {
  void* word;
  uint64_t value;
  uint32_t flag;
  aclError operator()(Stream* stream) const;
};

Task* make_value_write(const ValueWrite& write);
Task* make_value_wait(const ValueWait& wait);

// What the task was made of; null when it is of another kind.
template <class Body>
const Body* body_of(Task* task) {
  using Made = Closure<Body, HoldsNothing>;
  return task->replay == Made::replay ? &Made::of(task).body : nullptr;
}

aclError check_word(const char* function, void* address);
aclError check_wait_flag(const char* function, uint32_t flag);

}  // namespace aclsim
