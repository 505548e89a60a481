"""Bits, four-bit weights and scales packed into words."""

from __future__ import annotations

from .....spec import *
from .._words import *


def _between(rng: Generator, _pattern: str, draw: Draw) -> Array:
    """Scales that lie half way between neighbours of 10 digits, and some of more digits."""
    digits = rng.integers(1 << 10, 1 << 11, draw["N"]) + np.where(rng.random(draw["N"]) < 0.8, 0.5,
                                                                  0.75)  # fmt: skip
    return np.ldexp(digits, rng.integers(-18, -8, draw["N"]))


def _half_steps(rng: Generator, _pattern: str, draw: Draw) -> Array:
    return rng.integers(-260, 260, draw["N"]) + 0.5


@spec("aclnnTransQuantParamV3 aclnnTransQuantParamV2",
      Rule("exact", "op-plugin document npu_trans_quant_param: float32 bits with the low 13 "
           "cleared, or rounded to the nearest such number", specials=False, values="normal"),
      sizes(N=row(9, 1, 33, 1030)),
      dtypes("""scale out
                f32   u64|i64"""),
      scale=forms(each=tensor("N", "", 0.01, 2), halfway=content(_between, "halfway", "f32"),
                  one=tensor("1", "", 0.01, 2)),
      offset=optional(forms(each=tensor("N", "f32", -300, 300), one=tensor("1", "f32", -9, 9),
                            halves=content(_half_steps, "halves", "f32"))),
      roundMode=choice(0, 1), out=out("u64"))  # fmt: skip
def trans_quant_param(scale: Array, offset: Array | None = None, roundMode: int = 0) -> Array:
    """The offset, rounded and held in [-256, 255], in 9 bits from bit 37."""
    if roundMode:
        digits, exponent = np.frexp(scale)
        scale = np.ldexp(np.rint(np.ldexp(digits, 11)), exponent - 11)
    bits = scale.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    word = bits.astype(np.uint64) | np.uint64(1 << 46)
    if offset is None:
        return word
    nine = np.clip(np.rint(offset), -256, 255).astype(np.int64) & 0x1FF
    return word | nine.astype(np.uint64) << np.uint64(37)


_BITS: Final = Rule("exact", "op-plugin documents npu_sign_bits_pack, npu_sign_bits_unpack",
                    specials=False, values="normal")  # fmt: skip
_ENDS: Final = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 2.0**-24, -(2.0**-24)])


@spec("aclnnSignBitsPack", _BITS, sizes(N=row(64, 1, 8, 61, 130, 1030, 4097)),
      self=forms(plain=tensor("N", "f32 f16"),
                 ends=content(lambda rng, _, draw: rng.choice(_ENDS, draw["N"]), "ends", "")),
      size=number(1, "2 - ceil(N, 8) % 2", "ceil(N, 8)"), out=out("u8"))  # fmt: skip
def pack_signs(self: Array, size: int) -> Array:
    """Bit i of a byte, the lowest first, is set where element i is not negative; what is missing to
    whole bytes counts as negative."""
    return np.packbits(self >= 0, bitorder="little").reshape(size, -1)


@spec("aclnnSignBitsUnpack", _BITS, sizes(N=row(4, 1, 8, 33, 130, 1030)),
      self=tensor("N", "u8", 0, 255),
      size=number(1, 2, 8, "N"), dtype=choice(0, 1), out=out("dtype"))  # fmt: skip
def unpack_signs(self: Array, size: int) -> Array:
    return np.where(np.unpackbits(self, bitorder="little"), 1.0, -1.0).reshape(size, -1)


@spec("aclnnConvertWeightToINT4Pack",
      Rule("exact", "op-plugin document npu_convert_weight_to_int4pack and its test"),
      sizes({"*B": leading(4, 1, 33, "3x2")}, N=row(2, 1, 8, 33, 130)),
      weight=tensor("*B 8*N", "i32", -8, 7), weightInt4Pack=out("i32"))  # fmt: skip
def eight_to_a_word(weight: Array) -> Array:
    """Eight neighbours share a word, the first in its low bits."""
    codes = (weight.astype(np.int64) & 15).reshape(*weight.shape[:-1], -1, 8)
    total = (codes << (4 * np.arange(8))).sum(-1)
    return total.astype(np.uint32).view(np.int32)
