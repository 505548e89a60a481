"""Rows of matrix inverses and decompositions, by numpy's LAPACK on cpu.

Gradients follow the identities in Giles, "Collected matrix derivative results" (2008), written in
ops so that they can be differentiated again. On npu by ACLNN's operators, and what they lack by
those: a solution by QR, eigenvalues of symmetric matrices by the SVD of a shifted one.
"""

from __future__ import annotations

from functools import cache
from typing import cast

from ...rules import broadcast
from ...spec import SHORT_FLOATS, in_dtypes
from ...words import *
from ..move.joining import upper_triangle

WORK = 64  # columns that LAPACK's blocked routines take at a time, at most
LARGE_MATRIX = 1 << 14  # elements from which numpy's detour by float64 costs more than calls


@cache
@cache
def lapack(name: str, dtype: np.dtype[Any]) -> Any:
    """LAPACK's routine, or one of BLAS, for matrices of a dtype."""
    from scipy.linalg import get_blas_funcs, get_lapack_funcs

    find = get_blas_funcs if name == "trsm" else get_lapack_funcs
    return find((name,), (np.empty(0, dtype),))[0]


def each_matrix(
    one: Callable[..., tuple[Array, ...]], a: Array, *rest: Any
) -> tuple[Array, ...]:  # fmt: skip
    """A function of one matrix, of each matrix of a batch `[*, m, n]` that is not empty."""
    if a.ndim == 2:
        return one(a, *rest)
    results = [one(matrix, *rest) for matrix in a.reshape(-1, *a.shape[-2:])]
    parts = (np.stack(part) for part in zip(*results, strict=True))
    return tuple(part.reshape(*a.shape[:-2], *part.shape[1:]) for part in parts)


class _LinAlgError(RuntimeError):
    """A matrix has no inverse or decomposition; the message names the operation."""

    __module__ = "mindtorch._C"  # torch's own names, in tracebacks


LinAlgError = _LinAlgError


def square(name: str) -> Callable[..., Any]:
    """Rule of ops on batches of square matrices: the result has the input's shape."""

    def infer(self: Geometry, *_: object) -> Geometry:
        check_square(name, self)
        return self.fresh(self.shape, None, column_major(self.shape))

    return infer


def check_shape(name: str, g: Tensor | Geometry) -> None:
    """RuntimeError in torch's words unless `g` holds square matrices."""
    if g.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if g.shape[-1] != g.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {g.shape[-2]} by"
            f" {g.shape[-1]} matrices"
        )


def check_square(name: str, g: Tensor | Geometry) -> None:
    """RuntimeError in torch's words unless `g` holds floating square matrices."""
    check_shape(name, g)
    _check_dtype(name, g)


def _check_dtype(name: str, g: Tensor | Geometry) -> None:
    if g.dtype in (dt.float16, dt.bfloat16):
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {g.dtype.legacy}")
    if g.dtype.category < dt.FLOAT:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {g.dtype.legacy}"
        )


def check_matrices(name: str, g: Geometry) -> None:
    """RuntimeError in torch's words unless `g` holds floating matrices."""
    if g.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    _check_dtype(name, g)


def column_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of batches of matrices as LAPACK leaves them: columns are contiguous."""
    rows, columns = shape[-2], shape[-1]
    strides = [1, max(rows, 1)]
    step = max(rows, 1) * max(columns, 1)
    for n in reversed(shape[:-2]):
        strides.insert(0, step)
        step *= max(n, 1)
    return tuple(strides)


def in_columns(t: Tensor) -> Tensor:
    """Matrices laid out as LAPACK leaves them."""
    return aten.transpose(aten.contiguous(aten.transpose(t, -1, -2)), -1, -2)


def _guarded(name: str, kernel: Any) -> Callable[..., Any]:
    def run(*args: Any) -> Array:
        try:
            return kernel(*args)
        except np.linalg.LinAlgError:
            raise LinAlgError(_failure(name, kernel, args)) from None

    return run


# What a device reports of a kernel that refused its numbers (aclError, CANN).
_KERNEL_FAILED = 507018


def waited(name: str, kernel: Callable[..., Array], result: Tensor, *args: Tensor) -> Tensor:
    """`result`; LinAlgError in torch's words where a device could not compute it. Waits for it."""
    if result.device.type in ("cpu", "meta") or not result.numel():
        return result
    try:
        aten.select(aten.reshape(result, (-1,)), 0, 0).item()
    except RuntimeError as error:
        if getattr(error, "code", None) != _KERNEL_FAILED:
            raise
        host = [arg.detach().cpu().numpy() for arg in args]
        raise LinAlgError(_failure(name, kernel, host)) from error
    return result


def _failure(name: str, kernel: Callable[..., Array], args: Sequence[Array]) -> str:
    """torch's words for the first matrix of a batch that a kernel fails on."""
    matrices = args[0].reshape((-1, *args[0].shape[-2:]))
    routine = _cholesky if name == "linalg.cholesky" else np.linalg.inv
    at = next((i for i, matrix in enumerate(matrices) if not _works(routine, matrix)), 0)
    batch = at if args[0].ndim > 2 else None
    if name == "linalg.cholesky":
        return str(singular(name, batch, minor_order(matrices[at])))
    return str(singular(name, batch, _zero_pivot(matrices[at]) if name == "linalg.inv" else 0))


def singular(name: str, at: int | None, pivot: int) -> LinAlgError:
    """torch's error of linalg.inv, linalg.cholesky or linalg.solve for a matrix, of a batch the one
    at `at`."""
    where = "" if at is None else f"(Batch element {at}): "
    if name == "linalg.cholesky":
        return LinAlgError(
            f"linalg.cholesky: {where}The factorization could not be completed because the input"
            f" is not positive-definite (the leading minor of order {pivot} is not"
            " positive-definite)."
        )
    if name.endswith("linalg.solve"):
        return LinAlgError(
            f"torch.linalg.solve: {where}The solver failed because the input matrix is singular."
        )
    return LinAlgError(
        f"{name}: {where}The diagonal element {pivot} is zero, the inversion"
        " could not be completed because the input matrix is singular."
    )


def _works(kernel: Callable[..., Array], matrix: Array) -> bool:
    try:
        kernel(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def minor_order(matrix: Array) -> int:
    """Of which order is the first leading minor that is not positive-definite; 0: there is none."""
    if _works(_cholesky, matrix):
        return 0
    sizes = range(1, matrix.shape[-1] + 1)
    works = (_works(_cholesky, matrix[:k, :k]) for k in sizes)
    return next((k for k, well in zip(sizes, works, strict=True) if not well), sizes[-1])


def singular_pivot(matrix: Array) -> int:
    """`_zero_pivot` of a matrix without an inverse; 0 of another."""
    return 0 if _works(np.linalg.inv, matrix) else _zero_pivot(matrix)


def _zero_pivot(matrix: Array) -> int:
    """Which pivot of an elimination with row exchanges is the first 0, counted from 1."""
    u = matrix.astype(np.result_type(matrix.dtype, np.float64))
    for k in range(u.shape[0]):
        best = k + int(np.argmax(np.abs(u[k:, k])))
        u[[k, best]] = u[[best, k]]
        if u[k, k] == 0:
            return k + 1
        u[k + 1 :] -= np.outer(u[k + 1 :, k] / u[k, k], u[k])
    return u.shape[0]


def _t(t: Tensor) -> Tensor:
    """The adjoint: transposed and, where complex, conjugated."""
    return aten.conj_of(aten.transpose(t, -2, -1))


def _matrices(*more: Any) -> Callable[..., Any]:
    values = ((4.0, 1.0, 0.5), (1.0, 3.0, -0.5), (0.5, -0.5, 2.0))
    return lambda: [Sample((Arg((3, 3), d, values=values), *more)) for d in ("float32", "float64")]


def _inverse_by_solving(A: Tensor) -> Tensor:
    identity = aten.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    try:
        return aten._linalg_solve(A, aten.contiguous(aten.expand(identity, A.shape)))
    except LinAlgError:
        host = [A.detach().cpu().numpy()]
        raise LinAlgError(_failure("linalg.inv", np.linalg.inv, host)) from None


op(
    "_linalg_inv_unchecked(Tensor A) -> Tensor",
    infer=square("linalg.inv"),
    cpu=_guarded("linalg.inv", np.linalg.inv),
    aclnn=call("aclnnInverse", when=in_dtypes("A", *SHORT_FLOATS)),
    lower=_inverse_by_solving,
    samples=_matrices(),
    oracle=lambda torch: torch.linalg.inv,
)
op(
    "linalg_inv(Tensor A) -> Tensor",
    autocast="float32 on cpu",
    summary="Inverse of square matrices `[*, N, N]`.",
    infer=square("linalg.inv"),
    cpu=_guarded("linalg.inv", np.linalg.inv),
    lower=lambda A: waited("linalg.inv", np.linalg.inv, aten._linalg_inv_unchecked(A), A),
    grad={"A": lambda grad, result: -(_t(result) @ grad @ _t(result))},
    samples=_matrices(),
    out="expected",
)


def _scalars(self: Geometry, name: str = "linalg.det") -> Geometry:
    check_square(name, self)
    return self.fresh(self.shape[:-2])


def _spread(t: Tensor) -> Tensor:
    return aten.unsqueeze(aten.unsqueeze(t, -1), -1)


def _det(A: Tensor) -> Tensor:
    sign, logabsdet = aten.linalg_slogdet(A)
    return sign * aten.exp(logabsdet)


def _inverse(A: Tensor) -> Tensor:
    """The inverse; of a matrix moved off singularity by its rounding where there is none."""
    try:
        return aten.linalg_inv(A)
    except LinAlgError:
        step = float(np.finfo(A.dtype.to_real().np).eps)
        shift = aten.diag_embed(aten.full_like(aten.select(A, -1, 0), step))
        return aten.linalg_inv(A + shift)


op(
    "linalg_det(Tensor A) -> Tensor",
    summary="Determinant of square matrices: `[*, N, N] → [*]`.",
    infer=_scalars,
    cpu=np.linalg.det,
    lower=_det,
    grad={"A": lambda grad, A, result: _spread(grad * aten.conj_of(result)) * _t(_inverse(A))},
    unsupported={"half": "lu_cpu"},
    samples=_matrices(),
    out="expected",
)


def _slogdet_grad(
    grad_sign: Tensor | None, grad_logabsdet: Tensor | None, A: Tensor, sign: Tensor
) -> Tensor | None:
    """By tr(A⁻¹ dA): its real part moves the size, its imaginary part turns the sign."""
    factor = grad_logabsdet
    if grad_sign is not None and A.is_complex():
        phase = aten.imag(aten.conj_of(grad_sign) * sign) * -1j
        factor = phase if factor is None else factor + phase
    return None if factor is None else _spread(factor) * _t(_inverse(A))


def _slogdet(A: Array) -> tuple[Array, ...]:
    """Of a large matrix by LU in the own dtype: numpy computes in float64, and copies."""
    if A.ndim > 2 or A.size < LARGE_MATRIX or A.dtype.kind == "c":
        return tuple(np.linalg.slogdet(A))
    factors, pivots, _ = lapack("getrf", A.dtype)(A.T)
    diagonal = np.diagonal(factors)
    exchanges = np.count_nonzero(pivots != np.arange(len(pivots)))
    negative = exchanges + np.count_nonzero(diagonal < 0)
    sign = (-1.0 if negative % 2 else 1.0) if diagonal.all() else 0.0
    return np.asarray(sign), np.log(np.abs(diagonal)).sum(dtype=np.float64, keepdims=True)[0]


op(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    summary="Sign and logarithm of the absolute determinant: `[*, N, N] → [*], [*]`.",
    infer=lambda A: (
        _scalars(A, "linalg.slogdet"),
        _scalars(A).fresh(dtype=A.dtype.to_real()),
    ),
    cpu=_slogdet,
    aclnn=call("aclnnSlogdet"),
    grad={"A": _slogdet_grad},
    samples=_matrices(),
)


def check_system(A: Tensor | Geometry, B: Tensor | Geometry, left: bool = True) -> None:
    """RuntimeError in torch's words where A X = B (X A = B when not `left`) cannot be."""
    check_square("linalg.solve", A)
    if A.dtype is not B.dtype:
        raise RuntimeError(
            "linalg.solve: Expected A and B to have the same dtype, but found A of type"
            f" {A.dtype.legacy} and B of type {B.dtype.legacy} instead"
        )
    vector = is_vector(A, B)
    if B.ndim < 1 or (B.ndim < 2 and not vector):
        raise RuntimeError("linalg.solve: The input tensor B must have at least 2 dimensions.")
    rows, columns = (B.shape[-1], 1) if vector else B.shape[-2:]
    if (rows if left else columns) != A.shape[-1]:
        raise RuntimeError(
            "linalg.solve: Incompatible shapes of A and B for the equation"
            f" {'AX' if left else 'XA'} = B"
            f" ({A.shape[-2]}x{A.shape[-1]} and {rows}x{columns})"
        )
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for"
            " left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )


def _solve_infer(A: Geometry, B: Geometry) -> Geometry:
    check_system(A, B)
    if is_vector(A, B):
        return A.fresh((*A.shape[:-2], B.shape[-1]))
    shape = (*broadcast(A.shape[:-2], B.shape[:-2]), *B.shape[-2:])
    return A.fresh(shape, None, column_major(shape))


def is_vector(A: Tensor | Array | Geometry, B: Tensor | Array | Geometry) -> bool:
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


def _solve(A: Array, B: Array) -> Array:
    return np.linalg.solve(A, B[..., None])[..., 0] if is_vector(A, B) else np.linalg.solve(A, B)


def _solve_by_qr(A: Tensor, B: Tensor) -> Tensor:
    """R⁻¹ Qᴴ B for A = Q R; no pivots are needed."""
    vector = is_vector(A, B)
    right = aten.unsqueeze(B, -1) if vector else B
    q, r = aten.linalg_qr(A)
    _refuse_singular(r)
    result = aten.linalg_solve_triangular(r, _t(q) @ right, upper=True)
    return aten.squeeze(result, -1) if vector else in_columns(result)


def _refuse_singular(r: Tensor) -> None:
    """LinAlgError in torch's words for A = Q R whose columns depend; waits for the device.

    What is left of a column beside those before it is taken for 0 below a fourth of the step at
    the column's own size: rounding leaves more of one that is independent, scaled as it may be.
    """
    if not r.numel():
        return
    left = aten.abs(aten.diagonal(r, 0, -2, -1))
    size = aten.linalg_vector_norm(r, 2, (-2,))
    none = aten.any(left <= size * (dt.finfo(r.dtype).eps / 4), -1)
    if not bool(aten.any(none).item()):
        return
    at = int(aten.nonzero(aten.reshape(none, (-1,)))[0].item())
    where = f"(Batch element {at}): " if none.ndim else ""
    raise LinAlgError(
        f"torch.linalg.solve: {where}The solver failed because the input matrix is singular."
    )


def _solve_grad_a(grad: Tensor, A: Tensor, B: Tensor, result: Tensor) -> Tensor:
    solved = aten._linalg_solve(_t(A), grad)
    if is_vector(A, B):
        solved, result = aten.unsqueeze(solved, -1), aten.unsqueeze(result, -1)
    return -(solved @ _t(result))


op(
    "_linalg_solve(Tensor A, Tensor B) -> Tensor",
    infer=_solve_infer,
    cpu=_guarded("linalg.solve", _solve),
    lower=_solve_by_qr,
    grad={
        "A": _solve_grad_a,
        "B": lambda grad, A: aten._linalg_solve(_t(A), grad),
    },
    unsupported={"half": "lu_cpu"},
    samples=lambda: [
        *_matrices(Arg((3, 2), "float64"))()[1:],
        *_matrices(Arg((3,), "float32"))()[:1],
    ],
    oracle=lambda torch: torch.linalg.solve,
)


def _cholesky_grad(grad: Tensor, result: Tensor) -> Tensor:
    lower = aten.tril(_t(result) @ grad)
    middle = (lower + _t(aten.tril(lower, -1))) * 0.5
    inverse = aten.linalg_inv(result)
    return _t(inverse) @ middle @ inverse


def _cholesky(self: Array) -> Array:
    """By LAPACK in the own dtype where it is one matrix: numpy computes in float64, and copies.

    A pivot that is no number ends it, as in LAPACK's reference.
    """
    if self.ndim > 2 or not self.size:
        whole = np.linalg.cholesky(self)
        if np.isnan(np.diagonal(whole, 0, -2, -1)).any():
            raise np.linalg.LinAlgError
        return whole
    factor, info = lapack("potrf", self.dtype)(self, lower=1, clean=1)
    if info or factor[-1, -1] != factor[-1, -1]:  # which follows from any such pivot
        raise np.linalg.LinAlgError
    return cast("Array", factor)


def _cholesky_by_root(self: Tensor) -> Tensor:
    """Of float64 and complex numbers, by operators that take them: for A = V S Vᴴ = Bᴴ B with
    B = S^½ Vᴴ = Q R, A is Rᴴ R. Waits for the device: LinAlgError where A is not positive."""
    below = aten.tril(self, -1)
    whole = below + _t(below) + aten.diag_embed(aten.diagonal(self, 0, -2, -1))
    u, s, v = aten._linalg_svd_v(whole, False)
    signs = aten.real(aten.sum(aten.conj_of(u) * v, -2))
    if self.numel() and not bool(aten.all(aten.logical_and(signs > 0, s > 0)).item()):
        raise LinAlgError(
            _failure("linalg.cholesky", np.linalg.cholesky, [self.detach().cpu().numpy()])
        )
    _, r = aten.linalg_qr(aten.unsqueeze(aten.sqrt(s), -1) * _t(v), "r")
    diagonal = aten.real(aten.diagonal(r, 0, -2, -1))
    return aten.tril(_t(r * aten.unsqueeze(aten.where(diagonal < 0, -1.0, 1.0), -1)))


op(
    "_linalg_cholesky(Tensor self) -> Tensor",
    infer=square("linalg.cholesky"),
    cpu=_guarded("linalg.cholesky", _cholesky),
    aclnn=call("aclnnLinalgCholesky", "self", False, "out", when=in_dtypes("self", *SHORT_FLOATS)),
    lower=_cholesky_by_root,
    grad={"self": _cholesky_grad},
    # Differences of one element leave the symmetric matrices: gradients are tested with torch's.
    unsupported={"half": "cholesky_cpu"},
    samples=lambda: [Sample((Arg((2, 2), values=((2.0, 0.5), (0.5, 1.0)), grad=False),))],
    oracle=lambda torch: torch.linalg.cholesky,
)


_SIGNS = (
    "vectors are unique only up to signs that LAPACK builds choose differently: the tests of linalg"
    " compare what is unique"
)


def _eigh_infer(A: Geometry, UPLO: str = "L") -> tuple[Geometry, ...]:
    check_square("linalg.eigh", A)
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return A.fresh(A.shape[:-1], A.dtype.to_real()), A.fresh(A.shape, None, column_major(A.shape))


def _eigh(A: Array, UPLO: Any) -> tuple[Array, ...]:
    """LinAlgError in torch's words where LAPACK's iteration does not end."""
    try:
        return tuple(np.linalg.eigh(A, UPLO))
    except np.linalg.LinAlgError:
        matrices = A.reshape((-1, *A.shape[-2:]))
        at = next((i for i, m in enumerate(matrices) if not np.isfinite(m).all()), 0)
        where = f"(Batch element {at}): " if A.ndim > 2 else ""
        raise LinAlgError(
            f"linalg.eigh: {where}The algorithm failed to converge because the input matrix is"
            " ill-conditioned or has too many repeated eigenvalues (error code:"
            f" {A.shape[-1] - 1})."
        ) from None


def _eigh_by_svd(A: Tensor, UPLO: str) -> tuple[Tensor, Tensor]:
    """Of A + c I, which is positive: its singular vectors are eigenvectors. Their quotients are
    the values without the digits that c takes (Rayleigh)."""
    part = aten.tril(A) if UPLO.upper() == "L" else _t(aten.triu(A))
    diagonal = aten.diag_embed(aten.diagonal(part, 0, -2, -1))
    below = part - diagonal
    # Imaginary parts of the diagonal count for nothing, as in LAPACK's heevd.
    whole = below + _t(below) + (diagonal + _t(diagonal)) * 0.5
    shift = aten.unsqueeze(aten.linalg_vector_norm(whole, 2, (-2, -1)), -1)
    shifts = aten.diag_embed(aten.expand(shift, A.shape[:-1]))
    u, _, _ = aten._linalg_svd_v(whole + aten.to(shifts, A.dtype), False)
    vectors = aten.flip(u, (-1,))
    mirrors = aten.conj_of(vectors)
    sizes, squares = (aten.sum(mirrors * t, -2) for t in (whole @ vectors, vectors))
    return aten.sort(aten.real(sizes) / aten.real(squares), -1)[0], vectors


def _gaps(values: Tensor) -> Tensor:
    """`v_j - v_i` with ones on the diagonal."""
    gaps = aten.unsqueeze(values, -2) - aten.unsqueeze(values, -1)
    return gaps + aten.diag_embed(aten.ones_like(values))


def _eigh_grad(grads: tuple[Tensor, ...], eigenvalues: Tensor, eigenvectors: Tensor) -> Tensor:
    by_value, by_vector = grads
    inner = _t(eigenvectors) @ by_vector / _gaps(eigenvalues)
    off = inner - aten.diag_embed(aten.diagonal(inner, 0, -2, -1))
    inner = off + aten.diag_embed(by_value)
    gradient = eigenvectors @ inner @ _t(eigenvectors)
    return (gradient + _t(gradient)) * 0.5


op(
    "linalg_eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
    autocast="float32 on cpu",
    summary="Eigenvalues `[*, N]`, ascending, and eigenvectors of Hermitian matrices `[*, N, N]`.",
    infer=_eigh_infer,
    cpu=_eigh,
    lower=_eigh_by_svd,
    grad={"A": _eigh_grad},
    unsupported={"bool whole half": "linalg_eigh_cpu"},
    unsampled=_SIGNS,
)


def _svd_infer(
    A: Geometry, full_matrices: bool = True, driver: str | None = None
) -> tuple[Geometry, ...]:
    check_matrices("linalg.svd", A)
    if driver is not None and A.device.type == "cpu":
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with"
            " cuSOLVER backend."
        )
    m, n = A.shape[-2], A.shape[-1]
    k = min(m, n)
    batch = tuple(A.shape[:-2])
    left = (*batch, m, m if full_matrices else k)
    right = (*batch, n if full_matrices else k, n)
    return (
        A.fresh(left, None, column_major(left)),
        A.fresh((*batch, k), A.dtype.to_real()),
        A.fresh(right, None, column_major(right)),
    )


def _svd_grad(
    grads: tuple[Tensor, ...], U: Tensor, S: Tensor, Vh: Tensor, A_geom: Geometry
) -> Tensor:
    k = S.shape[-1]
    if not k:
        return aten.zeros(A_geom.shape, dtype=U.dtype, device=U.device)
    by_u, by_s, by_vh = grads
    u, vh = aten.narrow(U, -1, 0, k), aten.narrow(Vh, -2, 0, k)
    by_u, by_vh = aten.narrow(by_u, -1, 0, k), aten.narrow(by_vh, -2, 0, k)
    v, by_v = _t(vh), _t(by_vh)
    gaps = _gaps(S * S)
    gaps = (
        gaps - aten.diag_embed(aten.diagonal(gaps, 0, -2, -1)) + aten.diag_embed(aten.ones_like(S))
    )
    row, column = aten.unsqueeze(S, -2), aten.unsqueeze(S, -1)
    left = _skew(_t(u) @ by_u) / gaps
    right = _skew(vh @ by_v) / gaps
    inner = left * row + column * right
    inner = inner + aten.diag_embed(by_s)
    gradient = u @ inner
    if A_geom.shape[-2] > k:
        gradient = gradient + _rest(u, by_u) / row
    gradient = gradient @ vh
    if A_geom.shape[-1] > k:
        gradient = gradient + u @ (_t(_rest(v, by_v)) / column)
    return gradient


def _skew(t: Any) -> Any:
    return t - _t(t)


def _rest(basis: Tensor, grad: Tensor) -> Tensor:
    """The part of `grad` outside the span of `basis`."""
    return grad - basis @ (_t(basis) @ grad)


def _svd_v(A: Geometry, full_matrices: bool = True) -> tuple[Geometry, ...]:
    u, s, vh = _svd_infer(A, full_matrices)
    return u, s, vh.fresh((*vh.shape[:-2], vh.shape[-1], vh.shape[-2]))


def _svd(A: Array, full_matrices: bool) -> tuple[Array, ...]:
    try:
        return tuple(np.linalg.svd(A, full_matrices))
    except np.linalg.LinAlgError:
        finite = np.isfinite(A).all((-2, -1))
        raise _no_singular_values(A.ndim, int(np.argmin(finite))) from None


def _no_singular_values(ndim: int, at: int) -> LinAlgError:
    where = f"(Batch element {at}): " if ndim > 2 else ""
    return LinAlgError(
        f"linalg.svd: {where}The algorithm failed to converge because the input matrix contained"
        " non-finite values."
    )


def _svd_by_v(A: Tensor, full_matrices: bool, driver: str | None) -> tuple[Tensor, ...]:
    u, s, v = aten._linalg_svd_v(A, full_matrices)
    if A.numel():
        broken = aten.any(aten.reshape(aten.isnan(A), (-1, A.shape[-2] * A.shape[-1])), -1)
        if bool(aten.any(broken).item()):
            raise _no_singular_values(A.ndim, int(aten.nonzero(broken)[0].item()))
    return u, s, _t(v)


# aclnnSvd gives V, torch's linalg.svd its adjoint.
op(
    "_linalg_svd_v(Tensor A, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor V)",
    infer=_svd_v,
    cpu=lambda A, full_matrices: _adjoint_last(_svd(A, full_matrices)),
    aclnn=call("aclnnSvd", "A", "full_matrices", True, "S", "U", "V"),
    unsampled=_SIGNS,
)


def _adjoint_last(result: Any) -> tuple[Array, ...]:
    u, s, vh = result
    return u, s, np.conjugate(np.swapaxes(vh, -1, -2))


op(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None)"
    " -> (Tensor U, Tensor S, Tensor Vh)",
    autocast="float32 on cpu",
    summary="Singular value decomposition `A = U diag(S) Vh` of `[*, M, N]`.",
    infer=_svd_infer,
    cpu=lambda A, full_matrices, driver: _svd(A, full_matrices),
    lower=_svd_by_v,
    grad={"A": _svd_grad},
    unsupported={"half": "linalg_svd_cpu"},
    unsampled=_SIGNS,
)


def _qr_infer(A: Geometry, mode: str = "reduced") -> tuple[Geometry, ...]:
    check_matrices("linalg.qr", A)
    if mode not in _QR_MODES:
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r',"
            " or 'complete'"
        )
    m, n = A.shape[-2], A.shape[-1]
    k = m if mode == "complete" else min(m, n)
    batch = tuple(A.shape[:-2])
    q = A.fresh((0,)) if mode == "r" else A.fresh((*batch, m, k), None,
                                                  column_major((*batch, m, k)))  # fmt: skip
    return q, A.fresh((*batch, k, n), None, column_major((*batch, k, n)))


# aclnnLinalgQr document: mode 0 reduced, 1 complete, 2 only R.
_QR_MODES = {"reduced": 0, "complete": 1, "r": 2}


def reflectors(A: Array) -> tuple[Array, Array]:
    """LAPACK's geqrf of one matrix, in its own dtype: R over the reflections, and their factors."""
    factors, tau, _, _ = lapack("geqrf", A.dtype)(A, lwork=WORK * A.shape[1])
    return factors, tau


def _qr(A: Array, mode: str) -> Any:
    if A.ndim == 2 and A.size:
        return _qr_of_one(A, mode)
    if mode == "r":
        return np.zeros((0,), A.dtype), np.linalg.qr(A, "r")
    return tuple(np.linalg.qr(A, "complete" if mode == "complete" else "reduced"))


def _qr_of_one(A: Array, mode: str) -> tuple[Array, Array]:
    (m, n), k = A.shape, min(A.shape)
    factors, tau = reflectors(A)
    upper = upper_triangle(factors if mode == "complete" else factors[:k])
    if mode == "r":
        return np.zeros((0,), A.dtype), upper
    columns = m if mode == "complete" else k
    if columns > n:
        wide = np.empty((m, columns), A.dtype, order="F")
        wide[:, :n] = factors
        factors = wide
    form = lapack("ungqr" if A.dtype.kind == "c" else "orgqr", A.dtype)
    return form(factors[:, :columns], tau, lwork=WORK * columns)[0], upper


def _qr_grad(grads: tuple[Tensor, ...], A: Tensor, Q: Tensor, R: Tensor, mode: str) -> Tensor:
    by_q, by_r = grads
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please"
            " use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    m, n = A.shape[-2], A.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    if m < n:
        tail = aten.narrow(A, -1, m, n - m)
        by_tail = aten.narrow(by_r, -1, m, n - m)
        square = (by_q + tail @ _t(by_tail), aten.narrow(by_r, -1, 0, m))
        head = _square_qr_grad(square, Q, aten.narrow(R, -1, 0, m))
        return aten.cat([head, Q @ by_tail], -1)
    return _square_qr_grad((by_q, by_r), Q, R)


def _square_qr_grad(grads: tuple[Tensor, ...], Q: Tensor, R: Tensor) -> Tensor:
    by_q, by_r = grads
    inner = R @ _t(by_r) - _t(by_q) @ Q
    below = aten.tril(inner, -1)
    middle = aten.diagonal(inner, 0, -2, -1)
    middle = aten.to(aten.real(middle), inner.dtype) if inner.is_complex() else middle
    inner = below + _t(below) + aten.diag_embed(middle)
    gradient = by_q + Q @ inner
    return aten.linalg_solve_triangular(_t(R), gradient, upper=False, left=False)


op(
    "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
    autocast="float32 on cpu",
    summary="QR decomposition `A = Q R` of `[*, M, N]`.",
    infer=_qr_infer,
    cpu=_qr,
    aclnn=call("aclnnLinalgQr", "A", lambda a: _QR_MODES[a["mode"]], "Q", "R"),
    grad={"A": _qr_grad},
    unsupported={"half": "geqrf_cpu"},
    unsampled=_SIGNS,
)
