"""Rows of the gamma function's relatives: incomplete, and of several dimensions."""

from __future__ import annotations

from math import log, nan, pi

from ...._compat.unsupported_dtypes import Refusal
from ...limits import reserve
from ...rules import pointwise, result_type, without_derivative
from ...spec import Derivative
from ...words import *
from .functions import _floating, by_scipy, in_float32, integral


def _slope(sign: int) -> Derivative:
    def density(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
        return grad * sign * aten.exp((self - 1) * aten.log(other) - other - aten.lgamma(self))

    return Derivative(density, ("grad", "self", "other"))


BROAD = 20.0  # shapes from here on are computed around the peak of the density


def _steps(count: int, like: Tensor) -> Tensor:
    """1 to `count` along a first dimension before those of `like`."""
    steps = aten.to(aten.arange(1, count + 1, device=like.device), like.dtype)
    return aten.reshape(steps, (count, *(1,) * like.ndim))


def _beyond_line(v: Tensor) -> Tensor:
    """exp(v) - 1 - v, beside 0 by its series: nothing cancels."""
    near = aten.clamp(v, -0.5, 0.5)
    rest = aten.full_like(near, 1 / 16)
    for k in range(15, 2, -1):
        rest = (near * rest + 1) / k
    series = (near * rest + 1) * (near * near * 0.5)
    return aten.where(near == v, series, aten.exp(v) - 1 - v)


def _both_tails(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """P(a, x) and Q(a, x), of which the smaller is computed and the other is what lacks to 1.

    Below `BROAD` by the series of DLMF 8.11.4 left of a + 1, and right of it by the integral of
    the density beyond x; above by that of the density of ln(x / a), which is nearly normal.
    """
    narrow = aten.clamp(a, 1e-30, BROAD)
    left = aten.minimum(aten.clamp_min(x, 1e-37), narrow + 1)
    rise = narrow * aten.log(left) - left
    terms = aten.cumprod(left / (narrow + _steps(100, left)), 0)
    lower = (aten.sum(terms, 0) + 1) * aten.exp(rise - aten.lgamma(narrow + 1))
    right = aten.clamp(aten.maximum(x, narrow + 1), 1.0, 1e4)
    density = aten.exp((narrow - 1) * aten.log(right) - right - aten.lgamma(narrow))
    tail = integral(
        lambda w, _: aten.exp((narrow - 1) * aten.log1p(w / right) - w), right, 100.0, 128
    )
    upper = tail * density
    series = x < a + 1

    broad = aten.clamp(a, BROAD, 1e30)
    ratio = aten.log(aten.clamp(x / broad, 1e-30, 1e30))
    reach = 12.0 / aten.sqrt(broad)
    start = aten.abs(ratio)
    sign = aten.where(ratio < 0, -aten.ones_like(ratio), aten.ones_like(ratio))

    def peak(t: Tensor, _: Tensor) -> Tensor:
        return aten.exp(-broad * _beyond_line((start + t) * sign))

    square = aten.reciprocal(broad * broad)
    stirling = (1 / 12 - square * (1 / 360 - square / 1260)) / broad  # DLMF 5.11.1
    scale = aten.sqrt(broad / (2 * pi)) * aten.exp(-stirling)
    outer = integral(peak, broad, reach, 64) * scale

    wide = a > BROAD
    from_left = aten.where(wide, ratio < 0, series)
    part = aten.where(wide, outer, aten.where(series, lower, upper))
    rest = 1 - part
    return aten.where(from_left, part, rest), aten.where(from_left, rest, part)


def _incomplete(upper: bool) -> Callable[[Tensor, Tensor], Tensor]:
    def lower(self: Tensor, other: Tensor) -> Tensor:
        a, x = aten.broadcast_tensors((self, other))
        dtype = result_type([a._geom, x._geom])
        a, x = aten.to(a, dtype), aten.to(x, dtype)
        one, zero = aten.ones_like(a), aten.zeros_like(a)
        result = _both_tails(a, x)[upper]
        first, last = (one, zero) if upper else (zero, one)
        at_end = aten.logical_or(aten.isinf(x), a == 0)
        at_start = aten.logical_or(x == 0, aten.isinf(a))
        result = aten.where(at_start, first, aten.where(at_end, last, result))
        outside = aten.logical_or(aten.logical_or(a < 0, x < 0), aten.logical_and(at_start, at_end))
        outside = aten.logical_or(outside, aten.logical_or(aten.isnan(a), aten.isnan(x)))
        return aten.where(outside, aten.full_like(a, nan), result)

    return in_float32(lower)


for _name, _kernel, _sign in (("igamma", "gammainc", 1), ("igammac", "gammaincc", -1)):
    op(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        infer=pointwise("float"),
        cpu=by_scipy(_kernel),
        lower=_incomplete(_name == "igammac"),
        grad={"self": without_derivative(f"{_name}: input"), "other": _slope(_sign)},
        unsupported={"bool whole complex": f"{_name}_cpu"},
        samples=calls(
            (Arg((3, 4), low=0.5, high=3, grad=False), Arg((3, 4), low=0.5, high=4)),
        ),
        inplace=True,
    )


@composite(
    "mvlgamma(Tensor self, int p) -> Tensor",
    unsupported={"bool": Refusal("The input tensor may not be a boolean tensor.")},
    samples=calls((Arg((3,), low=2, high=5), 3)),
    inplace=True,
)
def mvlgamma(self: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of `p` dimensions."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = _floating(self)
    reserve((*x.shape, p), x)
    offsets = [j / -2.0 for j in range(p)]
    total: Any = None
    for offset in offsets:
        part = aten.lgamma(x + offset)
        total = part if total is None else total + part
    return total + p * (p - 1) / 4 * log(pi)
