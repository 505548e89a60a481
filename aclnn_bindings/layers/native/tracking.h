// Keeps what the program's handles stand for up to date, call by call.
#pragma once

#include "roles.h"

namespace layers {

// What phase 1 left with its executor, for phase 2.
struct Launch : Object {
  uint32_t function = 0;   // number of phase 2
  uint32_t detail = 0;
  uint32_t stack = 0;      // of the recording
  uint64_t phase_one = 0;  // call number
  uint64_t workspace = 0;  // bytes asked for
  bool repeatable = false;
  std::vector<TensorUse> uses;  // in order of parameters; null geometry: absent or unknown
  std::vector<uint16_t> positions;  // of `uses`: the parameter that each belongs to
};
using LaunchPtr = std::shared_ptr<const Launch>;

// Bytes of an element of an ACL dtype; 0 for those below a byte.
uint32_t element_size(int32_t dtype);
// The launch behind a phase 2's executor, or null.
LaunchPtr launch_of(const void* executor);
// The tensor uses of a phase 1's parameters.
void collect_uses(const Frame& frame, const Function& function, Launch* launch);
// Handles that this call ends; before it runs, because their addresses may be given out again.
void track_before(const Frame& frame, Call* call);
// Handles that this call made or changed; after it succeeded.
void track_after(const Frame& frame, Call* call);
// Layers that look at memory need the tensors of a launch; others do without.
void keep_uses();

}  // namespace layers
