"""torch.distributions.von_mises: angles around a circle."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, Parameter, lazy_property

# Abramowitz and Stegun, 9.8.1 to 9.8.4: below 3.75 by (x / 3.75)^2, above by 3.75 / x.
_BESSEL = (
    ((1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
     (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537,
      -0.01647633, 0.00392377)),
    ((0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
     (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312,
      0.01787654, -0.00420059)),
)  # fmt: skip


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    *rest, last = coefficients
    total: Tensor | float = last
    for coefficient in reversed(rest):
        total = coefficient + x * total
    assert isinstance(total, Tensor)
    return total


def _log_bessel(x: Tensor, order: int) -> Tensor:
    """log of the modified Bessel function of the first kind, of order 0 or 1, for positive x."""
    low, high = _BESSEL[order]
    y = x / 3.75
    small = _polynomial(y * y, low)
    small = (x.abs() * small if order else small).log()
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, high).log()
    return mindtorch.where(x < 3.75, small, large)


class VonMises(Distribution):
    """The circular normal distribution of angle `loc` and a concentration.

    Drawn as Best and Fisher, "Efficient simulation of the von Mises distribution" (1979).
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support: constraints.Constraint = constraints.real
    has_rsample = False
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Parameter, concentration: Parameter, validate_args: bool | None = None):
        self._broadcast(loc=loc, concentration=concentration)
        super().__init__(self.loc.shape, (), validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        density = self.concentration * mindtorch.cos(value - self.loc)
        return density - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    def _proposal(self, k: Tensor) -> Tensor:
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        # Of small concentrations by the series, where the difference above cancels.
        return mindtorch.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with mindtorch.no_grad():
            shape = self._extended_shape(sample_shape)
            wide = mindtorch.float64 if self.loc.device.type == "cpu" else mindtorch.float32
            k = self.concentration.to(wide).expand(shape)
            r = self._proposal(k)
            angle, open_ = mindtorch.zeros_like(r), mindtorch.ones_like(r, dtype=mindtorch.bool)
            while bool(open_.any()):
                u1, u2, u3 = mindtorch.rand((3, *shape), dtype=wide, device=k.device).unbind()
                z = mindtorch.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                # As in torch the last draw that was accepted counts, not the first.
                accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = mindtorch.where(accepted, (u3 - 0.5).sign() * f.clamp(-1, 1).acos(), angle)
                open_ = open_ & ~accepted
            moved = (angle + math.pi + self.loc.to(wide)) % (2 * math.pi) - math.pi
            return moved.to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        k = self.concentration
        return 1 - (_log_bessel(k, 1) - _log_bessel(k, 0)).exp()


__all__ = ["VonMises"]
