"""torch.distributions.relaxed_bernoulli: a coin between 0 and 1, sharper at low temperatures.

Maddison, Mnih, Teh, "The Concrete Distribution" (2017), appendix B.
"""

from __future__ import annotations

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .discrete import _Binary
from .distribution import Parameter, broadcast_all, clamp_probs
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform


class LogitRelaxedBernoulli(_Binary):
    """The log-odds of a relaxed coin: (logits + logistic noise) / temperature."""

    support: constraints.Constraint = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Parameter, probs: Parameter | None = None,
        logits: Parameter | None = None, validate_args: bool | None = None,
    ):  # fmt: skip
        self.temperature = temperature
        super().__init__(self._take(probs, logits), validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(mindtorch.rand(shape, dtype=probs.dtype, device=probs.device))
        odds = u.log() - (-u).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        density = mindtorch.log(mindtorch.as_tensor(self.temperature)) + difference
        return density - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """sigmoid of a relaxed coin's log-odds."""

    arg_constraints = {
        "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    support: constraints.Constraint = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self, temperature: Parameter, probs: Parameter | None = None,
        logits: Parameter | None = None, validate_args: bool | None = None,
    ):  # fmt: skip
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Parameter:
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs


__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]
