"""torch.distributions.negative_binomial: successes before a number of failures."""

from __future__ import annotations

import mindtorch

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import (
    Distribution,
    Parameter,
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from .gamma import Gamma


class NegativeBinomial(Distribution):
    """Successes of probability `probs` before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support: constraints.Constraint = constraints.nonnegative_integer
    total_count: Tensor

    def __init__(
        self, total_count: Parameter, probs: Parameter | None = None,
        logits: Parameter | None = None, validate_args: bool | None = None,
    ):  # fmt: skip
        parameter = probs if logits is None else logits
        if parameter is None or (probs is not None and logits is not None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self.total_count, self._param = broadcast_all(total_count, parameter)
        self.total_count = self.total_count.type_as(self._param)
        self.__dict__["probs" if logits is None else "logits"] = self._param
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def _expanded(self) -> tuple[str, ...]:
        return ("probs", "logits", "_param", "total_count")

    def _events_of(self, name: str) -> int:
        return 0

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        return Size(self._param.size())

    @property
    def mean(self) -> Tensor:
        return self.total_count * mindtorch.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / mindtorch.sigmoid(-self.logits)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with mindtorch.no_grad():
            rate = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            draws: Tensor = mindtorch.poisson(rate.sample(sample_shape))
            return draws

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logs = mindtorch.nn.functional.logsigmoid
        likelihood = self.total_count * logs(-self.logits) + value * logs(self.logits)
        norm = (
            -mindtorch.lgamma(self.total_count + value)
            + mindtorch.lgamma(1.0 + value)
            + mindtorch.lgamma(self.total_count)
        )
        return likelihood - norm.masked_fill(self.total_count + value == 0.0, 0.0)


__all__ = ["NegativeBinomial"]
