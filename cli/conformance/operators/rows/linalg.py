"""Factorisations, inverses, determinants, distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import const, spec, t, take
from ._defaults import COMPOSITE, FLOATS_64, SPARSE_GRADIENT, TORCH, TORCH_ROW
from ._ignored import requested


@spec("aclnnRenorm", "out:self", **TORCH_ROW, tolerance="composite", samples=[
    take(self=t(4, 3, 7), p=p, dim=d, maxNorm=m)
    for p, d, m in ((2.0, 0, 1.0), (1.0, 1, 5.0), (3.0, 2, 100.0))])  # fmt: skip
def renorm(self: Array, p: float, dim: int, maxNorm: float) -> Array:
    axes = tuple(i for i in range(self.ndim) if i != dim % self.ndim)
    size = (np.abs(self) ** p).sum(axes, keepdims=True) ** (1 / p)
    return np.where(size > maxNorm, self * (maxNorm / (size + 1e-7)), self)


@spec("aclnnCdist", "out:x1", **TORCH_ROW, tolerance="composite", dtypes=FLOATS_64, samples=[
    take(x1=t(5, 9), x2=t(7, 9), p=p, compute_mode=0) for p in (2.0, 1.0, 3.0, float("inf"))]
    + [take(x1=t(*a, 5, 9), x2=t(*b, 7, 9), p=2.0, compute_mode=2)
       for a, b in (((2,), (2,)), ((1,), (3,)), ((3,), (1,)), ((3,), ()))])  # fmt: skip
def cdist(x1: Array, x2: Array, p: float, compute_mode: int) -> Array:
    gap = np.abs(x1[..., :, None, :] - x2[..., None, :, :])
    return gap.max(-1) if np.isinf(p) else (gap**p).sum(-1) ** (1 / p)


@spec("aclnnLinalgCross", "out:self", **{**TORCH_ROW, "tolerance": "composite"},
      dtypes=FLOATS_64,
      samples=[take(self=t(5, 3), other=t(5, 3), dim=-1), take(self=t(3, 4), other=t(3, 4), dim=0),
               ])  # fmt: skip
def cross(self: Array, other: Array, dim: int) -> Array:
    return np.cross(self, other, axis=dim)


def _spd(n: int) -> Arg:
    draw = np.random.default_rng(n).uniform(-1, 1, (n, n))
    return const((draw @ draw.T + n * np.eye(n)).tolist(), "float32")


def _well(n: int) -> Arg:
    draw = np.random.default_rng(n + 50).uniform(-1, 1, (n, n))
    return const((draw + n * np.eye(n)).tolist(), "float32")


def _shuffled(n: int) -> Arg:
    """Rows one further down, every other one negated: pivots lie off the diagonal."""
    rows = np.asarray(_well(n).values)
    return const((np.roll(rows, 1, 0) * (-1.0) ** np.arange(n)[:, None]).tolist(), "float32")


def _one_half(n: int, upper: bool) -> Arg:
    """A definite matrix in one triangle; the other holds what nobody may read."""
    whole, rest = np.asarray(_spd(n).values), np.full((n, n), 77.0)
    part, other = (np.triu, np.tril) if upper else (np.tril, np.triu)
    return const((part(whole) + other(rest, -1 if upper else 1)).tolist(), "float32")


def cholesky(self: Array, upper: bool) -> Array:
    """Of the triangle that `upper` names."""
    lower = self.T if upper else self
    factor = np.linalg.cholesky(np.tril(lower) + np.tril(lower, -1).T)
    return factor.T if upper else factor


_LINALG: Final[dict[str, Any]] = {
    "source": TORCH, "tolerance": "gradient", "dtypes": ("float32",),
    "rule": {"norm": 64.0, "reason": "factorisations: the error grows with the condition"},
}  # fmt: skip
spec("aclnnInverse", "out:self", samples=[
    take(self=m(n)) for m in (_well, _shuffled) for n in (2, 5, 17)], **_LINALG)(
    lambda self: np.linalg.inv(self))  # fmt: skip
spec("aclnnLinalgCholesky", "out:self", **_LINALG,
     samples=[take(self=m, upper=u) for n in (2, 5, 17) for u in (False, True)
              for m in (_spd(n), _one_half(n, u))])(cholesky)  # fmt: skip
spec("aclnnLogdet", "out:self", samples=[take(self=_spd(n)) for n in (2, 5, 17)], **_LINALG)(
    lambda self: np.asarray(np.linalg.slogdet(self)[1]))  # fmt: skip
spec("aclnnSlogdet", "signOut:self logOut:self", **_LINALG,
     samples=[take(self=m(n)) for m in (_well, _shuffled) for n in (2, 5, 17)])(
    lambda self: tuple(np.asarray(v) for v in np.linalg.slogdet(self)))  # fmt: skip


@spec("aclnnTriangularSolve", "xOut:self mOut:A", **_LINALG, samples=[
    take(self=t(5, 3), A=_well(5), upper=u, transpose=tr, unitriangular=False)
    for u in (True, False) for tr in (True, False)] + [
    take(self=t(2, 5, 3), A=_well(5), upper=True, transpose=False,
         unitriangular=False)])  # fmt: skip
def triangular_solve(
    self: Array, A: Array, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Array, Array]:  # fmt: skip
    part = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        np.fill_diagonal(part, 1.0)
    return np.linalg.solve(part.T if transpose else part, self), A


_GOLUB: Final[dict[str, Any]] = {
    "tolerance": "gradient", "specials": False,
    "dtypes": ("float32", "float64", "complex64", "complex128"),
    "source": "Golub, Van Loan: Matrix Computations, 5.2 and 2.4; torch's documents of linalg.qr "
    "and linalg.svd",
}  # fmt: skip


def _aligned_basis(basis: Array, got: Array, known: int) -> tuple[Array, Array]:
    """The basis [m, n] with its first `known` columns turned to where `got`'s point, and by what;
    the others, which span what those leave, as near to `got`'s as such a basis can be."""
    got = got.astype(basis.dtype)
    turn = (basis[:, :known].conj() * got[:, :known]).sum(0)
    turn = np.where(turn == 0, 1, turn / np.where(turn == 0, 1, np.abs(turn)))
    rest = basis[:, known:]
    u, _, vh = np.linalg.svd(rest.conj().T @ got[:, known:])
    return np.concatenate([basis[:, :known] * turn, rest @ (u @ vh)], 1), turn


def _known(sizes: Array) -> int:
    """How many of a matrix's pivots or singular values are not zero."""
    sizes = np.abs(sizes)
    return int((sizes > 1e-9 * sizes.max(initial=0)).sum())


def _stacked(values: Sequence[Array]) -> tuple[tuple[int, ...], list[Array]]:
    return values[-1].shape[:-2], [np.array(v) for v in values]


def same_triangle(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """A column of Q and the row of R that meets it change their sign together."""
    batch, (q, r) = _stacked(values)
    for at in np.ndindex(batch):
        known = _known(np.diagonal(r[at]))
        q[at], turn = _aligned_basis(q[at], got[0][at], known)
        r[at][:known] *= turn.conj()[:, None]
    return [q, r]


def same_vectors(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """A pair of singular vectors changes its sign together."""
    batch, (sigma, u, v) = _stacked(values)
    for at in np.ndindex(batch):
        known = _known(sigma[at])
        u[at], turn = _aligned_basis(u[at], got[1][at], known)
        v[at] = _aligned_basis(v[at], got[2][at], known)[0]
        # A pair turns as its first vector does.
        v[at][:, :known] = values[2][at][:, :known] * turn
    return [sigma, u, v]


_SHAPES: Final = ((4, 4), (2, 5, 3), (3, 5))


@spec("aclnnQr", "Q:self R:self", **_GOLUB, nearest=same_triangle, samples=[
    take(self=t(*s), some=f) for s in _SHAPES for f in (True, False)])  # fmt: skip
def qr(self: Array, some: bool) -> tuple[Array, Array]:
    q, r = np.linalg.qr(self, "reduced" if some else "complete")
    return q, r


@spec("aclnnLinalgQr", "Q:self R:self", **_GOLUB, nearest=same_triangle, samples=[
    take(self=t(*s), mode=m) for s in _SHAPES for m in (0, 1)])  # fmt: skip
def linalg_qr(self: Array, mode: int) -> tuple[Array, Array]:
    return qr(self, mode == 0)


@spec("aclnnSvd", "sigma:input u:input v:input",
      ignored=requested("computeUV"),
      **{**_GOLUB, "dtypes": ("float32", "float64")},
      nearest=same_vectors, samples=[
          take(input=t(*s), fullMatrices=f, computeUV=True)
          for s in ((4, 4), (2, 5, 3), (3, 5)) for f in (False, True)])  # fmt: skip
def svd(input: Array, fullMatrices: bool) -> tuple[Array, Array, Array]:
    u, s, vh = np.linalg.svd(input, fullMatrices)
    return s, u, vh.swapaxes(-1, -2)


def pdist(self: Array, p: float) -> Array:
    a, b = np.triu_indices(len(self), 1)
    gap = np.abs(self[a] - self[b])
    return gap.max(-1) if np.isinf(p) else (gap**p).sum(-1) ** (1 / p)


spec(
    "aclnnPdist",
    "out:self",
    samples=[take(self=t(5, 9), p=p) for p in (2.0, 1.0, 3.0)],
    **COMPOSITE,
)(pdist)
spec("aclnnPdistForward", "out:self", renamed={"pScalar": "p"}, **COMPOSITE,
     samples=[take(self=t(5, 9), p=p) for p in (2.0, 1.0)])(pdist)  # fmt: skip


@spec(
    "aclnnCdistBackward", "out:x1", **{**SPARSE_GRADIENT, "dtypes": ("float32",)}, samples=[
        take(grad=t(2, 3), x1=const([[1.0, 2.0], [0.0, -1.0]], "float32"),
             x2=const([[4.0, 6.0], [3.0, 3.0], [-1.0, 0.0]], "float32"),
             cdist=const([[5.0, 5.0**0.5, 8.0**0.5], [65.0**0.5, 5.0, 2.0**0.5]], "float32"),
             p=2.0),
        take(grad=t(1, 2), x1=const([[1.0, 2.0]], "float32"), p=1.0,
             x2=const([[1.0, 5.0], [4.0, 2.0]], "float32"),
             cdist=const([[3.0, 3.0]], "float32")),
        take(grad=t(1, 2), x1=const([[1.0, 2.0]], "float32"), p=2.0,
             x2=const([[1.0, 2.0], [4.0, 6.0]], "float32"),
             cdist=const([[0.0, 5.0]], "float32")),
        *(take(grad=t(1, 2), x1=const([[1.0, 2.0]], "float32"), p=p,
               x2=const([[1.0, 3.0], [0.0, 2.0]], "float32"),
               cdist=const([[1.0, 1.0]], "float32")) for p in (1.0, 2.0))])  # fmt: skip
def cdist_backward(grad: Array, x1: Array, x2: Array, cdist: Array, p: float) -> Array:
    gap = x1[:, None] - x2[None]
    size = np.abs(gap) ** (p - 1) * np.sign(gap)
    # Of equal rows the derivative is 0 (torch 2.13, cdist).
    whole = np.where(cdist == 0, 1, cdist)[..., None] ** (p - 1)
    return (grad[..., None] * size / whole).sum(1)
