"""torch.distributions.transformed_distribution: what a distribution becomes through maps."""

from __future__ import annotations

from collections.abc import Sequence

import mindtorch

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from ._transforms.base import sum_rightmost
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform


class TransformedDistribution(Distribution):
    """The distribution of `t(x)`, where x is drawn from `base_distribution`."""

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self, base_distribution: Distribution, transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ):  # fmt: skip
        if isinstance(transforms, Transform):
            transforms = [transforms]
        if not isinstance(transforms, list) or not all(
            isinstance(t, Transform) for t in transforms
        ):
            raise ValueError(
                f"transforms must be a Transform or list, but was {transforms}"
                if not isinstance(transforms, list)
                else "transforms must be a Transform or a list of Transforms"
            )
        self.transforms = transforms
        composed = ComposeTransform(self.transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(shape) < composed.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least"
                f" {composed.domain.event_dim}, but got {shape}."
            )
        forward = composed.forward_shape(shape)
        expanded = composed.inverse_shape(forward)
        if tuple(base_distribution.batch_shape + base_distribution.event_shape) != tuple(expanded):
            cut = len(expanded) - len(base_distribution.event_shape)
            base_distribution = base_distribution.expand(expanded[:cut])
        extra = composed.domain.event_dim - len(base_distribution.event_shape)
        if extra > 0:
            base_distribution = Independent(base_distribution, extra)
        self.base_dist = base_distribution
        event_dim = composed.codomain.event_dim + max(
            len(base_distribution.event_shape) - composed.domain.event_dim, 0
        )
        cut = len(forward) - event_dim
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: Distribution | None = None
    ) -> TransformedDistribution:
        expanded = self._copy_for_expand(_instance)
        composed = ComposeTransform(self.transforms)
        forward = Size(batch_shape) + self._event_shape
        base = composed.inverse_shape(forward)
        cut = len(base) - len(self.base_dist.event_shape)
        expanded.base_dist = self.base_dist.expand(base[:cut])
        expanded._batch_shape = Size(batch_shape)
        return expanded

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self._event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with mindtorch.no_grad():
            value = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                value = transform(value)
            return value

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        value = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dims, y = len(self._event_shape), value
        total: Tensor | float = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            volume = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(volume, dims - transform.domain.event_dim)
            y = x
        base_log_prob = sum_rightmost(
            self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape)
        )
        return base_log_prob + total

    def _monotone(self, value: Tensor) -> Tensor:
        """A cumulative probability of the base as one of the result, or the other way round."""
        sign: Tensor | int = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        value = self.base_dist.icdf(self._monotone(value))
        for transform in self.transforms:
            value = transform(value)
        return value


__all__ = ["TransformedDistribution"]
