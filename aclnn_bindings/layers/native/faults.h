// Makes chosen calls fail, wait or run out of memory, as `--fault` asks.
#pragma once

#include "core.h"

namespace layers {

struct FaultRule;

// One rule of the settings: `GLOB NTH ACTION VALUE`, with ACTION `fail` (VALUE is the status) or
// `delay` (µs); NTH counts from 1, 0 means every call. `memory BYTES` limits device memory.
// ACTION `armed`: the call that the program chooses with `layers_fail_call` gives VALUE; the first
// armed rule that fits a function is its only one, and VALUE 0 leaves the function out.
bool add_fault(const std::string& text);
// After the table is known: which functions the rules mean.
void prepare_faults(const std::vector<Function>& functions);
bool faults_are_on();
// Whether a rule means this function, or the count of memory needs it.
bool is_faulty(const Function& function);
// Whether this call is to fail: its results are set then, and the real function is not called.
bool fault_before(Frame* frame, Call* call);
// Gives the call's results as a failure with `status`; null where it makes a handle.
void fail_call(Frame* frame, Call* call, int64_t status);
// Keeps count of device memory.
void fault_after(const Frame& frame, const Call& call);

}  // namespace layers

extern "C" {
#pragma GCC visibility push(default)
// Lets the nth call from now fail, of functions with an armed rule; 0: none. Gives how many such
// calls there were since it was called last.
uint64_t layers_fail_call(uint64_t nth);
// The function whose call was chosen and failed, or null.
const char* layers_failed_call(void);
#pragma GCC visibility pop
}
