"""Root mean square norms and their gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from .....spec import Rule, both, number, out, row, sizes, tensor
from .....spec.domains import Domain
from ...declare import declare
from ...spec import spec, t, take

_PAPER: Final = "Zhang, Sennrich: Root Mean Square Layer Normalization, 2019, equation 4"
ROW: Final[dict[str, Any]] = {"tolerance": "composite", "source": _PAPER}
GRAD: Final[dict[str, Any]] = {"tolerance": "gradient", "source": _PAPER}


def _axes(x: Array, gamma: Array) -> tuple[int, ...]:
    return tuple(range(x.ndim - gamma.ndim, x.ndim))


_RMS: Final = Rule("composite", _PAPER, cost="4*size(x)")
_ROWS: Final[dict[str, Domain]] = {
    "x": tensor("*B *N"), "gamma": tensor("*N", "x"), "epsilon": number(1e-6, 1e-12, 0.25),
    "yOut": out("x"), "rstdOut": out("f32"),
}  # fmt: skip
_NORMED: Final = sizes({"*N": row(16, 1, "5x9", 8, 33, 65, 257, 513, 1025, 5120)})


@declare("aclnnRmsNorm", _RMS, _NORMED, both("rank(gamma) > 1"), **_ROWS)
def rms_norm(x: Array, gamma: Array, epsilon: float) -> tuple[Array, Array]:
    rstd = 1 / np.sqrt((x * x).mean(_axes(x, gamma), keepdims=True) + epsilon)
    return x * rstd * gamma, rstd


@declare("aclnnGemmaRmsNorm", replace(_RMS, source="Gemma: Open Models, 2024; GemmaRMSNorm of its "
                                      "public code: scale 1 + gamma"),
         sizes(N=row), **_ROWS | {"x": tensor("*B N"), "gamma": tensor("N", "x")})  # fmt: skip
def gemma_rms_norm(x: Array, gamma: Array, epsilon: float) -> tuple[Array, ...]:
    return rms_norm(x, 1 + gamma, epsilon)


_TWO: Final = [take(x1=t(*s), x2=t(*s, high=3), gamma=t(s[-1]), epsilon=e)
               for s, e in (((3, 16), 1e-6), ((2, 3, 65), 0.25), ((2, 1025), 1e-5))]  # fmt: skip


@spec("aclnnAddRmsNorm", "yOut:x1 rstdOut:float32 xOut:x1", samples=_TWO, **ROW)
def add_rms_norm(x1: Array, x2: Array, gamma: Array, epsilon: float) -> tuple[Array, ...]:
    return (*rms_norm(x1 + x2, gamma, epsilon), x1 + x2)


@spec("aclnnInplaceAddRmsNorm", "x1Ref:x1Ref x2Ref:x2Ref rstdOut:float32", **ROW, samples=[
    take(x1Ref=t(*s), x2Ref=t(*s, high=3), gamma=t(s[-1]), epsilon=e)
    for s, e in (((3, 16), 1e-6), ((2, 3, 65), 0.25))])  # fmt: skip
def inplace_add_rms_norm(
    x1Ref: Array, x2Ref: Array, gamma: Array, epsilon: float
) -> tuple[Array, Array, Array]:
    y, rstd = rms_norm(x1Ref + x2Ref, gamma, epsilon)
    return y, x1Ref + x2Ref, rstd


@spec("aclnnAddRmsNormCast", "y1Out:float32 y2Out:x1 rstdOut:float32 xOut:x1", **ROW, samples=[
    take(x1=t(*s, dtype="float16"), x2=t(*s, dtype="float16"), gamma=t(s[-1], dtype="float16"),
         epsilon=e) for s, e in (((3, 16), 1e-6), ((2, 3, 65), 0.25))])  # fmt: skip
def add_rms_norm_cast(
    x1: Array, x2: Array, gamma: Array, epsilon: float
) -> tuple[Array, Array, Array, Array]:
    y, rstd = rms_norm(x1 + x2, gamma, epsilon)
    return y, y, rstd, x1 + x2


@spec("aclnnRmsNormGrad", "dxOut:x dgammaOut:float32", **GRAD, samples=[
    take(dy=t(3, 16, dtype="float16"), x=t(3, 16, dtype="float16"), rstd=t(3, 1, low=0.5, high=1.5),
         gamma=t(16, dtype="float16")),
    take(dy=t(2, 5, 65, dtype="float16"), x=t(2, 5, 65, dtype="float16"),
         rstd=t(2, 5, 1, low=0.5, high=1.5), gamma=t(65, dtype="float16"))])  # fmt: skip
def rms_norm_grad(dy: Array, x: Array, rstd: Array, gamma: Array) -> tuple[Array, Array]:
    """y = x rstd(x) gamma, with d rstd / dx = -rstd^3 x / N."""
    n = gamma.size
    dx = dy * gamma * rstd - x * rstd**3 * (dy * gamma * x).sum(-1, keepdims=True) / n
    lead = tuple(range(x.ndim - gamma.ndim))
    return dx, (dy * x * rstd).sum(lead)
