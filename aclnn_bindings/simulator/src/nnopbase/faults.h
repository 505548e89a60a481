// Faults planted on purpose, so that whoever checks kernels can be checked:
// ACLSIM_FAULTS="aclnnMatmul:lastk,add:zeros". Owns what each kind does to a launch; does nothing
// unless the variable is set.
#pragma once

#include "ascendcl/common.h"

namespace aclsim {

struct Stream;

// Kinds: tail (the last elements stay unwritten), zeros, lastk (products lose their last term),
// lowacc (products accumulate in the output's precision), nan (NaN becomes 0), workspace (old
// bytes of the workspace leak into the result), past (one element beyond the output is written),
// long@N (rows longer than N are wrong), minuszero (-0 becomes +0), cutoff (16-bit results lean to
// zero), dense (strides of inputs ignored), default (scalars are taken for 1), crash, hang, code (phase 1 refuses), trap (the device fails), random (results differ by run),
// flip@N (one bit in about one of N launches), stuck@K (bit K of the first element is 1),
// slow@P (launches take P percent longer), ends (a copy takes one element too many at both ends),
// ahead (one element beyond the first input is read), spill (one byte beyond the workspace is
// written), race (launches share memory), batch (a batch of more than one rounds otherwise), split
// (work that threads share rounds otherwise), hf32 (float32 inputs lose digits, as in HF32).
// What is none of these, names no operator, is covered by an earlier one or lacks its number refuses
// every call, and says why: a fault that is not there proves nothing. One that could change nothing of
// the operator that it names refuses that operator's calls.
// Without an operator: `npu1/memory:stuck@M` (bit 4 of every 64th byte of the 64 KiB from MiB M of the
// device's memory on is 1, whatever is copied or computed there), `npu0-npu1/link:dead` (HCCL calls
// that need the link from npu0 to npu1 fail), `link:silent` (nothing comes over it), `link:corrupt@N`
// (one bit in about one of N pieces of messages flips). An allocation lies where the memory in use
// ended when it was made.
// `npu3/*:flip@100000` plants into one device (any operator of it); a fault that acts in phase 1
// (lastk, dense, default, code, workspace, spill) needs one without a device.
extern bool faults_planted;

// Phase 1, before the op's own check; a code other than success refuses.
aclnnStatus plant_before_check(Call& call);
// Phase 1, after it.
void plant_after_check(Call& call);
// Phase 2: runs the op with its fault.
aclError run_with_fault(Call& call, const Stream* stream);

}  // namespace aclsim
