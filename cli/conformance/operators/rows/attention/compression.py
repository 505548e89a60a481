"""NsaCompress: keys of overlapping blocks as weighted sums, and its gradient."""

from __future__ import annotations

from .....spec import *
from .....spec import heads as heads_
from .._words import *


def _blocks(ends: Sequence[int], size: int, stride: int) -> list[int]:
    """Where the blocks of each sequence start; what is left of a sequence is dropped."""
    starts: list[int] = []
    for begin, end in zip((0, *ends[:-1]), ends, strict=True):
        starts += list(range(begin, end - size + 1, stride))
    return starts


_NSA: Final = Rule("gradient", "Yuan et al.: Native Sparse Attention, 2025; op-plugin test "
                   "test_npu_nsa_compress")  # fmt: skip
_SIZES: Final = sizes(T=tokens(116, 64, 96, 260), B=heads_(3, 1, 2), N=heads_(2, 1, 3),
                      D=head_dim(16, 64, 192))  # fmt: skip
_HALVES: Final = "f16 bf16"
_ENDS: Final = parts("B", of="T", form="ends")
_BLOCK: Final = {"compressBlockSize": integer(32, 16, 64), "compressStride": integer(16, 32)}
_LAYOUT: Final = only("TND", "documents allow one value")
_KIND: Final = only(0, "documents allow one value: ends")
_OVER: Final = both("compressStride < compressBlockSize")


@spec("aclnnNsaCompress", _NSA, _SIZES, _OVER, input=tensor("T N D", _HALVES),
      weight=tensor("compressBlockSize N", "input", -0.2, 0.2), actSeqLenOptional=_ENDS,
      layoutOptional=_LAYOUT, **_BLOCK, actSeqLenType=_KIND, output=out("input"))  # fmt: skip
def compress(
    input: Array, weight: Array, actSeqLenOptional: Sequence[int], compressBlockSize: int,
    compressStride: int,
) -> Array:  # fmt: skip
    """Blocks of [T, N, D] weighed by [block, N] and summed."""
    starts = _blocks(actSeqLenOptional, compressBlockSize, compressStride)
    whole = np.zeros((len(starts), *input.shape[1:]))
    for at, s in enumerate(starts):
        whole[at] = (input[s : s + compressBlockSize] * weight[..., None]).sum(0)
    return whole


def _flows(rng: np.random.Generator, _pattern: str, draw: Draw) -> Array:
    """What flows into every block."""
    starts = _blocks(draw["actSeqLenOptionalOptional"].values().tolist(),
                     draw["compressBlockSize"], draw["compressStride"])  # fmt: skip
    return rng.uniform(-2, 2, (len(starts), draw["N"], draw["D"]))


_READS: Final = ("actSeqLenOptionalOptional", "compressBlockSize", "compressStride", "N", "D")


@spec("aclnnNsaCompressGrad", _NSA, _SIZES, _OVER,
      outputGrad=content(_flows, "any", "input", reads=_READS), input=tensor("T N D", _HALVES),
      weight=tensor("compressBlockSize N", "input", -0.2, 0.2), actSeqLenOptionalOptional=_ENDS,
      **_BLOCK, actSeqLenType=_KIND, layoutOptionalOptional=_LAYOUT, inputGradOut=out("input"),
      weightGradOut=out("weight"))  # fmt: skip
def compress_grad(
    outputGrad: Array, input: Array, weight: Array, actSeqLenOptionalOptional: Sequence[int],
    compressBlockSize: int, compressStride: int,
) -> tuple[Array, Array]:  # fmt: skip
    rows, weights = np.zeros_like(input), np.zeros_like(weight)
    starts = _blocks(actSeqLenOptionalOptional, compressBlockSize, compressStride)
    for flow, s in zip(outputGrad, starts, strict=True):
        rows[s : s + compressBlockSize] += flow * weight[..., None]
        weights += (input[s : s + compressBlockSize] * flow).sum(-1)
    return rows, weights
