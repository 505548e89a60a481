"""Owns torch.linalg: norms, inverses, products and decompositions of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

from ._loading import load
from ._tensor import Tensor
from .ops.decompositions import LinAlgError
from .ops.spec import aten

load()


class slogdet_result(NamedTuple):  # noqa: N801 - torch's name
    sign: Tensor
    logabsdet: Tensor


class eigh_result(NamedTuple):  # noqa: N801 - torch's name
    eigenvalues: Tensor
    eigenvectors: Tensor


class svd_result(NamedTuple):  # noqa: N801 - torch's name
    U: Tensor
    S: Tensor
    Vh: Tensor


class qr_result(NamedTuple):  # noqa: N801 - torch's name
    Q: Tensor
    R: Tensor


for _kind in (slogdet_result, eigh_result, svd_result, qr_result):
    _kind.__name__ = "linalg_" + _kind.__name__.removesuffix("_result")


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The `ord`-norm of the elements along `dim`, of all by default."""
    return aten.linalg_vector_norm(x, ord, dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """A norm of the matrices in two dimensions: "fro", "nuc", inf, -inf, 1, -1, 2, -2."""
    A = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return vector_norm(A, 2, dim, keepdim)
    rows, columns = (d % A.ndim for d in dim)
    found: Tensor
    if ord in ("nuc", 2, -2):
        values = svdvals(A.movedim((rows, columns), (-2, -1)))
        found = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord > 0 else values.amin(-1)
        low, high = sorted((rows, columns))
        return aten.unsqueeze(aten.unsqueeze(found, low), high) if keepdim else found
    summed, other = (columns, rows) if abs(ord) == float("inf") else (rows, columns)
    totals = A.abs().sum(summed, keepdim=True)
    found = totals.amax(other, keepdim=True) if ord > 0 else totals.amin(other, keepdim=True)
    return found if keepdim else aten.squeeze(found, (rows, columns))


def norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """A vector or matrix norm, by how many dimensions are given."""
    two = isinstance(dim, tuple | list) and len(dim) == 2
    if ord is not None and (isinstance(ord, str) or two or (dim is None and A.ndim == 2)):
        return matrix_norm(A, ord, dim or (-2, -1), keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def inv(A: Tensor) -> Tensor:
    """The inverse of each square matrix; LinAlgError for a singular one."""
    return aten.linalg_inv(A)  # type: ignore[no-any-return]


def det(A: Tensor) -> Tensor:
    """The determinant of each square matrix."""
    return aten.linalg_det(A)  # type: ignore[no-any-return]


def slogdet(A: Tensor) -> slogdet_result:
    """Sign and logarithm of the absolute value of each determinant."""
    return slogdet_result(*aten.linalg_slogdet(A))


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A X = B (X A = B when not `left`); LinAlgError for a singular A."""
    if left:
        return aten.linalg_solve(A, B)  # type: ignore[no-any-return]
    return aten.linalg_solve(A.mT, B.mT).mT  # type: ignore[no-any-return]


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L with A = L Lᵀ; LinAlgError for an A that is not positive-definite."""
    found: Tensor = aten.linalg_cholesky(A)
    return found.mT if upper else found


def eigh(A: Tensor, UPLO: str = "L") -> eigh_result:
    """Eigenvalues, rising, and eigenvectors of symmetric matrices."""
    return eigh_result(*aten.linalg_eigh(A, UPLO))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues, rising, of symmetric matrices."""
    return eigh(A, UPLO).eigenvalues


def svd(A: Tensor, full_matrices: bool = True, *, driver: Any = None) -> svd_result:
    """U, S, Vh with A = U diag(S) Vh."""
    return svd_result(*aten.linalg_svd(A, full_matrices))


def svdvals(A: Tensor, *, driver: Any = None) -> Tensor:
    """Singular values, falling."""
    return svd(A, False).S


def qr(A: Tensor, mode: str = "reduced") -> qr_result:
    """Q, R with A = Q R."""
    return qr_result(*aten.linalg_qr(A, mode))


def pinv(A: Tensor, rcond: float | None = None) -> Tensor:
    """The Moore-Penrose inverse, by SVD."""
    u, s, vh = svd(A, False)
    limit = s.amax(-1, keepdim=True) * (rcond or max(A.shape[-2:]) * _epsilon(A))
    inverse = aten.where(s > limit, 1 / s, aten.zeros_like(s))
    found: Tensor = (vh.mT * inverse.unsqueeze(-2)) @ u.mT
    return found


def _epsilon(A: Tensor) -> float:
    from ._dtype import finfo

    return float(getattr(finfo(A.dtype), "eps"))  # noqa: B009 - finfo sets its fields by name


def matrix_power(A: Tensor, n: int) -> Tensor:
    """A to the `n`-th power; of its inverse for a negative one."""
    if n < 0:
        return matrix_power(inv(A), -n)
    result: Tensor = aten.diag_embed(aten.ones_like(A.select(-1, 0)))
    while n:
        if n & 1:
            result = result @ A
        A, n = A @ A, n >> 1
    return result


def matrix_rank(A: Tensor, *, rtol: float | None = None) -> Tensor:
    """How many singular values are not negligible."""
    s = svdvals(A)
    limit = s.amax(-1, keepdim=True) * (rtol or max(A.shape[-2:]) * _epsilon(A))
    found: Tensor = (s > limit).sum(-1)
    return found


def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices, from the left."""
    result: Tensor = tensors[0]
    for t in tensors[1:]:
        result = result @ t
    return result


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product."""
    return aten.matmul(a, b)  # type: ignore[no-any-return]


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals of matrices."""
    return aten.diagonal(A, offset, dim1, dim2)  # type: ignore[no-any-return]


__all__ = [
    "LinAlgError", "cholesky", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet",
    "solve", "svd", "svdvals", "vector_norm",
]  # fmt: skip
