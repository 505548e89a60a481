"""torch.distributions.lkj_cholesky: correlation matrices."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .beta import Beta
from .distribution import Distribution, Parameter, broadcast_all


class LKJCholesky(Distribution):
    """Cholesky factors of random correlation matrices of order `dim`.

    Their density is a power `concentration - 1` of the determinant: Lewandowski, Kurowicka, Joe,
    "Generating random correlation matrices based on vines and extended onion method" (2009).
    """

    arg_constraints = {"concentration": constraints.positive}
    support: constraints.Constraint = constraints.corr_cholesky
    concentration: Tensor

    def __init__(self, dim: int, concentration: Parameter = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        shape = self.concentration.size()
        self._beta = self._rows()
        super().__init__(shape, (dim, dim), validate_args=validate_args)

    def _rows(self) -> Beta:
        """The squared length of each row before its diagonal."""
        c = self.concentration
        edge = c + 0.5 * (self.dim - 2)
        steps = mindtorch.arange(self.dim - 1, dtype=c.dtype, device=c.device)
        steps = mindtorch.cat([steps.new_zeros((1,)), steps])
        return Beta(steps + 0.5, edge.unsqueeze(-1) - 0.5 * steps)

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> LKJCholesky:
        expanded = self._copy_for_expand(_instance)
        expanded.concentration = self.concentration.expand(tuple(batch_shape))
        expanded._batch_shape = Size(batch_shape)
        expanded._beta = expanded._rows()
        return expanded

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with mindtorch.no_grad():
            squared = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = mindtorch.randn(
                self._extended_shape(sample_shape), dtype=squared.dtype, device=squared.device
            ).tril(-1)
            direction = normal / normal.norm(dim=-1, keepdim=True)
            direction[..., 0, :].fill_(0.0)
            lower = squared.sqrt() * direction
            tiny = mindtorch.finfo(lower.dtype).tiny
            diagonal = (1 - lower.pow(2).sum(-1)).clamp(min=tiny).sqrt()
            return lower + mindtorch.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = mindtorch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        density = (order * diagonal.log()).sum(-1)
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        norm = 0.5 * n * math.log(math.pi) + mindtorch.mvlgamma(alpha - 0.5, n)
        return density - (norm - mindtorch.lgamma(alpha) * n)


__all__ = ["LKJCholesky"]
