// Signs of elements in bits, and back.
#include "params/quantization.h"
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// (self, size, out uint8 [size, bytes / size]): a bit per element, set where it is not negative; the
// last byte is padded with negatives.
aclnnStatus check_sign_pack(Call& c) {
  using P = params::SignBitsPack;

  const int64_t bytes = (c.tensor(P::self).numel() + 7) / 8, size = c.integer(P::size);
  if (size < 1 || bytes % size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "size %lld doesn't divide %lld bytes.",
                  static_cast<long long>(size), static_cast<long long>(bytes));
  }
  return expect_numel(c, P::out, bytes);
}
void run_sign_pack(Call& c) {
  using P = params::SignBitsPack;

  const Numbers x = numbers(c.tensor(P::self));
  Integers out((x.size() + 7) / 8);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] >= 0) out[i / 8] |= int64_t{1} << (i % 8);
  }
  put(c.tensor(P::out), out);
}
// (self uint8, size, dtype, out): 1 for a set bit, -1 for another.
aclnnStatus check_unpack(Call& c) {
  using P = params::SignBitsUnpack;
  return expect_numel(c, P::out, c.tensor(P::self).numel() * 8);
}
void run_unpack(Call& c) {
  using P = params::SignBitsUnpack;

  const Integers bytes = integers(c.tensor(P::self));
  Numbers out(bytes.size() * 8);
  for (size_t i = 0; i < out.size(); ++i) out[i] = bytes[i / 8] >> (i % 8) & 1 ? 1 : -1;
  put(c.tensor(P::out), out);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSignBitsPack, check_sign_pack, run_sign_pack)
ACLNN_OP(aclnnSignBitsUnpack, check_unpack, run_unpack)
