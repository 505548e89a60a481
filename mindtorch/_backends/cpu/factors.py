"""Owns which factorizations run in torch's order on cpu, so that digits and signs are torch's.

LU factors, solutions by them and eigenvectors of Hermitian matrices are loops of `kernels/
factors.cpp`; singular values and other eigenvectors are LAPACK's in the matrix's own dtype (numpy
computes float32 in float64), with the choices by which MKL's signs differ from OpenBLAS's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._tensor.dtype import COMPLEX, float32, float64
from ..._tensor.geometry import Geometry
from ..._tensor.types import Array
from ...ops.rows.matrix.decompositions import each_matrix, is_vector, lapack, singular
from ...ops.rows.matrix.triangular import check_info
from ...ops.spec import Op
from .ufuncs import universal

Kernel = Callable[..., Any]
Maker = Callable[[Op, Sequence[Any], Geometry], Kernel | None]
_FULL = (float32, float64)
_MOST_ROWS = 64  # of a matrix that the loops factor: they have no blocks
_LEAF = 25  # rows up to which LAPACK's syevd is steqr alone (ilaenv, "SMLSIZ")
_FEW_ROWS = 32  # of a wide matrix whose two sides are reflected in Python


def _small_square(a: Geometry, most: int = _MOST_ROWS) -> bool:
    return a.ndim >= 2 and a.shape[-1] == a.shape[-2] <= most


def _loop(name: str) -> Kernel:
    function = universal(name)
    assert function is not None  # no maker is asked in a tree that was not built
    return function


def _zeros_of(factors: Array) -> Array:
    """Which pivot is the first 0, from 1; 0: none is."""
    zero = np.diagonal(factors, 0, -2, -1) == 0
    return np.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(np.int32)


def _lu_factors(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    plain = op.kernels.cpu
    if not _small_square(out) or out.dtype not in _FULL or plain is None:
        return None

    def run(a: Array, pivot: bool, check_errors: bool) -> Any:
        if not pivot:
            return plain(a, pivot, check_errors)
        factors, pivots = _loop("lu_factors")(a)
        info = _zeros_of(factors)
        check_info("torch.linalg.lu_factor_ex", info, check_errors)
        return factors, pivots, info

    return run


def _solved(name: str, a: Array, b: Array) -> Array:
    factors, pivots = _loop("lu_factors")(a)
    zeros = _zeros_of(factors)
    if zeros.any():
        at = int(np.argmax(zeros.reshape(-1) != 0))
        raise singular(name, at if a.ndim > 2 else None, int(zeros.reshape(-1)[at]))
    return np.asarray(_loop("lu_solutions")(factors, pivots, b))


def _solve(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    if not _small_square(args[0]._geom) or out.dtype not in _FULL:
        return None

    def run(a: Array, b: Array) -> Array:
        if is_vector(a, b):
            return _solved("linalg.solve", a, b[..., None])[..., 0]
        return _solved("linalg.solve", a, b)

    return run


def _inverse(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    if not _small_square(out) or out.dtype not in _FULL:
        return None
    return lambda a: _solved("linalg.inv", a, np.eye(a.shape[-1], dtype=a.dtype))


def _signed(a: Array) -> tuple[Array, Array]:
    """The diagonal of U, and the sign of the exchanges of rows; of the transpose, as torch."""
    rows = a.swapaxes(-1, -2) if a.flags.c_contiguous else a
    factors, pivots = _loop("lu_factors")(rows)
    exchanges = np.count_nonzero(pivots != np.arange(1, a.shape[-1] + 1), axis=-1)
    return np.diagonal(factors, 0, -2, -1), np.where(exchanges % 2, -1, 1).astype(a.dtype)


def _det(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    if not _small_square(args[0]._geom) or out.dtype not in _FULL:
        return None

    def run(a: Array) -> Array:
        diagonal, sign = _signed(a)
        return np.asarray(sign * np.multiply.reduce(diagonal, -1))

    return run


def _slogdet(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    if not _small_square(args[0]._geom) or out.dtype not in _FULL:
        return None

    def run(a: Array) -> tuple[Array, Array]:
        diagonal, sign = _signed(a)
        signs = sign * np.multiply.reduce(np.sign(diagonal), -1)
        return np.asarray(signs), np.asarray(np.log(np.abs(diagonal)).sum(-1))

    return run


def _eigh(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    plain = op.kernels.cpu
    if plain is None or not _small_square(args[0]._geom, _LEAF):
        return None

    def run(a: Array, uplo: str) -> Any:
        if uplo.upper() == "L" and np.isfinite(a).all():
            values, vectors = _loop("hermitian_eigen")(a)
            if not np.isnan(values).any():
                return values, vectors
        return plain(a, uplo)

    return run


def _svd(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    plain = op.kernels.cpu
    small = args[0].numel() and min(args[0].shape[-2:]) <= _MOST_ROWS
    if out.dtype not in _FULL or plain is None or not small:
        return None

    def run(a: Array, full_matrices: bool, *driver: Any) -> Any:
        if not np.isfinite(a).all():
            return plain(a, full_matrices, *driver)
        return each_matrix(_svd_of_one, a, full_matrices)

    return run


def _svd_of_one(a: Array, full: bool) -> tuple[Array, ...]:
    """By the sides of a matrix as MKL: QR first from 3 : 2 on, and never LQ."""
    m, n = a.shape
    reference = min(m, n) * 11 // 6  # from where OpenBLAS's gesdd takes QR or LQ first
    if n < m < reference and m >= 3 * n // 2:
        factors, tau, _, _ = lapack("geqrf", a.dtype)(a)
        columns = np.zeros((m, m if full else n), a.dtype, order="F")
        columns[:, :n] = factors
        q = lapack("orgqr", a.dtype)(columns, tau)[0]
        u, s, vh = lapack("gesdd", a.dtype)(np.triu(factors[:n]))[:3]
        return np.hstack([q[:, :n] @ u, q[:, n:]]), s, vh
    if n >= reference and 1 < m < n and m <= _FEW_ROWS:
        return _svd_of_wide(a, full)
    result: tuple[Array, ...] = lapack("gesdd", a.dtype)(a, full_matrices=full)[:3]
    return result


def _reflect(x: Array) -> tuple[Array, Any]:
    """LAPACK's larfg: the vector and the factor of the reflection that leaves one element."""
    rest = np.linalg.norm(x[1:]).astype(x.dtype)
    v = x.copy()
    v[0] = 1
    if rest == 0:
        return v, x.dtype.type(0)
    beta = -np.copysign(np.hypot(x[0], rest), x[0])
    v[1:] /= x[0] - beta
    return v, (beta - x[0]) / beta


def _svd_of_wide(a: Array, full: bool) -> tuple[Array, ...]:
    """LAPACK's gebrd to a lower bidiagonal matrix, which bdsdc makes an upper one."""
    m, n = a.shape
    b, q, p = a.copy(), np.eye(m, dtype=a.dtype), np.eye(n, dtype=a.dtype)
    for i in range(m):
        v, tau = _reflect(b[i, i:])
        for matrix in (b, p):
            matrix[:, i:] -= tau * np.outer(matrix[:, i:] @ v, v)
        if i + 1 < m:
            v, tau = _reflect(b[i + 1 :, i])
            b[i + 1 :] -= tau * np.outer(v, v @ b[i + 1 :])
            q[:, i + 1 :] -= tau * np.outer(q[:, i + 1 :] @ v, v)
    upper = b[:, :m].copy()
    for i in range(m - 1):
        f, g = upper[i, i], upper[i + 1, i]
        if g:
            r = np.copysign(np.hypot(f, g), f if f else g)
            turn = np.array([[f / r, g / r], [-g / r, f / r]], a.dtype)
            upper[i : i + 2] = turn @ upper[i : i + 2]
            q[:, i : i + 2] = q[:, i : i + 2] @ turn.T
    u, s, vh = lapack("gesdd", a.dtype)(np.triu(np.tril(upper, 1)))[:3]
    lines = vh @ p[:, :m].T
    return q @ u, s, np.vstack([lines, p[:, m:].T]) if full else lines


def _eig(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    plain = op.kernels.cpu
    if args[0].dtype.category == COMPLEX or plain is None or not args[0].numel():
        return None

    def run(a: Array) -> Any:
        return each_matrix(_eig_of_one, a) if np.isfinite(a).all() else plain(a)

    return run


def _eig_of_one(a: Array) -> tuple[Array, Array]:
    kind = np.result_type(a.dtype, np.complex64)
    real, imag, _, lines, _ = lapack("geev", a.dtype)(a, compute_vl=0)
    vectors = lines.astype(kind)
    pairs = np.flatnonzero(imag > 0)
    for j in pairs:
        vectors[:, j] = lines[:, j] + 1j * lines[:, j + 1]
        vectors[:, j + 1] = vectors[:, j].conj()
    if a.dtype == np.float64 and len(pairs):  # MKL's sgeev rotates as LAPACK 3.10 does
        _turn_pairs(a, imag, vectors, pairs)
    return (real + 1j * imag).astype(kind), vectors


def _turn_pairs(a: Array, imag: Array, vectors: Array, pairs: Array) -> None:
    """Signs of complex vectors as LAPACK 3.9's lartg leaves them, before 3.10 changed it.

    The vector in the Schur basis says by which angle geev has rotated it: the first of its two
    elements in the block was real.
    """
    balanced, low, high, scale, _ = lapack("gebal", a.dtype)(a, scale=1, permute=1)
    if low or high < len(a) - 1:  # rows are exchanged: what `scale` says is no scale
        balanced, scale = a, np.ones(len(a), a.dtype)
    triangle, _, _, _, basis = lapack("gees", a.dtype)(lambda *_: None, balanced)[:5]
    for j in pairs:
        k = int(np.argmax(np.square(vectors[:, j].real) + np.square(vectors[:, j].imag)))
        inner = basis[:, j] @ (vectors[:, j] / scale)
        above, below = triangle[j, j + 1], triangle[j + 1, j]
        first = 1.0 if abs(above) >= abs(below) else -np.sign(below)
        before = vectors[k, j] * np.conj(inner) * first
        if vectors[k, j].real < 0 and abs(before.real) <= abs(before.imag):
            vectors[:, j] = 0 - vectors[:, j]
            vectors[:, j + 1] = vectors[:, j].conj()


MAKERS: dict[str, Maker] = {
    "_linalg_solve": _solve,
    "linalg_det": _det,
    "linalg_eig": _eig,
    "linalg_eigh": _eigh,
    "linalg_inv": _inverse,
    "linalg_lu_factor_ex": _lu_factors,
    "linalg_slogdet": _slogdet,
    "linalg_svd": _svd,
}
