"""Rows of torch's older names of decompositions, of forms that report instead of raising, and of
products: kron, cross, vecdot, vander, addr."""

from __future__ import annotations

from ...._compat.unsupported_dtypes import Refusal
from ...._compat.warn_once import warn_once
from ...._tensor.device import CPU
from ...._tensor.geometry import contiguous
from ...._tensor.tensor import adopt
from ...limits import reserve
from ...returns import named_kind
from ...rules import HALVES, broadcast, refuse_growth
from ...words import *
from .decompositions import (
    LinAlgError,
    _t,
    check_square,
    column_major,
    in_columns,
    is_vector,
    minor_order,
    singular_pivot,
    waited,
)
from .matrices import cholesky

SQUARE = Arg((3, 3), values=((4.0, 1.0, 0.5), (1.0, 3.0, -0.5), (0.5, -0.5, 2.0)))
POSITIVE = Arg((2, 2), values=((2.0, 0.5), (0.5, 1.0)), grad=False)


def _on(array: Array, like: Tensor) -> Tensor:
    """The numbers of a host array as a tensor, where `like` is."""
    geom = contiguous(array.shape, dt.from_numpy_dtype(array.dtype), CPU)
    host = adopt(geom, np.require(array, requirements="C"))
    result: Tensor = aten.to(host, like.device)
    return result


def _each(
    A: Tensor,
    function: Callable[[Tensor], Tensor],
    instead: Callable[[Tensor], Tensor],
    order: Callable[[Array], int],
) -> tuple[Tensor, Tensor]:
    """A function of every matrix of a batch, `instead` where it fails, and 0 or the order that
    stopped it."""
    shape = tuple(A.shape[:-2])
    try:
        return function(A), aten.zeros(shape, dtype=dt.int32, device=A.device)
    except LinAlgError:
        host = A.detach().cpu().numpy()
    orders = [order(matrix) for matrix in host.reshape((-1, *host.shape[-2:]))]
    info = _on(np.array(orders, np.int32).reshape(shape), A)
    failing = aten.reshape(info != 0, (*shape, 1, 1))
    eye = aten.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    result = function(aten.where(failing, eye, A))
    if result.ndim < A.ndim:  # solutions of one right side
        failing = aten.squeeze(failing, -1)
    result = aten.where(failing, instead(A), result)
    return (in_columns(result) if result.ndim > 1 else result), info


def _unfinished(A: Tensor, upper: bool) -> Tensor:
    """What a Cholesky factorization leaves of matrices where it ends before the last column."""
    host = A.detach().cpu().numpy()
    left = np.tril(np.conj(np.swapaxes(host, -1, -2)) if upper else host)
    for at in np.ndindex(host.shape[:-2]):
        matrix, k = left[at], minor_order(host[at]) - 1
        if k > 0:
            whole = np.linalg.cholesky(host[at][:k, :k])
            rows = np.conj(np.linalg.solve(whole, np.conj(matrix[k:, :k].T)).T)
            matrix[:k, :k], matrix[k:, :k] = whole, rows
            matrix[k, k] -= np.vdot(rows[0], rows[0])
    result = _on(left, A)
    return aten.conj_of(result.mT) if upper else result


def _checked(name: str, A: Tensor, function: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """The result and zeros; LinAlgError, by the name of the form that reports, for a failure."""
    try:
        return function(A), aten.zeros(tuple(A.shape[:-2]), dtype=dt.int32, device=A.device)
    except LinAlgError as error:
        raise LinAlgError(str(error).replace(f"{name}:", f"{name}_ex:")) from None


def _finite(result: Tensor) -> Tensor:
    """The result; LinAlgError where a device has left infinities in place of an error."""
    device = result.device.type
    if device not in ("cpu", "meta") and not bool(aten.all(aten.isfinite(result)).item()):
        raise LinAlgError(
            "torch.linalg.solve: The solver failed because the input matrix is singular."
        )
    return result


def _by_zero_pivots(A: Tensor, B: Tensor) -> Tensor:
    """What substitution leaves of a singular system: infinities and NaN."""
    LU, pivots, _ = aten.linalg_lu_factor_ex(A)
    result: Tensor = aten.linalg_lu_solve(LU, pivots, B)
    return result


@composite(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    samples=calls((SQUARE,)),
)
def inv_ex(A: Tensor, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """The inverse, and whether a matrix of the batch has none."""
    check_square("linalg.inv", A._geom)
    infinite = aten.full((), float("inf"), dtype=A.dtype, device=A.device)

    def inverse(a: Tensor) -> Tensor:
        return waited("linalg.inv", np.linalg.inv, aten.linalg_inv(a), a)

    if check_errors:
        return _checked("linalg.inv", A, inverse)

    def unfinished(a: Tensor) -> Tensor:
        eye = aten.eye(a.shape[-1], dtype=a.dtype, device=a.device)
        return infinite if a.device.type != "cpu" else _by_zero_pivots(a, eye)

    return _each(A, inverse, unfinished, singular_pivot)


composite(
    "matrix_power(Tensor self, int n) -> Tensor",
    lambda self, n: aten.linalg_matrix_power(self, n),
    summary="`n`-th power of square matrices `[*, N, N]`.",
    samples=calls((SQUARE, 3), (SQUARE, -1)),
    surface="both",
)
composite(
    "inverse(Tensor self) -> Tensor",
    lambda self: aten.linalg_inv(self),
    autocast="float32 on cpu",
    summary="Inverse of square matrices `[*, N, N]`.",
    samples=calls((SQUARE,)),
    out="expected",
)


@composite(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)"
    " -> (Tensor result, Tensor info)",
    unsupported={"half": "lu_cpu"},
    samples=calls((SQUARE, Arg((3, 2)))),
)
def solve_ex(
    A: Tensor, B: Tensor, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """A solution, and whether a matrix of the batch is singular."""
    lost = aten.full((), float("nan"), dtype=B.dtype, device=B.device)

    def solution(a: Tensor) -> Tensor:
        return _finite(aten.linalg_solve(a, B, left=left))

    if check_errors:
        return _checked("linalg.solve", A, solution)

    def unfinished(a: Tensor) -> Tensor:
        if a.device.type != "cpu" or not left:
            return lost
        vector = is_vector(a, B)
        result = _by_zero_pivots(a, aten.unsqueeze(B, -1) if vector else B)
        return aten.squeeze(result, -1) if vector else result

    return _each(A, solution, unfinished, singular_pivot)


@composite(
    "linalg_cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False)"
    " -> (Tensor L, Tensor info)",
    unsupported={"half": "cholesky_cpu"},
    samples=calls((POSITIVE,)),
)
def cholesky_ex(
    A: Tensor, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """The triangular factor, and whether a matrix of the batch has none."""
    check_square("linalg.cholesky", A._geom)

    def factor(a: Tensor) -> Tensor:
        return cholesky(a, upper)

    if check_errors:
        return _checked("linalg.cholesky", A, factor)
    return _each(A, factor, lambda a: _unfinished(a, upper), minor_order)


def _renamed(name: str, newer: str, *calls: str) -> None:
    """torch's warning of an older name: pairs of an old call and the one that replaces it."""
    pairs = [f"{a}\nshould be replaced with\n{b}" for a, b in zip(*[iter(calls)] * 2, strict=True)]
    warn_once(
        f"torch.{name} is deprecated in favor of torch.{newer} and will be removed in a future"
        " PyTorch release.\n" + "\nand\n".join(pairs)
    )


def _cholesky(self: Tensor, upper: bool = False) -> Tensor:
    _renamed(
        "cholesky", "linalg.cholesky", "L = torch.cholesky(A)", "L = torch.linalg.cholesky(A)",
        "U = torch.cholesky(A, upper=True)", "U = torch.linalg.cholesky(A).mH\nThis transform will"
        " produce equivalent results for all valid (symmetric positive definite) inputs.",
    )  # fmt: skip
    try:
        return cholesky(self, upper)
    except LinAlgError as error:
        raise LinAlgError(str(error).removeprefix("linalg.")) from None


composite(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    _cholesky,
    autocast="float32 on cpu",
    summary="Cholesky factor of positive definite matrices `[*, N, N]`.",
    unsupported={"bool whole half": "cholesky_cpu"},
    samples=calls((POSITIVE,)),
)


def _by_factor(self: Tensor, input2: Tensor, upper: bool) -> Tensor:
    solve = aten.linalg_solve_triangular
    low = _t(input2) if upper else input2
    return in_columns(solve(_t(low), solve(low, self, upper=False), upper=True))


def _factor_slope(common: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """The gradient of a factor that is read whole, though only its triangle counts."""
    return -(factor @ common) if upper else -(common @ factor)


def _solved_infer(self: Geometry, input2: Geometry, upper: bool = False) -> Geometry:
    for g, name in ((self, "b"), (input2, "u")):
        if g.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {g.ndim} dimensions instead"
            )
    if input2.shape[-1] != input2.shape[-2]:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {input2.shape[-2]} by"
            f" {input2.shape[-1]} matrices"
        )
    if self.shape[-2] != input2.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {input2.shape[-1]} by"
            f" {input2.shape[-1]} but each b matrix is {self.shape[-2]} by {self.shape[-1]}"
        )
    if self.dtype is not input2.dtype:
        raise RuntimeError(
            "Expected b and A to have the same dtype, but found b of type"
            f" {self.dtype.legacy} and A of type {input2.dtype.legacy} instead."
        )
    shape = (*broadcast(self.shape[:-2], input2.shape[:-2]), *self.shape[-2:])
    return self.fresh(shape, None, column_major(shape))


def _solved_slope(grad: Tensor, input2: Tensor, result: Tensor, upper: bool) -> Tensor:
    common = aten.cholesky_solve(grad, input2, upper) @ _t(result)
    return _factor_slope(common + _t(common), input2, upper)


def _inverse_infer(self: Geometry, upper: bool = False) -> Geometry:
    check_square("cholesky_inverse", self)
    return self.fresh(self.shape, None, column_major(self.shape))


def _inverse(self: Tensor, upper: bool) -> Tensor:
    eye = aten.eye(self.shape[-1], dtype=self.dtype, device=self.device)
    return _by_factor(aten.expand_as(eye, self), self, upper)


op(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    summary="Solution of `A X = self` from the Cholesky factor of A.",
    infer=_solved_infer,
    lower=_by_factor,
    grad={
        "self": lambda grad, input2, upper: aten.cholesky_solve(grad, input2, upper),
        "input2": _solved_slope,
    },
    unsupported={"bool whole half": "cholesky_solve_cpu"},
    samples=calls((Arg((2, 3)), POSITIVE)),
    autocast="float32 on cpu",
)
op(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    summary="Inverse of A from its Cholesky factor `[*, N, N]`.",
    autocast="float32 on cpu",
    infer=_inverse_infer,
    lower=_inverse,
    grad={
        "self": lambda grad, self, result, upper: _factor_slope(
            result @ ((grad + _t(grad)) @ result), self, upper
        )
    },
    unsupported={"bool whole half": "cholesky_inverse_out_cpu"},
    samples=calls((POSITIVE,)),
)


def _qr(self: Tensor, some: bool = True) -> Any:
    _renamed(
        "qr", "linalg.qr", "The boolean parameter 'some' has been replaced with a string parameter"
        " 'mode'.\nQ, R = torch.qr(A, some)",
        "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')",
    )  # fmt: skip
    return aten.linalg_qr(self, "reduced" if some else "complete")


composite(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    _qr,
    summary="QR decomposition of `[*, M, N]`; deprecated for `torch.linalg.qr`.",
    unsupported={"half": "geqrf_cpu"},
    samples=calls((Arg((3, 2)),)),
)


@composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    unsampled="vectors are unique only up to signs: linalg_svd is held by the tests of linalg",
    surface="both",
)
def svd(self: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, ...]:
    """U, S and V with self = U diag(S) Vᴴ; zeros for U and V without `compute_uv`."""
    u, s, vh = aten.linalg_svd(self, not some)
    if compute_uv:
        return u, s, _t(vh)
    m, n = self.shape[-2:]
    left, right = ((*self.shape[:-2], k, k) for k in (m, n))
    zeros = [aten.zeros(shape, dtype=self.dtype, device=self.device) for shape in (left, right)]
    return zeros[0], s, zeros[1]


@composite(
    "logdet(Tensor self) -> Tensor",
    samples=calls((SQUARE,)),
)
def logdet(self: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN for a negative one."""
    check_square("logdet", self._geom)
    sign, result = aten.linalg_slogdet(self)
    if self.is_complex():
        return result + aten.log(sign)
    return aten.where(sign == -1, float("nan"), result)


for _name, _where in (("det", "linalg_det"), ("slogdet", "linalg_slogdet")):
    composite(
        f"{_name}(Tensor self) -> " + ("Tensor" if _name == "det"
                                       else "(Tensor sign, Tensor logabsdet)"),
        lambda self, _row=_where: getattr(aten, _row)(self),
        unsupported={"half": "lu_cpu"} if _name == "det" else {},
        samples=calls((SQUARE,)),
        surface="both",
    )  # fmt: skip


@composite(
    "kron(Tensor self, Tensor other) -> Tensor",
    samples=calls((Arg((2, 2)), Arg((3,)))),
    tolerance="rounded",
)
def kron(self: Tensor, other: Tensor) -> Tensor:
    """Every element of the first tensor times the whole second."""
    rank = max(self.ndim, other.ndim)
    a = aten.reshape(self, ((1,) * (rank - self.ndim) + tuple(self.shape)))
    b = aten.reshape(other, ((1,) * (rank - other.ndim) + tuple(other.shape)))
    left = tuple(n for size in a.shape for n in (size, 1))
    right = tuple(n for size in b.shape for n in (1, size))
    product = aten.reshape(a, left) * aten.reshape(b, right)
    return aten.reshape(product, tuple(m * n for m, n in zip(a.shape, b.shape, strict=True)))


def _cross(a: Tensor, b: Tensor, dim: int) -> Tensor:
    first = aten.roll(a, (-1,), (dim,)) * aten.roll(b, (-2,), (dim,))
    return first - aten.roll(a, (-2,), (dim,)) * aten.roll(b, (-1,), (dim,))


def _is_no_half(a: dict[str, Any]) -> bool:
    return a["self"].dtype not in HALVES


op(
    "_cross(Tensor self, Tensor other, int dim) -> Tensor",
    infer=lambda self, other, dim: self.fresh(),
    lower=_cross,
    # torch rounds both products of halves, which the operator need not.
    aclnn=call("aclnnLinalgCross", when=_is_no_half),
    grad={
        "self": lambda grad, other, dim: aten._cross(aten.conj_of(other), grad, dim),
        "other": lambda grad, self, dim: aten._cross(grad, aten.conj_of(self), dim),
    },
    unsampled="linalg.cross is held against torch",
    tolerance="gradient",
)


@composite(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    unsupported={"bool": "cross"},
    samples=calls((Arg((2, 3)), Arg((2, 3), high=2.5))),
    tolerance="gradient",
    out="expected",
)
def linalg_cross(self: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """The vector product along a dimension of three elements."""
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if self.dtype is not other.dtype:
        ours, its = scalar_name(self.dtype), scalar_name(other.dtype)
        raise RuntimeError(f"expected scalar type {ours} but found {its}")
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    wrap_dim(dim, self.ndim)
    if self.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[dim]} and"
            f" {other.shape[dim]}"
        )
    shape = broadcast(tuple(self.shape), tuple(other.shape))
    if self.shape != shape or other.shape != shape:
        self, other = aten.expand(self, shape), aten.expand(other, shape)
    return aten._cross(self, other, dim)


@composite(
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    unsupported={"bool": "cross"},
    samples=calls((Arg((2, 3)), Arg((2, 3), high=2.5), 1)),
    tolerance="gradient",
    out="expected",
)
def cross(self: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The vector product along a dimension, or along the first of three elements."""
    if dim is None:
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass"
            " the dim explicitly or simply use torch.linalg.cross.\nThe default value of dim will"
            " change to agree with that of linalg.cross in a future release."
        )
        dim = next((i for i, n in enumerate(self.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(self, other, dim)


@composite(
    "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    unsupported={
        "bool whole": Refusal(
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got {dtype}"
        )
    },
    samples=calls((Arg((2, 3)), Arg((2, 3), high=2.5))),
    tolerance="accumulated",
    rule="stored",
    autocast="lower",
)
def vecdot(x: Tensor, y: Tensor, dim: int = -1) -> Tensor:
    """The sum of conj(x) · y along a dimension."""
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type"
            f" {scalar_name(x.dtype)} and y of type {scalar_name(y.dtype)} instead"
        )
    return aten.sum(aten.conj_of(x) * y, dim)


@composite(
    "linalg_vander(Tensor x, *, int? N=None) -> Tensor",
    unsupported={
        "bool half": Refusal(
            "linalg.vander supports floating point, complex, and integer tensors, but got {dtype}"
        )
    },
    samples=calls((Arg((3,)),)),
)
def linalg_vander(x: Tensor, N: int | None = None) -> Tensor:
    """Rising powers of each element, `[…, n, N]`."""
    x = aten.atleast_1d(x)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    x = aten.to(x, dt.int64) if x.dtype is dt.bool else x
    if x.dtype.category == dt.INTEGER:
        x = aten.to(x, dt.int64)
    one = aten.ones_like(aten.unsqueeze(x, -1))
    steps = aten.expand(aten.unsqueeze(x, -1), (*x.shape, count - 1))
    return aten.cat([one, aten.cumprod(steps, -1)], -1)


composite(
    "__rmatmul__(Tensor self, Tensor other) -> Tensor",
    lambda self, other: aten.matmul(other, self),
    samples=calls((Arg((3, 2)), Arg((4, 3)))),
    oracle=lambda torch: torch.Tensor.__rmatmul__,
    tolerance="accumulated",
    fixed_shape=True,
)


_LU_WITH_INFO = named_kind("_lu_with_info", ("LU", "pivots", "info"))


@composite(
    "lu(Tensor self, bool pivot=True, bool get_infos=False) -> Tensor",
    unsupported={"bool whole half": "lu_cpu"},
    samples=calls((SQUARE,), (SQUARE, True)),
    oracle=lambda torch: lambda A, *rest: torch.linalg.lu_factor(A, pivot=all(rest[:1])),
)
def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """The packed factors and pivots, with whether each matrix is singular where asked."""
    _renamed(
        "lu", "linalg.lu_factor / torch.linalg.lu_factor_ex",
        "LU, pivots = torch.lu(A, compute_pivots)",
        "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)",
        "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)",
        "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)",
    )  # fmt: skip
    LU, pivots, infos = aten.linalg_lu_factor_ex(self, pivot=pivot)
    return _LU_WITH_INFO((LU, pivots, infos)) if get_infos else (LU, pivots)


@composite(
    "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    # torch's gradient of vander fails: it writes powers in place that it needs again.
    samples=calls((Arg((3,), grad=False), 4)),
    surface="function",
)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Falling powers of each element of a vector, `[n, N]`."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    wide = aten.to(x, dt.int64) if x.dtype.category < dt.FLOAT else x
    reserve((x.shape[0], count), wide)
    factors = aten.unsqueeze(wide, 1)
    ones = aten.expand(aten.ones_like(factors), (x.shape[0], min(count, 1)))
    rising = aten.cumprod(aten.expand(factors, (x.shape[0], max(count - 1, 0))), 1)
    powers = aten.cat([ones, rising], 1)
    return powers if increasing else aten.flip(powers, (1,))


@composite(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    samples=calls(Sample((Arg((2, 3)), Arg((2,)), Arg((3,))), {"alpha": 2, "beta": 0.5})),
    tolerance="gradient",
    inplace=True,
)
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta · self + alpha · the outer product of two vectors."""
    if vec1.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(
            f"addr: Expected 1-D argument vec{1 if vec1.ndim != 1 else 2}, but got"
            f" {vec1.ndim if vec1.ndim != 1 else vec2.ndim}-D"
        )
    refuse_growth(self.shape, (vec1.shape[0], vec2.shape[0]))
    whole = not any(t.is_floating_point() or t.is_complex() for t in (self, vec1, vec2))
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if whole and isinstance(factor, float):
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )
    product = aten.outer(vec1, vec2)
    if product.dtype is dt.bool:
        product = product if alpha else aten.zeros_like(product)
        return aten.logical_or(product, self) if beta else aten.expand_as(product, product)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return aten.add(product, aten.zeros_like(self)) if self.shape != product.shape else product
    return (self if beta == 1 else self * beta) + product
