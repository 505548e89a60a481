/* What only the simulator offers: counts of what lives, for tests of leaks. C and C++. */
#ifndef ACLSIM_ACLSIM_H
#define ACLSIM_ACLSIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ACL_FUNC_VISIBILITY
#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#endif

/**
 * How many handles of a kind live: tensor, scalar, int_array, bool_array, float_array,
 * tensor_list, scalar_list, executor, stream, event, context (primary ones included),
 * device_memory, host_memory, tensor_desc, data_buffer, op_attr, notify; null: all of them together,
 * contexts excepted. -1 for a name that is none of these.
 */
ACL_FUNC_VISIBILITY int64_t aclsimLiveHandles(const char *kind);

/** How many findings strict mode has reported in this process. */
ACL_FUNC_VISIBILITY int64_t aclsimFindings(void);

/** Bytes of device memory in use and at most used so far; device ids as aclrtSetDevice's. */
ACL_FUNC_VISIBILITY uint64_t aclsimMemoryInUse(int32_t device);
ACL_FUNC_VISIBILITY uint64_t aclsimMemoryPeak(int32_t device);

/** The n-th product name that ACLSIM_SOC accepts, or null after the last. */
ACL_FUNC_VISIBILITY const char *aclsimProduct(int32_t n);

#ifdef __cplusplus
}
#endif

#endif  /* ACLSIM_ACLSIM_H */
