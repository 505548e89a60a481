"""Moves, indices, padding, counting: nothing is rounded, so every bit counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import mindtorch.nn.functional as F
from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..formulas import gradient, words
from ..spec import given, spec, t, take

_TORCH: Final = "torch 2.13, document of the function of this name"
_EXACT: Final[dict[str, Any]] = {"family": "move", "source": _TORCH, "tolerance": "exact"}
_SUMS: Final[dict[str, Any]] = {
    "family": "move", "source": _TORCH, "tolerance": "gradient", "sparse": True,
}  # fmt: skip


def _i(values: object, dtype: str = "int64") -> Arg:
    return given(values, dtype)


@spec("aclnnDiag", "out:self", **_EXACT, sparse=True, samples=[
    take(self=t(5), diagonal=d) for d in (0, 2, -1)]
    + [take(self=t(5, 7), diagonal=d) for d in (0, 3, -2)])  # fmt: skip
def diag(self: Array, diagonal: int) -> Array:
    return np.diag(self, diagonal)


@spec("aclnnDiagFlat", "out:self", **_EXACT, sparse=True, samples=[
    take(self=t(3, 2), diagonal=d) for d in (0, 1, -2)])  # fmt: skip
def diagflat(self: Array, diagonal: int) -> Array:
    return np.diagflat(self, diagonal)


@spec("aclnnExpand", "out:self", samples=[
    take(self=t(1, 5), size=(4, 5)), take(self=t(3, 1), size=(2, 3, 4))], **_EXACT)  # fmt: skip
def expand(self: Array, size: tuple[int, ...]) -> Array:
    return np.broadcast_to(self, size)


@spec("aclnnFlatten", "out:self", samples=[take(self=t(2, 3, 4, 5), axis=a) for a in (0, 1, 2)],
      **_EXACT)  # fmt: skip
def flatten(self: Array, axis: int) -> Array:
    """ONNX Flatten: always two dimensions."""
    return self.reshape(int(np.prod(self.shape[:axis])), -1)


@spec("aclnnPermute", "out:self", **_EXACT, samples=[
    take(self=t(2, 3, 5), dims=d) for d in ((2, 0, 1), (1, 0, 2), (0, 2, 1))])  # fmt: skip
def permute(self: Array, dims: tuple[int, ...]) -> Array:
    return self.transpose(dims)


@spec("aclnnChannelShuffle", "out:self", **_EXACT,
      samples=[take(self=t(2, 6, 3, 5), groups=g) for g in (2, 3)])  # fmt: skip
def channel_shuffle(self: Array, groups: int) -> Array:
    n, c, *rest = self.shape
    return self.reshape(n, groups, c // groups, *rest).swapaxes(1, 2).reshape(self.shape)


@spec("aclnnSlice", "out:self", **_EXACT, samples=[
    take(self=t(5, 9), dim=d, start=s, end=e, step=p)
    for d, s, e, p in ((1, 2, 8, 2), (0, 1, 5, 1), (1, -5, -1, 3))])  # fmt: skip
def slice_of(self: Array, dim: int, start: int, end: int, step: int) -> Array:
    return self[(slice(None),) * dim + (slice(start, end, step),)]


@spec("aclnnSliceV2", "out:self", **_EXACT, samples=[
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


@spec("aclnnStridedSliceAssignV2", "varRef:varRef", **_EXACT, samples=[
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


@spec("aclnnSplitTensor", "out:self", **_EXACT, samples=[
    take(self=t(7, 4), splitSections=3, dim=0), take(self=t(3, 8), splitSections=4, dim=1),
    take(self=t(19, 3), splitSections=2, dim=0)],
    )  # fmt: skip
def split_tensor(self: Array, splitSections: int, dim: int) -> tuple[list[Array]]:
    return (np.split(self, range(splitSections, self.shape[dim], splitSections), dim),)


@spec("aclnnSplitWithSize", "out:self", **_EXACT, samples=[
    take(self=t(7, 4), splitSize=(3, 1, 3), dim=0), take(self=t(3, 9), splitSize=(2, 7), dim=-1),
    take(self=t(17, 3), splitSize=(1, 2, 1, 3, 2, 1, 1, 4, 2), dim=0)],
    )  # fmt: skip
def split_with_size(self: Array, splitSize: Sequence[int], dim: int) -> tuple[list[Array]]:
    return (np.split(self, np.cumsum(splitSize)[:-1], dim),)


@spec("aclnnGatherV2", "out:self", **{**_EXACT, "family": "index"}, samples=[
    take(self=t(5, 7), dim=0, index=_i([[0, 4, 2], [1, 1, 3]])),
    take(self=t(5, 7), dim=1, index=_i([6, 0, 3])),
    take(self=t(3, 4, 7), dim=1, index=_i([[3, 0, 2], [1, 1, 3]])),
    take(self=t(5, 2, 7), dim=-1, index=_i([6, 5], "int32"))])  # fmt: skip
def gather_v2(self: Array, dim: int, index: Array) -> Array:
    return np.take(self, index, dim)


@spec("aclnnTake", "out:self", **{**_EXACT, "family": "index"},
      samples=[take(self=t(3, 5), index=_i([[0, 14], [7, -1]]))])  # fmt: skip
def take_flat(self: Array, index: Array) -> Array:
    return self.reshape(-1)[index]


@spec("aclnnIndexCopy", "outRef:selfRef", **{**_EXACT, "family": "index"}, samples=[
    take(selfRef=t(5, 7), dim=0, index=_i([4, 0, 2]), source=t(3, 7), outRef=t(5, 7)),
    take(selfRef=t(5, 7), dim=1, index=_i([6, 1]), source=t(5, 2), outRef=t(5, 7))])  # fmt: skip
def index_copy(selfRef: Array, dim: int, index: Array, source: Array) -> Array:
    result = selfRef.copy()
    result[(slice(None),) * dim + (index,)] = source
    return result


@spec("aclnnIndexFillTensor", "out:self", **{**_EXACT, "family": "index"}, samples=[
    take(self=t(5, 7), dim=d, index=i, value=2.5) for d, i in ((0, (1, 3)), (1, (6, 0)))],
    )  # fmt: skip
def index_fill(self: Array, dim: int, index: Array, value: float) -> Array:
    result = self.copy()
    result[(slice(None),) * dim + (list(index),)] = value
    return result


@spec("aclnnInplaceFillDiagonal", "selfRef:selfRef", **_EXACT,
      samples=[take(selfRef=t(5, 7), fillValue=2.5, wrap=False),
               take(selfRef=t(7, 3), fillValue=3.0, wrap=True)])  # fmt: skip
def fill_diagonal(selfRef: Array, fillValue: float, wrap: bool) -> Array:
    result = selfRef.copy()
    np.fill_diagonal(result, fillValue, wrap)
    return result


@spec("aclnnInplaceFillTensor", "selfRef:selfRef", **_EXACT, sparse=True,
      samples=[take(selfRef=t(5, 7), value=given([2.5], "float32"))])  # fmt: skip
def fill_tensor(selfRef: Array, value: Array) -> Array:
    return np.full_like(selfRef, value.reshape(()))


@spec("aclnnInplaceMaskedScatter", "selfRef:selfRef", **{**_EXACT, "family": "index"}, samples=[
    take(selfRef=t(3, 5), mask=_i((np.arange(15).reshape(3, 5) % 3 == 0).tolist(), "bool"),
         source=t(9))])  # fmt: skip
def masked_scatter(selfRef: Array, mask: Array, source: Array) -> Array:
    result = selfRef.copy()
    result[mask] = source.reshape(-1)[: int(mask.sum())]
    return result


@spec("aclnnInplacePut", "selfRef:selfRef", **{**_EXACT, "family": "index"}, samples=[
    take(selfRef=t(3, 5), index=_i([[0, 14], [7, 2]]), source=t(2, 2), accumulate=a)
    for a in (False, True)])  # fmt: skip
def put(selfRef: Array, index: Array, source: Array, accumulate: bool) -> Array:
    result = selfRef.copy().reshape(-1)
    if accumulate:
        np.add.at(result, index, source)
    else:
        result[index] = source
    return result.reshape(selfRef.shape)


@spec("aclnnMaskedSelect", "out:self", **{**_EXACT, "family": "index"}, fixed_layout=True, samples=[
    take(self=t(3, 5), mask=_i((np.arange(15).reshape(3, 5) % 4 == 1).tolist(), "bool"))],
    )  # fmt: skip
def masked_select(self: Array, mask: Array) -> Array:
    return self[mask]


_SPARSE: Final = [[0.0, 1.5, 0.0, 2.0], [3.0, 0.0, 0.0, -1.0]]


@spec("aclnnNonzero", "out:int64", **_EXACT, fixed_layout=True,
      samples=[take(self=given(_SPARSE, "float32"))])  # fmt: skip
def nonzero(self: Array) -> Array:
    return np.argwhere(self).astype(np.int64)


spec("aclnnNonzeroV2", "out:int64", samples=[take(self=given(_SPARSE, "float32"))], **_EXACT,
     fixed_layout=True)(lambda self: np.argwhere(self).T.astype(np.int64))  # fmt: skip


@spec("aclnnOneHot", "out:onValue", **_EXACT, sparse=True, samples=[
    take(self=_i([3, 0, 1, 2]), numClasses=5, onValue=_i([1]), offValue=_i([0]), axis=-1),
    take(self=_i([[3, 0], [1, 4]]), numClasses=5, onValue=_i([7]), offValue=_i([-2]), axis=-1)],
    )  # fmt: skip
def one_hot(self: Array, numClasses: int, onValue: Array, offValue: Array, axis: int) -> Array:
    hit = self[..., None] == np.arange(numClasses)
    return np.where(hit, onValue.reshape(()), offValue.reshape(()))


@spec("aclnnBincount", "out:weights", family="index", source=_TORCH, tolerance="composite",
      dtypes=("float32", "float64"), samples=[
    take(self=_i([1, 3, 1, 0, 3, 3]), weights=t(6), minlength=m) for m in (0, 7)])  # fmt: skip
def bincount(self: Array, weights: Array | None, minlength: int) -> Array:
    return np.bincount(self, weights, minlength)


_EDGES: Final = given([-1.0, 0.0, 0.5, 1.25], "float32")


@spec("aclnnBucketize", "out:int64", **_EXACT, samples=[
    take(self=given([[-2.0, 0.0, 0.25], [0.5, 1.25, 9.0]], "float32"), boundaries=_EDGES,
         outInt32=False, right=r) for r in (False, True)])  # fmt: skip
def bucketize(self: Array, boundaries: Array, outInt32: bool, right: bool) -> Array:
    places = np.searchsorted(boundaries, self, "right" if right else "left")
    return np.asarray(places, np.int64)


@spec("aclnnSearchSorted", "out:int64", **_EXACT, samples=[
    take(sortedSequence=given([[-1.0, 0.0, 0.5], [1.0, 2.0, 3.0]], "float32"),
         self=given([[0.0, 0.25], [2.0, 9.0]], "float32"), outInt32=False, right=r)
    for r in (False, True)] + [
    # NaN lies behind all numbers; integers that no double holds.
    take(sortedSequence=given([[-1.0, 0.0, 0.5]], "float32"),
         self=given([[float("nan"), 0.25]], "float32"), outInt32=False, right=r)
    for r in (False, True)] + [
    take(sortedSequence=given([[2**53, 2**53 + 1, 2**53 + 3, 2**53 + 5]], "int64"),
         self=given([[2**53 + 1, 2**53 + 2, 2**53 + 4]], "int64"), outInt32=False, right=False)
    ])  # fmt: skip
def search_sorted(
    sortedSequence: Array, self: Array, outInt32: bool, right: bool, sorter: Array
) -> Array:  # fmt: skip
    side: Any = "right" if right else "left"
    rows = zip(sortedSequence, self, strict=True)
    return np.stack([np.searchsorted(a, v, side) for a, v in rows]).astype(np.int64)


@spec("aclnnSearchSorteds", "out:int64", **_EXACT, samples=[
    take(sortedSequence=_EDGES, self=s, outInt32=False, right=r)
    for r in (False, True) for s in (0.5, 3.0)])  # fmt: skip
def search_sorteds(
    sortedSequence: Array, self: float, outInt32: bool, right: bool, sorter: Array
) -> Array:  # fmt: skip
    return np.asarray(np.searchsorted(sortedSequence, self, "right" if right else "left"), np.int64)


@spec("aclnnIsInScalarTensor", "out:bool", **_EXACT, samples=[
    take(element=e, testElements=_i([1, 5, 7]), assumeUnique=False, invert=v)
    for e in (5, 2) for v in (False, True)] + [
    take(element=5, testElements=given([], "int64"), assumeUnique=False, invert=v)
    for v in (False, True)])  # fmt: skip
def is_in_scalar(element: float, testElements: Array, assumeUnique: bool, invert: bool) -> Array:
    return np.asarray(bool((testElements == element).any()) ^ invert)


@spec("aclnnIsInTensorScalar", "out:bool", **_EXACT, samples=[
    take(element=_i([[1, 5], [7, 5]]), testElement=5, assumeUnique=False, invert=v)
    for v in (False, True)])  # fmt: skip
def is_in_tensor(element: Array, testElement: float, assumeUnique: bool, invert: bool) -> Array:
    return np.equal(element, testElement) ^ invert


@spec("aclnnArgsort", "out:int64", **{**_EXACT, "family": "sort"}, samples=[
    take(self=t(3, 65), dim=1, descending=False), take(self=t(65, 3), dim=0, descending=True),
    take(self=t(1025), dim=-1, descending=False)], dtypes=("float32",))  # fmt: skip
def argsort(self: Array, dim: int, descending: bool) -> Array:
    return np.argsort(-self if descending else self, dim, kind="stable").astype(np.int64)


_MEDIAN: Final = [take(self=t(3, 65), dim=d, keepDim=k) for d, k in ((1, False), (0, True))]


def _kth(self: Array, dim: int, keepDim: bool) -> tuple[Array, Array]:
    rank = (self.shape[dim] - 1) // 2
    at = np.expand_dims(np.take(np.argsort(self, dim, kind="stable"), rank, dim), dim)
    value = np.take_along_axis(self, at, dim)
    return (value, at) if keepDim else (value.squeeze(dim), at.squeeze(dim))


spec("aclnnMedianDim aclnnNanMedianDim", "valuesOut:self indicesOut:int64", samples=_MEDIAN,
     **{**_EXACT, "family": "sort"}, dtypes=("float32",), specials=False)(_kth)  # fmt: skip
spec("aclnnMedian", "valuesOut:self", samples=[take(self=t(3, 65)), take(self=t(4))],
     **{**_EXACT, "family": "sort"}, specials=False)(
    lambda self: np.asarray(np.sort(self, None)[(self.size - 1) // 2]))  # fmt: skip
spec("aclnnNanMedian", "out:self", samples=[take(self=t(3, 65)), take(self=t(4))],
     **{**_EXACT, "family": "sort"}, specials=False)(
    lambda self: np.asarray(np.sort(self, None)[(self.size - 1) // 2]))  # fmt: skip


@spec("aclnnHistc", "out:self", **_EXACT, samples=[
    take(self=t(3, 65, low=-3, high=3), bins=7, min=-2.0, max=2.0),
    take(self=given([1.0, 2.0, 2.0, 5.0], "float32"), bins=4, min=0.0, max=0.0)],
    dtypes=("float32",))  # fmt: skip
def histc(self: Array, bins: int, min: float, max: float) -> Array:
    low, high = (self.min(), self.max()) if min == max else (min, max)
    return np.histogram(self, bins, (low, high))[0].astype(np.float64)


for _name, _samples in {
    "aclnnRepeatInterleave": [
        take(self=t(2, 3), repeats=_i([1, 0, 2, 1, 3, 1]), outputSize=8)],
    "aclnnRepeatInterleaveWithDim": [
        take(self=t(3, 4), repeats=_i([1, 3, 2]), dim=0, outputSize=6),
        take(self=t(3, 2), repeats=_i([2, 1]), dim=1, outputSize=3)],
    "aclnnRepeatInterleaveInt": [take(self=t(2, 3), repeats=3, outputSize=18)],
    "aclnnRepeatInterleaveIntWithDim": [
        take(self=t(2, 3), repeats=3, dim=1, outputSize=9)],
}.items():  # fmt: skip
    spec(_name, "out:self", samples=_samples, **_EXACT)(
        lambda self, repeats, dim=None: np.repeat(self, repeats, dim))  # fmt: skip
spec("aclnnRepeatInterleaveTensor", "out:int64", **_EXACT,
     samples=[take(repeats=_i([1, 0, 2, 3]), outputSize=6)])(
    lambda repeats: np.repeat(np.arange(repeats.size), repeats))  # fmt: skip


@spec("aclnnRepeatInterleaveGrad", "out:yGrad", **_SUMS, samples=[
    take(yGrad=t(6, 4), repeats=_i([1, 3, 2]), axis=0)])  # fmt: skip
def repeat_interleave_grad(yGrad: Array, repeats: int, axis: int) -> Array:
    ends = np.cumsum(repeats)
    parts = np.split(yGrad, ends[:-1], axis)
    return np.stack([p.sum(axis) for p in parts], axis)


spec("aclnnRange", "out:float32", **{**_EXACT, "tolerance": "composite"}, samples=[
    take(start=1.0, end=7.0, step=1.5), take(start=5.0, end=-1.0, step=-2.0)])(
    lambda start, end, step: np.arange(start, end + np.sign(step) * 1e-9, step))  # fmt: skip
spec("aclnnArange", "out:float32", **{**_EXACT, "tolerance": "composite"}, samples=[
    take(start=1.0, end=7.0, step=1.5), take(start=5.0, end=-1.0, step=-2.0)])(
    lambda start, end, step: np.arange(start, end, step))  # fmt: skip
spec("aclnnLogSpace", "result:float32", **{**_EXACT, "tolerance": "composite"}, samples=[
    take(start=-1.0, end=2.0, steps=n, base=b) for n, b in ((7, 10.0), (5, 2.0))])(
    lambda start, end, steps, base: base ** np.linspace(start, end, steps))  # fmt: skip
_ROUND: Final[dict[str, Any]] = {**_EXACT, "tolerance": "composite", "dtypes": ("float32",)}
spec("aclnnRoundDecimals", "out:self", **_ROUND,
     samples=[take(self=t(3, 65, low=-50, high=50), decimals=d) for d in (0, 1, -1)])(
    lambda self, decimals: np.round(self, decimals))  # fmt: skip


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


_UNIQUE: Final = given([[3, 1, 3], [2, 1, 9]], "int64")
# Beyond what a block holds, in no order.
_MANY: Final = _i((np.random.default_rng(3).permutation(3000) % 1500).tolist(), "int64")
spec("aclnnUnique", "valueOut:self inverseOut:int64", **{**_EXACT, "family": "sort"},
     fixed_layout=True, samples=[take(self=x, sorted=True, returnInverse=True)
                                 for x in (_UNIQUE, _MANY)])(
    lambda self: (np.unique(self), np.unique(self, return_inverse=True)[1].reshape(self.shape)),
)  # fmt: skip


@spec("aclnnUnique2", "valueOut:self inverseOut:int64 countsOut:int64", fixed_layout=True,
      **{**_EXACT, "family": "sort"},
      samples=[take(self=x, sorted=True, returnInverse=True, returnCounts=True)
               for x in (_UNIQUE, _MANY)])  # fmt: skip
def unique2(self: Array) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True)
    return values, inverse.reshape(self.shape), counts


@spec("aclnnUniqueConsecutive", "valueOut:self inverseOut:int64 countsOut:int64", fixed_layout=True,
      **{**_EXACT, "family": "sort"},
      samples=[take(self=_i([1, 1, 2, 2, 2, 1, 3]), returnInverse=True, returnCounts=True,
                    dim=1000)])  # fmt: skip
def unique_consecutive(self: Array, dim: int) -> tuple[Array, Array, Array]:
    """`dim` 1000 flattens first (torch_npu's word for no dimension)."""
    first = np.concatenate([[True], self[1:] != self[:-1]])
    inverse = np.cumsum(first) - 1
    return self[first], inverse, np.bincount(inverse)


@spec("aclnnCast", "out:int32", **_EXACT, specials=False,
      dtypes=("float32", "float16", "int64", "uint8"),
    samples=[take(self=t(3, 65, low=0, high=90), dtype=3)])  # fmt: skip
def cast(self: Array, dtype: int) -> Array:
    """To int32 towards zero (C, 6.3.1.4)."""
    return np.trunc(self)


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
             **{**_EXACT, "family": "pad"})(
            words(lambda self, padding, _mode=_mode: F.pad(self, padding, _mode)))  # fmt: skip
        _flows = []
        for _sample in _whole:
            _shape = list(_sample.kwargs["self"].shape)
            for _n, _p in enumerate(_sample.kwargs["padding"]):
                _shape[-1 - _n // 2] += _p
            _flows.append(take(gradOutput=t(*_shape), **_sample.kwargs))
        spec(f"aclnn{_kind}Pad{_rank}dBackward", "gradInput:self", samples=_flows,
             dtypes=("float32", "float16"), **{**_SUMS, "family": "pad"})(
            gradient(lambda self, padding, _mode=_mode: F.pad(self, padding, _mode),
                     grad="gradOutput", of="self"))  # fmt: skip
