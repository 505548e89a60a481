"""torch.distributions.inverse_gamma: reciprocals of gamma draws."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Parameter
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform


class InverseGamma(TransformedDistribution):
    """1 / x, where x is a gamma draw of shape `concentration` and a rate."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support: constraints.Constraint = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(
        self, concentration: Parameter, rate: Parameter, validate_args: bool | None = None
    ):
        base = Gamma(concentration, rate, validate_args=validate_args)
        reciprocal = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, reciprocal, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        result = self.rate / (self.concentration - 1)
        return mindtorch.where(self.concentration > 1, result, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        result = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return mindtorch.where(self.concentration > 2, result, math.inf)

    def entropy(self) -> Tensor:
        return (
            self.concentration
            + self.rate.log()
            + self.concentration.lgamma()
            - (1 + self.concentration) * self.concentration.digamma()
        )


__all__ = ["InverseGamma"]
