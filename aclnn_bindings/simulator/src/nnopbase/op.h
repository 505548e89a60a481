// The boundary between a kernel and the rest of the simulator: what an op row is, what its
// two functions see, and how they refuse. It owns no handles and does no iteration.
#pragma once

#include <acl/acl.h>
#include <aclnn/acl_meta.h>
#include <aclnn/aclnn_base.h>
#include <aclnn/opdev/op_errno.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

// Shared between the simulator's own libraries, never part of the C interface.
#define ACLSIM_SHARED __attribute__((visibility("default")))

namespace aclsim {

// Ops accept at most eight dimensions; higher ranks are refused with 161002 before an op's own
// check runs, so a kernel never sees them.
constexpr int kMaxRank = 8;

enum class Soc : uint8_t { Ascend910, Ascend310P, Ascend310B, Ascend910B, Ascend910_93, Ascend950 };

// A view as a kernel sees it. `data` is the base of the storage; `offset` and `strides` count
// elements. Read `data` when running, never keep it from phase 1: executors may be re-addressed.
struct Tensor {
  void* data;
  int64_t offset;
  int64_t storage_numel;  // elements from `data` to the end of the declared storage
  aclDataType dtype;
  aclFormat format;
  int32_t rank;
  int64_t dims[kMaxRank];
  int64_t strides[kMaxRank];
  aclTensor* origin;  // the caller's descriptor; do not touch

  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  bool contiguous() const {
    int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (dims[i] != 1 && strides[i] != expected) return dims[i] == 0 || numel() == 0;
      expected *= dims[i];
    }
    return true;
  }
  // Dimension by torch's rule: negative counts from the end.
  int64_t dim(int64_t axis) const { return dims[axis < 0 ? axis + rank : axis]; }
  bool same_shape(const Tensor& other) const {
    if (rank != other.rank) return false;
    for (int i = 0; i < rank; ++i) {
      if (dims[i] != other.dims[i]) return false;
    }
    return true;
  }
  template <class T>
  T* ptr() const {
    return static_cast<T*>(data) + offset;
  }
};

// A host value with its dtype; `as<T>()` converts numerically (complex to real takes the real part).
struct Scalar {
  aclDataType dtype;
  alignas(16) unsigned char bytes[16];

  ACLSIM_SHARED double real() const;
  ACLSIM_SHARED double imag() const;
  ACLSIM_SHARED int64_t integer() const;  // exact for the integer dtypes, truncated for floats
  ACLSIM_SHARED bool truth() const;       // any nonzero part, NaN included
};

template <class T>
struct Span {
  T* data = nullptr;
  int64_t size = 0;
  T& operator[](int64_t i) const { return data[i]; }
  T* begin() const { return data; }
  T* end() const { return data + size; }
};

enum class ArgKind : uint8_t {
  Tensor, TensorList, Scalar, ScalarList, IntArray, BoolArray, FloatArray,
  Bool, Int, Float, String, Pointer,
};

// One phase-1 argument, at its position in the header. A null handle has a null `handle`.
struct Arg {
  ArgKind kind;
  int64_t size;  // elements of a list or array
  union {
    void* handle;  // tests for null whatever the pointer kind
    Tensor* tensor;
    Tensor** tensors;  // members may be null
    Scalar* scalar;
    Scalar** scalars;
    int64_t* ints;
    bool* bools;
    float* floats;
    const char* text;
    int64_t integer;
    double number;
    bool flag;
  };
};

// The name of a parameter: its position in the header, typed by what is passed there. The
// generator writes them, `params::RmsNorm::gamma`, into params/<family>.h.
template <ArgKind K>
struct Param {
  int index;
  constexpr operator int() const { return index; }
};

// A parameter of one of these kinds, by its name or by a position that is computed.
template <ArgKind... Kinds>
struct At {
  int index;
  constexpr At(int computed) : index(computed) {}
  template <ArgKind K>
  constexpr At(Param<K> name) : index(name.index) {
    static_assert(has(K), "this parameter is of another kind");
  }
  template <ArgKind... Others>
  constexpr At(At<Others...> other) : index(other.index) {
    static_assert((has(Others) && ...), "this parameter may be of another kind");
  }
  static constexpr bool has(ArgKind kind) { return ((kind == Kinds) || ...); }
  constexpr operator int() const { return index; }
};
using TensorAt = At<ArgKind::Tensor>;
using ScalarAt = At<ArgKind::Scalar>;

struct Executor;
struct Op;

// What one call of an op carries from phase 1 to the stream. Everything in it is a copy that
// lives as long as the executor; the caller's descriptors may be gone when `run` starts.
struct Call {
  const Op* op;
  Arg* args;
  int32_t count;
  Soc soc;                     // the profile whose rules apply
  int64_t deterministic;       // ACL_OPT_DETERMINISTIC at phase 1
  bool hf32, halves;           // cubeMathType: what 32-bit factors are rounded to
  uint64_t workspace_size;     // set by `check`, bytes
  void* workspace;             // set before `run`
  void* state;                 // the op's own, see make()
  Executor* executor;

  bool null(int i) const { return args[i].handle == nullptr; }
  Tensor& tensor(TensorAt i) const { return *args[i].tensor; }
  Tensor* maybe(TensorAt i) const { return args[i].tensor; }
  Span<Tensor*> tensors(At<ArgKind::TensorList> i) const { return {args[i].tensors, size(i)}; }
  const Scalar& scalar(ScalarAt i) const { return *args[i].scalar; }
  const Scalar* maybe_scalar(ScalarAt i) const { return args[i].scalar; }
  Span<Scalar*> scalars(At<ArgKind::ScalarList> i) const { return {args[i].scalars, size(i)}; }
  Span<const int64_t> ints(At<ArgKind::IntArray> i) const { return {args[i].ints, size(i)}; }
  Span<const bool> bools(At<ArgKind::BoolArray> i) const { return {args[i].bools, size(i)}; }
  Span<const float> floats(At<ArgKind::FloatArray> i) const { return {args[i].floats, size(i)}; }
  int64_t integer(At<ArgKind::Int> i) const { return args[i].integer; }
  double number(At<ArgKind::Float> i) const { return args[i].number; }
  bool flag(At<ArgKind::Bool> i) const { return args[i].flag; }
  const char* text(At<ArgKind::String> i) const { return args[i].text; }  // null stays null
  int64_t size(int i) const { return args[i].handle ? args[i].size : 0; }  // of a list or array
  ACLSIM_SHARED const char* name(int i) const;  // the header's parameter name

  // Memory that lives as long as the executor, 16-byte aligned, not cleared.
  ACLSIM_SHARED void* scratch(size_t bytes);
  // A value-initialised state object, reachable from `run` through get<T>().
  template <class T>
  T& make() {
    static_assert(std::is_trivially_destructible<T>::value, "executor memory runs no destructors");
    state = new (scratch(sizeof(T))) T();
    return *static_cast<T*>(state);
  }
  // Only to be read: launches of one repeatable executor share it, and may run at once.
  template <class T>
  const T& get() const {
    return *static_cast<const T*>(state);
  }

  // Phase 1 refuses: records "<code title>: message" for aclGetRecentErrMsg and returns `code`.
  // The text names the parameter, what was given and what is supported.
  ACLSIM_SHARED aclnnStatus fail(aclnnStatus code, const char* format, ...) const
      __attribute__((format(printf, 3, 4)));
  // The kernel hits bad values in device memory (an index out of range): the stream turns faulty
  // with this ACL code, 507015 (AI core exception) or 507018 (AI CPU exception) as the op runs.
  ACLSIM_SHARED aclError trap(aclError code, const char* format, ...) const __attribute__((format(printf, 3, 4)));
  // For ops whose output size is only known after running (kDynamicOut): the final view dims of
  // tensor argument `i`. Phase 2 of such ops is synchronous and updates the caller's descriptor.
  ACLSIM_SHARED void resize(TensorAt i, const int64_t* dims, int rank);
};

using Check = aclnnStatus (*)(Call&);
// What a launch runs: a function that can fail, one that cannot and gives nothing, or no function.
struct Run {
  constexpr Run(aclError (*function)(Call&)) : fallible(function) {}
  constexpr Run(void (*function)(Call&)) : plain(function) {}
  constexpr Run(std::nullptr_t) {}
  constexpr explicit operator bool() const { return fallible || plain; }
  aclError operator()(Call& c) const {
    if (fallible) return fallible(c);
    plain(c);
    return ACL_SUCCESS;
  }
  aclError (*fallible)(Call&) = nullptr;
  void (*plain)(Call&) = nullptr;
};

enum OpFlags : uint32_t {
  kDynamicOut = 1,     // resize() is used; phase 2 waits for the kernel
  kNotRepeatable = 2,  // aclSetAclOpExecutorRepeatable answers 561000 (internal host copies)
  kOwnDtypes = 4,      // the documents' dtype lists are wrong or incomplete; `check` tests dtypes
  kOwnNulls = 8,       // likewise for nulls
  kOwnLimits = 16,     // limits that documents state for a product hold for some modes only
};

struct ParamSpec {
  const char* name;
  ArgKind kind;
  bool output;
  bool required;       // null answers 161001
  int8_t min_rank, max_rank;  // -1: not documented
  uint64_t dtypes;     // bit per aclDataType value; 0: not documented
};

// What a product takes away from the union of documented dtypes.
struct SocRule {
  uint32_t params;   // bit per parameter; 0 = all tensors
  uint8_t socs;      // bit per Soc
  bool only;         // these products have only `dtypes`, instead of all but them
  uint64_t dtypes;
};

struct OpSpec {
  const char* name;
  const ParamSpec* params;
  const SocRule* rules;
  uint16_t param_count, rule_count;
  uint8_t socs;      // bit per Soc that documents the op; 0: not documented
};

// One row. `check` runs in phase 1 after the generic checks (nulls, dtypes, ranks) passed and adds
// promotion, broadcast and shape rules and the workspace size; null means nothing to add.
// `run` runs once per launch on the stream; it must not allocate device memory or wait.
struct Op {
  const char* name;
  Check check;
  Run run;
  uint32_t flags;
};

// Rows are found by the generator: every `aclnnXxx` among the arguments of a macro call that
// starts in the first column and whose name starts with ACLNN_. So family macros are fine:
//   #define ACLNN_UNARY(op, fn) ACLNN_OP(op, check_unary, run_unary<fn>)
//   ACLNN_UNARY(aclnnExp, Exp)
// Use rows at namespace scope outside of any namespace.
#define ACLNN_OP(op, check, run) ACLNN_OP_FLAGS(op, check, run, 0)
#define ACLNN_OP_FLAGS(op, check, run, flags)                     \
  namespace aclsim {                                              \
  namespace rows {                                                \
  extern const Op op;                                             \
  const Op op = {#op, check, run, flags};                         \
  }                                                               \
  }

// Properties of dtypes, by aclDataType value.
ACLSIM_SHARED const char* dtype_name(aclDataType dtype);  // "DT_FLOAT", as CANN's messages spell it
ACLSIM_SHARED size_t dtype_size(aclDataType dtype);       // bytes; 0 for unknown and for sub-byte types
constexpr uint64_t dtype_bit(aclDataType dtype) {
  return dtype >= 0 && dtype < 64 ? uint64_t{1} << dtype : 0;
}
// "[2,3]" in a per-thread ring of buffers, for messages only.
ACLSIM_SHARED const char* shape_text(const int64_t* dims, int rank);
inline const char* shape_text(const Tensor& t) { return shape_text(t.dims, t.rank); }

// Threads a kernel may use (ACLSIM_THREADS, default: the CPUs this process may run on).
ACLSIM_SHARED int kernel_threads();

}  // namespace aclsim
