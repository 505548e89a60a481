// Diagonals of matrices as views.
#pragma once

#include "loops/iterate.h"

#include <algorithm>
#include <cmath>

namespace aclsim {

// A matrix' diagonal as a 1-d view.
inline Tensor diagonal_of(const Tensor& t, int64_t diagonal) {
  Tensor v = t;
  const int64_t down = diagonal < 0 ? -diagonal : 0, right = diagonal > 0 ? diagonal : 0;
  v.rank = 1;
  v.offset += down * t.strides[0] + right * t.strides[1];
  v.dims[0] = std::max<int64_t>(0, std::min(t.dims[0] - down, t.dims[1] - right));
  v.strides[0] = t.strides[0] + t.strides[1];
  return v;
}

}  // namespace aclsim
