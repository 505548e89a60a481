"""Group and instance norms and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import mindtorch as torch
import mindtorch.nn.functional as F
from mindtorch import Tensor

from .....judge.precision import Array
from ...formulas import gradient
from ...spec import const, spec, t, take
from .._ignored import requested, saved
from .rms import GRAD, ROW


def _grouped(self: Array, group: int, eps: float) -> tuple[Array, Array, Array, tuple[int, ...]]:
    n, c = self.shape[:2]
    parts = self.reshape(n, group, -1)
    mean, rstd = parts.mean(-1), 1 / np.sqrt(parts.var(-1) + eps)
    hat = ((parts - mean[..., None]) * rstd[..., None]).reshape(self.shape)
    return hat, mean, rstd, (1, c) + (1,) * (self.ndim - 2)


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def group_norm_silu(
    self: Array, gamma: Array, beta: Array, group: int, eps: float, activateSilu: bool = True
) -> tuple[Array, Array, Array]:
    hat, mean, rstd, shape = _grouped(self, group, eps)
    y = hat * gamma.reshape(shape) + beta.reshape(shape)
    return _silu(y) if activateSilu else y, mean, rstd


_SILU: Final = [take(self=t(*s), gamma=t(s[1]), beta=t(s[1]), group=g, eps=1e-5)
                for s, g in (((2, 4, 9), 2), ((2, 6, 3, 5), 3), ((1, 8, 70), 1))]  # fmt: skip
_WU: Final = "Wu, He: Group Normalization, 2018, then x sigmoid(x)"
spec("aclnnGroupNormSilu", "out:self meanOut:self rstdOut:self", samples=_SILU,
     **{**ROW, "source": _WU})(group_norm_silu)  # fmt: skip
spec("aclnnGroupNormSiluV2", "out:self meanOut:self rstdOut:self", **{**ROW, "source": _WU},
     samples=[take(**s.kwargs, activateSilu=a) for s in _SILU for a in (True, False)])(
    group_norm_silu)  # fmt: skip


@spec("aclnnGroupNormSwish", "yOut:x meanOut:x rstdOut:x",
      constant="dataFormatOptional",
      **{**ROW, "source":
      "Wu, He: Group Normalization, 2018, then x sigmoid(scale x)"}, samples=[
          take(x=t(2, 4, 9), gamma=t(4), beta=t(4), numGroups=2, dataFormatOptional="NCHW",
               eps=1e-5, activateSwish=a, swishScale=s)
          for a, s in ((True, 1.0), (True, 0.5), (False, 1.0))])  # fmt: skip
def group_norm_swish(
    x: Array, gamma: Array, beta: Array, numGroups: int, dataFormatOptional: str, eps: float,
    activateSwish: bool, swishScale: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    hat, mean, rstd, shape = _grouped(x, numGroups, eps)
    y = hat * gamma.reshape(shape) + beta.reshape(shape)
    return y / (1 + np.exp(-swishScale * y)) if activateSwish else y, mean, rstd


@spec("aclnnGroupNormBackward", "gradInput:input gradGammaOut:input gradBetaOut:input",
      constant="N C HxW group",
      **{**GRAD, "source": "derivative of Wu, He: Group Normalization, 2018"}, samples=[
          take(gradOut=t(2, 4, 9), input=t(2, 4, 9), mean=t(2, 2, high=1),
               rstd=t(2, 2, low=0.5, high=1.5), gamma=t(4), N=2, C=4, HxW=9, group=2,
               outputMask=m) for m in ((True, True, True), (True, False, False))])  # fmt: skip
def group_norm_backward(
    gradOut: Array, input: Array, mean: Array, rstd: Array, gamma: Array, N: int, C: int, HxW: int,
    group: int, outputMask: Sequence[bool],
) -> tuple[Array | None, ...]:  # fmt: skip
    x, dy = input.reshape(N, group, -1), gradOut.reshape(N, group, -1)
    m, r = mean.reshape(N, group, 1), rstd.reshape(N, group, 1)
    hat = (x - m) * r
    scale = np.repeat(gamma, HxW).reshape(1, group, -1)
    flow = dy * scale
    centred = flow - flow.mean(-1, keepdims=True)
    dx = r * (centred - hat * (flow * hat).mean(-1, keepdims=True))
    per = (hat * dy).reshape(N, C, HxW).sum((0, 2)), gradOut.reshape(N, C, HxW).sum((0, 2))
    parts = (dx.reshape(input.shape), *per)
    return tuple(p if w else None for p, w in zip(parts, outputMask, strict=True))


@spec("aclnnInstanceNorm", "y:x mean:x variance:x",
      constant="dataFormat",
      **{**ROW, "source":
      "Ulyanov, Vedaldi, Lempitsky: Instance Normalization, 2016"}, samples=[
          take(x=t(2, 4, 5, 7), gamma=t(4), beta=t(4), dataFormat="NCHW", eps=1e-3)])  # fmt: skip
def instance_norm(
    x: Array, gamma: Array, beta: Array, dataFormat: str, eps: float
) -> tuple[Array, ...]:
    mean, var = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    hat = (x - mean) / np.sqrt(var + eps)
    return hat * gamma.reshape(1, -1, 1, 1) + beta.reshape(1, -1, 1, 1), mean, var


_SWISH: Final[dict[str, Any]] = {"tolerance": "gradient", "dtypes": ("float32",),
                                 "source": "derivative of Wu, He: Group Normalization, 2018, then "
                                 "x sigmoid(scale x)"}  # fmt: skip


def _group_swish(
    x: Tensor, gamma: Tensor, beta: float, numGroups: int, swishScale: float
) -> Tensor:
    y = F.group_norm(x, numGroups, gamma, beta, 1e-5)
    return y * torch.sigmoid(swishScale * y)


def _swish_samples() -> list[Any]:
    x = t(2, 4, 9).array().astype(np.float64)
    parts = x.reshape(2, 2, -1)
    rstd = 1 / np.sqrt(parts.var(-1) + 1e-5)
    return [take(dy=t(2, 4, 9), x=const(x.tolist(), "float32"), gamma=t(4), beta=t(4),
                 mean=const(parts.mean(-1).tolist(), "float32"),
                 rstd=const(rstd.tolist(), "float32"), numGroups=2, dataFormatOptional="NCHW",
                 swishScale=s, dgammaIsRequire=True, dbetaIsRequire=True)
            for s in (1.0, 0.5)]  # fmt: skip


spec("aclnnGroupNormSwishGrad", "dxOut:x dgammaOut:x dbetaOut:x",
     ignored=saved("mean rstd")
     | requested("dgammaIsRequire dbetaIsRequire"),
     uncovered="dataFormatOptional",
     constant="numGroups",
     samples=_swish_samples, **_SWISH)(
    gradient(_group_swish, grad="dy", of="x gamma beta"))  # fmt: skip
