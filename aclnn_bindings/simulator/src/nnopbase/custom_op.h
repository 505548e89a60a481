// Operators of custom packages: what the code that CANN's generator wrote for them says of one, and
// the executor that it fills. What computes them is bound by type (kernel_binding.h).
#pragma once

#include <cstdint>

#include "nnopbase/executor.h"

namespace aclsim {

// As generated code lays them out (see aclnn_<operator>.cpp of any project).
struct GeneratedTensorDesc {
  int32_t dtype, format;
};
struct GeneratedSupport {
  const GeneratedTensorDesc* inputs;
  size_t input_count;
  const GeneratedTensorDesc* outputs;
  size_t output_count;
};
struct GeneratedSocSupport {
  const GeneratedSupport* rows;
  size_t count;
};
struct GeneratedSupportList {
  const GeneratedSocSupport* socs;
  size_t count;
};

struct Binding;
struct CustomEntry;

constexpr int kMaxParameters = 128;

// What one call has beside its arguments; lies in the executor.
struct CustomCall {
  const GeneratedSupportList* supports;
  const uint32_t* socs;          // product of each of `supports`
  size_t soc_count;
  bool strict_formats;
  bool named;                    // the package names its parameters, as generated code does of late
  bool own_strides[kMaxParameters];  // by input: strides are not made dense
  int16_t input_of[kMaxParameters];  // by output: the input that is written, or -1
  void* user_handle;
  const Binding* binding;
};

// The entry of an operator type that `library` (by an address in it) calls with these parameters;
// one for the process's life. A char per parameter: 0 optional, 1 required, 2 dynamic.
struct Shape3 {
  const char* required;
  uint32_t count;
};
CustomEntry* custom_entry(const char* type, const void* address, Shape3 inputs, Shape3 outputs,
                          Shape3 attributes);

Executor* make_custom_executor(CustomEntry* entry);

// Where an input, output or attribute stands among an executor's arguments; null when there is none.
Arg* input_at(Executor* executor, size_t index);
Arg* output_at(Executor* executor, size_t index);
Arg* attribute_at(Executor* executor, size_t index);
CustomCall* custom_call(Executor* executor);

aclnnStatus finish_custom_plan(Executor* executor, uint64_t* workspace_size);

}  // namespace aclsim
