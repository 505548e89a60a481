"""Views, copies, slices, padding and formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import mindtorch.nn.functional as F

from ....judge.precision import Array
from ..formulas import gradient, words
from ..placing import TILES
from ..spec import const, i8, spec, t, take, unspecified
from ._defaults import EXACT, EXACT_FINITE, HEADER_ONLY, TORCH
from ._ignored import follows

_SUMS: Final[dict[str, Any]] = {
    "source": TORCH, "tolerance": "gradient", "sparse": True,
}  # fmt: skip


@spec("aclnnDiag", "out:self", **EXACT, sparse=True, samples=[
    take(self=t(5), diagonal=d) for d in (0, 2, -1)]
    + [take(self=t(5, 7), diagonal=d) for d in (0, 3, -2)])  # fmt: skip
def diag(self: Array, diagonal: int) -> Array:
    return np.diag(self, diagonal)


@spec("aclnnDiagFlat", "out:self", **EXACT, sparse=True, samples=[
    take(self=t(3, 2), diagonal=d) for d in (0, 1, -2)])  # fmt: skip
def diagflat(self: Array, diagonal: int) -> Array:
    return np.diagflat(self, diagonal)


@spec("aclnnExpand", "out:self", samples=[
    take(self=t(1, 5), size=(4, 5)), take(self=t(3, 1), size=(2, 3, 4))], **EXACT)  # fmt: skip
def expand(self: Array, size: tuple[int, ...]) -> Array:
    return np.broadcast_to(self, size)


@spec("aclnnFlatten", "out:self", samples=[take(self=t(2, 3, 4, 5), axis=a) for a in (0, 1, 2)],
      **EXACT)  # fmt: skip
def flatten(self: Array, axis: int) -> Array:
    """ONNX Flatten: always two dimensions."""
    return self.reshape(int(np.prod(self.shape[:axis])), -1)


@spec("aclnnPermute", "out:self", **EXACT, samples=[
    take(self=t(2, 3, 5), dims=d) for d in ((2, 0, 1), (1, 0, 2), (0, 2, 1))])  # fmt: skip
def permute(self: Array, dims: tuple[int, ...]) -> Array:
    return self.transpose(dims)


@spec("aclnnChannelShuffle", "out:self", **EXACT,
      samples=[take(self=t(2, 6, 3, 5), groups=g) for g in (2, 3)])  # fmt: skip
def channel_shuffle(self: Array, groups: int) -> Array:
    n, c, *rest = self.shape
    return self.reshape(n, groups, c // groups, *rest).swapaxes(1, 2).reshape(self.shape)


@spec("aclnnSlice", "out:self", **EXACT, samples=[
    take(self=t(5, 9), dim=d, start=s, end=e, step=p)
    for d, s, e, p in ((1, 2, 8, 2), (0, 1, 5, 1), (1, -5, -1, 3))])  # fmt: skip
def slice_of(self: Array, dim: int, start: int, end: int, step: int) -> Array:
    return self[(slice(None),) * dim + (slice(start, end, step),)]


@spec("aclnnSliceV2", "out:self", **EXACT, samples=[
    take(self=t(5, 9), starts=(1, 2), ends=(5, 8), axes=(0, 1), steps=(1, 1)),
    take(self=t(5, 9), starts=(2,), ends=(9,), axes=(1,), steps=(1,))])  # fmt: skip
def slice_v2(
    self: Array,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int],
    steps: Sequence[int],
) -> Array:
    place = [slice(None)] * self.ndim
    for s, e, a, p in zip(starts, ends, axes, steps, strict=True):
        place[a] = slice(s, e, p)
    return self[tuple(place)]


@spec("aclnnStridedSliceAssignV2", "varRef:varRef",
      constant="end",
      **EXACT, samples=[
    take(varRef=t(5, 9), inputValue=t(2, 3), begin=(1, 2), end=(5, 8), strides=(2, 2),
         axesOptional=(0, 1))])  # fmt: skip
def strided_slice_assign(
    varRef: Array,
    inputValue: Array,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
    axesOptional: tuple[int, ...] | None,
) -> Array:
    result = varRef.copy()
    result[tuple(slice(*s) for s in zip(begin, end, strides, strict=True))] = inputValue
    return result


@spec("aclnnSplitTensor", "out:self", **EXACT, samples=[
    take(self=t(7, 4), splitSections=3, dim=0), take(self=t(3, 8), splitSections=4, dim=1),
    take(self=t(19, 3), splitSections=2, dim=0)],
    )  # fmt: skip
def split_tensor(self: Array, splitSections: int, dim: int) -> tuple[list[Array]]:
    return (np.split(self, range(splitSections, self.shape[dim], splitSections), dim),)


@spec("aclnnSplitWithSize", "out:self", **EXACT, samples=[
    take(self=t(7, 4), splitSize=(3, 1, 3), dim=0), take(self=t(3, 9), splitSize=(2, 7), dim=-1),
    take(self=t(17, 3), splitSize=(1, 2, 1, 3, 2, 1, 1, 4, 2), dim=0)],
    )  # fmt: skip
def split_with_size(self: Array, splitSize: Sequence[int], dim: int) -> tuple[list[Array]]:
    return (np.split(self, np.cumsum(splitSize)[:-1], dim),)


@spec("aclnnInplaceFillDiagonal", "selfRef:selfRef", **EXACT,
      samples=[take(selfRef=t(5, 7), fillValue=2.5, wrap=False),
               take(selfRef=t(7, 3), fillValue=3.0, wrap=True)])  # fmt: skip
def fill_diagonal(selfRef: Array, fillValue: float, wrap: bool) -> Array:
    result = selfRef.copy()
    np.fill_diagonal(result, fillValue, wrap)
    return result


for _name, _samples in {
    "aclnnRepeatInterleave": [
        take(self=t(2, 3), repeats=const([1, 0, 2, 1, 3, 1]), outputSize=8)],
    "aclnnRepeatInterleaveWithDim": [
        take(self=t(3, 4), repeats=const([1, 3, 2]), dim=0, outputSize=6),
        take(self=t(3, 2), repeats=const([2, 1]), dim=1, outputSize=3)],
    "aclnnRepeatInterleaveInt": [take(self=t(2, 3), repeats=3, outputSize=18)],
    "aclnnRepeatInterleaveIntWithDim": [
        take(self=t(2, 3), repeats=3, dim=1, outputSize=9)],
}.items():  # fmt: skip
    spec(_name, "out:self", samples=_samples, ignored=follows("outputSize"), **EXACT)(
        lambda self, repeats, dim=None: np.repeat(self, repeats, dim))  # fmt: skip
spec("aclnnRepeatInterleaveTensor", "out:int64",
     ignored=follows("outputSize"),
     **EXACT,
     samples=[take(repeats=const([1, 0, 2, 3]), outputSize=6)])(
    lambda repeats: np.repeat(np.arange(repeats.size), repeats))  # fmt: skip


@spec("aclnnRepeatInterleaveGrad", "out:yGrad", **_SUMS, samples=[
    take(yGrad=t(6, 4), repeats=const([1, 3, 2]), axis=0)])  # fmt: skip
def repeat_interleave_grad(yGrad: Array, repeats: int, axis: int) -> Array:
    ends = np.cumsum(repeats)
    parts = np.split(yGrad, ends[:-1], axis)
    return np.stack([p.sum(axis) for p in parts], axis)


@spec("aclnnUnfoldGrad", "gradIn:gradOut", **_SUMS, samples=[
    take(gradOut=t(3, 4, 3), inputSizes=(3, 9), dim=1, size=3, step=2),
    take(gradOut=t(4, 5, 2), inputSizes=(5, 5), dim=0, size=2, step=1)])  # fmt: skip
def unfold_grad(
    gradOut: Array, inputSizes: tuple[int, ...], dim: int, size: int, step: int
) -> Array:
    result = np.zeros(inputSizes)
    lead = np.moveaxis(result, dim, 0)
    flow = np.moveaxis(gradOut, dim, 0)
    for at in range(flow.shape[0]):
        lead[at * step : at * step + size] += np.moveaxis(flow[at], -1, 0)
    return result


_PADS: Final[dict[int, list[Any]]] = {
    1: [((2, 3, 9), (2, 1)), ((3, 9), (0, 3))],
    2: [((2, 3, 6, 7), (2, 1, 3, 0)), ((3, 6, 7), (1, 1, 1, 2))],
    3: [((1, 2, 5, 6, 7), (2, 1, 1, 0, 2, 3))],
}  # fmt: skip
for _kind, _mode in (("Reflection", "reflect"), ("Replication", "replicate"),
                     ("Circular", "circular")):  # fmt: skip
    for _rank, _cases in _PADS.items():
        if _kind == "Circular" and _rank == 1:
            continue
        _whole = [take(self=t(*s), padding=p) for s, p in _cases if _kind != "Circular"
                  or len(s) == _rank + 2]  # fmt: skip
        spec(f"aclnn{_kind}Pad{_rank}d", "out:self", samples=_whole,
             **EXACT)(
            words(lambda self, padding, _mode=_mode: F.pad(self, padding, _mode)))  # fmt: skip
        _flows = []
        for _sample in _whole:
            _shape = list(_sample.kwargs["self"].shape)
            for _n, _p in enumerate(_sample.kwargs["padding"]):
                _shape[-1 - _n // 2] += _p
            _flows.append(take(gradOutput=t(*_shape), **_sample.kwargs))
        spec(f"aclnn{_kind}Pad{_rank}dBackward", "gradInput:self", samples=_flows,
             dtypes=("float32", "float16"), constant="padding" if _rank == 3 else "", **_SUMS)(
            gradient(lambda self, padding, _mode=_mode: F.pad(self, padding, _mode),
                     grad="gradOutput", of="self"))  # fmt: skip


@spec("aclnnChunkCat", "out:tensors",
      constant="dim",
      **{**EXACT_FINITE, "source": "torch 2.13, torch._chunk_cat"},
      samples=[take(tensors=[t(4, 6), t(8, 2)], dim=0, numChunks=2)])  # fmt: skip
def chunk_cat(tensors: tuple[Array, ...], dim: int, numChunks: int) -> Array:
    parts = [x.reshape(numChunks, -1) for x in tensors]
    return np.concatenate(parts, 1)


@spec(
    "aclnnStridedSlice",
    "out:self",
    **{**EXACT_FINITE, "source": "TensorFlow document: strided_slice"},
    samples=[
        take(
            self=t(5, 9),
            begin=(1, 8),
            end=(5, 0),
            strides=(2, -2),
            beginMask=0,
            endMask=m,
            ellipsisMask=0,
            newAxisMask=0,
            shrinkAxisMask=0,
        )
        for m in (0, 2)
    ]
    + [
        take(
            self=t(5, 9),
            begin=(2, 1),
            end=(3, 9),
            strides=(1, 3),
            beginMask=0,
            endMask=0,
            ellipsisMask=0,
            newAxisMask=0,
            shrinkAxisMask=1,
        )
    ]
    # An entry for all dims between, one for a new dim, one at each end that masks leave open.
    + [
        take(
            self=t(3, 5, 4, 9),
            begin=(7, 2, 7, -1),
            end=(2, 0, 7, 2),
            strides=(1, 1, 1, -3),
            beginMask=m,
            endMask=m,
            ellipsisMask=2,
            newAxisMask=4,
            shrinkAxisMask=0,
        )
        for m in (1, 9)
    ]
    + [
        take(
            self=t(3, 5, 9),
            begin=(-1, 0, -4),
            end=(0, 0, -1),
            strides=(1, 1, 1),
            beginMask=0,
            endMask=0,
            ellipsisMask=2,
            newAxisMask=0,
            shrinkAxisMask=1,
        )
    ]
    + [
        take(
            self=t(5, 9),
            begin=(0, 1),
            end=(1, 9),
            strides=(1, 3),
            beginMask=0,
            endMask=0,
            ellipsisMask=0,
            newAxisMask=0,
            shrinkAxisMask=1,
        )
    ],
)
def strided_slice(
    self: Array,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
    beginMask: int,
    endMask: int,
    ellipsisMask: int,
    newAxisMask: int,
    shrinkAxisMask: int,
) -> Array:
    place: list[Any] = []
    for n, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
        ends = slice(None if beginMask >> n & 1 else b, None if endMask >> n & 1 else e, s)
        place.append(... if ellipsisMask >> n & 1 else None if newAxisMask >> n & 1
                     else b if shrinkAxisMask >> n & 1 else ends)  # fmt: skip
    return self[tuple(place)]


@spec("aclnnConfusionTranspose", "out:x", tolerance="exact",
      source="op-plugin, document of npu_confusion_transpose: a transposition before or after a "
      "change of shape", samples=[
          take(x=t(4, 6, 5), perm=(1, 2, 0), shape=(15, 8), transpose_first=True),
          take(x=t(4, 6, 5), perm=(2, 0, 1), shape=(3, 8, 5), transpose_first=False),
          # Heads taken apart and put together again, as in attention; flat shapes and more dims.
          take(x=t(2, 3, 4, 5), perm=(0, 2, 1, 3), shape=(2, 4, 15), transpose_first=True),
          take(x=t(2, 4, 15), perm=(0, 2, 1, 3), shape=(2, 4, 3, 5), transpose_first=False),
          take(x=t(7, 6), perm=(1, 0), shape=(42,), transpose_first=True),
          take(x=t(2, 1, 3, 2, 4), perm=(4, 1, 3, 0, 2), shape=(8, 6), transpose_first=True),
          take(x=t(48), perm=(3, 1, 0, 2), shape=(2, 3, 2, 4), transpose_first=False),
      ])  # fmt: skip
def confusion_transpose(
    x: Array, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> Array:
    if transpose_first:
        return np.transpose(x, perm).reshape(shape)
    return np.transpose(x.reshape(shape), perm)


@spec("aclnnNpuFormatCast", "dstTensor:srcTensor", tolerance="exact",
      formats={"dstTensor": TILES}, dtypes=("float16", "bfloat16", "int8"),
      source="op-plugin documents npu_format_cast and npu_grouped_matmul: FRACTAL_NZ is "
      "[n / n0, k / 16, 16, n0], a tile's row has 32 bytes", samples=[
          take(srcTensor=t(20, 33, dtype="float16")), take(srcTensor=t(2, 16, 40, dtype="float16")),
          take(srcTensor=i8(33, 40))])  # fmt: skip
def in_inner_format(srcTensor: Array) -> Array:
    """Element (r, c) lies in row r of column c / n0 of tiles, at c modulo n0."""
    wide = 32 if srcTensor.dtype.kind == "i" else 16
    *batch, rows, columns = srcTensor.shape
    high, across = -(-rows // 16) * 16, -(-columns // wide)
    flat = np.zeros((*batch, across, high, wide), srcTensor.dtype)
    for c in range(columns):
        flat[..., c // wide, :rows, c % wide] = srcTensor[..., c]
    return flat.reshape(*batch, across, high // 16, 16, wide)


unspecified(
    "aclnnTransMatmulWeight",
    "rewrites a weight in a private order that only its matmul reads",
    HEADER_ONLY,
)
unspecified(
    "aclnnTransConvolutionWeight",
    "rewrites a weight in a private order that only its convolution reads",
    HEADER_ONLY,
)
