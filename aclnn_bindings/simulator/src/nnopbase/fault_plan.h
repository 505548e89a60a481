// What ACLSIM_FAULTS asks for, read once; owns its syntax and refuses what would never strike.
// `[npuD/]OPERATOR:KIND[@N]`, separated by commas; the kinds and their numbers are in faults.h.
// Parts that name memory or a link are ascendcl/hardware_faults.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace aclsim {

enum class Fault : uint8_t {
  None, Tail, Zeros, LastK, LowAcc, Nan, Workspace, Past, Crash, Hang, Code, Trap, Random,
  Long, MinusZero, CutOff, Dense, Default, Flip, Stuck, Slow, Ends, Ahead, Spill, Race, Batch,
  Split, Hf32,
};

constexpr int kAnyDevice = -1;

struct Planted {
  std::string op;    // as fault_key() spells it; "*" is any
  Fault fault;
  int64_t number;    // of `long`: the last row length that is right; `flip`: launches; `stuck`: bit;
                     // `slow`: percent
  int device;        // the device as the driver counts, whatever is visible to this process
  std::string text;  // as it was written
  size_t number_in_plan;
};

struct FaultPlan {
  std::vector<Planted> faults;
  std::string error;  // which part of the variable is no fault, and why
};

const FaultPlan& fault_plan();

// An operator's name in lower case without `aclnn`.
std::string fault_key(std::string name);

// Generated, sorted: the key of every operator that has a kernel.
extern const char* const operator_keys[];
extern const size_t operator_key_count;

}  // namespace aclsim
