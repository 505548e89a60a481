"""torch.distributions.kl: how far one distribution is from another, by closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import mindtorch

from .._tensor.tensor import Tensor
from ._transforms.base import sum_rightmost
from .distribution import Distribution, ExponentialFamily
from .independent import Independent
from .transformed_distribution import TransformedDistribution

# Pairs of classes; the two arguments of a divergence are instances of them.
Divergence = Callable[[Any, Any], Tensor]
DivergenceT = TypeVar("DivergenceT", bound=Divergence)
_KL_REGISTRY: dict[tuple[type[Distribution], type[Distribution]], Divergence] = {}
_KL_CACHE: dict[tuple[type[Distribution], type[Distribution]], Divergence] = {}


def register_kl(
    type_p: type[Distribution], type_q: type[Distribution]
) -> Callable[[DivergenceT], DivergenceT]:
    """Decorate the divergence of two classes, or of bases of them; TypeError for what is none."""
    for kind in (type_p, type_q):
        issubclass(kind, object)  # TypeError for what is no class

    def decorator(function: DivergenceT) -> DivergenceT:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_CACHE.clear()
        return function

    return decorator


def _distance(kind: type, base: type) -> int:
    return kind.__mro__.index(base)


def _nearest(p: type[Distribution], q: type[Distribution]) -> Divergence:
    """The registered pair nearest to two classes by inheritance; ties go to the first's."""
    fitting = [(a, b) for a, b in _KL_REGISTRY if issubclass(p, a) and issubclass(q, b)]
    if not fitting:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__name__} and q type {q.__name__}"
        )
    return _KL_REGISTRY[
        min(fitting, key=lambda pair: (_distance(p, pair[0]), _distance(q, pair[1])))
    ]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), of the batch's shape; NotImplementedError for pairs without a closed form."""
    kinds = type(p), type(q)
    function = _KL_CACHE.get(kinds)
    if function is None:
        function = _KL_CACHE[kinds] = _nearest(*kinds)
    return function(p, q)


@register_kl(ExponentialFamily, ExponentialFamily)
def _by_bregman(p: Any, q: Any) -> Tensor:
    """Of two members of one exponential family: the Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot"
            "                             be computed using Bregman divergences"  # sic
        )
    p_params = [v.detach().requires_grad_() for v in p._natural_params]
    normalizer = p._log_normalizer(*p_params)
    gradients = mindtorch.autograd.grad(normalizer.sum(), p_params, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for p_param, other, gradient in zip(p_params, q._natural_params, gradients, strict=True):
        term = (other - p_param) * gradient
        result = result - sum_rightmost(term, len(q.event_shape))
    return result


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    result = kl_divergence(p.base_dist, q.base_dist)
    return sum_rightmost(result, p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


def unbounded(value: Tensor, where: Tensor) -> Tensor:
    """`value`, made infinite where a draw of the first may fall outside the second's support."""
    value[where] = float("inf")
    return value


def infinite(value: Tensor) -> Tensor:
    """An infinite divergence, of a parameter's shape."""
    return mindtorch.full_like(value, float("inf"))


__all__ = ["kl_divergence", "register_kl"]
