"""torch.distributions.kumaraswamy: like beta, with a closed form."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, Parameter
from .location import EULER, Uniform
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform, Transform


def _moment(a: Tensor, b: Tensor, n: int) -> Tensor:
    first = 1 + n / a
    logs = mindtorch.lgamma(first) + mindtorch.lgamma(b) - mindtorch.lgamma(first + b)
    return b * mindtorch.exp(logs)


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution of two concentrations."""

    arg_constraints = {
        "concentration1": constraints.positive, "concentration0": constraints.positive,
    }  # fmt: skip
    support: constraints.Constraint = constraints.unit_interval
    has_rsample = True
    concentration1: Tensor
    concentration0: Tensor

    def __init__(
        self, concentration1: Parameter, concentration0: Parameter,
        validate_args: bool | None = None,
    ):  # fmt: skip
        self._broadcast(concentration1=concentration1, concentration0=concentration0)
        ones = mindtorch.ones_like(self.concentration0)
        base = Uniform(0 * ones, ones, validate_args=validate_args)
        transforms: list[Transform] = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> Kumaraswamy:
        shape = tuple(batch_shape)
        both = self.concentration1.expand(shape), self.concentration0.expand(shape)
        return type(self)(*both, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return _moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return mindtorch.where((a < 1) | (b < 1), math.nan, log_mode).exp()

    @property
    def variance(self) -> Tensor:
        return _moment(self.concentration1, self.concentration0, 2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        t1 = 1 - self.concentration1.reciprocal()
        t0 = 1 - self.concentration0.reciprocal()
        harmonic = mindtorch.digamma(self.concentration0 + 1) + EULER
        value = t0 + t1 * harmonic - mindtorch.log(self.concentration1)
        return value - mindtorch.log(self.concentration0)


__all__ = ["Kumaraswamy"]
