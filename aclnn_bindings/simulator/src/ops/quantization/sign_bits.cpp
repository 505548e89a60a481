// Signs of elements in bits, and back.
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// (self, size, out uint8 [size, bytes / size]): a bit per element, set where it is not negative; the
// last byte is padded with negatives.
aclnnStatus check_pack(Call& c) {
  const int64_t bytes = (c.tensor(0).numel() + 7) / 8, size = c.integer(1);
  if (size < 1 || bytes % size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "size %lld doesn't divide %lld bytes.",
                  static_cast<long long>(size), static_cast<long long>(bytes));
  }
  return expect_numel(c, 2, bytes);
}
aclError run_pack(Call& c) {
  const Numbers x = numbers(c.tensor(0));
  Integers out((x.size() + 7) / 8);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] >= 0) out[i / 8] |= int64_t{1} << (i % 8);
  }
  put(c.tensor(2), out);
  return ACL_SUCCESS;
}
// (self uint8, size, dtype, out): 1 for a set bit, -1 for another.
aclnnStatus check_unpack(Call& c) { return expect_numel(c, 3, c.tensor(0).numel() * 8); }
aclError run_unpack(Call& c) {
  const Integers bytes = integers(c.tensor(0));
  Numbers out(bytes.size() * 8);
  for (size_t i = 0; i < out.size(); ++i) out[i] = bytes[i / 8] >> (i % 8) & 1 ? 1 : -1;
  put(c.tensor(3), out);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSignBitsPack, check_pack, run_pack)
ACLNN_OP(aclnnSignBitsUnpack, check_unpack, run_unpack)
