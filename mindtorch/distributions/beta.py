"""torch.distributions.beta: probabilities of probabilities."""

from __future__ import annotations

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .dirichlet import Dirichlet
from .distribution import ExponentialFamily, Parameter, broadcast_all


class Beta(ExponentialFamily):
    """The beta distribution of two concentrations."""

    arg_constraints = {
        "concentration1": constraints.positive, "concentration0": constraints.positive,
    }  # fmt: skip
    support: constraints.Constraint = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Parameter, concentration0: Parameter,
        validate_args: bool | None = None,
    ):  # fmt: skip
        both = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(mindtorch.stack(list(both), -1), validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(mindtorch.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return mindtorch.lgamma(x) + mindtorch.lgamma(y) - mindtorch.lgamma(x + y)


__all__ = ["Beta"]
