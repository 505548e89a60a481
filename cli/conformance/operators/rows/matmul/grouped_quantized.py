"""Grouped products of integers, and what is fused behind them."""

from __future__ import annotations

from .....spec import *
from ...placing import TILES
from .._functions import swiglu
from .._ignored import SPEED
from .._quantizers import dynamic, real_scales, words
from .._words import *
from .grouped import ends_of, scaled_groups
from .quantized import X_FIT, X_STEPS, X_TYPES, steps_of_rows, weight_scales

_ENDS: Final = parts("E", of="T", form="ends")
_LISTS: Final = by("groupListType", {0: _ENDS, 1: parts("E", of="T")})


def _tokens_of_rows(rng: Generator, pattern: str, draw: Draw) -> Array:
    """Each of R tokens has Q rows, in any order."""
    rows = np.arange(draw["T"]) % draw["R"]
    return rows if pattern == "in_order" else rng.permutation(rows)


_FOUR: Final = "op-plugin document npu_grouped_matmul_finalize_routing and its test"
_UNUSED: Final = null("reserved: documents ask for null")
_ROUTED: Final = sizes(E=members(3, 1, 2, 8), R=tokens(4, 1, 3, 33), Q=group(2, 1, 3), T="R*Q",
                       K=row(32, 64, 96), N=column(32, 64, 96), S="R - R//2")  # fmt: skip


def _routed(weight: Domain, scale: Domain, optional_: bool) -> dict[str, Domain]:
    """Parameters of routed products by the names of the widest header."""
    suffix = "Optional" if optional_ else ""
    rest: dict[str, Domain] = {
        "bias": optional(tensor("E N", "f32", -900, 900)), "offsetOptional": _UNUSED,
        "antiquantScaleOptional": _UNUSED, "antiquantOffsetOptional": _UNUSED,
        "pertokenScaleOptional": tensor("T", "f32", 0.2, 1), "groupList": _LISTS,
        "sharedInput": tensor("S N", "bf16"), "logit": tensor("T", "f32"),
        "rowIndex": content(_tokens_of_rows, "shuffled in_order", reads=("R", "Q"), shape="T"),
    }  # fmt: skip
    if optional_:
        rest |= {n: optional(rest[n]) for n in ("sharedInput", "logit")}
    names = {n: n if n.endswith("Optional") else n + suffix for n in rest}
    return {
        "x1": tensor("T K", "i8", -128, 127), "x2": weight, f"scale{suffix}": scale,
        **{names[n]: d for n, d in rest.items()},
        "dtype": only(0, "float32 is what documents allow"),
        "sharedInputWeight": number(0.5, 1.0, 0.0), "sharedInputOffset": number(0, "R//2"),
        "transposeX1": only(False, "documents allow False"),
        "transposeX2": only(False, "documents allow False"), "groupListType": choice(1, 0),
        "tuningConfigOptional": ignored(SPEED, optional(array((4,), (10, 1)))), "out": out("f32"),
    }  # fmt: skip


def finalize(
    x1: Array, x2: Array, scale: Array, bias: Array | None, pertokenScaleOptional: Array,
    groupList: Array, sharedInput: Array | None, logit: Array | None, rowIndex: Array,
    sharedInputWeight: float, sharedInputOffset: int, groupListType: int,
) -> Array:  # fmt: skip
    """Rows times their logits are summed at the tokens that they belong to; the shared expert's
    rows are added from an offset on."""
    ends, token = ends_of(groupList, groupListType), pertokenScaleOptional
    y = scaled_groups(x1, x2, ends, real_scales(scale), token)
    if bias is not None:
        y = y + np.repeat(bias, np.diff(ends, prepend=0), 0) * token[:, None]
    y = y if logit is None else y * logit[:, None]
    result = np.zeros((rowIndex.max() + 1, y.shape[1]))
    np.add.at(result, rowIndex, y)
    if sharedInput is not None:
        result[sharedInputOffset:][: len(sharedInput)] += sharedInputWeight * sharedInput
    return result


@spec("aclnnGroupedMatmulFinalizeRoutingV3 aclnnGroupedMatmulFinalizeRoutingV2",
      Rule("gradient", _FOUR, specials=False), _ROUTED,
      also("aclnnGroupedMatmulFinalizeRouting", x1="x", x2="w", transposeX1="transposeX",
           transposeX2="transposeW", out="y"),
      **_routed(tensor("E K N", "i4", -8, 7), words("E 1 N", "i64"), True))  # fmt: skip
def finalize_four(
    x1: Array, x2: Array, scaleOptional: Array, biasOptional: Array | None,
    pertokenScaleOptional: Array, groupListOptional: Array, sharedInputOptional: Array | None,
    logitOptional: Array | None, rowIndexOptional: Array, sharedInputWeight: float,
    sharedInputOffset: int, groupListType: int,
) -> Array:  # fmt: skip
    return finalize(x1, x2, scaleOptional, biasOptional, pertokenScaleOptional, groupListOptional,
                    sharedInputOptional, logitOptional, rowIndexOptional, sharedInputWeight,
                    sharedInputOffset, groupListType)  # fmt: skip


_TILED: Final = Rule("gradient", _FOUR, specials=False, formats={"x2": TILES})
_LATER: Final = ("offsetOptional", "antiquantScaleOptional", "antiquantOffsetOptional",
                 "tuningConfigOptional")  # fmt: skip
_EIGHT: Final = _routed(tensor("E K N", "i8", -128, 127), tensor("E N", "f32", 0.01, 0.05), False)
spec("aclnnGroupedMatmulFinalizeRoutingWeightNzV2", _TILED, _ROUTED, **_EIGHT)(finalize)
spec("aclnnGroupedMatmulFinalizeRoutingWeightNz", _TILED, _ROUTED,
     **{n: words("E N", "i64") if n == "scale" else d for n, d in _EIGHT.items()
        if n not in _LATER})(finalize)  # fmt: skip
_SWISH_SIZES: Final = sizes(E=members(3, 1, 2, 8), T=tokens(8, 1, 3, 33, 130), K=row(32, 64, 96),
                            H=column(32, 16, 96))  # fmt: skip
_SWISH_RULE: Final = Rule("gradient", "op-plugin document npu_grouped_matmul_swiglu_quant_v2 and "
                          "its test", steps=True)  # fmt: skip
_NZ: Final = {f"aclnnGroupedMatmulSwigluQuantWeightN{z} weight": "FRACTAL_NZ" for z in ("Z", "zV2")}
_OTHER: Final = null("of weights of four bits, which are not declared here")


@spec("aclnnGroupedMatmulSwigluQuantV2 aclnnGroupedMatmulSwigluQuantWeightNzV2",
      replace(_SWISH_RULE, formats=_NZ), _SWISH_SIZES,
      x=tensor("T K", "i8", -128, 127),
      weight=tensors("1", "E K 2*H", "i8", -128, 127),
      weightScale=tensors("1", "E 2*H", "f32", 0.0001, 0.001), weightAssistMatrix=_OTHER,
      bias=_UNUSED, xScale=tensor("T", "f32", 0.2, 1), smoothScale=_OTHER, groupList=_LISTS,
      dequantMode=only(0, "scales of columns, which int8 has"), dequantDtype=only(0, "reserved"),
      quantMode=only(0, "by rows, which int8 has"), groupListType=choice(0, 1),
      tuningConfigOptional=ignored(SPEED, optional(array((4,), (10, 1)))),
      output=out("i8"), outputScale=out("f32"))  # fmt: skip
def grouped_swiglu_quant_v2(
    x: Array, weight: list[Array], weightScale: list[Array], xScale: Array, groupList: Array,
    groupListType: int,
) -> Any:  # fmt: skip
    ends = ends_of(groupList, groupListType)
    return dynamic(swiglu(scaled_groups(x, weight[0], ends, weightScale[0], xScale), True))


@spec("aclnnGroupedMatmulSwigluQuant aclnnGroupedMatmulSwigluQuantWeightNZ",
      replace(_SWISH_RULE, formats=_NZ), _SWISH_SIZES,
      x=tensor("T K", "i8", -128, 127), weight=tensor("E K 2*H", "i8", -128, 127), bias=_UNUSED,
      offset=_UNUSED, weightScale=tensor("E 2*H", "f32", 0.0001, 0.001),
      xScale=tensor("T", "f32", 0.2, 1), groupList=_ENDS, output=out("i8"),
      outputScale=out("f32"), outputOffset=_UNUSED)  # fmt: skip
def grouped_swiglu_quant(
    x: Array, weight: Array, weightScale: Array, xScale: Array, groupList: Array
) -> Any:
    return grouped_swiglu_quant_v2(x, [weight], [weightScale], xScale, groupList, 0)


@spec("aclnnQuantGroupedMatmulDequant aclnnQuantGroupedMatmulDequantWeightNZ",
      Rule("gradient", "operator document aclnnQuantGroupedMatmulDequant; op-plugin test "
           "test_quant_grouped_matmul_dequant",
           specials=False,
           formats={"aclnnQuantGroupedMatmulDequantWeightNZ weight": "FRACTAL_NZ"}),
      sizes(E=members(3, 1, 2, 8), T=tokens(8, 1, 3, 33), K=row(32, 64, 96),
            N=column(16, 32, 96)), X_FIT, X_TYPES,
      x=tensor("T K", "f16"), weight=tensor("E N K", "i8", -128, 127),
      weightScale=weight_scales("E N"), groupList=_ENDS, **X_STEPS)  # fmt: skip
def grouped_dequant(
    x: Array, weight: Array, weightScale: Array, groupList: Array,
    smoothScaleOptional: Array | None, xScaleOptional: Array | None,
) -> Array:  # fmt: skip
    steps, scale = steps_of_rows(x, smoothScaleOptional, xScaleOptional)
    rows = scale if weightScale.dtype.kind == "f" else np.ones(len(x))
    return scaled_groups(steps, weight.swapaxes(1, 2), groupList, real_scales(weightScale), rows)
