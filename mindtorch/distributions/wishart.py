"""torch.distributions.wishart: random covariances."""

from __future__ import annotations

import math
import warnings

import mindtorch

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution, ExponentialFamily, Parameter, infinitesimal, lazy_property
from .multivariate_normal import MultivariateNormal, half_log_det


class Wishart(ExponentialFamily):
    """Sums of `df` squared normal vectors: drawn by Bartlett's decomposition (1933)."""

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support: constraints.Constraint = constraints.positive_definite
    has_rsample = True

    def __init__(
        self, df: Parameter, covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):  # fmt: skip
        names = ("covariance_matrix", "precision_matrix", "scale_tril")
        matrices = dict(zip(names, (covariance_matrix, precision_matrix, scale_tril), strict=True))
        arguments = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
        if len(arguments) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be"
                " specified."
            )
        ((name, matrix),) = arguments
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch"
                " dimensions"
            )
        if not isinstance(df, Tensor):
            df = mindtorch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        freedom = df
        shape = tuple(mindtorch.broadcast_shapes(freedom.shape, matrix.shape[:-2]))
        event = matrix.shape[-2:]
        if bool(freedom.le(event[-1] - 1).any()):
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}."
            )
        self.df: Tensor = freedom.expand(shape)
        if bool(freedom.lt(event[-1]).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 <"
                " df < ndim.",
                stacklevel=2,
            )
        self.__dict__[name] = matrix.expand((*shape, -1, -1))
        self.arg_constraints = {**type(self).arg_constraints,
                                "df": constraints.greater_than(event[-1] - 1)}  # fmt: skip
        super().__init__(shape, event, validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = mindtorch.linalg.cholesky(matrix)
        else:
            inverse = MultivariateNormal(
                matrix.new_zeros(matrix.shape[:-1]), precision_matrix=matrix, validate_args=False
            )
            self._unbroadcasted_scale_tril = inverse._unbroadcasted_scale_tril
        steps = mindtorch.arange(event[-1], dtype=freedom.dtype, device=freedom.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps)

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> Wishart:
        shape = tuple(batch_shape)
        expanded = self._copy_for_expand(_instance)
        expanded.df = self.df.expand(shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                expanded.__dict__[name] = self.__dict__[name].expand((*shape, -1, -1))
        expanded._dist_chi2 = self._dist_chi2.expand((*shape, self._event_shape[-1]))
        expanded._batch_shape = Size(batch_shape)
        return expanded

    def _square(self) -> Shape:
        return (*self._batch_shape, *self._event_shape)

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

    def _df_matrix(self) -> Tensor:
        return self.df.reshape((*self._batch_shape, 1, 1))

    @property
    def mean(self) -> Tensor:
        return self._df_matrix() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._df_matrix() - self.covariance_matrix.shape[-1] - 1
        factor = mindtorch.where(factor <= 0, math.nan, factor)
        return factor * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._df_matrix() * (covariance.pow(2) + outer)

    def rsample(self, sample_shape: Shape = (), max_try_correction: int | None = None) -> Tensor:
        sample = self._bartlett(sample_shape)
        # torch draws anew where a draw passes its check, up to ten times where the new one fails.
        again = self._passes(sample)
        if not bool(again.any()):
            return sample
        warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            fresh = self._bartlett((int(again.sum()),))
            sample[again] = fresh
            again[again.clone()] = ~self._passes(fresh)
            if not bool(again.any()):
                break
        return sample

    def _passes(self, sample: Tensor) -> Tensor:
        checked: Tensor = self.support.check(sample)
        dims = [-1 - i for i in range(len(self._batch_shape))]
        return checked.amax(dims) if dims else checked

    def _bartlett(self, sample_shape: Shape) -> Tensor:
        """Draws by their lower roots: chi's on the diagonal, normal numbers below it."""
        least = infinitesimal(self._unbroadcasted_scale_tril)
        roots = self._dist_chi2.rsample(sample_shape).sqrt().clamp(min=least)
        p = self._event_shape[-1]
        noise = mindtorch.randn((*sample_shape, *self._batch_shape, p * (p - 1) // 2),
                                dtype=self.df.dtype, device=self.df.device)  # fmt: skip
        rows, columns = mindtorch.tril_indices(p, p, offset=-1, device=self.df.device)
        lower = roots.diag_embed(dim1=-2, dim2=-1)
        lower[..., rows, columns] = noise
        lower = self._unbroadcasted_scale_tril @ lower
        return lower @ lower.mT

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        df, p = self.df, self._event_shape[-1]
        scale_tril = self._unbroadcasted_scale_tril
        inside = mindtorch.cholesky_solve(value, scale_tril)
        return (
            -df * (p * math.log(2) / 2 + half_log_det(scale_tril))
            - mindtorch.mvlgamma(df / 2, p=p)
            + (df - p - 1) / 2 * mindtorch.linalg.slogdet(value).logabsdet
            - inside.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        p = self._event_shape[-1]
        halves = y + (p + 1) / 2
        size = -mindtorch.linalg.slogdet(-2 * x).logabsdet + math.log(2) * p
        return halves * size + mindtorch.mvlgamma(halves, p=p)

    def entropy(self) -> Tensor:
        df, p = self.df, self._event_shape[-1]
        halves = df.unsqueeze(-1) / 2 - 0.5 * mindtorch.arange(p, dtype=df.dtype, device=df.device)
        return (
            (p + 1) * (p * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + mindtorch.mvlgamma(df / 2, p=p)
            - (df - p - 1) / 2 * mindtorch.digamma(halves).sum(-1)
            + df * p / 2
        )


__all__ = ["Wishart"]
