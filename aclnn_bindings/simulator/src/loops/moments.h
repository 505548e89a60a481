// Mean and variance of a row in torch's order (aten/src/ATen/native/cpu/moments_utils.h): Welford's
// recurrence in vectors of 32 bytes over chunks, which are joined in pairs.
#pragma once

#include "loops/lanes.h"

#include <utility>

namespace aclsim {

template <class C>
struct Moments {
  static constexpr int W = 32 / sizeof(C), kChunk = 16, kDepth = 64;
  struct Vectors {
    int64_t count = 0;
    C mean[W] = {}, squares[W] = {};

    ACL_INLINE void join(const Vectors& other) {
      const int64_t n = count + other.count;
      const C share = n ? static_cast<C>(other.count) / static_cast<C>(n) : C(0);
      for (int l = 0; l < W; ++l) {
        const C delta = other.mean[l] - mean[l], step = share * delta;
        squares[l] = fused(delta * static_cast<C>(count), step, squares[l] + other.squares[l]);
        mean[l] += step;
      }
      count = n;
    }
    ACL_INLINE void chunk(const C* x, int64_t vectors) {
      count = vectors;
      for (int64_t j = 0; j < vectors; ++j, x += W) {
        const C share = C(1) / static_cast<C>(j + 1);
        for (int l = 0; l < W; ++l) {
          const C delta = x[l] - mean[l];
          mean[l] = fused(share, delta, mean[l]);
          squares[l] = fused(delta, x[l] - mean[l], squares[l]);
        }
      }
    }
  };

  // The mean, and the sum of squared deviations by n.
  static ACL_EXACT std::pair<C, C> of(const C* x, int64_t n) {
    const int64_t vectors = n / W, chunks = (vectors + kChunk - 1) / kChunk;
    const int depth = chunks <= 2 ? 1 : 64 - __builtin_clzll(static_cast<uint64_t>(chunks - 1));
    Vectors level[kDepth];
    for (int64_t i = 0; i < chunks; ++i) {
      Vectors now;
      now.chunk(x + i * kChunk * W, std::min<int64_t>(kChunk, vectors - i * kChunk));
      level[0].join(now);
      for (int64_t j = 1, mask = i + 1; j < depth && !(mask & 1); ++j, mask >>= 1) {
        level[j].join(level[j - 1]);
        level[j - 1] = Vectors();
      }
    }
    for (int j = 1; j < depth; ++j) level[0].join(level[j]);
    return joined(level[0], x, n, vectors);
  }

 private:
  // What is left after the last vector, then each lane.
  static ACL_INLINE std::pair<C, C> joined(const Vectors& v, const C* x, int64_t n,
                                           int64_t vectors) {
    C mean = 0, squares = 0;
    int64_t count = 0;
    for (int64_t i = vectors * W; i < n; ++i) {
      const C delta = x[i] - mean;
      mean += delta / static_cast<C>(++count);
      squares += delta * (x[i] - mean);
    }
    for (int l = 0; l < W; ++l) {
      const int64_t all = count + vectors;
      const C share = all ? static_cast<C>(vectors) / static_cast<C>(all) : C(0);
      const C delta = v.mean[l] - mean;
      mean = fused(share, delta, mean);
      squares += fused((delta * delta) * share, static_cast<C>(count), v.squares[l]);
      count = all;
    }
    return {mean, squares / static_cast<C>(n)};
  }
};

}  // namespace aclsim
