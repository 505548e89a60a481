"""Gated linear units and their gradients."""

from __future__ import annotations

import math

import mindtorch as torch
import mindtorch.nn.functional as F
from mindtorch import Tensor

from .....spec import *
from ...formulas import gradient, words
from .._words import *

_SHAZEER: Final = "Shazeer: GLU Variants Improve Transformer, 2020"
_OSS: Final = "gpt-oss, public model code: swiglu with limit"
_GROUP: Final = Rule("gradient", f"{_SHAZEER}; {_OSS}; op-plugin tests npu_swiglu_group_quant and "
                     "its backward", specials=False)  # fmt: skip
_ROWS: Final = leading(6, "-", 1, "2x3", 33, 130)
# Rows of E groups come first; some may belong to none.
_TOKENS: Final = sizes({"*B": _ROWS}, E=experts(2, 1, 8), N=row)


def _groups(of: str) -> Domain:
    """Sizes of groups that leave up to two rows of `of` out."""
    return optional(parts("E", of=f"max(size({of}) // (2*N) - 2, 0)"))


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


_WEIGHT: Final = optional(tensor("*B 1", "f32"))
# No 16-bit number is the limit itself, where the gradient has a jump.
_LIMIT: Final = number(0.0, 1.55, 0.6)


@spec("aclnnSwigluGroup", _GROUP, _TOKENS, x=tensor("*B 2*N"), weightOptional=_WEIGHT,
      groupIndexOptional=_groups("x"), clampLimit=_LIMIT, out=out("x"))  # fmt: skip
def grouped_gate(
    x: Array, weightOptional: Array | None, groupIndexOptional: Array | None, clampLimit: float
) -> Array:
    gate, value, *_ = _cut(x, clampLimit)
    y = gate / (1 + np.exp(-gate)) * value * (1 if weightOptional is None else weightOptional)
    return np.where(_counted(x.shape, groupIndexOptional), y, 0)


@spec("aclnnSwigluGroupGrad aclnnSwigluGroupQuantGrad", _GROUP, _TOKENS,
      gradY=tensor("*B N"), x=tensor("*B 2*N", "gradY"), weightOptional=_WEIGHT,
      yOriginOptional=optional(tensor("*B N", "gradY"), iff="given(weightOptional)"),
      groupIndexOptional=_groups("x"), clampLimit=_LIMIT, gradXOut=out("x"),
      gradWeightOutOptional=out("f32"))  # fmt: skip
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


_CLIPPED: Final[dict[str, Domain]] = {
    "x": tensor("*B 2*N"), "groupIndexOptional": _groups("x"), "dim": axis("2*N", "*B 2*N"),
    "alpha": number(1.702, 1.0, -0.5), "limit": number(1.3, 7.0), "bias": number(1.0, 0.0, -0.5),
    "interleaved": flag(True),
}  # fmt: skip
_LIMITED: Final = Rule("gradient", f"{_OSS}; op-plugin document npu_clipped_swiglu",
                       specials=False)  # fmt: skip


def _paired(x: Array, interleaved: bool) -> tuple[Array, Array]:
    """Gate and value: every other element, or halves."""
    if interleaved:
        return x[..., 0::2], x[..., 1::2]
    gate, value = np.split(x, 2, -1)
    return gate, value


@spec("aclnnClippedSwiglu", _LIMITED, _TOKENS, **_CLIPPED, out=out("x"))
def clipped_swiglu(
    x: Array, groupIndexOptional: Array | None, dim: int, alpha: float, limit: float, bias: float,
    interleaved: bool,
) -> Array:  # fmt: skip
    """gpt-oss: the gate is cut above, the other half on both sides; rows of no group are 0. `dim`
    is the last."""
    a, b = _paired(x, interleaved)
    gate, value = np.minimum(a, limit), np.clip(b, -limit, limit)
    y = gate / (1 + np.exp(-alpha * gate)) * (value + bias)
    return np.where(_counted(x.shape, groupIndexOptional), y, 0)


@spec("aclnnClippedSwigluV2", _LIMITED, _TOKENS, **_CLIPPED, clampMode=choice(0, 1),
      out=out("x"))  # fmt: skip
def clipped(
    x: Array, groupIndexOptional: Array | None, dim: int, alpha: float, limit: float, bias: float,
    interleaved: bool, clampMode: int,
) -> Array:  # fmt: skip
    """clampMode 1 cuts what was activated, and adds no bias."""
    if clampMode == 0:
        return clipped_swiglu(x, groupIndexOptional, dim, alpha, limit, bias, interleaved)
    a, b = _paired(x, interleaved)
    y = np.minimum(a / (1 + np.exp(-a)), limit) * np.clip(b, -limit, limit)
    return np.where(_counted(x.shape, groupIndexOptional), y, 0)


def _clipped(
    x: Tensor, groupIndexOptional: Tensor | None, dim: int, alpha: float, limit: float,
    bias: float, interleaved: bool,
) -> Tensor:  # fmt: skip
    every = x.reshape(-1, x.shape[-1])
    rows = len(every) if groupIndexOptional is None else int(groupIndexOptional.sum())
    subset = every[:rows]
    gate, value = (subset[..., 0::2], subset[..., 1::2]) if interleaved else subset.chunk(2, -1)
    gate, value = gate.clamp(max=limit), value.clamp(-limit, limit)
    y = gate * torch.sigmoid(alpha * gate) * (value + bias)
    return torch.cat([y, y.new_zeros(len(every) - rows, y.shape[-1])])


spec("aclnnClippedSwigluGrad", _LIMITED, _TOKENS, gradY=tensor("*B N"),
     **_CLIPPED | {"x": tensor("*B 2*N", "gradY")}, gradXOut=out("x"))(
    gradient(_clipped, grad="gradY", of="x"))  # fmt: skip

_GATE: Final = Rule("composite", _SHAZEER, values="normal integer opposed positive nan")
_GATE_GRAD: Final = Rule(
    "gradient", _SHAZEER, values=_GATE.values,
    numbers={"norm": 16, "reason": "the erf form's derivative is a difference of two rounded "
             "products, which inflow and the other half multiply: 8.06 u met"},
)  # fmt: skip
_PAIRS: Final = sizes({"*B": leading(3, 1, "2x3", 65, "2x1x3")}, N=row)


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    n = x.shape[-1] // 2
    return x[..., :n], x[..., n:]


def _gelu_mul(input: Tensor, approximateOptional: str) -> Tensor:
    gate, value = _halves(input)
    return F.gelu(gate, approximate=approximateOptional) * value


spec("aclnnGeluMul", _GATE, _PAIRS, input=tensor("*B 2*N"),
     approximateOptional=choice("none", "tanh"), out=out("input"))(words(_gelu_mul))  # fmt: skip


@spec("aclnnFatreluMul", Rule("composite", "Kurtz et al.: FATReLU, 2020", sparse=True,
                              specials=False), _PAIRS,
      input=tensor("*B 2*N"), threshold=tensor("1", "input", -0.5, 0.5),
      out=out("input"))  # fmt: skip
def fatrelu_mul(input: Array, threshold: Array) -> Array:
    gate, value = np.split(input, 2, -1)
    return np.where(gate > threshold.reshape(()), gate, 0.0) * value


def gelu_tanh(x: Tensor) -> Tensor:
    """Hendrycks, Gimpel: Gaussian Error Linear Units, 2016: the approximation by tanh."""
    return 0.5 * x * (1 + torch.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))


def _gelu(x: Tensor, approximate: int) -> Tensor:
    return gelu_tanh(x) if approximate else F.gelu(x)


def geglu(x: Tensor, dim: int, approximate: int, left: bool) -> tuple[Tensor, Tensor]:
    a, b = torch.chunk(x, 2, dim)
    gate, value = (a, b) if left else (b, a)
    active = _gelu(gate, approximate)
    return value * active, active


_SLOPE: Final = gradient(_gelu, grad="flow", of="x")
# The axis that is halved stands anywhere.
_HALVED: Final = sizes({"*N": leading("-", 5, 1, "2x3", 33, 1025)},
                       A=row(4, 1, 3, 17, 65, 257, 1032))  # fmt: skip


def _split(x: str, dtype: str = "") -> dict[str, Domain]:
    return {x: tensor("*B 2*A *N", dtype), "dim": axis("2*A", "*B 2*A *N")}


def geglu_backward(
    gradOutput: Array, self: Array, gelu: Array, dim: int, approximate: int,
    activateLeft: bool = False,
) -> Array:  # fmt: skip
    """The half that is not activated gets what gelu gave in the forward pass."""
    a, b = np.split(self, 2, dim)
    gate, value = (a, b) if activateLeft else (b, a)
    dvalue = gradOutput * gelu
    dgate = _SLOPE(flow=gradOutput * value, x=gate, approximate=approximate)[0]
    return np.concatenate((dgate, dvalue) if activateLeft else (dvalue, dgate), dim)


_GEGLU_BACK: Final[dict[str, Domain]] = {
    "gradOutput": tensor("*B A *N"), "self": tensor("*B 2*A *N", "gradOutput"),
    "gelu": tensor("*B A *N", "gradOutput"), "dim": axis("2*A", "*B 2*A *N"),
    "approximate": choice(1, 0),
}  # fmt: skip
spec("aclnnGeGluBackward", _GATE_GRAD, _HALVED, **_GEGLU_BACK, gradInput=out("self"))(
    geglu_backward)  # fmt: skip
spec("aclnnGeGluV3Backward", _GATE_GRAD, _HALVED, **_GEGLU_BACK, activateLeft=flag(),
     gradInput=out("self"))(geglu_backward)  # fmt: skip


def swiglu(x: Tensor, dim: int) -> Tensor:
    a, b = torch.chunk(x, 2, dim)
    return a * torch.sigmoid(a) * b


spec("aclnnSwiGlu", _GATE, _HALVED, **_split("x"), out=out("x"))(words(swiglu))
spec("aclnnSwiGluGrad", _GATE, _HALVED, yGrad=tensor("*B A *N"), **_split("x", "yGrad"),
     out=out("x"))(gradient(swiglu, grad="yGrad", of="x"))  # fmt: skip
spec("aclnnGlu", _GATE, _HALVED, **_split("self"), out=out("self"))(
    words(lambda self, dim: F.glu(self, dim)))  # fmt: skip
spec("aclnnGluBackward", _GATE, _HALVED, gradOut=tensor("*B A *N"), **_split("self", "gradOut"),
     out=out("self"))(
    gradient(lambda self, dim: F.glu(self, dim), grad="gradOut", of="self"))  # fmt: skip
spec("aclnnGeGlu", _GATE, _HALVED, **_split("self"), approximate=choice(1, 0),
     out=out("self"), outGelu=out("self"))(
    words(lambda self, dim, approximate: geglu(self, dim, approximate, False)))  # fmt: skip
spec("aclnnGeGluV3", _GATE, _HALVED, **_split("self"), approximate=choice(1, 0),
     activateLeft=flag(), out=out("self"), outGelu=out("self"))(
    words(lambda self, dim, approximate, activateLeft:
          geglu(self, dim, approximate, activateLeft)))  # fmt: skip
