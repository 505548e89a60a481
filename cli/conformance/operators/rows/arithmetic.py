"""Sums, products and reductions that no row of torch calls; formulas of torch's documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from .. import drawn
from ..spec import given, spec, t, take

_TORCH: Final = "torch 2.13, document of the function of this name"
_ROW: Final[dict[str, Any]] = {"family": "arithmetic", "source": _TORCH}
_SUM: Final[dict[str, Any]] = {**_ROW, "tolerance": "accumulated"}
_EXACT: Final[dict[str, Any]] = {**_ROW, "tolerance": "exact"}
_FLOATS: Final = ("float16", "bfloat16", "float32", "float64")


@spec("aclnnAddN aclnnSum", "out:tensors", samples=[
    take(tensors=[t(3, 65), t(3, 65), t(3, 65)]), take(tensors=[t(130)]),
    take(tensors=[t(7) for _ in range(9)])], **_SUM, rule={"accumulator": "output", "reason":
    "one addition after another, each rounded to the output's dtype"})  # fmt: skip
def add_n(tensors: list[Array]) -> Array:
    return sum(tensors, np.zeros(()))


@spec("aclnnAddV3", "out:other", samples=[take(self=2.5, other=t(3, 65), alpha=a)
                                          for a in (1.0, -0.5)],
      **{**_ROW, "tolerance": "composite"}, dtypes=_FLOATS)  # fmt: skip
def add_v3(self: float, other: Array, alpha: float) -> Array:
    return self + alpha * other


@spec("aclnnRsub", "out:self", **_ROW, tolerance="composite", dtypes=_FLOATS,
      samples=[take(self=t(3, 65), other=t(3, 65, high=3), alpha=a)
               for a in (1.0, -0.5)])  # fmt: skip
def rsub(self: Array, other: Array, alpha: float) -> Array:
    return other - alpha * self


spec("aclnnRsubs", "out:self", **_ROW, tolerance="composite", dtypes=_FLOATS,
     samples=[take(self=t(3, 65), other=1.5, alpha=a) for a in (1.0, -0.5)])(rsub)  # fmt: skip

_PRODUCT: Final[dict[str, Any]] = {**_SUM, "family": "matmul", "dtypes": _FLOATS}


def _scaled(beta: float, self: Array, alpha: float, product: Array) -> Array:
    return (0 if beta == 0 else beta * self) + alpha * product


@spec("aclnnAddbmm", "out:self", **_PRODUCT, samples=[
    take(self=t(3, 5), batch1=t(4, 3, 65), batch2=t(4, 65, 5), beta=b, alpha=a, cubeMathType=0)
    for b, a in ((1.0, 1.0), (0.5, -2.0))] + [
    take(self=t(1, 1), batch1=t(4, 1, 9), batch2=t(4, 9, 1), beta=0.5, alpha=-2.0,
         cubeMathType=0)])  # fmt: skip
def addbmm(
    self: Array, batch1: Array, batch2: Array, beta: float, alpha: float, cubeMathType: int
) -> Array:  # fmt: skip
    return _scaled(beta, self, alpha, (batch1 @ batch2).sum(0))


@spec("aclnnAddmv", "out:self", **_PRODUCT, samples=[
    take(self=t(3), mat=t(3, 65), vec=t(65), beta=b, alpha=a, cubeMathType=0)
    for b, a in ((1.0, 1.0), (0.5, -2.0))])  # fmt: skip
def addmv(
    self: Array, mat: Array, vec: Array, alpha: float, beta: float, cubeMathType: int
) -> Array:
    return _scaled(beta, self, alpha, mat @ vec)


@spec("aclnnAddr", "out:self", **{**_ROW, "tolerance": "composite"},
      dtypes=_FLOATS, samples=[
          take(self=t(3, 65), vec1=t(3), vec2=t(65), betaOptional=b, alphaOptional=a)
          for b, a in ((1.0, 1.0), (0.5, -2.0))])  # fmt: skip
def addr(self: Array, vec1: Array, vec2: Array, betaOptional: float, alphaOptional: float) -> Array:
    return _scaled(betaOptional, self, alphaOptional, np.outer(vec1, vec2))


@spec("aclnnMv", "out:self", **_PRODUCT,
      samples=[take(self=t(7, n), vec=t(n), cubeMathType=0) for n in (5, 65, 1025)])  # fmt: skip
def mv(self: Array, vec: Array, cubeMathType: int) -> Array:
    return self @ vec


@spec("aclnnDot", "out:self", **_PRODUCT,
      samples=[take(self=t(n), tensor=t(n)) for n in (1, 65, 4097)])  # fmt: skip
def dot(self: Array, tensor: Array) -> Array:
    return np.asarray(self @ tensor)


@spec("aclnnGer", "out:self", **_ROW, tolerance="rounded",
      samples=[take(self=t(7), vec2=t(65)), take(self=t(1), vec2=t(3))])  # fmt: skip
def ger(self: Array, vec2: Array) -> Array:
    return np.outer(self, vec2)


@spec("aclnnTrace", "out:self", **_SUM, dtypes=_FLOATS,
      samples=[take(self=t(5, 5)), take(self=t(65, 33)), take(self=t(130, 257))])  # fmt: skip
def trace(self: Array) -> Array:
    return np.asarray(np.trace(self))


def _axes(dim: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if dim is None or len(dim) == 0 else tuple(dim)


@spec("aclnnAminmax", "minOut:self maxOut:self", **_EXACT, samples=[
    take(self=t(3, 65), dim=d, keepDim=k) for d in ((0,), (1,), (0, 1)) for k in (False, True)],
    )  # fmt: skip
def aminmax(self: Array, dim: Sequence[int], keepDim: bool) -> tuple[Array, Array]:
    return self.min(tuple(dim), keepdims=keepDim), self.max(tuple(dim), keepdims=keepDim)


@spec("aclnnAminmaxAll", "minOut:self maxOut:self", samples=[take(self=t(3, 65)), take(self=t(1))],
      **_EXACT)  # fmt: skip
def aminmax_all(self: Array) -> tuple[Array, Array]:
    return np.asarray(self.min()), np.asarray(self.max())


@spec("aclnnAminmaxDim", "minOut:self maxOut:self", **_EXACT, samples=[
    take(self=t(3, 65), dim=d, keepDim=k) for d in (0, 1, -1) for k in (False, True)])  # fmt: skip
def aminmax_dim(self: Array, dim: int, keepDim: bool) -> tuple[Array, Array]:
    return self.min(dim, keepdims=keepDim), self.max(dim, keepdims=keepDim)


@spec("aclnnMeanV2", "out:self", **_SUM, dtypes=_FLOATS, samples=[
    take(self=t(3, 5, 65), dim=d, keepDim=k, noopWithEmptyAxes=False)
    for d, k in (((1,), False), ((0, 2), True), ((2,), False))])  # fmt: skip
def mean_v2(self: Array, dim: Sequence[int], keepDim: bool, noopWithEmptyAxes: bool) -> Array:
    return self.mean(_axes(dim), keepdims=keepDim)


@spec("aclnnVar", "out:self", **_ROW, tolerance="composite", samples=[
    take(self=t(3, 5, 65, low=8, high=9), dim=d, unbiased=u, keepdim=k)
    for d, u, k in (((1,), True, False), ((0, 2), False, True), ((2,), True, False))])  # fmt: skip
def var(self: Array, dim: Sequence[int], unbiased: bool, keepdim: bool) -> Array:
    return self.var(_axes(dim), ddof=int(unbiased), keepdims=keepdim)


_CORRECTED: Final = [
    take(self=t(3, 5, 65, low=8, high=9), dim=d, correction=c, keepdim=k)
    for d, c, k in (((1,), 1, False), ((0, 2), 0, True), ((2,), 2, False))
]


@spec("aclnnVarMean", "varOut:self meanOut:self", samples=_CORRECTED, **_ROW, tolerance="composite")
def var_mean(
    self: Array, dim: Sequence[int], correction: int, keepdim: bool
) -> tuple[Array, Array]:
    axes = _axes(dim)
    return self.var(axes, ddof=correction, keepdims=keepdim), self.mean(axes, keepdims=keepdim)


@spec("aclnnStdMeanCorrection", "stdOut:self meanOut:self", samples=_CORRECTED, **_ROW,
      tolerance="composite")  # fmt: skip
def std_mean(
    self: Array, dim: Sequence[int], correction: int, keepdim: bool
) -> tuple[Array, Array]:
    axes = _axes(dim)
    return self.std(axes, ddof=correction, keepdims=keepdim), self.mean(axes, keepdims=keepdim)


@spec("aclnnNorm", "out:self", **_ROW, tolerance="composite", samples=[
    take(self=t(3, 65), pScalar=p, dim=d, keepdim=k)
    for p, d, k in ((2.0, (1,), False), (1.0, (0,), True), (3.0, (0, 1), False),
                    (0.0, (1,), False), (float("inf"), (1,), True))])  # fmt: skip
def norm(self: Array, pScalar: float, dim: Sequence[int], keepdim: bool) -> Array:
    size, axes = np.abs(self), _axes(dim)
    if np.isinf(pScalar):
        return size.max(axes, keepdims=keepdim)
    if pScalar == 0:
        return (size != 0).sum(axes, keepdims=keepdim).astype(np.float64)
    return (size**pScalar).sum(axes, keepdims=keepdim) ** (1 / pScalar)


@spec("aclnnRenorm", "out:self", **_ROW, tolerance="composite", samples=[
    take(self=t(4, 3, 7), p=p, dim=d, maxNorm=m)
    for p, d, m in ((2.0, 0, 1.0), (1.0, 1, 5.0), (3.0, 2, 100.0))])  # fmt: skip
def renorm(self: Array, p: float, dim: int, maxNorm: float) -> Array:
    axes = tuple(i for i in range(self.ndim) if i != dim % self.ndim)
    size = (np.abs(self) ** p).sum(axes, keepdims=True) ** (1 / p)
    return np.where(size > maxNorm, self * (maxNorm / (size + 1e-7)), self)


@spec("aclnnCumsumV2", "out:self", **_SUM, dtypes=_FLOATS, samples=[
    take(self=t(3, 65), dim=d, exclusive=e, reverse=r)
    for d in (0, 1) for e in (False, True) for r in (False, True)])  # fmt: skip
def cumsum_v2(self: Array, dim: int, exclusive: bool, reverse: bool) -> Array:
    x = np.flip(self, dim) if reverse else self
    sums = np.cumsum(x, dim)
    sums = sums - x if exclusive else sums
    return np.flip(sums, dim) if reverse else sums


@spec("aclnnLogAddExp2", "out:self", **_ROW, tolerance="composite",
      samples=[take(self=t(3, 65, low=-9, high=9), other=t(3, 65, low=-9, high=9)),
               take(self=t(3, 1), other=t(5))])  # fmt: skip
def logaddexp2(self: Array, other: Array) -> Array:
    return np.logaddexp2(self, other)


@spec("aclnnGcd", "out:self", **_EXACT, samples=[
    take(self=t(3, 65, dtype="int32", low=-90, high=90),
         other=t(3, 65, dtype="int32", low=-90, high=90)),
    take(self=given([0, 12, -18], "int32"), other=given([0, 18, 12], "int32"))])  # fmt: skip
def gcd(self: Array, other: Array) -> Array:
    return np.gcd(self, other)


@spec("aclnnSquare", "out:self", **_ROW, tolerance="rounded", fixed_shape=False,
      samples=[take(self=t(3, 65)), take(self=t(1025))])  # fmt: skip
def square(self: Array) -> Array:
    return self * self


@spec("aclnnClampTensor", "out:self", **_ROW, tolerance="exact", specials=False, samples=[
    take(self=t(3, 65), clipValueMin=t(3, 65, low=-1, high=-0.1),
         clipValueMax=t(3, 65, low=0.1, high=1)),
    take(self=t(3, 65), clipValueMin=t(65, low=-1, high=0), clipValueMax=t(3, 1, low=0, high=1)),
    ])  # fmt: skip
def clamp_tensor(self: Array, clipValueMin: Array, clipValueMax: Array) -> Array:
    return np.minimum(np.maximum(self, clipValueMin), clipValueMax)


@spec("aclnnXLogYScalarOther", "out:self", **_ROW, tolerance="composite", dtypes=_FLOATS,
      samples=[take(self=given([0.0, 1.0, -2.5], "float32"), other=3.0),
               take(self=t(3, 65), other=0.5)])  # fmt: skip
def xlogy_scalar_other(self: Array, other: float) -> Array:
    return np.where(self == 0, 0.0, self * np.log(other))


@spec("aclnnXLogYScalarSelf", "out:other", **_ROW, tolerance="composite", dtypes=_FLOATS,
      samples=[take(self=2.5, other=t(3, 65, low=0.1, high=9)),
               take(self=0.0, other=t(3, low=0.1, high=9))], sparse=True)  # fmt: skip
def xlogy_scalar_self(self: float, other: Array) -> Array:
    return 0 * other if self == 0 else self * np.log(other)


spec("aclnnInplaceXLogYTensor", "selfRef:selfRef", **_ROW, tolerance="composite", dtypes=_FLOATS,
     samples=[take(selfRef=t(3, 65), other=t(3, 65, low=0.1, high=9))])(
    lambda selfRef, other: np.where(selfRef == 0, 0.0, selfRef * np.log(other)))  # fmt: skip


@spec("aclnnRemainderScalarTensor", "out:other", **_ROW, tolerance="composite", dtypes=_FLOATS,
      samples=[take(self=7.0, other=t(3, 65, low=0.5, high=3))])  # fmt: skip
def remainder_scalar(self: float, other: Array) -> Array:
    return self - other * np.floor(self / other)


@spec("aclnnReduceNansum", "out:self", **_SUM, dtypes=_FLOATS, samples=[
    take(self=given([[1.0, np.nan, 2.5], [np.nan, np.nan, -1.0]], "float32"), dim=(1,),
         keepDim=False, dtype=0),
    take(self=t(3, 65), dim=(0,), keepDim=True, dtype=0)])  # fmt: skip
def nansum(self: Array, dim: Sequence[int], keepDim: bool, dtype: int) -> Array:
    return np.nansum(self, _axes(dim), keepdims=keepDim)


_RAMP: Final = given(np.arange(15.0).reshape(3, 5), "float32")


@spec("aclnnEqual", "out:bool", **_EXACT, samples=[
    take(self=t(3, 65), other=t(3, 65)),
    take(self=given([1.0, 2.0], "float32"), other=given([1.0, 2.0], "float32")),
    *(take(self=replace(_RAMP, layout=one), other=replace(_RAMP, layout=two))
      for one, two in (("sliced", "contiguous"), ("contiguous", "transposed"))),
    *(take(self=given([0] * 4100 + [a], d), other=given([0] * 4100 + [b], d))
      for a, b, d in ((3, 3, "float32"), (3, 4, "float32"), (2**53, 2**53 + 1, "int64"))),
])  # fmt: skip
def equal(self: Array, other: Array) -> Array:
    return np.asarray([self.shape == other.shape and bool((self == other).all())])


@spec("aclnnComplex", "out:complex64", **_EXACT,
      samples=[take(real=t(3, 65), imag=t(3, 65))], dtypes=("float32",))  # fmt: skip
def complex_of(real: Array, imag: Array) -> Array:
    result = np.empty(real.shape, np.complex128)
    result.real, result.imag = real, imag
    return result


@spec("aclnnPolar", "out:complex64", **_ROW, tolerance="composite", dtypes=("float32",),
      samples=[take(input=t(3, 65, low=0), angle=t(3, 65, low=-9, high=9))])  # fmt: skip
def polar(input: Array, angle: Array) -> Array:
    return input * np.cos(angle) + 1j * input * np.sin(angle)


@spec("aclnnReal", "out:float32", samples=[take(self=t(3, 65, dtype="complex64"))], **_EXACT,
      dtypes=("complex64",))  # fmt: skip
def real(self: Array) -> Array:
    return self.real


@spec("aclnnMaskedScale", "out:self", family="arithmetic", tolerance="composite", sparse=True,
    source="torch_npu 2.x, npu_masked_scale: self mask scale", samples=[
        take(self=t(3, 64), mask=t(3, 64, dtype="uint8", low=0, high=1), scale=2.5)])  # fmt: skip
def masked_scale(self: Array, mask: Array, scale: float) -> Array:
    return self * mask * scale


@spec("aclnnCdist", "out:x1", **_ROW, tolerance="composite", dtypes=_FLOATS, samples=[
    take(x1=t(5, 9), x2=t(7, 9), p=p, compute_mode=0) for p in (2.0, 1.0, 3.0, float("inf"))]
    + [take(x1=t(*a, 5, 9), x2=t(*b, 7, 9), p=2.0, compute_mode=2)
       for a, b in (((2,), (2,)), ((1,), (3,)), ((3,), (1,)), ((3,), ()))])  # fmt: skip
def cdist(x1: Array, x2: Array, p: float, compute_mode: int) -> Array:
    gap = np.abs(x1[..., :, None, :] - x2[..., None, :, :])
    return gap.max(-1) if np.isinf(p) else (gap**p).sum(-1) ** (1 / p)


_RANDOM: Final[dict[str, Any]] = {
    "family": "random",
    "tolerance": "random",
    "source": "Knuth: The Art of Computer Programming 3.3 and 3.4; torch's documents",
}


def _fill(x: Array) -> Array:
    return np.zeros_like(x)


for _name, _draws, _extra in (
    ("Normal", drawn.normal, {"mean": 1.0, "std": 2.0}),
    ("Uniform", drawn.uniform, {"from": -1.0, "to": 2.0}),
    ("Random", drawn.integers, {"from": 0, "to": 9}),
):  # fmt: skip
    spec(f"aclnnInplace{_name}", "selfRef:selfRef", **_RANDOM, draws=_draws, samples=[
        take(selfRef=t(*s), seed=1, offset=0, **_extra) for s in ((33, 65), (5001,))])(
        lambda selfRef: _fill(selfRef))  # fmt: skip
spec("aclnnNormalFloatFloat", "out:float32", samples=[take(mean=1.0, std=2.0, seed=3, offset=0)],
     draws=drawn.normal, **_RANDOM)(lambda mean, std: np.zeros((33, 65)))  # fmt: skip
spec("aclnnNormalFloatTensor", "out:std", **_RANDOM, draws=drawn.normal,
     samples=[take(mean=1.0, std=t(33, 65, low=0.5), seed=3, offset=0)])(
    lambda mean, std: _fill(std))  # fmt: skip
spec("aclnnNormalTensorFloat", "out:mean", **_RANDOM, draws=drawn.normal,
     samples=[take(mean=t(33, 65), std=0.5, seed=3, offset=0)])(
    lambda mean, std: _fill(mean))  # fmt: skip
spec("aclnnNormalTensorTensor", "out:mean", **_RANDOM, draws=drawn.normal,
     samples=[take(mean=t(33, 65), std=t(33, 65, low=0.5), seed=3, offset=0)])(
    lambda mean, std: _fill(mean))  # fmt: skip
spec("aclnnBernoulli", "out:self", samples=[take(self=t(33, 65), prob=0.3, seed=3, offset=0)],
     draws=drawn.bernoulli, **_RANDOM)(lambda self, prob: _fill(self))  # fmt: skip
spec("aclnnBernoulliTensor", "out:self", **_RANDOM, draws=drawn.bernoulli,
     samples=[take(self=t(33, 65), prob=t(33, 65, low=0, high=1), seed=3, offset=0)])(
    lambda self, prob: _fill(self))  # fmt: skip
spec("aclnnRandperm", "out:int64", draws=drawn.permutation, **_RANDOM,
     samples=[take(n=n, seed=3, offset=0) for n in (33, 2049)])(
    lambda n: np.arange(n))  # fmt: skip


@spec("aclnnLinalgCross", "out:self", **{**_ROW, "family": "linalg", "tolerance": "composite"},
      dtypes=_FLOATS,
      samples=[take(self=t(5, 3), other=t(5, 3), dim=-1), take(self=t(3, 4), other=t(3, 4), dim=0),
               ])  # fmt: skip
def cross(self: Array, other: Array, dim: int) -> Array:
    return np.cross(self, other, axis=dim)


def _spd(n: int) -> Arg:
    draw = np.random.default_rng(n).uniform(-1, 1, (n, n))
    return given((draw @ draw.T + n * np.eye(n)).tolist(), "float32")


def _well(n: int) -> Arg:
    draw = np.random.default_rng(n + 50).uniform(-1, 1, (n, n))
    return given((draw + n * np.eye(n)).tolist(), "float32")


def _shuffled(n: int) -> Arg:
    """Rows one further down, every other one negated: pivots lie off the diagonal."""
    rows = np.asarray(_well(n).values)
    return given((np.roll(rows, 1, 0) * (-1.0) ** np.arange(n)[:, None]).tolist(), "float32")


def _one_half(n: int, upper: bool) -> Arg:
    """A definite matrix in one triangle; the other holds what nobody may read."""
    whole, rest = np.asarray(_spd(n).values), np.full((n, n), 77.0)
    part, other = (np.triu, np.tril) if upper else (np.tril, np.triu)
    return given((part(whole) + other(rest, -1 if upper else 1)).tolist(), "float32")


def cholesky(self: Array, upper: bool) -> Array:
    """Of the triangle that `upper` names."""
    lower = self.T if upper else self
    factor = np.linalg.cholesky(np.tril(lower) + np.tril(lower, -1).T)
    return factor.T if upper else factor


_LINALG: Final[dict[str, Any]] = {
    "family": "linalg", "source": _TORCH, "tolerance": "gradient", "dtypes": ("float32",),
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
