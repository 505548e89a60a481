"""Gated linear units and their gradients."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

import mindtorch as torch
import mindtorch.nn.functional as F
from mindtorch import Tensor

from .....judge.precision import Array
from ...formulas import gradient, words
from ...spec import const, spec, t, take
from .._defaults import COMPOSITE, FLOAT32_GRADIENT, FLOATS
from .._ignored import saved

_GLU: Final[dict[str, Any]] = {
    "tolerance": "gradient", "specials": False, "dtypes": FLOATS,
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
        (None, None, 0.0), (t(6, 1), None, 1.55), (t(6, 1), const([2, 4], "int64"), 0.0))
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


def counted(x: Array, groups: Array) -> Array:
    """Whether a row is among the first ones, as many as the sizes of the groups add up to."""
    return np.arange(len(x)).reshape(-1, *[1] * (x.ndim - 1)) < groups.sum()


def clipped_swiglu(
    x: Array, groupIndexOptional: Array | None, dim: int, alpha: float, limit: float, bias: float,
    interleaved: bool,
) -> Array:  # fmt: skip
    """gpt-oss: the gate is cut above, the other half on both sides; rows of no group are 0."""
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else np.split(x, 2, dim)
    gate, value = np.minimum(a, limit), np.clip(b, -limit, limit)
    y = gate / (1 + np.exp(-alpha * gate)) * (value + bias)
    return y if groupIndexOptional is None else np.where(counted(x, groupIndexOptional), y, 0)


@spec("aclnnClippedSwigluV2", "out:x", **_GLU, samples=[
    take(x=t(3, 64, low=-4, high=4), dim=-1, alpha=1.702, limit=2.0, bias=1.0, interleaved=i,
         groupIndexOptional=g, clampMode=m) for m in (0, 1)
    for i, g in ((True, None), (False, None), (True, const([2], "int64")))])  # fmt: skip
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


_GATES: Final[dict[str, Any]] = {**COMPOSITE, "source":
                                 "Shazeer: GLU Variants Improve Transformer, 2020"}  # fmt: skip
spec("aclnnGeluMul", "out:input", **_GATES, samples=[
    take(input=t(3, 130), approximateOptional=how) for how in ("none", "tanh")])(
    words(lambda input, approximateOptional:
          torch.nn.functional.gelu(input[..., :65], approximate=approximateOptional)
          * input[..., 65:]))  # fmt: skip
spec("aclnnFatreluMul", "out:input", **{**_GATES, "source": "Kurtz et al.: FATReLU, 2020"},
     samples=[take(input=t(3, 130), threshold=const([0.25], "float32"))], sparse=True)(
    lambda input, threshold: np.where(input[..., :65] > threshold[0], input[..., :65], 0.0)
    * input[..., 65:])  # fmt: skip


def gelu_tanh(x: Tensor) -> Tensor:
    """Hendrycks, Gimpel: Gaussian Error Linear Units, 2016: the approximation by tanh."""
    return 0.5 * x * (1 + torch.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))


def geglu(x: Tensor, dim: int, approximate: int, left: bool) -> tuple[Tensor, Tensor]:
    a, b = torch.chunk(x, 2, dim)
    gate, value = (a, b) if left else (b, a)
    active = gelu_tanh(gate) if approximate else F.gelu(gate)
    return value * active, active


def _geglu_grad(x: Tensor, dim: int, approximate: int, activateLeft: bool = False) -> Tensor:
    return geglu(x, dim, approximate, activateLeft)[0]


def _flow(name: str, left: bool) -> None:
    samples = []
    for approximate in (0, 1):
        more: dict[str, Any] = {"activateLeft": True} if left else {}
        source = t(3, 64)
        gate = source.array()[:, :32] if left else source.array()[:, 32:]
        active = words(lambda v, a=approximate: geglu(v, 1, a, True)[1])
        result = active(v=np.concatenate([gate, gate], 1).astype(np.float64))
        samples.append(take(gradOutput=t(3, 32), self=const(source.array().tolist(), "float32"),
                            gelu=const(result.tolist(), "float32"), dim=1, approximate=approximate,
                            **more))  # fmt: skip

    def reference(
        gradOutput: Array, self: Array, dim: int, approximate: int, activateLeft: bool = False
    ) -> Array:
        backward = gradient(
            lambda x: _geglu_grad(x, dim, approximate, activateLeft), grad="g", of="x"
        )
        return backward(g=gradOutput, x=self)

    spec(name, "gradInput:self", samples=samples, ignored=saved("gelu"),
         constant="activateLeft" if left else "", **{**_GATES, "tolerance": "gradient",
         "dtypes": ("float32",)})(reference)  # fmt: skip


_flow("aclnnGeGluBackward", False)
_flow("aclnnGeGluV3Backward", True)
_GATED: Final[dict[str, Any]] = {
    "tolerance": "composite",
    "source": "Shazeer: GLU Variants Improve Transformer, 2020",
}  # fmt: skip


def swiglu(x: Tensor, dim: int) -> Tensor:
    a, b = torch.chunk(x, 2, dim)
    return a * torch.sigmoid(a) * b


_SHAPES: Final = (((3, 8), -1), ((4, 6, 5), 1), ((2, 514), 1), ((6, 3), 0))
spec("aclnnSwiGlu", "out:x", samples=[take(x=t(*s), dim=d) for s, d in _SHAPES], **_GATED)(
    words(swiglu))  # fmt: skip
spec("aclnnSwiGluGrad", "out:x", **_GATED, samples=[
    take(x=t(*s), dim=d, yGrad=t(*(n // 2 if i == d % len(s) else n for i, n in enumerate(s))))
    for s, d in _SHAPES])(gradient(swiglu, grad="yGrad", of="x"))  # fmt: skip
_HALF: Final = [(s, d, tuple(n // 2 if i == d % len(s) else n for i, n in enumerate(s)))
                for s, d in _SHAPES]  # fmt: skip
spec("aclnnGlu", "out:self", samples=[take(self=t(*s), dim=d) for s, d in _SHAPES], **_GATED)(
    words(lambda self, dim: F.glu(self, dim)))  # fmt: skip
spec("aclnnGluBackward", "out:self", **_GATED,
     samples=[take(gradOut=t(*h), self=t(*s), dim=d) for s, d, h in _HALF])(
    gradient(lambda self, dim: F.glu(self, dim), grad="gradOut", of="self"))  # fmt: skip
spec("aclnnGeGlu", "out:self outGelu:self", **_GATED,
     samples=[take(self=t(*s), dim=d, approximate=a) for s, d in _SHAPES[:3] for a in (0, 1)])(
    words(lambda self, dim, approximate: geglu(self, dim, approximate, False)))  # fmt: skip
spec("aclnnGeGluV3", "out:self outGelu:self", **_GATED,
     samples=[take(self=t(*s), dim=d, approximate=1, activateLeft=left)
              for s, d in _SHAPES[:3] for left in (True, False)])(
    words(lambda self, dim, approximate, activateLeft:
          geglu(self, dim, approximate, activateLeft)))  # fmt: skip
spec("aclnnClippedSwiglu", "out:x", tolerance="gradient", specials=False,
     dtypes=("float16", "bfloat16", "float32"), source="gpt-oss, public model code: swiglu with "
     "limit; op-plugin document npu_clipped_swiglu", samples=[
         take(x=t(3, 64, low=-4, high=4), groupIndexOptional=g, dim=-1, alpha=1.702, limit=2.0,
              bias=1.0, interleaved=i)
         for i in (True, False) for g in (None, const([1, 0, 1], "int64"))])(
    clipped_swiglu)  # fmt: skip


def _clipped(
    x: Tensor, groupIndexOptional: Tensor | None, dim: int, alpha: float, limit: float,
    bias: float, interleaved: bool,
) -> Tensor:  # fmt: skip
    rows = len(x) if groupIndexOptional is None else int(groupIndexOptional.sum())
    subset = x[:rows]
    gate, value = (subset[..., 0::2], subset[..., 1::2]) if interleaved else subset.chunk(2, dim)
    gate, value = gate.clamp(max=limit), value.clamp(-limit, limit)
    y = gate * torch.sigmoid(alpha * gate) * (value + bias)
    return torch.cat([y, y.new_zeros(len(x) - rows, *y.shape[1:])])


spec("aclnnClippedSwigluGrad", "gradXOut:x", **FLOAT32_GRADIENT, source="derivative of "
     "gpt-oss' swiglu with limit", samples=[
         take(gradY=t(3, 32), x=t(3, 64, low=-4, high=4), dim=-1, alpha=1.702, limit=2.0, bias=1.0,
              groupIndexOptional=g, interleaved=i)
         for i in (True, False) for g in (None, const([1, 0, 1], "int64"))])(
    gradient(_clipped, grad="gradY", of="x"))  # fmt: skip
