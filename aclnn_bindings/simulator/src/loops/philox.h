// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", 2011). An element's value depends on seed, offset and its place only, so threads
// and layouts don't change a stream.
#pragma once

#include "loops/block.h"

namespace aclsim {

class Philox {
 public:
  Philox(uint64_t seed, uint64_t offset) : seed_(seed), offset_(offset) {}

  // Four words for one place.
  void words(uint64_t place, uint32_t out[4]) const {
    uint32_t x[4] = {static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32),
                     static_cast<uint32_t>(offset_), static_cast<uint32_t>(offset_ >> 32)};
    uint32_t k0 = static_cast<uint32_t>(seed_), k1 = static_cast<uint32_t>(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * x[0], b = uint64_t{0xCD9E8D57u} * x[2];
      const uint32_t y0 = static_cast<uint32_t>(b >> 32) ^ x[1] ^ k0;
      const uint32_t y2 = static_cast<uint32_t>(a >> 32) ^ x[3] ^ k1;
      x[0] = y0;
      x[1] = static_cast<uint32_t>(b);
      x[2] = y2;
      x[3] = static_cast<uint32_t>(a);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; ++i) out[i] = x[i];
  }
  uint64_t integer(uint64_t place) const {
    uint32_t w[4];
    words(place, w);
    return uint64_t{w[0]} << 32 | w[1];
  }
  // In [0, 1), 24 bits as torch's float uniform: never rounds up to 1 in float.
  float unit(uint64_t place) const {
    uint32_t w[4];
    words(place, w);
    return static_cast<float>(w[0] >> 8) * 0x1p-24f;
  }
  double unit_double(uint64_t place) const {
    return static_cast<double>(integer(place) >> 11) * 0x1p-53;
  }
  // Box-Muller; one pair's cosine branch per place.
  double normal(uint64_t place) const {
    uint32_t w[4];
    words(place, w);
    const double u = (static_cast<double>((uint64_t{w[0]} << 21) ^ (w[1] >> 11)) + 1) * 0x1p-53;
    const double v = static_cast<double>((uint64_t{w[2]} << 21) ^ (w[3] >> 11)) * 0x1p-53;
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586476925 * v);
  }

 private:
  uint64_t seed_, offset_;
};

// Seed and offset from two host arguments, or from two tensors of one element and a host number that
// is added to the second.
inline Philox stream_of(const Call& c, int seed) {
  if (c.args[seed].kind != ArgKind::Tensor) {
    return {static_cast<uint64_t>(c.integer(seed)), static_cast<uint64_t>(c.integer(seed + 1))};
  }
  const auto value = [&](int i) {
    const Tensor& t = c.tensor(i);
    return static_cast<uint64_t>(t.numel() ? load_one<int64_t>(t.data, t.dtype, t.offset) : 0);
  };
  return {value(seed), value(seed + 1) + static_cast<uint64_t>(c.integer(seed + 2))};
}

}  // namespace aclsim
