/* What a library must export to be the kernel of a custom operator on the simulator:
 *
 *   int AddCustom(const aclsimKernelCall *call, char *message, size_t room);
 *
 * under the operator's type, or under another name that ACLSIM_KERNELS gives:
 * AddCustom=/path/libkernels.so:my_add. It returns 0; any other value makes the stream fail as an
 * exception on the device does, with what it wrote to `message`. C and C++. */
#ifndef ACLSIM_KERNEL_H
#define ACLSIM_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A view: `data` is the address of its first element, strides count elements. Both are those of
 * dense memory, but for inputs that the operator takes with their own strides. */
typedef struct aclsimTensor {
  void *data;
  int32_t dtype;  /* aclDataType */
  int32_t format; /* aclFormat */
  int32_t rank;
  const int64_t *dims;
  const int64_t *strides;
} aclsimTensor;

typedef enum aclsimKind {
  ACLSIM_ABSENT = 0, /* an optional parameter that is null */
  ACLSIM_TENSORS,    /* of a list, or the only one */
  ACLSIM_INTS,       /* of an array, or the only one */
  ACLSIM_FLOATS,     /* double, likewise */
  ACLSIM_BOOLS,      /* uint8_t, likewise */
  ACLSIM_TEXT        /* char, ends with 0 */
} aclsimKind;

/** A parameter: `size` values of the kind's type. `is_list` tells an array or list of one from one. */
typedef struct aclsimValue {
  const char *name; /* the header's; "input 0" and its like without a header */
  aclsimKind kind;
  int32_t is_list;
  int64_t size;
  const void *values;
} aclsimValue;

typedef struct aclsimKernelCall {
  const char *type; /* of the operator */
  int32_t input_count, attribute_count, output_count;
  const aclsimValue *inputs, *attributes, *outputs;
} aclsimKernelCall;

typedef int (*aclsimKernel)(const aclsimKernelCall *call, char *message, size_t room);

#ifdef __cplusplus
}
#endif

#endif /* ACLSIM_KERNEL_H */
