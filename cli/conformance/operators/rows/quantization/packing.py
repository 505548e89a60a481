"""Bits, four-bit weights and scales packed into words."""

from __future__ import annotations

from typing import Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, spec, t, take


@spec("aclnnTransQuantParamV2 aclnnTransQuantParamV3", "out:uint64",
      uncovered="roundMode",
      tolerance="exact",
      source="op-plugin document npu_trans_quant_param: float32 bits with the low 13 cleared",
      samples=[take(scale=t(9, low=0.01, high=2), roundMode=0),
               take(scale=t(5, low=0.01, high=2), roundMode=0,
                    offset=const([200.0, -200.0, -1.0, 300.0, -300.0], "float32"))],
      dtypes=("float32",),
      specials=False,
      )  # fmt: skip
def trans_quant_param(scale: Array, offset: Array | None = None) -> Array:
    """The offset, rounded and held in [-256, 255], in 9 bits from bit 37."""
    bits = scale.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    word = bits.astype(np.uint64) | np.uint64(1 << 46)
    if offset is None:
        return word
    nine = np.clip(np.rint(offset), -256, 255).astype(np.int64) & 0x1FF
    return word | nine.astype(np.uint64) << np.uint64(37)


_BITS: Final = "op-plugin documents npu_sign_bits_pack, npu_sign_bits_unpack"


@spec("aclnnSignBitsPack", "out:uint8", tolerance="exact", specials=False,
      dtypes=("float16", "float32"), source=_BITS, samples=[
          *(take(self=t(n, dtype="float32"), size=s) for n, s in ((64, 2), (61, 1))),
          take(self=const([0.0, -0.0, 1.0, -1.0] * 8, "float32"), size=1)])  # fmt: skip
def pack_signs(self: Array, size: int) -> Array:
    """Bit i of a byte, the lowest first, is set where element i is not negative; what is missing to
    whole bytes counts as negative."""
    return np.packbits(self >= 0, bitorder="little").reshape(size, -1)


@spec("aclnnSignBitsUnpack", "out:dtype", tolerance="exact", source=_BITS,
      specials=False, samples=[take(self=const([159, 15, 0, 255], "uint8"), size=2, dtype=d)
                               for d in (0, 1)],
      )  # fmt: skip
def unpack_signs(self: Array, size: int) -> Array:
    return np.where(np.unpackbits(self, bitorder="little"), 1.0, -1.0).reshape(size, -1)


@spec("aclnnConvertWeightToINT4Pack", "weightInt4Pack:int32",
      tolerance="exact", source="op-plugin document npu_convert_weight_to_int4pack and its test",
      samples=[take(weight=t(*s, dtype="int32", low=-8, high=6)) for s in ((4, 16), (16, 64))],
      )  # fmt: skip
def eight_to_a_word(weight: Array) -> Array:
    """Eight neighbours share a word, the first in its low bits."""
    codes = (weight.astype(np.int64) & 15).reshape(*weight.shape[:-1], -1, 8)
    total = (codes << (4 * np.arange(8))).sum(-1)
    return total.astype(np.uint32).view(np.int32)
