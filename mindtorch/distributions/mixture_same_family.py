"""torch.distributions.mixture_same_family: one of several, chosen at random."""

from __future__ import annotations

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .discrete import Categorical
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """Component i of `component_distribution` with `mixture_distribution`'s probability of i.

    The component's last batch dimension counts the components.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution,
        validate_args: bool | None = None,
    ):  # fmt: skip
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of"
                " torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of"
                " torch.distributions.Distribution"
            )
        batch_shape, shape = (
            mixture_distribution.batch_shape,
            component_distribution.batch_shape[:-1],
        )
        for a, b in zip(reversed(batch_shape), reversed(shape), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({batch_shape}) is not compatible with"
                    f" `component_distribution.batch_shape`({shape})"
                )
        count, parts = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != parts:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal"
                f" `component_distribution.batch_shape[-1]` ({parts})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = count
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(shape, event, validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: Distribution | None = None
    ) -> MixtureSameFamily:
        shape = tuple(batch_shape)
        expanded = self._instance_for_expand(_instance)
        MixtureSameFamily.__init__(
            expanded,
            self._mixture_distribution.expand(shape),
            self._component_distribution.expand((*shape, self._num_component)),
            validate_args=False,
        )
        expanded.__dict__["_validate_args"] = self._validate_args
        return expanded

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    def _weights(self) -> Tensor:
        return self._to_events(self._mixture_distribution.probs)

    def _to_events(self, value: Tensor) -> Tensor:
        return value.reshape(value.shape + (1,) * self._event_ndims)

    def _over_components(self, value: Tensor) -> Tensor:
        return (self._weights() * value).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._over_components(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        parts = self._component_distribution
        within = self._over_components(parts.variance)
        return within + self._over_components((parts.mean - self._one_more(self.mean)).pow(2.0))

    def _one_more(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - self._event_ndims)

    def cdf(self, x: Tensor) -> Tensor:
        parts = self._component_distribution.cdf(self._one_more(x))
        return (parts * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        component_log_prob = self._component_distribution.log_prob(self._one_more(x))
        weights = mindtorch.log_softmax(self._mixture_distribution.logits, dim=-1)
        return mindtorch.logsumexp(component_log_prob + weights, dim=-1)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with mindtorch.no_grad():
            at = len(tuple(sample_shape)) + len(self._batch_shape)
            component_index = self._mixture_distribution.sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            place = component_index.reshape(component_index.shape + (1,) * (self._event_ndims + 1))
            place = place.expand((*component_index.shape, 1, *self._event_shape))
            return mindtorch.gather(values, at, place).squeeze(at)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self._mixture_distribution},\n"
            f"  {self._component_distribution})"
        )


__all__ = ["MixtureSameFamily"]
