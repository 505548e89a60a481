// Reductions of HCCL's dtypes over ranks, always from rank 0 up: every rank gets the same bits.
#pragma once

#include <hccl/hccl_types.h>

#include <cstddef>
#include <cstdint>

namespace aclsim {

// Bytes of one element; 0 for a dtype that does not exist.
size_t element_bytes(HcclDataType dtype);
// True where HCCL reduces the dtype (HcclAllReduce document, and bfloat16).
bool can_reduce(HcclDataType dtype);
// out[i] = in[0][i] op in[1][i] op …; `out` may be one of the inputs. 16-bit floats are summed
// in float and rounded once.
void fold(void* out, const void* const* in, uint32_t inputs, uint64_t count, HcclDataType dtype,
          HcclReduceOp op);

}  // namespace aclsim
