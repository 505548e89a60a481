"""Products of groups of rows, each with its own weight, and FFN over experts."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...placing import TILES
from ...spec import const, f16, i8, spec, t, take
from .._defaults import GRADIENT
from .._ignored import reserved

_ROW: Final[dict[str, Any]] = {
    "tolerance": "gradient", "dtypes": ("float16",),
    "source": "operator documents aclnnGroupedMatmul, V2 to V5; op-plugin document "
    "npu_grouped_matmul; Megatron-LM, grouped GEMM of experts",
}  # fmt: skip
_INT8, _HALF = 2, 1  # aclDataType


def _group_value(values: list[Array] | None, at: int, groups: int) -> Any:
    """What group `at` has, of one tensor for all groups or of one a group."""
    if values is None:
        return None
    return values[at] if len(values) > 1 or groups == 1 else values[0][at]


def _by_rows(value: Array, rows: int) -> Array:
    """[rows, N] of parameters of N columns, or of blocks of rows."""
    lines = np.atleast_2d(value)
    return np.repeat(lines, rows // len(lines), 0)


def _none(x: Array) -> Array:
    return x


def _gelu_tanh(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def _fast_gelu(x: Array) -> Array:
    return x / (1 + np.exp(-1.702 * x))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


# By actType.
_ACTIVE: Final = {0: _none, 1: _relu, 2: _gelu_tanh, 4: _fast_gelu, 5: _silu}


def one_group(
    x: Array, w: Array, bias: Array | None = None, scale: Array | None = None,
    offset: Array | None = None, antiscale: Array | None = None, antioffset: Array | None = None,
    tokens: Array | None = None,
) -> Array:  # fmt: skip
    """A bias of integers counts products, one of floats results."""
    w = w.astype(np.float64)
    w = w if antioffset is None else w + _by_rows(antioffset, len(w))
    w = w if antiscale is None else w * _by_rows(antiscale, len(w))
    whole = bias is not None and bias.dtype.kind == "i"
    y = x.astype(np.float64) @ w
    y = y + bias if bias is not None and whole else y
    if scale is not None:
        packed = scale.dtype.kind in "iu"  # the low 32 bits are a float32's
        y = y * (scale.astype(np.uint32).view(np.float32).astype(float) if packed else scale)
    y = y if tokens is None else y * tokens[:, None]
    y = y if bias is None or whole else y + bias
    return y if offset is None else y + offset


def grouped(
    x: list[Array],
    weight: list[Array],
    groupListOptional: Any = None,
    groupType: int = -1,
    splitItem: int = 0,
    biasOptional: list[Array] | None = None,
    scaleOptional: list[Array] | None = None,
    offsetOptional: list[Array] | None = None,
    antiquantScaleOptional: list[Array] | None = None,
    antiquantOffsetOptional: list[Array] | None = None,
    perTokenScaleOptional: list[Array] | None = None,
    groupListType: int = 0,
    actType: int = 0,
) -> tuple[list[Array]]:
    """Pairs (groupType -1), rows of one x split among weights (0), or products summed over parts
    (2), at `groupListOptional` ends (groupListType 1: sizes). One tensor comes (splitItem 2, 3) or
    one a group."""
    if groupType == -1 and len(x) > 1:
        count, xs, ws = len(x), list(x), weight
    else:
        if groupListOptional is None:
            raise ValueError("grouped: one x is split at the ends in groupList; it is missing")
        ends = np.cumsum(groupListOptional) if groupListType == 1 else list(groupListOptional)
        spans = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        count = len(spans)
        xs = [x[0][:, s] if groupType == 2 else x[0][s] for s in spans]
        ws = [weight[0][s] for s in spans] if groupType == 2 else weight
        ws = list(ws[0]) if len(ws) == 1 and ws[0].ndim == 3 else ws
    tokens = perTokenScaleOptional
    if tokens is not None and len(tokens) == 1 and count > 1:
        tokens = np.split(tokens[0], np.cumsum([len(one) for one in xs])[:-1])
    parts = [_ACTIVE[actType](one_group(
        xs[g], ws[g], _group_value(biasOptional, g, count), _group_value(scaleOptional, g, count),
        _group_value(offsetOptional, g, count), _group_value(antiquantScaleOptional, g, count),
        _group_value(antiquantOffsetOptional, g, count), None if tokens is None else tokens[g]))
        for g in range(count)]  # fmt: skip
    if groupType == 2:
        return ([np.stack(parts)],)
    return (parts if splitItem < 2 else [np.concatenate(parts)],)


_PAIRS: Final[dict[str, Any]] = {"x": [f16(5, 16), f16(3, 32)], "weight": [f16(16, 9), f16(32, 9)],
                                 "splitItem": 0, "groupType": -1}  # fmt: skip
_SPLIT: Final[dict[str, Any]] = {"x": [f16(12, 16)], "weight": [f16(3, 16, 9)], "splitItem": 3,
                                 "groupType": 0}  # fmt: skip
_ENDS: Final = (4, 9, 12)
# Steps of int8: scales in the low halves of words, by powers of two, so that nothing is rounded.
_WORDS: Final = const([[0x3D800000 + ((n + g) % 3 << 23) for n in range(9)] for g in range(3)],
                      "uint64")  # fmt: skip
_STEPS: Final[dict[str, Any]] = {
    "x": [i8(12, 16)], "weight": [i8(3, 16, 9)], "splitItem": 3, "groupType": 0,
    "scaleOptional": [_WORDS], "biasOptional": [t(3, 9, dtype="int32", low=-50, high=50)],
    "outDtype": _INT8,
}  # fmt: skip
_SHIFTED: Final[dict[str, Any]] = {
    **_STEPS, "offsetOptional": [const([[3.0 * n - 9 - g for n in range(9)] for g in range(3)],
                                       "float32")]}  # fmt: skip
# Weights of integers in scales and offsets of columns, and of blocks of eight rows.
_FINE: Final[tuple[dict[str, Any], ...]] = tuple(
    {
        **_SPLIT,
        "weight": [i8(3, 16, 9)],
        "antiquantScaleOptional": [f16(*n, low=0.05, high=0.3)],
        "antiquantOffsetOptional": [f16(*n, low=-4, high=4)],
    }
    for n in ((3, 9), (3, 2, 9))
)
_SUMMED: Final[dict[str, Any]] = {"x": [f16(5, 12)], "weight": [f16(12, 9)], "splitItem": 3,
                                  "groupType": 2}  # fmt: skip
_BIASED: Final = {"biasOptional": [f16(3, 9)]}
_FIRST: Final = ({**_SPLIT}, {**_SPLIT, **_BIASED}, _STEPS, _SHIFTED, _FINE[0])


def _without_type(form: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in form.items() if k != "groupType"}


# The first version has no groupType: groups come with their list.
spec("aclnnGroupedMatmul", "y:outDtype|x", extra="outDtype", **_ROW, steps=True, samples=[
    take(**_PAIRS), take(**{**_PAIRS, "biasOptional": [f16(9), f16(9)]}),
    *(take(**_without_type(f), groupListOptional=_ENDS) for f in _FIRST)])(
    lambda x, weight, groupListOptional=None, splitItem=0, biasOptional=None, scaleOptional=None,
    offsetOptional=None, antiquantScaleOptional=None, antiquantOffsetOptional=None:
    grouped(x, weight, groupListOptional, -1 if groupListOptional is None else 0, splitItem,
            biasOptional, scaleOptional, offsetOptional, antiquantScaleOptional,
            antiquantOffsetOptional))  # fmt: skip
for _version, _list in (("V2", _ENDS), ("V3", const(_ENDS, "int64"))):
    spec(f"aclnnGroupedMatmul{_version}", "y:outDtype|x", extra="outDtype", **_ROW, steps=True,
         samples=[
        take(**_PAIRS), *(take(**f, groupListOptional=_list) for f in (*_FIRST, _SUMMED))])(
        lambda x, weight, groupListOptional=None, groupType=-1, splitItem=0, biasOptional=None,
        scaleOptional=None, offsetOptional=None, antiquantScaleOptional=None,
        antiquantOffsetOptional=None:
        grouped(x, weight, groupListOptional, groupType, splitItem, biasOptional, scaleOptional,
                offsetOptional, antiquantScaleOptional, antiquantOffsetOptional))  # fmt: skip
_ROWS_SCALED: Final[dict[str, Any]] = {
    "x": [i8(12, 16)], "weight": [i8(3, 16, 9)], "splitItem": 3, "groupType": 0,
    "biasOptional": [t(3, 9, dtype="int32", low=-50, high=50)], "outDtype": _HALF,
    "scaleOptional": [t(3, 9, low=0.01, high=0.05)],
    "perTokenScaleOptional": [t(12, low=0.2, high=1)],
}  # fmt: skip
spec("aclnnGroupedMatmulV4 aclnnGroupedMatmulV5", "out:outDtype|x", extra="outDtype",
     ignored=reserved("activationInputOptional activationQuantScaleOptional "
                      "activationQuantOffsetOptional activationFeatureOutOptional "
                      "dynQuantScaleOutOptional"),
     **_ROW, steps=True,
     samples=[
         take(**_PAIRS, actType=0, groupListType=0),
         *(take(**f, actType=0, groupListType=0, groupListOptional=const(_ENDS, "int64"))
           for f in (*_FIRST, *_FINE[1:], _SUMMED)),
         take(**_SPLIT, **_BIASED, actType=0, groupListType=1,
              groupListOptional=const([4, 5, 3], "int64")),
         *(take(**_ROWS_SCALED, actType=a, groupListType=1,
                groupListOptional=const([4, 5, 3], "int64")) for a in (0, 1, 2, 4, 5))])(
    grouped)  # fmt: skip
_GATES: Final = {"ge": _gelu_tanh, "swi": _silu, "re": _relu}
_LAYERS: Final = {"gelu": _gelu_tanh, "fastgelu": _fast_gelu, "relu": _relu, "silu": _silu}


def ffn(
    x: Array,
    weight1: Array,
    weight2: Array,
    bias1: Array | None,
    bias2: Array | None,
    activation: str,
    expertTokens: Any = None,
    scale: Array | None = None,
    offset: Array | None = None,
    deqScale1: Array | None = None,
    deqScale2: Array | None = None,
    antiquantScale1: Array | None = None,
    antiquantScale2: Array | None = None,
    antiquantOffset1: Array | None = None,
    antiquantOffset2: Array | None = None,
    tokensIndexFlag: bool = False,
) -> Array:
    """Two layers of each expert, of its own rows. Between them quantised values are steps of int8;
    gates activate the first half of the columns and multiply by the second."""
    each = [len(x)] if expertTokens is None else list(expertTokens)
    cuts = (np.asarray(each) if tokensIndexFlag else np.cumsum(each))[:-1]
    alone = expertTokens is None

    def one(value: Array | None, g: int) -> Any:
        return value if value is None or alone else value[g]

    parts = []
    for g, rows in enumerate(np.split(x, cuts)):
        y = one_group(rows, one(weight1, g), one(bias1, g), one(deqScale1, g), None,
                      one(antiquantScale1, g), one(antiquantOffset1, g))  # fmt: skip
        word = activation.removesuffix("glu")
        a, gate = np.split(y, 2, -1) if word in _GATES else (y, np.ones(()))
        y = {**_GATES, **_LAYERS}[word if word in _GATES else activation](a) * gate
        if scale is not None:
            y = y * one(scale, g) + (0 if offset is None else one(offset, g))
            y = np.clip(np.rint(y), -128, 127)
        parts.append(one_group(y, one(weight2, g), one(bias2, g), one(deqScale2, g), None,
                               one(antiquantScale2, g), one(antiquantOffset2, g)))  # fmt: skip
    return np.concatenate(parts)


def _layers(**more: Any) -> dict[str, Any]:
    return {"x": f16(5, 16), "weight1": f16(16, 32), "weight2": f16(32, 16), "bias1": None,
            "bias2": None, "activation": "relu", "tokensIndexFlag": False, "innerPrecise": 0,
            **more}  # fmt: skip


def _experts(steps: bool) -> dict[str, Any]:
    """Three experts, one of them idle: plain, or in integers whose scales round nothing."""
    if not steps:
        return {"x": f16(7, 16), "weight1": f16(3, 16, 32), "weight2": f16(3, 32, 16),
                "bias1": f16(3, 32), "bias2": f16(3, 16)}  # fmt: skip
    powers = [[2.0 ** -(5 + (n + g) % 2) for n in range(32)] for g in range(3)]
    return {"x": i8(7, 16), "weight1": i8(3, 16, 32), "weight2": i8(3, 32, 16),
            "bias1": t(3, 32, dtype="int32", low=-50, high=50),
            "bias2": t(3, 16, dtype="int32", low=-50, high=50),
            "deqScale1": const(powers, "float32"),
            "deqScale2": t(3, 16, low=0.01, high=0.1),
            "scale": const([0.5, 1.0, 2.0], "float32"),
            "offset": const([-3.0, 4.0, 0.5], "float32"),
            "outDtype": _HALF}  # fmt: skip


def _without_offset() -> dict[str, Any]:
    return {k: v for k, v in _experts(True).items() if k != "offset"}


_FINE_LAYERS: Final = {
    "weight1": i8(16, 32), "weight2": i8(32, 16), "antiquantScale1": f16(32, low=0.01, high=0.1),
    "antiquantScale2": f16(16, low=0.01, high=0.1), "antiquantOffset1": f16(32, low=-4, high=4),
    "antiquantOffset2": f16(16, low=-4, high=4),
}  # fmt: skip
_PLAIN: Final = [
    *(take(**_layers(activation=f)) for f in ("relu", "silu", "gelu", "fastgelu")),
    take(**_layers(bias1=f16(32), bias2=f16(16))),
    *(take(**_layers(activation=f, weight2=f16(16, 16))) for f in ("geglu", "swiglu", "reglu")),
    take(**_layers(**_FINE_LAYERS)),
]  # fmt: skip
_FFN: Final[dict[str, Any]] = {
    "tolerance": "gradient", "dtypes": ("float16",),
    "source": "operator documents aclnnFFN, V2 and V3; op-plugin document npu_ffn",
    "renamed": {f"{n}Optional": n for n in (
        "expertTokens", "bias1", "bias2", "scale", "offset", "deqScale1", "deqScale2",
        "antiquantScale1", "antiquantScale2", "antiquantOffset1", "antiquantOffset2")},
}  # fmt: skip
spec("aclnnFFN", "y:outDtype|x", extra="outDtype", **_FFN, samples=[
    *_PLAIN, *(take(**_layers(**_experts(s)), expertTokens=(4, 0, 3)) for s in (False, True)),
    take(**_layers(**_without_offset()), expertTokens=(4, 0, 3))])(
    lambda x, weight1, weight2, bias1, bias2, activation, expertTokens=None, scale=None,
    offset=None, deqScale1=None, deqScale2=None, antiquantScale1=None, antiquantScale2=None,
    antiquantOffset1=None, antiquantOffset2=None:
    ffn(x, weight1, weight2, bias1, bias2, activation, expertTokens, scale, offset, deqScale1,
        deqScale2, antiquantScale1, antiquantScale2, antiquantOffset1, antiquantOffset2),
    )  # fmt: skip
for _version, _tokens in (("V2", lambda n: tuple(n)), ("V3", lambda n: const(n, "int64"))):
    spec(f"aclnnFFN{_version}", "y:outDtype|x", extra="outDtype", **_FFN, samples=[
        *_PLAIN,
        *(take(**{**_layers(**_experts(s)), "tokensIndexFlag": f}, expertTokens=_tokens(n))
          for s in (False, True) for f, n in ((False, [4, 0, 3]), (True, [4, 4, 7]))),
        take(**{**_layers(**_without_offset()), "tokensIndexFlag": False},
             expertTokens=_tokens([4, 0, 3]))])(
        ffn)  # fmt: skip
GROUPED: Final[dict[str, Any]] = {"tolerance": "gradient",
                                  "specials": False}  # fmt: skip


def scaled_groups(x: Array, weight: Array, sizes: Array, scale: Array, perRow: Array) -> Array:
    """int8 rows times each group's int8 weight, in the scales of columns and rows."""
    which = np.repeat(np.arange(len(sizes)), sizes)
    product = np.einsum("mk,mkn->mn", x.astype(np.float64), weight[which].astype(np.float64))
    return product * scale[which] * perRow[:, None]


@spec("aclnnGroupedMatmulWeightNz", "out:bfloat16",
      ignored=reserved("activationInputOptional activationQuantScaleOptional "
                       "activationQuantOffsetOptional activationFeatureOutOptional "
                       "dynQuantScaleOutOptional"),
      uncovered="offsetOptional antiquantScaleOptional antiquantOffsetOptional splitItem "
                "groupType actType quantGroupSize",
      **GROUPED, dtypes=("int8",),
      formats={"weight": TILES}, source="op-plugin document npu_grouped_matmul: int8 rows, a scale "
      "for each expert's column and for each row", samples=[
          take(x=[i8(12, 32)], weight=[i8(3, 32, 64)], biasOptional=b,
               scaleOptional=[t(3, 64, dtype="bfloat16", low=0.01, high=0.05)],
               perTokenScaleOptional=[t(12, low=0.2, high=1)], groupListOptional=const(g, "int64"),
               splitItem=3, groupType=0, groupListType=kind, actType=0, quantGroupSize=0)
          for kind, g in ((0, [4, 9, 12]), (1, [4, 5, 3]))
          for b in (None, [t(3, 64, dtype="int32", low=-50, high=50)])])  # fmt: skip
def grouped_weight(
    x: list[Array], weight: list[Array], biasOptional: list[Array] | None,
    scaleOptional: list[Array], perTokenScaleOptional: list[Array], groupListOptional: Array,
    groupListType: int,
) -> list[Array]:  # fmt: skip
    """groupListType 0: ends of groups, 1: their sizes."""
    sizes = groupListOptional if groupListType else np.diff(groupListOptional, prepend=0)
    args = sizes, scaleOptional[0], perTokenScaleOptional[0]
    y = scaled_groups(x[0], weight[0], *args)
    if biasOptional is not None:
        each = np.repeat(biasOptional[0] * scaleOptional[0], sizes, 0)
        y = y + each * perTokenScaleOptional[0][:, None]
    return [y]


@spec("aclnnGroupedMatmulAdd aclnnGroupedMatmulAddV2", "yRef:yRef",
      uncovered="transposeX transposeWeight groupType groupListType",
      **GRADIENT,
      dtypes=("float16", "bfloat16"), source="op-plugin test test_npu_grouped_matmul_add: each "
      "group's x^T weight, added to what is there", samples=[
          take(x=f16(12, 16), weight=f16(12, 9), groupList=const([4, 9, 12], "int64"),
               yRef=t(3, 16, 9), transposeX=True, transposeWeight=False, groupType=2,
               groupListType=0)])  # fmt: skip
def grouped_add(x: Array, weight: Array, groupList: Array, yRef: Array) -> Array:
    ends = groupList[:-1]
    parts = zip(np.split(x, ends), np.split(weight, ends), strict=True)
    return yRef + np.stack([a.T @ b for a, b in parts])
