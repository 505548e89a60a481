"""torch.distributions.von_mises: angles around a circle."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, Parameter


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
        k = self.concentration
        norm = math.log(2 * math.pi) + mindtorch.special.i0e(k).log() + k
        return k * mindtorch.cos(value - self.loc) - norm

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

    @property
    def variance(self) -> Tensor:
        """The circular variance."""
        k = self.concentration
        return 1 - mindtorch.special.i1e(k) / mindtorch.special.i0e(k)


__all__ = ["VonMises"]
