// Dropout: bit masks, their application and their gradients.
#include "params/random.h"
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

aclnnStatus check_dropout(Call& c) {
  using P = params::Dropout;

  ACL_RETURN_IF_FAILED(expect_probability(c, P::p));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::out, P::input));
  return c.flag(P::train) ? expect_mask(c, P::maskOut, c.tensor(P::input).numel()) : ACLNN_SUCCESS;
}
void run_dropout(Call& c) {
  using P = params::Dropout;

  if (!c.flag(P::train)) {
    copy_tensor(c.tensor(P::out), c.tensor(P::input));
    return;
  }
  draw_mask(
      c.tensor(P::maskOut), c.tensor(P::input).numel(), c.number(P::p),
      {static_cast<uint64_t>(c.integer(P::seed)), static_cast<uint64_t>(c.integer(P::offset))});
  apply_mask(c.tensor(P::out), c.tensor(P::input), c.tensor(P::maskOut),
             kept_scale(c.number(P::p)));
}
aclnnStatus check_dropout_v3(Call& c) {
  using P = params::DropoutV3;

  ACL_RETURN_IF_FAILED(expect_probability(c, P::p));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::out, P::input));
  return expect_mask(c, P::maskOut, c.tensor(P::input).numel());
}
void run_dropout_v3(Call& c) {
  using P = params::DropoutV3;

  draw_mask(
      c.tensor(P::maskOut), c.tensor(P::input).numel(), c.number(P::p),
      {static_cast<uint64_t>(c.integer(P::seed)), static_cast<uint64_t>(c.integer(P::offset))});
  apply_mask(c.tensor(P::out), c.tensor(P::input), c.tensor(P::maskOut),
             kept_scale(c.number(P::p)));
}
// (self, mask, number, out): the number is the probability of a drop, or the scale itself.
template <bool Probability>
aclnnStatus check_apply(Call& c) {
  using P = params::DropoutBackward;

  if (Probability) ACL_RETURN_IF_FAILED(expect_probability(c, P::scale));
  ACL_RETURN_IF_FAILED(expect_mask(c, P::mask, c.tensor(P::gradOutput).numel()));
  return expect_same_shape(c, P::out, P::gradOutput);
}
template <bool Probability>
void run_apply(Call& c) {
  using P = params::DropoutBackward;

  const double scale = Probability ? kept_scale(c.number(P::scale)) : c.number(P::scale);
  apply_mask(c.tensor(P::out), c.tensor(P::gradOutput), c.tensor(P::mask), scale);
}
template <int Out>
aclnnStatus check_mask(Call& c) {
  using P = params::DropoutGenMask;

  ACL_RETURN_IF_FAILED(expect_probability(c, P::prob));
  int64_t n = 1;
  for (int64_t d : c.ints(P::shape)) {
    if (d < 0 || __builtin_mul_overflow(n, d, &n)) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "shape %s is negative or too large.",
                    shape_text(c.ints(P::shape).data,
                               static_cast<int>(std::min<int64_t>(8, c.ints(P::shape).size))));
    }
  }
  return expect_mask(c, Out, n);
}
template <int Out>
void run_mask(Call& c) {
  using P = params::DropoutGenMask;

  int64_t n = 1;
  for (int64_t d : c.ints(P::shape)) n *= d;
  draw_mask(c.tensor(Out), n, c.number(P::prob), stream_of(c, P::seed));
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnDropout, check_dropout, run_dropout)
ACLNN_OP(aclnnDropoutV3, check_dropout_v3, run_dropout_v3)
ACLNN_OP(aclnnDropoutDoMask, check_apply<true>, run_apply<true>)
ACLNN_OP(aclnnDropoutBackward, check_apply<false>, run_apply<false>)
ACLNN_OP(aclnnDropoutV3Grad, check_apply<false>, run_apply<false>)
ACLNN_OP(aclnnDropoutGenMask, check_mask<params::DropoutGenMask::out>,
         run_mask<params::DropoutGenMask::out>)
ACLNN_OP(aclnnDropoutGenMaskV2, check_mask<params::DropoutGenMaskV2::out>,
         run_mask<params::DropoutGenMaskV2::out>)
ACLNN_OP(aclnnDropoutGenMaskV2Tensor, check_mask<params::DropoutGenMaskV2Tensor::out>,
         run_mask<params::DropoutGenMaskV2Tensor::out>)
