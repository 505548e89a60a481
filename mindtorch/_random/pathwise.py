"""Owns the derivatives of gamma and Dirichlet draws by their parameters, quantiles held.

-(dF/d parameter) / density, by torch's approximations for each range: a Taylor series near zero,
Rice's saddle point where parameters are large, a rational function in two variables between.
Relative errors are those of torch, up to 1e-3; numbers are those of torch to a few units in the
last place of float32.

Source: ATen/native/Distributions.h, `standard_gamma_grad_one` and `dirichlet_grad_one`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .._tensor import dtype as dt
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.spec import aten

Coefficients: TypeAlias = Sequence[float]

# Of the asymptotic expansion, by powers of 1 / x^2.
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_NEAR_ZERO = 0.800000011920929  # float32's 0.8
# Of log(x / alpha), by powers of it; in each the numerator's and the denominator's of log(alpha).
_GAMMA = (
    ((0.16009398, -0.094634809, 0.025146376, -0.0030648343),
     (1.0, 0.32668115, 0.10406089, 0.0014179084)),
    ((0.53487893, 0.1298071, 0.065735949, -0.0015649758),
     (0.16639465, 0.020070113, -0.0035938915, -0.00058392623)),
    ((0.040121004, -0.0065914022, -0.0026286047, -0.0013441777),
     (0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07)),
)  # fmt: skip
# Numerator and denominator: by powers of u, then of a, polynomials in b (`_rational_correction`).
_DIRICHLET = (
    (((1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
      (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
      (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013)),
     ((0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
      (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
      (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05)),
     ((-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
      (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
      (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05))),
    (((1.0, -0.02924021934, -0.04438342661, 0.007285809825),
      (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
      (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149)),
     ((0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
      (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
      (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05)),
     ((0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
      (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
      (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06))),
)  # fmt: skip


def wide(like: Tensor) -> Dtype:
    """What is computed in: float64 on cpu, float32 on devices, which may lack the other."""
    return dt.float64 if like.device.type == "cpu" else dt.float32


def _digamma(x: Tensor) -> Tensor:
    """digamma of positive `x`; of float32 on cpu rounded where torch's `digamma_one` rounds."""
    if wide(x) is x.dtype or x.dtype is not dt.float32:
        return aten.digamma(x)
    total = aten.zeros_like(x, dtype=dt.float64)
    for _ in range(10):  # to x >= 10, by digamma(x + 1) = digamma(x) + 1 / x
        below = aten.lt(x, 10)
        total = total - aten.where(below, 1 / x, 0.0)
        x = aten.where(below, x + 1, x)
    z = aten.to(1 / (x * x), dt.float64)
    log = aten.to(aten.to(x, dt.float64).log(), dt.float32)
    return aten.to(total + log - 0.5 / x - z * _polynomial(z, _DIGAMMA), dt.float32)


def _polynomial(x: Tensor, coefficients: Sequence[float | Tensor]) -> Tensor:
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = coefficient + x * total
    assert isinstance(total, Tensor)
    return total


def gamma_gradient(concentration: Tensor, draws: Tensor) -> Tensor:
    """d draw / d concentration of draws from Gamma(concentration, 1), of the former's dtype."""
    alpha, x = (aten.to(t, wide(t)) for t in (concentration, draws))
    far = aten.where(aten.gt(alpha, 8), _gamma_saddle_point(alpha, x), _gamma_rational(alpha, x))
    grad = aten.where(aten.lt(x, _NEAR_ZERO), _gamma_near_zero(alpha, x), far)
    return aten.to(grad, concentration.dtype)


def _gamma_near_zero(alpha: Tensor, x: Tensor) -> Tensor:
    by_alpha, by_square = 1 / alpha, 1 / (alpha * alpha)
    term = aten.ones_like(x)
    for i in range(1, 6):
        term = term * (-x / i)
        place = alpha + i
        by_alpha = by_alpha + term / place
        by_square = by_square + term / (place * place)
    power = x**alpha
    cdf_by_alpha = (x.log() - aten.digamma(alpha)) * (power * by_alpha) - power * by_square
    grad = -cdf_by_alpha / (x ** (alpha - 1) * (-x).exp())
    return aten.where(aten.isnan(grad), 0.0, grad)


def _gamma_saddle_point(alpha: Tensor, x: Tensor) -> Tensor:
    square = alpha * alpha
    first = 1 + 24 * alpha * (1 + 12 * alpha)
    second = 1440 * square + 6 * x * (53 - 120 * x) - 65 * x * x / alpha
    near = first * (second + alpha * (107 + 3600 * x)) / (1244160 * square * square)

    root, log, gap = (8 * alpha).sqrt(), (x / alpha).log(), alpha - x
    sharp = (x - alpha - alpha * log) ** -1.5
    both = root / gap + aten.where(aten.lt(x, alpha), -sharp, sharp)
    far = log * both - (2 / alpha).sqrt() * (alpha + x) / (gap * gap)
    stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha))
    at_mean = aten.logical_and(aten.ge(x, 0.9 * alpha), aten.le(x, 1.1 * alpha))
    return aten.where(at_mean, near, -stirling * (x * far) / root)


def _gamma_rational(alpha: Tensor, x: Tensor) -> Tensor:
    u, v = (x / alpha).log(), alpha.log()
    p, q = (
        _polynomial(v, [_polynomial(u, by_u) for by_u in zip(*side, strict=True)])
        for side in zip(*_GAMMA, strict=True)
    )
    return (p / q).exp()


def dirichlet_gradient(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """-(dF/d alpha) / density / (1 - x) of x from Beta(alpha, total - alpha), of x's dtype.

    The three tensors have one shape.
    """
    beta, boundary = total - alpha, total * x * (1 - x)
    low = _beta_by_alpha(x, alpha, beta)
    high = -_beta_by_beta(1 - x, beta, alpha)
    exact = [aten.to(t, wide(t)) for t in (x, alpha, total)]
    large = aten.logical_and(aten.gt(alpha, 6), aten.gt(beta, 6))
    between = aten.where(large, _beta_saddle_point(*exact), _rational_correction(*exact))
    near_one = aten.logical_and(aten.ge(x, 0.5), aten.lt(boundary, 0.75))
    near_zero = aten.logical_and(aten.le(x, 0.5), aten.lt(boundary, 2.5))
    grad = aten.where(near_one, high, aten.to(between, x.dtype))
    return aten.where(near_zero, low, grad)


def _beta_by_alpha(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """The derivative by alpha for x near 0."""
    factor = _digamma(alpha) - _digamma(alpha + beta) - x.log()
    term = aten.ones_like(x)
    series = 1 / alpha * (factor + 1 / alpha)
    for i in range(1, 11):
        term = term * ((i - beta) * x / i)
        place = alpha + i
        series = series + term / place * (factor + 1 / place)
    grad = x * (1 - x) ** -beta * series
    return aten.where(aten.isnan(grad), 0.0, grad)


def _beta_by_beta(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """The derivative by beta for x near 0."""
    factor = _digamma(alpha + beta) - _digamma(beta)
    term, betas, slopes = aten.ones_like(x), aten.ones_like(x), aten.zeros_like(x)
    series = factor / alpha
    for i in range(1, 9):
        term = term * (-x / i)
        slopes = slopes * (beta - i) + betas
        betas = betas * (beta - i)
        series = series + term / (alpha + i) * (slopes + factor * betas)
    grad = -((1 - x) ** (1 - beta)) * series
    return aten.where(aten.isnan(grad), 0.0, grad)


def _beta_saddle_point(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    beta = total - alpha
    mean = alpha / total
    deviation = (alpha * beta / (total + 1)).sqrt() / total
    square = beta * beta
    by_alpha: list[float | Tensor] = [
        47 * x * square * square,
        (43 + 20 * (16 + 27 * beta) * x) * square * beta,
        3 * (59 + 180 * beta - 90 * x) * square,
        (453 + 1620 * beta * (1 - x) - 455 * x) * beta,
        8 * (1 - x) * (135 * beta - 11),
    ]
    above = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total)
    below = 12960 * alpha * alpha * alpha * beta * beta * (1 + 12 * total)
    near = above / (1 - x) * _polynomial(alpha, by_alpha) / below

    scale = -x / (2 * alpha * beta / total).sqrt()
    stirling = _stirling(alpha) * _stirling(beta) / _stirling(total)
    slope = alpha * (x - 1) + beta * x
    first = 2 * (alpha * alpha) * (x - 1) + alpha * beta * (x - 1) - x * square
    first = first / ((2 * alpha / beta).sqrt() * total**1.5 * slope * slope)
    log = (alpha / (total * x)).log()
    third = (8 * alpha * beta / total).sqrt() / slope
    sharp = (beta * (beta / (total * (1 - x))).log() + alpha * log) ** -1.5
    far = first + 0.5 * log * (third + aten.where(aten.lt(x, mean), sharp, -sharp))
    at_mean = aten.le((x - mean).abs(), 0.1 * deviation)
    return aten.where(at_mean, near, stirling * scale * far)


def _stirling(x: Tensor) -> Tensor:
    return 1 + 1 / (12 * x) + 1 / (288 * x * x)


def _rational_correction(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    u = x.log()
    a = alpha.log() - u
    b = total.log() - a
    p, q = (
        _polynomial(u, [_polynomial(a, [_polynomial(b, c) for c in by_a]) for by_a in by_u])
        for by_u in _DIRICHLET
    )
    return p / q * (x * (aten.digamma(total) - aten.digamma(alpha)) / (total - alpha))
