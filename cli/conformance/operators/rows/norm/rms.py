"""Root mean square norms and their gradients."""

from __future__ import annotations

from .....spec import *
from .._words import *

_PAPER: Final = "Zhang, Sennrich: Root Mean Square Layer Normalization, 2019, equation 4"
_LONG: Final = row(16, 1, "5x9", 8, 33, 65, 257, 513, 1025, 5120)
NORMED: Final = sizes({"*N": _LONG})
# Of operators whose documents ask for dims before those that are normed.
LEADING: Final = sizes({"*N": _LONG, "*B": leading(3, 1, "2x3", 65, "2x1x3")})


def _axes(x: Array, gamma: Array) -> tuple[int, ...]:
    return tuple(range(x.ndim - gamma.ndim, x.ndim))


_RMS: Final = Rule("composite", _PAPER, cost="4*size(x)")
_ROWS: Final[dict[str, Domain]] = {
    "x": tensor("*B *N"), "gamma": tensor("*N", "x"), "epsilon": number(1e-6, 1e-12, 0.25),
    "yOut": out("x"), "rstdOut": out("f32"),
}  # fmt: skip


@spec("aclnnRmsNorm", _RMS, NORMED, both("rank(gamma) > 1"), **_ROWS)
def rms_norm(x: Array, gamma: Array, epsilon: float) -> tuple[Array, Array]:
    rstd = 1 / np.sqrt((x * x).mean(_axes(x, gamma), keepdims=True) + epsilon)
    return x * rstd * gamma, rstd


@spec("aclnnGemmaRmsNorm", replace(_RMS, source="Gemma: Open Models, 2024; GemmaRMSNorm of its "
                                   "public code: scale 1 + gamma"),
      sizes(N=row), **_ROWS | {"x": tensor("*B N"), "gamma": tensor("N", "x")})  # fmt: skip
def gemma_rms_norm(x: Array, gamma: Array, epsilon: float) -> tuple[Array, ...]:
    return rms_norm(x, 1 + gamma, epsilon)


_SUM: Final = Rule("composite", _PAPER, cost="5*size(x1)")
_SUMS: Final[dict[str, Domain]] = {
    "x1": tensor("*B *N"), "x2": tensor("*B *N", "x1", -2, 3), "gamma": tensor("*N", "x1"),
    "epsilon": number(1e-6, 1e-12, 0.25),
}  # fmt: skip


@spec("aclnnAddRmsNorm", _SUM, NORMED, both("rank(gamma) > 1"),
      **_SUMS, yOut=out("x1"), rstdOut=out("f32"), xOut=out("x1"))  # fmt: skip
def add_rms_norm(x1: Array, x2: Array, gamma: Array, epsilon: float) -> tuple[Array, ...]:
    return (*rms_norm(x1 + x2, gamma, epsilon), x1 + x2)


@spec("aclnnInplaceAddRmsNorm", replace(_SUM, cost="5*size(x1Ref)"), NORMED,
      both("rank(gamma) > 1"), x1Ref=inout(tensor("*B *N")),
      x2Ref=inout(tensor("*B *N", "x1Ref", -2, 3)), gamma=tensor("*N", "x1Ref"),
      epsilon=_SUMS["epsilon"], rstdOut=out("f32"))  # fmt: skip
def inplace_add_rms_norm(
    x1Ref: Array, x2Ref: Array, gamma: Array, epsilon: float
) -> tuple[Array, Array, Array]:
    y, rstd = rms_norm(x1Ref + x2Ref, gamma, epsilon)
    return y, x1Ref + x2Ref, rstd


@spec("aclnnAddRmsNormCast", _SUM, NORMED, both("rank(gamma) > 1"), **_SUMS,
      y1Out=out("f32"), y2Out=out("x1"), rstdOut=out("f32"), xOut=out("x1"))  # fmt: skip
def add_rms_norm_cast(
    x1: Array, x2: Array, gamma: Array, epsilon: float
) -> tuple[Array, Array, Array, Array]:
    y, rstd = rms_norm(x1 + x2, gamma, epsilon)
    return y, y, rstd, x1 + x2


@spec("aclnnRmsNormGrad", Rule("gradient", _PAPER, cost="8*size(x)"), LEADING,
      both("rank(gamma) > 1"), dy=tensor("*B *N"), x=tensor("*B *N", "dy"),
      rstd=tensor("*B", "f32", 0.5, 1.5), gamma=tensor("*N", "dy"),
      dxOut=out("x"), dgammaOut=out("f32"))  # fmt: skip
def rms_norm_grad(dy: Array, x: Array, rstd: Array, gamma: Array) -> tuple[Array, Array]:
    """y = x rstd(x) gamma, with d rstd / dx = -rstd^3 x / N."""
    axes, lead = _axes(x, gamma), tuple(range(x.ndim - gamma.ndim))
    rstd = rstd.reshape(*x.shape[: len(lead)], *(1,) * gamma.ndim)
    along = (dy * gamma * x).sum(axes, keepdims=True) / gamma.size
    return dy * gamma * rstd - x * rstd**3 * along, (dy * x * rstd).sum(lead)
