"""Factorisations, inverses, determinants, distances."""

from __future__ import annotations

from ....spec import *
from ._defaults import TORCH
from ._ignored import SPEED
from ._words import *

_FLOATS: Final = "f32 f16 bf16"
_INF: Final = float("inf")
_COMPOSITE: Final = Rule("composite", TORCH)
_AROUND: Final = sizes({"*A": leading(4, "-", "2x3"), "*Z": leading("-", 7, 33, "2x5")},
                       N=row(5, 1, 3, 33, 130))  # fmt: skip


def _norm(gap: Array, p: float) -> Array:
    """The p-norm of the last axis; that of 0 counts what is not 0."""
    if np.isinf(p):
        return np.asarray(gap.max(-1, initial=0))
    return (gap != 0).sum(-1) if p == 0 else (gap**p).sum(-1) ** (1 / p)


@spec("aclnnRenorm", _COMPOSITE, _AROUND, require("rank(self) >= 2"),
      self=tensor("*A N *Z", _FLOATS), p=number(2.0, 1.0, 3.0, 0.5, _INF),
      dim=axis("N", "*A N *Z"), maxNorm=number(1.0, 5.0, 100.0, 0.0),
      out=out("self"))  # fmt: skip
def renorm(self: Array, p: float, dim: int, maxNorm: float) -> Array:
    lines = np.moveaxis(self, dim, 0)
    size = _norm(np.abs(lines).reshape(len(lines), -1), p)
    size = np.expand_dims(size, tuple(range(1, self.ndim)))
    cut = np.where(size > maxNorm, lines * (maxNorm / (size + 1e-7)), lines)
    return np.moveaxis(cut, 0, dim)


_P: Final = number(2.0, 1.0, 3.0, 0.5, 0.0, _INF)


@spec("aclnnCdist", replace(_COMPOSITE, specials=False),  # torch drops NaN where p is inf
      sizes({"*B": leading("-", 3, 1, "2x3")}, M=batch(5, 1, 3, 33), N=column(7, 1, 33),
            K=row(9, 1, 65, 130, 1030)),
      x1=tensor("*#B M K", _FLOATS), x2=tensor("*#B N K", "x1"), p=_P,
      compute_mode=ignored(SPEED, choice(0, 1, 2)), out=out("x1"))  # fmt: skip
def cdist(x1: Array, x2: Array, p: float) -> Array:
    return _norm(np.abs(x1[..., :, None, :] - x2[..., None, :, :]), p)


@spec("aclnnLinalgCross", _COMPOSITE,
      sizes({"*A": leading(4, "-", "2x3", 33), "*Z": leading("-", 7, "2x5", 130)}),
      self=tensor("*#A 3 *Z", "f32 f16 bf16 f64 i32 i64 i16 c64", ones="ones"),
      other=tensor("*#A 3 *Z", "self", ones="first ones"), dim=axis("3", "*A 3 *Z"),
      out=out("self"))  # fmt: skip
def cross(self: Array, other: Array, dim: int) -> Array:
    return np.cross(self, other, axis=dim)


_SQUARE: Final = sizes({"*B": leading("-", 3, "2x2")}, N=row(5, 1, 2, 3, 17, 33))
Maker = Callable[[Any, Any], Array]


def _matrix(rng: Generator, draw: Draw, name: str, shape: str) -> Array:
    """Numbers of [-1, 1], complex where the dtype is."""
    dims = resolve(shape, draw)
    x = rng.uniform(-1, 1, dims)
    return x + 1j * rng.uniform(-1, 1, dims) if draw[f"{name}.dtype"][0] == "c" else x


def _square(patterns: str, dtype: str, name: str = "self", shape: str = "*B N N") -> Content:
    """Well conditioned matrices: "well"; "shuffled", with rows one further down, every other one
    negated, so that pivots lie off the diagonal; "singular", with a row of zeros."""

    def make(rng: Generator, pattern: str, draw: Draw) -> Array:
        n = draw["N"]
        x = _matrix(rng, draw, name, shape) + n * np.eye(n)
        if pattern == "shuffled":
            x = np.roll(x, 1, -2) * (-1.0) ** np.arange(n)[:, None]
        if pattern == "singular":
            x[..., n // 2, :] = 0
        return x

    return content(make, patterns, dtype, shape=shape)


def _definite(rng: Generator, pattern: str, draw: Draw) -> Array:
    """Symmetric matrices; one triangle may hold what nobody may read."""
    n = draw["N"]
    x = _matrix(rng, draw, "self", "*B N N")
    x = x @ x.swapaxes(-1, -2) + n * np.eye(n)
    if pattern == "whole":
        return x
    other = np.tri(n, k=-1, dtype=bool)
    return np.where(other if draw["upper"] else other.T, 77.0 if pattern == "half" else np.nan, x)


_FACTORS: Final = Rule("gradient", TORCH, values="normal", numbers={
    "norm": 64.0, "reason": "factorisations: the error grows with the condition"})  # fmt: skip
spec("aclnnInverse", _FACTORS, _SQUARE, self=_square("well shuffled", "f32"),
     out=out("self"))(lambda self: np.linalg.inv(self))  # fmt: skip


@spec("aclnnLinalgCholesky", _FACTORS, _SQUARE,
      self=content(_definite, "whole half nan", "f32", shape="*B N N", reads=("upper",)),
      upper=flag(), out=out("self"))  # fmt: skip
def cholesky(self: Array, upper: bool) -> Array:
    """Of the triangle that `upper` names."""
    lower = np.tril(self.swapaxes(-1, -2) if upper else self)
    factor = np.linalg.cholesky(lower + np.tril(lower, -1).swapaxes(-1, -2))
    return factor.swapaxes(-1, -2) if upper else factor


@spec("aclnnLogdet", _FACTORS, _SQUARE, self=_square("well shuffled singular", "f32 f64 c64"),
      out=out("self"))  # fmt: skip
def logdet(self: Array) -> Array:
    """Of a negative determinant there is no real logarithm."""
    sign, log = np.linalg.slogdet(self)
    if np.iscomplexobj(self):
        return np.asarray(log + 1j * np.angle(sign))
    return np.where(sign < 0, np.nan, log)


@spec("aclnnSlogdet", _FACTORS, _SQUARE, self=_square("well shuffled singular", "f32 f64"),
      signOut=out("self"), logOut=out("self"))  # fmt: skip
def slogdet(self: Array) -> tuple[Array, ...]:
    return tuple(np.asarray(v) for v in np.linalg.slogdet(self))


def _triangle(shape: str) -> Content:
    """Both triangles hold numbers; those of the diagonal are large and of both signs."""

    def make(rng: Generator, _pattern: str, draw: Draw) -> Array:
        n = draw["N"]
        x = _matrix(rng, draw, "A", shape) / n
        signs = np.where(np.arange(n) % 3 == 1, -1, 1)
        return np.where(np.eye(n, dtype=bool), x + signs * rng.uniform(1.5, 3, n), x)

    return content(make, "triangles", "self", shape=shape)


@spec("aclnnTriangularSolve", _FACTORS, _SQUARE, sizes(K=column(3, 1, 33)),
      self=forms(each=tensor("*B N K", "f32 f64 c64"), one=tensor("N K", "f32 f64 c64")),
      A=forms(each=_triangle("*B N N"), one=_triangle("N N")), upper=flag(), transpose=flag(),
      unitriangular=flag(), xOut=out("self"), mOut=out("self"))  # fmt: skip
def triangular_solve(
    self: Array, A: Array, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Array, Array]:  # fmt: skip
    part = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        part = np.where(np.eye(A.shape[-1], dtype=bool), 1.0, part)
    return np.linalg.solve(part.swapaxes(-1, -2) if transpose else part, self), A


_GOLUB: Final = ("Golub, Van Loan: Matrix Computations, 5.2 and 2.4; documents of torch.linalg.qr "
                 "and torch.linalg.svd")  # fmt: skip
_ANY: Final = sizes({"*B": leading("-", 3, "2x2")}, M=batch(4, 1, 5, 17), N=column(3, 1, 4, 5, 18))
_MATRIX: Final = tensor("*B M N", "f32 f64 c64 c128")


def _aligned_basis(basis: Array, got: Array, known: int) -> tuple[Array, Array]:
    """The basis [m, n] with its first `known` columns turned to where `got`'s point, and by what;
    the others, any that are orthogonal to those, as near to `got`'s as such ones can be."""
    got = got.astype(basis.dtype)
    turn = (basis[:, :known].conj() * got[:, :known]).sum(0)
    turn = np.where(turn == 0, 1, turn / np.where(turn == 0, 1, np.abs(turn)))
    rest = np.linalg.qr(basis[:, :known], "complete")[0][:, known:]
    u, _, vh = np.linalg.svd(rest.conj().T @ got[:, known:], False)
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


_QR: Final = Rule("gradient", _GOLUB, specials=False, nearest=same_triangle,
                  values="normal dominant")  # fmt: skip


@spec("aclnnQr", _QR, _ANY, self=_MATRIX, some=flag(True), Q=out("self"), R=out("self"))
def qr(self: Array, some: bool) -> tuple[Array, Array]:
    q, r = np.linalg.qr(self, "reduced" if some else "complete")
    return q, r


@spec("aclnnLinalgQr", _QR, _ANY, self=_MATRIX, mode=choice(0, 1), Q=out("self"),
      R=out("self"))  # fmt: skip
def linalg_qr(self: Array, mode: int) -> tuple[Array, Array]:
    return qr(self, mode == 0)


@spec("aclnnSvd", Rule("gradient", _GOLUB, specials=False, nearest=same_vectors,
                       values="normal dominant"), _ANY,
      input=tensor("*B M N", "f32 f64"), fullMatrices=flag(),
      computeUV=only(True, "asks for results, which are compared"),
      sigma=out("input"), u=out("input"), v=out("input"))  # fmt: skip
def svd(input: Array, fullMatrices: bool) -> tuple[Array, Array, Array]:
    u, s, vh = np.linalg.svd(input, fullMatrices)
    return s, u, vh.swapaxes(-1, -2)


@spec("aclnnPdist", _COMPOSITE, also("aclnnPdistForward", p="pScalar"),
      sizes(M=batch(5, 2, 3, 17, 33), K=row(9, 1, 65, 130, 1030)),
      self=tensor("M K", "f32 f16"), p=_P, out=out("self"))  # fmt: skip
def pdist(self: Array, p: float) -> Array:
    a, b = np.triu_indices(len(self), 1)
    return _norm(np.abs(self[a] - self[b]), p)


def _points(shape: str) -> Content:
    """Eighths, which every type holds; some coordinates and some points are equal."""

    def make(rng: Generator, pattern: str, draw: Draw) -> Array:
        x = rng.integers(-16, 17, resolve(shape, draw)) / 8
        if pattern == "equal":
            x[..., : max(1, x.shape[-2] // 2), :] = 0.5
        return x

    return content(make, "spread equal", "grad", shape=shape)


def _distances(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    return cdist(draw["x1"].values(), draw["x2"].values(), draw["p"])


@spec("aclnnCdistBackward", Rule("gradient", TORCH, sparse=True),
      sizes({"*B": leading("-", 3, "2x3")}, M=batch(5, 1, 3, 33), N=column(7, 1, 33),
            K=row(9, 1, 65, 130)),
      grad=tensor("*B M N", _FLOATS), x1=_points("*B M K"), x2=_points("*B N K"),
      cdist=content(_distances, "distances", "grad", shape="*B M N", reads=("x1", "x2", "p")),
      p=_P, out=out("grad"))  # fmt: skip
def cdist_backward(grad: Array, x1: Array, x2: Array, cdist: Array, p: float) -> Array:
    gap = x1[..., :, None, :] - x2[..., None, :, :]
    size = np.abs(gap)
    if np.isinf(p):
        slope = np.sign(gap) * (size == size.max(-1, keepdims=True))
    elif p == 0:
        slope = np.zeros_like(gap)
    else:
        # Of equal rows the derivative is 0 (torch 2.13, cdist).
        whole = np.where(cdist == 0, 1, cdist)[..., None]
        slope = np.sign(gap) * (np.where(gap == 0, 1, size) / whole) ** (p - 1)
    return (grad[..., None] * slope).sum(-2)
