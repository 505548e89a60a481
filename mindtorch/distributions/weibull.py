"""torch.distributions.weibull: waits whose rate rises or falls as a power."""

from __future__ import annotations

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, Parameter
from .exponential import Exponential
from .location import EULER
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform, Transform


class Weibull(TransformedDistribution):
    """The Weibull distribution of `scale` and shape `concentration`."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support: constraints.Constraint = constraints.positive

    def __init__(
        self, scale: Parameter, concentration: Parameter, validate_args: bool | None = None
    ):
        self._broadcast(scale=scale, concentration=concentration)
        self.concentration_reciprocal: Tensor = self.concentration.reciprocal()
        base = Exponential(mindtorch.ones_like(self.scale), validate_args=validate_args)
        transforms: list[Transform] = [
            PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale),
        ]  # fmt: skip
        super().__init__(base, transforms, validate_args=validate_args)

    scale: Tensor
    concentration: Tensor

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> Weibull:
        shape = tuple(batch_shape)
        expanded = self._instance_for_expand(_instance)
        scale, concentration = self.scale.expand(shape), self.concentration.expand(shape)
        Weibull.__init__(expanded, scale, concentration, validate_args=False)
        expanded.__dict__["_validate_args"] = self._validate_args
        return expanded

    @property
    def mean(self) -> Tensor:
        return self.scale * mindtorch.exp(mindtorch.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        second = mindtorch.exp(mindtorch.lgamma(1 + 2 * self.concentration_reciprocal))
        first = mindtorch.exp(2 * mindtorch.lgamma(1 + self.concentration_reciprocal))
        return self.scale.pow(2) * (second - first)

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return EULER * (1 - inverse) + mindtorch.log(self.scale * inverse) + 1


__all__ = ["Weibull"]
