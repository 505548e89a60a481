// Index tensors: see indices.h.
#include "loops/indices.h"

namespace aclsim {

bool read_indices(int64_t* to, const Tensor& index, int64_t size, IndexFault& fault) {
  copy_tensor(dense(to, ACL_INT64, index.dims, index.rank), index);
  for (int64_t i = 0, n = index.numel(); i < n; ++i) {
    to[i] = fault.resolve(to[i], size);
    if (to[i] < 0) return false;
  }
  return true;
}

// Runs along the last dim, or along the axis where that is the last.
void select_slices(const Tensor& out, const Tensor& self, const int64_t* at, int axis) {
  const int64_t bytes = static_cast<int64_t>(dtype_size(self.dtype));
  const int last = out.rank - 1;
  const int64_t run = out.dims[last], runs = out.numel() / run;
  char* target = static_cast<char*>(out.data);
  const char* source = static_cast<const char*>(self.data);
  parallel_for(runs, std::max<int64_t>(1, 16384 / run), [&](int64_t begin, int64_t end) {
    Walker w(last, out.dims, begin);
    for (int64_t i = begin; i < end; ++i, w.next()) {
      const int64_t to = out.offset + w.offset(out.strides);
      if (axis == last) {
        const int64_t from = self.offset + w.offset(self.strides);
        with_width(static_cast<size_t>(bytes), [&](auto width) {
          using T = decltype(width);
          const T* s = static_cast<const T*>(self.data) + from;
          T* t = static_cast<T*>(out.data) + to;
          for (int64_t k = 0; k < run; ++k)
            t[k * out.strides[last]] = s[at[k] * self.strides[last]];
        });
        continue;
      }
      const int64_t place = w.index[axis];
      w.index[axis] = at[place];
      const int64_t from = self.offset + w.offset(self.strides);
      w.index[axis] = place;
      copy_elements(target + to * bytes, out.strides[last], source + from * bytes,
                    self.strides[last], run, static_cast<size_t>(bytes));
    }
  });
}

}  // namespace aclsim
