"""torch.distributions.generalized_pareto: what exceeds a high threshold."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, Parameter


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution of `loc`, `scale` and shape `concentration`."""

    arg_constraints = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }  # fmt: skip
    has_rsample = True
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(
        self, loc: Parameter, scale: Parameter, concentration: Parameter,
        validate_args: bool | None = None,
    ):  # fmt: skip
        shape = self._broadcast(loc=loc, scale=scale, concentration=concentration)
        super().__init__(shape, validate_args=validate_args)

    def _near_zero(self) -> Tensor:
        return mindtorch.isclose(self.concentration, mindtorch.tensor(0.0).to(self.concentration))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = mindtorch.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        flat = self._near_zero()
        shape = mindtorch.where(flat, mindtorch.ones_like(self.concentration), self.concentration)
        power = 1 / shape + mindtorch.ones_like(z)
        bent = mindtorch.where(power == 0, power, power * mindtorch.log1p(shape * z))
        return -self.scale.log() - mindtorch.where(flat, z, bent)

    def log_survival_function(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        flat = self._near_zero()
        shape = mindtorch.where(flat, mindtorch.ones_like(self.concentration), self.concentration)
        return mindtorch.where(flat, -y, -mindtorch.log1p(shape * y) / shape)

    def log_cdf(self, value: Tensor) -> Tensor:
        return mindtorch.log1p(-mindtorch.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return mindtorch.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        rest = mindtorch.log1p(-value)
        flat = self._near_zero()
        shape = mindtorch.where(flat, mindtorch.ones_like(self.concentration), self.concentration)
        bent = self.loc + self.scale / shape * mindtorch.expm1(-shape * rest)
        return mindtorch.where(flat, self.loc - self.scale * rest, bent)

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        shape = mindtorch.where(finite, self.concentration, 0.5)
        return mindtorch.where(finite, self.loc + self.scale / (1 - shape), math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        shape = mindtorch.where(finite, self.concentration, 0.25)
        value = self.scale**2 / ((1 - shape) ** 2 * (1 - 2 * shape))
        return mindtorch.where(finite, value, math.nan)

    def entropy(self) -> Tensor:
        return (self.scale.log() + self.concentration + 1).broadcast_to(self._batch_shape)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        high = self.loc - self.scale / self.concentration
        return constraints.interval(
            self.loc, mindtorch.where(self.concentration < 0, high, math.inf)
        )


__all__ = ["GeneralizedPareto"]
