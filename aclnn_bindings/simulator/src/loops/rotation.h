// Rotations of pairs of a row's elements by the four documented modes.
#pragma once

#include "loops/values.h"

#include <algorithm>
#include <cmath>

namespace aclsim {

// out[i] = x[from[i]] cos[i] + sign[i] x[partner[i]] sin[i].
struct Turn {
  Ints from, partner;
  Floats sign;
};
enum Mode : int64_t { kHalf, kInterleave, kQuarter, kInterleaveHalf };
inline Turn turn_of(int64_t mode, int64_t n) {
  Turn t;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t half = n / 2, quarter = std::max<int64_t>(1, n / 4);
    int64_t from = i, partner = i ^ 1;
    bool first = i % 2 == 0;
    if (mode == kHalf) partner = (i + half) % n, first = i < half;
    if (mode == kQuarter) first = i / quarter % 2 == 0, partner = first ? i + quarter : i - quarter;
    if (mode == kInterleaveHalf) {
      first = i < half;
      from = first ? 2 * i : 2 * (i - half) + 1, partner = first ? from + 1 : from - 1;
    }
    t.from.push_back(from), t.partner.push_back(partner), t.sign.push_back(first ? -1.0f : 1.0f);
  }
  return t;
}
inline void turn_row(const Turn& t, const float* x, const float* cos, const float* sin, float* out) {
  for (size_t i = 0; i < t.from.size(); ++i) {
    out[i] = x[t.from[i]] * cos[i] + t.sign[i] * x[t.partner[i]] * sin[i];
  }
}

}  // namespace aclsim
