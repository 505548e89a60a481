// The interceptor's heart: what each call passes, and the layers that look at it.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "frame.h"
#include "objects.h"
#include "table.h"

namespace layers {

// What the core must know of a function beyond its signature: the few that make, change and drop
// handles, or that order work. Everything else is data.
enum class Role : uint8_t;

struct Function {
  uint32_t number;
  const Row* row;
  const Parameter* parameters;
  const char* name;
  Role role;
};

// One call while it runs; lies in Frame::scratch between before and after.
struct Call {
  const Function* function;
  ObjectPtr object;  // a phase 2's launch; what the call made or ended
  uint64_t number;   // over all calls of the recording, from 0
  uint64_t start;    // ns, CLOCK_MONOTONIC
  uint64_t phase_one;  // number of the call that prepared a phase 2
  uint32_t detail;   // of the recording; 0: none
  uint32_t flags;
  int32_t status;
  uint32_t stack;    // of the recording; 0: none
};

uint64_t argument(const Frame& frame, const Parameter& parameter);
double real_argument(const Frame& frame, const Parameter& parameter);

template <class T>
T pointer_argument(const Frame& frame, const Function& function, int index) {
  return reinterpret_cast<T>(argument(frame, function.parameters[index]));
}

inline uint64_t integer_argument(const Frame& frame, const Function& function, int index) {
  return argument(frame, function.parameters[index]);
}

// Says why, once, and forwards every call untouched from then on.
void step_aside(const char* reason);
// A function of the install, found from the library that `shim` stands for; null: none.
void* real_named(ShimDescriptor* shim, const char* name);
const Function* function_number(uint32_t number);  // null: none

}  // namespace layers
