"""torch.distributions.lowrank_multivariate_normal: normal vectors of few factors."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import Distribution, lazy_property
from .multivariate_normal import half_log_det, mahalanobis


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of covariance `cov_factor @ cov_factor.mT + diag(cov_diag)`.

    Determinants and lengths are of the small matrix `I + W.mT D^-1 W` (Woodbury's identity).
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support: constraints.Constraint = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch"
                " dimensions"
            )
        if tuple(cov_factor.shape[-2:-1]) != tuple(event):
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if tuple(cov_diag.shape[-1:]) != tuple(event):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        batches = loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        try:
            shape = tuple(mindtorch.broadcast_shapes(*batches))
        except RuntimeError:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape},"
                f" cov_diag {cov_diag.shape}"
            ) from None
        columns = loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
        locs, self.cov_factor, diagonals = mindtorch.broadcast_tensors(*columns)
        self.loc, self.cov_diag = locs[..., 0], diagonals[..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        scaled = cov_factor.mT / cov_diag.unsqueeze(-2)
        rank = cov_factor.shape[-1]
        eye = mindtorch.eye(rank, dtype=cov_factor.dtype, device=cov_factor.device)
        self._capacitance_tril = mindtorch.linalg.cholesky(scaled @ cov_factor + eye)
        super().__init__(shape, event, validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: Distribution | None = None
    ) -> LowRankMultivariateNormal:
        expanded = self._copy_for_expand(_instance)
        shape = tuple(batch_shape)
        expanded.loc = self.loc.expand((*shape, *self._event_shape))
        expanded.cov_diag = self.cov_diag.expand((*shape, *self._event_shape))
        expanded.cov_factor = self.cov_factor.expand((*shape, -1, -1))
        for name in ("scale_tril", "covariance_matrix", "precision_matrix"):
            expanded.__dict__.pop(name, None)
        expanded._batch_shape = Size(batch_shape)
        return expanded

    def _square(self) -> Shape:
        return (*self._batch_shape, *self._event_shape, *self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        value = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return value.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        factor = self._unbroadcasted_cov_factor
        value = factor @ factor.mT + mindtorch.diag_embed(self._unbroadcasted_cov_diag)
        return value.expand(self._square())

    @lazy_property
    def scale_tril(self) -> Tensor:
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        factor = self._unbroadcasted_cov_factor / root
        eye = mindtorch.eye(self._event_shape[0], dtype=root.dtype, device=root.device)
        lower = root * mindtorch.linalg.cholesky(factor @ factor.mT + eye)
        return lower.expand(self._square())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        diag = self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / diag.unsqueeze(-2)
        part = mindtorch.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        value = mindtorch.diag_embed(diag.reciprocal()) - part.mT @ part
        return value.expand(self._square())

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        dtype, device = self.loc.dtype, self.loc.device
        rank = self.cov_factor.shape[-1]
        factors = mindtorch.randn((*shape[:-1], rank), dtype=dtype, device=device)
        noise = mindtorch.randn(shape, dtype=dtype, device=device)
        moved = mindtorch.matmul(self._unbroadcasted_cov_factor, factors.unsqueeze(-1)).squeeze(-1)
        return self.loc + moved + self._unbroadcasted_cov_diag.sqrt() * noise

    def _log_det(self) -> Tensor:
        return 2 * half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        length = self._mahalanobis(value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self._log_det() + length)

    def _mahalanobis(self, x: Tensor) -> Tensor:
        """Squared lengths of `x` under the precision, of the batch's shape."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        inside = mindtorch.matmul(scaled, x.unsqueeze(-1)).squeeze(-1)
        length = (x.pow(2) / self._unbroadcasted_cov_diag).sum(-1)
        return length - mahalanobis(self._capacitance_tril, inside)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        value = 0.5 * (n * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return value if not self._batch_shape else value.expand(tuple(self._batch_shape))


__all__ = ["LowRankMultivariateNormal"]
