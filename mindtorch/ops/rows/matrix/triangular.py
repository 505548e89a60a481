"""Rows of triangular systems, LU factors, and of solutions by them."""

from __future__ import annotations

from math import prod

from ...._compat.warn_once import warn_once
from ...._tensor.host_values import host_values
from ...rules import broadcast
from ...words import *
from .decompositions import (
    _t,
    check_matrices,
    check_shape,
    check_square,
    column_major,
    each_matrix,
    in_columns,
    lapack,
)

SQUARE = Arg((3, 3), values=((4.0, 1.0, 0.5), (1.0, 3.0, -0.5), (0.5, -0.5, 2.0)))


def _triangle(t: Any, upper: bool, unit: bool, library: Any) -> Any:
    part = library.triu(t, 1 if unit else 0) if upper else library.tril(t, -1 if unit else 0)
    return part


def _solve_infer(
    A: Geometry, B: Geometry, upper: bool, left: bool = True, unitriangular: bool = False
) -> Geometry:
    check_square("linalg.solve_triangular", A)
    for g in (B,):
        if g.ndim < 2:
            raise RuntimeError(
                "linalg.solve_triangular: The input tensor B must have at least 2 dimensions."
            )
    rows = B.shape[-2] if left else B.shape[-1]
    if rows != A.shape[-1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.solve_triangular: Incompatible shapes of A and B for the equation {equation}"
            f" ({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )
    shape = (*broadcast(A.shape[:-2], B.shape[:-2]), *B.shape[-2:])
    return A.fresh(shape, None, column_major(shape))


_FEW_MATRICES = 8  # of which each costs less alone than the columns or rows of all


def _substitute(A: Array, B: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    """By BLAS, of batches row by row; a zero on the diagonal gives infinities."""
    if A.ndim == B.ndim == 2 and A.size and B.size:
        by_rows = A.flags.c_contiguous  # which Fortran would copy: it is the transpose of one
        return lapack("trsm", A.dtype)(
            1.0, A.T if by_rows else A, B, side=not left, lower=upper if by_rows else not upper,
            trans_a=by_rows, diag=unitriangular,
        )  # fmt: skip
    if not left:
        flipped = _substitute(
            A.swapaxes(-1, -2), B.swapaxes(-1, -2), not upper, True, unitriangular
        )
        return np.ascontiguousarray(flipped.swapaxes(-1, -2))
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    shape = (*batch, *B.shape[-2:])
    if A.size and B.size and prod(batch) <= _FEW_MATRICES:
        A, B = np.broadcast_to(A, (*batch, *A.shape[-2:])), np.broadcast_to(B, shape)
        x = np.empty(shape, np.result_type(A, B))
        for at in np.ndindex(batch):
            x[at] = _substitute(A[at], B[at], upper, True, unitriangular)
        return x
    x = np.broadcast_to(B, shape).astype(np.result_type(A, B), copy=True)
    n = A.shape[-1]
    for i in range(n - 1, -1, -1) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        row = A[..., i : i + 1, known] @ x[..., known, :]
        x[..., i : i + 1, :] -= row
        if not unitriangular:
            x[..., i : i + 1, :] /= A[..., i : i + 1, i : i + 1]
    return x


def _by_triangular_solve(
    A: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool
) -> Tensor:
    if not left:
        return aten.transpose(
            _by_triangular_solve(
                aten.transpose(A, -1, -2), aten.transpose(B, -1, -2), not upper, True, unitriangular
            ),
            -1, -2,
        )  # fmt: skip
    batch = broadcast(tuple(A.shape[:-2]), tuple(B.shape[:-2]))
    a, b = (aten.contiguous(aten.expand(t, (*batch, *t.shape[-2:]))) for t in (A, B))
    return in_columns(aten._triangular_solve(b, a, upper, False, unitriangular)[0])


def _back(grad: Tensor, A: Tensor, upper: bool, left: bool, unitriangular: bool) -> Tensor:
    return aten.linalg_solve_triangular(
        _t(A), grad, upper=not upper, left=left, unitriangular=unitriangular
    )


def _by_a(
    grad: Tensor, A: Tensor, result: Tensor, upper: bool, left: bool, unitriangular: bool
) -> Tensor:
    by_b = _back(grad, A, upper, left, unitriangular)
    product = by_b @ _t(result) if left else _t(result) @ by_b
    return -_triangle(product, upper, unitriangular, aten)


op(
    "_triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False,"
    " bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    infer=lambda self, A, *_: tuple(
        g.fresh(g.shape, None, column_major(g.shape)) for g in (self, A)
    ),
    cpu=lambda self, A, upper, transpose, unitriangular: (
        _substitute(A.swapaxes(-1, -2) if transpose else A, self, upper != transpose, True,
                    unitriangular), A.copy(),
    ),
    aclnn=call("aclnnTriangularSolve"),
    unsupported={"bool whole half": "triangular_solve_cpu"}, samples=calls((Arg((3, 2)), SQUARE)),
    oracle=lambda torch: torch.triangular_solve,
)  # fmt: skip
op(
    "linalg_solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True,"
    " bool unitriangular=False) -> Tensor",
    summary="Solution of `A X = B` with a triangular A `[*, N, N]`.",
    infer=_solve_infer,
    cpu=_substitute,
    lower=_by_triangular_solve,
    grad={
        "A": _by_a,
        "B": lambda grad, A, upper, left, unitriangular: _back(grad, A, upper, left, unitriangular),
    },
    unsupported={"bool whole half": "triangular_solve_cpu"},
    samples=calls(Sample((SQUARE, Arg((3, 2))), {"upper": True})),
)


@composite(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False,"
    " bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    unsupported={"bool whole half": "triangular_solve_cpu"},
    samples=calls((Arg((3, 2)), SQUARE)),
    surface="both",
)
def triangular_solve(
    self: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    """X with A X = self for a triangle of A, and a copy of A."""
    if self.dtype is not A.dtype:
        raise RuntimeError(
            "Expected b and A to have the same dtype, but found b of type"
            f" {scalar_name(self.dtype)} and A of type {scalar_name(A.dtype)} instead."
        )
    warn_once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be"
        " removed in a future PyTorch release.\ntorch.linalg.solve_triangular has its arguments"
        " reversed and does not return a copy of one of the inputs.\nX ="
        " torch.triangular_solve(B, A).solution\nshould be replaced with\nX ="
        " torch.linalg.solve_triangular(A, B)."
    )
    for what, matrix in (("b", self), ("A", A)):
        if matrix.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {what} to have at least 2 dimensions, but it has"
                f" {matrix.ndim} dimensions instead"
            )
    m, n = A.shape[-2:]
    if m != n:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {m} by {n} matrices"
        )
    if self.shape[-2] != n:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {n} by {n} but each"
            f" b matrix is {self.shape[-2]} by {self.shape[-1]}"
        )
    rotation = _t(A) if transpose else A
    result = aten.linalg_solve_triangular(
        rotation, self, upper=upper != transpose, unitriangular=unitriangular
    )
    batch = tuple(result.shape[:-2])
    return result, in_columns(aten.expand(A, (*batch, *A.shape[-2:])))


def _refuse_line(name: str, A: Geometry) -> None:
    if A.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead"
        )


def _lu_infer(A: Geometry, pivot: bool = True, check_errors: bool = False) -> Any:
    _refuse_line("torch.lu_factor", A)
    check_matrices("torch.lu_factor", A)
    if not pivot and A.device.type == "cpu":
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    k = min(A.shape[-2:])
    return (
        A.fresh(A.shape, None, column_major(A.shape)),
        A.fresh((*A.shape[:-2], k), dt.int32),
        A.fresh(A.shape[:-2], dt.int32),
    )


def _lu_cpu(A: Array, pivot: bool, check_errors: bool) -> tuple[Array, ...]:
    """LAPACK's factors; without pivots, and of many matrices, Doolittle's columns."""
    if not pivot or not A.size or A.size > A.shape[-1] * A.shape[-2] * _FEW_MATRICES:
        return _by_columns(A, pivot, check_errors)
    if A.ndim > 2:
        return each_matrix(_lu_cpu, A, pivot, check_errors)
    built, pivots, info = lapack("getrf", A.dtype)(A)
    check_info("torch.linalg.lu_factor_ex", info, check_errors)
    return built, (pivots + 1).astype(np.int32, copy=False), np.asarray(info, np.int32)


def _by_columns(A: Array, pivot: bool, check_errors: bool) -> tuple[Array, ...]:
    """Doolittle's columns with the largest element as pivot, for all matrices at once."""
    built, (m, n) = A.copy(), A.shape[-2:]
    k = min(m, n)
    flat = built.reshape(prod(A.shape[:-2]), m, n)
    pivots = np.tile(np.arange(1, k + 1, dtype=np.int32), (flat.shape[0], 1))
    info = np.zeros(flat.shape[0], np.int32)
    each = np.arange(flat.shape[0])
    for i in range(k):
        if pivot:
            size = np.abs(flat[:, i:, i].real) + np.abs(flat[:, i:, i].imag)
            best = size.argmax(1) + i
            flat[each, i], flat[each, best] = flat[each, best], flat[each, i].copy()
            pivots[:, i] = best + 1
        head = flat[:, i, i]
        info[(head == 0) & (info == 0)] = i + 1
        safe = np.where(head == 0, 1, head)[:, None]
        flat[:, i + 1 :, i] /= safe
        flat[:, i + 1 :, i + 1 :] -= flat[:, i + 1 :, i, None] * flat[:, i, None, i + 1 :]
    check_info("torch.linalg.lu_factor_ex", info, check_errors)
    batch = A.shape[:-2]
    return flat.reshape(A.shape), pivots.reshape(*batch, k), info.reshape(batch)


def check_info(name: str, info: Any, check_errors: bool = True) -> None:
    """RuntimeError for the first matrix of which a pivot is zero."""
    if not check_errors:
        return
    for at, row in enumerate(np.ravel(info).tolist()):
        if row > 0:
            place = f"(Batch element {at}): " * bool(np.ndim(info))
            raise RuntimeError(
                f"{name}: {place}U[{row},{row}] is zero and using it on lu_solve would result in a"
                " division by zero. If you still want to perform the factorization, consider"
                " calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
            )


def _lu_lower(A: Tensor, pivot: bool, check_errors: bool) -> tuple[Tensor, ...]:
    """The same columns in ops; which rows are exchanged stays on the device."""
    m, n = A.shape[-2:]
    k = min(m, n)
    rows = aten.arange(0, m, device=A.device)
    pivots = []
    info = aten.zeros(tuple(A.shape[:-2]), dtype=dt.int32, device=A.device)
    for i in range(k):
        best = aten.full(tuple(A.shape[:-2]), i, dtype=dt.int64, device=A.device)
        if pivot:
            size = aten.abs(aten.narrow(aten.select(A, -1, i), -1, i, m - i))
            best = aten.argmax(size, -1) + i
            other = aten.unsqueeze(best, -1)
            order = aten.where(rows == i, other, aten.where(rows == other, i, rows))
            places = aten.expand(aten.unsqueeze(order, -1), tuple(A.shape))
            A = aten.gather(A, -2, places)
        head = aten.narrow(aten.narrow(A, -2, i, 1), -1, i, 1)
        zero = aten.squeeze(aten.squeeze(head == 0, -1), -1)
        info = aten.where(aten.logical_and(zero, info == 0), aten.full_like(info, i + 1), info)
        safe = aten.where(head == 0, aten.ones_like(head), head)
        below = aten.unsqueeze(rows > i, -1)
        column = aten.narrow(A, -1, i, 1)
        factors = aten.where(below, column / safe, aten.zeros_like(column))
        right = aten.unsqueeze(aten.arange(0, n, device=A.device) > i, 0)
        row = aten.narrow(A, -2, i, 1)
        lower = factors * aten.where(right, row, aten.zeros_like(row))
        at = aten.logical_and(below, aten.unsqueeze(aten.arange(0, n, device=A.device) == i, 0))
        A = aten.where(at, factors, A - lower)
        pivots.append(best + 1)
    empty = aten.zeros((*A.shape[:-2], 0), dtype=dt.int32, device=A.device)
    result = aten.to(aten.stack(pivots, -1), dt.int32) if pivots else empty
    if check_errors:
        check_info("torch.linalg.lu_factor_ex", info.tolist())
    return in_columns(A), result, info


def _lu_grad(grad_LU: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """Tall, wide and square matrices by one formula: blocks outside the square one follow."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    lower, upper = _lower_of(LU), _upper_of(LU)
    by_l, by_u = aten.tril(grad_LU, -1), aten.triu(grad_LU)
    l1, u1 = aten.narrow(lower, -2, 0, k), aten.narrow(upper, -1, 0, k)
    left = _t(l1) @ aten.narrow(aten.narrow(by_l, -2, 0, k), -1, 0, k)
    right = aten.narrow(aten.narrow(by_u, -1, 0, k), -2, 0, k) @ _t(u1)
    if n > k:
        extra = aten.narrow(aten.narrow(by_u, -1, k, n - k), -2, 0, k)
        left = left - extra @ _t(aten.narrow(upper, -1, k, n - k))
    if m > k:
        tall = aten.narrow(aten.narrow(by_l, -2, k, m - k), -1, 0, k)
        right = right - _t(aten.narrow(lower, -2, k, m - k)) @ tall
    inner = aten.tril(left, -1) + aten.triu(right)
    inner = aten.linalg_solve_triangular(_t(l1), inner, upper=True, unitriangular=True)
    result = aten.linalg_solve_triangular(_t(u1), inner, upper=False, left=False)
    if n > k:
        other = aten.linalg_solve_triangular(_t(l1), extra, upper=True, unitriangular=True)
        result = aten.cat([result, other], -1)
    if m > k:
        other = aten.linalg_solve_triangular(_t(u1), tall, upper=False, left=False)
        result = aten.cat([result, other], -2)
    return aten.gather(result, -2, _rows(aten.argsort(permutation(pivots, m), -1), result))


def _rows(order: Tensor, like: Tensor) -> Tensor:
    """Places for a gather that takes whole rows in an order."""
    return aten.expand(aten.unsqueeze(order, -1), tuple(like.shape))


def _order(pivots: Tensor, m: int) -> Tensor:
    batch = tuple(pivots.shape[:-1])
    rows = aten.arange(0, m, device=pivots.device)
    order = aten.expand(rows, (*batch, m))
    for i in range(pivots.shape[-1]):
        other = aten.to(aten.narrow(pivots, -1, i, 1), dt.int64) - 1
        swapped = aten.where(rows == i, other, aten.where(rows == other, i, rows))
        order = aten.gather(order, -1, aten.expand(swapped, (*batch, m)))
    return aten.clone(order)


def pivots_outside() -> RuntimeError:
    """torch's error for pivots that name no row."""
    return RuntimeError(
        "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you"
        " properly pass the result of lu_factor?"
    )


def _order_cpu(pivots: Array, m: int) -> Array:
    if pivots.size and (pivots.min() < 1 or pivots.max() > m):
        raise pivots_outside()
    exchanges = pivots.reshape(prod(pivots.shape[:-1]), pivots.shape[-1]).astype(np.int64) - 1
    order = np.tile(np.arange(m), (len(exchanges), 1))
    each = np.arange(len(exchanges))
    for i, other in enumerate(exchanges.T):
        order[each, other], order[:, i] = order[:, i].copy(), order[each, other]
    return order.reshape(*pivots.shape[:-1], m)


op(
    "_rows_of_pivots(Tensor pivots, int m) -> Tensor",
    infer=lambda pivots, m: pivots.fresh((*pivots.shape[:-1], m), dtype=dt.int64),
    bounds=lambda pivots, m: [(0, 1, m + 1)],
    cpu=_order_cpu,
    lower=_order,
    grad={},
    unsampled="its arguments are pivots of a factorization: the rows of linalg_lu run it",
    tolerance="exact",
    fixed_shape=True,
)


def permutation(pivots: Tensor, m: int) -> Tensor:
    """Which row of A each row of L U is, from the exchanges that LAPACK counts from one."""
    return aten._rows_of_pivots(pivots, m)


def _lower_of(LU: Tensor) -> Tensor:
    m, n = LU.shape[-2:]
    k = min(m, n)
    part = aten.tril(aten.narrow(LU, -1, 0, k), -1)
    return part + aten.eye(m, k, dtype=LU.dtype, device=LU.device)


def _upper_of(LU: Tensor) -> Tensor:
    return aten.triu(aten.narrow(LU, -2, 0, min(LU.shape[-2:])))


op(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False)"
    " -> (Tensor LU, Tensor pivots, Tensor info)",
    summary="LU factors of `[*, M, N]`, pivots and `info`.",
    infer=_lu_infer,
    cpu=_lu_cpu,
    lower=_lu_lower,
    grad={"A": _lu_grad},
    unsupported={"bool whole half": "lu_cpu"},
    samples=calls((SQUARE,), (Arg((4, 2)),)),
)


@composite(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    unsupported={"bool whole half": "lu_cpu"},
    samples=calls((SQUARE,)),
)
def lu_factor(A: Tensor, pivot: bool = True) -> tuple[Tensor, Tensor]:
    """L and U in one matrix, and the exchanges of rows."""
    LU, pivots, info = aten.linalg_lu_factor_ex(A, pivot=pivot)
    if info.device.type != "meta":  # as torch_npu, it waits for the device
        check_info("torch.linalg.lu_factor", info.tolist())
    return LU, pivots


@composite(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True)"
    " -> (Tensor P, Tensor L, Tensor U)",
    samples=calls((SQUARE, Arg((3,), "int32", values=(2, 2, 3)))),
    tolerance="exact",
    surface="function",
)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, ...]:
    """P, L and U; empty tensors for what is not asked for."""
    if LU_pivots.dtype is not dt.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32"
            " dtype.\nNote: this function is intended to be used with the output produced by"
            " torch.linalg.lu_factor"
        )
    empty = aten.zeros((0,), dtype=LU_data.dtype, device=LU_data.device)
    P, L, U = empty, empty, empty
    if unpack_pivots:
        m = LU_data.shape[-2]
        order = permutation(LU_pivots, m)
        eye = aten.eye(m, m, dtype=LU_data.dtype, device=LU_data.device)
        P = aten.transpose(eye[order] if order.ndim else eye, -1, -2)
        P = aten.contiguous(P)
    if unpack_data:
        L, U = _lower_of(LU_data), _upper_of(LU_data)
    return P, L, U


@composite(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    unsupported={"bool whole half": "lu_cpu"},
    samples=calls((SQUARE,)),
)
def lu(A: Tensor, pivot: bool = True) -> tuple[Tensor, ...]:
    """A = P L U; an empty P without pivots."""
    _refuse_line("linalg.lu", A._geom)
    LU, pivots, _ = aten.linalg_lu_factor_ex(A, pivot=pivot)
    return lu_unpack(LU, pivots, True, pivot)


def _check_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool) -> None:
    """RuntimeError in torch's words for factors, pivots and sides that do not go together."""
    name = "linalg.lu_solve"
    if B.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if LU.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected LU and B to have the same dtype, but found LU of type"
            f" {scalar_name(LU.dtype)} and B of type {scalar_name(B.dtype)} instead"
        )
    check_shape(f"torch.{name}", LU._geom)
    n = LU.shape[-1]
    if pivots.shape[-1:] != (n,):
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix"
        )
    if tuple(pivots.shape) != tuple(LU.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with"
            f" shape {list(pivots.shape)} instead"
        )
    if B.shape[-2 if left else -1] != n:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation"
            f" {'AX' if left else 'XA'} = B ({n}x{n} and {B.shape[-2]}x{B.shape[-1]})"
        )
    known = host_values(pivots)
    if known is not None and known.numel() and int(aten.max(known).item()) > n:
        raise RuntimeError(
            "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly"
            " pass the result of lu_factor?"
        )


@composite(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False)"
    " -> Tensor",
    unsupported={"half": "linalg.lu_solve_cpu"},
    samples=calls((SQUARE, Arg((3,), "int32", values=(2, 2, 3)), Arg((3, 2)))),
    out="expected",
)
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with A X = B (or X A = B) for the A that has these factors; with Aᴴ for `adjoint`."""
    if pivots.dtype is not dt.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    _check_lu_solve(LU, pivots, B, left)
    if not left:
        return _t(lu_solve(LU, pivots, _t(B), True, not adjoint))
    batch = broadcast(tuple(LU.shape[:-2]), tuple(B.shape[:-2]))
    LU, B = (aten.expand(t, (*batch, *t.shape[-2:])) for t in (LU, B))
    order = aten.expand(permutation(pivots, LU.shape[-2]), (*batch, LU.shape[-2]))
    solve = aten.linalg_solve_triangular
    if adjoint:
        result = solve(_t(LU), B, upper=False)
        result = solve(_t(LU), result, upper=True, unitriangular=True)
        return aten.gather(result, -2, _rows(aten.argsort(order, -1), result))
    moved = aten.gather(B, -2, _rows(order, B))
    return solve(LU, solve(LU, moved, upper=False, unitriangular=True), upper=True)


def _lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    warn_once(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a"
        " future PyTorch release.\nNote that torch.linalg.lu_solve has its arguments reversed.\n"
        "X = torch.lu_solve(B, LU, pivots)\nshould be replaced with\n"
        "X = torch.linalg.lu_solve(LU, pivots, B)"
    )
    return lu_solve(LU_data, LU_pivots, self)


composite(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    _lu_solve,
    summary="Solution of `A X = self` from LU factors of A.",
    unsupported={"half": "linalg.lu_solve_cpu"},
    samples=calls((Arg((3, 2)), SQUARE, Arg((3,), "int32", values=(2, 2, 3)))),
    autocast="float32 on cpu",
    out="expected",
    surface="both",
)
