"""Rows of matrix inverses and decompositions, by numpy's LAPACK on cpu.

Gradients follow the identities in Giles, "Collected matrix derivative results" (2008), written in
ops so that they can be differentiated again. Real matrices only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype as dt
from .._geometry import Geometry
from .rules import broadcast
from .samples import Arg, Sample
from .spec import aten, op


class LinAlgError(RuntimeError):
    """A matrix has no inverse or decomposition; the message names the operation."""


def square(name: str) -> Any:
    """Rule of ops on batches of square matrices: the result has the input's shape."""

    def infer(self: Geometry, *_: Any) -> Geometry:
        check_square(name, self)
        return self.fresh(self.shape, None, column_major(self.shape))

    return infer


def check_square(name: str, g: Geometry) -> None:
    """RuntimeError in torch's words unless `g` holds floating square matrices."""
    if g.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if g.shape[-1] != g.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {g.shape[-2]} by"
            f" {g.shape[-1]} matrices"
        )
    if g.dtype.category < dt.FLOAT or g.dtype in (dt.float16, dt.bfloat16):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {g.dtype.legacy}"
        )


def column_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of batches of matrices as LAPACK leaves them: columns are contiguous."""
    rows, columns = shape[-2], shape[-1]
    strides = [1, max(rows, 1)]
    step = max(rows, 1) * max(columns, 1)
    for n in reversed(shape[:-2]):
        strides.insert(0, step)
        step *= max(n, 1)
    return tuple(strides)


def _guarded(name: str, kernel: Any) -> Any:
    def run(*args: Any) -> Any:
        try:
            return kernel(*args)
        except np.linalg.LinAlgError:
            raise LinAlgError(
                f"{name}: (Batch element 0): The diagonal element is zero, the inversion could not"
                " be completed because the input matrix is singular."
                if name != "linalg.cholesky"
                else "linalg.cholesky: (Batch element 0): The factorization could not be completed"
                " because the input is not positive-definite."
            ) from None

    return run


def _t(t: Any) -> Any:
    return aten.transpose(t, -2, -1)


def _matrices(*more: Any) -> Any:
    values = ((4.0, 1.0, 0.5), (1.0, 3.0, -0.5), (0.5, -0.5, 2.0))
    return lambda: [Sample((Arg((3, 3), d, values=values), *more)) for d in ("float32", "float64")]


op(
    "linalg_inv(Tensor A) -> Tensor",
    infer=square("linalg.inv"),
    cpu=_guarded("linalg.inv", np.linalg.inv),
    grad={
        "A": lambda grad, result: aten.neg(aten.matmul(aten.matmul(_t(result), grad), _t(result)))
    },
    samples=_matrices(),
    tolerance="composite",
    surface="none",
    oracle=lambda torch: torch.linalg.inv,
)


def _scalars(self: Geometry) -> Geometry:
    check_square("linalg.det", self)
    return self.fresh(self.shape[:-2])


def _spread(t: Any) -> Any:
    return aten.unsqueeze(aten.unsqueeze(t, -1), -1)


op(
    "linalg_det(Tensor A) -> Tensor",
    infer=_scalars,
    cpu=np.linalg.det,
    grad={
        "A": lambda grad, A, result: aten.mul(
            _spread(aten.mul(grad, result)), _t(aten.linalg_inv(A))
        )
    },
    samples=_matrices(),
    tolerance="composite",
    surface="none",
    oracle=lambda torch: torch.linalg.det,
)
op(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    infer=lambda A: (_scalars(A), _scalars(A)),
    cpu=lambda A: tuple(np.linalg.slogdet(A)),
    grad={
        "A": lambda grad_logabsdet, A: (
            None
            if grad_logabsdet is None
            else aten.mul(_spread(grad_logabsdet), _t(aten.linalg_inv(A)))
        )
    },
    samples=_matrices(),
    tolerance="composite",
    surface="none",
    oracle=lambda torch: torch.linalg.slogdet,
)


def _solve_infer(A: Geometry, B: Geometry) -> Geometry:
    check_square("linalg.solve", A)
    vector = _is_vector(A, B)
    rows = B.shape[-1] if vector else B.shape[-2]
    if rows != A.shape[-1]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation AX = B"
            f" ({A.shape[-2]}x{A.shape[-1]} and {rows}x{1 if vector else B.shape[-1]})"
        )
    if vector:
        return A.fresh((*A.shape[:-2], rows))
    shape = (*broadcast(A.shape[:-2], B.shape[:-2]), *B.shape[-2:])
    return A.fresh(shape, None, column_major(shape))


def _is_vector(A: Any, B: Any) -> bool:
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


def _solve(A: Any, B: Any) -> Any:
    return np.linalg.solve(A, B[..., None])[..., 0] if _is_vector(A, B) else np.linalg.solve(A, B)


def _solve_grad_a(grad: Any, A: Any, B: Any, result: Any) -> Any:
    found = aten.linalg_solve(_t(A), grad)
    if _is_vector(A, B):
        found, result = aten.unsqueeze(found, -1), aten.unsqueeze(result, -1)
    return aten.neg(aten.matmul(found, _t(result)))


op(
    "linalg_solve(Tensor A, Tensor B) -> Tensor",
    infer=_solve_infer,
    cpu=_guarded("linalg.solve", _solve),
    grad={
        "A": _solve_grad_a,
        "B": lambda grad, A: aten.linalg_solve(_t(A), grad),
    },
    samples=lambda: [
        *_matrices(Arg((3, 2), "float64"))()[1:],
        *_matrices(Arg((3,), "float32"))()[:1],
    ],
    tolerance="composite",
    surface="none",
    oracle=lambda torch: torch.linalg.solve,
)


def _cholesky_grad(grad: Any, result: Any) -> Any:
    lower = aten.tril(aten.matmul(_t(result), grad))
    middle = aten.sub(lower, aten.mul(aten.diag_embed(aten.diagonal(lower, 0, -2, -1)), 0.5))
    inverse = aten.linalg_inv(result)
    found = aten.matmul(aten.matmul(_t(inverse), middle), inverse)
    return aten.mul(aten.add(found, _t(found)), 0.5)


op(
    "linalg_cholesky(Tensor self) -> Tensor",
    infer=square("linalg.cholesky"),
    cpu=_guarded("linalg.cholesky", np.linalg.cholesky),
    grad={"self": _cholesky_grad},
    # Differences of one element leave the symmetric matrices: gradients are tested with torch's.
    samples=lambda: [Sample((Arg((2, 2), values=((2.0, 0.5), (0.5, 1.0)), grad=False),))],
    tolerance="composite",
    surface="none",
    oracle=lambda torch: torch.linalg.cholesky,
)


def _eigh_infer(A: Geometry, UPLO: str = "L") -> Any:
    check_square("linalg.eigh", A)
    return A.fresh(A.shape[:-1]), A.fresh(A.shape, None, column_major(A.shape))


def _gaps(values: Any) -> Any:
    """`v_j - v_i` with ones on the diagonal."""
    gaps = aten.sub(aten.unsqueeze(values, -2), aten.unsqueeze(values, -1))
    return aten.add(gaps, aten.diag_embed(aten.ones_like(values)))


def _eigh_grad(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    by_value, by_vector = grads
    inner = aten.div(aten.matmul(_t(eigenvectors), by_vector), _gaps(eigenvalues))
    off = aten.sub(inner, aten.diag_embed(aten.diagonal(inner, 0, -2, -1)))
    inner = aten.add(off, aten.diag_embed(by_value))
    found = aten.matmul(aten.matmul(eigenvectors, inner), _t(eigenvectors))
    return aten.mul(aten.add(found, _t(found)), 0.5)


op(
    "linalg_eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
    infer=_eigh_infer,
    cpu=lambda A, UPLO: tuple(np.linalg.eigh(A, UPLO)),
    grad={"A": _eigh_grad},
    tolerance="composite",
    surface="none",
)


def _svd_infer(A: Geometry, full_matrices: bool = True) -> Any:
    m, n = A.shape[-2], A.shape[-1]
    k = min(m, n)
    batch = tuple(A.shape[:-2])
    left = (*batch, m, m if full_matrices else k)
    right = (*batch, n if full_matrices else k, n)
    return A.fresh(left, None, column_major(left)), A.fresh((*batch, k)), A.fresh(right)


def _svd_grad(grads: Any, U: Any, S: Any, Vh: Any, A_geom: Geometry) -> Any:
    k = S.shape[-1]
    by_u, by_s, by_vh = grads
    u, vh = aten.narrow(U, -1, 0, k), aten.narrow(Vh, -2, 0, k)
    by_u, by_vh = aten.narrow(by_u, -1, 0, k), aten.narrow(by_vh, -2, 0, k)
    v, by_v = _t(vh), _t(by_vh)
    gaps = _gaps(aten.mul(S, S))
    gaps = aten.add(
        aten.sub(gaps, aten.diag_embed(aten.diagonal(gaps, 0, -2, -1))),
        aten.diag_embed(aten.ones_like(S)),
    )
    row, column = aten.unsqueeze(S, -2), aten.unsqueeze(S, -1)
    left = aten.div(_skew(aten.matmul(_t(u), by_u)), gaps)
    right = aten.div(_skew(aten.matmul(vh, by_v)), gaps)
    inner = aten.add(aten.mul(left, row), aten.mul(column, right))
    inner = aten.add(inner, aten.diag_embed(by_s))
    found = aten.matmul(u, inner)
    if A_geom.shape[-2] > k:
        found = aten.add(found, aten.div(_rest(u, by_u), row))
    found = aten.matmul(found, vh)
    if A_geom.shape[-1] > k:
        found = aten.add(found, aten.matmul(u, aten.div(_t(_rest(v, by_v)), column)))
    return found


def _skew(t: Any) -> Any:
    return aten.sub(t, _t(t))


def _rest(basis: Any, grad: Any) -> Any:
    """The part of `grad` outside the span of `basis`."""
    return aten.sub(grad, aten.matmul(basis, aten.matmul(_t(basis), grad)))


op(
    "linalg_svd(Tensor A, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)",
    infer=_svd_infer,
    cpu=lambda A, full_matrices: tuple(np.linalg.svd(A, full_matrices)),
    grad={"A": _svd_grad},
    tolerance="composite",
    surface="none",
)


def _qr_infer(A: Geometry, mode: str = "reduced") -> Any:
    m, n = A.shape[-2], A.shape[-1]
    k = m if mode == "complete" else min(m, n)
    batch = tuple(A.shape[:-2])
    return A.fresh((*batch, m, k), None, column_major((*batch, m, k))), A.fresh((*batch, k, n))


def _qr_grad(grads: Any, Q: Any, R: Any) -> Any:
    by_q, by_r = grads
    inner = aten.sub(aten.matmul(R, _t(by_r)), aten.matmul(_t(by_q), Q))
    inner = aten.add(aten.tril(inner), _t(aten.tril(inner, -1)))
    found = aten.add(by_q, aten.matmul(Q, inner))
    return aten.matmul(found, _t(aten.linalg_inv(R)))


op(
    "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
    infer=_qr_infer,
    cpu=lambda A, mode: tuple(np.linalg.qr(A, mode)),
    grad={"A": _qr_grad},
    tolerance="composite",
    surface="none",
)
