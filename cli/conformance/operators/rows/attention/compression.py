"""NsaCompress: keys of overlapping blocks as weighted sums, and its gradient."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import spec, t, take
from .._ignored import one_value


def _blocks(ends: tuple[int, ...], size: int, stride: int) -> list[int]:
    """Where the blocks of each sequence start; what is left of a sequence is dropped."""
    starts = []
    for begin, end in zip((0, *ends[:-1]), ends, strict=True):
        starts += list(range(begin, end - size + 1, stride))
    return starts


_NSA: Final[dict[str, Any]] = {"source": "Yuan et al.: Native Sparse "
                               "Attention, 2025; op-plugin test test_npu_nsa_compress",
                               "tolerance": "gradient",
                               "dtypes": ("float16", "bfloat16")}  # fmt: skip
_LONG: Final[dict[str, Any]] = {
    "input": t(116, 2, 16, dtype="float16"),
    "weight": t(32, 2, dtype="float16", low=-0.2, high=0.2),
    "compressBlockSize": 32, "compressStride": 16, "actSeqLenType": 0,
}  # fmt: skip
_ENDS: Final = (64, 80, 116)


@spec("aclnnNsaCompress", "output:input",
      ignored=one_value("layoutOptional actSeqLenType"),
      constant="compressBlockSize",
      **_NSA, samples=[
    take(**_LONG, actSeqLenOptional=_ENDS, layoutOptional="TND")])  # fmt: skip
def compress(
    input: Array, weight: Array, actSeqLenOptional: tuple[int, ...], compressBlockSize: int,
    compressStride: int,
) -> Array:  # fmt: skip
    """Blocks of [T, N, D] weighed by [block, N] and summed."""
    starts = _blocks(actSeqLenOptional, compressBlockSize, compressStride)
    parts = [input[s : s + compressBlockSize] * weight[..., None] for s in starts]
    return np.stack([p.sum(0) for p in parts])


@spec("aclnnNsaCompressGrad", "inputGradOut:input weightGradOut:weight",
      ignored=one_value("layoutOptionalOptional actSeqLenType"),
      constant="compressBlockSize",
      **_NSA, samples=[
    take(outputGrad=t(4, 2, 16, dtype="float16"), **_LONG, actSeqLenOptionalOptional=_ENDS,
         layoutOptionalOptional="TND")])  # fmt: skip
def compress_grad(
    outputGrad: Array, input: Array, weight: Array, actSeqLenOptionalOptional: tuple[int, ...],
    compressBlockSize: int, compressStride: int,
) -> tuple[Array, Array]:  # fmt: skip
    rows, weights = np.zeros_like(input), np.zeros_like(weight)
    starts = _blocks(actSeqLenOptionalOptional, compressBlockSize, compressStride)
    for flow, s in zip(outputGrad, starts, strict=True):
        rows[s : s + compressBlockSize] += flow * weight[..., None]
        weights += (input[s : s + compressBlockSize] * flow).sum(-1)
    return rows, weights
