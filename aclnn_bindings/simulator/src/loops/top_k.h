// Choices among scores: softmax, and the places of the k largest.
#pragma once

#include "loops/values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace aclsim {

// Positions of the k largest, largest first, ties in order.
inline Ints best(const float* x, int64_t n, int64_t k) {
  Ints order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return x[a] > x[b]; });
  order.resize(static_cast<size_t>(std::min(k, n)));
  return order;
}
inline void softmax(float* x, int64_t n) {
  const float top = n ? *std::max_element(x, x + n) : 0;
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - top);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(x[i] / sum);
}

}  // namespace aclsim
