// Faults of ACLSIM_FAULTS that belong to no operator: bad memory of a device, bad links between two.
// `npu1/memory:stuck@64`, `npu0-npu1/link:dead`; the kinds are in nnopbase/faults.h. Owns their
// syntax and what they do to bytes; knows no operator.
#pragma once

#include <cstdint>
#include <string>

#include "ascendcl/common.h"

namespace aclsim {

// From one device to another, as the driver counts them. Dead: calls fail; Silent: nothing comes.
enum class LinkFault : uint8_t { None, Dead, Silent };

// Whether `one`, a part of ACLSIM_FAULTS, is such a fault; `wrong` says why it would never strike,
// or nothing.
ACLSIM_SHARED bool parse_hardware_fault(const std::string& one, std::string* wrong);

extern ACLSIM_SHARED bool hardware_faults_planted;

// After device memory was written: bits that are stuck there have their own value again.
ACLSIM_SHARED void write_to_bad_memory(const void* at, uint64_t bytes);
inline void after_write(const void* at, uint64_t bytes) {
  if (ACLSIM_UNLIKELY(hardware_faults_planted)) write_to_bad_memory(at, bytes);
}

ACLSIM_SHARED LinkFault link_fault(int from, int to);
// After bytes came over a link: flips one bit where it is time to.
ACLSIM_SHARED void cross_link(int from, int to, char* at, uint64_t bytes);

// The fault with this number has acted: says so once per process, by a 1 at its place in the file
// that ACLSIM_STRIKES names, which is there and is of whoever asked for the faults.
ACLSIM_SHARED void note_strike(size_t number);

}  // namespace aclsim
