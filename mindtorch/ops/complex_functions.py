"""Owns elementary functions of complex numbers by those of real ones, for devices whose kernels
take real numbers alone.

Formulas: W. Kahan, "Branch cuts for complex elementary functions" (1987).
"""

from __future__ import annotations

import math
from math import pi

from .._tensor.tensor import Tensor
from .spec import aten


def _parts(z: Tensor) -> tuple[Tensor, Tensor]:
    return aten.contiguous(aten.real(z)), aten.contiguous(aten.imag(z))


def _roots(z: Tensor) -> tuple[Tensor, Tensor]:
    """The square roots of 1 - z and 1 + z; signs of zeros say on which side of a cut z is."""
    x, y = _parts(z)
    return aten.sqrt(aten.complex(1 - x, -y)), aten.sqrt(aten.complex(1 + x, y))


def _times_i(z: Tensor) -> Tensor:
    x, y = _parts(z)
    return aten.complex(-y, x)


def _times_minus_i(z: Tensor) -> Tensor:
    x, y = _parts(z)
    return aten.complex(y, -x)


def exp2(z: Tensor) -> Tensor:
    result: Tensor = aten.exp(z * math.log(2))
    return result


def expm1(z: Tensor) -> Tensor:
    """exp(z) - 1, accurate near zero."""
    x, y = _parts(z)
    half = aten.sin(y * 0.5)
    return aten.complex(aten.expm1(x) * aten.cos(y) - half * half * 2, aten.exp(x) * aten.sin(y))


def log1p(z: Tensor) -> Tensor:
    """log(1 + z), accurate near zero."""
    x, y = _parts(z)
    size = aten.hypot(1 + x, y)
    near = aten.logical_and(size > 0.5, size < 2)
    real = aten.where(near, aten.log1p(x * (x + 2) + y * y) * 0.5, aten.log(size))
    return aten.complex(real, aten.atan2(y, 1 + x))


def tanh(z: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    x, y = _parts(z)
    t, c, s = aten.tanh(x), aten.cos(y), aten.sin(y)
    below = c * c + t * t * s * s
    slope = aten.reciprocal(aten.square(aten.cosh(x)))  # 1 - t²
    return aten.complex(t / below, s * c * slope / below)


def asin(z: Tensor) -> Tensor:
    """The inverse sine."""
    x, _ = _parts(z)
    (a, b), (c, d) = map(_parts, _roots(z))
    return aten.complex(aten.atan2(x, a * c - b * d), aten.asinh(a * d - b * c))


def acos(z: Tensor) -> Tensor:
    """The inverse cosine."""
    (a, b), (c, d) = map(_parts, _roots(z))
    return aten.complex(aten.atan2(a, c) * 2, aten.asinh(c * b - d * a))


def atanh(z: Tensor) -> Tensor:
    """The inverse hyperbolic tangent."""
    x, y = _parts(z)
    size = aten.abs(x)  # odd in x: below zero the logarithm's argument would cancel
    real = aten.log1p(size * 4 / (aten.square(1 - size) + y * y)) * 0.25
    imag = aten.atan2(y * 2, (1 - x) * (1 + x) - y * y) * 0.5
    return aten.complex(aten.copysign(real, x), imag)


def asinh(z: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""
    return _times_minus_i(asin(_times_i(z)))


def atan(z: Tensor) -> Tensor:
    """The inverse tangent."""
    return _times_minus_i(atanh(_times_i(z)))


def acosh(z: Tensor) -> Tensor:
    """The inverse hyperbolic cosine."""
    x, y = _parts(z)
    (a, b), (c, d) = (_parts(aten.sqrt(aten.complex(part, y))) for part in (x - 1, x + 1))
    return aten.complex(aten.asinh(a * c + b * d), aten.atan2(b, c) * 2)


def sinc(z: Tensor) -> Tensor:
    """sin(pi z) / (pi z), 1 at zero."""
    angle = z * pi
    return aten.where(z == 0, 1.0, aten.sin(angle) / angle)
