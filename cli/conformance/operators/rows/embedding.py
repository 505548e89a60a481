"""Embedding bags and their renormalization."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ....judge.precision import Array
from ..spec import const, spec, t, take
from ._defaults import SPARSE_GRADIENT
from ._ignored import follows


@spec("aclnnEmbeddingBag", "output:weight offset2bag:indices bagSize:indices maxIndices:indices",
      ignored=follows("scaleGradByFreq"),
      tolerance="gradient", source="torch 2.13, document of F.embedding_bag",
      dtypes=("float32", "float16"), fixed_layout=True, samples=[
          take(weight=t(7, 5) if m < 2 else t(7, 5, low=-9, high=-1),
               indices=const([1, 3, 0, 6, 3], "int64"),
               offsets=const(o, "int64"), scaleGradByFreq=False, mode=m, sparse=False,
               perSampleWeights=w, includeLastOffset=last, paddingIdx=pad)
          for m, w, o, last, pad in (
              (0, None, [0, 2, 2], False, -1), (0, t(5, low=0.5), [0, 2, 2], False, -1),
              (0, None, [0, 2, 4], False, 3), (1, None, [0, 2, 4], False, 3),
              (1, None, [0, 2, 5], True, -1), (2, None, [0, 2, 4], False, -1),
              (2, None, [0, 2, 4], False, 6))] + [
          take(weight=t(7, 5), indices=const([[1, 3, 0], [6, 3, 5]], "int64"),
               offsets=const([0, 1], "int64"), scaleGradByFreq=False, mode=m, sparse=False,
               perSampleWeights=None, includeLastOffset=False, paddingIdx=-1)
          for m in (0, 1)])  # fmt: skip
def embedding_bag(
    weight: Array, indices: Array, offsets: Array, mode: int, perSampleWeights: Array | None,
    includeLastOffset: bool, paddingIdx: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Sums (mode 0), means (1) and maxima (2) of bags, with the rows that maxima come from; what
    names the padding counts for nothing. Indices of two dims are bags of one size."""
    if indices.ndim == 2:
        offsets, indices = np.arange(len(indices)) * indices.shape[1], indices.reshape(-1)
        includeLastOffset = False
    rows = weight[indices] * (1 if perSampleWeights is None else perSampleWeights[:, None])
    rows = rows * (indices != paddingIdx)[:, None]
    bounds = [*offsets, *(() if includeLastOffset else (len(indices),))]
    bags = [slice(a, b) for a, b in pairwise(bounds)]
    sizes = np.array([(indices[bag] != paddingIdx).sum() for bag in bags])
    out = np.stack([rows[bag].sum(0) for bag in bags])
    out = out / np.maximum(sizes, 1)[:, None] if mode == 1 else out
    bag_of = np.searchsorted(bounds, np.arange(len(indices)), "right") - 1
    if mode == 2:
        named = [indices[bag][indices[bag] != paddingIdx] for bag in bags]
        best = np.stack([rows[weight[rows].argmax(0)] for rows in named])
        return np.take_along_axis(weight, best, 0), bag_of, sizes, best
    return out, bag_of, sizes, np.zeros((0,), np.int64)


@spec("aclnnEmbeddingRenorm", "selfRef:selfRef", **SPARSE_GRADIENT, samples=[
    take(selfRef=t(5, 9), indices=const([3, 0, 3]), maxNorm=m, normType=p)
    for m, p in ((1.0, 2.0), (2.0, 1.0))])  # fmt: skip
def embedding_renorm(selfRef: Array, indices: Array, maxNorm: float, normType: float) -> Array:
    result = selfRef.copy()
    for row in np.unique(indices):
        size = (np.abs(result[row]) ** normType).sum() ** (1 / normType)
        if size > maxNorm:
            result[row] *= maxNorm / (size + 1e-7)
    return result
