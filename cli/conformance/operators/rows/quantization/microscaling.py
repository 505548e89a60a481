"""Blocks of small floats that share a power of two as their scale (MX)."""

from __future__ import annotations

from .....spec import *
from .._functions import swiglu
from .._microscaling import (
    BF16,
    BLOCK,
    E2M1,
    E4M3,
    FLOAT,
    FLOAT16,
    LARGEST,
    OCP,
    SMALL_TYPES,
    as_float32,
    microscaled,
    padded,
    shared_exponent,
)
from .._quantizers import powers
from .._words import *
from ..activation.gates import clipped_swiglu

_MX: Final = Rule("composite", OCP, steps=True, specials=False,
                  values="normal integer wide large graded")  # fmt: skip
_RINT: Final = only("rint", "the other modes have no document with a formula")
_LIMIT: Final = only(0.0, "of scaleAlg 2, which no public document describes")
_BLOCK: Final = only(BLOCK, "documents allow 32")
_ALL: Final = choice(*SMALL_TYPES, E2M1)
_HALVES: Final = "f16 bf16"
_SQUARE: Final = sizes({"*B": leading("-", 3, "2x2")}, M=row(40, 1, 32, 33, 64, 65, 130),
                       N=column(70, 1, 31, 32, 64, 66, 130))  # fmt: skip


def _values(shape: str, dtype: str) -> Domain:
    """Numbers of several exponents, or what values are under test."""
    return forms(spread=tensor(shape, dtype, -70, 70), filled=tensor(shape, dtype))


def _four_bits(x: str, to: str) -> tuple[str, ...]:
    """Elements of four bits lie in pairs; documents give them the first algorithm."""
    return f"{to} != {E2M1} or dim({x}, -1) % 2 == 0", f"{to} != {E2M1} or scaleAlg == 0"


def _quantized(to: str, *names: str) -> dict[str, Domain]:
    """Results in pairs: elements, and their scales."""
    return {n: out("e8m0") if "cale" in n else out(to) for n in names}


@spec("aclnnDynamicMxQuantV3 aclnnDynamicMxQuantV2 aclnnDynamicMxQuant", _MX,
      sizes({"*A": leading(3, "-", "2x3"), "*Z": leading("-", 4, 33, "2x5")},
            W=row(80, 1, 32, 33, 64, 66, 130, 1032)), require(*_four_bits("x", "dstType")),
      x=_values("*A W *Z", "f32 f16 bf16"), axis=axis("W", "*A W *Z"), roundModeOptional=_RINT,
      dstType=_ALL, blocksize=_BLOCK, scaleAlg=choice(0, 1), dstTypeMax=_LIMIT,
      maxLowBound=_LIMIT, **_quantized("dstType", "yOut", "mxscaleOut"))  # fmt: skip
def dynamic(x: Array, axis: int, dstType: int, scaleAlg: int) -> tuple[Array, Array]:
    return microscaled(x, axis, dstType, scaleAlg)


@spec("aclnnDynamicMxQuantWithDualAxisV2 aclnnDynamicMxQuantWithDualAxis", _MX, _SQUARE,
      require(*_four_bits("x", "dstType")), x=_values("*B M N", _HALVES),
      roundModeOptional=_RINT, dstType=_ALL, scaleAlg=choice(0, 1), dstTypeMax=_LIMIT,
      **_quantized("dstType", "y1Out", "mxscale1Out", "y2Out", "mxscale2Out"))  # fmt: skip
def both_axes(x: Array, dstType: int, scaleAlg: int) -> tuple[Array, Array, Array, Array]:
    return *microscaled(x, -1, dstType, scaleAlg), *microscaled(x, -2, dstType, scaleAlg)


def _restored(x: Array, mxscale: Array, axis: int) -> Array:
    axis %= x.ndim
    flat = np.moveaxis(mxscale, -1, axis + 1)
    flat = flat.reshape(*flat.shape[:axis], -1, *flat.shape[axis + 2 :])
    return x * np.repeat(flat, BLOCK, axis).take(np.arange(x.shape[axis]), axis)


@spec("aclnnAntiMxQuant", Rule("rounded", OCP, specials=False, values="normal"),
      sizes({"*A": leading(3, "-", "2x3"), "*Z": leading("-", 4, 33, "2x5")},
            W=row(80, 2, 32, 34, 64, 66, 130, 1032)),
      require("dtype(x) != 'float4_e2m1fn' or dim(x, -1) % 2 == 0"),
      x=tensor("*A W *Z", "e4m3 e5m2 e2m1", -30, 30),
      mxscale=powers("*A ceil(W,64) *Z 2", -5, 6, "e8m0"), axis=axis("W", "*A W *Z"),
      dstType=choice(FLOAT, FLOAT16, BF16), y=out("dstType"))  # fmt: skip
def restored(x: Array, mxscale: Array, axis: int) -> Array:
    return _restored(x, mxscale, axis)


def squares(x: Array, to: int, algorithm: int = 0) -> tuple[Array, Array, Array]:
    """Squares of 32 by 32 in the last two dims share an exponent, which lies in both orders."""
    rows, columns = x.shape[-2:]
    wide = padded(padded(x, -1, BLOCK), -2, BLOCK)
    m, n = wide.shape[-2] // BLOCK, wide.shape[-1] // BLOCK
    cut = wide.reshape(*x.shape[:-2], m, BLOCK, n, BLOCK)
    exponent = shared_exponent(np.abs(cut).max((-3, -1)), to, algorithm)
    across = np.repeat(exponent, BLOCK, -2)[..., :rows, :]
    down = np.repeat(exponent, BLOCK, -1)[..., :columns]
    each = np.repeat(across, BLOCK, -1)[..., :columns]

    def paired(e: Array, axis: int) -> Array:
        pads = [(0, 0)] * e.ndim
        pads[axis] = (0, e.shape[axis] % 2)
        even = np.pad(e, pads, constant_values=-127)
        axis %= e.ndim
        pairs = even.reshape(*e.shape[:axis], -1, 2, *e.shape[axis + 1 :])
        return np.ldexp(1.0, np.moveaxis(pairs, axis + 1, -1))

    limit = LARGEST[to][1]
    return np.clip(np.ldexp(x, -each), -limit, limit), paired(across, -1), paired(down, -2)


@spec("aclnnDynamicBlockMxQuant", _MX, _SQUARE, require(*_four_bits("x", "dstType")),
      x=_values("*B M N", _HALVES), roundModeOptional=_RINT, dstType=_ALL,
      scaleAlg=choice(0, 1), dstTypeMax=_LIMIT,
      **_quantized("dstType", "yOut", "scale1Out", "scale2Out"))  # fmt: skip
def by_squares(x: Array, dstType: int, scaleAlg: int) -> tuple[Array, Array, Array]:
    return squares(x, dstType, scaleAlg)


_GROUPED: Final = Rule("composite", f"{OCP}; where a group's scales begin is read from op-plugin's "
                       "test of the operator", steps=True, specials=False,
                       values=_MX.values)  # fmt: skip
_GROUPS: Final = sizes(T=tokens(130, 1, 3, 32, 64, 65, 260), G=group(2, 1, 3, 5),
                       N=column(6, 1, 33, 64, 130))  # fmt: skip


def grouped(x: Array, ends: Array, to: int, algorithm: int = 0) -> tuple[Array, Array]:
    """Blocks along rows begin anew in each group; group g's scales begin at line rows / 64 + g."""
    values, begin = np.zeros(x.shape), 0
    scales = np.full((len(x) // (2 * BLOCK) + len(ends), x.shape[1], 2), 2.0**-127)
    for g, end in enumerate(ends):
        if end > begin:
            values[begin:end], part = microscaled(x[begin:end], 0, to, algorithm)
            scales[begin // (2 * BLOCK) + g :][: len(part)] = part
        begin = end
    return values, scales


@spec("aclnnGroupedDynamicMxQuantV2 aclnnGroupedDynamicMxQuant", _GROUPED, _GROUPS,
      pin("groupIndex=empty_middle G=3", "a group's scales begin at its own line"),
      x=_values("T N", _HALVES), groupIndex=parts("G", of="T", form="ends", dtype="i32"),
      roundMode=_RINT, dstType=choice(*SMALL_TYPES), blocksize=_BLOCK, scaleAlg=choice(0, 1),
      dstTypeMax=_LIMIT, **_quantized("dstType", "y", "mxscale"))  # fmt: skip
def by_groups(x: Array, groupIndex: Array, dstType: int, scaleAlg: int = 0) -> tuple[Array, Array]:
    return grouped(x, groupIndex, dstType, scaleAlg)


@spec("aclnnGroupedDynamicMxQuantWithDualAxis", _GROUPED, _GROUPS,
      x=_values("T N", _HALVES), groupIndex=parts("G", of="T", form="ends"),
      roundModeOptional=_RINT, scaleAlg=choice(0, 1), dstDtype=choice(*SMALL_TYPES),
      maxDtypeValue=_LIMIT,
      **_quantized("dstDtype", "y1Out", "y1ScaleOut", "y2Out", "y2ScaleOut"))  # fmt: skip
def both_by_groups(
    x: Array, groupIndex: Array, dstDtype: int, scaleAlg: int
) -> tuple[Array, Array, Array, Array]:
    return *microscaled(x, -1, dstDtype, scaleAlg), *grouped(x, groupIndex, dstDtype, scaleAlg)


_GATED: Final = Rule("composite", f"Shazeer: GLU Variants Improve Transformer, 2020; {OCP}",
                     steps=True, specials=False, values="normal graded")  # fmt: skip
_ENDS: Final = optional(parts("G", of="T", form="ends"))
_MATRIX: Final = sizes(T=tokens(130, 1, 3, 32, 65, 260), G=group(2, 1, 3, 5),
                       H=row(64, 1, 16, 33, 70, 130))  # fmt: skip


@spec("aclnnSwigluMxQuant", _GATED,
      sizes({"*B": leading(3, "-", "2x3", 33, 70)}, E=group(2, 1, 5),
            H=row(64, 2, 16, 34, 72, 130, 1032)),
      require("axis == -1 or rank(x) > 1 and not given(groupIndexOptional)",
              "swigluMode == 0 or activateLeft",
              f"dstType != {E2M1} or H % 2 == 0", f"dstType != {E2M1} or scaleAlg == 0"),
      x=tensor("*B 2*H", _HALVES),
      groupIndexOptional=optional(parts("E", of="max(size(x) // (2*H) - 2, 0)")),
      activateDim=axis("2*H", "*B 2*H"), activateLeft=flag(True), swigluMode=choice(0, 1),
      clampLimit=number(7.0, 1.3), gluAlpha=number(1.702, 1.0, -0.5), gluBias=number(1.0, 0.3),
      groupMode=only(0, "documents allow 0"), axis=number(-1, -2), dstType=_ALL,
      roundModeOptional=_RINT, scaleAlg=choice(0, 1), maxDtypeValue=_LIMIT,
      **_quantized("dstType", "yOut", "mxscaleOut"))  # fmt: skip
def gated(
    x: Array, groupIndexOptional: Array | None, activateLeft: bool, swigluMode: int,
    clampLimit: float, gluAlpha: float, gluBias: float, axis: int, dstType: int, scaleAlg: int,
) -> tuple[Array, Array]:  # fmt: skip
    """swigluMode 1 is gpt-oss's gate of neighbours; rows of no group are 0."""
    if swigluMode:
        y = clipped_swiglu(x, groupIndexOptional, -1, gluAlpha, clampLimit, gluBias, True)
    else:
        y = swiglu(x, activateLeft)
        if groupIndexOptional is not None:
            y.reshape(-1, y.shape[-1])[int(groupIndexOptional.sum()) :] = 0
    return microscaled(as_float32(y), axis, dstType, scaleAlg)


def _both(
    y: Array, ends: Array | None, to: int, algorithm: int
) -> tuple[Array, Array, Array, Array]:
    y = as_float32(y)
    columns = grouped(y, ends, to, algorithm) if ends is not None else (
        microscaled(y, -2, to, algorithm))  # fmt: skip
    return *microscaled(y, -1, to, algorithm), *columns


@spec("aclnnSwigluMxQuantWithDualAxis", _GATED, _MATRIX,
      x=tensor("T 2*H", _HALVES), groupIndexOptional=_ENDS, activateLeft=flag(True),
      roundModeOptional=_RINT, scaleAlg=choice(0, 1), dstType=choice(*SMALL_TYPES),
      maxDtypeValue=_LIMIT,
      **_quantized("dstType", "y1Out", "mxscale1Out", "y2Out", "mxscale2Out"))  # fmt: skip
def gated_both(
    x: Array, groupIndexOptional: Array | None, activateLeft: bool, dstType: int, scaleAlg: int
) -> tuple[Array, Array, Array, Array]:
    return _both(swiglu(x, activateLeft), groupIndexOptional, dstType, scaleAlg)


def swiglu_gradient(x: Array, grad: Array, left: bool) -> Array:
    """silu'(g) = s (1 + g (1 - s)) for s = sigmoid(g); the other half gets silu(g)."""
    a, b = np.split(x, 2, -1)
    gate, value = (a, b) if left else (b, a)
    s = 1 / (1 + np.exp(-gate))
    parts = grad * value * s * (1 + gate * (1 - s)), grad * gate * s
    return np.concatenate(parts if left else parts[::-1], -1)


@spec("aclnnSwigluBackwardMxQuantWithDualAxis", _GATED, _MATRIX,
      x=tensor("T 2*H", _HALVES), yGrad=tensor("T H", "x"), groupIndexOptional=_ENDS,
      activateLeft=flag(True), roundModeOptional=_RINT, scaleAlg=choice(0, 1),
      dstDtype=only(E4M3, "documents allow E4M3"), maxDtypeValue=_LIMIT,
      **_quantized("dstDtype", "y1Out", "mxscale1Out", "y2Out", "mxscale2Out"))  # fmt: skip
def gated_back(
    x: Array, yGrad: Array, groupIndexOptional: Array | None, activateLeft: bool, dstDtype: int,
    scaleAlg: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    dx = swiglu_gradient(x, yGrad, activateLeft)
    return _both(dx, groupIndexOptional, dstDtype, scaleAlg)


# Of float4 e2m1: the exponent of its largest number, and that.
_TOP, _LARGEST = LARGEST[E2M1]


@spec("aclnnDynamicDualLevelMxQuant",
      Rule("composite", "op-plugin document npu_dynamic_dual_level_mx_quant", steps=True,
           specials=False, values="normal integer graded"),
      sizes({"*B": leading(3, "-", "2x2", 33)}, N=row(512, 32, 96, 640, 1024, 1032)),
      x=tensor("*B N", "f16"), smoothScaleOptional=optional(tensor("N", "x", 0.5, 2)),
      roundModeOptional=_RINT, level0BlockSize=only(512, "documents allow 512"),
      level1BlockSize=_BLOCK, yOut=out("e2m1"), level0ScaleOut=out("f32"),
      level1ScaleOut=out("e8m0"))  # fmt: skip
def dual_level(x: Array, smoothScaleOptional: Array | None) -> tuple[Array, Array, Array]:
    """512 elements share a real scale; what is left, in x's type, an exponent for each 32."""
    smooth = x if smoothScaleOptional is None else x * smoothScaleOptional
    pieces = padded(smooth, -1, 512).reshape(*x.shape[:-1], -1, 512)
    first = np.abs(pieces).max(-1) / _LARGEST
    scale = np.where(first, first, 1)[..., None].astype(np.float32)
    left = (pieces.astype(np.float32) / scale).astype(np.float16).astype(np.float64)
    left = left.reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]
    y, second = microscaled(left, -1, E2M1)
    return y, first, second


@spec("aclnnMxToBlockMxQuant", _MX,
      sizes({"*B": leading("-", 3, "2x2")}, M=row(64, 1, 32, 33, 70, 130),
            N=column(64, 2, 32, 34, 70, 130)),
      x=tensor("*B M N", "e2m1", -6, 6), mxscale=powers("*B M ceil(N,64) 2", -5, 6, "e8m0"),
      dstType=choice(*SMALL_TYPES),
      **_quantized("dstType", "y", "scale1", "scale2"))  # fmt: skip
def other_blocks(x: Array, mxscale: Array, dstType: int) -> tuple[Array, Array, Array]:
    return squares(_restored(x.astype(np.float64), mxscale, -1), dstType)
