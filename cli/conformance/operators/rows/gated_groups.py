"""Gates over groups of tokens, norms and activations that end in small integers, products with an
operation at their end."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take
from .others import clipped_swiglu, counted
from .quantisation import dynamic

_FLOATS: Final = ("float16", "bfloat16", "float32")
_GLU: Final[dict[str, Any]] = {
    "family": "activation", "tolerance": "gradient", "specials": False, "dtypes": _FLOATS,
    "source": "Shazeer: GLU Variants Improve Transformer, 2020; gpt-oss, public model code: swiglu "
    "with limit; op-plugin tests npu_swiglu_group_quant and its backward",
    "casts": {"weightOptional": dict.fromkeys(("float16", "bfloat16"), "float32")}}  # fmt: skip


def _cut(x: Array, limit: float) -> tuple[Array, Array, Array, Array]:
    """Gate and value within the limit, and where each passes its gradient on."""
    gate, value = np.split(x, 2, -1)
    if limit <= 0:
        every = np.ones(gate.shape, bool)
        return gate, value, every, every
    inside = (value > -limit) & (value < limit)
    return np.minimum(gate, limit), np.clip(value, -limit, limit), gate < limit, inside


def _counted(shape: tuple[int, ...], groups: Array | None) -> Array:
    """1 for tokens of the groups, whose sizes are given, 0 for the rest."""
    tokens = math.prod(shape[:-1])
    mine = np.arange(tokens) < (tokens if groups is None else groups.sum())
    return mine.reshape(*shape[:-1], 1)


def grouped_gate(
    x: Array, weightOptional: Array | None, groupIndexOptional: Array | None, clampLimit: float
) -> Array:
    gate, value, *_ = _cut(x, clampLimit)
    y = gate / (1 + np.exp(-gate)) * value * (1 if weightOptional is None else weightOptional)
    return np.where(_counted(x.shape, groupIndexOptional), y, 0)


# No 16-bit number is the limit itself, where the gradient has a jump.
_GROUPS: Final = [
    {"weightOptional": w, "groupIndexOptional": g, "clampLimit": c}
    for w, g, c in (
        (None, None, 0.0), (t(6, 1), None, 1.55), (t(6, 1), given([2, 4], "int64"), 0.0))
]  # fmt: skip
spec("aclnnSwigluGroup", "out:x", **_GLU, samples=[
    take(x=t(6, 64, low=-3, high=3), **g) for g in _GROUPS])(grouped_gate)  # fmt: skip


def grouped_gate_gradient(
    gradY: Array, x: Array, weightOptional: Array | None, yOriginOptional: Array | None,
    groupIndexOptional: Array | None, clampLimit: float,
) -> tuple[Array, Array | None]:  # fmt: skip
    """What was cut off lets nothing through; a weight gets a row's product with what it weighed."""
    gate, value, gates, values = _cut(x, clampLimit)
    s = 1 / (1 + np.exp(-gate))
    flow = gradY * (1 if weightOptional is None else weightOptional)
    dx = np.concatenate([flow * value * s * (1 + gate * (1 - s)) * gates,
                         flow * gate * s * values], -1)  # fmt: skip
    mine = _counted(x.shape, groupIndexOptional)
    if weightOptional is None or yOriginOptional is None:
        return np.where(mine, dx, 0), None
    by_weight = (gradY * yOriginOptional).sum(-1, keepdims=True)
    return np.where(mine, dx, 0), np.where(mine, by_weight, 0)


spec("aclnnSwigluGroupGrad aclnnSwigluGroupQuantGrad", "gradXOut:x gradWeightOutOptional:float32",
     **_GLU, samples=[
         take(gradY=t(6, 32, low=-1), x=t(6, 64, low=-3, high=3), **g,
              yOriginOptional=None if g["weightOptional"] is None else t(6, 32, high=1.0))
         for g in _GROUPS])(grouped_gate_gradient)  # fmt: skip


@spec("aclnnClippedSwigluV2", "out:x", **_GLU, samples=[
    take(x=t(3, 64, low=-4, high=4), dim=-1, alpha=1.702, limit=2.0, bias=1.0, interleaved=i,
         groupIndexOptional=g, clampMode=m) for m in (0, 1)
    for i, g in ((True, None), (False, None), (True, given([2], "int64")))])  # fmt: skip
def clipped(
    x: Array, groupIndexOptional: Array | None, dim: int, alpha: float, limit: float, bias: float,
    interleaved: bool, clampMode: int,
) -> Array:  # fmt: skip
    """clampMode 1 cuts what was activated, and adds no bias."""
    if clampMode == 0:
        return clipped_swiglu(x, groupIndexOptional, dim, alpha, limit, bias, interleaved)
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else np.split(x, 2, dim)
    y = np.minimum(a / (1 + np.exp(-a)), limit) * np.clip(b, -limit, limit)
    return y if groupIndexOptional is None else np.where(counted(x, groupIndexOptional), y, 0)


_STEPS: Final[dict[str, Any]] = {"family": "quantisation", "tolerance": "gradient", "steps": True,
                                 "specials": False, "dtypes": _FLOATS}  # fmt: skip


@spec("aclnnRmsNormQuantV3", "y:int8 rstd:float32", **_STEPS,
      source="Zhang, Sennrich: Root Mean Square Layer Normalization, 2019; op-plugin test "
      "npu_rms_norm_quant_v2", samples=[
          take(x=t(4, 32), gamma=t(32), beta=b, scale=t(1, low=0.05, high=0.2) if div else
               t(1, low=5, high=20), offset=o, epsilon=1e-6, divMode=div, outputRstd=True)
          for b, o, div in ((None, None, True), (t(32), t(1, low=-5, high=5), True),
                            (t(32), None, False))])  # fmt: skip
def norm_steps(
    x: Array, gamma: Array, beta: Array | None, scale: Array, offset: Array | None, epsilon: float,
    divMode: bool,
) -> tuple[Array, Array]:  # fmt: skip
    rstd = (np.square(x).mean(-1, keepdims=True) + epsilon) ** -0.5
    y = x * rstd * gamma + (0 if beta is None else beta)
    return (y / scale if divMode else y * scale) + (0 if offset is None else offset), rstd


def _gelu(x: Array, approximate: str) -> Array:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


@spec("aclnnGeluQuant", "y:int8 outScaleOptional:float32", **_STEPS,
      source="Hendrycks, Gimpel: Gaussian Error Linear Units, 2016; op-plugin test npu_gelu_quant",
      samples=[take(self=t(5, 48), inputScaleOptional=s, inputOffsetOptional=o, approximate=a,
                    quantMode=m, roundMode="rint", dstType=2)
               for s, o, a, m in ((t(48, low=5, high=20), t(48, low=-5, high=5), "none", "static"),
                                  (t(1, low=5, high=20), None, "tanh", "static"),
                                  (None, None, "none", "dynamic"),
                                  (t(48, low=0.5), None, "tanh", "dynamic"))] + [
          # Where the two formulas differ by a step of the result.
          take(self=t(5, 48, low=-4, high=-1.9), inputScaleOptional=given([2500.0], "float32"),
               inputOffsetOptional=None, approximate=a, quantMode="static", roundMode="rint",
               dstType=2) for a in ("none", "tanh")])  # fmt: skip
def gelu_steps(
    self: Array, inputScaleOptional: Array | None, inputOffsetOptional: Array | None,
    approximate: str, quantMode: str,
) -> tuple[Array, Array | None]:  # fmt: skip
    y = _gelu(self, approximate)
    if quantMode == "dynamic":
        return dynamic(y, inputScaleOptional)
    return y * inputScaleOptional + (
        0 if inputOffsetOptional is None else inputOffsetOptional
    ), None


_ENDS: Final = ("", "add", "mul", "gelu_erf", "gelu_tanh", "relu")
_PRODUCT: Final[dict[str, Any]] = {"family": "matmul", "tolerance": "gradient", "specials": False}


def ended(y: Array, kind: str, x3: Array | None) -> Array:
    """The operation at a product's end."""
    if kind in ("add", "mul"):
        return y + x3 if kind == "add" else y * x3
    return np.maximum(y, 0) if kind == "relu" else _gelu(y, kind[5:]) if kind else y


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


@spec("aclnnFusedMatmul", "y:x1", **_PRODUCT, dtypes=("float16", "bfloat16"),
      source="a matrix product and one elementwise operation, as the operator document names them",
      samples=[take(x1=_h(5, 32), x2=_h(32, 9), bias=None, fusedOpType=k, cubeMathType=0,
                    x3=_h(5, 9) if k in ("add", "mul") else None) for k in _ENDS] + [
          take(x1=_h(5, 32), x2=_h(32, 9), bias=_h(9), fusedOpType=k, cubeMathType=0,
               x3=_h(5, 9) if k == "mul" else None) for k in ("mul", "relu")])  # fmt: skip
def fused(x1: Array, x2: Array, bias: Array | None, x3: Array | None, fusedOpType: str) -> Array:
    return ended(x1 @ x2 + (0 if bias is None else bias), fusedOpType, x3)


_INT: Final[dict[str, Any]] = {"dtype": "int8", "low": -8, "high": 8}
_ONES: Final[dict[str, Any]] = {"dtype": "int8", "low": -1, "high": 1}


@spec("aclnnFusedQuantMatmul aclnnFusedQuantMatmulWeightNz", "out:float16", **_PRODUCT,
      dtypes=("float32",), source="op-plugin document npu_quant_matmul, then the operation that "
      "the operator document names", samples=[
          take(x1=t(5, 32, **_INT), x2=t(32, 16, **_INT), x1Scale=t(5, low=0.5),
               x2Scale=t(16, low=0.005, high=0.02), biasOptional=b, fusedOpType=k,
               groupSizeOptional=0)
          for b in (None, t(16, dtype="int32", low=-50, high=50))
          for k in ("relu", "gelu_erf", "gelu_tanh")] + [
          # All results are small: where the two formulas differ most.
          take(x1=t(5, 32, **_ONES), x2=t(32, 16, **_ONES),
               x1Scale=given([1.0] * 5, "float32"), x2Scale=t(16, low=0.0075, high=0.0095),
               biasOptional=given([-300] * 16, "int32"), fusedOpType=k, groupSizeOptional=0)
          for k in ("gelu_erf", "gelu_tanh")])  # fmt: skip
def fused_quant(
    x1: Array, x2: Array, x1Scale: Array, x2Scale: Array, biasOptional: Array | None,
    fusedOpType: str,
) -> Array:  # fmt: skip
    total = x1.astype(np.float64) @ x2 + (0 if biasOptional is None else biasOptional)
    return ended(total * x2Scale * x1Scale[:, None], fusedOpType, None)


@spec("aclnnApplyFusedEmaAdam", "varRef:varRef mRef:mRef vRef:vRef sRef:sRef", family="optimizer",
      tolerance="gradient", specials=False, dtypes=("float32",),
      source="Loshchilov, Hutter: Decoupled Weight Decay Regularization, 2019; Apex, FusedAdam's "
      "two modes of decay; Polyak, Juditsky 1992: the average", samples=[
          take(grad=t(3, 7), varRef=t(3, 7), mRef=t(3, 7, low=-1), vRef=t(3, 7, low=0.1),
               sRef=t(3, 7), step=given([s], "int64"), lr=0.01, emaDecay=0.9, beta1=0.9,
               beta2=0.99, eps=1e-8, mode=m, biasCorrection=b, weightDecay=0.1)
          for s, m, b in ((1, 0, True), (5, 1, True), (5, 1, False))])  # fmt: skip
def ema_adam(
    grad: Array, varRef: Array, mRef: Array, vRef: Array, sRef: Array, step: Array, lr: float,
    emaDecay: float, beta1: float, beta2: float, eps: float, mode: int, biasCorrection: bool,
    weightDecay: float,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Mode 0 adds the decay to the gradient, mode 1 to the update."""
    g = grad if mode else grad + weightDecay * varRef
    m, v = beta1 * mRef + (1 - beta1) * g, beta2 * vRef + (1 - beta2) * g * g
    count = float(step[0])
    one, two = (1 - beta1**count, 1 - beta2**count) if biasCorrection else (1.0, 1.0)
    update = m / one / (np.sqrt(v / two) + eps) + (weightDecay * varRef if mode else 0)
    var = varRef - lr * update
    return var, m, v, emaDecay * sRef + (1 - emaDecay) * var


@spec("aclnnExpSegsumBackward", "gradInput:gradSelf", family="arithmetic", tolerance="gradient",
      specials=False, dtypes=("float32",), source="Dao, Gu: Transformers are SSMs, 2024: "
      "derivative of exp of segment sums", samples=lambda: [
          take(gradOutput=t(2, 3, 4, 8, 8), gradSelf=given(_segments((2, 3, 4, 8)), "float32"))],
      )  # fmt: skip
def exp_segsum_back(gradOutput: Array, gradSelf: Array) -> Array:
    """x[k] is in the sums from j < k to i >= k."""
    flow = gradOutput * gradSelf
    size = flow.shape[-1]
    return np.stack([flow[..., k:, :k].sum((-2, -1)) for k in range(size)], -1)


def _segments(shape: tuple[int, ...]) -> Array:
    run = np.cumsum(t(*shape, low=-1, high=0.2).array().astype(np.float64), -1)
    return np.tril(np.exp(run[..., :, None] - run[..., None, :]))


@spec("aclnnMhcPre",
      "hIn:x hPost:float32 hRes:float32 invRmsOptional:float32 hMixOptional:float32 "
      "hPreOptional:float32", **_PRODUCT, dtypes=("float16", "bfloat16"),
      source="Xie et al.: mHC, manifold-constrained hyper-connections, 2025; op-plugin document "
      "npu_mhc_pre", samples=[
          take(x=_h(5, 4, 32), phi=t(24, 128, low=-0.2, high=0.2), alpha=t(3, low=0.1, high=1),
               bias=t(24), gammaOptional=g, normEps=1e-6, hcEps=1e-6)
          for g in (None, t(4, 32, low=0.5))])  # fmt: skip
def mhc_pre(
    x: Array, phi: Array, alpha: Array, bias: Array, gammaOptional: Array | None, normEps: float,
    hcEps: float,
) -> tuple[Array, ...]:  # fmt: skip
    """Streams [T, n, D] weighed by sigmoids of their normed mixture of n, n and n^2 parts."""
    tokens, n, _ = x.shape
    flat = x.reshape(tokens, -1)
    inverse = (np.square(flat).mean(-1) + normEps) ** -0.5
    mix = (flat if gammaOptional is None else flat * gammaOptional.reshape(-1)) @ phi.T
    scale = np.repeat(alpha, [n, n, n * n])
    h = mix * inverse[:, None] * scale + bias
    pre = 1 / (1 + np.exp(-h[:, :n])) + hcEps
    post = 2 / (1 + np.exp(-h[:, n : 2 * n]))
    rest = h[:, 2 * n :].reshape(tokens, n, n)
    return np.einsum("tn,tnd->td", pre, x), post, rest, inverse, mix, pre


@spec("aclnnMhcSinkhorn", "output:x", **_PRODUCT, dtypes=("float32",),
      source="Sinkhorn, Knopp 1967; op-plugin document npu_mhc_sinkhorn", samples=[
          take(x=t(3, 4, 4), eps=1e-6, numIters=i) for i in (1, 2, 20)])  # fmt: skip
def sinkhorn(x: Array, eps: float, numIters: int) -> Array:
    """Softmax of rows, then columns; rows and columns in turn for what is left of `numIters`."""
    y = np.exp(x - x.max(-1, keepdims=True))
    y = y / y.sum(-1, keepdims=True) + eps
    for axis in (-2, *(-1, -2) * (numIters - 1)):
        y = y / (y.sum(axis, keepdims=True) + eps)
    return y
