"""References of lists, moves, fused operators and gradients against torch's own functions."""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))
import test_references as first  # noqa: E402
from chosen_formulas import CHOSEN  # noqa: E402
from exchanged_formulas import EXCHANGED  # noqa: E402
from fused_formulas import FUSED  # noqa: E402
from gated_formulas import GATED  # noqa: E402
from gradient_formulas import GRADIENTS  # noqa: E402
from inference_formulas import INFERENCE  # noqa: E402
from microscaling_formulas import MICROSCALING  # noqa: E402
from pictures_formulas import PICTURES  # noqa: E402
from product_formulas import PRODUCTS  # noqa: E402
from routed_formulas import ROUTED  # noqa: E402
from routing_formulas import ROUTING  # noqa: E402
from stated_formulas import STATED  # noqa: E402
from stepped_formulas import STEPPED  # noqa: E402
from taken_formulas import TAKEN  # noqa: E402
from test_references import SPECS, F, arguments, results, t  # noqa: E402


def each(name):
    """A word of torch on every member."""
    return lambda a: [getattr(torch, name)(v) for v in t(a["x"])]


def number(value):
    return float(np.asarray(value).reshape(()))


def pairs(word):
    return lambda a: [word(p, q) for p, q in zip(t(a["x1"]), t(a["x2"]), strict=True)]


def scaled(word):
    return lambda a: [word(p, q, alpha=number(a["alpha"]))
                      for p, q in zip(t(a["x1"]), t(a["x2"]), strict=True)]  # fmt: skip


def by_scalar(word):
    return lambda a: [word(v, number(a["scalar"])) for v in t(a["x"])]


def by_scalars(word):
    return lambda a: [word(v, s) for v, s in zip(t(a["x"]), a["scalars"], strict=True)]


def least(v, s):
    return torch.minimum(v, torch.tensor(s, dtype=v.dtype))


def most(v, s):
    return torch.maximum(v, torch.tensor(s, dtype=v.dtype))


WORDS = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div,
         "Maximum": torch.maximum, "Minimum": torch.minimum, "Pow": torch.pow}  # fmt: skip
SCALARS = {**WORDS, "Maximum": most, "Minimum": least}
TORCH = {
    f"aclnnForeach{n}": each(n.lower())
    for n in ("Acos", "Asin", "Atan", "Cos", "Cosh", "Exp", "Log", "Log10", "Log2", "Neg", "Sin",
              "Sqrt", "Tanh")
}  # fmt: skip
TORCH |= {
    "aclnnForeachACosInplace": each("acos"),
    "aclnnForeachLogInplace": each("log"),
    "aclnnForeachCopy": each("clone"),
    "aclnnForeachZeroInplace": each("zeros_like"),
}
for _name, _word in WORDS.items():
    TORCH[f"aclnnForeach{_name}List"] = (
        scaled(_word) if _name in ("Add", "Sub") else pairs(_word))  # fmt: skip
    TORCH[f"aclnnForeach{_name}Scalar"] = by_scalar(SCALARS[_name])
    TORCH[f"aclnnForeach{_name}ScalarList"] = by_scalars(SCALARS[_name])
for _name, _word in (("cmul", torch.addcmul), ("cdiv", torch.addcdiv)):
    TORCH[f"aclnnForeachAdd{_name}Scalar"] = lambda a, w=_word: [
        w(*v, value=number(a["scalar"])) for v in zip(*(t(a[k]) for k in ("x1", "x2", "x3")),
                                                      strict=True)]  # fmt: skip
    TORCH[f"aclnnForeachAdd{_name}ScalarList"] = lambda a, w=_word: [
        w(*v, value=float(s)) for *v, s in zip(*(t(a[k]) for k in ("x1", "x2", "x3")),
                                               a["scalars"], strict=True)]  # fmt: skip


def dynamic(y):
    scale = y.abs().amax(-1) / 127
    return y / scale[..., None], scale


def autograd(formula, *leaves, flow):
    made = [t(x).requires_grad_() for x in leaves]
    return list(torch.autograd.grad(formula(*made), made, t(flow)))


def turned_by(mode, x, c, s):
    if mode == 3:  # neighbours come into halves
        x = x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
    pairs = {0: (1, 2, -1), 1: (-1, 2, 1), 2: (2, 2, -1), 3: (1, 2, -1)}[mode]
    low, high = x.unflatten(-1, pairs).unbind(-2)
    return x * c + torch.stack([-high, low], -2).flatten(-3) * s


def scatter(word):
    def run(a):
        found = t(a["varRef"]).clone()
        for i, u in zip(a["indices"], t(a["updates"]), strict=True):
            found[int(i)] = word(found[int(i)], u)
        return found

    return run


def resized(rank, mode):
    """The gradient of torch's interpolate of that rank."""

    def run(a):
        align = a.get("alignCorners")
        x = torch.zeros(a["inputSize"], dtype=torch.float64, requires_grad=True)
        names = ("scales", "scalesD", "scalesH", "scalesW")
        scales = tuple(a[n] for n in names if a.get(n)) or None
        y = F.interpolate(x, None if scales else tuple(a["outputSize"]), scales, mode=mode,
                          align_corners=None if "nearest" in mode else bool(align),
                          recompute_scale_factor=False)  # fmt: skip
        return torch.autograd.grad(y, x, t(a["flow"]))[0]

    assert rank
    return run


def smoothed(mode):
    def run(a):
        x = torch.zeros(a["inputSize"], dtype=torch.float64, requires_grad=True)
        y = F.interpolate(x, a["flow"].shape[2:], mode=mode, antialias=True, align_corners=False)
        return torch.autograd.grad(y, x, t(a["flow"]))[0]

    return run


def layer_gradients(x, flow, gamma, rstd, mean):
    return torch.ops.aten.native_layer_norm_backward(
        t(flow), x, [x.shape[-1]], t(mean), t(rstd), t(gamma), torch.zeros_like(t(gamma)),
        [True] * 3)  # fmt: skip


def expert_rows(a):
    """Expanded rows in order of experts, by sorting pairs."""
    order = sorted(range(a["expertIdx"].size), key=lambda n: (a["expertIdx"].reshape(-1)[n], n))
    return t(a["x"])[torch.tensor(order) // a["expertIdx"].shape[1]]


def finalized(a, x1, scales, bias, expert):
    slots = t(a["expandedRowIdx"]).reshape(2, 5).T
    rows = t(a["expandedX"])[slots] + t(bias)[t(expert)]
    return t(x1) + (t(scales)[..., None] * rows).sum(1)


def rms(x, gamma, eps):
    return F.rms_norm(x, gamma.shape, gamma, eps)


def rope(a):
    """Pairs as complex numbers, turned by multiplication."""
    cos, sin = t(a["cosSinCache"])[t(a["positions"])].chunk(2, -1)
    turn = torch.complex(cos, sin)[:, None]
    outs = []
    for x in (t(a["queryIn"]), t(a["keyIn"])):
        h = x.reshape(4, -1, 32)
        p, q = h.chunk(2, -1) if a["isNeoxStyle"] else (h[..., 0::2], h[..., 1::2])
        y = torch.complex(p.contiguous(), q.contiguous()) * turn
        parts = (y.real, y.imag)
        whole = torch.cat(parts, -1) if a["isNeoxStyle"] else torch.stack(parts, -1).flatten(-2)
        outs.append(whole.reshape(x.shape))
    return outs


def rotated(a):
    """By the matrix that turns each pair: halves, neighbours, or halves of halves."""
    pair = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    eye = [torch.eye(n, dtype=torch.float64) for n in (64, 2, 32)]
    turn = {"half": torch.kron(pair, eye[0]), "interleave": torch.kron(eye[0], pair),
            "quarter": torch.kron(eye[1], torch.kron(pair, eye[2]))}[a["rotaryMode"]]  # fmt: skip
    return [t(x) * t(a["cos"]) + t(x) @ turn * t(a["sin"]) for x in (a["queryRef"], a["keyRef"])]


def sgd(a):
    p, g, b = ([x.clone() for x in t(a[k])] for k in (
        "paramsRef", "gradsRef", "momentumBufferListOptionalRef"))  # fmt: skip
    if a["gradScaleOptional"] is not None:
        g = [x / t(a["gradScaleOptional"]) for x in g]
    kept = [None] * len(p) if a["isFirstStep"] else b
    torch.optim._functional.sgd(
        p, g, kept, has_sparse_grad=False, foreach=False, fused=False,
        weight_decay=a["weightDecay"], momentum=a["momentum"], lr=a["lr"],
        dampening=a["dampening"], nesterov=a["nesterov"], maximize=a["maximize"])  # fmt: skip
    return [*p, *g, *kept]


TORCH |= {
    "aclnnForeachLerpList": lambda a: [torch.lerp(*v) for v in zip(
        t(a["x1"]), t(a["x2"]), t(a["weight"]), strict=True)],
    "aclnnForeachLerpScalar": lambda a: [torch.lerp(p, q, a["weight"]) for p, q in zip(
        t(a["x1"]), t(a["x2"]), strict=True)],
    "aclnnSquaredRelu": lambda a: F.relu(t(a["input"])) ** 2,
    "aclnnShrink": lambda a: torch.sign(t(a["self"])) * F.relu(t(a["self"]).abs() - a["bias"])
    * (t(a["self"]).abs() > a["lambd"]),
    "aclnnAddRelu": lambda a: F.relu(torch.add(t(a["self"]), t(a["other"]), alpha=a["alpha"])),
    "aclnnAddN": lambda a: torch.stack(t(a["tensors"])).sum(0),
    "aclnnAddV3": lambda a: torch.add(torch.tensor(a["self"]).double(), t(a["other"]),
                                      alpha=a["alpha"]),
    "aclnnRsub": lambda a: torch.rsub(t(a["self"]), t(a["other"]), alpha=a["alpha"]),
    "aclnnAminmax": lambda a: (torch.amin(t(a["self"]), a["dim"], a["keepDim"]),
                               torch.amax(t(a["self"]), a["dim"], a["keepDim"])),
    "aclnnAminmaxAll": lambda a: torch.aminmax(t(a["self"])),
    "aclnnMeanV2": lambda a: torch.mean(t(a["self"]), a["dim"], a["keepDim"]),
    "aclnnSquare": lambda a: torch.square(t(a["self"])),
    "aclnnClampTensor": lambda a: torch.clamp(t(a["self"]), t(a["clipValueMin"]),
                                              t(a["clipValueMax"])),
    "aclnnXLogYScalarOther": lambda a: torch.xlogy(t(a["self"]), a["other"]),
    "aclnnXLogYScalarSelf": lambda a: torch.xlogy(a["self"], t(a["other"])),
    "aclnnInplaceXLogYTensor": lambda a: torch.xlogy(t(a["selfRef"]), t(a["other"])),
    "aclnnRemainderScalarTensor": lambda a: torch.remainder(a["self"], t(a["other"])),
    "aclnnComplex": lambda a: torch.complex(t(a["real"]), t(a["imag"])),
    "aclnnReal": lambda a: torch.real(t(a["self"])),
    "aclnnMaskedScale": lambda a: t(a["self"]) * t(a["mask"]) * a["scale"],
    "aclnnLogdet": lambda a: torch.logdet(t(a["self"])),
    "aclnnRotaryPositionEmbeddingGrad": lambda a: autograd(
        partial(turned_by, a["mode"]), a["xOptional"], a["cos"], a["sin"], flow=a["dy"]),
    "aclnnApplyRotaryPosEmbV2": rotated,
    "aclnnApplyRotaryPosEmb": lambda a: [
        t(x) * t(a["cos"]) + torch.cat([-t(x)[..., 64:], t(x)[..., :64]], -1) * t(a["sin"])
        for x in (a["queryRef"], a["keyRef"])],
    "aclnnMoeGatingTopKSoftmaxV2": lambda a: torch.topk(t(a["x"]).softmax(-1), a["k"])
    if not a["renorm"] else (torch.topk(t(a["x"]), a["k"]).values.softmax(-1),),
    "aclnnMoeInitRouting": expert_rows, "aclnnMoeInitRoutingV2": expert_rows,
    "aclnnMoeInitRoutingV2Grad": lambda a: t(a["gradExpandedX"])[t(a["expandedRowIdx"])].unflatten(
        0, (-1, a["topK"])).sum(1),
    "aclnnMoeTokenPermute": lambda a: torch.cat([
        t(a["tokens"])[[n for n, r in enumerate(np.atleast_2d(a["indices"].reshape(5, -1)))
                        for c in r if c == e]] for e in range(3)])[: a["numOutTokens"] or None],
    "aclnnMoeTokenPermuteGrad": lambda a: autograd(
        lambda x: torch.zeros(10, 7, dtype=torch.float64).index_put(
            (t(a["sortedIndices"]),), x.repeat_interleave(2, 0)),
        np.zeros((5, 7)), flow=a["permutedOutputGrad"]),
    "aclnnMoeTokenUnpermuteGrad": lambda a: autograd(
        lambda x, p: (x[t(a["sortedIndices"])].unflatten(0, (-1, 2)) * p[..., None]).sum(1),
        a["permuteTokensOptional"], a["probsOptional"], flow=a["unpermutedTokensGrad"]),
    "aclnnInplaceAddRmsNorm": lambda a: rms(t(a["x1Ref"]) + t(a["x2Ref"]), t(a["gamma"]),
                                            a["epsilon"]),
    "aclnnAddRmsNormCast": lambda a: rms(t(a["x1"]) + t(a["x2"]), t(a["gamma"]), a["epsilon"]),
    "aclnnGroupNormSwish": lambda a: (lambda y: y * torch.sigmoid(a["swishScale"] * y)
                                      if a["activateSwish"] else y)(F.group_norm(
        t(a["x"]), a["numGroups"], t(a["gamma"]), t(a["beta"]), a["eps"])),
    "aclnnInstanceNorm": lambda a: F.instance_norm(t(a["x"]), weight=t(a["gamma"]),
                                                   bias=t(a["beta"]), eps=a["eps"]),
    "aclnnFakeQuantPerChannelAffineCachemask": lambda a: torch.fake_quantize_per_channel_affine(
        t(a["self"]).float(), t(a["scale"]).float(), t(a["zeroPoint"]), a["axis"], a["quantMin"],
        a["quantMax"]).double(),
    "aclnnQuantize": lambda a: None if a["scales"].size == 1 else t(a["x"]) / (
        t(a["scales"]) if a["axis"] == 1 else t(a["scales"])[:, None]) + (
        t(a["zeroPoints"]) if a["axis"] == 1 else t(a["zeroPoints"])[:, None]),
    "aclnnRmsNormQuant": lambda a: (rms(t(a["x"]), t(a["gamma"]), a["epsilon"]) + t(a["beta"]))
    * t(a["scale"]) + t(a["offset"]),
    "aclnnMatmulWeightNz": lambda a: t(a["self"]) @ t(a["mat2"]),
    "aclnnTransposeBatchMatMul": lambda a: torch.einsum("mbk,bkn->mbn", t(a["x1"]), t(a["x2"])),
    "aclnnMoeFinalizeRoutingV2": lambda a: finalized(
        a, a["x1Optional"], a["scalesOptional"], a["biasOptional"], a["expertIdxOptional"]),
    "aclnnMoeFinalizeRouting": lambda a: finalized(
        a, a["x1"] + (0 if a["x2Optional"] is None else a["x2Optional"]), a["scales"], a["bias"],
        a["expandedExpertIdx"]),
    "aclnnRotaryPositionEmbeddingV2": lambda a: t(a["x"]) * t(a["cos"])
    + torch.cat([-t(a["x"])[..., 32:], t(a["x"])[..., :32]], -1) * t(a["sin"]),
    "aclnnUpsampleNearest1dBackward": resized(1, "nearest"),
    "aclnnUpsampleNearest2dBackward": resized(2, "nearest"),
    "aclnnUpsampleNearestExact1dBackward": resized(1, "nearest-exact"),
    "aclnnUpsampleNearestExact2dBackward": resized(2, "nearest-exact"),
    "aclnnUpsampleNearestExact3dBackward": resized(3, "nearest-exact"),
    "aclnnUpsampleLinear1dBackward": resized(1, "linear"),
    "aclnnUpsampleBicubic2dBackward": resized(2, "bicubic"),
    "aclnnUpsampleTrilinear3dBackward": resized(3, "trilinear"),
    "aclnnUpsampleBilinear2dAABackward": smoothed("bilinear"),
    "aclnnUpsampleBicubic2dAAGrad": smoothed("bicubic"),
    "aclnnAdaptiveMaxPool2dBackward": lambda a: torch.ops.aten.adaptive_max_pool2d_backward(
        t(a["gradOutput"]), t(a["self"]), t(a["indices"])),
    "aclnnMaxPool2dWithIndicesBackward":
        lambda a: torch.ops.aten.max_pool2d_with_indices_backward(
            t(a["gradOutput"]), t(a["self"]), [2, 2],
            [a["self"].shape[2] // a["gradOutput"].shape[2]] * 2, [0, 0], [1, 1], False,
            t(a["indices"])),
    "aclnnMaxPool3dWithArgmaxBackward":
        lambda a: torch.ops.aten.max_pool3d_with_indices_backward(
            t(a["gradOutput"]), t(a["self"]), [2] * 3, [2] * 3, [0] * 3, [1] * 3, False,
            t(a["indices"]).long()),
    "aclnnGlobalMaxPool": lambda a: F.adaptive_max_pool2d(t(a["self"]), 1),
    "aclnnMaxUnpool2d": lambda a: torch.zeros(2, 3, 30, dtype=torch.float64).scatter(
        2, t(a["indices"]).flatten(2), t(a["self"]).flatten(2)).unflatten(2, (5, 6)),
    "aclnnMaxUnpool2dBackward": lambda a: t(a["gradOutput"]).flatten(2).gather(
        2, t(a["indices"]).flatten(2)).unflatten(2, (2, 3)),
    "aclnnConvDepthwise2d": lambda a: F.conv2d(t(a["self"]), t(a["weight"]), t(a["bias"]), (1, 2),
                                               (1, 1), (1, 1), 3),
    "aclnnNLLLossBackward": lambda a: autograd(
        lambda x: F.nll_loss(
            x, t(a["target"]), t(a["weight"]), reduction=("none", "mean", "sum")[a["reduction"]],
            ignore_index=a["ignoreIndex"]), a["self"], flow=a["gradOutput"])
    if a["reduction"] != 1 else None,
    "aclnnMaxN": lambda a: torch.stack(t(a["tensors"])).amax(0),
    "aclnnMinN": lambda a: torch.stack(t(a["tensors"])).amin(0),
    "aclnnMaxV2": lambda a: t(a["self"]) if not a["dims"] and a["noopWithEmptyDims"] else (
        torch.amax(t(a["self"]), a["dims"] or None, a["keepDims"])),
    "aclnnXlog1py": lambda a: torch.special.xlog1py(t(a["x"]), t(a["y"])),
    "aclnnReduceLogSum": lambda a: t(a["data"]).sum(a["axes"], a["keepDims"]).log(),
    "aclnnAngleV2": lambda a: torch.angle(t(a["x"])),
    "aclnnBitwiseAndTensorOut": lambda a: torch.bitwise_and(t(a["self"]), t(a["other"])),
    "aclnnEinsum": lambda a: torch.einsum(a["equation"], *t(a["tensors"])),
    "aclnnIndexAddV2": lambda a: torch.index_add(t(a["self"]), a["dim"], t(a["index"]),
                                                 t(a["source"]), alpha=a["alpha"]),
    "aclnnCdistBackward": lambda a: autograd(lambda x: torch.cdist(x, t(a["x2"])), a["x1"],
                                             flow=a["grad"]),
    "aclnnGeluMul": lambda a: F.gelu(
        t(a["input"])[..., :65], approximate=a["approximateOptional"]) * t(a["input"])[..., 65:],
    "aclnnGeGluBackward": lambda a: autograd(lambda x: x[:, :32] * F.gelu(
        x[:, 32:], approximate=("none", "tanh")[a["approximate"]]), a["self"],
        flow=a["gradOutput"]),
    "aclnnGeGluV3Backward": lambda a: autograd(lambda x: x[:, 32:] * F.gelu(
        x[:, :32], approximate=("none", "tanh")[a["approximate"]]), a["self"],
        flow=a["gradOutput"]),
    "aclnnScaledMaskedSoftmax": lambda a: (t(a["x"]) * a["scale"]).masked_fill(
        torch.arange(32) > torch.arange(64)[:, None] if a["fixedTriuMask"] else t(a["mask"]),
        -10000.0).softmax(-1),
    "aclnnScaledMaskedSoftmaxBackward": lambda a: torch.ops.aten._softmax_backward_data(
        t(a["gradOutput"]), t(a["y"]), -1, torch.float64).masked_fill(t(a["mask"]), 0.0)
    * a["scale"],
    "aclnnGatherNd": lambda a: t(a["self"])[t(a["indices"])[:, 0], t(a["indices"])[:, 1]],
    "aclnnGatherV3": lambda a: (
        torch.take_along_dim(t(a["self"]), t(a["index"]).unsqueeze(3 - a["dim"] % 3), a["dim"])
        if a["batchDims"] else t(a["self"])[t(a["index"])]),
    "aclnnScatterNd": lambda a: t(a["data"]).index_put(
        tuple(t(a["indices"]).T), t(a["updates"])),
    "aclnnScatterNdUpdate": lambda a: t(a["varRef"]).index_put(
        tuple(t(a["indices"]).T), t(a["updates"])),
    "aclnnScatterMax": scatter(torch.maximum), "aclnnScatterMin": scatter(torch.minimum),
    "aclnnScatterMul": scatter(torch.mul), "aclnnScatterDiv": scatter(torch.div),
    "aclnnTfScatterAdd": scatter(torch.add),
    "aclnnChunkCat": lambda a: torch._chunk_cat(t(a["tensors"]), a["dim"], a["numChunks"]),
    "aclnnEmbeddingRenorm": lambda a: torch.embedding_renorm_(
        t(a["selfRef"]), t(a["indices"]), a["maxNorm"], a["normType"]),
    "aclnnInplaceCumprod": lambda a: torch.cumprod(t(a["input"]), a["dim"]),
    "aclnnAdaLayerNorm": lambda a: F.layer_norm(
        t(a["x"]), [64], t(a["weightOptional"]), t(a["biasOptional"]), a["epsilon"])
    * (1 + t(a["scale"])[:, None]) + t(a["shift"])[:, None],
    "aclnnAdaLayerNormV2": lambda a: F.layer_norm(
        t(a["x"]), [64], t(a["weightOptional"]), t(a["biasOptional"]), a["epsilon"])
    * (1 + t(a["scale"])[:, None]) + t(a["shift"])[:, None],
    "aclnnAddRmsNormDynamicQuant": lambda a: dynamic(rms(
        t(a["x1"]) + t(a["x2"]), t(a["gamma"]), a["epsilon"]) * t(a["smoothScale1Optional"]))[:1],
    "aclnnAddLayerNormGrad": lambda a: layer_gradients(
        t(a["x1"]) + t(a["x2"]), a["dy"], a["gamma"], a["rstd"], a["mean"])
    if a["dsumOptional"] is None else None,
    "aclnnDeepNormGrad": lambda a: (None, layer_gradients(
        a["alpha"] * t(a["x"]) + t(a["gx"]), a["dy"], a["gamma"], a["rstd"], a["mean"])[0]),
    "aclnnBatchNormElemt": lambda a: F.batch_norm(
        t(a["input"]), t(a["mean"]), 1 / t(a["invstd"]) ** 2, t(a["weight"]), t(a["bias"]),
        eps=0.0),
    "aclnnBatchNormStats": lambda a: (t(a["input"]).mean((0, 2, 3)), (
        t(a["input"]).var((0, 2, 3), correction=0) + a["eps"]).rsqrt()),
    "aclnnBatchNormReduce": lambda a: (t(a["x"]).sum((0, 2, 3)), (t(a["x"]) ** 2).sum((0, 2, 3))),
    "aclnnFusedSgd": sgd,
    "aclnnExpand": lambda a: t(a["self"]).expand(a["size"]),
    "aclnnFlatten": lambda a: t(a["self"]).reshape(math.prod(a["self"].shape[:a["axis"]]), -1),
    "aclnnPermute": lambda a: t(a["self"]).permute(a["dims"]),
    "aclnnSlice": lambda a: t(a["self"])[:, a["start"]:a["end"]:a["step"]] if a["dim"] else
    t(a["self"])[a["start"]:a["end"]:a["step"]],
    "aclnnSplitTensor": lambda a: torch.split(t(a["self"]), a["splitSections"], a["dim"]),
    "aclnnSplitWithSize": lambda a: torch.split(t(a["self"]), list(a["splitSize"]), a["dim"]),
    "aclnnGatherV2": lambda a: torch.index_select(
        t(a["self"]), a["dim"], t(a["index"]).flatten()).unflatten(
        a["dim"] % a["self"].ndim, a["index"].shape),
    "aclnnIndexFillTensor": lambda a: t(a["self"]).index_fill(
        a["dim"], torch.tensor(a["index"]), a["value"]),
    "aclnnMaskedSelect": lambda a: torch.masked_select(t(a["self"]), t(a["mask"])),
    "aclnnNonzeroV2": lambda a: torch.nonzero(t(a["self"])).T,
    "aclnnSearchSorteds": lambda a: torch.searchsorted(t(a["sortedSequence"]), a["self"],
                                                       right=a["right"]),
    "aclnnIsInScalarTensor": lambda a: torch.isin(a["element"], t(a["testElements"]),
                                                  invert=a["invert"]),
    "aclnnIsInTensorScalar": lambda a: torch.isin(t(a["element"]), a["testElement"],
                                                  invert=a["invert"]),
    "aclnnNanMedian": lambda a: torch.nanmedian(t(a["self"])),
    "aclnnRepeatInterleave": lambda a: torch.repeat_interleave(t(a["self"]), t(a["repeats"])),
    "aclnnRepeatInterleaveInt": lambda a: torch.repeat_interleave(t(a["self"]), a["repeats"]),
    "aclnnRepeatInterleaveIntWithDim": lambda a: torch.repeat_interleave(
        t(a["self"]), a["repeats"], a["dim"]),
    "aclnnRepeatInterleaveTensor": lambda a: torch.repeat_interleave(t(a["repeats"])),
    "aclnnRepeatInterleaveGrad": lambda a: autograd(
        lambda x: x.repeat_interleave(t(a["repeats"]), a["axis"]), np.zeros((3, 4)),
        flow=a["yGrad"]),
    "aclnnRange": lambda a: torch.range(a["start"], a["end"], a["step"], dtype=torch.float64),
    "aclnnArange": lambda a: torch.arange(a["start"], a["end"], a["step"], dtype=torch.float64),
    "aclnnLogSpace": lambda a: torch.logspace(a["start"], a["end"], a["steps"], a["base"],
                                              dtype=torch.float64),
    "aclnnUnique": lambda a: torch.unique(t(a["self"]), True, True),
    "aclnnUniqueConsecutive": lambda a: torch.unique_consecutive(t(a["self"]), True, True),
    "aclnnCast": lambda a: t(a["self"]).to(torch.int32).double(),
    "aclnnEqual": lambda a: torch.tensor([torch.equal(t(a["self"]), t(a["other"]))]),
    "aclnnAttentionUpdate": lambda a: (
        (torch.stack(t(a["lse"])).softmax(0)[..., None] * torch.stack(t(a["localOut"]))).sum(0),
        torch.stack(t(a["lse"])).logsumexp(0) if a["updateType"] else None),
    "aclnnExpSegsum": lambda a: torch.stack([torch.stack([
        t(a["self"])[..., j + 1:i + 1].sum(-1).exp() * (j <= i) for j in range(16)], -1)
        for i in range(16)], -2),
    "aclnnTransformBiasRescaleQkv": lambda a: torch.ops.aten._transform_bias_rescale_qkv(
        t(a["qkv"]).clone(), t(a["qkvBias"]), a["numHeads"]),
    "aclnnUniqueDim": lambda a: torch.unique(t(a["self"]), True, True, True, dim=a["dim"]),
    "aclnnRopeWithSinCosCache": rope,
    "aclnnRReluWithNoise": lambda a: F.rrelu(t(a["self"]), a["lower"], a["upper"], False),
    "aclnnAddmmWeightNz": lambda a: torch.addmm(t(a["self"]), t(a["mat1"]), t(a["mat2"]),
                                                beta=a["beta"], alpha=a["alpha"]),
    "aclnnInplaceFillTensor": lambda a: t(a["selfRef"]).fill_(2.5),
}  # fmt: skip
TORCH |= FUSED | ROUTED | PRODUCTS | CHOSEN | STATED | INFERENCE | MICROSCALING | GATED | GRADIENTS
TORCH |= EXCHANGED | STEPPED | PICTURES | TAKEN | ROUTING


SINGLE = (
    "aclnnAdaLayerNormBackward",
    "aclnnFakeQuantPerChannelAffineCachemask",
    "aclnnAngleV2",
    "aclnnApplyAdamW",
    "aclnnCdistBackward",
    "aclnnExpSegsumBackward",
    "aclnnGRUBackward",
    "aclnnLstmBackward",
    "aclnnMhcSinkhornBackward",
    "aclnnThnnFusedLstmCellBackward",
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TORCH)
def test_a_reference_gives_what_torch_gives(name):
    row, compared = SPECS[name], 0
    for sample in range(len(list(row.samples()))):
        given = arguments(row, sample)
        theirs = TORCH[name](given)
        if theirs is None:
            continue
        theirs = list(theirs) if isinstance(theirs, tuple | list) else [theirs]
        # torch computes these in float32, or the sample gives what was rounded to it.
        coarse = name in SINGLE
        loose = {"rtol": 1e-5 if coarse else 1e-8, "atol": 1e-6 if coarse else 1e-9}
        for mine, other in zip(results(row, given), theirs, strict=False):
            if mine is not None and other is not None:
                other = other.detach().numpy()
                np.testing.assert_allclose(mine.reshape(other.shape), other, **loose)
                compared += 1
    assert compared


# By hand, in test_references, or of what nothing else computes: a mask of bits, packed scales.
ELSEWHERE = frozenset((
    "aclnnSliceV2", "aclnnStridedSliceAssignV2", "aclnnStridedSlice", "aclnnInplaceScatterUpdate",
    "aclnnDropoutBackward", "aclnnDropoutDoMask", "aclnnInterleaveRope", "aclnnScatterPaCache",
    "aclnnApplyAdamWV2", "aclnnForeachNonFiniteCheckAndUnscale",
    "aclnnDropoutV3Grad",
))  # fmt: skip


def test_every_reference_has_a_check_of_its_own():
    told = [*TORCH, *first.TORCH, *first.WORDED, *first.BY_NAME, *ELSEWHERE, "aclnnFusedAdamw",
            *(c[0] for c in first.BY_HAND)]  # fmt: skip
    checked = {id(SPECS[n].reference) for n in told}
    missing = {n for n, r in SPECS.items()
               if r.tolerance != "random" and id(r.reference) not in checked}  # fmt: skip
    assert not missing, f"give these references a check: {sorted(missing)}"
