"""torch.distributions.pareto: a power law above a scale."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, Parameter
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, Transform


class Pareto(TransformedDistribution):
    """The Pareto distribution of type 1: above `scale`, falling as x to -(alpha + 1)."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Parameter, alpha: Parameter, validate_args: bool | None = None):
        self._broadcast(scale=scale, alpha=alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms: list[Transform] = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    scale: Tensor
    alpha: Tensor

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> Pareto:
        shape = tuple(batch_shape)
        expanded = self._instance_for_expand(_instance)
        scale, alpha = self.scale.expand(shape), self.alpha.expand(shape)
        Pareto.__init__(expanded, scale, alpha, validate_args=False)
        expanded.__dict__["_validate_args"] = self._validate_args
        return expanded

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)
        return self.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


__all__ = ["Pareto"]
