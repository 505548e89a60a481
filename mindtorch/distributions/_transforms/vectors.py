"""Owns transforms of vectors and matrices: simplices, triangular and positive definite matrices.

Sources: the stick-breaking map and the map to correlation matrices are those of the Stan reference
manual (chapter on constraint transforms); Lewandowski, Kurowicka, Joe (2009).
"""

from __future__ import annotations

import math

import mindtorch

from ..._tensor.geometry import Size
from ..._tensor.tensor import Tensor
from ..._tensor.types import Shape
from .. import constraints
from ..constraints import Constraint
from ..distribution import tril_matrix_to_vec, vec_to_tril_matrix
from .base import Transform
from .elementwise import clipped_sigmoid

_pad = mindtorch.nn.functional.pad
_softplus = mindtorch.nn.functional.softplus


class _Plain(Transform):
    """A map without parameters: two of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = object.__hash__

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else type(self)(cache_size)


class SoftmaxTransform(_Plain):
    """From vectors to the simplex by exp and normalising: not one to one."""

    domain: Constraint = constraints.real_vector
    codomain: Constraint = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Shape) -> Shape:
        return _vector(shape)

    inverse_shape = forward_shape


def _ending(shape: Shape, cut: int, *last: int) -> Shape:
    """A shape with other last sizes; a Size stays one."""
    sizes = (*shape[:-cut], *last)
    return Size(sizes) if isinstance(shape, Size) else sizes


def _vector(shape: Shape, change: int = 0) -> Shape:
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return _ending(shape, 1, shape[-1] + change)


class StickBreakingTransform(_Plain):
    """From n numbers to a simplex of n + 1: each takes its share of what is left."""

    domain: Constraint = constraints.real_vector
    codomain: Constraint = constraints.simplex
    bijective = True

    @staticmethod
    def _left(x: Tensor) -> Tensor:
        """log of how many parts are still to come, for each place."""
        n = x.shape[-1]
        return mindtorch.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        share = clipped_sigmoid(x - self._left(x))
        rest = (1 - share).cumprod(-1)
        return _pad(share, (0, 1), value=1.0) * _pad(rest, (1, 0), value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        y_head = y[..., :-1]
        rest = (1 - y_head.cumsum(-1)).clamp(min=mindtorch.finfo(y.dtype).tiny)
        return y_head.log() - rest.log() + self._left(y_head)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        z = x - self._left(x)
        return (-z + mindtorch.nn.functional.logsigmoid(z) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        return _vector(shape, 1)

    def inverse_shape(self, shape: Shape) -> Shape:
        return _vector(shape, -1)


class LowerCholeskyTransform(_Plain):
    """From matrices to lower triangular ones with a positive diagonal, by exp on the diagonal."""

    domain: Constraint = constraints.independent(constraints.real, 2)
    codomain: Constraint = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """From matrices to positive definite ones: the square of the triangular map."""

    domain: Constraint = constraints.independent(constraints.real, 2)
    codomain: Constraint = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(mindtorch.linalg.cholesky(y))


def _order(count: int) -> int:
    """n of a strict triangle with `count` places; ValueError where there is none."""
    n = round((1 + math.sqrt(1 + 8 * count)) / 2)
    if n * (n - 1) // 2 != count:
        raise ValueError("Input is not a flattened lower-diagonal number")
    return n


class CorrCholeskyTransform(_Plain):
    """From n (n-1) / 2 numbers to the Cholesky factor of a correlation matrix, by tanh."""

    domain: Constraint = constraints.real_vector
    codomain: Constraint = constraints.corr_cholesky
    bijective = True
    __eq__ = Transform.__eq__  # by identity, as torch's
    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        eps = mindtorch.finfo(x.dtype).eps
        partial = x.tanh().clamp(min=-1 + eps, max=1 - eps)
        return _rows_from_partial(vec_to_tril_matrix(partial, -1))

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        eps = mindtorch.finfo(y.dtype).eps
        before = _pad(left[..., :-1], (1, 0), value=1.0).clamp(min=eps)
        partial = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(before, -1).sqrt()
        return ((partial).log1p() - (-partial).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # Of each row: the roots of what its earlier places left, and the slopes of tanh.
        left = 1 - (y * y).cumsum(-1)
        n = y.shape[-1]
        rows, columns = mindtorch.tril_indices(n, n, -2, device=y.device)
        volume = -2 * (x + _softplus(-2 * x) - math.log(2.0)).sum(-1)
        return volume + 0.5 * left[..., rows, columns].log().sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = _order(shape[-1])
        return _ending(shape, 1, n, n)

    def inverse_shape(self, shape: Shape) -> Shape:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return _ending(shape, 2, n * (n - 1) // 2)


def _rows_from_partial(partial: Tensor) -> Tensor:
    """Rows of unit length from canonical partial correlations below the diagonal."""
    left = (1 - partial * partial).sqrt().cumprod(-1)
    eye = mindtorch.eye(partial.shape[-1], dtype=partial.dtype, device=partial.device)
    return (partial + eye) * _pad(left[..., :-1], (1, 0), value=1.0)
