// Whether a fault that names an operator could change anything of it; see faults.h.
#pragma once

#include "nnopbase/executor.h"
#include "nnopbase/fault_plan.h"

namespace aclsim {

template <class F>
void for_outputs(const Call& call, F f) {
  for (int i = 0; i < call.count; ++i) {
    if (!call.executor->entry->spec->params[i].output) continue;
    if (call.args[i].kind == ArgKind::Tensor && call.maybe(i)) f(call.tensor(i));
    if (call.args[i].kind != ArgKind::TensorList) continue;
    for (const Tensor* one : call.tensors(i)) f(*one);
  }
}

// Whether a fault that changes results finds any.
bool has_outputs(const Call& call);

// Rows of the first operand and columns of the second, which both end in a matrix; a batch of the
// second belongs to that of the first. False for other operands.
bool multiplies_matrices(const Call& call);

aclnnStatus cannot_apply(const Call& call, const Planted& planted, const char* why);

// Refuses a call where a fault that names its operator, whatever the device, would change nothing;
// into any operator is planted what applies to some.
aclnnStatus check_applicable(const Call& call);

}  // namespace aclsim
