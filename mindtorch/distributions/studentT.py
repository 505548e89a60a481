"""torch.distributions.studentT: heavy tails: a normal number over the root of a chi-squared one."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution, Parameter


class StudentT(Distribution):
    """Student's t with `df` degrees of freedom, moved by `loc` and stretched by `scale`."""

    arg_constraints = {
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive,
    }  # fmt: skip
    support: constraints.Constraint = constraints.real
    has_rsample = True
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(
        self, df: Parameter, loc: Parameter = 0.0, scale: Parameter = 1.0,
        validate_args: bool | None = None,
    ):  # fmt: skip
        shape = self._broadcast(df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        mean = self.loc.clone(memory_format=mindtorch.contiguous_format)
        mean[self.df <= 1] = math.nan
        return mean

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = self.df.clone(memory_format=mindtorch.contiguous_format)
        finite = self.df > 2
        df = self.df[finite]
        variance[finite] = self.scale[finite].pow(2) * df / (df - 2)
        variance[(self.df <= 2) & (self.df > 1)] = math.inf
        variance[self.df <= 1] = math.nan
        return variance

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = mindtorch.randn(shape, dtype=self.df.dtype, device=self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * mindtorch.rsqrt(z / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        norm = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + mindtorch.lgamma(0.5 * self.df)
            - mindtorch.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * mindtorch.log1p(y**2.0 / self.df) - norm

    def entropy(self) -> Tensor:
        df = self.df
        beta = mindtorch.lgamma(0.5 * df) + math.lgamma(0.5) - mindtorch.lgamma(0.5 * (df + 1))
        spread = mindtorch.digamma(0.5 * (df + 1)) - mindtorch.digamma(0.5 * df)
        return self.scale.log() + 0.5 * (df + 1) * spread + 0.5 * df.log() + beta


__all__ = ["StudentT"]
