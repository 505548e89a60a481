"""Group and instance norms and their gradients."""

from __future__ import annotations

from .....spec import *
from .._words import *
from .layer import MASKS, VALUES

_WU: Final = "Wu, He: Group Normalization, 2018"
SPACE: Final = leading(9, "-", 1, "3x5", "2x3x4", 257, 1031, 4099)
# G groups of K channels.
_GROUPED: Final = sizes({"*S": SPACE}, G=group(2, 1, 3, 8), K=channels(2, 1, 3, 17))
_EPSILON: Final = number(1e-5, 1e-12, 0.25)


def _hat(x: Array, groups: int, mean: Array, rstd: Array) -> Array:
    """x less the mean of its group, times the inverse of its deviation."""
    parts = x.reshape(len(x), groups, -1)
    return ((parts - mean[..., None]) * rstd[..., None]).reshape(x.shape)


def _by_channel(v: Array, x: Array) -> Array:
    return v.reshape(1, -1, *(1,) * (x.ndim - 2))


def _normed(
    x: Array, gamma: Array, beta: Array, groups: int, eps: float
) -> tuple[Array, Array, Array]:
    parts = x.reshape(len(x), groups, -1)
    mean, rstd = parts.mean(-1), 1 / np.sqrt(parts.var(-1) + eps)
    y = _hat(x, groups, mean, rstd) * _by_channel(gamma, x) + _by_channel(beta, x)
    return y, mean, rstd


def group_norm_silu(
    self: Array, gamma: Array, beta: Array, group: int, eps: float, activateSilu: bool = True
) -> tuple[Array, Array, Array]:
    y, mean, rstd = _normed(self, gamma, beta, group, eps)
    return y / (1 + np.exp(-y)) if activateSilu else y, mean, rstd


def _affine(x: str, groups: str) -> dict[str, Domain]:
    return {x: tensor("B G*K *S"), "gamma": tensor("G*K", x), "beta": tensor("G*K", x),
            groups: equals("G")}  # fmt: skip


_SILU: Final = Rule("composite", f"{_WU}, then x sigmoid(x)", values=VALUES)
_SILU_OUTS: Final[dict[str, Domain]] = {
    "out": out("self"), "meanOut": out("self"), "rstdOut": out("self"),
}  # fmt: skip
spec("aclnnGroupNormSilu", _SILU, _GROUPED, **_affine("self", "group"), eps=_EPSILON,
     **_SILU_OUTS)(group_norm_silu)  # fmt: skip
spec("aclnnGroupNormSiluV2", _SILU, _GROUPED, **_affine("self", "group"), eps=_EPSILON,
     activateSilu=flag(True), **_SILU_OUTS)(group_norm_silu)  # fmt: skip
_SCALE: Final = number(1.0, 0.5, 0.0, -1.5)


@spec("aclnnGroupNormSwish", Rule("composite", f"{_WU}, then x sigmoid(scale x)", values=VALUES),
      _GROUPED, **_affine("x", "numGroups"), dataFormatOptional=optional(choice("NCHW")),
      eps=_EPSILON, activateSwish=flag(True), swishScale=_SCALE, yOut=out("x"),
      meanOut=out("x"), rstdOut=out("x"))  # fmt: skip
def group_norm_swish(
    x: Array, gamma: Array, beta: Array, numGroups: int, eps: float, activateSwish: bool,
    swishScale: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    y, mean, rstd = _normed(x, gamma, beta, numGroups, eps)
    return y / (1 + np.exp(-swishScale * y)) if activateSwish else y, mean, rstd


def _flow(
    dy: Array, x: Array, mean: Array, rstd: Array, gamma: Array, groups: int
) -> tuple[Array, Array, Array]:
    """(dx, dgamma, dbeta) of a group norm from what the forward pass saved."""
    hat, axes = _hat(x, groups, mean, rstd), (0, *range(2, x.ndim))
    parts = (len(x), groups, -1)
    flow, normed = (dy * _by_channel(gamma, x)).reshape(parts), hat.reshape(parts)
    along = normed * (flow * normed).mean(-1, keepdims=True)
    dx = rstd[..., None] * (flow - flow.mean(-1, keepdims=True) - along)
    return dx.reshape(x.shape), (dy * hat).sum(axes), dy.sum(axes)


@spec("aclnnGroupNormBackward", Rule("gradient", f"derivative of {_WU}"), _GROUPED,
      gradOut=tensor("B G*K *S"), input=tensor("B G*K *S", "gradOut"),
      mean=tensor("B G", "gradOut", -1, 1), rstd=tensor("B G", "gradOut", 0.5, 1.5),
      gamma=tensor("G*K", "gradOut"), N=equals("B"), C=equals("G*K"),
      HxW=equals("size(input) // (B*G*K)"), group=equals("G"), outputMask=MASKS,
      gradInput=out("input"), gradGammaOut=out("input"), gradBetaOut=out("input"))  # fmt: skip
def group_norm_backward(
    gradOut: Array, input: Array, mean: Array, rstd: Array, gamma: Array, N: int, C: int, HxW: int,
    group: int, outputMask: Sequence[bool],
) -> tuple[Array | None, ...]:  # fmt: skip
    x, dy = (v.reshape(N, C, HxW) for v in (input, gradOut))
    dx, *rest = _flow(dy, x, mean.reshape(N, group), rstd.reshape(N, group), gamma, group)
    parts = (dx.reshape(input.shape), *rest)
    return tuple(p if w else None for p, w in zip(parts, outputMask, strict=True))


@spec("aclnnInstanceNorm", Rule("composite", "Ulyanov, Vedaldi, Lempitsky: Instance "
      "Normalization, 2016", values=VALUES), sizes(H=space, W=space), x=tensor("B C H W"),
      gamma=tensor("C", "x"), beta=tensor("C", "x"),
      dataFormat=only("NCHW", "NHWC is of tensors that are laid out so"), eps=_EPSILON,
      y=out("x"), mean=out("x"), variance=out("x"))  # fmt: skip
def instance_norm(x: Array, gamma: Array, beta: Array, eps: float) -> tuple[Array, ...]:
    mean, var = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    hat = (x - mean) / np.sqrt(var + eps)
    return hat * _by_channel(gamma, x) + _by_channel(beta, x), mean, var


@spec("aclnnGroupNormSwishGrad", Rule("gradient", f"derivative of {_WU}, then x sigmoid(scale "
      "x)"), _GROUPED, dy=tensor("B G*K *S"), mean=tensor("B G", "dy", -1, 1),
      rstd=tensor("B G", "dy", 0.5, 1.5), x=tensor("B G*K *S", "dy"),
      gamma=tensor("G*K", "dy"), beta=tensor("G*K", "dy"), numGroups=equals("G"),
      dataFormatOptional=optional(choice("NCHW")), swishScale=_SCALE,
      dgammaIsRequire=flag(True), dbetaIsRequire=flag(True), dxOut=out("x"),
      dgammaOut=out("x"), dbetaOut=out("x"))  # fmt: skip
def group_norm_swish_grad(
    dy: Array, mean: Array, rstd: Array, x: Array, gamma: Array, beta: Array, numGroups: int,
    swishScale: float, dgammaIsRequire: bool, dbetaIsRequire: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    """The gate's derivative, then the norm's."""
    y = _hat(x, numGroups, mean, rstd) * _by_channel(gamma, x) + _by_channel(beta, x)
    gate = 1 / (1 + np.exp(-swishScale * y))
    flow = dy * gate * (1 + swishScale * y * (1 - gate))
    dx, dgamma, dbeta = _flow(flow, x, mean, rstd, gamma, numGroups)
    return dx, dgamma if dgammaIsRequire else None, dbeta if dbetaIsRequire else None
