"""torch.distributions.dirichlet: points of a simplex."""

from __future__ import annotations

import mindtorch

from .._autograd.function import Function, FunctionNode, once_differentiable
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import ExponentialFamily


class _Dirichlet(Function):
    """Draws that pass gradients to their concentrations; torch prints its name."""

    @staticmethod
    def forward(ctx: FunctionNode, concentration: Tensor) -> Tensor:
        draws: Tensor = mindtorch._sample_dirichlet(concentration)
        ctx.save_for_backward(draws, concentration)
        return draws

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionNode, grad: Tensor) -> Tensor:
        draws, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        by_concentration: Tensor = mindtorch._dirichlet_grad(draws, concentration, total)
        return by_concentration * (grad - (draws * grad).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of concentrations along the last dimension."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support: constraints.Constraint = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        concentration = self.concentration.expand(self._extended_shape(sample_shape))
        draws = _Dirichlet.apply(concentration)
        assert isinstance(draws, Tensor)
        return draws

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (
            mindtorch.xlogy(self.concentration - 1.0, value).sum(-1)
            + mindtorch.lgamma(self.concentration.sum(-1))
            - mindtorch.lgamma(self.concentration).sum(-1)
        )

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        flat = (self.concentration < 1).all(dim=-1)
        place = mode[flat].argmax(dim=-1)
        mode[flat] = mindtorch.nn.functional.one_hot(place, above.shape[-1]).to(mode)
        return mode

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        k, total = self.concentration.size(-1), self.concentration.sum(-1)
        return (
            mindtorch.lgamma(self.concentration).sum(-1)
            - mindtorch.lgamma(total)
            - (k - total) * mindtorch.digamma(total)
            - ((self.concentration - 1.0) * mindtorch.digamma(self.concentration)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return x.lgamma().sum(-1) - mindtorch.lgamma(x.sum(-1))


__all__ = ["Dirichlet"]
