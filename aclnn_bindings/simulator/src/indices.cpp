// Index tensors: see indices.h.
#include "indices.h"

namespace aclsim {

bool read_indices(int64_t* to, const Tensor& index, int64_t size, IndexFault& fault) {
  copy_tensor(dense(to, ACL_INT64, index.dims, index.rank), index);
  for (int64_t i = 0, n = index.numel(); i < n; ++i) {
    to[i] = fault.resolve(to[i], size);
    if (to[i] < 0) return false;
  }
  return true;
}

}  // namespace aclsim
