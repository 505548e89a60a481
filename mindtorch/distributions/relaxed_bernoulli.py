"""Owns RelaxedBernoulli: a coin between 0 and 1, sharper at low temperatures.

Maddison, Mnih, Teh, "The Concrete Distribution" (2017), appendix B.
"""

from __future__ import annotations

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .discrete import Bernoulli
from .distribution import Distribution, Parameter, clamp_probs


class RelaxedBernoulli(Distribution):
    """sigmoid((logits + logistic noise) / temperature)."""

    arg_constraints = {
        "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    support: constraints.Constraint = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Parameter, probs: Parameter | None = None,
        logits: Parameter | None = None, validate_args: bool | None = None,
    ):  # fmt: skip
        coin = Bernoulli(probs, logits)
        self.temperature, self.logits, self.probs = temperature, coin.logits, coin.probs
        super().__init__(coin.batch_shape, validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(mindtorch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))
        noise = u.log() - (-u).log1p()
        return mindtorch.sigmoid((self.logits + noise) / self.temperature)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        clamped = clamp_probs(value)
        odds = clamped.log() - (-clamped).log1p()
        difference = self.logits - odds * self.temperature
        density = mindtorch.log(mindtorch.as_tensor(self.temperature)) + difference
        density = density - 2 * mindtorch.log1p(mindtorch.exp(difference))
        return density - clamped.log() - (-clamped).log1p()
