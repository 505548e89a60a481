"""torch.distributions.multivariate_normal: normal vectors."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, lazy_property

_cholesky = mindtorch.linalg.cholesky
_solve = mindtorch.linalg.solve_triangular


def mahalanobis(lower: Tensor, x: Tensor) -> Tensor:
    """Squared lengths of `x` `[…, n]` in the metric of covariances `lower @ lower.mT`."""
    n, batch = x.shape[-1], lower.shape[:-2]
    shape = mindtorch.broadcast_shapes(batch, x.shape[:-1])
    if tuple(x.shape[x.dim() - 1 - len(batch) : -1]) == tuple(batch):  # one solve of all of x
        lower = lower.reshape(-1, n, n)
        columns = x.reshape(-1, lower.shape[0], n).permute(1, 2, 0)
        return _solve(lower, columns, upper=False).pow(2).sum(-2).t().reshape(x.shape[:-1])
    lower = lower.expand((*shape, n, n))
    return _solve(lower, x.expand((*shape, n)).unsqueeze(-1), upper=False).pow(2).sum((-2, -1))


def half_log_det(lower: Tensor) -> Tensor:
    """log of the diagonal's product: half the logarithm of the covariance's determinant."""
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _cholesky_of_inverse(matrix: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of positive definite matrices."""
    flipped = _cholesky(mindtorch.flip(matrix, (-2, -1)))
    upper = mindtorch.flip(flipped, (-2, -1)).mT
    eye = mindtorch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return _solve(upper, eye.expand(upper.shape), upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors of mean `loc` and one of covariance, precision or Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support: constraints.Constraint = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        names = ("covariance_matrix", "scale_tril", "precision_matrix")
        matrices = dict(zip(names, (covariance_matrix, scale_tril, precision_matrix), strict=True))
        arguments = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
        if len(arguments) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be"
                " specified."
            )
        ((name, matrix),) = arguments
        if matrix.dim() < 2:
            raise ValueError(
                f"{name}{' matrix' * (name == 'scale_tril')} must be at least two-dimensional, with"
                " optional leading batch dimensions"
            )
        shape = tuple(mindtorch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        self.__dict__[name] = matrix.expand((*shape, -1, -1))
        self.loc: Tensor = loc.expand((*shape, -1))
        super().__init__(shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = _cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _cholesky_of_inverse(matrix)

    def expand(
        self, batch_shape: Shape, _instance: Distribution | None = None
    ) -> MultivariateNormal:
        shape = tuple(batch_shape)
        expanded = self._copy_for_expand(_instance)
        expanded.loc = self.loc.expand((*shape, *self._event_shape))
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                expanded.__dict__[name] = self.__dict__[name].expand((*shape, -1, -1))
        expanded._batch_shape = Size(batch_shape)
        return expanded

    def _square(self) -> Shape:
        return (*self._batch_shape, *self._event_shape, *self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._unbroadcasted_scale_tril.expand(self._square())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        lower = self._unbroadcasted_scale_tril
        return (lower @ lower.mT).expand(self._square())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return mindtorch.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._square())

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = mindtorch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        moved = mindtorch.matmul(self._unbroadcasted_scale_tril, noise.unsqueeze(-1)).squeeze(-1)
        return self.loc + moved

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        lower = self._unbroadcasted_scale_tril
        length = mahalanobis(lower, value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + length) - half_log_det(lower)

    def entropy(self) -> Tensor:
        half = half_log_det(self._unbroadcasted_scale_tril)
        value = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + half
        return value if not self._batch_shape else value.expand(tuple(self._batch_shape))


__all__ = ["MultivariateNormal"]
