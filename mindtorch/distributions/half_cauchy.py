"""torch.distributions.half_cauchy: absolute values of Cauchy numbers."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Parameter
from .location import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class HalfCauchy(TransformedDistribution):
    """|x|, where x is a Cauchy number around 0 of a scale: no mean, no variance."""

    arg_constraints = {"scale": constraints.positive}
    support: constraints.Constraint = constraints.nonnegative
    has_rsample = True
    base_dist: Cauchy

    def __init__(self, scale: Parameter, validate_args: bool | None = None):
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return mindtorch.full(self._extended_shape(), math.inf, dtype=self.scale.dtype,
                              device=self.scale.device)  # fmt: skip

    @property
    def mode(self) -> Tensor:
        return mindtorch.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = mindtorch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        density = self.base_dist.log_prob(value) + math.log(2)
        return mindtorch.where(value >= 0, density, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


__all__ = ["HalfCauchy"]
