"""Gated activations with quantised results, products of experts with them, and their caches."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take
from .attention import turned
from .norms import rms_norm
from .quantisation import dynamic, quant_matmul

_PAGES: Final = ("Shazeer: GLU Variants Improve Transformer, 2020; op-plugin documents "
                 "npu_dequant_swiglu_quant, npu_swiglu_quant")  # fmt: skip
_Q: Final[dict[str, Any]] = {"family": "quantisation", "tolerance": "gradient", "steps": True,
                             "source": _PAGES}  # fmt: skip


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


def swiglu(x: Array, left: bool) -> Array:
    """silu of one half times the other; `left`: the first half is activated."""
    a, b = np.split(x, 2, -1)
    gate, value = (a, b) if left else (b, a)
    return gate / (1 + np.exp(-gate)) * value


def swiglu_quant(
    x: Array, smoothScalesOptional: Array, activateLeft: bool, groupIndexOptional: Array | None,
    quantModeOptional: str, offsetsOptional: Array | None, groupListType: int = 0, dstType: int = 2,
) -> tuple[Array, Array | None]:  # fmt: skip
    """The second result is what a row is multiplied by: 127 (of four bits 7) over its largest, as
    the operator's documents have it from CANN 8.3 on (8.1 and 8.2 printed its reciprocal, and
    multiplied too). Groups end where groupIndex says, or have as many rows (groupListType 1).
    Static modes multiply by the scales and add offsets."""
    group = np.zeros(len(x), np.int64)
    if groupIndexOptional is not None:
        ends = np.cumsum(groupIndexOptional) if groupListType else groupIndexOptional
        group = np.searchsorted(ends, np.arange(len(x)), "right")
    y = swiglu(x, activateLeft)
    scale, offset = (None if p is None else p.reshape(len(p), -1)[group]
                     for p in (smoothScalesOptional, offsetsOptional))  # fmt: skip
    y = y * scale
    if quantModeOptional == "static":
        return y + offset, None
    factor = (7 if dstType == _FOUR else 127) / np.abs(y).max(-1)
    return y * factor[..., None], factor


_FOUR: Final = 29  # aclDataType
_GROUPS: Final = given([4, 9, 12], "int32")
_SWISH: Final = [
    *(take(x=_h(4, 64), smoothScalesOptional=t(1, 32, low=0.5), groupIndexOptional=given(
        [4], "int32"), activateLeft=left, quantModeOptional="dynamic", groupListType=0, dstType=2)
      for left in (True, False)),
    take(x=_h(12, 64), smoothScalesOptional=t(3, 32, low=0.5), groupIndexOptional=_GROUPS,
         activateLeft=True, quantModeOptional="dynamic", groupListType=0, dstType=2),
    *(take(x=_h(12, 64), smoothScalesOptional=t(*n, low=3, high=9), offsetsOptional=t(
        *n, low=-9, high=9), groupIndexOptional=_GROUPS, activateLeft=True,
        quantModeOptional="static", groupListType=0, dstType=2) for n in ((3, 32), (3,))),
]  # fmt: skip
_SWISH_OUTS: Final[dict[str, Any]] = {**_Q, "dtypes": ("float16", "bfloat16", "float32")}
spec("aclnnSwiGluQuant", "yOut:int8 scaleOut:float32", **_SWISH_OUTS, samples=_SWISH)(
    lambda x, smoothScalesOptional, activateLeft, groupIndexOptional, quantModeOptional,
    offsetsOptional: swiglu_quant(x, smoothScalesOptional, activateLeft, groupIndexOptional,
                                  quantModeOptional, offsetsOptional))  # fmt: skip
spec("aclnnSwiGluQuantV2", "yOut:dstType scaleOut:float32", **_SWISH_OUTS, samples=[
    *_SWISH,
    take(x=_h(12, 64), smoothScalesOptional=t(3, 32, low=0.5), groupIndexOptional=given(
        [4, 5, 3], "int32"), activateLeft=True, quantModeOptional="dynamic", groupListType=1,
         dstType=2),
    take(x=_h(4, 64), smoothScalesOptional=t(1, 32, low=0.5), groupIndexOptional=None,
         activateLeft=True, quantModeOptional="dynamic", groupListType=0, dstType=_FOUR)])(
    swiglu_quant)  # fmt: skip


def dequant_swiglu_quant(
    x: Array,
    weightScaleOptional: Array,
    activationScaleOptional: Array,
    biasOptional: Array | None,
    quantScaleOptional: Array,
    quantOffsetOptional: Array | None,
    groupIndexOptional: Array | None,
    activateLeft: bool,
    quantModeOptional: str,
    swigluMode: int = 0,
    clampLimit: float = 7.0,
    gluAlpha: float = 1.702,
    gluBias: float = 1.0,
) -> tuple[Array, Array | None]:
    """groupIndex counts rows of groups, which have scales of their own. A bias of integers counts
    products. swigluMode 1 takes neighbours as pairs, 2 halves; both hold their members within the
    limit (GPT-OSS)."""
    group = np.zeros(len(x), np.int64)
    if groupIndexOptional is not None:
        group = np.repeat(np.arange(len(groupIndexOptional)), groupIndexOptional)
    bias = 0 if biasOptional is None else np.atleast_2d(biasOptional)[group]
    whole = biasOptional is not None and biasOptional.dtype.kind == "i"
    y = (x + bias if whole else x) * weightScaleOptional[group] * activationScaleOptional
    y = y if whole else y + bias
    if swigluMode:
        a, b = (y[..., 0::2], y[..., 1::2]) if swigluMode == 1 else np.split(y, 2, -1)
        a, b = np.minimum(a, clampLimit), np.clip(b, -clampLimit, clampLimit)
        y = a / (1 + np.exp(-gluAlpha * a)) * (b + gluBias)
    else:
        y = swiglu(y, activateLeft)
    if quantModeOptional == "static":
        assert quantOffsetOptional is not None
        return y / quantScaleOptional[group] + quantOffsetOptional[group], None
    return dynamic(y, quantScaleOptional[group])


def _dequantised(groups: list[int], **more: Any) -> Any:
    rows, g = sum(groups), len(groups)
    return take(**{
        "x": t(rows, 64, dtype="int32", low=-900, high=900),
        "weightScaleOptional": t(g, 64, low=0.001, high=0.01),
        "activationScaleOptional": t(rows, 1, low=0.5), "biasOptional": None,
        "quantScaleOptional": t(g, 32, low=0.5), "quantOffsetOptional": None,
        "groupIndexOptional": given(groups, "int64"), "activateLeft": True,
        "quantModeOptional": "dynamic", "dstType": 2, "roundModeOptional": "rint",
        "activateDim": -1, "swigluMode": 0, "clampLimit": 7.0, "gluAlpha": 1.702, "gluBias": 1.0,
        **more})  # fmt: skip


_DEQUANTISED: Final = [
    _dequantised([4]), _dequantised([4], activateLeft=False), _dequantised([2, 0, 3]),
    _dequantised([2, 3], biasOptional=t(2, 64, dtype="int32", low=-300, high=300)),
    _dequantised([2, 3], biasOptional=t(2, 64)),
    _dequantised([5], quantModeOptional="static", quantScaleOptional=t(1, 32, low=0.05, high=0.2),
                 quantOffsetOptional=t(1, 32, low=-9, high=9)),
]  # fmt: skip
spec("aclnnDequantSwigluQuant", "yOut:int8 scaleOut:float32", **_Q, dtypes=("float32",),
     samples=_DEQUANTISED)(
    lambda x, weightScaleOptional, activationScaleOptional, biasOptional, quantScaleOptional,
    quantOffsetOptional, groupIndexOptional, activateLeft, quantModeOptional:
    dequant_swiglu_quant(
        x, weightScaleOptional, activationScaleOptional, biasOptional, quantScaleOptional,
        quantOffsetOptional, groupIndexOptional, activateLeft, quantModeOptional))  # fmt: skip
spec("aclnnDequantSwigluQuantV2", "yOut:int8 scaleOut:float32", **_Q, dtypes=("float32",),
     samples=[*_DEQUANTISED,
              *(_dequantised([2, 3], swigluMode=m, clampLimit=1.5, gluAlpha=1.3, gluBias=0.7)
                for m in (1, 2))])(dequant_swiglu_quant)  # fmt: skip


@spec("aclnnRmsNormQuant", "y:int8", **{**_Q, "source": "Zhang, Sennrich 2019, then round(y scale "
      "+ offset)"}, dtypes=("float16", "bfloat16"), samples=[
          take(x=_h(3, 64), gamma=_h(64), beta=_h(64), scale=given([8.0], "float16"),
               offset=given([3], "int8"), epsilon=1e-6)])  # fmt: skip
def rms_norm_quant(
    x: Array, gamma: Array, beta: Array, scale: Array, offset: Array, epsilon: float
) -> Array:
    return (rms_norm(x, gamma, epsilon)[0] + beta) * scale + offset


@spec("aclnnAddRmsNormQuant", "y1Out:int8 y2Out:int8 xOut:x1", **{**_Q, "source":
      "Zhang, Sennrich 2019, then round(y / scale + zero point)"}, dtypes=("float16", "bfloat16"),
      samples=[take(x1=_h(3, 64), x2=_h(3, 64), gamma=_h(64), scales1=t(64, low=0.05, high=0.2),
                    zeroPoints1Optional=t(64, dtype="int32", low=-5, high=5),
                    scales2Optional=t(64, low=0.05, high=0.2), axis=-1, epsilon=1e-6,
                    zeroPoints2Optional=z, divMode=d)
               for d in (True, False)
               for z in (None, t(64, dtype="int32", low=-5, high=5))])  # fmt: skip
def add_rms_norm_quant(
    x1: Array,
    x2: Array,
    gamma: Array,
    scales1: Array,
    zeroPoints1Optional: Array | None,
    scales2Optional: Array | None,
    zeroPoints2Optional: Array | None,
    epsilon: float,
    divMode: bool,
) -> tuple[Array, Array, Array]:
    y = rms_norm(x1 + x2, gamma, epsilon)[0]
    first, second = (
        (y / s if divMode else y * s) + (0 if z is None else z)
        for s, z in ((scales1, zeroPoints1Optional), (scales2Optional, zeroPoints2Optional))
    )
    return first, second, x1 + x2


@spec("aclnnRmsNormDynamicQuant", "yOut:int8 scaleOut:float32", **_Q,
      dtypes=("float16", "bfloat16"), samples=[
          take(x=_h(3, n), gamma=_h(n), smoothScalesOptional=s, betaOptional=b, epsilon=1e-6,
               dstType=2)
          for n, s, b in ((64, None, None), (64, _h(64, low=0.5), None), (1032, None, None),
                          (64, _h(64, low=0.5), _h(64)))])  # fmt: skip
def rms_norm_dynamic(
    x: Array, gamma: Array, smoothScalesOptional: Array | None, betaOptional: Array | None,
    epsilon: float,
) -> tuple[Array, Array]:  # fmt: skip
    y = rms_norm(x, gamma, epsilon)[0]
    return dynamic(y if betaOptional is None else y + betaOptional, smoothScalesOptional)


_INT: Final[dict[str, Any]] = {"dtype": "int8", "low": -8, "high": 8}


def steps_of_rows(x: Array, smooth: Array | None, scale: Array | None) -> tuple[Array, Array]:
    """(integers, scale of each row): in a scale that comes along, or by each row's largest."""
    y = x if smooth is None else x * smooth
    if scale is None:
        steps, own = dynamic(y)
        return np.rint(steps), own
    own = np.broadcast_to(scale.reshape(-1), (len(x),))
    return np.clip(np.rint(y / own[:, None]), -128, 127), own


_SCALED_STEPS: Final = (
    (None, None, "pertoken"), (_h(32, low=0.5), None, "pertoken"),
    (None, given([2.0**-5, 2.0**-4, 2.0**-5, 2.0**-6, 2.0**-4], "float32"), "pertoken"),
    (None, given([2.0**-5], "float32"), "pertensor"))  # fmt: skip


@spec("aclnnQuantMatmulDequant", "out:x", family="quant_matmul", tolerance="gradient",
      dtypes=("float16",), source="operator document aclnnQuantMatmulDequant; op-plugin document "
      "npu_quant_matmul_dequant", samples=[
          take(x=_h(5, 32), weight=t(16, 32, **_INT), weightScale=t(16, low=0.01, high=0.1),
               smoothScaleOptional=s, xScaleOptional=x, xQuantMode=m, transposeWeight=True)
          for s, x, m in _SCALED_STEPS])  # fmt: skip
def quant_matmul_dequant(
    x: Array, weight: Array, weightScale: Array, smoothScaleOptional: Array | None,
    xScaleOptional: Array | None,
) -> Array:  # fmt: skip
    steps, scale = steps_of_rows(x, smoothScaleOptional, xScaleOptional)
    return steps @ weight.T.astype(np.float64) * weightScale * scale[:, None]


@spec("aclnnMatmulWeightNz aclnnBatchMatMulWeightNz", "out:self", family="matmul",
      tolerance="accumulated", dtypes=("float16", "bfloat16"),
      source="a matrix product; the second operand lies in the inner format", samples=[
          take(self=_h(16, 32), mat2=_h(32, 16), cubeMathType=0),
          take(self=_h(5, 40), mat2=_h(40, 33), cubeMathType=0)],
      formats={"mat2": "FRACTAL_NZ"})  # fmt: skip
def matmul_nz(self: Array, mat2: Array) -> Array:
    return self @ mat2


@spec("aclnnTransposeBatchMatMul aclnnTransposeBatchMatMulWeightNz", "out:x1",
      family="matmul", tolerance="gradient",
      dtypes=("float16", "bfloat16", "float32"),
      formats={"aclnnTransposeBatchMatMulWeightNz x2": "FRACTAL_NZ"},
      source="op-plugin document npu_transpose_batchmatmul", samples=[
          take(x1=_h(5, 3, 64), x2=_h(3, 64, 32), permX1=(1, 0, 2), permX2=(0, 1, 2),
               permY=(1, 0, 2), cubeMathType=0, batchSplitFactor=1)])  # fmt: skip
def transpose_batch_matmul(
    x1: Array, x2: Array, permX1: tuple[int, ...], permX2: tuple[int, ...], permY: tuple[int, ...]
) -> Array:
    return (x1.transpose(permX1) @ x2.transpose(permX2)).transpose(permY)


@spec("aclnnEmbeddingBag", "output:weight offset2bag:indices bagSize:indices maxIndices:indices",
      family="index", tolerance="gradient", source="torch 2.13, document of F.embedding_bag",
      dtypes=("float32", "float16"), fixed_layout=True, samples=[
          take(weight=t(7, 5) if m < 2 else t(7, 5, low=-9, high=-1),
               indices=given([1, 3, 0, 6, 3], "int64"),
               offsets=given(o, "int64"), scaleGradByFreq=False, mode=m, sparse=False,
               perSampleWeights=w, includeLastOffset=last, paddingIdx=pad)
          for m, w, o, last, pad in (
              (0, None, [0, 2, 2], False, -1), (0, t(5, low=0.5), [0, 2, 2], False, -1),
              (0, None, [0, 2, 4], False, 3), (1, None, [0, 2, 4], False, 3),
              (1, None, [0, 2, 5], True, -1), (2, None, [0, 2, 4], False, -1),
              (2, None, [0, 2, 4], False, 6))] + [
          take(weight=t(7, 5), indices=given([[1, 3, 0], [6, 3, 5]], "int64"),
               offsets=given([0, 1], "int64"), scaleGradByFreq=False, mode=m, sparse=False,
               perSampleWeights=None, includeLastOffset=False, paddingIdx=-1)
          for m in (0, 1)])  # fmt: skip
def embedding_bag(
    weight: Array, indices: Array, offsets: Array, mode: int, perSampleWeights: Array | None,
    includeLastOffset: bool, paddingIdx: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Sums (mode 0), means (1) and maxima (2) of bags, with the rows that maxima come from; what
    names the padding counts for nothing. Indices of two dims are bags of one size."""
    if indices.ndim == 2:
        offsets, indices = np.arange(len(indices)) * indices.shape[1], indices.reshape(-1)
        includeLastOffset = False
    rows = weight[indices] * (1 if perSampleWeights is None else perSampleWeights[:, None])
    rows = rows * (indices != paddingIdx)[:, None]
    bounds = [*offsets, *(() if includeLastOffset else (len(indices),))]
    bags = [slice(a, b) for a, b in pairwise(bounds)]
    sizes = np.array([(indices[bag] != paddingIdx).sum() for bag in bags])
    out = np.stack([rows[bag].sum(0) for bag in bags])
    out = out / np.maximum(sizes, 1)[:, None] if mode == 1 else out
    bag_of = np.searchsorted(bounds, np.arange(len(indices)), "right") - 1
    if mode == 2:
        named = [indices[bag][indices[bag] != paddingIdx] for bag in bags]
        best = np.stack([rows[weight[rows].argmax(0)] for rows in named])
        return np.take_along_axis(weight, best, 0), bag_of, sizes, best
    return out, bag_of, sizes, np.zeros((0,), np.int64)


@spec("aclnnMoeTokenPermuteWithRoutingMap",
      "permuteTokensOut:tokens permuteProbsOutOptional:probsOptional sortedIndicesOut:int32",
      family="moe", tolerance="exact", specials=False,
      source="Megatron-LM, permute with a routing map of moe_utils", samples=[
          take(tokens=t(5, 7), routingMap=given([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 1, 1],
               [1, 0, 1]], "bool"), probsOptional=t(5, 3), numOutTokens=n, dropAndPad=pad)
          for n, pad in ((10, False), (12, True), (6, True))] + [
          take(tokens=t(5, 7), routingMap=given(np.arange(5 * 66).reshape(5, 66) % 3 == 0, "bool"),
               probsOptional=t(5, 66), numOutTokens=132, dropAndPad=True)])  # fmt: skip
def permute_map(
    tokens: Array, routingMap: Array, probsOptional: Array, numOutTokens: int, dropAndPad: bool
) -> tuple[Array, Array, Array]:
    """Padded: each expert has as many rows, of its own tokens first and then of others."""
    if dropAndPad:
        capacity = numOutTokens // routingMap.shape[1]
        token = np.argsort(~routingMap.T, 1, kind="stable")[:, :capacity]
        probs = np.take_along_axis(probsOptional.T, token, 1).reshape(-1)
        return tokens[token.reshape(-1)], probs, token.reshape(-1)
    expert, token = np.nonzero(routingMap.T)
    order = np.argsort(token, kind="stable")
    return tokens[token], probsOptional[token, expert], order


@spec("aclnnMoeFinalizeRoutingV2", "out:expandedX", family="moe", tolerance="gradient",
      source="op-plugin document npu_moe_finalize_routing", samples=[
          take(expandedX=t(3, 3, 7) if m % 2 else t(10, 7), expandedRowIdx=given(
              [6, 0, 3, 7, 1, 4, 8, 5, 2, -1] if m % 2 else [3, 9, 0, 5, 1, 7, 2, 8, 4, 6],
              "int32"), x1Optional=t(5, 7), x2Optional=x2, biasOptional=t(3, 7),
               scalesOptional=t(5, 2), expertIdxOptional=given(
                   [[2, 0], [1, 2], [0, 1], [2, 1], [0, 2]], "int32"), dropPadMode=m)
          for m, x2 in ((0, None), (0, t(5, 7)), (1, None), (2, None), (3, None))])  # fmt: skip
def finalize_v2(
    expandedX: Array,
    expandedRowIdx: Array,
    x1Optional: Array,
    x2Optional: Array | None,
    biasOptional: Array,
    scalesOptional: Array,
    expertIdxOptional: Array,
    dropPadMode: int,
) -> Array:
    """Rows of tokens lie by columns of the table (modes 0, 1) or by lines (2, 3); those dropped
    (1, 3) are 0."""
    tokens, width = scalesOptional.shape
    rows = expandedX.reshape(-1, expandedX.shape[-1])
    table = expandedRowIdx.reshape(width, tokens).T if dropPadMode < 2 else (
        expandedRowIdx.reshape(tokens, width))  # fmt: skip
    taken = np.where((table >= 0)[..., None], rows[np.maximum(table, 0)], 0)
    y = (scalesOptional[..., None] * (taken + biasOptional[expertIdxOptional])).sum(1)
    return x1Optional + y + (0 if x2Optional is None else x2Optional)


_WORDS: Final = given([(0x3C23C000 + (n << 13)) | 1 << 46 for n in range(9)], "uint64")


@spec("aclnnQuantMatmulV3", "out:outDtype|float16", family="quant_matmul", tolerance="gradient",
      dtypes=("bfloat16",), steps=True, source="operator document aclnnQuantMatmulV3; op-plugin "
      "document npu_quant_matmul", samples=[
          take(x1=t(33, 5, **_INT) if left else t(5, 33, **_INT),
               x2=t(9, 33, **_INT) if right else t(33, 9, **_INT), scale=w, bias=b, offset=o,
               transposeX1=left, transposeX2=right, outDtype=d)
          for left, right, b, w, o, d in (
              (False, False, None, _WORDS, None, None),
              (True, False, t(9, dtype="int32", low=-50, high=50), _WORDS, None, None),
              (False, True, t(9, dtype="int32", low=-50, high=50),
               given([0x3D800000 + (n % 3 << 23) for n in range(9)], "uint64"),
               given([3.0 * n - 11 for n in range(9)], "float32"), 2))])  # fmt: skip
def quant_matmul_v3(
    x1: Array, x2: Array, scale: Array, bias: Array | None, offset: Array | None,
    transposeX1: bool, transposeX2: bool,
) -> Array:  # fmt: skip
    """Scales come packed: the low 32 bits are a float32's (npu_trans_quant_param)."""
    real = (scale & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32).astype(np.float64)
    return quant_matmul(x1, x2, bias, transposeX1, transposeX2, real, offset)


@spec("aclnnRotaryPositionEmbeddingV2", "out:x", family="rotary", tolerance="gradient",
      dtypes=("float16", "bfloat16", "float32"), source="Su et al.: RoFormer, 2021; op-plugin "
      "document npu_rotary_mul: the rotation as a matrix", samples=[
          take(x=t(2, 5, 3, 64), cos=t(1, 5, 1, 64, low=-1, high=1),
               sin=t(1, 5, 1, 64, low=-1, high=1), mode=0, rotate=given(
                   turned(np.eye(64), False).tolist(), "float32"))])  # fmt: skip
def rotary_v2(x: Array, cos: Array, sin: Array, rotate: Array) -> Array:
    return x * cos + (x @ rotate) * sin


@spec("aclnnIou", "overlap:bBoxes", family="boxes", tolerance="composite",
      dtypes=("float32", "float16"), source="torchvision, ops.box_iou", samples=[
          take(bBoxes=given([[0.0, 0.0, 4.0, 4.0], [1.0, 1.0, 3.0, 5.0]], "float32"),
               gtBoxes=given([[2.0, 2.0, 6.0, 6.0], [0.0, 0.0, 2.0, 2.0],
                              [1.0, 0.0, 3.0, 4.0]][: 2 if aligned else 3], "float32"),
               mode=mode, eps=eps, aligned=aligned)
          for mode, aligned, eps in (("iou", False, 1e-6), ("iof", False, 0.5),
                                     ("iou", True, 0.5))])  # fmt: skip
def iou(bBoxes: Array, gtBoxes: Array, mode: str, eps: float, aligned: bool) -> Array:
    """[boxes, ground truth], or [boxes, 1] of pairs; `iof` divides by the truth's area alone."""
    first, second = bBoxes[:, None], gtBoxes[:, None] if aligned else gtBoxes[None]
    shared = (np.minimum(first[..., 2:], second[..., 2:])
              - np.maximum(first[..., :2], second[..., :2])).clip(0).prod(-1)  # fmt: skip
    own, truth = ((b[..., 2:] - b[..., :2]).prod(-1) for b in (first, second))
    return shared / ((truth if mode == "iof" else own + truth - shared) + eps)
