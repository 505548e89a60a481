"""torch.distributions.poisson: counts of events at a rate."""

from __future__ import annotations

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import ExponentialFamily, Parameter, broadcast_all


class Poisson(ExponentialFamily):
    """The Poisson distribution of a rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support: constraints.Constraint = constraints.nonnegative_integer
    rate: Tensor

    def __init__(self, rate: Parameter, validate_args: bool | None = None):
        super().__init__(self._broadcast(rate=rate), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with mindtorch.no_grad():
            draws: Tensor = mindtorch.poisson(self.rate.expand(self._extended_shape(sample_shape)))
            return draws

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return mindtorch.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (mindtorch.log(self.rate),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return mindtorch.exp(x)


__all__ = ["Poisson"]
