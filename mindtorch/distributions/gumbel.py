"""torch.distributions.gumbel: the largest of many draws."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, Parameter
from .location import EULER, Uniform
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, Transform


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of `loc` and `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support: constraints.Constraint = constraints.real
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Parameter, scale: Parameter, validate_args: bool | None = None):
        self._broadcast(loc=loc, scale=scale)
        limits = mindtorch.finfo(self.loc.dtype)
        low, high = limits.tiny, 1 - limits.eps
        base = (
            Uniform(low, high, validate_args=validate_args)
            if all(isinstance(v, int | float) for v in (loc, scale))
            else Uniform(
                mindtorch.full_like(self.loc, low),
                mindtorch.full_like(self.loc, high),
                validate_args=validate_args,
            )
        )
        transforms: list[Transform] = [
            ExpTransform().inv,
            AffineTransform(0, -mindtorch.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> Gumbel:
        shape = tuple(batch_shape)
        expanded = self._instance_for_expand(_instance)
        Gumbel.__init__(
            expanded, self.loc.expand(shape), self.scale.expand(shape), validate_args=False
        )
        expanded.__dict__["_validate_args"] = self._validate_args
        return expanded

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


__all__ = ["Gumbel"]
