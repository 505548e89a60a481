"""torch.distributions.logistic_normal: a normal vector, broken into a simplex."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Parameter
from .independent import Independent
from .location import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """Stick-breaking of a normal vector: points of a simplex with one more place."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support: constraints.Constraint = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Parameter, scale: Parameter, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def _normal(self) -> Normal:
        base = self.base_dist
        normal = base.base_dist if isinstance(base, Independent) else base
        assert isinstance(normal, Normal)
        return normal

    @property
    def loc(self) -> Tensor:
        return self._normal().loc

    @property
    def scale(self) -> Tensor:
        return self._normal().scale


__all__ = ["LogisticNormal"]
