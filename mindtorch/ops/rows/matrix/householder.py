"""Rows of Householder reflections: the factors of QR, and products by them."""

from __future__ import annotations

from ...._compat.unsupported_dtypes import dtypes
from ...rules import broadcast, refuse_dtype
from ...words import *
from .decompositions import _t, column_major, in_columns, reflectors
from .triangular import SQUARE


def _reflections_of(A: Tensor, tau: Tensor, adjoint: bool) -> list[tuple[int, Tensor, Tensor]]:
    """Each with its number, vector `[…, m, 1]` and factor `[…, 1, 1]`, the first to act ahead."""
    rows, parts = aten.arange(0, A.shape[-2], device=A.device), []
    for i in range(tau.shape[-1]):
        column = aten.select(A, -1, i)
        zero, one = aten.zeros_like(column), aten.ones_like(column)
        v = aten.where(rows > i, column, aten.where(rows == i, one, zero))
        factor = aten.unsqueeze(aten.narrow(tau, -1, i, 1), -1)
        parts.append((i, aten.unsqueeze(v, -1), aten.conj_of(factor) if adjoint else factor))
    return parts if adjoint else parts[::-1]


def _reflect(A: Tensor, tau: Tensor, other: Tensor, adjoint: bool) -> Tensor:
    """Π (I - τ v vᴴ), or its adjoint, times a matrix, from the right end."""
    for _, v, factor in _reflections_of(A, tau, adjoint):
        other = other - factor * (v @ (_t(v) @ other))
    return in_columns(other)


def _reflect_grad(
    grad: Tensor, A: Tensor, tau: Tensor, other: Tensor, adjoint: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Back through B' = B - τ v vᴴ B, the last reflection first; columns above v give nothing."""
    steps, before = _reflections_of(A, tau, adjoint), [other]
    for _, v, factor in steps:
        before.append(before[-1] - factor * (v @ (_t(v) @ before[-1])))
    by_a: list[Tensor] = [aten.zeros_like(aten.narrow(A, -1, i, 1)) for i in range(A.shape[-1])]
    by_tau: list[Tensor] = [aten.zeros_like(aten.narrow(tau, -1, i, 1)) for i in range(len(steps))]
    rows = aten.unsqueeze(aten.arange(0, A.shape[-2], device=A.device), -1)
    for (i, v, factor), b in zip(reversed(steps), before[-2::-1], strict=True):
        w, u = _t(v) @ b, _t(v) @ grad
        by_v = -(aten.conj_of(factor) * (grad @ _t(w)) + factor * (b @ _t(u)))
        by_a[i] = aten.where(rows > i, by_v, aten.zeros_like(by_v))
        by_factor = -aten.sum(aten.conj_of(w) * u, -1)
        by_tau[i] = aten.conj_of(by_factor) if adjoint else by_factor
        grad = grad - aten.conj_of(factor) * (v @ u)
    slopes = aten.cat(by_tau, -1) if by_tau else aten.zeros_like(tau)
    return aten.cat(by_a, -1), slopes, grad


def _reflect_infer(A: Geometry, tau: Geometry, other: Geometry, adjoint: bool) -> Geometry:
    shape = (*broadcast(A.shape[:-2], other.shape[:-2]), *other.shape[-2:])
    return A.fresh(shape, None, column_major(shape))


op(
    "_reflected(Tensor A, Tensor tau, Tensor other, bool adjoint=False) -> Tensor",
    infer=_reflect_infer,
    lower=_reflect,
    grad={("A", "tau", "other"): _reflect_grad},
    unsampled="linalg.householder_product and ormqr are held against torch",
    fixed_shape=True,  # reflections of any other size grow without bound
)


def _refusal(A: Tensor, tau: Tensor) -> str:
    """What torch says of shapes and dtypes that do not fit, empty where they do."""
    if A.ndim < 2:
        return "input must have at least 2 dimensions."
    if A.shape[-2] < A.shape[-1]:
        return "input.shape[-2] must be greater than or equal to input.shape[-1]"
    if A.shape[-1] < tau.size(-1):
        return "input.shape[-1] must be greater than or equal to tau.shape[-1]"
    if A.ndim - tau.ndim != 1:
        return (
            "Expected tau to have one dimension less than input, but got tau.ndim equal to"
            f" {tau.ndim} and input.ndim is equal to {A.ndim}"
        )
    if A.shape[:-2] != tau.shape[:-1]:
        return (
            "Expected batch dimensions of tau to be equal to input.shape[:-2], but got"
            f" {list(tau.shape[:-1])}"
        )
    names = scalar_name(tau.dtype), scalar_name(A.dtype)
    if names[0] != names[1]:
        return f"tau dtype {names[0]} does not match input dtype {names[1]}"
    return ""


@composite(
    "linalg_householder_product(Tensor A, Tensor tau) -> Tensor",
    unsupported={"bool whole half": "orgqr_cpu"},
    samples=calls((Arg((4, 2)), Arg((2,)))),
    autocast="float32 on cpu",
    fixed_shape=True,  # reflections of any other size grow without bound
)
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections: `[…, m, n]`, as LAPACK's orgqr."""
    if refusal := _refusal(A, tau):
        raise RuntimeError(f"torch.linalg.householder_product: {refusal}")
    eye = aten.eye(*A.shape[-2:], dtype=A.dtype, device=A.device)
    return aten._reflected(A, tau, aten.expand(eye, tuple(A.shape)))


composite(
    "orgqr(Tensor self, Tensor input2) -> Tensor",
    lambda self, input2: householder_product(self, input2),
    summary="Q of Householder vectors, as `geqrf` returns them.",
    unsupported={"bool whole half": "orgqr_cpu"},
    samples=calls((Arg((4, 2)), Arg((2,)))),
    autocast="float32 on cpu",
    fixed_shape=True,  # reflections of any other size grow without bound
    surface="both",
)


@composite(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False)"
    " -> Tensor",
    samples=calls((Arg((4, 2)), Arg((2,)), Arg((4, 3)))),
    autocast="float32 on cpu",
    fixed_shape=True,  # reflections of any other size grow without bound
    surface="both",
)
def ormqr(
    self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """The whole product of reflections (its adjoint for `transpose`) times a matrix."""
    _check_ormqr(self, input2, input3, left)
    if self.device.type == "cpu":  # torch looks at the dtype last
        refuse_dtype(self.dtype, "ormqr_cpu", dtypes("real complex"))
    if left:
        return aten._reflected(self, input2, input3, transpose)
    return in_columns(_t(aten._reflected(self, input2, _t(input3), not transpose)))


def _check_ormqr(A: Tensor, tau: Tensor, other: Tensor, left: bool) -> None:
    """RuntimeError in torch's words for reflections and a matrix that do not go together."""
    name = "torch.ormqr"
    for what, matrix in (("input", A), ("other", other)):
        if matrix.ndim < 2:
            raise RuntimeError(f"{name}: {what} must have at least 2 dimensions.")
    at = -2 if left else -1
    rows = other.shape[at]
    if rows != A.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{at}] must be equal to input.shape[-2]")
    if tau.shape[-1:] != (min(rows, A.shape[-1]),):
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{at}], input.shape[-1])"
        )
    if A.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to"
            f" {tau.ndim} and input.ndim is equal to {A.ndim}"
        )
    _check_ormqr_batches(A, tau, other)


def _check_ormqr_batches(A: Tensor, tau: Tensor, other: Tensor) -> None:
    name = "torch.ormqr"
    if A.ndim != other.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got"
            f" other.ndim equal to {other.ndim} and input.ndim is equal to {A.ndim}"
        )
    for what, part, shape in (("tau", tau, tau.shape[:-1]), ("other", other, other.shape[:-2])):
        if shape != A.shape[:-2]:
            raise RuntimeError(
                f"{name}: Expected batch dimensions of {what} to be equal to input.shape[:-2], but"
                f" got {list(shape)}"
            )
        if part.dtype is not A.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {what} to have the same dtype, but input has dtype"
                f"{' ' * (what == 'other')}{scalar_name(A.dtype)} and {what} has dtype"
                f" {scalar_name(part.dtype)}"
            )


def _geqrf_infer(self: Geometry) -> tuple[Geometry, Geometry]:
    if self.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    tau = (*self.shape[:-2], min(self.shape[-2:]))
    return self.fresh(self.shape, None, column_major(self.shape)), self.fresh(tau)


def _geqrf(self: Array) -> tuple[Array, Array]:
    m, n = self.shape[-2:]
    built, tau = np.empty_like(self), np.empty((*self.shape[:-2], min(m, n)), self.dtype)
    if self.size and self.ndim == 2:
        return reflectors(self)
    if self.size:
        h, t = np.linalg.qr(self, "raw")
        built, tau = h.swapaxes(-1, -2), t
    return built, tau


def _reflections(self: Tensor) -> tuple[Tensor, Tensor]:
    """A column after the other, by the vectors and signs that LAPACK's larfg chooses."""
    built, factors = self, []
    m, n = self.shape[-2:]
    rows = aten.arange(0, m, device=self.device)
    for i in range(min(m, n)):
        column = aten.select(built, -1, i)
        first = aten.select(column, -1, i)
        rest = aten.linalg_vector_norm(aten.masked_fill(column, rows <= i, 0), 2, (-1,))
        lead = first
        if self.is_complex():
            lead, rest = aten.real(first), aten.hypot(rest, aten.imag(first))
        still = rest == 0
        size = aten.hypot(lead, rest)
        beta = aten.masked_fill(aten.where(lead < 0, size, -size), still, 1)
        factor = aten.masked_fill((beta - first) / beta, still, 0)
        v = column / aten.unsqueeze(aten.masked_fill(first - beta, still, 1), -1)
        w = aten.masked_fill(aten.masked_fill(v, rows == i, 1), rows < i, 0)
        w, turn = aten.unsqueeze(w, -1), aten.conj_of(factor)[..., None, None]
        right = aten.narrow(built, -1, i, n - i)
        right = right - turn * w * aten.sum(aten.conj_of(w) * right, -2, True)
        done = aten.where(rows > i, v, aten.select(right, -1, 0))
        parts = (aten.narrow(built, -1, 0, i), aten.unsqueeze(done, -1))
        built = aten.cat([*parts, aten.narrow(right, -1, 1, n - i - 1)], -1)
        factors.append(factor)
    if factors:
        return in_columns(built), aten.stack(factors, -1)
    tau = aten.empty((*self.shape[:-2], 0), dtype=self.dtype, device=self.device)
    return in_columns(self), tau


op(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    summary="QR decomposition as Householder vectors: `[*, M, N]` and `tau`.",
    infer=_geqrf_infer,
    cpu=_geqrf,
    lower=_reflections,
    unsupported={"bool whole half": "geqrf_cpu"},
    samples=calls((Arg((4, 2)),), (SQUARE,)),
    fixed_shape=True,  # reflections of any other size grow without bound
    surface="both",
    layout_bound=True,  # of columns that are equal, what is left to reflect is rounding
)
