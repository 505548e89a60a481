"""Every reference of the spec rows holds against something else: torch, or numbers by hand."""

from __future__ import annotations

import types

import numpy as np
import pytest
from mindtorch_npu.conformance.cases.case import Case
from mindtorch_npu.conformance.cases.recipe import Slot, recipe
from mindtorch_npu.conformance.operators import rows
from mindtorch_npu.conformance.operators.spec import MISSING, SPECS, UNSPECIFIED

assert rows

torch = pytest.importorskip("torch")
F = torch.nn.functional
SAMPLES = 3


class Row:
    """A spec row with what a recipe asks a subject for."""

    def __init__(self, row):
        self.row, self.name = row, row.name

    def samples(self):
        return list(self.row.samples())


def arguments(row, sample):
    """What the reference gets for a sample, by its own parameter names."""
    made = recipe(Row(row), Case(row.name, "functional", sample), 0).kwargs

    def host(value):
        if isinstance(value, Slot):
            a = value.array
            return a.astype(np.float64) if a.dtype.kind == "f" or a.dtype.kind == "V" else a
        return [host(v) for v in value] if isinstance(value, list) else value

    found = {}
    for name, default in row.parameters().items():
        value = made.get(name, default)
        found[name] = None if value is MISSING else host(value)
    return found


def python(name):
    import keyword

    return name + "_" if keyword.iskeyword(name) else name


def results(row, given):
    found = row.reference(**{python(k): v for k, v in given.items()})
    found = found if isinstance(found, tuple) else (found,)
    flat = []
    for value in found:
        flat += value if isinstance(value, list) else [value]
    return [None if v is None else np.asarray(v) for v in flat]


def tensors(value):
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value, order="C"))
    return [tensors(v) for v in value] if isinstance(value, list) else value


def in_torch(formula):
    """The formula of a row with torch in mindtorch's place, in the functions that it calls too."""
    return _in_torch(formula, {})


def _in_torch(function, spaces):
    space = spaces.get(function.__module__)
    if space is None:
        space = spaces[function.__module__] = {**function.__globals__, "torch": torch, "F": F}
        for name, value in list(space.items()):
            if isinstance(value, types.FunctionType) and value.__module__.startswith(rows.__name__):
                space[name] = _in_torch(value, spaces)
    cells = tuple(types.CellType(_word(c.cell_contents)) for c in function.__closure__ or ())
    defaults = tuple(_word(v) for v in function.__defaults__ or ())
    return types.FunctionType(function.__code__, space, function.__name__, defaults, cells)


def _word(value):
    """torch's function of the same name in place of mindtorch's."""
    if not callable(value):
        return value
    return getattr(F, value.__name__, None) or getattr(torch, value.__name__, value)


WORDED = sorted(n for n, r in SPECS.items() if hasattr(r.reference, "__wrapped__"))


@pytest.mark.parametrize("name", WORDED)
def test_a_formula_in_words_gives_the_same_in_torch(name):
    row = SPECS[name]
    formula = in_torch(row.reference.__wrapped__)
    for sample in range(min(SAMPLES, len(list(row.samples())))):
        given = arguments(row, sample)
        ours = results(row, given)
        told = formula.__code__.co_varnames[: formula.__code__.co_argcount]
        own = [p for p in given if python(p) in told and not p.startswith("_")]
        inflow = [p for p in given if python(p) not in told and isinstance(given[p], np.ndarray)]
        fed = {python(p): tensors(given[p]) for p in own}
        leaves = [p for p in getattr(row.reference, "leaves", ()) if fed[p] is not None]
        for p in leaves:
            fed[p].requires_grad_()
        theirs = formula(**fed)
        theirs = list(theirs) if isinstance(theirs, tuple | list) else [theirs]
        if not leaves:
            compare(ours, theirs)
            continue
        flows = [tensors(given[p]).reshape(o.shape) for p, o in zip(inflow, theirs, strict=False)]
        found = torch.autograd.grad(theirs[: len(flows)], [fed[p] for p in leaves], flows,
                                    allow_unused=True)  # fmt: skip
        # torch keeps some constants in float32: hardsigmoid's sixth.
        every = [g for g in found if g is not None]
        for value in (o for o in ours if o is not None):
            assert any(g.shape == value.shape and np.allclose(g, value, 1e-7, 1e-9, True)
                       for g in every) or not value.any()  # fmt: skip


def compare(ours, theirs):
    shown = [o for o in ours if o is not None]
    assert len(shown) == len(theirs)
    for mine, other in zip(shown, theirs, strict=True):
        other = other.detach().numpy() if isinstance(other, torch.Tensor) else np.asarray(other)
        np.testing.assert_allclose(mine.reshape(other.shape), other, 1e-9, 1e-11)


def t(value):
    return tensors(value)


def attention(q, k, v, scale, n, layout, mask=None):
    """torch's own attention for BNSD inputs of equal heads."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    keep = None if mask is None else ~mask.bool()
    return F.scaled_dot_product_attention(q, k, v, keep, scale=scale)


_MODES = ("none", "mean", "sum")


def nll(a):
    kind = _MODES[a["reduction"]]
    return F.nll_loss(t(a["self"]), t(a["target"]), t(a["weight"]), reduction=kind,
                      ignore_index=a["ignoreIndex"])  # fmt: skip


def batch_norm(a):
    return torch.ops.aten.native_batch_norm_backward(
        t(a["gradOut"]), t(a["input"]), t(a["weight"]), t(a["runningMean"]), t(a["runningVar"]),
        t(a["saveMean"]), t(a["saveInvstd"]), a["training"], a["eps"], [True] * 3,
    )  # fmt: skip


def forward_batch_norm(a):
    mean, var = t(a["runningMean"]).clone(), t(a["runningVar"]).clone()
    y, kept, inv = torch.native_batch_norm(t(a["input"]), t(a["weight"]), t(a["bias"]), mean, var,
                                           a["training"], a["momentum"], a["eps"])  # fmt: skip
    return (y, mean, var, kept, inv) if a["training"] else (y, mean, var)


# operator -> what torch gives for the arguments (by header name) of each of its samples. A result
# may be one tensor: then only the first result is compared.
TORCH = {
    "aclnnRmsNorm": lambda a: F.rms_norm(t(a["x"]), a["gamma"].shape, t(a["gamma"]), a["epsilon"]),
    "aclnnGemmaRmsNorm": lambda a: F.rms_norm(t(a["x"]), a["gamma"].shape, 1 + t(a["gamma"]),
                                              a["epsilon"]),
    "aclnnAddRmsNorm": lambda a: F.rms_norm(t(a["x1"]) + t(a["x2"]), a["gamma"].shape,
                                            t(a["gamma"]), a["epsilon"]),
    "aclnnFastLayerNorm": lambda a: F.layer_norm(
        t(a["input"]), a["normalizedShape"], t(a["weightOptional"]), t(a["biasOptional"]),
        a["eps"]),
    "aclnnAddLayerNorm": lambda a: F.layer_norm(
        t(a["x1"]) + t(a["x2"]) + (0 if a["biasOptional"] is None else t(a["biasOptional"])),
        a["gamma"].shape, t(a["gamma"]), t(a["beta"]), a["epsilon"]),
    "aclnnDeepNorm": lambda a: (None, None, F.layer_norm(
        a["alpha"] * t(a["x"]) + t(a["gx"]), a["gamma"].shape, t(a["gamma"]), t(a["beta"]),
        a["epsilon"])),
    "aclnnGroupNormSilu": lambda a: F.silu(F.group_norm(
        t(a["self"]), a["group"], t(a["gamma"]), t(a["beta"]), a["eps"])),
    "aclnnLayerNormBackward": lambda a: torch.ops.aten.native_layer_norm_backward(
        t(a["gradOut"]), t(a["input"]), a["normalizedShape"], t(a["mean"]), t(a["rstd"]),
        t(a["weightOptional"]), t(a["biasOptional"]), [True] * 3),
    "aclnnGroupNormBackward": lambda a: torch.ops.aten.native_group_norm_backward(
        t(a["gradOut"]), t(a["input"]), t(a["mean"]), t(a["rstd"]), t(a["gamma"]), a["N"], a["C"],
        a["HxW"], a["group"], [True] * 3),
    "aclnnBatchNormBackward": batch_norm,
    "aclnnBatchNorm": forward_batch_norm,
    "aclnnNLLLoss": nll, "aclnnNLLLoss2d": nll,
    "aclnnCrossEntropyLoss": lambda a: F.cross_entropy(
        t(a["input"]), t(a["target"]), t(a["weightOptional"]), reduction=a["reductionOptional"],
        ignore_index=a["ignoreIndex"], label_smoothing=a["labelSmoothing"]),
    "aclnnMultilabelMarginLoss": lambda a: F.multilabel_margin_loss(
        t(a["self"]), t(a["target"]), reduction=_MODES[a["reduction"]]),
    "aclnnSigmoidBackward": lambda a: torch.ops.aten.sigmoid_backward(
        t(a["gradOutput"]), t(a["output"])),
    "aclnnTanhBackward": lambda a: torch.ops.aten.tanh_backward(t(a["gradOutput"]), t(a["output"])),
    "aclnnSoftmaxBackward": lambda a: torch.ops.aten._softmax_backward_data(
        t(a["gradOutput"]), t(a["output"]), a["dim"], torch.float64),
    "aclnnLogSoftmaxBackward": lambda a: torch.ops.aten._log_softmax_backward_data(
        t(a["gradOutput"]), t(a["output"]), a["dim"], torch.float64),
    "aclnnEluBackward": lambda a: torch.ops.aten.elu_backward(
        t(a["gradOutput"]), a["alpha"], a["scale"], a["inputScale"], a["isResult"],
        t(a["selfOrResult"])),
    "aclnnSeluBackward": lambda a: torch.ops.aten.elu_backward(
        t(a["gradOutput"]), 1.6732632423543772, 1.0507009873554805, 1.0, True, t(a["result"])),
    "aclnnLeakyReluBackward": lambda a: torch.ops.aten.leaky_relu_backward(
        t(a["gradOutput"]), t(a["self"]), a["negativeSlope"], a["selfIsResult"]),
    "aclnnPrelu": lambda a: F.prelu(t(a["self"]), t(a["weight"]).reshape(-1)),
    "aclnnHeaviside": lambda a: torch.heaviside(t(a["input"]), t(a["values"])),
    "aclnnLogit": lambda a: torch.logit(t(a["input"]), a["eps"] if a["eps"] >= 0 else None),
    "aclnnLogitGrad": lambda a: torch.ops.aten.logit_backward(t(a["dy"]), t(a["x"]), a["eps"]),
    "aclnnAddbmm": lambda a: torch.addbmm(t(a["self"]), t(a["batch1"]), t(a["batch2"]),
                                          beta=a["beta"], alpha=a["alpha"]),
    "aclnnAddmv": lambda a: torch.addmv(t(a["self"]), t(a["mat"]), t(a["vec"]), beta=a["beta"],
                                        alpha=a["alpha"]),
    "aclnnAddr": lambda a: torch.addr(t(a["self"]), t(a["vec1"]), t(a["vec2"]),
                                      beta=a["betaOptional"], alpha=a["alphaOptional"]),
    "aclnnMv": lambda a: torch.mv(t(a["self"]), t(a["vec"])),
    "aclnnDot": lambda a: torch.dot(t(a["self"]), t(a["tensor"])),
    "aclnnGer": lambda a: torch.outer(t(a["self"]), t(a["vec2"])),
    "aclnnTrace": lambda a: torch.trace(t(a["self"])),
    "aclnnAminmaxDim": lambda a: torch.aminmax(t(a["self"]), dim=a["dim"], keepdim=a["keepDim"]),
    "aclnnVar": lambda a: torch.var(t(a["self"]), a["dim"], unbiased=a["unbiased"],
                                    keepdim=a["keepdim"]),
    "aclnnVarMean": lambda a: torch.var_mean(t(a["self"]), a["dim"], correction=a["correction"],
                                             keepdim=a["keepdim"]),
    "aclnnStdMeanCorrection": lambda a: torch.std_mean(
        t(a["self"]), a["dim"], correction=a["correction"], keepdim=a["keepdim"]),
    "aclnnNorm": lambda a: torch.norm(t(a["self"]), a["pScalar"], a["dim"], a["keepdim"]),
    "aclnnRenorm": lambda a: torch.renorm(t(a["self"]), a["p"], a["dim"], a["maxNorm"]),
    "aclnnLogAddExp2": lambda a: torch.logaddexp2(t(a["self"]), t(a["other"])),
    "aclnnGcd": lambda a: torch.gcd(t(a["self"]), t(a["other"])),
    "aclnnCdist": lambda a: torch.cdist(t(a["x1"]), t(a["x2"]), a["p"]),
    "aclnnPolar": lambda a: torch.polar(t(a["input"]), t(a["angle"])),
    "aclnnLinalgCross": lambda a: torch.linalg.cross(t(a["self"]), t(a["other"]), dim=a["dim"]),
    "aclnnInverse": lambda a: torch.linalg.inv(t(a["self"])),
    "aclnnLinalgCholesky": lambda a: torch.linalg.cholesky(t(a["self"]), upper=a["upper"]),
    "aclnnSlogdet": lambda a: torch.linalg.slogdet(t(a["self"])),
    "aclnnTriangularSolve": lambda a: torch.triangular_solve(
        t(a["self"]), t(a["A"]), a["upper"], a["transpose"], a["unitriangular"])[0],
    "aclnnDiag": lambda a: torch.diag(t(a["self"]), a["diagonal"]),
    "aclnnDiagFlat": lambda a: torch.diagflat(t(a["self"]), a["diagonal"]),
    "aclnnChannelShuffle": lambda a: F.channel_shuffle(t(a["self"]), a["groups"]),
    "aclnnTake": lambda a: torch.take(t(a["self"]), t(a["index"])),
    "aclnnIndexCopy": lambda a: torch.index_copy(t(a["selfRef"]), a["dim"], t(a["index"]),
                                                 t(a["source"])),
    "aclnnInplaceFillDiagonal": lambda a: t(a["selfRef"]).fill_diagonal_(a["fillValue"],
                                                                         wrap=a["wrap"]),
    "aclnnInplaceMaskedScatter": lambda a: t(a["selfRef"]).masked_scatter(t(a["mask"]),
                                                                          t(a["source"])),
    "aclnnInplacePut": lambda a: t(a["selfRef"]).put(t(a["index"]), t(a["source"]),
                                                     a["accumulate"]),
    "aclnnNonzero": lambda a: torch.nonzero(t(a["self"])),
    "aclnnBincount": lambda a: torch.bincount(t(a["self"]), t(a["weights"]), a["minlength"]),
    "aclnnBucketize": lambda a: torch.bucketize(t(a["self"]), t(a["boundaries"]), right=a["right"]),
    "aclnnSearchSorted": lambda a: torch.searchsorted(t(a["sortedSequence"]), t(a["self"]),
                                                      right=a["right"]),
    "aclnnArgsort": lambda a: torch.argsort(t(a["self"]), dim=a["dim"], descending=a["descending"],
                                            stable=True),
    "aclnnMedianDim": lambda a: torch.median(t(a["self"]), a["dim"], a["keepDim"]),
    "aclnnMedian": lambda a: torch.median(t(a["self"])),
    "aclnnHistc": lambda a: torch.histc(t(a["self"]), a["bins"], a["min"], a["max"]),
    "aclnnRepeatInterleaveWithDim": lambda a: torch.repeat_interleave(
        t(a["self"]), t(a["repeats"]), a["dim"]),
    "aclnnUnfoldGrad": lambda a: torch.ops.aten.unfold_backward(
        t(a["gradOut"]), a["inputSizes"], a["dim"], a["size"], a["step"]),
    "aclnnUnique2": lambda a: torch.unique(t(a["self"]), True, True, True),
    "aclnnRoundDecimals": lambda a: torch.round(t(a["self"]), decimals=a["decimals"]),
    "aclnnConvolutionBackward": lambda a: list(
        torch.ops.aten.convolution_backward(
            t(a["gradOutput"]), t(a["input"]), t(a["weight"]), [a["weight"].shape[0]], a["stride"],
            a["padding"], a["dilation"], a["transposed"], a["outputPadding"], a["groups"],
            list(a["outputMask"]))),
    "aclnnUpsampleBilinear2dAA": lambda a: F.interpolate(
        t(a["x"]), a["outputSize"], mode="bilinear", antialias=True, align_corners=False),
    "aclnnUpsampleBicubic2dAA": lambda a: F.interpolate(
        t(a["x"]), a["outputSize"], mode="bicubic", antialias=True, align_corners=False),
    "aclnnUpsampleBilinear2dBackward": lambda a: torch.ops.aten.upsample_bilinear2d_backward(
        t(a["flow"]), a["outputSize"], a["inputSize"], a["alignCorners"],
        a["scalesH"] or None, a["scalesW"] or None),
    "aclnnUpsampleNearest3dBackward": lambda a: torch.ops.aten.upsample_nearest3d_backward(
        t(a["flow"]), a["outputSize"], a["inputSize"], a["scalesD"] or None,
        a["scalesH"] or None, a["scalesW"] or None),
    "aclnnFakeQuantPerTensorAffineCachemask": lambda a:
    torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
        t(a["self"]).float(), t(a["scale"]).float(), t(a["zeroPoint"]).int(),
        torch.tensor([int(a["fakeQuantEnabled"])]), a["quantMin"], a["quantMax"])[0].double(),
    "aclnnSoftmaxCrossEntropyWithLogits": lambda a: F.cross_entropy(
        t(a["features"]), t(a["labels"]), reduction="none"),
}  # fmt: skip


@pytest.mark.parametrize("name", TORCH)
def test_a_reference_gives_what_torch_gives(name):
    row, compared = SPECS[name], 0
    for sample in range(len(list(row.samples()))):
        given = arguments(row, sample)
        theirs = TORCH[name](given)
        if theirs is None:
            continue
        theirs = list(theirs) if isinstance(theirs, tuple | list) else [theirs]
        loose = {"rtol": 1e-5, "atol": 1e-6} if "FakeQuant" in name else {"rtol": 1e-9,
                                                                        "atol": 1e-10}  # fmt: skip
        for mine, other in zip(results(row, given), theirs, strict=False):
            if mine is not None and other is not None:
                other = other.numpy()
                np.testing.assert_allclose(mine.reshape(other.shape), other, **loose)
                compared += 1
    assert compared


BY_NAME = {"aclnnForeachAbs": "abs", "aclnnForeachErf": "erf", "aclnnForeachLog1p": "log1p",
           "aclnnForeachReciprocal": "reciprocal", "aclnnForeachSigmoid": "sigmoid",
           "aclnnForeachSign": "sign", "aclnnForeachTan": "tan", "aclnnForeachErfc": "erfc",
           "aclnnForeachExpm1": "expm1", "aclnnForeachSinh": "sinh"}  # fmt: skip


@pytest.mark.parametrize("name", BY_NAME)
def test_a_list_form_gives_what_torch_gives_for_each_member(name):
    given = arguments(SPECS[name], 0)
    theirs = [getattr(torch, BY_NAME[name])(v) for v in t(given["x"])]
    for mine, other in zip(results(SPECS[name], given), theirs, strict=True):
        np.testing.assert_allclose(mine, other.numpy(), 1e-12, 1e-14)


@pytest.mark.parametrize(("sample", "amsgrad"), [(0, False), (3, True)])
def test_adamw_takes_the_step_that_torch_takes(sample, amsgrad):
    row = SPECS["aclnnFusedAdamw"]
    given = arguments(row, sample)
    p, m, v, g = (t([x.copy() for x in given[k]]) for k in
                  ("paramsRef", "expAvgsRef", "expAvgSqsRef", "grads"))  # fmt: skip
    top = t([x.copy() for x in given["maxExpAvgSqsRef"] or []])
    torch.optim._functional.adamw(
        p, g, m, v, top, [torch.tensor(2.0) for _ in p], amsgrad=amsgrad, beta1=given["beta1"],
        beta2=given["beta2"], lr=given["lr"], weight_decay=given["weightDecay"], eps=given["eps"],
        maximize=False, foreach=False, fused=False, capturable=False, differentiable=False,
        has_complex=False,
    )  # fmt: skip
    mine = [r for r in results(row, given) if r is not None]
    for one, other in zip(mine, [*p, *m, *v, *top], strict=True):
        np.testing.assert_allclose(one, other.numpy(), 1e-9)


# operator, arguments by header name, results by hand.
BY_HAND = [
    ("aclnnRmsNormGrad", {"dy": [[1.0, 0.0]], "x": [[3.0, 4.0]], "rstd": [[0.5]],
                          "gamma": [1.0, 1.0]},
     [[[0.5 - 3 * 0.125 * 3 / 2, -4 * 0.125 * 3 / 2]], [1.5, 0.0]]),
    ("aclnnSwiGlu", {"x": [[0.0, 5.0]], "dim": 1}, [[[0.0]]]),
    ("aclnnRotaryPositionEmbedding", {"x": [[[[1.0, 2.0]]]], "cos": [[[[0.0, 0.0]]]],
                                      "sin": [[[[1.0, 1.0]]]], "mode": 0}, [[[[[-2.0, 1.0]]]]]),
    ("aclnnRotaryPositionEmbedding", {"x": [[[[1.0, 2.0, 3.0, 4.0]]]], "cos": [[[[0.0] * 4]]],
                                      "sin": [[[[1.0] * 4]]], "mode": 1},
     [[[[[-2.0, 1.0, -4.0, 3.0]]]]]),
    ("aclnnDynamicQuant", {"x": [[1.0, -2.0]], "smoothScalesOptional": None},
     [[[63.5, -127.0]], [2 / 127]]),
    ("aclnnAscendQuant", {"x": [[1.0, -2.0]], "scale": [3.0], "offset": [1.0], "sqrtMode": False,
                          "roundMode": "round"}, [[[4.0, -5.0]]]),
    ("aclnnAscendQuantV3", {"x": [[1.0, -2.0], [2.0, 3.0]], "scale": [3.0, 5.0], "offset": [1.0,
     2.0], "sqrtMode": False, "roundMode": "round", "axis": -2}, [[[4.0, -5.0], [12.0, 17.0]]]),
    ("aclnnAscendAntiQuant", {"x": [[5.0]], "scale": [2.0], "offset": [1.0], "sqrtMode": True},
     [[[24.0]]]),
    ("aclnnDequantBias", {"x": [[10.0]], "weightScale": [0.5], "activateScaleOptional": [2.0],
                          "biasOptional": [1.0]}, [[[11.0]]]),
    ("aclnnMoeGatingTopKSoftmax", {"x": [[0.0, np.log(3.0)]], "finishedOptional": None, "k": 1},
     [[[0.75]], [[1]], [[0]]]),
    ("aclnnMoeComputeExpertTokens", {"sortedExperts": [0, 0, 2], "numExperts": 3}, [[2, 2, 3]]),
    ("aclnnMoeTokenUnpermute", {"permutedTokens": [[1.0], [10.0]], "sortedIndices": [1, 0],
                                "probsOptional": [[0.5, 2.0]]}, [[[7.0]]]),
    ("aclnnForeachRoundOffNumberV2", {"x": [[2.5, -1.5]], "roundMode": 1}, [[2.0, -2.0]]),
    ("aclnnForeachRoundOffNumberV2", {"x": [[2.5, -1.5]], "roundMode": 4}, [[3.0, -2.0]]),
    ("aclnnForeachPowScalarAndTensor", {"scalar": 2.0, "x": [[3.0]]}, [[8.0]]),
    ("aclnnForeachNorm", {"x": [[3.0, 4.0]], "scalar": 2.0}, [5.0]),
    ("aclnnFastGelu", {"self": [0.0]}, [[0.0]]),
    ("aclnnCumsumV2", {"self": [1.0, 2.0, 3.0], "dim": 0, "exclusive": True, "reverse": True},
     [[5.0, 3.0, 0.0]]),
    ("aclnnReduceNansum", {"self": [[1.0, np.nan]], "dim": (1,), "keepDim": False, "dtype": 0},
     [[1.0]]),
    ("aclnnWeightQuantBatchMatmulV2", {"x": [[1.0, 2.0]], "weight": [[3.0], [4.0]],
     "antiquantScale": [0.5], "antiquantOffsetOptional": [1.0], "biasOptional": None,
     "antiquantGroupSize": 0}, [[[7.0]]]),
    ("aclnnGroupQuant", {"x": [[1.0], [1.0]], "scale": [[2.0], [3.0]], "groupIndex": [1, 2],
                         "offsetOptional": None}, [[[2.0], [3.0]]]),
    ("aclnnTransQuantParamV2", {"scale": [1.0]}, [[0x3F800000 | 1 << 46]]),
    ("aclnnAmpUpdateScale", {"currentScale": [8.0], "growthTracker": [2], "foundInf": [0.0],
     "growthFactor": 2.0, "backoffFactor": 0.5, "growthInterval": 3}, [[16.0], [0]]),
    ("aclnnApplyTopKTopP", {"logits": [[1.0, 3.0, 2.0]], "p": [1.0], "k": [2]},
     [[[-np.inf, 3.0, 2.0]]]),
    ("aclnnOneHot", {"self": [1], "numClasses": 3, "onValue": [7], "offValue": [0], "axis": -1},
     [[[0, 7, 0]]]),
    ("aclnnScatterReduce", {"self": [1.0, 2.0], "dim": 0, "index": [0, 0], "src": [3.0, 5.0],
                            "reduce": 5, "includeSelf": True}, [[3.0, 2.0]]),
    ("aclnnGemm", {"A": [[1.0, 2.0]], "B": [[3.0], [4.0]], "C": [[1.0]], "alpha": 2.0, "beta": 0.5,
                   "transA": 0, "transB": 0}, [[[22.5]]]),
    ("aclnnPdist", {"self": [[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]], "p": 2.0}, [[5.0, 4.0, 3.0]]),
    ("aclnnScatterPaKvCache", {"key": [[1.0]], "value": [[2.0]], "keyCacheRef": [[[0.0], [0.0]]],
     "valueCacheRef": [[[0.0], [0.0]]], "slotMapping": [1],
     "cacheModeOptional": "Norm"}, [[[[0.0], [1.0]]], [[[0.0], [2.0]]]]),
    ("aclnnScatterPaKvCache", {"key": [[1.0, 2.0]], "value": [[3.0, 4.0]],
     "keyCacheRef": [[[[0.0], [0.0]], [[0.0], [0.0]]]],
     "valueCacheRef": [[[[0.0], [0.0]], [[0.0], [0.0]]]], "slotMapping": [1],
     "cacheModeOptional": "PA_NZ"}, [[[[[0.0], [1.0]], [[0.0], [2.0]]]],
                                     [[[[0.0], [3.0]], [[0.0], [4.0]]]]]),
    ("aclnnIou", {"bBoxes": [[0.0, 0.0, 2.0, 2.0]], "gtBoxes": [[1.0, 1.0, 3.0, 3.0]], "eps": 0.0,
                  "mode": "iou", "aligned": False}, [[[1 / 7]]]),
    ("aclnnIou", {"bBoxes": [[0.0, 0.0, 2.0, 3.0]], "gtBoxes": [[1.0, 1.0, 3.0, 3.0]], "eps": 1.0,
                  "mode": "iof", "aligned": True}, [[[2 / 5]]]),
    ("aclnnModulate", {"self": [[[2.0]]], "scaleOptional": [[0.5]], "shiftOptional": [[1.0]]},
     [[[[4.0]]]]),
    ("aclnnFatreluMul", {"input": [[1.0] * 65 + [3.0] * 65], "threshold": [2.0]}, [[[0.0] * 65]]),
    ("aclnnEmbeddingBag", {"weight": [[1.0], [2.0], [4.0]], "indices": [0, 2, 1],
     "offsets": [0, 2], "mode": 0, "perSampleWeights": None, "includeLastOffset": False,
     "paddingIdx": -1},
     [[[5.0], [2.0]], [0, 0, 1], [2, 1], []]),
    ("aclnnEmbeddingBag", {"weight": [[-1.0], [-2.0], [-4.0]], "indices": [0, 2, 1],
     "offsets": [0, 2], "mode": 2, "perSampleWeights": None, "includeLastOffset": False,
     "paddingIdx": 0},
     [[[-4.0], [-2.0]], [0, 0, 1], [1, 1], [[2], [1]]]),
    ("aclnnRingAttentionUpdate", {"prevAttnOut": [[[2.0]]], "prevSoftmaxMax": [[[[0.0]]]],
     "prevSoftmaxSum": [[[[1.0]]]], "curAttnOut": [[[4.0]]], "curSoftmaxMax": [[[[0.0]]]],
     "curSoftmaxSum": [[[[3.0]]]]}, [[[[3.5]]], [[[[0.0]]]], [[[[4.0]]]]]),
    ("aclnnGlobalAveragePool", {"self": [[[[1.0, 3.0]]]]}, [[[[[2.0]]]]]),
]  # fmt: skip


@pytest.mark.parametrize("case", BY_HAND, ids=lambda c: c[0])
def test_a_reference_gives_what_was_computed_by_hand(case):
    name, given, wanted = case
    row = SPECS[name]
    lists = isinstance(given.get("x"), list) and "Foreach" in name
    made = {}
    for key, value in given.items():
        made[key] = np.asarray(value) if isinstance(value, list) else value
    if lists:
        made["x"] = [np.asarray(v) for v in given["x"]]
    found = results(row, made)
    for mine, hand in zip(found, wanted, strict=True):
        if hand is None:
            assert mine is None
            continue
        np.testing.assert_allclose(mine, np.asarray(hand), 1e-9, 1e-12)


def test_every_row_states_class_reason_and_source():
    for name, row in SPECS.items():
        need = row.requirement()
        assert need.reason, name
        assert len(row.source) > 10, name
        assert list(row.samples()), name
    for name, row in UNSPECIFIED.items():
        assert row.known, name
        assert row.source, name
