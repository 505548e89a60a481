"""Embedding bags and their renormalization."""

from __future__ import annotations

from itertools import pairwise

from ....spec import *
from ....spec import contents as patterns
from ._defaults import TORCH
from ._words import *


def _starts(rng: Generator, pattern: str, draw: Draw) -> Array:
    """Where each bag begins."""
    ends = np.cumsum(patterns.lengths(rng, pattern, draw["G"], draw["T"]))
    return np.concatenate([[0], ends[:-1]])


_INTO: Final = "random edges repeated sorted reversed"
_BAGS: Final = by("includeLastOffset", {
    False: content(_starts, " ".join(patterns.PARTS)),
    True: parts("G", of="T", form="starts")})  # fmt: skip
_WEIGHTED: Final = "mode == 0"


@spec("aclnnEmbeddingBag",
      Rule("gradient", "torch 2.13, document of F.embedding_bag", strided=False,
           values="normal opposed positive"),
      sizes(V=row(7, 1, 33, 130), N=row(5, 1, 33, 65), T=row(12, 1, 5, 33, 130),
            G=row(3, 1, 2, 8), K=row(4, 1, 17)), require("paddingIdx < V"),
      pin("mode=2 values=opposed", "maxima below 0"),
      pin("mode=2 values=opposed paddingIdx=0 indices=edges", "maxima below 0 beside padding"),
      pin("mode=1 paddingIdx=0 indices=edges", "means that leave padding out"),
      pin("mode=2 values=opposed includeLastOffset=True overload=rows", "bags of one size"),
      overload("list", indices=index("T", into="V", patterns=_INTO), offsets=_BAGS,
               perSampleWeights=optional(tensor("T", "weight", 0.5, 2), only=_WEIGHTED)),
      overload("rows", indices=index("G K", into="V", patterns=_INTO),
               offsets=ignored("indices of two dims are bags of one size",
                               content(_starts, "even")),
               perSampleWeights=optional(tensor("G K", "weight", 0.5, 2), only=_WEIGHTED)),
      weight=tensor("V N", "f32 f16"), indices=index("T", into="V", patterns=_INTO),
      offsets=_BAGS, scaleGradByFreq=ignored("of the gradient", flag()), mode=choice(0, 1, 2),
      sparse=ignored("of the gradient", flag()),
      perSampleWeights=optional(tensor("T", "weight", 0.5, 2), only=_WEIGHTED),
      includeLastOffset=flag(), paddingIdx=number(-1, 0, 3, "V - 1"), output=out("weight"),
      offset2bag=out("indices"), bagSize=out("indices"), maxIndices=out("indices"))  # fmt: skip
def embedding_bag(
    weight: Array, indices: Array, offsets: Array, mode: int, perSampleWeights: Array | None,
    includeLastOffset: bool, paddingIdx: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Sums (mode 0), means (1) and maxima (2) of bags, with the rows that maxima come from; what
    names the padding counts for nothing, and an empty bag gives 0. Indices of two dims are bags of
    one size."""
    if indices.ndim == 2:
        offsets, indices = np.arange(len(indices)) * indices.shape[1], indices.reshape(-1)
        includeLastOffset = False
    factor = 1 if perSampleWeights is None else perSampleWeights.reshape(-1, 1)
    rows = weight[indices] * factor * (indices != paddingIdx)[:, None]
    bounds = [*offsets, *(() if includeLastOffset else (len(indices),))]
    bags = [slice(a, b) for a, b in pairwise(bounds)]
    sizes_ = np.array([(indices[bag] != paddingIdx).sum() for bag in bags])
    bag_of = np.repeat(np.arange(len(bags)), [bag.stop - bag.start for bag in bags])
    if mode < 2:
        sums = np.stack([rows[bag].sum(0) for bag in bags])
        out_ = sums / np.maximum(sizes_, 1)[:, None] if mode else sums
        return out_, bag_of, sizes_, np.zeros((0,), np.int64)
    result = np.zeros((len(bags), weight.shape[1]), weight.dtype)
    best = np.zeros(result.shape, np.int64)
    for at, bag in enumerate(bags):
        named = indices[bag][indices[bag] != paddingIdx]
        if named.size:
            best[at] = named[weight[named].argmax(0)]
            result[at] = weight[named].max(0)
    return result, bag_of, sizes_, best


@spec("aclnnEmbeddingRenorm", Rule("gradient", TORCH, sparse=True),
      sizes(V=row(5, 1, 33, 130), N=row(9, 1, 65, 1025), **{"*I": row(3, "-", 1, "2x5", 130)}),
      selfRef=inout(tensor("V N", "f32 f16 bf16")), indices=index("*I", into="V"),
      maxNorm=number(1.0, 2.0, 0.125, 100.0),
      normType=number(2.0, 1.0, 3.0, 0.5, float("inf")))  # fmt: skip
def embedding_renorm(selfRef: Array, indices: Array, maxNorm: float, normType: float) -> Array:
    result = selfRef.copy()
    for row_ in np.unique(indices):
        size = np.linalg.norm(result[row_], normType)
        if size > maxNorm:
            result[row_] *= maxNorm / (size + 1e-7)
    return result
