"""Sums, extremes, statistics and scans along axes."""

from __future__ import annotations

from ....spec import *
from ....spec import shape as any_shape
from ._along import REAL, WHOLE, along
from ._defaults import TORCH
from ._words import *

_SUMS: Final = "normal integer opposed positive halfway"
_SUM: Final = Rule("accumulated", TORCH, values=_SUMS)
_EXTREME: Final = Rule("exact", TORCH, values="normal ties nan infinite wide halfway opposed")
_COMPOSITE: Final = Rule("composite", TORCH)
_AXES: Final = "last first middle negative ends turned all"


def _one(x: Array, dim: Sequence[int] | None) -> tuple[int, ...] | None:
    """None for all axes; those of a number are none."""
    return tuple(dim) if dim and x.ndim else None


# A trace of small integers is one of int64 (torch promotes).
@spec("aclnnTrace", _SUM, dtypes("""
self               out
f32                f32
f16                f16
bf16               bf16
f64                f64
c64                c64
c128               c128
i8|i16|i32|i64|u8  i64"""), sizes(M=row(5, 1, 2, 33, 130), N=row(5, 1, 3, 65, 257)),
      self=tensor("M N"), out=out("self"))  # fmt: skip
def trace(self: Array) -> Array:
    whole = self.astype(np.int64) if self.dtype.kind in "iu" else self
    return np.asarray(np.trace(whole))


def _extremes(x: Array, dim: Any, keep: bool) -> tuple[Array, Array]:
    return x.min(dim, keepdims=keep), x.max(dim, keepdims=keep)


_BOUNDS: Final[dict[str, Domain]] = {"minOut": out("self"), "maxOut": out("self")}


@spec("aclnnAminmax", _EXTREME, self=tensor("*S", f"{REAL} bool"), dim=axes("*S", _AXES),
      keepDim=flag(), **_BOUNDS)  # fmt: skip
def aminmax(self: Array, dim: Sequence[int], keepDim: bool) -> tuple[Array, Array]:
    return _extremes(self, _one(self, dim), keepDim)


@spec("aclnnAminmaxAll", _EXTREME, self=tensor("*S", f"{REAL} bool"), **_BOUNDS)
def aminmax_all(self: Array) -> tuple[Array, ...]:
    return tuple(np.asarray(v) for v in _extremes(self, None, False))


@spec("aclnnAminmaxDim", _EXTREME, along("*B A *N"), self=tensor(WHOLE, f"{REAL} bool"),
      dim=axis("A", WHOLE), keepDim=flag(), **_BOUNDS)  # fmt: skip
def aminmax_dim(self: Array, dim: int, keepDim: bool) -> tuple[Array, Array]:
    return _extremes(self, dim, keepDim)


@spec("aclnnMeanV2", _SUM, self=tensor("*S", "f32 f16 bf16 f64"),
      dim=axes("*S", f"{_AXES} none"), keepDim=flag(), noopWithEmptyAxes=flag(),
      out=out("self"))  # fmt: skip
def mean_v2(self: Array, dim: Sequence[int], keepDim: bool, noopWithEmptyAxes: bool) -> Array:
    if not dim and noopWithEmptyAxes:
        return self
    return np.asarray(self.mean(_one(self, dim), keepdims=keepDim))


# Around 8, where squares and means cancel; more elements than are taken off.
_SPREAD: Final[dict[str, Domain]] = {
    "self": forms(centred=tensor("*S", "f32 f16 bf16"), far=tensor("*S", "", 8, 9)),
    "dim": optional(axes("*S", _AXES)),
}  # fmt: skip
_MANY: Final = sizes({"*S": any_shape("3x5", 7, "4x3x5", 1025, "33x65", "9x4", "4x1x3x4")})
_CORRECTION: Final = number(1, 0, 2)


def _counted(x: Array, dim: Sequence[int] | None, correction: int, keep: bool) -> Array:
    """The variance; of too few elements NaN, or an infinity (torch 2.13, torch.var)."""
    axes_ = _one(x, dim)
    mean = x.mean(axes_, keepdims=True)
    squares = ((x - mean) ** 2).sum(axes_, keepdims=keep)
    count = x.size // max(mean.size, 1)
    return np.asarray(squares / max(count - correction, 0))


@spec("aclnnVar", _COMPOSITE, _MANY, **_SPREAD, unbiased=flag(True), keepdim=flag(),
      out=out("self"))  # fmt: skip
def var(self: Array, dim: Sequence[int] | None, unbiased: bool, keepdim: bool) -> Array:
    return _counted(self, dim, int(unbiased), keepdim)


@spec("aclnnVarMean", _COMPOSITE, _MANY, **_SPREAD, correction=_CORRECTION, keepdim=flag(),
      varOut=out("self"), meanOut=out("self"))  # fmt: skip
def var_mean(
    self: Array, dim: Sequence[int] | None, correction: int, keepdim: bool
) -> tuple[Array, Array]:
    mean = np.asarray(self.mean(_one(self, dim), keepdims=keepdim))
    return _counted(self, dim, correction, keepdim), mean


@spec("aclnnStdMeanCorrection", _COMPOSITE, _MANY, **_SPREAD, correction=_CORRECTION,
      keepdim=flag(), stdOut=out("self"), meanOut=out("self"))  # fmt: skip
def std_mean(
    self: Array, dim: Sequence[int] | None, correction: int, keepdim: bool
) -> tuple[Array, Array]:
    variance, mean = var_mean(self, dim, correction, keepdim)
    return np.sqrt(variance), mean


@spec("aclnnNorm", _COMPOSITE, self=tensor("*S", "f32 f16 bf16"),
      pScalar=scalar("f32", 2.0, 1.0, 3.0, 0.0, float("inf"), float("-inf"), 0.5),
      dim=axes("*S", f"{_AXES} none"), keepdim=flag(), out=out("self"))  # fmt: skip
def norm(self: Array, pScalar: float, dim: Sequence[int], keepdim: bool) -> Array:
    size, axes_ = np.abs(self), _one(self, dim)
    if np.isinf(pScalar):
        return np.asarray((size.max if pScalar > 0 else size.min)(axes_, keepdims=keepdim))
    if pScalar == 0:
        return np.asarray((size != 0).sum(axes_, keepdims=keepdim), np.float64)
    return np.asarray((size**pScalar).sum(axes_, keepdims=keepdim) ** (1 / pScalar))


@spec("aclnnCumsumV2", _SUM, along("*B A *N"), self=tensor(WHOLE, f"{REAL} c64 c128"),
      dim=axis("A", WHOLE), exclusive=flag(), reverse=flag(), out=out("self"))  # fmt: skip
def cumsum_v2(self: Array, dim: int, exclusive: bool, reverse: bool) -> Array:
    x = np.flip(self, dim) if reverse else self
    sums = np.cumsum(x, dim)
    if exclusive:
        sums = np.roll(sums, 1, dim)
        np.moveaxis(sums, dim, 0)[:1] = 0
    return np.flip(sums, dim) if reverse else sums


# ACL's numbers of dtypes, as the call repeats them (aclDataType).
_CODES: Final = {"f32": 0, "f16": 1, "bf16": 27}


@spec("aclnnReduceNansum", Rule("accumulated", TORCH, values="normal nan integer"),
      self=tensor("*S", "f32 f16 bf16"), dim=axes("*S", f"{_AXES} none"), keepDim=flag(),
      dtype=by("self.dtype", {k: only(v, "that of the result") for k, v in _CODES.items()}),
      out=out("self"))  # fmt: skip
def nansum(self: Array, dim: Sequence[int], keepDim: bool, dtype: int) -> Array:
    return np.asarray(np.nansum(self, _one(self, dim), keepdims=keepDim))


@spec("aclnnMaxV2", _EXTREME, self=tensor("*S", f"{REAL} bool"),
      dims=axes("*S", f"{_AXES} none"), keepDims=flag(), noopWithEmptyDims=flag(),
      out=out("self"))  # fmt: skip
def max_v2(self: Array, dims: Sequence[int], keepDims: bool, noopWithEmptyDims: bool) -> Array:
    if not dims and noopWithEmptyDims:
        return self
    return np.asarray(self.max(_one(self, dims), keepdims=keepDims))


@spec("aclnnReduceLogSum", Rule("composite", "ONNX operator ReduceLogSum"),
      data=tensor("*S", "f32 f16 bf16", 0.1, 2), axes=axes("*S", f"{_AXES} none"),
      keepDims=flag(), noopWithEmptyAxes=only(False, "ONNX: which of both steps is left out "
      "where no axis is given is not stated"), reduce=out("data"))  # fmt: skip
def log_sum(data: Array, axes: Sequence[int], keepDims: bool) -> Array:
    return np.asarray(np.log(data.sum(_one(data, axes), keepdims=keepDims)))


@spec("aclnnInplaceCumprod", _COMPOSITE, along("*B A *N", A=row(6, 1, 2, 17, 33)),
      input=inout(tensor(WHOLE, "f32 f16 bf16", 0.8, 1.2)),
      dim=axis("A", WHOLE))  # fmt: skip
def inplace_cumprod(input: Array, dim: int) -> Array:
    return np.cumprod(input, int(dim))


def _segment_sums(run: Array) -> Array:
    return np.tril(np.exp(run[..., :, None] - run[..., None, :]))


def _saved(rng: Generator, _pattern: str, draw: Draw) -> Array:
    return _segment_sums(np.cumsum(rng.uniform(-1, 0.2, resolve("*B T", draw)), -1))


_SEGMENTS: Final = sizes(T=row(8, 1, 2, 17, 33, 65))
_MAMBA: Final = "Dao, Gu: Transformers are SSMs, 2024: "


@spec("aclnnExpSegsumBackward", Rule("gradient", f"{_MAMBA}derivative of exp of segment sums",
                                     specials=False), _SEGMENTS,
      gradOutput=tensor("*B T T", "f32"), gradSelf=content(_saved, "saved", "f32",
                                                          shape="*B T T"),
      gradInput=out("gradSelf"))  # fmt: skip
def exp_segsum_back(gradOutput: Array, gradSelf: Array) -> Array:
    """x[k] is in the sums from j < k to i >= k."""
    flow = gradOutput * gradSelf
    size = flow.shape[-1]
    return np.stack([flow[..., k:, :k].sum((-2, -1)) for k in range(size)], -1)


@spec("aclnnExpSegsum", Rule("gradient", f"{_MAMBA}exp of segment sums", sparse=True),
      _SEGMENTS, self=tensor("*B T", "f32", -1, 0.2), out=out("self"))  # fmt: skip
def exp_segsum(self: Array) -> Array:
    run = np.cumsum(self, -1)
    gap = run[..., :, None] - run[..., None, :]
    return np.where(np.tril(np.ones(gap.shape[-2:], bool)), np.exp(gap), 0.0)


@spec("aclnnBincount", Rule("composite", TORCH),
      sizes(T=row(6, 1, 33, 1025), K=row(5, 1, 7, 100)),
      self=forms(i64=index("T", into="K"), i32=index("T", into="K", dtype="i32"),
                 u8=index("T", into="K", dtype="u8", patterns="random edges")),
      weights=optional(tensor("T", "f32 f64")), minlength=number(0, 1, "K+2", "K"),
      out=out("weights|i64"))  # fmt: skip
def bincount(self: Array, weights: Array | None, minlength: int) -> Array:
    return np.bincount(self.astype(np.int64), weights, minlength)


@spec("aclnnHistc", Rule("exact", TORCH, values="normal integer", specials=False),
      self=tensor("*S", "f32", -3, 3), bins=number(7, 1, 4, 100),
      min=scalar("self", -2.0, 0.0, -3.5), max=scalar("self", 2.0, 0.0, 0.5),
      out=out("self"))  # fmt: skip
def histc(self: Array, bins: int, min: float, max: float) -> Array:
    """Bins between equal bounds span the values; around one value, 1 to both sides."""
    low, high = (self.min(), self.max()) if min == max else (min, max)
    if low == high:
        low, high = low - 1, high + 1
    return np.histogram(self, bins, (low, high))[0].astype(np.float64)
