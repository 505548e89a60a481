"""torch.distributions.continuous_bernoulli: a Bernoulli whose values fill [0, 1]."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import (
    ExponentialFamily,
    Parameter,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
    shape_of,
)


class ContinuousBernoulli(ExponentialFamily):
    """Density proportional to probs^x (1 - probs)^(1 - x) over [0, 1].

    Loaiza-Ganem, Cunningham, "The continuous Bernoulli" (2019). Where `probs` lies within `lims`,
    around 1/2, Taylor's series stand for expressions that cancel there.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: constraints.Constraint = constraints.unit_interval
    has_rsample = True
    _param: Tensor

    def __init__(
        self, probs: Parameter | None = None, logits: Parameter | None = None,
        lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None,
    ):  # fmt: skip
        parameter = probs if logits is None else logits
        if parameter is None or (probs is not None and logits is not None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        (self._param,) = broadcast_all(parameter)
        self.__dict__["probs" if logits is None else "logits"] = self._param
        if probs is not None:
            # As in torch, whatever was asked for: only the default leaves it to the clamp below.
            inside = validate_args is None or constraints.unit_interval.check(self.probs).all()
            if not bool(inside):
                raise ValueError("The parameter probs has invalid values")
            self.__dict__["probs"] = clamp_probs(self._param)
        self._lims = lims
        super().__init__(
            shape_of(parameter if isinstance(parameter, int | float) else self._param),
            validate_args=validate_args,
        )

    @property
    def _expanded(self) -> tuple[str, ...]:
        return ("probs", "logits", "_param")

    def _events_of(self, name: str) -> int:
        return 0

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def param_shape(self) -> Size:
        return Size(self._param.size())

    def _far(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        """`probs`, with those near 1/2 put where nothing cancels."""
        return mindtorch.where(self._far(), self.probs, self._lims[0])

    def _log_constant(self) -> Tensor:
        p = self._cut()
        low = mindtorch.where(p <= 0.5, p, mindtorch.zeros_like(p))
        high = mindtorch.where(p >= 0.5, p, mindtorch.ones_like(p))
        top = mindtorch.log(mindtorch.abs(mindtorch.log1p(-p) - mindtorch.log(p)))
        bottom = mindtorch.where(
            p <= 0.5, mindtorch.log1p(-2.0 * low), mindtorch.log(2.0 * high - 1.0)
        )
        x = mindtorch.pow(self.probs - 0.5, 2)
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return mindtorch.where(self._far(), top - bottom, series)

    @property
    def mean(self) -> Tensor:
        p = self._cut()
        value = p / (2.0 * p - 1.0) + 1.0 / (mindtorch.log1p(-p) - mindtorch.log(p))
        x = self.probs - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return mindtorch.where(self._far(), value, series)

    @property
    def stddev(self) -> Tensor:
        return mindtorch.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        p = self._cut()
        value = p * (p - 1.0) / mindtorch.pow(1.0 - 2.0 * p, 2)
        value = value + 1.0 / mindtorch.pow(mindtorch.log1p(-p) - mindtorch.log(p), 2)
        x = mindtorch.pow(self.probs - 0.5, 2)
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return mindtorch.where(self._far(), value, series)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with mindtorch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(mindtorch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        loss = mindtorch.nn.functional.binary_cross_entropy_with_logits
        return -loss(logits, value, reduction="none") + self._log_constant()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut()
        value_far = (mindtorch.pow(p, value) * mindtorch.pow(1.0 - p, 1.0 - value) + p - 1.0) / (
            2.0 * p - 1.0
        )
        inside = mindtorch.where(self._far(), value_far, value)
        inside = mindtorch.where(value <= 0.0, mindtorch.zeros_like(value), inside)
        return mindtorch.where(value >= 1.0, mindtorch.ones_like(value), inside)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut()
        far = (mindtorch.log1p(-p + value * (2.0 * p - 1.0)) - mindtorch.log1p(-p)) / (
            mindtorch.log(p) - mindtorch.log1p(-p)
        )
        return mindtorch.where(self._far(), far, value)

    def entropy(self) -> Tensor:
        log0, log1 = mindtorch.log1p(-self.probs), mindtorch.log(self.probs)
        return self.mean * (log0 - log1) - self._log_constant() - log0

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        far = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = mindtorch.where(far, x, (self._lims[0] - 0.5) * mindtorch.ones_like(x))
        value = mindtorch.log(mindtorch.abs(mindtorch.special.expm1(cut))) - mindtorch.log(
            mindtorch.abs(cut)
        )
        series = 0.5 * x + mindtorch.pow(x, 2) / 24.0 - mindtorch.pow(x, 4) / 2880.0
        return mindtorch.where(far, value, series)


__all__ = ["ContinuousBernoulli"]
