// What stands behind aclrtNotify and aclrtCntNotify: a number that streams change and wait for.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "ascendcl/stream.h"

namespace aclsim {

struct Signal {
  std::mutex mutex;
  std::condition_variable changed;
  uint32_t value = 0;  // of a notify that does not count: 1 once it is set
};

struct Notify : Handle {
  uint32_t id;
  bool counting;
  std::shared_ptr<Signal>* signal;
};

Notify* make_notify(ThreadState* state, bool counting);
void end_notify(ThreadState* state, Notify* notify);
// Null, destroyed, or of the other sort.
ACLSIM_NOINLINE aclError not_a_notify(const char* function, Notify* notify);

#define ACLSIM_NOTIFY(name, handle, counts)      \
  auto* name = static_cast<Notify*>(handle);     \
  if (!name || !name->is(Kind::Notify) || name->counting != (counts)) return not_a_notify(__func__, name)

}  // namespace aclsim
