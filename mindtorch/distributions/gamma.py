"""torch.distributions.gamma: sums of exponential waits."""

from __future__ import annotations

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import ExponentialFamily, Parameter, infinitesimal


class Gamma(ExponentialFamily):
    """The gamma distribution of shape `concentration` and a rate."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support: constraints.Constraint = constraints.nonnegative
    has_rsample = True
    concentration: Tensor
    rate: Tensor

    def __init__(
        self, concentration: Parameter, rate: Parameter, validate_args: bool | None = None
    ):
        shape = self._broadcast(concentration=concentration, rate=rate)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        draws: Tensor = mindtorch._standard_gamma(self.concentration.expand(shape))
        value = draws / self.rate.expand(shape)
        value.detach().clamp_(min=infinitesimal(value))
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = mindtorch.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            mindtorch.xlogy(self.concentration, self.rate)
            + mindtorch.xlogy(self.concentration - 1, value)
            - self.rate * value
            - mindtorch.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return mindtorch.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        return (
            self.concentration
            - mindtorch.log(self.rate)
            + mindtorch.lgamma(self.concentration)
            + (1.0 - self.concentration) * mindtorch.digamma(self.concentration)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return mindtorch.lgamma(x + 1) + (x + 1) * mindtorch.log(-y.reciprocal())


__all__ = ["Gamma"]
