"""torch.distributions.exponential: waits at a constant rate."""

from __future__ import annotations

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import ExponentialFamily, Parameter


class Exponential(ExponentialFamily):
    """The exponential distribution of a rate: its mean is 1 / rate."""

    arg_constraints = {"rate": constraints.positive}
    support: constraints.Constraint = constraints.nonnegative
    has_rsample = True
    rate: Tensor

    def __init__(self, rate: Parameter, validate_args: bool | None = None):
        super().__init__(self._broadcast(rate=rate), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return mindtorch.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - mindtorch.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - mindtorch.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return -mindtorch.log(-x)


__all__ = ["Exponential"]
