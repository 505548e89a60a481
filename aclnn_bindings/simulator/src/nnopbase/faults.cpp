#include "nnopbase/faults.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

#include "ascendcl/config.h"
#include "ascendcl/device.h"
#include "ascendcl/dtype.h"
#include "ascendcl/hardware_faults.h"
#include "ascendcl/memory.h"
#include "nnopbase/precision.h"
#include "ascendcl/stream.h"
#include "nnopbase/executor.h"
#include "nnopbase/fault_check.h"
#include "nnopbase/fault_plan.h"

namespace aclsim {

namespace {

constexpr uint64_t kOwnWorkspace = 512;  // what the workspace fault asks for
constexpr int kFlippedBit = 3;

// `device` is kAnyDevice in phase 1, which knows none: what is planted into one device shows when
// it runs.
Planted planted_in(const Call& call, int device = kAnyDevice) {
  const std::string name = fault_key(call.op->name);
  for (const Planted& p : fault_plan().faults) {
    if ((p.op == name || p.op == "*") && (p.device == kAnyDevice || p.device == device)) return p;
  }
  return {name, Fault::None, 0, kAnyDevice, "", SIZE_MAX};
}

Fault fault_of(const Call& call) { return planted_in(call).fault; }

// Bytes of element `i` of a view, in order.
char* element(const Tensor& t, int64_t i) {
  int64_t at = t.offset;
  for (int d = t.rank - 1; d >= 0; --d) {
    at += i % t.dims[d] * t.strides[d];
    i /= t.dims[d];
  }
  return static_cast<char*>(t.data) + at * static_cast<int64_t>(dtype_size(t.dtype));
}

double read(const Tensor& t, int64_t i) {
  Scalar value{t.dtype, {}};
  std::memcpy(value.bytes, element(t, i), dtype_size(t.dtype));
  return value.real();
}

void write(const Tensor& t, int64_t i, double value) {
  char* to = element(t, i);
  const auto put = [to](auto x) { std::memcpy(to, &x, sizeof x); };
  switch (t.dtype) {
    case ACL_FLOAT: put(static_cast<float>(value)); break;
    case ACL_DOUBLE: put(value); break;
    case ACL_FLOAT16: put(to_half(static_cast<float>(value))); break;
    case ACL_BF16: put(to_bfloat(static_cast<float>(value))); break;
    default: std::memset(to, static_cast<int>(value) & 1, dtype_size(t.dtype)); break;
  }
}

const Tensor* first_input(const Call& call) {
  for (int i = 0; i < call.count; ++i) {
    if (call.executor->entry->spec->params[i].output) continue;
    if (call.args[i].kind == ArgKind::Tensor && call.maybe(i) && call.tensor(i).numel()) {
      return &call.tensor(i);
    }
  }
  return nullptr;
}

void shrink(Tensor& t, int from_end) {
  if (t.rank >= from_end) --t.dims[t.rank - from_end];
}

// Products over the last dimension of one operand and the last but one of the next: both lose the
// last term. In `addmm` and its like a term that is added comes first. False where no two operands
// are such.
bool drop_last_k(Call& call) {
  const std::string name = fault_key(call.op->name);
  const int first = name.rfind("add", 0) == 0 || name.rfind("baddbmm", 0) == 0 ? 1 : 0;
  if (call.count < first + 2) return false;
  for (int i : {first, first + 1}) {
    if (call.args[i].kind != ArgKind::Tensor || !call.maybe(i)) return false;
  }
  Tensor &a = call.tensor(first), &b = call.tensor(first + 1);
  if (!a.rank || !b.rank) return false;
  const int inner = b.rank == 1 ? 1 : 2;
  if (a.dims[a.rank - 1] != b.dims[b.rank - inner]) return false;
  if (a.dims[a.rank - 1] < 2) return true;  // nothing would be left of it
  shrink(a, 1);
  shrink(b, inner);
  return true;
}

// Accumulates in the precision of the output, or float16 for wider ones.
void accumulate_low(const Call& call) {
  if (!multiplies_matrices(call)) return;
  const Tensor &a = call.tensor(0), &b = call.tensor(1);
  const int64_t rows = a.dims[a.rank - 2], inner = a.dims[a.rank - 1], columns = b.dims[b.rank - 1];
  for_outputs(call, [&](const Tensor& out) {
    for (int64_t i = 0; i < out.numel(); ++i) {
      const int64_t row = i / columns, column = i % columns;
      const int64_t first = b.rank == 2 ? 0 : row / rows * inner;
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        const double term = read(a, row * inner + k) * read(b, (first + k) * columns + column);
        const auto next = static_cast<float>(sum + term);
        sum = out.dtype == ACL_BF16 ? to_float(to_bfloat(next)) : to_float(to_half(next));
      }
      write(out, i, sum);
    }
  });
}

void lose_nans(const Tensor& out) {
  for (int64_t i = 0; i < out.numel(); ++i) {
    const double value = read(out, i);
    if (value != value) write(out, i, 0);
  }
}

// Rows longer than the bound lose their last element: wrong results beyond one block.
void spoil_long(const Call& call, const Planted& planted) {
  const Tensor* in = first_input(call);
  if (!in || in->rank == 0 || in->dims[in->rank - 1] <= planted.number) return;
  note_strike(planted.number_in_plan);
  for_outputs(call, [](const Tensor& out) {
    if (out.numel()) write(out, out.numel() - 1, read(out, out.numel() - 1) + 1);
  });
}

void lose_minus_zeros(const Tensor& out) {
  for (int64_t i = 0; i < out.numel(); ++i) {
    if (read(out, i) == 0) write(out, i, 0);
  }
}

// 16-bit results: every second one a unit nearer to zero, as if its last bits were cut off.
void cut_off(const Tensor& out) {
  if (dtype_size(out.dtype) != 2) return;
  for (int64_t i = 0; i < out.numel(); i += 2) {
    const double value = read(out, i);
    if (value == 0 || value - value != 0) continue;
    uint16_t bits;
    std::memcpy(&bits, element(out, i), 2);
    --bits;
    std::memcpy(element(out, i), &bits, 2);
  }
}

// Inputs of rank 2 and more are read as if they were contiguous.
void ignore_strides(Call& call) {
  for (int i = 0; i < call.count; ++i) {
    const bool output = call.executor->entry->spec->params[i].output;
    if (output || call.args[i].kind != ArgKind::Tensor || !call.maybe(i)) continue;
    Tensor& t = call.tensor(i);
    int64_t step = 1;
    for (int d = t.rank - 1; t.rank > 1 && d >= 0; --d) {
      if (t.strides[d] != 0) t.strides[d] = step;
      step *= t.dims[d];
    }
  }
}

// Scalars are taken for 1, whatever they are.
void default_scalars(const Call& call) {
  for (int i = 0; i < call.count; ++i) {
    if (call.args[i].kind != ArgKind::Scalar || !call.maybe_scalar(i)) continue;
    Scalar& value = *call.args[i].scalar;
    const auto put = [&value](auto one) { std::memcpy(value.bytes, &one, sizeof one); };
    switch (value.dtype) {
      case ACL_FLOAT: put(1.0F); break;
      case ACL_DOUBLE: put(1.0); break;
      case ACL_FLOAT16: put(to_half(1)); break;
      case ACL_BF16: put(to_bfloat(1)); break;
      case ACL_COMPLEX64: put(std::complex<float>(1)); break;
      case ACL_COMPLEX128: put(std::complex<double>(1)); break;
      default: put(int64_t{1}); break;  // integers and bool: little-endian
    }
  }
}

void write_past(const Tensor& out) {
  if (!out.numel()) return;
  const size_t size = dtype_size(out.dtype);
  std::memset(element(out, out.numel() - 1) + size, 0x11, size);
}

// A copy that takes one element too many at both ends.
void copy_ends(const Call& call) {
  const Tensor* in = first_input(call);
  for_outputs(call, [in](const Tensor& out) {
    if (!in || !out.numel() || in->dtype != out.dtype) return;
    const size_t size = dtype_size(out.dtype);
    std::memcpy(element(out, 0) - size, element(*in, 0) - size, size);
    std::memcpy(element(out, out.numel() - 1) + size, element(*in, in->numel() - 1) + size, size);
  });
}

// The element behind the first input counts for the last result.
void read_ahead(const Call& call) {
  const Tensor* in = first_input(call);
  for_outputs(call, [in](const Tensor& out) {
    if (!in || !out.numel()) return;
    Scalar value{in->dtype, {}};
    const size_t size = dtype_size(in->dtype);
    std::memcpy(value.bytes, element(*in, in->numel() - 1) + size, size);
    write(out, out.numel() - 1, read(out, out.numel() - 1) + value.real());
  });
}

void spill_workspace(const Call& call) {
  if (call.workspace) static_cast<char*>(call.workspace)[call.workspace_size] = 0x11;
}

// Launches in flight at once take each other's result. One waits for another to come, or for so
// long that none is in flight.
void share_memory(const Call& call) {
  static char shared[2][16];
  static std::atomic<unsigned> arrivals{0}, inside{0};
  constexpr int kMostWaits = 300;  // ms
  for_outputs(call, [](const Tensor& out) {
    if (!out.numel()) return;
    const size_t size = dtype_size(out.dtype);
    bool meets = inside++ > 0;
    const unsigned mine = arrivals;
    std::memcpy(shared[mine % 2], element(out, 0), size);
    ++arrivals;
    for (int i = 0; i < kMostWaits && !meets; ++i, meets = arrivals > mine + 1) usleep(1000);
    std::memcpy(element(out, 0), shared[(mine + meets) % 2], size);
    --inside;
  });
}

// The first element is rounded otherwise.
void round_first(const Tensor& out) {
  if (!out.numel()) return;
  const double value = read(out, 0);
  constexpr double kStep = 1.0 / 1024;  // shows in every float type
  if (value - value == 0) write(out, 0, value + value * kStep);
}

// A batch of more than one takes another way.
void round_by_batch(const Tensor& out) {
  if (out.rank >= 2 && out.dims[0] >= 2) round_first(out);
}

void leak_workspace(const Call& call) {
  const auto* bytes = static_cast<const unsigned char*>(call.workspace);
  const unsigned char stale = bytes ? bytes[call.workspace_size - 1] : 0;
  for_outputs(call, [&](const Tensor& out) {
    if (out.numel() && stale) write(out, 0, read(out, 0) + stale);
  });
}

void scatter_noise(const Call& call) {
  static int run = 0;
  ++run;
  for_outputs(call, [&](const Tensor& out) {
    if (out.numel()) write(out, out.numel() / 2, read(out, out.numel() / 2) + 1e-2 * run);
  });
}

// Where a process begins to count launches: elsewhere in each, as a run has many processes, and a
// fault in one of N launches is not one in the first launch of each.
uint64_t first_launch() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return static_cast<uint64_t>(now) ^ static_cast<uint64_t>(getpid()) << 32;
}

// One bit of the middle element, in about one of `every` launches: a hash of the launch's number
// decides.
void flip_rarely(const Call& call, const Planted& planted) {
  static std::atomic<uint64_t> launches{first_launch()};
  uint64_t x = launches.fetch_add(1, std::memory_order_relaxed) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  x ^= x >> 31;
  if (x % static_cast<uint64_t>(planted.number) != 0) return;
  note_strike(planted.number_in_plan);
  for_outputs(call, [](const Tensor& out) {
    if (out.numel()) *element(out, out.numel() / 2) ^= 1 << kFlippedBit;
  });
}

// One bit of the first element is always 1.
void stick(const Call& call, int64_t bit) {
  for_outputs(call, [bit](const Tensor& out) {
    const auto bits = static_cast<int64_t>(dtype_size(out.dtype)) * 8;
    if (out.numel() && bit < bits) element(out, 0)[bit / 8] |= static_cast<char>(1 << bit % 8);
  });
}

// Takes `percent` of a launch's own time longer, busy all the while, as a core at a lower clock is.
aclError run_slowly(Call& call, const Stream* stream, int64_t percent) {
  const auto started = std::chrono::steady_clock::now();
  const aclError code = run_in_precision(call, stream->saturates);
  const auto own = std::chrono::steady_clock::now() - started;
  const auto end = started + own + own * percent / 100;
  while (std::chrono::steady_clock::now() < end) continue;
  return code;
}

// A store to nowhere: streams run with signals blocked, so raise() would wait for ever.
[[noreturn]] void crash() {
  volatile char* volatile nowhere = nullptr;
  *nowhere = 1;
  __builtin_trap();
}

// The last eighth of the elements, at least one, keeps what the memory held before.
aclError leave_tail(Call& call, const Stream* stream) {
  std::vector<std::pair<char*, std::string>> kept;
  for_outputs(call, [&](const Tensor& out) {
    const int64_t n = out.numel(), count = n ? std::max<int64_t>(1, n / 8) : 0;
    const size_t size = dtype_size(out.dtype);
    for (int64_t i = n - count; i < n; ++i) {
      kept.emplace_back(element(out, i), std::string(element(out, i), size));
    }
  });
  const aclError code = run_in_precision(call, stream->saturates);
  for (const auto& [to, bytes] : kept) std::memcpy(to, bytes.data(), bytes.size());
  return code;
}

// Reads 32-bit inputs in HF32; they hold what they held afterwards.
aclError read_in_hf32(Call& call, const Stream* stream) {
  std::vector<std::pair<char*, float>> kept;
  for (int i = 0; i < call.count; ++i) {
    const bool output = call.executor->entry->spec->params[i].output;
    if (output || call.args[i].kind != ArgKind::Tensor || !call.maybe(i)) continue;
    const Tensor& t = call.tensor(i);
    for (int64_t k = 0; t.dtype == ACL_FLOAT && k < t.numel(); ++k) {
      char* at = element(t, k);
      float value;
      std::memcpy(&value, at, sizeof value);
      kept.emplace_back(at, value);
      value = as_hf32(value);
      std::memcpy(at, &value, sizeof value);
    }
  }
  const aclError code = run_in_precision(call, stream->saturates);
  for (auto one = kept.rbegin(); one != kept.rend(); ++one) {
    std::memcpy(one->first, &one->second, sizeof one->second);
  }
  return code;
}

void write_to_bad_memory(const Call& call) {
  for_outputs(call, [](const Tensor& out) {
    const auto block = out.data ? find_allocation(out.data) : nullptr;
    if (block) after_write(block->base, block->size);
  });
}

bool acts_in_phase_one(Fault fault) {
  return fault == Fault::LastK || fault == Fault::Dense || fault == Fault::Default ||
         fault == Fault::Code;
}

// The others say themselves when they act.
bool acts_on_each_launch(Fault fault) {
  return !acts_in_phase_one(fault) && fault != Fault::Long && fault != Fault::Flip;
}

}  // namespace

bool faults_planted = getenv("ACLSIM_FAULTS") && *getenv("ACLSIM_FAULTS");

aclnnStatus plant_before_check(Call& call) {
  if (!fault_plan().error.empty()) {
    return call.fail(ACLNN_ERR_PARAM_INVALID, "%s.", fault_plan().error.c_str());
  }
  if (const aclnnStatus code = check_applicable(call)) return code;
  const Planted plan = planted_in(call);
  if (acts_in_phase_one(plan.fault)) note_strike(plan.number_in_plan);
  switch (plan.fault) {
    case Fault::LastK:
      if (!drop_last_k(call) && plan.op != "*") {
        return cannot_apply(call, plan, "it multiplies no two matrices");
      }
      break;
    case Fault::Dense: ignore_strides(call); break;
    case Fault::Default: default_scalars(call); break;
    case Fault::Code: return call.fail(ACLNN_ERR_INNER, "A planted fault refuses every call.");
    default: break;
  }
  return ACLNN_SUCCESS;
}

void plant_after_check(Call& call) {
  const Fault fault = fault_of(call);
  if ((fault == Fault::Workspace || fault == Fault::Spill) && !call.workspace_size) {
    call.workspace_size = kOwnWorkspace;
  }
}

aclError run_with_fault(Call& call, const Stream* stream) {
  const int device = config().visible[stream->context->device];
  const Planted plan = planted_in(call, device);
  const Fault fault = plan.fault;
  if (acts_on_each_launch(fault)) note_strike(plan.number_in_plan);
  switch (fault) {
    case Fault::Crash: crash();
    case Fault::Hang: for (;;) pause();
    case Fault::Trap: return call.trap(ACL_ERROR_RT_AICORE_EXCEPTION, "a planted fault");
    case Fault::Tail: return leave_tail(call, stream);
    case Fault::Slow: return run_slowly(call, stream, plan.number);
    case Fault::Hf32: return read_in_hf32(call, stream);
    default: break;
  }
  const aclError code = run_in_precision(call, stream->saturates);
  if (code != ACL_SUCCESS) return code;
  switch (fault) {
    case Fault::Zeros:
      for_outputs(call, [](const Tensor& out) {
        for (int64_t i = 0; i < out.numel(); ++i) write(out, i, 0);
      });
      break;
    case Fault::LowAcc: accumulate_low(call); break;
    case Fault::Nan: for_outputs(call, lose_nans); break;
    case Fault::Long: spoil_long(call, plan); break;
    case Fault::Flip: flip_rarely(call, plan); break;
    case Fault::Stuck: stick(call, plan.number); break;
    case Fault::MinusZero: for_outputs(call, lose_minus_zeros); break;
    case Fault::CutOff: for_outputs(call, cut_off); break;
    case Fault::Past: for_outputs(call, write_past); break;
    case Fault::Workspace: leak_workspace(call); break;
    case Fault::Random: scatter_noise(call); break;
    case Fault::Ends: copy_ends(call); break;
    case Fault::Ahead: read_ahead(call); break;
    case Fault::Spill: spill_workspace(call); break;
    case Fault::Race: share_memory(call); break;
    case Fault::Batch: for_outputs(call, round_by_batch); break;
    case Fault::Split:
      if (config().threads > 1) for_outputs(call, round_first);
      break;
    default: break;
  }
  write_to_bad_memory(call);
  return code;
}

}  // namespace aclsim
