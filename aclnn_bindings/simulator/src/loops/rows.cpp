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

Rows::Rows(const Tensor* const* tensors, int count, int axis) : tensors_(count) {
  const Tensor& first = *tensors[0];
  for (int i = 0; i < first.rank; ++i) {
    if (i == axis) continue;
    count_ *= first.dims[i];
    dims_[rank_++] = first.dims[i];
  }
  for (int k = 0; k < count; ++k) {
    const Tensor& t = *tensors[k];
    base_[k] = t.offset;
    int to = 0;
    for (int i = 0; i < t.rank; ++i) {
      if (i != axis) strides_[k][to++] = t.strides[i];
    }
  }
}

Rows Columns::blocks(std::initializer_list<const Tensor*> tensors, int axis, int64_t width) {
  Tensor parts[Rows::kMax];
  const Tensor* list[Rows::kMax];
  int count = 0;
  for (const Tensor* t : tensors) parts[count++] = *t;
  parts[count] = dense(nullptr, ACL_INT64, parts[0].dims, parts[0].rank);
  const int last = parts[0].rank - 1;
  std::fill_n(parts[count].strides, last, 0);
  for (int k = 0; k <= count; ++k) {
    parts[k].dims[last] = (parts[0].dims[last] + (k ? 0 : width - 1)) / (k ? 1 : width);
    parts[k].strides[last] *= width;
    list[k] = &parts[k];
  }
  return Rows(list, count + 1, axis);
}

}  // namespace aclsim
