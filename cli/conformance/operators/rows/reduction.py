"""Sums, extremes, statistics and scans along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ....judge.precision import Array
from ..spec import const, spec, t, take
from ._defaults import ACCUMULATED, COMPOSITE, EXACT, EXACT_FINITE, FLOATS_64, TORCH, TORCH_ROW


@spec("aclnnTrace", "out:self", **ACCUMULATED, dtypes=FLOATS_64,
      samples=[take(self=t(5, 5)), take(self=t(65, 33)), take(self=t(130, 257))])  # fmt: skip
def trace(self: Array) -> Array:
    return np.asarray(np.trace(self))


def _axes(dim: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if dim is None or len(dim) == 0 else tuple(dim)


@spec("aclnnAminmax", "minOut:self maxOut:self", **EXACT, samples=[
    take(self=t(3, 65), dim=d, keepDim=k) for d in ((0,), (1,), (0, 1)) for k in (False, True)],
    )  # fmt: skip
def aminmax(self: Array, dim: Sequence[int], keepDim: bool) -> tuple[Array, Array]:
    return self.min(tuple(dim), keepdims=keepDim), self.max(tuple(dim), keepdims=keepDim)


@spec("aclnnAminmaxAll", "minOut:self maxOut:self", samples=[take(self=t(3, 65)), take(self=t(1))],
      **EXACT)  # fmt: skip
def aminmax_all(self: Array) -> tuple[Array, Array]:
    return np.asarray(self.min()), np.asarray(self.max())


@spec("aclnnAminmaxDim", "minOut:self maxOut:self", **EXACT, samples=[
    take(self=t(3, 65), dim=d, keepDim=k) for d in (0, 1, -1) for k in (False, True)])  # fmt: skip
def aminmax_dim(self: Array, dim: int, keepDim: bool) -> tuple[Array, Array]:
    return self.min(dim, keepdims=keepDim), self.max(dim, keepdims=keepDim)


@spec("aclnnMeanV2", "out:self",
      constant="noopWithEmptyAxes",
      **ACCUMULATED, dtypes=FLOATS_64, samples=[
    take(self=t(3, 5, 65), dim=d, keepDim=k, noopWithEmptyAxes=False)
    for d, k in (((1,), False), ((0, 2), True), ((2,), False))])  # fmt: skip
def mean_v2(self: Array, dim: Sequence[int], keepDim: bool, noopWithEmptyAxes: bool) -> Array:
    return self.mean(_axes(dim), keepdims=keepDim)


@spec("aclnnVar", "out:self", **TORCH_ROW, tolerance="composite", samples=[
    take(self=t(3, 5, 65, low=8, high=9), dim=d, unbiased=u, keepdim=k)
    for d, u, k in (((1,), True, False), ((0, 2), False, True), ((2,), True, False))])  # fmt: skip
def var(self: Array, dim: Sequence[int], unbiased: bool, keepdim: bool) -> Array:
    return self.var(_axes(dim), ddof=int(unbiased), keepdims=keepdim)


_CORRECTED: Final = [
    take(self=t(3, 5, 65, low=8, high=9), dim=d, correction=c, keepdim=k)
    for d, c, k in (((1,), 1, False), ((0, 2), 0, True), ((2,), 2, False))
]


@spec(
    "aclnnVarMean",
    "varOut:self meanOut:self",
    samples=_CORRECTED,
    **TORCH_ROW,
    tolerance="composite",
)
def var_mean(
    self: Array, dim: Sequence[int], correction: int, keepdim: bool
) -> tuple[Array, Array]:
    axes = _axes(dim)
    return self.var(axes, ddof=correction, keepdims=keepdim), self.mean(axes, keepdims=keepdim)


@spec(
    "aclnnStdMeanCorrection",
    "stdOut:self meanOut:self",
    samples=_CORRECTED,
    **TORCH_ROW,
    tolerance="composite",
)
def std_mean(
    self: Array, dim: Sequence[int], correction: int, keepdim: bool
) -> tuple[Array, Array]:
    axes = _axes(dim)
    return self.std(axes, ddof=correction, keepdims=keepdim), self.mean(axes, keepdims=keepdim)


@spec("aclnnNorm", "out:self", **TORCH_ROW, tolerance="composite", samples=[
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


@spec("aclnnCumsumV2", "out:self", **ACCUMULATED, dtypes=FLOATS_64, samples=[
    take(self=t(3, 65), dim=d, exclusive=e, reverse=r)
    for d in (0, 1) for e in (False, True) for r in (False, True)])  # fmt: skip
def cumsum_v2(self: Array, dim: int, exclusive: bool, reverse: bool) -> Array:
    x = np.flip(self, dim) if reverse else self
    sums = np.cumsum(x, dim)
    sums = sums - x if exclusive else sums
    return np.flip(sums, dim) if reverse else sums


@spec("aclnnReduceNansum", "out:self",
      constant="dtype",
      **ACCUMULATED, dtypes=FLOATS_64, samples=[
    take(self=const([[1.0, np.nan, 2.5], [np.nan, np.nan, -1.0]], "float32"), dim=(1,),
         keepDim=False, dtype=0),
    take(self=t(3, 65), dim=(0,), keepDim=True, dtype=0)])  # fmt: skip
def nansum(self: Array, dim: Sequence[int], keepDim: bool, dtype: int) -> Array:
    return np.nansum(self, _axes(dim), keepdims=keepDim)


spec("aclnnMaxV2", "out:self", **EXACT_FINITE, samples=[
    take(self=t(3, 5, 65), dims=d, keepDims=k, noopWithEmptyDims=n)
    for d, k, n in (((1,), False, False), ((0, 2), True, False), ((-1,), True, True),
                    ((), False, False), ((), False, True))])(
    lambda self, dims, keepDims, noopWithEmptyDims: self if not dims and noopWithEmptyDims
    else self.max(tuple(dims) or None, keepdims=keepDims))  # fmt: skip
spec("aclnnReduceLogSum", "reduce:data",
     uncovered="noopWithEmptyAxes",
     **{**COMPOSITE, "source": "ONNX operator ReduceLogSum"},
     samples=[take(data=t(3, 65, low=0.1, high=2), axes=a, keepDims=k, noopWithEmptyAxes=False)
              for a, k in (((1,), False), ((0,), True), ((-2,), False), ((), True))])(
    lambda data, axes, keepDims: np.log(
        data.sum(tuple(axes) or None, keepdims=keepDims)))  # fmt: skip


@spec("aclnnInplaceCumprod", "input:input", **COMPOSITE, samples=[
    take(input=t(3, 17, low=0.8, high=1.2), dim=1), take(input=t(5, 3), dim=0)])  # fmt: skip
def inplace_cumprod(input: Array, dim: int) -> Array:
    return np.cumprod(input, int(dim))


def _segments(shape: tuple[int, ...]) -> Array:
    run = np.cumsum(t(*shape, low=-1, high=0.2).array().astype(np.float64), -1)
    return np.tril(np.exp(run[..., :, None] - run[..., None, :]))


@spec("aclnnExpSegsumBackward", "gradInput:gradSelf", tolerance="gradient",
      specials=False, dtypes=("float32",), source="Dao, Gu: Transformers are SSMs, 2024: "
      "derivative of exp of segment sums", samples=lambda: [
          take(gradOutput=t(2, 3, 4, 8, 8), gradSelf=const(_segments((2, 3, 4, 8)), "float32"))],
      )  # fmt: skip
def exp_segsum_back(gradOutput: Array, gradSelf: Array) -> Array:
    """x[k] is in the sums from j < k to i >= k."""
    flow = gradOutput * gradSelf
    size = flow.shape[-1]
    return np.stack([flow[..., k:, :k].sum((-2, -1)) for k in range(size)], -1)


@spec("aclnnBincount", "out:weights", source=TORCH, tolerance="composite",
      dtypes=("float32", "float64"), samples=[
    take(self=const([1, 3, 1, 0, 3, 3]), weights=t(6), minlength=m) for m in (0, 7)])  # fmt: skip
def bincount(self: Array, weights: Array | None, minlength: int) -> Array:
    return np.bincount(self, weights, minlength)


@spec("aclnnHistc", "out:self", **EXACT, samples=[
    take(self=t(3, 65, low=-3, high=3), bins=7, min=-2.0, max=2.0),
    take(self=const([1.0, 2.0, 2.0, 5.0], "float32"), bins=4, min=0.0, max=0.0)],
    dtypes=("float32",))  # fmt: skip
def histc(self: Array, bins: int, min: float, max: float) -> Array:
    low, high = (self.min(), self.max()) if min == max else (min, max)
    return np.histogram(self, bins, (low, high))[0].astype(np.float64)


@spec("aclnnExpSegsum", "out:self", tolerance="gradient", sparse=True,
      dtypes=("float32",), source="Dao, Gu: Transformers are SSMs, 2024: exp of segment sums",
      samples=[take(self=t(2, 3, 4, 16, low=-1, high=0.2))])  # fmt: skip
def exp_segsum(self: Array) -> Array:
    run = np.cumsum(self, -1)
    gap = run[..., :, None] - run[..., None, :]
    return np.where(np.tril(np.ones(gap.shape[-2:], bool)), np.exp(gap), 0.0)
