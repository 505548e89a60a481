#include "nnopbase/fault_check.h"

#include <algorithm>

#include "ascendcl/dtype.h"

namespace aclsim {

bool has_outputs(const Call& call) {
  bool any = false;
  for_outputs(call, [&any](const Tensor&) { any = true; });
  return any;
}

bool multiplies_matrices(const Call& call) {
  for (int i : {0, 1}) {
    if (call.count < 2 || call.args[i].kind != ArgKind::Tensor || !call.maybe(i)) return false;
  }
  const Tensor &a = call.tensor(0), &b = call.tensor(1);
  if (a.rank < 2 || b.rank < 2 || a.dims[a.rank - 1] != b.dims[b.rank - 2]) return false;
  if (b.rank == 2) return true;
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank - 2, b.dims);
}

namespace {

// Dtypes that documents allow for what an operator writes; all where they say nothing.
uint64_t documented_results(const Call& call) {
  uint64_t dtypes = 0;
  for (int i = 0; i < call.count; ++i) {
    const ParamSpec& param = call.executor->entry->spec->params[i];
    if (param.output) dtypes |= param.dtypes ? param.dtypes : ~uint64_t{0};
  }
  return dtypes;
}

bool takes(const Call& call, ArgKind kind) {
  for (int i = 0; i < call.count; ++i) {
    if (call.args[i].kind == kind && !call.executor->entry->spec->params[i].output) return true;
  }
  return false;
}

bool is_wide_enough(uint64_t dtypes, int64_t bit) {
  for (int dtype = 0; dtype < 64; ++dtype) {
    if (!(dtypes >> dtype & 1)) continue;
    if (bit < static_cast<int64_t>(dtype_size(static_cast<aclDataType>(dtype))) * 8) return true;
  }
  return false;
}

constexpr uint64_t kHalves = dtype_bit(ACL_FLOAT16) | dtype_bit(ACL_BF16);
constexpr uint64_t kFloats = kHalves | dtype_bit(ACL_FLOAT) | dtype_bit(ACL_DOUBLE);

// Faults that act when the launch runs, on what it reads and writes.
const char* why_no_result_changes(const Call& call, const Planted& planted) {
  const uint64_t results = documented_results(call);
  if (!call.op->run) return "it runs nothing";
  switch (planted.fault) {
    case Fault::Slow: case Fault::Crash: case Fault::Hang: case Fault::Trap: return nullptr;
    default: break;
  }
  if (!has_outputs(call)) return "it writes no tensor";
  switch (planted.fault) {
    case Fault::Nan: case Fault::MinusZero:
      return results & kFloats ? nullptr : "it writes no floating-point numbers";
    case Fault::CutOff: return results & kHalves ? nullptr : "it writes no 16-bit floats";
    case Fault::Stuck:
      return is_wide_enough(results, planted.number) ? nullptr : "no result has so many bits";
    case Fault::LowAcc: return multiplies_matrices(call) ? nullptr : "it multiplies no two matrices";
    case Fault::Long: case Fault::Ends: case Fault::Ahead: case Fault::Hf32:
      return takes(call, ArgKind::Tensor) ? nullptr : "it takes no tensor";
    default: return nullptr;
  }
}

// Why a fault that names this operator would change nothing, whatever its tensors hold; or null.
const char* why_not(const Call& call, const Planted& planted) {
  switch (planted.fault) {
    case Fault::Code: case Fault::LastK: return nullptr;  // LastK: as it is planted
    case Fault::Dense: return takes(call, ArgKind::Tensor) ? nullptr : "it takes no tensor";
    case Fault::Default: return takes(call, ArgKind::Scalar) ? nullptr : "it takes no scalar";
    case Fault::Spill: return call.op->run ? nullptr : "it runs nothing";
    default: return why_no_result_changes(call, planted);
  }
}

}  // namespace

aclnnStatus cannot_apply(const Call& call, const Planted& planted, const char* why) {
  return call.fail(ACLNN_ERR_PARAM_INVALID, "ACLSIM_FAULTS: '%s' cannot apply to %s: %s.",
                   planted.text.c_str(), call.op->name, why);
}

aclnnStatus check_applicable(const Call& call) {
  const std::string name = fault_key(call.op->name);
  for (const Planted& planted : fault_plan().faults) {
    const char* why = planted.op == name ? why_not(call, planted) : nullptr;
    if (why) return cannot_apply(call, planted, why);
  }
  return ACLNN_SUCCESS;
}

}  // namespace aclsim
