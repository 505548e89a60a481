"""torch.distributions.half_normal: absolute values of normal numbers."""

from __future__ import annotations

import math
from typing import Any

import mindtorch

from .._compat.method_names import written_out
from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Parameter
from .location import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


@written_out("__init__")
class Half(TransformedDistribution):
    """|x|, where x lies around 0 by a scale."""

    arg_constraints = {"scale": constraints.positive}
    support: constraints.Constraint = constraints.nonnegative
    has_rsample = True
    base_dist: Any
    _whole: Any

    def __init__(self, scale: Parameter, validate_args: bool | None = None):
        base = self._whole(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return mindtorch.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        density = self.base_dist.log_prob(value) + math.log(2)
        return mindtorch.where(value >= 0, density, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """|x|, where x is normal of mean 0 and standard deviation `scale`."""

    base_dist: Normal
    _whole = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)


__all__ = ["HalfNormal"]
