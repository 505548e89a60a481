"""Owns distributions with a location and a scale: Normal, Laplace, Cauchy, Uniform."""

from __future__ import annotations

import math
from collections.abc import Callable

import mindtorch

from .._compat.method_names import written_out
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, ExponentialFamily, Parameter, broadcast_all

# The constant of Euler and Mascheroni.
EULER = 0.57721566490153286060


@written_out("__init__")
class _LocScale(Distribution):
    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support: constraints.Constraint = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Parameter, scale: Parameter, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        numbers = all(isinstance(v, int | float) for v in (loc, scale))
        super().__init__(() if numbers else self.loc.shape, validate_args=validate_args)

    def _draws(self, kind: Callable[..., Tensor], sample_shape: Shape) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return kind(shape, dtype=self.loc.dtype, device=self.loc.device)

    def _standard(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale


class Normal(_LocScale, ExponentialFamily):
    """The normal distribution of mean `loc` and standard deviation `scale`."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with mindtorch.no_grad():
            return mindtorch.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.loc + self._draws(mindtorch.randn, sample_shape) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        spread = (value - self.loc) ** 2 / (2 * self.scale**2)
        return -spread - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        standard = (value - self.loc) * self.scale.reciprocal()
        return 0.5 * (1 + mindtorch.erf(standard / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * mindtorch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + mindtorch.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return -0.25 * x.pow(2) / y + 0.5 * mindtorch.log(-math.pi / y)


class Laplace(_LocScale):
    """The Laplace distribution."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        eps = mindtorch.finfo(self.loc.dtype).eps
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * mindtorch.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        return -mindtorch.log(2 * self.scale) - self._standard(value).abs()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * mindtorch.expm1(-z.abs())

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * mindtorch.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + mindtorch.log(2 * self.scale)


class Cauchy(_LocScale):
    """The Cauchy distribution: no mean, no variance."""

    @property
    def mean(self) -> Tensor:
        return mindtorch.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return mindtorch.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        draws = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + self.scale * draws

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return mindtorch.atan(self._standard(value)) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return mindtorch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Uniform(Distribution):
    """Uniform over [low, high)."""

    low: Tensor
    high: Tensor

    has_rsample = True

    arg_constraints = {
        "low": constraints.dependent,
        "high": constraints.dependent,
    }

    def __init__(self, low: Parameter, high: Parameter, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        # Each bound is held to the other.
        self.arg_constraints = {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }
        numbers = all(isinstance(v, int | float) for v in (low, high))
        super().__init__(() if numbers else self.low.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        draws = mindtorch.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + draws * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = (self.low <= value) & (self.high > value)
        return mindtorch.log(inside.to(self.low.dtype)) - mindtorch.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return mindtorch.log(self.high - self.low)


__all__ = ["Cauchy", "Laplace", "Normal", "Uniform"]
