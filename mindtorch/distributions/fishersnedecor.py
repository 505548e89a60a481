"""torch.distributions.fishersnedecor: ratios of chi-squared draws."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, Parameter, infinitesimal
from .gamma import Gamma


class FisherSnedecor(Distribution):
    """The F distribution with `df1` and `df2` degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support: constraints.Constraint = constraints.positive
    has_rsample = True
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Parameter, df2: Parameter, validate_args: bool | None = None):
        shape = self._broadcast(df1=df1, df2=df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = mindtorch.where(self.df2 <= 2, math.nan, self.df2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        value = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        value[self.df1 <= 2] = math.nan
        return value

    @property
    def variance(self) -> Tensor:
        df2 = mindtorch.where(self.df2 <= 4, math.nan, self.df2)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        above = self._gamma1.rsample(sample_shape)
        below = self._gamma2.rsample(sample_shape)
        tiny = infinitesimal(below)
        below = below.clamp(min=tiny)
        return (above / below).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        norm = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        power = half1 * ratio.log() + (half1 - 1) * mindtorch.log(value)
        return norm + power - (half1 + half2) * mindtorch.log1p(ratio * value)


__all__ = ["FisherSnedecor"]
