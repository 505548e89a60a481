"""Rows of svd_lowrank and pca_lowrank: the leading singular values by random projection.

Halko, Martinsson, Tropp, "Finding structure with randomness", SIAM Review 53 (2011), algorithm 5.1
with the range finder 4.4.
"""

from __future__ import annotations

from ...words import *


def _sizes(matrix: Tensor) -> tuple[int, int]:
    """Rows and columns; torch's ValueError for fewer than two dims."""
    if matrix.ndim < 2:
        raise ValueError(f"not enough values to unpack (expected 2, got {matrix.ndim})")
    return matrix.shape[-2], matrix.shape[-1]


def _basis(matrix: Tensor, q: int, rounds: int) -> Tensor:
    """Orthonormal columns [m, q] that nearly span the range of a matrix [..., m, n]."""
    draws = aten.randn(matrix.shape[-1], q, dtype=matrix.dtype, device=matrix.device)
    basis = aten.linalg_qr(aten.matmul(matrix, draws))[0]
    for _ in range(rounds):
        other = aten.linalg_qr(aten.matmul(matrix.mH, basis))[0]
        basis = aten.linalg_qr(aten.matmul(matrix, other))[0]
    return basis


@composite(
    "svd_lowrank(Tensor A, int? q=6, int? niter=2, Tensor? M=None) -> (Tensor, Tensor, Tensor)",
    samples=calls((Arg((5, 3)), 2), (Arg((2, 3, 4), "float64"), 3, 1, Arg((2, 3, 4), "float64"))),
    tolerance="random",
)
def svd_lowrank(
    A: Tensor,
    q: int | None = 6,
    niter: int | None = 2,
    M: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """U [..., m, q], S [..., q], V [..., n, q] of A - M, nearly its leading singular triplets."""
    count, rounds = 6 if q is None else q, 2 if niter is None else niter
    matrix = A if M is None else A - M
    m, n = _sizes(matrix)
    if m < n:
        u, s, v = svd_lowrank(matrix.mH, count, rounds)
        return v, s, u
    basis = _basis(matrix, min(count, n), rounds)
    small = aten.matmul(basis.mH, matrix)
    u, s, vh = aten.linalg_svd(small, full_matrices=False)
    return aten.matmul(basis, u), s, vh.mH.contiguous()


@composite(
    "pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2) -> (Tensor, Tensor, Tensor)",
    samples=calls((Arg((5, 3)),), (Arg((4, 3), "float64"), 2, False)),
    tolerance="random",
)
def pca_lowrank(
    A: Tensor,
    q: int | None = None,
    center: bool = True,
    niter: int = 2,
) -> tuple[Tensor, Tensor, Tensor]:
    """svd_lowrank of A less the mean of its rows; ValueError for a rank or count out of range."""
    m, n = _sizes(A)
    count = min(6, m, n) if q is None else q
    if not 0 <= count <= min(m, n):
        raise ValueError(
            f"q(={count}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, count, niter)
