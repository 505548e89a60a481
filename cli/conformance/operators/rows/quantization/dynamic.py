"""Quantization with scales taken from the data."""

from __future__ import annotations

from .....spec import *
from .....spec import group as group_, rows as rows_
from .._quantizers import _dropped, dynamic
from .._words import *

PAGES: Final = "op-plugin documents npu_quantize, npu_dynamic_quant, npu_anti_quant; equal logic"
_RULE: Final = Rule("composite", PAGES, steps=True, cost="4*size(x)")
_ROWS: Final = leading(5, 1, "2x3", 65, "2x1x3")
_WIDE: Final = row(32, 1, 2, 8, 66, 257, 1024, 2056)


@spec("aclnnDynamicQuant", _RULE, sizes({"*B": _ROWS}, N=_WIDE),
      x=tensor("*B N", "f16 bf16"), smoothScalesOptional=optional(tensor("N", "x")),
      yOut=out("i8"), scaleOut=out("f32"))  # fmt: skip
def symmetric(x: Array, smoothScalesOptional: Array | None) -> tuple[Array, Array]:
    return dynamic(x, smoothScalesOptional)


def asymmetric(
    x: Array, smooth: Array | None = None, most: float = 127, axis: int | None = -1
) -> tuple[Array, Array, Array]:
    """(steps, scale, offset): -most - 1 is a row's least value and `most` its largest."""
    y = x if smooth is None else x * smooth
    top, low = y.max(axis, keepdims=True), y.min(axis, keepdims=True)
    scale = (top - low) / (2 * most + 1)
    whole = np.where(scale == 0, 1.0, scale)
    offset = most - top / whole
    return y / whole + offset, _dropped(scale, axis), _dropped(offset, axis)


def _by_group(x: Array, smooth: Array | None, ends: Array | None) -> Array | None:
    """Factors of each row: those of the group whose end lies behind it, or the same for all."""
    if smooth is None or ends is None:
        return smooth
    rows = np.arange(np.prod(x.shape[:-1])).reshape(x.shape[:-1])
    return smooth[np.searchsorted(ends, rows, "right")]


# The largest step, by aclDataType.
_MOST: Final = {2: 127.0, 29: 7.0, 35: 57344.0, 36: 448.0}
_BY_MODE: Final = {"pertoken": -1, "pertensor": None, "perchannel": -2}


# Asymmetric scales of equal numbers are 0, and documents do not say what is divided by them: no
# integers, which may be equal.
@spec("aclnnDynamicQuantV4 aclnnDynamicQuantV3 aclnnDynamicQuantV2",
      replace(_RULE, values="normal opposed positive"),
      sizes({"*B": _ROWS}, N=_WIDE, G=group_(3, 1, 2)),
      require("given(smoothScalesOptional) or not given(groupIndexOptional)",
              "not given(smoothScalesOptional) or "
              "rank(smoothScalesOptional) == 1 + given(groupIndexOptional)",
              "isSymmetrical or dstType in (2, 29)", "dstType != 29 or N % 2 == 0",
              # Of equal values the range is 0, and what divides it is not stated: rows that a
              # view repeats make columns of equal values, and two bfloat16 are often equal.
              "isSymmetrical or quantMode != 'perchannel' and N > 3"),
      pin("smoothScalesOptional=groups groupIndexOptional=empty_middle", "factors of groups"),
      pin("smoothScalesOptional=groups groupIndexOptional=empty_first isSymmetrical=True",
          "factors of groups"),
      x=tensor("*B N", "f16 bf16"),
      smoothScalesOptional=forms(null=None, columns=tensor("N", "x"),
                                 groups=tensor("G N", "x", 0.5, 2)),
      groupIndexOptional=optional(parts("G", of="size(x)//N", form="ends", dtype="i32")),
      dstType=choice(2, 29, 36, 35), isSymmetrical=flag(),
      quantMode=choice("pertoken", "pertensor", "perchannel"),
      dstTypeMax=only(0.0, "counts for a type that is not declared here"),
      yOut=out("dstType"), scaleOut=out("f32"), offsetOut=out("f32"))  # fmt: skip
def either(
    x: Array, smoothScalesOptional: Array | None, groupIndexOptional: Array | None,
    dstType: int, isSymmetrical: bool = False, quantMode: str = "pertoken",
) -> tuple[Array | None, ...]:  # fmt: skip
    smooth = _by_group(x, smoothScalesOptional, groupIndexOptional)
    if isSymmetrical:
        return (*dynamic(x, smooth, _MOST[dstType], _BY_MODE[quantMode]), None)
    return asymmetric(x, smooth, _MOST[dstType], _BY_MODE[quantMode])


def _half(x: Array) -> Array:
    return x.astype(np.float16).astype(np.float64)


@spec("aclnnFlatQuantV3 aclnnFlatQuant",
      Rule("composite", "Sun et al.: FlatQuant, 2024, equation 4; the golden of op-plugin's "
           "test test_npu_kronecker_quant", steps=True, specials=False,
           numbers={"norm": 2.0**14, "reason": "both products are rounded to half: between two "
                    "halves a sum may go to either"}),
      sizes(T=tokens(3, 1, 17), M=rows_(4, 1, 8, 17), N=row(16, 8, 64)),
      x=tensor("T M N", "f16"), kroneckerP1=tensor("M M", "x"), kroneckerP2=tensor("N N", "x"),
      groupListOptional=null("of a type that is not declared here"),
      clipRatio=number(1.0, 0.75, 0.5),
      dstTypeMax=only(0.0, "counts for a type that is not declared here"),
      groupListType=only(0, "counts where there is a list"),
      out=out("i4"), quantScale=out("f32"))  # fmt: skip
def flat(x: Array, kroneckerP1: Array, kroneckerP2: Array, clipRatio: float) -> tuple[Array, Array]:
    """P1 x P2 for each row, whose peak times clipRatio is the largest step."""
    y = _half(kroneckerP1 @ _half(x @ kroneckerP2))
    scale = np.abs(y).max((1, 2)) / (7 * clipRatio)
    return y / scale[:, None, None], scale


def _rotation(rng: Generator, pattern: str, draw: Draw) -> Array:
    """Turns that move and halve, so that nothing is rounded between the two steps."""
    size = draw["S"]
    moves = np.eye(size)[rng.permutation(size)]
    return moves * np.where(rng.random(size) < 0.3, -0.5, 1) if pattern == "halved" else moves


@spec("aclnnRotateQuant", Rule("composite", "op-plugin document npu_rotate_quant", steps=True,
                               specials=False),
      sizes(T=tokens(4, 1, 33), S=group_(16, 8, 64), Q=group_(8, 1, 3)),
      x=tensor("T Q*S", "f16 bf16"),
      rotation=content(_rotation, "moved halved", "x", shape="S S"),
      alpha=null("of types that are not declared here"),
      axis=only(-1, "documents allow the last"), roundMode=only("rint", "of steps of int8"),
      scaleAlg=only(0, "of steps of int8"), dstTypeMax=only(0.0, "of other types"),
      trans=only(False, "documents allow False"), yOut=out("i8"), scaleOut=out("f32"),
      )  # fmt: skip
def rotated(x: Array, rotation: Array) -> tuple[Array, Array]:
    """Pieces of rows times the rotation; a row's scale is its peak over 127."""
    size = len(rotation)
    y = (x.reshape(*x.shape[:-1], -1, size) @ rotation).reshape(x.shape)
    scale = np.abs(y).max(-1) / 127
    return y / scale[..., None], scale


_RINT: Final = only("rint", "documents ask for it beside these types")
_PEAKS: Final = Rule("composite", "torch_npu's document of npu_quant_max: elements over the scale, "
                     "and the peak", steps=True, specials=False)  # fmt: skip


@spec("aclnnQuantMax", _PEAKS, sizes({"*B": leading(3, 1, "2x3", 65)}, N=row),
      x=tensor("*B N", "f32 f16 bf16"), scale=tensor("1", "f32", 0.125, 4), roundMode=_RINT,
      dstType=choice(35, 36), y=out("dstType"), amax=out("x"))  # fmt: skip
def with_peak(x: Array, scale: Array) -> tuple[Array, Array]:
    return x / scale, np.abs(x).max()[None]


@spec("aclnnGroupedQuantMax", _PEAKS, sizes(T=tokens(8, 1, 3, 33), G=group_(2, 1, 3), N=row),
      require("T >= G"), x=tensor("T N", "f32 f16 bf16"), scale=tensor("G", "f32", 0.125, 4),
      groupList=parts("G", of="T", form="ends", patterns="even ones"), roundMode=_RINT,
      dstType=choice(36, 35), y=out("dstType"), amax=out("x"))  # fmt: skip
def with_peaks(x: Array, scale: Array, groupList: Array) -> tuple[Array, Array]:
    which = np.repeat(np.arange(len(scale)), np.diff(groupList, prepend=0))
    peaks = [np.abs(x[which == g]).max() for g in range(len(scale))]
    return x / scale[which][:, None], np.array(peaks)


@spec("aclnnDynamicBlockQuantV2 aclnnDynamicBlockQuant",
      Rule("gradient", "op-plugin document npu_dynamic_block_quant", steps=True, specials=False),
      sizes({"*B": leading("-", 2, 3)}, M=rows_(3, 1, 65, 130, 1040),
            N=column(130, 1, 6, 128, 257)),
      both("N % colBlockSize == 0"),
      x=tensor("*B M N", "f16 bf16"), minScale=number(0.0, 0.2, 0.02),
      roundModeOptional=_RINT, dstType=only(2, "other types are of one product alone"),
      rowBlockSize=only(1, "goes with int8"), colBlockSize=only(128, "goes with int8"),
      dstTypeMax=only(0.0, "of a type that is not declared"),
      yOut=out("dstType"), scaleOut=out("f32"))  # fmt: skip
def by_blocks(
    x: Array, minScale: float, dstType: int, rowBlockSize: int, colBlockSize: int
) -> tuple[Array, Array]:
    """A block's scale is its peak over the type's largest, and `minScale` at least."""
    rows, columns = x.shape[-2:]
    starts = range(0, rows, rowBlockSize), range(0, columns, colBlockSize)
    y, scale = np.zeros(x.shape), np.zeros((*x.shape[:-2], *(len(s) for s in starts)))
    for i, top in enumerate(starts[0]):
        for j, first in enumerate(starts[1]):
            tile = np.s_[..., top : top + rowBlockSize, first : first + colBlockSize]
            scale[..., i, j] = np.maximum(np.abs(x[tile]).max((-2, -1)) / _MOST[dstType], minScale)
            y[tile] = x[tile] / scale[..., i, j][..., None, None]
    return y, scale
