"""Rows of torch.linalg made of decompositions and products: norms, ranks, powers, inverses."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from ...._compat.unsupported_dtypes import Refusal
from ...rules import c_name
from ...words import *
from .decompositions import LinAlgError, check_shape, check_system, waited

_SQUARE = Arg((3, 3), values=((4.0, 1.0, 0.5), (1.0, 3.0, -0.5), (0.5, -0.5, 2.0)))


@composite(
    "linalg_matrix_norm(Tensor A, Any ord='fro', int[] dim=[-2, -1], bool keepdim=False, *,"
    " ScalarType? dtype=None) -> Tensor",
    unsupported={
        "bool whole": Refusal(
            "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {dtype}"
        )
    },
    samples=calls((_SQUARE,), (Arg((2, 3)), 1), (Arg((2, 3)), float("-inf"), (0, 1), True)),
    tolerance="accumulated",
)
def matrix_norm(
    A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, dtype: object = None
) -> Any:
    """A norm of the matrices in two dimensions: "fro", "nuc", inf, -inf, 1, -1, 2, -2."""
    rows, columns = _two_dims(A, ord, tuple(dim))
    A = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return aten.linalg_vector_norm(A, 2, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        return _singular_norm(A, ord, rows, columns, keepdim)
    summed, other = (columns, rows) if abs(ord) == float("inf") else (rows, columns)
    totals = aten.sum(aten.abs(A), summed, True)
    norms = _extreme(totals, ord, other, True)
    return norms if keepdim else aten.squeeze(norms, (rows, columns))


def _extreme(values: Tensor, ord: float, dim: int, keepdim: bool = False) -> Tensor:
    """The largest, of none 0, or for a negative order the smallest."""
    if ord < 0:
        return aten.amin(values, dim, keepdim)
    return (aten.amax if values.shape[dim] else aten.sum)(values, dim, keepdim)


_ORDERS = ("fro", "nuc", 1, -1, 2, -2, float("inf"), float("-inf"))


def _two_dims(A: Tensor, ord: Any, dim: tuple[int, ...]) -> tuple[int, ...]:
    """The two dimensions from the front; RuntimeError and IndexError in torch's words."""
    what = "linalg.matrix_norm: "
    if ord not in _ORDERS:
        raise RuntimeError(f"{what}Order {ord} not supported.")
    if A.ndim < 2:
        raise RuntimeError(f"{what}The input tensor A must have at least 2 dimensions.")
    if len(dim) != 2:
        raise RuntimeError(f"{what}dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    if ord in ("nuc", 2, -2) and A.dtype.itemsize == 2:
        raise RuntimeError(f"{what}Low precision dtypes not supported. Got {A.dtype.legacy}")
    rows, columns = (wrap_dim(d, A.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"{what}dims must be different. Got ({rows}, {columns})")
    return rows, columns


def _singular_norm(A: Any, ord: Any, rows: int, columns: int, keepdim: bool) -> Tensor:
    """The norms that are a sum or an extreme of singular values."""
    values = svdvals(aten.movedim(A, (rows, columns), (-2, -1)))
    norms = aten.sum(values, -1) if ord == "nuc" else _extreme(values, ord, -1)
    low, high = sorted((rows, columns))
    return aten.unsqueeze(aten.unsqueeze(norms, low), high) if keepdim else norms


@composite(
    "linalg_norm(Tensor A, Any ord=None, int[1]? dim=None, bool keepdim=False, *,"
    " ScalarType? dtype=None) -> Tensor",
    samples=calls((Arg((3, 4)),), (_SQUARE, 1), (Arg((2, 3)), 3, 1)),
    tolerance="accumulated",
)
def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, dtype: Dtype | None = None
) -> Any:
    """A vector or matrix norm, by how many dimensions are given."""
    two = isinstance(dim, tuple | list) and len(dim) == 2
    if isinstance(dim, tuple | list) and len(dim) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}"
        )
    if dim is None and ord is not None and A.ndim not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got"
            f" {A.ndim}D."
        )
    if ord is not None and (isinstance(ord, str) or two or (dim is None and A.ndim == 2)):
        dims = (-2, -1) if dim is None else (dim,) if isinstance(dim, int) else dim
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype)
    return aten.linalg_vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@composite(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    autocast="float32 on cpu",
    unsupported={"half": "lu_cpu"},
    samples=calls((_SQUARE, Arg((3, 2))), Sample((_SQUARE, Arg((2, 3))), {"left": False})),
    out="expected",
)
def solve(A: Tensor, B: Tensor, left: bool = True) -> Tensor:
    """X with A X = B (X A = B when not `left`); LinAlgError for a singular A."""
    if left:
        return aten._linalg_solve(A, B)
    check_system(A, B, left)
    return aten._linalg_solve(A.mT, B.mT).mT


@composite(
    "linalg_cholesky(Tensor A, *, bool upper=False) -> Tensor",
    autocast="float32 on cpu",
    unsupported={"half": "cholesky_cpu"},
    samples=calls(
        (Arg((2, 2), values=((2.0, 0.5), (0.5, 1.0)), grad=False),),
        Sample((Arg((2, 2), values=((2.0, 0.5), (0.5, 1.0)), grad=False),), {"upper": True}),
    ),
    out="expected",
)
def cholesky(A: Tensor, upper: bool = False) -> Tensor:
    """L with A = L Lᵀ; LinAlgError for an A that is not positive-definite."""
    lower = waited("linalg.cholesky", np.linalg.cholesky, aten._linalg_cholesky(A), A)
    return aten.conj_of(aten.contiguous(lower).mT) if upper else lower


@composite(
    "linalg_eigvalsh(Tensor A, str UPLO='L') -> Tensor",
    # Differences of one element leave the symmetric matrices, of which one triangle is read.
    autocast="float32 on cpu",
    unsupported={"bool whole half": "linalg_eigh_cpu"},
    samples=calls((replace(_SQUARE, grad=False),)),
    out="expected",
)
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues, rising, of symmetric matrices."""
    try:
        return aten.linalg_eigh(A, UPLO)[0]
    except LinAlgError as error:  # LAPACK counts one less without vectors
        text, _, code = str(error).rpartition(" ")
        raise LinAlgError(f"{text} {int(code[:-2]) - 1}).") from None


@composite(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    autocast="float32 on cpu",
    unsupported={"half": "linalg_svd_cpu"},
    samples=calls((_SQUARE,), (Arg((3, 2)),)),
    out="expected",
)
def svdvals(A: Tensor, driver: str | None = None) -> Tensor:
    """Singular values, falling."""
    return aten.linalg_svd(A, False, driver=driver)[1]


@composite(
    "linalg_matrix_power(Tensor A, int n) -> Tensor",
    samples=calls((_SQUARE, 3), (_SQUARE, 0), (Arg((2, 3, 3)), 2)),
    out="expected",
)
def matrix_power(A: Tensor, n: int) -> Tensor:
    """A to the `n`-th power; of its inverse for a negative one."""
    check_shape("linalg.matrix_power", A._geom)
    if n < 0:
        return matrix_power(aten.linalg_inv(A), -n)
    if not n:
        return aten.diag_embed(aten.ones_like(aten.select(A, -1, 0)))
    if n == 1:
        return aten.clone(A)
    while not n & 1:
        A, n = A @ A, n >> 1
    result, square = A, A
    while n := n >> 1:
        square = square @ square
        if n & 1:
            result = result @ square
    return result


def _refuse_chain(tensors: tuple[Tensor, ...]) -> None:
    """RuntimeError in torch's words for tensors that make no chain of products."""
    last = len(tensors) - 1
    if last < 1:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {last + 1}")
    for at, t in enumerate(tensors):
        ranks = (1, 2) if at in (0, last) else (2,)
        if t.ndim not in ranks:
            expected = " or ".join(f"{r}D" for r in ranks)
            which = {0: "the first tensor", last: "the last tensor"}.get(at, f"tensor {at}")
            raise RuntimeError(f"multi_dot(): {which} must be {expected} but got {t.ndim}D")
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is"
                f" {c_name(tensors[0].dtype)} and tensor {at} {c_name(t.dtype)}"
            )
    for at, (t, after) in enumerate(pairwise(tensors)):
        if t.shape[-1] != after.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {at} and {at + 1} with shapes {list(t.shape)} and"
                f" {list(after.shape)} cannot be multiplied"
            )


def _cheapest(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """After which matrix of a chain to split each part of it; of equal ones torch's, which is the
    first, and of three matrices the last.

    Cormen et al., "Introduction to Algorithms", 15.2; `sizes` are rows, and last columns.
    """
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = {
                k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in (range(i, j) if n > 3 else reversed(range(i, j)))
            }
            at = split[i, j] = min(costs, key=costs.__getitem__)
            cost[i, j] = costs[at]
    return split


@composite(
    "linalg_multi_dot(Tensor[] tensors) -> Tensor",
    samples=calls(([Arg((2, 3)), Arg((3, 4)), Arg((4, 2))],)),
    tolerance="accumulated",
    rule="products",
)
def multi_dot(tensors: tuple[Tensor, ...]) -> Tensor:
    """The product of several matrices, in the order that costs least."""
    _refuse_chain(tensors)
    first, *_, last = tensors
    ends = [t.shape[at] if t.ndim > 1 else 1 for t, at in ((first, 0), (last, 1))]
    split = _cheapest([ends[0], *(t.shape[0] for t in tensors[1:]), ends[1]])

    def product(first: int, last: int) -> Tensor:
        if first == last:
            return tensors[first]
        at = split[first, last]
        return product(first, at) @ product(at + 1, last)

    return product(0, len(tensors) - 1)


composite(
    "linalg_matmul(Tensor input, Tensor other) -> Tensor",
    lambda input, other: input @ other,
    summary="Matrix product `[*, M, K] @ [*, K, N] → [*, M, N]`.",
    samples=calls((Arg((2, 3)), Arg((3, 2)))),
    tolerance="accumulated",
    out="expected",
)
composite(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    lambda A, offset=0, dim1=-2, dim2=-1: aten.diagonal(A, offset, dim1, dim2),
    summary="A view of the diagonal of the last two dimensions.",
    samples=calls((Arg((3, 4)),), Sample((Arg((2, 3, 4)),), {"offset": 1})),
    tolerance="exact",
)
