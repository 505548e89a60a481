"""torch.distributions.half_cauchy: absolute values of Cauchy numbers."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.tensor import Tensor
from .half_normal import Half
from .location import Cauchy


class HalfCauchy(Half):
    """|x|, where x is a Cauchy number around 0 of a scale: no mean, no variance."""

    base_dist: Cauchy
    _whole = Cauchy

    @property
    def mean(self) -> Tensor:
        return mindtorch.full(self._extended_shape(), math.inf, dtype=self.scale.dtype,
                              device=self.scale.device)  # fmt: skip

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = mindtorch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return super().log_prob(value)


__all__ = ["HalfCauchy"]
