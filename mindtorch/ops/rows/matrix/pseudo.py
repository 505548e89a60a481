"""Rows of what singular values decide: pseudoinverses, ranks, condition, least squares."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, isfinite, log2

from ...._tensor.dtype import finfo
from ...words import *
from .decompositions import (
    LinAlgError,
    _t,
    check_matrices,
    check_square,
    in_columns,
    is_vector,
)
from .matrices import matrix_norm, svdvals

SQUARE = Arg((3, 3), values=((4.0, 1.0, 0.5), (1.0, 3.0, -0.5), (0.5, -0.5, 2.0)))


def _epsilon(A: Tensor) -> float:
    return float(getattr(finfo(A.dtype), "eps"))  # noqa: B009 - finfo sets its fields by name


def _tolerances(
    A: Tensor, atol: Tensor | float | None, rtol: Tensor | float | None, name: str
) -> tuple[Tensor, Tensor]:
    """Both as tensors; without `atol`, `rtol` is what rounding leaves of the largest value."""
    for tolerance in (atol, rtol):
        if isinstance(tolerance, Tensor) and tolerance.is_complex():
            raise RuntimeError(
                f"{name}: {'atol' if tolerance is atol else 'rtol'} tensor of complex type is not"
                f" supported. Got {tolerance.dtype.legacy}"
            )
    if rtol is None:
        plain = max(A.shape[-2:]) * _epsilon(A)
        if isinstance(atol, Tensor):
            rtol = aten.where(atol > 0, 0.0, plain)
        else:
            rtol = plain if not atol else 0.0
    real = A.dtype.to_real()
    low, high = (
        aten.to(t, real)
        if isinstance(t, Tensor)
        else aten.full((), t or 0.0, dtype=real, device=A.device)
        for t in (atol, rtol)
    )
    return low, high


def _floor(s: Tensor, atol: Tensor, rtol: Tensor) -> Tensor:
    """What counts as zero among the values of each matrix, `[…, 1]`."""
    largest = aten.amax(s, -1, True) if s.shape[-1] else aten.zeros((*s.shape[:-1], 1))
    atol, rtol = (aten.unsqueeze(t, -1) if t.ndim else t for t in (atol, rtol))
    return aten.maximum(atol, rtol * largest)


def _pinv(A: Tensor, atol: Tensor, rtol: Tensor, hermitian: bool) -> Tensor:
    if not A.numel():
        return aten.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), dtype=A.dtype, device=A.device)
    if hermitian:
        values, u = aten.linalg_eigh(A)
        s, v = aten.abs(values), u
    else:
        u, s, vh = aten.linalg_svd(A, False)
        values, v = s, _t(vh)
    keep = s > _floor(s, atol, rtol)
    inverse = aten.where(keep, aten.reciprocal(aten.where(keep, values, 1.0)), 0.0)
    return (v * aten.unsqueeze(aten.to(inverse, A.dtype), -2)) @ _t(u)


def _pinv_infer(
    A: Geometry, atol: Tensor | float | None, rtol: Tensor | float | None, hermitian: bool = False
) -> Geometry:
    return A.fresh((*A.shape[:-2], A.shape[-1], A.shape[-2]))


def _pinv_grad(grad: Tensor, A: Tensor, result: Tensor) -> Tensor:
    """Golub and Pereyra, "The differentiation of pseudo-inverses" (1973), theorem 4.3."""
    p, g = result, _t(grad)
    if A.shape[-2] <= A.shape[-1]:
        k = g @ p
        kp = k @ _t(p)
        return -_t(p @ k) + kp - (A @ p) @ kp + (_t(p) @ p) @ (g - k @ A)
    k = p @ g
    pk = _t(p) @ k
    return -_t(k @ p) + (g - A @ k) @ (p @ _t(p)) + pk - (pk @ p) @ A


op(
    "_linalg_pinv(Tensor A, Tensor atol, Tensor rtol, bool hermitian=False) -> Tensor",
    infer=_pinv_infer,
    lower=_pinv,
    grad={"A": _pinv_grad},
    unsampled="linalg_pinv is held against torch",
)


@composite(
    "linalg_pinv(Tensor A, Any rcond=None, bool hermitian=False, *, Any atol=None, Any rtol=None)"
    " -> Tensor",
    samples=calls((SQUARE,), (Arg((3, 2)),)),
)
def pinv(
    A: Tensor,
    rcond: Tensor | float | None = None,
    hermitian: bool = False,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """The Moore-Penrose inverse; values below max(atol, rtol · the largest) count as zero."""
    if A.ndim < 2 or A.dtype.category < dt.FLOAT or A.dtype.itemsize == 2:
        raise RuntimeError(
            f"linalg.pinv({A.dtype.legacy}{{{list(A.shape)}}}): expected a tensor with 2 or more"
            " dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_square("linalg.eigh", A._geom)
    rtol = rtol if rcond is None else rcond
    return aten._linalg_pinv(A, *_tolerances(A, atol, rtol, "torch.linalg.pinv"), hermitian)


composite(
    "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    lambda self, rcond=1e-15: pinv(self, rcond),
    summary="Pseudo-inverse: `[*, M, N] → [*, N, M]`.",
    samples=calls((SQUARE,)),
    autocast="float32 on cpu",
)


@composite(
    "linalg_matrix_rank(Tensor A, Any tol=None, bool hermitian=False, *, Any atol=None,"
    " Any rtol=None) -> Tensor",
    samples=calls((SQUARE,), (Arg((2, 2), values=((1.0, 2.0), (2.0, 4.0))),)),
    autocast="float32 on cpu",
    tolerance="exact",
)
def matrix_rank(
    A: Tensor,
    tol: Tensor | float | None = None,
    hermitian: bool = False,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """How many singular values are above max(atol, rtol · the largest)."""
    name = "torch.linalg.matrix_rank"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor input must have at least 2 dimensions.")
    if A.dtype.category < dt.FLOAT or A.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if tol is not None:
        atol, rtol = tol, 0.0
    if not A.numel():
        return aten.zeros(tuple(A.shape[:-2]), dtype=dt.int64, device=A.device)
    low, high = _tolerances(A, atol, rtol, name)
    s = aten.abs(aten.linalg_eigvalsh(A)) if hermitian else svdvals(A)
    return aten.sum(s > _floor(s, low, high), -1)


@composite(
    "linalg_cond(Tensor A, Any p=None) -> Tensor",
    # torch's gradient of norms other than 2 fails: it fills in place the inverse that it needs.
    unsupported={"half": "linalg_svd_cpu"},
    samples=calls((SQUARE,), (replace(SQUARE, grad=False), 1)),
    autocast="float32 on cpu",
)
def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number in a norm: by singular values, or of A and of its inverse."""
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    check_matrices("linalg.svd", A._geom)
    if p is None or p in (2, -2):
        if not A.numel():
            return aten.zeros(tuple(A.shape[:-2]), dtype=A.dtype.to_real(), device=A.device)
        s = svdvals(A)
        first, last = aten.narrow(s, -1, 0, 1), aten.narrow(s, -1, s.shape[-1] - 1, 1)
        return aten.squeeze(last / first if p == -2 else first / last, -1)
    if not isinstance(p, str) and p not in (1, -1, float("inf"), -float("inf")):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(f"linalg.cond(ord={p})", A._geom)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not A.numel():
        return aten.zeros(tuple(A.shape[:-2]), dtype=A.dtype.to_real(), device=A.device)
    try:
        return matrix_norm(A, p) * matrix_norm(aten.linalg_inv(A), p)
    except LinAlgError:
        inverse, info = aten.linalg_inv_ex(A)
        result = matrix_norm(A, p) * matrix_norm(inverse, p)
        return aten.where(info == 0, result, float("inf"))


def _result(A: Tensor, solution: Tensor, b: Tensor, rank: Tensor, wants_residuals: bool) -> Tensor:
    """Squares of what is left over, where there are more rows than columns and full rank."""
    m, n = A.shape[-2:]
    empty = aten.zeros((0,), dtype=A.dtype.to_real(), device=A.device)
    if m <= n or not wants_residuals:
        return empty
    if rank.numel() and A.device.type != "meta" and not bool(aten.all(rank == n).item()):
        return empty
    return aten.sum(aten.square(aten.abs(A @ solution - b)), -2)


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _in_tall_columns(solution: Tensor, rest: int) -> Tensor:
    """The first rows of longer columns, where LAPACK leaves the residuals below a solution."""
    if rest <= 0:
        return in_columns(solution)
    shape = (*solution.shape[:-2], rest, solution.shape[-1])
    below = aten.zeros(shape, dtype=solution.dtype, device=solution.device)
    whole = in_columns(aten.cat([solution, below], -2))
    return aten.narrow(whole, -2, 0, solution.shape[-2])


@composite(
    "linalg_lstsq(Tensor A, Tensor B, float? rcond=None, *, str? driver=None)"
    " -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    samples=calls((Arg((4, 2)), Arg((4, 3)))),
    autocast="float32 on cpu",
)
def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, driver: str | None = None
) -> tuple[Tensor, ...]:
    """The X that brings A X nearest to B, the smallest of them, by the pseudoinverse."""
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    driver = driver or "gelsy"
    if driver not in _DRIVERS:
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    if A.dtype is not B.dtype:
        raise RuntimeError(
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's"
            f" dtype {A.dtype.legacy} and other's dtype {B.dtype.legacy}"
        )
    vector = is_vector(A, B)
    right = aten.unsqueeze(B, -1) if vector else B
    if right.shape[-2] != A.shape[-2]:
        raise RuntimeError(
            f"torch.linalg.lstsq: input.size(-2) should match other.size(-{1 if vector else 2})"
        )
    if A.dtype.category < dt.FLOAT or A.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    solution = _in_tall_columns(pinv(A, rcond) @ right, A.shape[-2] - A.shape[-1])
    real = A.dtype.to_real()
    rank = aten.zeros((0,), dtype=dt.int64, device=A.device)
    values = aten.zeros((0,), dtype=real, device=A.device)
    if driver != "gels":
        rank = matrix_rank(A, rtol=rcond)
    if driver in ("gelsd", "gelss"):
        values = svdvals(A).detach()
    residuals = _result(A, solution, right, rank, driver != "gelsy")
    result = aten.squeeze(solution, -1) if vector else solution
    return result, residuals, rank, values


# The largest 1-norms for polynomials of degrees 1, 2, 4, 8, 12 and 18 (Bader, Blanes and Casas,
# "Computing the matrix exponential with an optimized Taylor polynomial approximation", 2019).
_NORMS = {
    dt.float32: (1.192092800768788e-07, 5.978858893805233e-04, 5.116619363445086e-02,
                 5.800524627688768e-01, 1.461661507209034e+00, 3.010066362817634e+00),
    dt.float64: (2.220446049250313e-16, 2.580956802971767e-08, 3.397168839976962e-04,
                 4.991228871115323e-02, 2.996158913811580e-01, 1.090863719290036e+00),
}  # fmt: skip
_DEGREE_12 = (
    (9.0198e-16, 0.46932117595418237389, -0.20099424927047284052, -0.04623946134063071740),
    (5.31597895759871264183, 1.19926790417132231573, 0.01179296240992997031,
     0.01108844528519167989),
    (0.18188869982170434744, 0.05502798439925399070, 0.09351590770535414968,
     0.00610700528898058230),
    (-2.0861320e-13, -0.13181061013830184015, -0.02027855540589259079, -0.00675951846863086359),
)  # fmt: skip
_DEGREE_18 = (
    (0.0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04,
     0.0),
    (0.0, 3.97849749499645077844e-01, 1.36783778460411720168e00, 4.98289622525382669416e-01,
     -6.37898194594723280150e-04),
    (-1.09676396052962061844e01, 1.68015813878906206114e00, 5.71779846478865511061e-02,
     -6.98210122488052056106e-03, 3.34975017086070470649e-05),
    (-9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02,
     2.95552570429315521194e-02, -1.39180257516060693404e-05),
    (0.0, 0.0, -9.23364619367118555360e-02, -1.69364939002081722752e-02,
     -1.40086798182036094347e-05),
)  # fmt: skip


def _combined(powers: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    pairs = [(power, weight) for power, weight in zip(powers, weights, strict=True) if weight]
    total = pairs[0][0] * pairs[0][1]
    for power, weight in pairs[1:]:
        total = total + power * weight
    return total


def _polynomial(a: Tensor, degree: int) -> Tensor:
    """The optimized Taylor polynomial of a degree of matrices `[batch, n, n]`."""
    eye = aten.diag_embed(aten.ones_like(aten.select(a, -1, 0)))
    if degree == 1:
        return eye + a
    second = a @ a
    if degree == 2:
        return eye + a + second / 2.0
    if degree == 4:
        product = second @ _combined((eye, a, second), (1 / 2, 1 / 6, 1 / 24))
        return eye + a + product
    if degree == 8:
        root = 0.1330413469565007072504e2  # of 177
        x3 = 2 / 3
        fourth = second @ _combined((a, second), (x3 * (1 + root) / 88, x3 * (1 + root) / 352))
        weights = (
            (-271 + 29 * root) / (315 * x3), (-11 + 11 * root) / (1260 * x3),
            (-99 + 11 * root) / (5040 * x3), (89 - root) / (5040 * x3),
        )  # fmt: skip
        product = _combined((second, fourth), (x3, 1.0)) @ _combined(
            (eye, a, second, fourth), weights
        )
        return _combined((eye, a, second, product), (1.0, 1.0, (857 - 58 * root) / 630, 1.0))
    third = a @ second
    if degree == 12:
        parts = [_combined((eye, a, second, third), row) for row in _DEGREE_12]
        sixth = parts[2] + parts[3] @ parts[3]
        return parts[0] + (parts[1] + sixth) @ sixth
    parts = [_combined((eye, a, second, third, third @ third), row) for row in _DEGREE_18]
    ninth = parts[3] + parts[0] @ parts[4]
    return parts[1] + (parts[2] + ninth) @ ninth


def _exp(self: Tensor) -> Tensor:
    """Scaling and squaring of a Taylor polynomial, whose degree the norm of one matrix decides."""
    if not self.numel() or self.shape[-1] == 1:
        return aten.exp(self)
    flat = aten.reshape(self, (-1, *self.shape[-2:]))
    sizes = aten.amax(aten.sum(aten.abs(flat), -2), -1).tolist()
    norms = _NORMS.get(self.dtype.to_real(), _NORMS[dt.float32])
    if not all(isfinite(size) for size in sizes):
        return aten.full_like(self, float("nan"))
    degrees = zip(norms[:-1], (1, 2, 4, 8, 12), strict=True)
    degree = next((d for most, d in degrees if sizes[0] <= most), 18) if len(sizes) == 1 else 18
    if degree < 18:
        return aten.reshape(_polynomial(flat, degree), tuple(self.shape))
    squares = [max(ceil(log2(size / norms[-1])), 0) if size else 0 for size in sizes]
    scales = [2.0**-count for count in squares]
    total = _polynomial(flat * _column(scales, self, self.dtype.to_real()), 18)
    counts = _column(squares, self, dt.int64)
    for done in range(max(squares)):
        squared = total @ total
        total = squared if min(squares) > done else aten.where(counts > done, squared, total)
    return aten.reshape(total, tuple(self.shape))


def _column(numbers: Sequence[float], like: Tensor, dtype: Dtype) -> Tensor:
    """A number for each matrix, `[batch, 1, 1]`."""
    parts = [aten.full((1, 1, 1), n, dtype=dtype, device=like.device) for n in numbers]
    return aten.cat(parts)


def _exp_grad(grad: Tensor, self: Tensor) -> Tensor:
    """The corner of the exponential of [[Aᴴ, G], [0, Aᴴ]] (Mathias, 1996)."""
    n, adjoint = self.shape[-1], _t(self)
    above = aten.cat([adjoint, grad], -1)
    below = aten.cat([aten.zeros_like(grad), adjoint], -1)
    whole = aten.linalg_matrix_exp(aten.cat([above, below], -2))
    return aten.narrow(aten.narrow(whole, -2, 0, n), -1, n, n)


def _exp_infer(self: Geometry) -> Geometry:
    check_square("linalg.matrix_exp", self)
    return self.fresh()


op(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    summary="Matrix exponential of `[*, N, N]`.",
    infer=_exp_infer,
    lower=_exp,
    grad={"self": _exp_grad},
    samples=calls((SQUARE,), (Arg((2, 2, 2)),)),
)
composite(
    "matrix_exp(Tensor self) -> Tensor",
    lambda self: aten.linalg_matrix_exp(self),
    summary="Matrix exponential of `[*, N, N]`.",
    samples=calls((SQUARE,)),
)


@composite(
    "linalg_tensorinv(Tensor A, int ind=2) -> Tensor",
    samples=calls((Arg((2, 2, 4), values=SQUARE.values and
                       [[[4.0, 1, 0, 0], [1, 3, 0, 0]], [[0, 0, 2, 1], [0, 1, 0, 5]]]), 2)),
    autocast="float32 on cpu",
)  # fmt: skip
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    end, start = tuple(A.shape[ind:]), tuple(A.shape[:ind])
    rows, columns = _count(start), _count(end)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) =="
            f" prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    try:
        inverse = aten.linalg_inv(aten.reshape(A, (rows, columns)))
    except LinAlgError as error:
        raise LinAlgError(str(error).removeprefix("linalg.")) from None
    return aten.reshape(inverse, (*end, *start))


def _count(shape: tuple[int, ...]) -> int:
    from math import prod

    return prod(shape)


@composite(
    "linalg_tensorsolve(Tensor A, Tensor B, int[]? dims=None) -> Tensor",
    unsupported={"half": "lu_cpu"},
    samples=calls(Sample((Arg((2, 2, 4), values=[[[4.0, 1, 0, 0], [1, 3, 0, 0]],
                                                 [[0, 0, 2, 1], [0, 1, 0, 5]]]), Arg((2, 2))))),
    autocast="float32 on cpu",
)  # fmt: skip
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X with tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        moved = [d % A.ndim for d in dims]
        A = aten.permute(A, (*(d for d in range(A.ndim) if d not in moved), *moved))
    end = tuple(A.shape[B.ndim :])
    rows, columns = B.numel(), _count(end)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) =="
            f" prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        )
    flat = aten.reshape(A, (rows, columns))
    return aten.reshape(aten.linalg_solve(flat, aten.reshape(B, (-1,))), end)
