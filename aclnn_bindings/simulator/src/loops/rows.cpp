// Row walking: see rows.h.
#include "loops/rows.h"

namespace aclsim {

Tensor unsqueezed(const Tensor& t, int axis) {
  Tensor v = t;
  for (int i = t.rank; i > axis; --i) {
    v.dims[i] = t.dims[i - 1];
    v.strides[i] = t.strides[i - 1];
  }
  v.dims[axis] = 1;
  v.strides[axis] = 1;
  v.rank = t.rank + 1;
  return v;
}

Rows::Rows(std::initializer_list<const Tensor*> tensors, int axis) {
  const Tensor& first = **tensors.begin();
  for (int i = 0; i < first.rank; ++i) {
    if (i == axis) continue;
    count_ *= first.dims[i];
    dims_[rank_++] = first.dims[i];
  }
  for (const Tensor* t : tensors) {
    base_[tensors_] = t->offset;
    int to = 0;
    for (int i = 0; i < t->rank; ++i) {
      if (i != axis) strides_[tensors_][to++] = t->strides[i];
    }
    ++tensors_;
  }
}

}  // namespace aclsim
