"""Quantization with given scales and offsets, and back."""

from __future__ import annotations

from .....spec import *
from .....spec import rows as rows_
from .._quantizers import powers
from .._words import *
from .dynamic import PAGES

_RULE: Final = Rule("composite", PAGES, steps=True)
_ROUND: Final = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


def _along(value: Array, x: Array, axis: int) -> Array:
    """Parameters of one dimension, as they lie over x; one serves all."""
    shape = [1] * x.ndim
    shape[axis] = value.size
    return value.reshape(shape)


def _over(axes: dict[int, str], dtype: str, low: float, high: float) -> Domain:
    """One value, or those of the dimension that axis names."""
    one = tensor("1", dtype, low, high)
    return by("axis", {at: forms(each=tensor(size, dtype, low, high), one=one)
                       for at, size in axes.items()})  # fmt: skip


def _unit(shape: str, dtype: str = "x") -> Domain:
    """Ones, which leave halves of steps what they are."""
    return powers(shape, 0, 1, dtype)


_EQUAL: Final = "not given({1}) or size({1}) == size({0})"
_LAST: Final = {-1: "N", -2: "M"}


@spec("aclnnAscendQuantV3 aclnnAscendQuant", _RULE,
      sizes({"*B": leading("-", 2, "2x3")}, M=rows_, N=row(32, 1, 8, 66, 257, 1026)),
      require(_EQUAL.format("scale", "offset"), "dstType != 29 or N % 2 == 0"),
      pin("values=halves scale=unit", "half steps"),
      pin("values=halves scale=unit dtype=float16", "half steps"),
      x=tensor("*B M N", "f16 bf16 f32"),
      scale=by("axis", {a: forms(each=tensor(n, "x", 2, 60), one=powers("1", -1, 5, "x"),
                                 unit=_unit("1"))
                        for a, n in _LAST.items()}),
      offset=optional(_over(_LAST, "x", -9, 9)), sqrtMode=flag(),
      roundMode=choice("round", "floor", "ceil", "trunc"), dstType=choice(2, 29),
      axis=choice(-1, -2), y=out("dstType"))  # fmt: skip
def ascend_quant(
    x: Array,
    scale: Array,
    offset: Array | None,
    sqrtMode: bool,
    roundMode: str,
    axis: int = -1,
) -> Array:
    """Scale and offset lie along the last dimension, or the one before by `axis`."""
    scale = _along(scale, x, axis)
    steps = x * (scale * scale if sqrtMode else scale)
    steps = steps if offset is None else steps + _along(offset, x, axis)
    return steps if roundMode == "round" else _ROUND[roundMode](steps)


@spec("aclnnAscendAntiQuant", Rule("composite", PAGES),
      sizes({"*B": leading(3, "-", "2x3")}, N=row(32, 2, 8, 66, 1026)),
      require(_EQUAL.format("scale", "offset")),
      dtypes("""x  scale    offset
                i8 f32|bf16 f32|bf16
                i4 f32|bf16 f32|bf16"""), require("not given(offset) or "
                                                  "dtype(offset) == dtype(scale)"),
      x=by("x.dtype", {"i8": tensor("*B N", "", -128, 127), "i4": tensor("*B N", "", -8, 7)}),
      scale=forms(each=tensor("N", "", 0.1, 1), one=tensor("1", "", 0.1, 1)),
      offset=optional(forms(each=tensor("N", "", -9, 9), one=tensor("1", "", -9, 9))),
      dstType=choice(1, 27), sqrtMode=flag(), y=out("dstType"))  # fmt: skip
def anti_quant(x: Array, scale: Array, offset: Array | None, sqrtMode: bool) -> Array:
    y = x.astype(np.float64) + (0 if offset is None else offset)
    return y * (scale * scale if sqrtMode else scale)


_AXES: Final = {2: "N", 1: "P", 0: "M", -1: "N"}


@spec("aclnnQuantize", _RULE, sizes(M=rows_(4, 1, 17), P=group(3, 1, 8), N=row),
      require(_EQUAL.format("scales", "zeroPoints")),
      pin("values=halves scales=unit", "half steps"),
      pin("values=halves scales=unit dtype=bfloat16 dtype_=4", "half steps"),
      x=tensor("M P N", "f32 f16 bf16"),
      scales=by("axis", {a: forms(each=tensor(n, "x", 0.02, 0.5), one=tensor("1", "x", 0.02),
                                  unit=_unit("1")) for a, n in _AXES.items()}),
      zeroPoints=by("dtype", {2: optional(_over(_AXES, "i8", -90, 90)),
                              4: optional(_over(_AXES, "u8", 0, 200)),
                              3: optional(_over(_AXES, "i32", -900, 900))}),
      dtype=choice(2, 4, 3), axis=choice(*_AXES), out=out("dtype"))  # fmt: skip
def quantize(x: Array, scales: Array, zeroPoints: Array | None, axis: int) -> Array:
    zero = 0 if zeroPoints is None else _along(zeroPoints, x, axis)
    return x / _along(scales, x, axis) + zero


@spec("aclnnDequantBias", Rule("composite", PAGES), sizes(M=rows_(5, 1, 17, 130), N=row),
      dtypes("""x   weightScale activateScaleOptional biasOptional
                i32 f32         f32                   f32|f16|i32
                i32 bf16        f32                   f32|bf16|i32"""),
      require("(outputDtype == 27) == (dtype(weightScale) == 'bfloat16')"),
      pin("types=2 x=beyond biasOptional=opposed", "integers beyond 2^24"),
      pin("types=5 x=beyond biasOptional=opposed outputDtype=27", "integers beyond 2^24"),
      x=forms(around=tensor("M N", "", -100000, 100000),
              beyond=tensor("M N", "", 2**24 + 1, 2**24 + 900)),
      weightScale=tensor("N", "", 0.001, 0.01),
      activateScaleOptional=optional(tensor("M", "", 0.5, 2)),
      biasOptional=optional(by("biasOptional.dtype", {
          "i32": forms(around=tensor("N", "", -900, 900),
                       opposed=tensor("N", "", -(2**24) - 901, -(2**24) - 1)),
          **dict.fromkeys(("f32", "f16", "bf16"), tensor("N", "", -9, 9))})),
      outputDtype=choice(1, 27),
      out=out("outputDtype"))  # fmt: skip
def dequant_bias(
    x: Array, weightScale: Array, activateScaleOptional: Array | None, biasOptional: Array | None
) -> Array:  # fmt: skip
    # A bias of integers counts products, one of floats results.
    whole = biasOptional is not None and biasOptional.dtype.kind == "i"
    y = (x + biasOptional if whole else x) * weightScale
    y = y if activateScaleOptional is None else y * activateScaleOptional[:, None]
    return y if biasOptional is None or whole else y + biasOptional


@spec("aclnnGroupQuant", _RULE,
      sizes(T=tokens(8, 1, 3, 130), G=group(3, 1, 8), N=row(16, 2, 8, 66, 1026)),
      pin("values=halves scale=unit", "half steps"),
      x=tensor("T N", "f32 f16 bf16"),
      scale=forms(each=tensor("G N", "x", 2, 60), unit=_unit("G N")),
      groupIndex=forms(i32=parts("G", of="T", form="ends", dtype="i32"),
                       i64=parts("G", of="T", form="ends")),
      offsetOptional=optional(tensor("1", "x", -9, 9)), dstType=choice(2, 29),
      y=out("dstType"))  # fmt: skip
def group_quant(x: Array, scale: Array, groupIndex: Array, offsetOptional: Array | None) -> Array:
    which = np.searchsorted(groupIndex, np.arange(len(x)), "right")
    return x * scale[which] + (0 if offsetOptional is None else offsetOptional)


def _fake(x: Array, scale: Array, zero: Array, low: int, high: int) -> tuple[Array, Array]:
    steps = np.rint(x / scale) + zero
    inside = (steps >= low) & (steps <= high)
    return (np.clip(steps, low, high) - zero) * scale, inside


# Dividing by a scale and multiplying by its inverse part at ties: powers of two are exact either
# way.
_FAKE: Final = Rule("composite", "torch 2.13, fake_quantize_per_tensor_affine and "
                    "_per_channel_affine")  # fmt: skip
_LIMITS: Final[dict[str, Domain]] = {"quantMin": choice(-32, 0, -128),
                                     "quantMax": choice(31, 127, 255)}  # fmt: skip


def _zeros(shape: str) -> Domain:
    return content(lambda rng, _, draw: rng.integers(0, 10, resolve(shape, draw)), "random", "i32",
                   shape=shape)  # fmt: skip


@spec("aclnnFakeQuantPerTensorAffineCachemask", _FAKE,
      sizes({"*B": leading(4, "-", "2x3")}, N=row), self=tensor("*B N", "f32 f16"),
      scale=powers("1", -7, -1, "self"), zeroPoint=_zeros("1"),
      fakeQuantEnabled=number(1.0, 0.0), **_LIMITS, out=out("self"), mask=out("bool"),
      )  # fmt: skip
def fake_quant_tensor(
    self: Array, scale: Array, zeroPoint: Array, fakeQuantEnabled: float, quantMin: int,
    quantMax: int,
) -> tuple[Array, Array]:  # fmt: skip
    if not fakeQuantEnabled:
        return self, np.ones(self.shape, bool)
    return _fake(self, scale, zeroPoint, quantMin, quantMax)


@spec("aclnnFakeQuantPerChannelAffineCachemask", _FAKE,
      sizes(M=rows_(4, 1, 17), P=group(3, 1, 8), N=row), self=tensor("M P N", "f32 f16"),
      scale=by("axis", {a: powers(n, -7, -1, "self") for a, n in _AXES.items()}),
      zeroPoint=by("axis", {a: _zeros(n) for a, n in _AXES.items()}), axis=choice(*_AXES),
      **_LIMITS, out=out("self"), mask=out("bool"))  # fmt: skip
def fake_quant_channel(
    self: Array, scale: Array, zeroPoint: Array, axis: int, quantMin: int, quantMax: int
) -> tuple[Array, Array]:  # fmt: skip
    return _fake(self, _along(scale, self, axis), _along(zeroPoint, self, axis), quantMin,
                 quantMax)  # fmt: skip
