"""Draws of generators, and dropout."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ....judge.precision import Array, numpy_dtype
from .. import draws
from ..spec import const, spec, t, take, unspecified
from ._defaults import COMPOSITE, HEADER_ONLY

_RANDOM: Final[dict[str, Any]] = {
    "tolerance": "random",
    "source": "Knuth: The Art of Computer Programming 3.3 and 3.4; torch's documents",
}
_SEEDS: Final[dict[str, Any]] = {"seedTensor": const([7], "int64"),
                                 "offsetTensor": const([0], "int64"), "offset": 0}  # fmt: skip
for _name, _draws, _more in (
    ("InplaceNormalTensor", draws.normal, {"mean": 1.0, "std": 2.0, **_SEEDS}),
    ("InplaceUniformTensor", draws.uniform, {"from": -1.0, "to": 2.0, **_SEEDS,
                              "seedTensor": const([7], "uint64"),
                              "offsetTensor": const([0], "uint64")}),
    ("InplaceRandomTensor", draws.integers, {"from": -5, "to": 9, **_SEEDS}),
    ("InplaceRandomWithoutFromTo", draws.integers, {"seed": 7, "offset": 0}),
    ("InplaceRandomWithoutFromToTensor", draws.integers, _SEEDS),
):  # fmt: skip
    # Numbers below zero have no place in the unsigned types.
    signed = ("float16", "bfloat16", "float32", "int8", "int16", "int32", "int64")
    spec(f"aclnn{_name}", "selfRef:selfRef", draws=_draws, **_RANDOM,
         dtypes=signed if "from" in _more else (),
         samples=[take(selfRef=t(33, 65), **_more)])(
        lambda selfRef: np.zeros_like(selfRef))  # fmt: skip
spec("aclnnMultinomial", "out:int64", **_RANDOM, draws=draws.categories, samples=[
    take(self=t(331, 9, low=0.1, high=1), numsamples=n, replacement=r, seed=7, offset=0)
    for n, r in ((4, True), (4, False), (9, False))])(
    lambda self, numsamples: np.zeros((len(self), numsamples)))  # fmt: skip
spec("aclnnMultinomialTensor", "out:int64", **_RANDOM, draws=draws.categories, samples=[
    take(self=t(331, 9, low=0.1, high=1), numsamples=4, replacement=r, **_SEEDS)
    for r in (True, False)])(
    lambda self, numsamples: np.zeros((len(self), numsamples)))  # fmt: skip
spec("aclnnDropoutGenMask aclnnDropoutGenMaskV2", "out:uint8", **_RANDOM,
     draws=draws.keep_bits, samples=[
    take(shape=(65, 128), prob=p, seed=7, offset=0, probDataType=0) for p in (0.5, 0.1)])(
    lambda shape: np.zeros(int(np.prod(shape)) // 8))  # fmt: skip
spec("aclnnDropoutV3Grad", "gradX:gradY", tolerance="composite", sparse=True,
     dtypes=("float16", "bfloat16", "float32"), source="Srivastava et al.: Dropout, 2014; the mask "
     "is one bit an element", samples=[
         take(gradY=t(4, 64), mask=t(32, dtype="uint8", low=0, high=255), scale=2.0)])(
    lambda gradY, mask, scale: gradY * scale * np.unpackbits(
        mask.astype(np.uint8), bitorder="little").reshape(gradY.shape))  # fmt: skip


def _fill(x: Array) -> Array:
    return np.zeros_like(x)


for _name, _draws, _extra in (
    ("Normal", draws.normal, {"mean": 1.0, "std": 2.0}),
    ("Uniform", draws.uniform, {"from": -1.0, "to": 2.0}),
    ("Random", draws.integers, {"from": 0, "to": 9}),
):  # fmt: skip
    spec(f"aclnnInplace{_name}", "selfRef:selfRef", **_RANDOM, draws=_draws, samples=[
        take(selfRef=t(*s), seed=1, offset=0, **_extra) for s in ((33, 65), (5001,))])(
        lambda selfRef: _fill(selfRef))  # fmt: skip
spec("aclnnNormalFloatFloat", "out:float32",
     constant="mean std",
     samples=[take(mean=1.0, std=2.0, seed=3, offset=0)],
     draws=draws.normal, **_RANDOM)(lambda mean, std: np.zeros((33, 65)))  # fmt: skip
spec("aclnnNormalFloatTensor", "out:std",
     constant="mean",
     **_RANDOM, draws=draws.normal,
     samples=[take(mean=1.0, std=t(33, 65, low=0.5), seed=3, offset=0)])(
    lambda mean, std: _fill(std))  # fmt: skip
spec("aclnnNormalTensorFloat", "out:mean",
     constant="std",
     **_RANDOM, draws=draws.normal,
     samples=[take(mean=t(33, 65), std=0.5, seed=3, offset=0)])(
    lambda mean, std: _fill(mean))  # fmt: skip
spec("aclnnNormalTensorTensor", "out:mean", **_RANDOM, draws=draws.normal,
     samples=[take(mean=t(33, 65), std=t(33, 65, low=0.5), seed=3, offset=0)])(
    lambda mean, std: _fill(mean))  # fmt: skip
spec("aclnnBernoulli", "out:self",
     constant="prob",
     samples=[take(self=t(33, 65), prob=0.3, seed=3, offset=0)],
     draws=draws.bernoulli, **_RANDOM)(lambda self, prob: _fill(self))  # fmt: skip
spec("aclnnBernoulliTensor", "out:self", **_RANDOM, draws=draws.bernoulli,
     samples=[take(self=t(33, 65), prob=t(33, 65, low=0, high=1), seed=3, offset=0)])(
    lambda self, prob: _fill(self))  # fmt: skip
spec("aclnnRandperm", "out:int64", draws=draws.permutation, **_RANDOM,
     samples=[take(n=n, seed=3, offset=0) for n in (33, 2049)])(
    lambda n: np.arange(n))  # fmt: skip


def dropped(result: Array, arguments: Any) -> tuple[str, Any, Any]:
    """1 where an element stayed and was scaled by 1 / (1 - p), 0 where it fell out; without
    training all stay as they are."""
    kind = numpy_dtype(result.dtype.name)
    keep = 1 - arguments["p"] if arguments.get("train", True) else 1.0
    stayed = (arguments["input"].astype(np.float64) / keep).astype(kind)
    near = np.isclose(result.astype(np.float64), stayed.astype(np.float64), 1e-2)
    return "bernoulli", np.asarray(keep), np.where(near, 1.0, result.astype(np.float64))


spec("aclnnDropout", "out:input maskOut:uint8", tolerance="random",
     draws=dropped, source="torch 2.13, document of F.dropout", samples=[
         take(input=t(65, 128, low=0.5), p=p, train=n, seed=7, offset=0)
         for p, n in ((0.5, True), (0.1, True), (0.5, False))])(
    lambda input: (np.zeros_like(input), np.zeros(input.size // 8)))  # fmt: skip
spec("aclnnDropoutV3", "out:input maskOut:uint8",
     uncovered="optionalNoiseShape",
     tolerance="random",
     draws=dropped, source="torch 2.13, document of F.dropout", samples=[
         take(input=t(65, 128, low=0.5), p=p, seed=7, offset=0) for p in (0.5, 0.1)])(
    lambda input: (np.zeros_like(input), np.zeros(input.size // 8)))  # fmt: skip
spec("aclnnDropoutGenMaskV2Tensor", "out:uint8", tolerance="random",
     draws=draws.keep_bits, source="torch 2.13, document of F.dropout: what stays", samples=[
         take(shape=(65, 128), prob=p, seedTensor=const([7], "int64"),
              offsetTensor=const([0], "int64"), offset=0, probDataType=0) for p in (0.5, 0.1)])(
    lambda shape: np.zeros(int(np.prod(shape)) // 8))  # fmt: skip


def _bits(mask: Array, count: int) -> Array:
    return np.unpackbits(mask.astype(np.uint8), bitorder="little")[:count]


for _name, _scaled in (("aclnnDropoutBackward", "scale"), ("aclnnDropoutDoMask", "prob")):
    _x = "gradOutput" if _scaled == "scale" else "self"
    _number = 2.0 if _scaled == "scale" else 0.5

    def _masked(x: Array, mask: Array, scale: float = 0.0, prob: float = 0.0) -> Array:
        factor = scale or 1 / (1 - prob)
        return x * _bits(mask, x.size).reshape(x.shape) * factor

    spec(_name, "out:x", renamed={_x: "x"}, **{**COMPOSITE, "source":
         "Srivastava et al.: Dropout, 2014; the mask is one bit an element"}, sparse=True, samples=[
        take(x=t(4, 64), mask=t(32, dtype="uint8", low=0, high=255), **{_scaled: _number})])(
        _masked)  # fmt: skip
unspecified("aclnnSimThreadExponential",
            "fills with exponential draws of a generator whose state per thread is not published",
            HEADER_ONLY)  # fmt: skip
