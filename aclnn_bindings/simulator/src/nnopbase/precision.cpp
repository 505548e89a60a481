#include "nnopbase/precision.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "ascendcl/dtype.h"

namespace aclsim {
namespace {

enum CubeMathType : int64_t { kKeepDtype, kAllowLower, kUseFp16, kUseHf32, kUseFp32Add };

constexpr const char* kMode = "cubeMathType";

// Products whose matrix unit has no 32-bit floats.
bool only_halves(Soc soc) { return soc == Soc::Ascend910 || soc == Soc::Ascend310P; }

bool is(const char* name, const char* other) { return std::strcmp(name, other) == 0; }

int index_of(const OpSpec& spec, const char* name) {
  for (int i = 0; i < spec.param_count; ++i) {
    if (is(spec.params[i].name, name)) return i;
  }
  return -1;
}

// Whether a parameter is multiplied: what is added to a product is not rounded with it.
bool is_factor(const OpSpec& spec, int i) {
  const ParamSpec& param = spec.params[i];
  if (param.output || param.kind != ArgKind::Tensor) return false;
  for (const char* added : {"bias", "biasOptional", "x3", "x3Optional", "C", "scale"}) {
    if (is(param.name, added)) return false;
  }
  if (!is(param.name, "self")) return true;
  for (const char* factor : {"mat1", "batch1", "mat"}) {
    if (index_of(spec, factor) >= 0) return false;
  }
  return true;
}

template <class Fn>
void each_factor(const Call& call, const Fn& visit) {
  const OpSpec& spec = *call.executor->entry->spec;
  for (int i = 0; i < call.count && i < spec.param_count; ++i) {
    if (is_factor(spec, i) && call.maybe(i)) visit(call.tensor(i));
  }
}

bool has(const Call& call, aclDataType dtype) {
  bool there = false;
  each_factor(call, [&](const Tensor& t) { there |= t.dtype == dtype; });
  return there;
}

const char* refusal(const Call& call, int64_t mode) {
  const bool singles = has(call, ACL_FLOAT);
  if (mode < kKeepDtype || mode > kUseFp32Add) return "it is none of 0 to 4";
  if (mode == kUseFp16 && has(call, ACL_BF16)) return "USE_FP16 does not take BFLOAT16";
  if (only_halves(call.soc)) {
    if (mode == kUseHf32) return "this product has no HFLOAT32";
    if (mode == kKeepDtype && singles) return "this product does not multiply FLOAT in FLOAT";
  } else if (mode == kUseHf32 && !singles) {
    return "USE_HF32 takes FLOAT only";
  }
  return nullptr;
}

float as_half(float value) { return to_float(to_half(value)); }
// As a stream in saturation mode converts: 65504 is the largest number, and NaN is 0.
float as_saturated_half(float value) {
  return value != value ? 0.0F : as_half(std::clamp(value, -65504.0F, 65504.0F));
}

// A copy of the storage that `t` views, each number rounded; `t` reads it until the call is over.
std::unique_ptr<float[]> read_rounded(Tensor* t, float (*round)(float)) {
  const int64_t n = t->storage_numel;
  std::unique_ptr<float[]> copy(new float[static_cast<size_t>(n)]);
  const float* from = static_cast<const float*>(t->data);
  for (int64_t i = 0; i < n; ++i) copy[i] = round(from[i]);
  t->data = copy.get();
  return copy;
}

}  // namespace

float as_hf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7F800000u) == 0x7F800000u) return value;
  bits = (bits + 0x7FFu + (bits >> 12 & 1)) & ~0xFFFu;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

bool has_modes(const OpSpec& spec) { return index_of(spec, kMode) >= 0; }

aclnnStatus check_precision(Executor* x) {
  Call& call = x->call;
  const int64_t mode = call.args[index_of(*x->entry->spec, kMode)].integer;
  if (const char* why = refusal(call, mode)) {
    return call.fail(ACLNN_ERR_PARAM_INVALID, "cubeMathType %lld is not supported: %s.",
                     static_cast<long long>(mode), why);
  }
  const bool lower = mode != kKeepDtype && mode != kUseFp32Add && has(call, ACL_FLOAT);
  call.halves = lower && (mode == kUseFp16 || only_halves(call.soc));
  // Means are no products: only a unit without 32-bit floats rounds what they read.
  const bool means = std::strncmp(x->entry->spec->name, "aclnnAvgPool", 12) == 0;
  call.hf32 = lower && !call.halves && !means;
  return ACL_SUCCESS;
}

aclError run_in_precision(Call& call, bool saturates) {
  if (ACLSIM_LIKELY(!call.halves && !call.hf32)) return call.op->run(call);
  std::vector<std::pair<Tensor*, void*>> before;
  std::vector<std::unique_ptr<float[]>> copies;
  each_factor(call, [&](Tensor& t) {
    if (t.dtype != ACL_FLOAT || !t.data || !t.numel()) return;
    before.emplace_back(&t, t.data);
    const auto half = saturates ? as_saturated_half : as_half;
    copies.push_back(read_rounded(&t, call.halves ? half : as_hf32));
  });
  const aclError code = call.op->run(call);
  for (const auto& [tensor, data] : before) tensor->data = data;
  return code;
}

}  // namespace aclsim
