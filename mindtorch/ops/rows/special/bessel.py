"""Rows of Bessel functions: on cpu by scipy.special, on npu by quadrature of their integrals.

Integrals: Abramowitz and Stegun 9.1.21, 9.1.22, 9.6.19, 9.6.24; Gauss-Legendre nodes are enough
for arguments below 30, beyond which Hankel's expansions (9.2.5 to 9.2.10, 9.7.1) are used.
"""

from __future__ import annotations

from math import isfinite, pi

from ...samples import unary
from ...words import *
from .functions import Integrand, _floating, by_scipy, integral, unary as row

FAR = 30.0
AIRY_AT_0, AIRY_SLOPE_AT_0 = 0.355028053887817239, 0.258819403792806798  # DLMF 9.2.3, 9.2.4


def _in_one_dim(lower: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """`lower` at any rank: the nodes of its integral take one dim more."""

    def flat(self: Tensor) -> Tensor:
        return aten.reshape(lower(aten.reshape(self, (-1,))), tuple(self.shape))

    return flat


def _hankel(order: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """P and Q of 9.2.9 and 9.2.10, six terms together."""
    mu, terms, factor = 4 * order * order, [1.0], 1.0
    for k in range(1, 6):
        factor *= (mu - (2 * k - 1) ** 2) / (k * 8)
        terms.append(factor)
    r = aten.reciprocal(x)
    square = r * r
    even = square * (square * terms[4] - terms[2]) + terms[0]
    odd = r * (square * (square * terms[5] - terms[3]) + terms[1])
    return even, odd


def _wave(order: int, x: Tensor, second: bool) -> Tensor:
    """J (or Y, `second`) by Hankel's expansion for large positive arguments."""
    p, q = _hankel(order, x)
    angle = x - (order / 2 + 0.25) * pi
    sine, cosine = aten.sin(angle), aten.cos(angle)
    wave = p * sine + q * cosine if second else p * cosine - q * sine
    return aten.sqrt((2 / pi) / x) * wave


def _first(order: int) -> Callable[[Tensor], Tensor]:
    def lower(self: Tensor) -> Tensor:
        x = _floating(self)
        size = aten.abs(x)
        near = aten.clamp_max(size, FAR)
        small = integral(lambda t, x: aten.cos(x * aten.sin(t) - t * order), near, pi) / pi
        result = aten.where(size < FAR, small, _wave(order, aten.clamp_min(size, FAR), False))
        return aten.where(x < 0, -result, result) if order else result

    return _in_one_dim(lower)


def _second(order: int) -> Callable[[Tensor], Tensor]:
    def lower(self: Tensor) -> Tensor:
        x = _floating(self)
        near = aten.clamp(x, 1e-30, FAR)
        waves = integral(lambda t, x: aten.sin(x * aten.sin(t) - t * order), near, pi)

        def falling(t: Tensor, x: Tensor) -> Tensor:
            scale = aten.exp(t) - aten.exp(-t) if order else 2.0
            return aten.exp(-x * aten.sinh(t)) * scale

        fall = integral(falling, near, aten.asinh(40.0 / near), 128)
        result = aten.where(
            x < FAR, (waves - fall) / pi, _wave(order, aten.clamp_min(x, FAR), True)
        )
        result = aten.where(x == 0, aten.full_like(result, -np.inf), result)
        return aten.where(x < 0, aten.full_like(result, np.nan), result)

    return _in_one_dim(lower)


def _grown(order: int, scaled: bool) -> Callable[[Tensor], Tensor]:
    """I of an order: x^order ∫ exp(x cos t) sin(t)^(2 order) dt / π (DLMF 10.32.2), scaled by
    exp(-|x|) for its range; small arguments keep their digits."""

    def lower(self: Tensor) -> Tensor:
        x = _floating(self)
        size = aten.abs(x)
        near = aten.clamp_max(size, FAR)

        def kernel(t: Tensor, x: Tensor) -> Tensor:
            rise = aten.exp(x * (aten.cos(t) - 1))
            return rise * aten.square(aten.sin(t)) if order else rise

        small = integral(kernel, near, pi) / pi * (near if order else 1.0)
        far = aten.clamp_min(size, FAR)
        mu, term, series = 4 * order * order, aten.ones_like(far), aten.ones_like(far)
        for k in range(1, 7):
            term = term * (-(mu - (2 * k - 1) ** 2) / (k * 8)) / far
            series = series + term
        result = aten.where(size < FAR, small, series / aten.sqrt(far * (2 * pi)))
        result = aten.where(x < 0, -result, result) if order else result
        return result if scaled else result * aten.exp(size)

    return _in_one_dim(lower)


def _fallen(order: int, scaled: bool) -> Callable[[Tensor], Tensor]:
    """K of an order: ∫ exp(-x cosh t) cosh(order t) dt, scaled by exp(x) for its range."""

    def lower(self: Tensor) -> Tensor:
        x = _floating(self)
        safe_x = aten.clamp_min(x, 1e-30)
        high = aten.acosh(40.0 / safe_x + 1.0)
        kernel: Integrand = lambda t, x: aten.exp(x * (1 - aten.cosh(t))) * aten.cosh(t * order)  # noqa: E731
        result = integral(kernel, safe_x, aten.clamp_min(high, 1e-3), 128)
        result = aten.where(x == 0, aten.full_like(result, np.inf), result)
        result = aten.where(x < 0, aten.full_like(result, np.nan), result)
        return result if scaled else result * aten.exp(-x)

    return _in_one_dim(lower)


row("bessel_j0", by_scipy("j0"), _first(0), None, 0.2, 6)
row("bessel_j1", by_scipy("j1"), _first(1), None, 0.2, 6)
row("bessel_y0", by_scipy("y0"), _second(0), None, 1, 6)
row("bessel_y1", by_scipy("y1"), _second(1), None, 1, 6)
row("modified_bessel_i0", by_scipy("i0"), _grown(0, False), None)
row("modified_bessel_i1", by_scipy("i1"), _grown(1, False), None)
row("modified_bessel_k0", by_scipy("k0"), _fallen(0, False), None, 0.5, 3)
row("modified_bessel_k1", by_scipy("k1"), _fallen(1, False), None, 0.5, 3)
row("scaled_modified_bessel_k0", by_scipy("k0e"), _fallen(0, True), None, 0.5, 3)
row("scaled_modified_bessel_k1", by_scipy("k1e"), _fallen(1, True), None, 0.5, 3)


def _i1_slope(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    safe = aten.where(self == 0, 1.0, self)
    return grad * aten.where(self == 0, 0.5, aten.special_i0(self) - result / safe)


def _i1e_slope(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    safe = aten.where(self == 0, 1.0, self)
    slope = aten.special_i0e(self) - result * (aten.sgn(self) + 1 / safe)
    return grad * aten.where(self == 0, 0.5, slope)


row(
    "i0", None, _grown(0, False), lambda grad, self: grad * aten.special_i1(self),
    kernel="i0_vml_cpu", dtypes="complex",
)  # fmt: skip
row(
    "i0e", None, _grown(0, True),
    lambda grad, self, result: grad * (aten.special_i1e(self) - aten.sgn(self) * result),
    dtypes="complex",
)  # fmt: skip
row("i1", None, _grown(1, False), _i1_slope, dtypes="complex")
row("i1e", None, _grown(1, True), _i1e_slope, dtypes="complex")
composite(
    "i0(Tensor self) -> Tensor",
    lambda self: aten.special_i0(self),
    unsupported={"complex": "i0_vml_cpu"},
    samples=unary(dtypes=("float32", "int64")),
    inplace=True,
)


def _spherical(self: Tensor) -> Tensor:
    x = _floating(self)
    safe = aten.where(x == 0, aten.ones_like(x), x)
    result = aten.where(x == 0, aten.ones_like(x), aten.sin(safe) / safe)
    square = x * x
    series = 1 - square / 6 * (1 - square / 20 * (1 - square / 42))
    result = aten.where(aten.abs(x) < 0.5, series, result)
    return aten.where(aten.isinf(x), aten.zeros_like(x), result)


def _sine_over(x: Array) -> Array:
    result: Array = np.sin(x) / x
    if not isfinite(np.vdot(result, result)):
        result = np.where(x == 0, 1, np.where(np.isinf(x), 0, result)).astype(x.dtype)
    return result


row(
    "spherical_bessel_j0",
    _sine_over, _spherical, None,
)  # fmt: skip


def _airy_cpu(x: Any) -> Any:
    from scipy.special import airy

    return airy(x)[0].astype(x.dtype)


def _airy(self: Tensor) -> Tensor:
    """Beside 0 by Maclaurin's series (DLMF 9.4.1), elsewhere by the integral of DLMF 9.5.7: as it
    stands for positive arguments, turned by pi/3 (9.2.14) for negative ones: nothing cancels."""
    x = _floating(self)
    near, cube = aten.clamp(x, -1.0, 1.0), aten.pow(aten.clamp(x, -1.0, 1.0), 3)
    even, odd, terms = aten.ones_like(near), aten.ones_like(near), (aten.ones_like(near),) * 2
    for k in range(1, 8):
        terms = (
            terms[0] * cube / (3 * k * (3 * k - 1)),
            terms[1] * cube / (3 * k * (3 * k + 1)),
        )
        even, odd = even + terms[0], odd + terms[1]
    small = even * AIRY_AT_0 - near * odd * AIRY_SLOPE_AT_0
    size = aten.clamp_min(aten.abs(x), 1.0)
    root = aten.sqrt(size)
    phase = size * root * (2 / 3)
    spread = aten.sqrt(46.0 / root)  # where the integrand is below 1e-17
    falling = integral(
        lambda t, _: aten.exp(-root * t * t) * aten.cos(t * t * t / 3), size, spread, 128
    )
    waves = integral(
        lambda t, _: (
            aten.exp(root * t * t * (-0.75**0.5))
            * aten.cos(t * t * t / 3)
            * aten.cos(root * t * t * -0.5 - phase + pi / 3)
        ),
        size, spread, 128,
    )  # fmt: skip
    right = aten.exp(-phase) * falling / pi
    far = aten.where(x > 0, right, waves * (2 / pi))
    return aten.where(aten.abs(x) < 1, small, far)


row("airy_ai", _airy_cpu, _airy, None)
