// Dropout: bit masks, their application and their gradients.
#include "loops/philox.h"
#include "loops/promote.h"
#include "loops/rows.h"

namespace aclsim {
namespace {

// Bits of a mask: packed eight to a byte in 128-bit units, or one bool per element.
int64_t packed_bytes(int64_t n) { return (n + 127) / 128 * 16; }
bool packed(const Tensor& mask) { return mask.dtype != ACL_BOOL; }
int64_t byte_place(const Tensor& mask, int64_t byte) {
  if (mask.rank == 1) return byte * mask.strides[0];
  return Walker(mask.rank, mask.dims, byte).offset(mask.strides);
}
bool bit(const Tensor& mask, const Walker& at, int64_t i) {
  if (!packed(mask)) return mask.ptr<bool>()[at.offset(mask.strides)];
  return mask.ptr<uint8_t>()[byte_place(mask, i / 8)] >> (i % 8) & 1;
}
aclnnStatus expect_mask(const Call& c, int mask, int64_t n) {
  const Tensor& m = c.tensor(mask);
  if (packed(m)
          ? m.rank >= 1 && dtype_size(m.dtype) == 1 && n >= 0 && m.numel() >= (n + 7) / 8
          : m.numel() == n) {
    return ACLNN_SUCCESS;
  }
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have %lld bytes or more, its shape is %s.",
                c.name(mask), static_cast<long long>(packed_bytes(n)), shape_text(m));
}

// Draws keep bits for n elements; the rest of a packed mask is 0. An element is kept where Bernoulli
// draws 1 for the probability of keeping, so that a dropout made of that one agrees for one seed.
void draw_mask(const Tensor& mask, int64_t n, double drop, const Philox& random) {
  const auto kept = [&](int64_t i) {
    return random.unit_double(static_cast<uint64_t>(i)) < 1 - drop;
  };
  if (!packed(mask)) {
    Walker at(mask.rank, mask.dims);
    for (int64_t i = 0; i < n; ++i, at.next()) {
      mask.ptr<bool>()[at.offset(mask.strides)] = kept(i);
    }
    return;
  }
  uint8_t* bytes = mask.ptr<uint8_t>();
  for (int64_t b = 0; b < mask.numel(); ++b) {
    uint8_t byte = 0;
    for (int k = 0; k < 8 && b * 8 + k < n; ++k) byte |= static_cast<uint8_t>(kept(b * 8 + k) << k);
    bytes[byte_place(mask, b)] = byte;
  }
}

// out = self * scale where the bit is set, else 0.
void apply_mask(const Tensor& out, const Tensor& self, const Tensor& mask, double scale) {
  parallel_for(out.numel(), 16384, [&](int64_t begin, int64_t end) {
    Walker at(out.rank, out.dims, begin);
    for (int64_t i = begin; i < end; ++i, at.next()) {
      const double x =
          load_one<double>(self.data, self.dtype, self.offset + at.offset(self.strides));
      const double y = bit(mask, at, i) ? x * scale : 0.0;
      store_one(y, out.data, out.dtype, out.offset + at.offset(out.strides));
    }
  });
}
double kept_scale(double drop) { return drop >= 1 ? 0.0 : 1 / (1 - drop); }

aclnnStatus expect_probability(const Call& c, int arg) {
  if (c.number(arg) >= 0 && c.number(arg) <= 1) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be in [0, 1], but is %g.", c.name(arg),
                c.number(arg));
}

// (input, p, train, seed, offset, out, maskOut).
aclnnStatus check_dropout(Call& c) {
  ACL_RETURN_IF_FAILED(expect_probability(c, 1));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 5, 0));
  return c.flag(2) ? expect_mask(c, 6, c.tensor(0).numel()) : ACLNN_SUCCESS;
}
aclError run_dropout(Call& c) {
  if (!c.flag(2)) {
    copy_tensor(c.tensor(5), c.tensor(0));
    return ACL_SUCCESS;
  }
  draw_mask(c.tensor(6), c.tensor(0).numel(), c.number(1),
            {static_cast<uint64_t>(c.integer(3)), static_cast<uint64_t>(c.integer(4))});
  apply_mask(c.tensor(5), c.tensor(0), c.tensor(6), kept_scale(c.number(1)));
  return ACL_SUCCESS;
}
// (input, optionalNoiseShape, p, seed, offset, out, maskOut).
aclnnStatus check_dropout_v3(Call& c) {
  ACL_RETURN_IF_FAILED(expect_probability(c, 2));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 5, 0));
  return expect_mask(c, 6, c.tensor(0).numel());
}
aclError run_dropout_v3(Call& c) {
  draw_mask(c.tensor(6), c.tensor(0).numel(), c.number(2),
            {static_cast<uint64_t>(c.integer(3)), static_cast<uint64_t>(c.integer(4))});
  apply_mask(c.tensor(5), c.tensor(0), c.tensor(6), kept_scale(c.number(2)));
  return ACL_SUCCESS;
}
// (self, mask, number, out): the number is the probability of a drop, or the scale itself.
template <bool Probability>
aclnnStatus check_apply(Call& c) {
  if (Probability) ACL_RETURN_IF_FAILED(expect_probability(c, 2));
  ACL_RETURN_IF_FAILED(expect_mask(c, 1, c.tensor(0).numel()));
  return expect_same_shape(c, 3, 0);
}
template <bool Probability>
aclError run_apply(Call& c) {
  const double scale = Probability ? kept_scale(c.number(2)) : c.number(2);
  apply_mask(c.tensor(3), c.tensor(0), c.tensor(1), scale);
  return ACL_SUCCESS;
}
// (shape, prob, seed, offset, [probDataType,] out).
template <int Out>
aclnnStatus check_mask(Call& c) {
  ACL_RETURN_IF_FAILED(expect_probability(c, 1));
  int64_t n = 1;
  for (int64_t d : c.ints(0)) {
    if (d < 0 || __builtin_mul_overflow(n, d, &n)) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "shape %s is negative or too large.",
                    shape_text(c.ints(0).data, static_cast<int>(std::min<int64_t>(8, c.ints(0).size))));
    }
  }
  return expect_mask(c, Out, n);
}
template <int Out>
aclError run_mask(Call& c) {
  int64_t n = 1;
  for (int64_t d : c.ints(0)) n *= d;
  draw_mask(c.tensor(Out), n, c.number(1), stream_of(c, 2));
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnDropout, check_dropout, run_dropout)
ACLNN_OP(aclnnDropoutV3, check_dropout_v3, run_dropout_v3)
ACLNN_OP(aclnnDropoutDoMask, check_apply<true>, run_apply<true>)
ACLNN_OP(aclnnDropoutBackward, check_apply<false>, run_apply<false>)
ACLNN_OP(aclnnDropoutV3Grad, check_apply<false>, run_apply<false>)
ACLNN_OP(aclnnDropoutGenMask, check_mask<4>, run_mask<4>)
ACLNN_OP(aclnnDropoutGenMaskV2, check_mask<5>, run_mask<5>)
ACLNN_OP(aclnnDropoutGenMaskV2Tensor, check_mask<6>, run_mask<6>)
