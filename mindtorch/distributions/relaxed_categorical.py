"""torch.distributions.relaxed_categorical: one-hot vectors between the corners."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .discrete import Categorical
from .distribution import Distribution, Parameter, broadcast_all, clamp_probs
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed one-hot draw at a temperature.

    Maddison, Mnih, Teh, "The Concrete Distribution" (2017), appendix C.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support: constraints.Constraint = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Parameter, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):  # fmt: skip
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def param_shape(self) -> Size:
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        logits = self.logits
        u = clamp_probs(mindtorch.rand(shape, dtype=logits.dtype, device=logits.device))
        scores = (logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self._event_shape[0]
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        temperature = mindtorch.as_tensor(self.temperature, dtype=logits.dtype,
                                          device=logits.device)  # fmt: skip
        constant = math.lgamma(k) + temperature.log().mul(k - 1)
        score = logits - value.mul(temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + constant


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of a simplex near its corners at a low temperature."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support: constraints.Constraint = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self, temperature: Parameter, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):  # fmt: skip
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Parameter:
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs


__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]
