"""Rows of eigenvalues of any matrices, and of symmetric indefinite factors; on cpu by LAPACK."""

from __future__ import annotations

from dataclasses import replace

from ...words import *
from ..move.joining import lower_triangle
from .decompositions import _SIGNS, WORK, _t, check_square, column_major, lapack

SQUARE = Arg((3, 3), values=((4.0, 1.0, 0.5), (1.0, 3.0, -0.5), (0.5, -0.5, 2.0)))
_NPU = {"npu": "CANN has no eigenvalues of matrices that are not symmetric"}
_LDL = {"npu": "CANN has no LDL factors"}


def _refuse_whole(dtype: Dtype) -> None:
    if dtype.category < dt.FLOAT:
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(dtype)}")


def _eig_infer(A: Geometry) -> tuple[Geometry, Geometry]:
    _refuse_whole(A.dtype)
    check_square("linalg.eig", A)
    kind = A.dtype.to_complex()
    return A.fresh(A.shape[:-1], kind), A.fresh(A.shape, kind, column_major(A.shape))


def _finite(A: Array) -> Array:
    if not np.all(np.isfinite(A)):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return A


def _eig_grad(
    grads: tuple[Tensor, ...], A: Tensor, eigenvalues: Tensor, eigenvectors: Tensor
) -> Tensor:
    """Giles (2008), 3.1, with vectors of length one: Boeddeker et al. (2017), 4.77 to 4.78."""
    by_value, by_vector = grads
    V = eigenvectors
    inner = _t(V) @ by_vector
    lengths = aten.to(aten.real(aten.diagonal(inner, 0, -2, -1)), V.dtype)
    inner = inner - _t(V) @ (V * aten.unsqueeze(lengths, -2))
    gaps = aten.unsqueeze(eigenvalues, -2) - aten.unsqueeze(eigenvalues, -1)
    eye = aten.diag_embed(aten.ones_like(eigenvalues))
    inner = inner / (aten.conj_of(gaps) + eye)
    inner = inner * (1 - eye) + aten.diag_embed(by_value)
    result = aten.linalg_solve(_t(V), inner @ _t(V))
    return result if A.is_complex() else aten.real(result)


op(
    "linalg_eig(Tensor A) -> (Tensor eigenvalues, Tensor eigenvectors)",
    summary="Eigenvalues and eigenvectors of square matrices `[*, N, N]`, complex.",
    infer=_eig_infer,
    cpu=lambda A: tuple(np.linalg.eig(_finite(A))),
    grad={"A": _eig_grad},
    unsupported={"half": "linalg_eig_out_cpu"},
    autocast="float32 on cpu",
    unsampled=_SIGNS,
    absent=_NPU,
)


def _eigvals(A: Tensor) -> Tensor:
    _refuse_whole(A.dtype)
    check_square("linalg.eigvals", A._geom)
    values: Tensor = aten.linalg_eig(A)[0]
    return values


composite(
    "linalg_eigvals(Tensor A) -> Tensor",
    _eigvals,
    summary="Eigenvalues of square matrices: `[*, N, N] → [*, N]`, complex.",
    unsupported={"half": "linalg_eig_out_cpu"},
    samples=calls((SQUARE,)),
    autocast="float32 on cpu",
    absent=_NPU,
)


def _ldl_infer(self: Geometry, hermitian: bool = False, check_errors: bool = False) -> Any:
    check_square("torch.linalg.ldl_factor_ex", self)
    return (
        self.fresh(self.shape, None, column_major(self.shape)),
        self.fresh(self.shape[:-1], dt.int32),
        self.fresh(self.shape[:-2], dt.int32),
    )


def _routine(name: str, A: Array, hermitian: bool) -> Any:
    return lapack(("he" if hermitian and A.dtype.kind == "c" else "sy") + name, A.dtype)


def _ldl(self: Array, hermitian: bool, check_errors: bool) -> tuple[Array, ...]:
    n = self.shape[-1]
    if self.ndim == 2 and n:
        ld, pivots, code = _routine("trf", self, hermitian)(self, lower=1, lwork=WORK * n)
        return lower_triangle(ld), pivots.astype(np.int32, copy=False), np.asarray(code, np.int32)
    built, pivots, info = [], [], []
    for a in self.reshape(-1, n, n) if n else ():
        ld, piv, code = _routine("trf", a, hermitian)(a, lower=1)
        built.append(lower_triangle(ld))
        pivots.append(np.asarray(piv))
        info.append(code)
    batch = self.shape[:-2]
    return (
        np.array(built, self.dtype).reshape(self.shape),
        np.array(pivots, np.int32).reshape(*batch, n),
        np.array(info if n else [0] * int(np.prod(batch)), np.int32).reshape(batch),
    )


op(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False)"
    " -> (Tensor LD, Tensor pivots, Tensor info)",
    summary="LDL factors of Hermitian matrices `[*, N, N]`, pivots and `info`.",
    infer=_ldl_infer,
    cpu=_ldl,
    unsupported={"half": "ldl_factor_kernel_cpu"},
    samples=calls((SQUARE,)),
    absent=_LDL,
)
composite(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    lambda self, hermitian=False: aten.linalg_ldl_factor_ex(self, hermitian=hermitian)[:2],
    summary="LDL factors of Hermitian matrices `[*, N, N]`, and pivots.",
    unsupported={"half": "ldl_factor_kernel_cpu"},
    samples=calls((replace(SQUARE, grad=False),)),
    absent=_LDL,
)


def _ldl_solve(LD: Array, pivots: Array, B: Array, hermitian: bool, *, out: Geometry) -> Array:
    n, k = B.shape[-2:]
    batch = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    count = int(np.prod(batch))
    factors = np.broadcast_to(LD, (*batch, n, n)).reshape(count, n, n)
    places = np.broadcast_to(pivots, (*batch, n)).reshape(count, n)
    right = np.broadcast_to(B, (*batch, n, k)).reshape(count, n, k)
    solve = _routine("trs", LD, hermitian)
    each = zip(factors, places, right, strict=True) if n and k else ()
    built = [solve(a, p, b, lower=1)[0] for a, p, b in each]
    return np.array(built, LD.dtype).reshape(out.shape) if built else np.zeros(out.shape, LD.dtype)


def _ldl_solve_infer(
    LD: Geometry, pivots: Geometry, B: Geometry, hermitian: bool = False
) -> Geometry:
    from ...rules import broadcast, wrap_dim

    check_square("torch.linalg.ldl_solve", LD)
    wrap_dim(-2, B.ndim)
    shape = (*broadcast(LD.shape[:-2], B.shape[:-2]), *B.shape[-2:])
    return B.fresh(shape, None, column_major(shape))


op(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    summary="Solution of `A X = B` from LDL factors of A.",
    infer=_ldl_solve_infer,
    cpu=_ldl_solve,
    unsupported={"half": "ldl_solve_kernel_cpu"},
    samples=calls(Sample((SQUARE, Arg((3,), "int32", values=(1, 2, 3)), Arg((3, 2))))),
    out="expected",
    absent=_LDL,
)
