"""Gates, losses over split vocabularies, caches, pooled regions and steps of optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import mindtorch.nn.functional as F
from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..formulas import words
from ..spec import given, spec, t, take
from .gates import swiglu
from .norms import rms_norm
from .sequences import _conv as conv_arguments
from .sequences import convolved
from .stated import partial_rotary


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


@spec("aclnnMoeFusedTopk", "y:float32 indices:int32", family="moe", tolerance="composite",
      specials=False, source="document of Ascend Transformer Boost, FusedAddTopkDivOperation: "
      "sigmoid, added bias (positive here: whether a closed group counts as 0 is open), best "
      "groups by their best, best experts, division by their sum",
      samples=[
          take(x=t(4, 12), addNum=t(12, low=0.1), mappingNum=None, mappingTable=None, groupNum=g,
               groupTopk=k, topN=n, topK=c, activateType=0, isNorm=norm, scale=s,
               enableExpertMapping=False)
          for g, k, n, norm, s, c in ((3, 2, 2, True, 1.5, 4), (3, 2, 1, False, 1.0, 4),
                                      (2, 1, 2, True, 0.5, 3))],
      casts={"addNum": {"float16": "float16", "bfloat16": "bfloat16"}})  # fmt: skip
def fused_top_k(
    x: Array, addNum: Array, groupNum: int, groupTopk: int, topN: int, topK: int, isNorm: bool,
    scale: float,
) -> tuple[Array, Array]:  # fmt: skip
    p = (1 + np.tanh(x / 2)) / 2
    score = (p + addNum).reshape(len(x), groupNum, -1)
    worth = np.sort(score, -1)[..., -topN:].sum(-1)
    shut = np.argsort(-worth, -1, kind="stable")[:, groupTopk:]
    np.put_along_axis(score, shut[..., None], -np.inf, 1)
    at = np.argsort(-score.reshape(len(x), -1), -1, kind="stable")[:, :topK]
    y = np.take_along_axis(p, at, -1)
    return (y / y.sum(-1, keepdims=True) if isNorm else y) * scale, at


_VOCABULARY: Final[dict[str, Any]] = {
    "family": "loss", "tolerance": "gradient", "specials": False,
    "source": "Shoeybi et al.: Megatron-LM, 2019, section 3; op-plugin documents "
    "npu_fused_linear_online_max_sum and npu_cross_entropy_loss",
}  # fmt: skip
_LOCAL: Final = [0, 3, 6, 2, 0, 0, 5, 1]
_ELSEWHERE: Final = [0, 1, 0, 0, 1, 0, 0, 0]


@spec("aclnnFusedLinearCrossEntropyLossGrad", "inputGradOut:input weightGradOut:weight",
      dtypes=("float16", "bfloat16"), **_VOCABULARY, samples=[
          take(grad=t(8), input=_h(8, 16), weight=_h(7, 16), labelSmoothing=0.0,
               targetMask=given(np.packbits(_ELSEWHERE), "uint8"),
               maskedTarget=given(_LOCAL, "int64"), **rest)
          for rest in ({"logitsMaxOptional": t(8), "sumExpLogitsOptional": t(8, low=3, high=9)},
                       {"softmaxOptional": t(8, 7, low=0.0, high=0.3)})])  # fmt: skip
def cross_entropy_grads(
    grad: Array, input: Array, weight: Array, targetMask: Array, maskedTarget: Array,
    logitsMaxOptional: Array | None, sumExpLogitsOptional: Array | None,
    softmaxOptional: Array | None,
) -> tuple[Array, Array]:  # fmt: skip
    """Probabilities less one at the label, where it belongs to this device."""
    if logitsMaxOptional is not None and sumExpLogitsOptional is not None:
        p = np.exp(input @ weight.T - logitsMaxOptional[:, None]) / sumExpLogitsOptional[:, None]
    else:
        p = np.array(softmaxOptional)
    here = 1 - np.unpackbits(targetMask)[: len(p)].astype(np.float64)
    p[np.arange(len(p)), maskedTarget] -= here
    p *= grad[:, None]
    return p @ weight, p.T @ input


@spec("aclnnCrossEntropySumExpAndIndexLogit", "predictedLogitsOut:float32 sumExpLogitsOut:float32 "
      "expLogitsOut:float32 targetOffsetOut:target targetMaskOut:bool", **_VOCABULARY,
      dtypes=("float32",), samples=[
          take(vocabParallelLogits=t(4, 5), target=given([7, 2, 9, 10], "int32"),
               globalLogitsMax=t(4, low=2, high=3), vocabStartIndex=a, vocabEndIndex=a + 5)
          for a in (5, 2)])  # fmt: skip
def parted_sums(
    vocabParallelLogits: Array, target: Array, globalLogitsMax: Array, vocabStartIndex: int,
    vocabEndIndex: int,
) -> tuple[Array, ...]:  # fmt: skip
    """A label of another device has offset 0, a mask, and no logit."""
    shifted = vocabParallelLogits - globalLogitsMax[:, None]
    away = (target < vocabStartIndex) | (target >= vocabEndIndex)
    offset = np.where(away, 0, target - vocabStartIndex)
    own = np.where(away, 0, shifted[np.arange(len(target)), offset])
    e = np.exp(shifted)
    return own, e.sum(1), e, offset, away


def _qkv(
    d: int, size: int, index: Sequence[int], heads: tuple[int, int, int] = (2, 1, 1), **more: Any
) -> dict[str, Any]:
    rows, all_heads = len(index), sum(heads)
    return {"qkv": _h(rows, all_heads * d), "qGamma": _h(d), "kGamma": _h(d), "cos": _h(rows, d),
            "sin": _h(rows, d), "index": given(index, "int64"), "qOut": _h(rows, heads[0] * d),
            "kCache": _h(2, heads[1] * d // 16, size, 16),
            "vCache": _h(2, heads[2] * d // 16, size, 16), "qkvSize": (1, rows, all_heads, d),
            "headNums": heads, "cacheModeOptional": "PA_NZ", **more}  # fmt: skip


# Caches of small integers, in tiles of 32: what is kept is divided, and shifted.
_SMALL: Final[dict[str, Any]] = {
    "kCache": t(2, 1, 4, 32, dtype="int8", low=-9, high=9),
    "vCache": t(2, 1, 4, 32, dtype="int8", low=-9, high=9),
    "kScaleOptional": t(32, low=0.05, high=0.2), "vScaleOptional": t(32, low=0.05, high=0.2),
    "kOffsetOptional": t(32), "vOffsetOptional": t(32, low=1),
}  # fmt: skip


@spec("aclnnQkvRmsNormRopeCache", "qOut:qkv kCache:kCache vCache:vCache qOutBeforeQuant:qkv "
      "kOutBeforeQuant:qkv vOutBeforeQuant:qkv", family="cache", tolerance="gradient",
      specials=False, steps=True, dtypes=("float16",),
      source="op-plugin test test_npu_qkv_rms_norm_rope_cache: norms, halves that turn, caches in "
      "tiles of 32 bytes", samples=[
          take(**_qkv(32, 4, (5, -1, 2)), epsilon=1e-5),
          take(**_qkv(32, 4, (0, 7, 3, 1)), epsilon=0.5),
          take(**_qkv(32, 4, (5, -1, 2), (3, 2, 2)), epsilon=1e-5),
          take(**_qkv(32, 4, (5, -1, 2), **_SMALL), epsilon=1e-5)])  # fmt: skip
def qkv_cache(
    qkv: Array, qGamma: Array, kGamma: Array, cos: Array, sin: Array, index: Array, kCache: Array,
    vCache: Array, qkvSize: Sequence[int], headNums: Sequence[int], epsilon: float,
    kScaleOptional: Array | None, vScaleOptional: Array | None, kOffsetOptional: Array | None,
    vOffsetOptional: Array | None,
) -> tuple[Array, ...]:  # fmt: skip
    d, (queries, keys, _) = qkvSize[3], headNums
    rows = qkv.reshape(len(qkv), -1, d)

    def turned(x: Array) -> Array:
        other = np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], -1)
        return x * cos[:, None] + other * sin[:, None]

    def flat(x: Array) -> Array:
        return x.reshape(len(x), -1)

    q = flat(turned(rms_norm(rows[:, :queries], qGamma, epsilon)[0]))
    k = flat(turned(rms_norm(rows[:, queries : queries + keys], kGamma, epsilon)[0]))
    v, caches = flat(rows[:, queries + keys :]), []
    for cache, new, scale, offset in ((kCache, k, kScaleOptional, kOffsetOptional),
                                      (vCache, v, vScaleOptional, vOffsetOptional)):  # fmt: skip
        pages, size = cache.astype(np.float64), cache.shape[2]
        moved = 0 if offset is None else offset
        kept = new if scale is None else np.clip(new / scale + moved, -128, 127)
        for row, at in zip(kept, index, strict=True):
            if at >= 0:
                pages[at // size, :, at % size] = row.reshape(-1, cache.shape[3])
        caches.append(pages)
    return q, *caches, q, k, v


def _own_mask(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """The mask is the operator's own: any will do."""
    return [values[0], got[1]]


@spec("aclnnMaxPool2dWithMask", "out:self indices:int8", family="pool", tolerance="exact",
      sparse=True, dtypes=("float16", "bfloat16", "float32"), nearest=_own_mask,
      source="torch 2.13, document of F.max_pool2d; the mask is the operator's own and not judged",
      samples=[
          take(self=t(2, 3, 6, 7), kernelSize=k, stride=k, padding=p, dilation=(1, 1),
               ceilMode=False) for k, p in (((2, 2), (0, 0)), ((3, 2), (1, 1)))])  # fmt: skip
def masked_pool(
    self: Array, kernelSize: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...]
) -> tuple[Any, Array]:
    y = words(lambda x: F.max_pool2d(x, kernelSize, stride, padding))(x=self)
    blocks = -(-y.shape[2] * y.shape[3] // 16) + 1
    mask = np.zeros((*y.shape[:2], kernelSize[0] * kernelSize[1], blocks * 32), np.int8)
    return y, mask


@spec("aclnnInplaceAddV3", "other:other", family="arithmetic", tolerance="elementary",
      dtypes=("float32", "float16", "bfloat16"), renamed={"selfRef": "self", "other": "other"},
      source="torch 2.13, document of torch.add: a number plus alpha times a tensor", samples=[
          take(self=s, other=t(3, 5), alpha=a) for s, a in ((3.0, 2.0), (-1.5, 1.0))])  # fmt: skip
def number_added(self: float, other: Array, alpha: float) -> Array:
    return self + alpha * other


@spec("aclnnInplacePartialRotaryMulGrad", "dyRef:dyRef", family="attention", tolerance="gradient",
      source="Su et al.: RoFormer, 2021, section 3.4; the transpose of the turn", samples=[
          take(dyRef=t(2, 3, 4, 16), cos=t(2, 3, 1, 8), sin=t(2, 3, 1, 8), rotaryMode=m,
               partialSlice=(b, b + 8)) for m, b in ((0, 4), (1, 4), (0, 8))])  # fmt: skip
def partial_rotary_grad(
    dyRef: Array, cos: Array, sin: Array, rotaryMode: int, partialSlice: Sequence[int]
) -> Array:
    """The turn of each unit vector, against what flows in."""
    n, out = dyRef.shape[-1], np.zeros_like(dyRef)
    for k in range(n):
        unit = np.broadcast_to(np.eye(n)[k], dyRef.shape)
        out[..., k] = (partial_rotary(unit, cos, sin, rotaryMode, partialSlice) * dyRef).sum(-1)
    return out


def _sinkhorn(x: Array, rounds: int) -> tuple[Array, Array]:
    """Norms and sums of all steps, [2 rounds, rows, columns, batch] and without rows or columns."""
    e = np.exp(x - x.max(-1, keepdims=True))
    sums, norms = [e.sum(-1)], [e / e.sum(-1, keepdims=True) + 1e-6]
    for axis in (-2, *(-1, -2) * (rounds - 1)):
        sums.append(norms[-1].sum(axis) + 1e-6)
        norms.append(norms[-1] / np.expand_dims(sums[-1], axis))
    return np.moveaxis(np.stack(norms), 1, -1), np.moveaxis(np.stack(sums), 1, -1)


def _balanced(rounds: int) -> dict[str, Arg]:
    norms, sums = _sinkhorn(t(3, 4, 4).array().astype(np.float64), rounds)
    return {"gradOutput": t(3, 4, 4, low=-1), "normOut": given(norms, "float32"),
            "sumOut": given(sums, "float32")}  # fmt: skip


@spec("aclnnMhcSinkhornBackward", "out:gradOutput", family="residual", tolerance="gradient",
      specials=False, dtypes=("float32",), source="Sinkhorn, Knopp 1967; op-plugin document "
      "npu_mhc_sinkhorn", samples=lambda: [take(**_balanced(r)) for r in (1, 3)])  # fmt: skip
def sinkhorn_grad(gradOutput: Array, normOut: Array, sumOut: Array) -> Array:
    """Each division by a sum takes from the gradient its mean, weighed by the result."""
    g, steps = gradOutput, np.moveaxis(normOut, -1, 1)
    sums = np.moveaxis(sumOut, -1, 1)
    for k in range(len(steps) - 1, 0, -1):
        axis = -2 if k % 2 else -1
        y = steps[k]
        g = (g - (g * y).sum(axis, keepdims=True)) / np.expand_dims(sums[k], axis)
    p = steps[0] - 1e-6
    return p * (g - (g * p).sum(-1, keepdims=True))


@spec("aclnnRmsNormGradQuant", "dxOut:int8 dgammaOut:float32", family="norm", tolerance="gradient",
      steps=True, specials=False, dtypes=("float32", "float16", "bfloat16"),
      casts={n: {"float16": "float32", "bfloat16": "float32"}
             for n in ("rstd", "scalesX")},
      source="Zhang, Sennrich: Root Mean Square Layer Normalization, 2019; op-plugin document "
      "npu_rms_norm_quant for the step", samples=[
          take(dy=t(3, 16), x=t(3, 16), rstd=t(3, 1, low=0.5, high=1), gamma=t(16), scalesX=t(
              1, low=0.05, high=0.2), offsetXOptional=o, quantMode="static", divMode=d)
          for o, d in ((None, True), (given([3], "int32"), False))])  # fmt: skip
def rms_grad_steps(
    dy: Array, x: Array, rstd: Array, gamma: Array, scalesX: Array, offsetXOptional: Array | None,
    divMode: bool,
) -> tuple[Array, Array]:  # fmt: skip
    hat = x * rstd
    g = dy * gamma
    dx = rstd * (g - hat * (g * hat).mean(-1, keepdims=True))
    y = dx / scalesX if divMode else dx * scalesX
    return y + (0 if offsetXOptional is None else offsetXOptional), (dy * hat).sum(0)


def _adam(amsgrad: bool, maximize: bool) -> dict[str, Any]:
    one = {"beta1Power": 0.81, "beta2Power": 0.9801, "lr": 0.1, "weightDecay": 0.05, "beta1": 0.9,
           "beta2": 0.99, "eps": 1e-3}  # fmt: skip
    return {"varRef": t(3, 5), "mRef": t(3, 5), "vRef": t(3, 5, low=0.1), "grad": t(3, 5),
            "maxGradNormOptional": t(3, 5, low=0.1) if amsgrad else None, "amsgrad": amsgrad,
            "maximize": maximize, **{k: given([v], "float32") for k, v in one.items()}}  # fmt: skip


@spec("aclnnApplyAdamW", "varRef:varRef mRef:mRef vRef:vRef", family="optimizer",
      tolerance="gradient", specials=False, dtypes=("float32",),
      source="Loshchilov, Hutter: Decoupled Weight Decay Regularization, 2019, algorithm 2; the "
      "powers are those before the step", samples=[
          take(**_adam(False, m)) for m in (False, True)])  # fmt: skip
def adam_w(
    varRef: Array, mRef: Array, vRef: Array, beta1Power: Array, beta2Power: Array, lr: Array,
    weightDecay: Array, beta1: Array, beta2: Array, eps: Array, grad: Array, maximize: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    g = -grad if maximize else grad
    m, v = beta1 * mRef + (1 - beta1) * g, beta2 * vRef + (1 - beta2) * g * g
    first, second = m / (1 - beta1Power * beta1), v / (1 - beta2Power * beta2)
    return varRef * (1 - lr * weightDecay) - lr * first / (np.sqrt(second) + eps), m, v


def _states(width: int, **more: Any) -> dict[str, Any]:
    known = conv_arguments(width, **more)
    names = {"convStates": "convStatesRef", "queryStartLoc": "queryStartLocOptional",
             "cacheIndices": "cacheIndicesOptional", "bias": "biasOptional",
             "initialStateMode": "initialStateModeOptional"}  # fmt: skip
    return {names.get(k, k): v for k, v in known.items()}


@spec("aclnnCausalConv1dFn aclnnCausalConv1dUpdate", "y:x convStatesRef:x", family="convolution",
      tolerance="gradient", specials=False, dtypes=("float16", "bfloat16"),
      source="vLLM, causal_conv1d_fn and causal_conv1d_update", samples=[
          take(**_states(2), activation="silu", nullBlockId=-1, blockSizeToAlign=0),
          take(**_states(5, bias=_h(6)), activation="none", nullBlockId=-1, blockSizeToAlign=0)],
      )  # fmt: skip
def causal_states(
    x: Array, weight: Array, convStatesRef: Array, biasOptional: Array | None,
    queryStartLocOptional: Array, cacheIndicesOptional: Array, activation: str,
) -> tuple[Array, Array]:  # fmt: skip
    return convolved(x, weight, convStatesRef, queryStartLocOptional, cacheIndicesOptional,
                     biasOptional, None, activation == "silu", False)  # fmt: skip


_REGIONS: Final = [[0.0, 1.0, 1.0, 4.0, 4.0], [1.0, 0.0, 2.0, 5.0, 3.0]]


def _corners(roi: Array, scale: float) -> tuple[int, ...]:
    return tuple(int(np.floor(v * scale + 0.5)) for v in roi[1:])


@spec("aclnnRoiPoolingWithArgMax", "y:x argmax:int32", family="pool", tolerance="exact",
      sparse=True, specials=False, dtypes=("float32", "float16"),
      source="Girshick: Fast R-CNN, 2015, section 2.1; Caffe's layer ROIPooling", samples=[
          take(x=t(2, 3, 6, 6), rois=given(_REGIONS, "float32"), pooled_h=h, pooled_w=w,
               spatial_scale_h=high, spatial_scale_w=wide)
          for h, w, high, wide in ((2, 2, 1.0, 1.0), (3, 4, 1.0, 1.0), (2, 2, 0.8, 0.6))],
      casts={"rois": {"float16": "float16"}})  # fmt: skip
def region_maxima(
    x: Array, rois: Array, pooled_h: int, pooled_w: int, spatial_scale_h: float,
    spatial_scale_w: float,
) -> tuple[Array, Array]:  # fmt: skip
    """A region's rows and columns are cut into bins that may share pixels."""
    shape = (len(rois), x.shape[1], pooled_h, pooled_w)
    y, at = np.zeros(shape), np.full(shape, -1)
    for n, roi in enumerate(rois):
        left, _, right, _ = _corners(roi, spatial_scale_w)
        _, top, _, bottom = _corners(roi, spatial_scale_h)
        high, wide = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i, j in np.ndindex(pooled_h, pooled_w):
            rows = range(top + i * high // pooled_h, top - (-(i + 1) * high // pooled_h))
            columns = range(left + j * wide // pooled_w, left - (-(j + 1) * wide // pooled_w))
            places = [r * x.shape[3] + c for r in rows for c in columns
                      if 0 <= r < x.shape[2] and 0 <= c < x.shape[3]]  # fmt: skip
            if places:
                values = x[int(roi[0])].reshape(x.shape[1], -1)[:, places]
                best = values.argmax(1)
                y[n, :, i, j], at[n, :, i, j] = values.max(1), np.array(places)[best]
    return y, at


@spec("aclnnRoiPoolingGradWithArgMax", "gradInputRef:gradOutput", family="pool",
      tolerance="accumulated", sparse=True, specials=False, dtypes=("float32",),
      source="Girshick: Fast R-CNN, 2015, section 2.3", samples=[
          take(gradOutput=t(2, 3, 2, 2), gradInputRef=given(np.zeros((2, 3, 6, 6)), "float32"),
               rois=given(_REGIONS, "float32"), pooledH=2, pooledW=2, spatialScale=1.0,
               argmax=given((np.arange(24) * 5 % 36).reshape(2, 3, 2, 2), "int32"))])  # fmt: skip
def region_grads(gradOutput: Array, gradInputRef: Array, rois: Array, argmax: Array) -> Array:
    """What flows in goes to the pixel that won."""
    out = gradInputRef.copy()
    flat = out.reshape(*out.shape[:2], -1)
    for n, c, i, j in np.ndindex(gradOutput.shape):
        flat[int(rois[n, 0]), c, argmax[n, c, i, j]] += gradOutput[n, c, i, j]
    return out


@spec("aclnnSwigluGroupQuant", "yOut:dstType yScaleOut:float32 yOriginOut:x", family="quantisation",
      tolerance="composite", steps=True, specials=False, dtypes=("bfloat16",),
      source="Shazeer: GLU Variants Improve Transformer, 2020; op-plugin document "
      "npu_swiglu_group_quant", samples=[
          take(x=t(6, 16, dtype="bfloat16"), weightOptional=t(6, 1, low=0.2),
               groupIndexOptional=given(g, "int64"), scaleOptional=None, dstType=36, quantMode=3,
               blockSize=0, roundScale=False, clampLimit=0.0, dstTypeMax=most, outputOrigin=True)
          for g, most in (([2, 4], 0.0), ([5, 1], 0.0), ([3, 3], 240.0))])  # fmt: skip
def gated_groups(
    x: Array, weightOptional: Array, groupIndexOptional: Array, dstTypeMax: float
) -> tuple[Array, Array, Array]:
    """Rows of a group share the scale of their peak, which becomes the type's largest number or
    the one that is named."""
    y = swiglu(x, True) * weightOptional
    which = np.repeat(np.arange(len(groupIndexOptional)), groupIndexOptional)
    peaks = np.array([np.abs(y[which == g]).max() for g in range(len(groupIndexOptional))])
    scale = peaks / (dstTypeMax or 448)
    return y / scale[which][:, None], scale, y
