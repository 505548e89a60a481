"""Reading and writing by index, searching, unique elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import const, spec, t, take
from ._defaults import COMPOSITE, EXACT, EXACT_FINITE, SPARSE_GRADIENT
from ._ignored import follows, one_value, requested, speed


@spec("aclnnGatherV2", "out:self", **EXACT, samples=[
    take(self=t(5, 7), dim=0, index=const([[0, 4, 2], [1, 1, 3]])),
    take(self=t(5, 7), dim=1, index=const([6, 0, 3])),
    take(self=t(3, 4, 7), dim=1, index=const([[3, 0, 2], [1, 1, 3]])),
    take(self=t(5, 2, 7), dim=-1, index=const([6, 5], "int32"))])  # fmt: skip
def gather_v2(self: Array, dim: int, index: Array) -> Array:
    return np.take(self, index, dim)


@spec("aclnnTake", "out:self", **EXACT,
      samples=[take(self=t(3, 5), index=const([[0, 14], [7, -1]]))])  # fmt: skip
def take_flat(self: Array, index: Array) -> Array:
    return self.reshape(-1)[index]


@spec("aclnnIndexCopy", "outRef:selfRef", **EXACT, samples=[
    take(selfRef=t(5, 7), dim=0, index=const([4, 0, 2]), source=t(3, 7), outRef=t(5, 7)),
    take(selfRef=t(5, 7), dim=1, index=const([6, 1]), source=t(5, 2), outRef=t(5, 7))])  # fmt: skip
def index_copy(selfRef: Array, dim: int, index: Array, source: Array) -> Array:
    result = selfRef.copy()
    result[(slice(None),) * dim + (index,)] = source
    return result


@spec("aclnnIndexFillTensor", "out:self", **EXACT, samples=[
    take(self=t(5, 7), dim=d, index=i, value=2.5) for d, i in ((0, (1, 3)), (1, (6, 0)))],
    )  # fmt: skip
def index_fill(self: Array, dim: int, index: Array, value: float) -> Array:
    result = self.copy()
    result[(slice(None),) * dim + (list(index),)] = value
    return result


@spec("aclnnInplaceMaskedScatter", "selfRef:selfRef", **EXACT, samples=[
    take(selfRef=t(3, 5), mask=const((np.arange(15).reshape(3, 5) % 3 == 0).tolist(), "bool"),
         source=t(9))])  # fmt: skip
def masked_scatter(selfRef: Array, mask: Array, source: Array) -> Array:
    result = selfRef.copy()
    result[mask] = source.reshape(-1)[: int(mask.sum())]
    return result


@spec("aclnnInplacePut", "selfRef:selfRef", **EXACT, samples=[
    take(selfRef=t(3, 5), index=const([[0, 14], [7, 2]]), source=t(2, 2), accumulate=a)
    for a in (False, True)])  # fmt: skip
def put(selfRef: Array, index: Array, source: Array, accumulate: bool) -> Array:
    result = selfRef.copy().reshape(-1)
    if accumulate:
        np.add.at(result, index, source)
    else:
        result[index] = source
    return result.reshape(selfRef.shape)


@spec("aclnnMaskedSelect", "out:self", **EXACT, fixed_layout=True, samples=[
    take(self=t(3, 5), mask=const((np.arange(15).reshape(3, 5) % 4 == 1).tolist(), "bool"))],
    )  # fmt: skip
def masked_select(self: Array, mask: Array) -> Array:
    return self[mask]


_SPARSE: Final = [[0.0, 1.5, 0.0, 2.0], [3.0, 0.0, 0.0, -1.0]]


@spec("aclnnNonzero", "out:int64", **EXACT, fixed_layout=True,
      samples=[take(self=const(_SPARSE, "float32"))])  # fmt: skip
def nonzero(self: Array) -> Array:
    return np.argwhere(self).astype(np.int64)


spec("aclnnNonzeroV2", "out:int64", samples=[take(self=const(_SPARSE, "float32"))], **EXACT,
     fixed_layout=True)(lambda self: np.argwhere(self).T.astype(np.int64))  # fmt: skip
_EDGES: Final = const([-1.0, 0.0, 0.5, 1.25], "float32")


@spec("aclnnBucketize", "out:int64",
      constant="outInt32",
      **EXACT, samples=[
    take(self=const([[-2.0, 0.0, 0.25], [0.5, 1.25, 9.0]], "float32"), boundaries=_EDGES,
         outInt32=False, right=r) for r in (False, True)])  # fmt: skip
def bucketize(self: Array, boundaries: Array, outInt32: bool, right: bool) -> Array:
    places = np.searchsorted(boundaries, self, "right" if right else "left")
    return np.asarray(places, np.int64)


@spec("aclnnSearchSorted", "out:int64",
      constant="outInt32 sorter",
      **EXACT, samples=[
    take(sortedSequence=const([[-1.0, 0.0, 0.5], [1.0, 2.0, 3.0]], "float32"),
         self=const([[0.0, 0.25], [2.0, 9.0]], "float32"), outInt32=False, right=r)
    for r in (False, True)] + [
    # NaN lies behind all numbers; integers that no double holds.
    take(sortedSequence=const([[-1.0, 0.0, 0.5]], "float32"),
         self=const([[float("nan"), 0.25]], "float32"), outInt32=False, right=r)
    for r in (False, True)] + [
    take(sortedSequence=const([[2**53, 2**53 + 1, 2**53 + 3, 2**53 + 5]], "int64"),
         self=const([[2**53 + 1, 2**53 + 2, 2**53 + 4]], "int64"), outInt32=False, right=False)
    ])  # fmt: skip
def search_sorted(
    sortedSequence: Array, self: Array, outInt32: bool, right: bool, sorter: Array
) -> Array:  # fmt: skip
    side: Any = "right" if right else "left"
    rows = zip(sortedSequence, self, strict=True)
    return np.stack([np.searchsorted(a, v, side) for a, v in rows]).astype(np.int64)


@spec("aclnnSearchSorteds", "out:int64",
      constant="outInt32 sorter",
      **EXACT, samples=[
    take(sortedSequence=_EDGES, self=s, outInt32=False, right=r)
    for r in (False, True) for s in (0.5, 3.0)])  # fmt: skip
def search_sorteds(
    sortedSequence: Array, self: float, outInt32: bool, right: bool, sorter: Array
) -> Array:  # fmt: skip
    return np.asarray(np.searchsorted(sortedSequence, self, "right" if right else "left"), np.int64)


@spec("aclnnIsInScalarTensor", "out:bool",
      constant="assumeUnique",
      **EXACT, samples=[
    take(element=e, testElements=const([1, 5, 7]), assumeUnique=False, invert=v)
    for e in (5, 2) for v in (False, True)] + [
    take(element=5, testElements=const([], "int64"), assumeUnique=False, invert=v)
    for v in (False, True)])  # fmt: skip
def is_in_scalar(element: float, testElements: Array, assumeUnique: bool, invert: bool) -> Array:
    return np.asarray(bool((testElements == element).any()) ^ invert)


@spec("aclnnIsInTensorScalar", "out:bool",
      constant="assumeUnique",
      **EXACT, samples=[
    take(element=const([[1, 5], [7, 5]]), testElement=5, assumeUnique=False, invert=v)
    for v in (False, True)])  # fmt: skip
def is_in_tensor(element: Array, testElement: float, assumeUnique: bool, invert: bool) -> Array:
    return np.equal(element, testElement) ^ invert


_UNIQUE: Final = const([[3, 1, 3], [2, 1, 9]], "int64")
# Beyond what a block holds, in no order.
_MANY: Final = const((np.random.default_rng(3).permutation(3000) % 1500).tolist(), "int64")
spec("aclnnUnique", "valueOut:self inverseOut:int64",
     ignored=requested("sorted returnInverse"),
     **EXACT,
     fixed_layout=True, samples=[take(self=x, sorted=True, returnInverse=True)
                                 for x in (_UNIQUE, _MANY)])(
    lambda self: (np.unique(self), np.unique(self, return_inverse=True)[1].reshape(self.shape)),
)  # fmt: skip


@spec("aclnnUnique2", "valueOut:self inverseOut:int64 countsOut:int64",
      ignored=requested("sorted returnInverse returnCounts"),
      fixed_layout=True,
      **EXACT,
      samples=[take(self=x, sorted=True, returnInverse=True, returnCounts=True)
               for x in (_UNIQUE, _MANY)])  # fmt: skip
def unique2(self: Array) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True)
    return values, inverse.reshape(self.shape), counts


@spec("aclnnUniqueConsecutive", "valueOut:self inverseOut:int64 countsOut:int64",
      ignored=requested("returnInverse returnCounts"),
      fixed_layout=True,
      **EXACT,
      samples=[take(self=const([1, 1, 2, 2, 2, 1, 3]), returnInverse=True, returnCounts=True,
                    dim=1000)])  # fmt: skip
def unique_consecutive(self: Array, dim: int) -> tuple[Array, Array, Array]:
    """`dim` 1000 flattens first (torch_npu's word for no dimension)."""
    first = np.concatenate([[True], self[1:] != self[:-1]])
    inverse = np.cumsum(first) - 1
    return self[first], inverse, np.bincount(inverse)


@spec("aclnnIndexAddV2", "out:self",
      ignored=speed("mode"),
      **SPARSE_GRADIENT, samples=[
    take(self=t(5, 7), dim=d, index=const(i), source=t(*s), alpha=a, mode=0)
    for d, i, s, a in ((0, [4, 0, 4], (3, 7), 1.0), (1, [6, 1], (5, 2), -0.5))])  # fmt: skip
def index_add(self: Array, dim: int, index: Array, source: Array, alpha: float) -> Array:
    result = np.moveaxis(self.copy(), dim, 0)
    np.add.at(result, index, alpha * np.moveaxis(source, dim, 0))
    return np.moveaxis(result, 0, dim)


_INDEX: Final[dict[str, Any]] = {**EXACT_FINITE, "source":
                                 "TensorFlow documents: gather_nd, scatter_nd_update"}  # fmt: skip


@spec("aclnnGatherNd", "out:self", **_INDEX, samples=[
    take(self=t(4, 5, 6), indices=const(at), negativeIndexSupport=n)
    for at, n in (([[0, 1], [3, 4], [2, 0]], False), ([[-1, 1], [3, -5], [2, 0]], True))],
    )  # fmt: skip
def gather_nd(self: Array, indices: Array, negativeIndexSupport: bool) -> Array:
    """Where indices may be negative, they count from the end."""
    assert negativeIndexSupport or (indices >= 0).all()
    return self[tuple(np.moveaxis(indices, -1, 0))]


@spec(
    "aclnnGatherV3",
    "out:self",
    uncovered="mode",
    **_INDEX,
    samples=[
        take(self=t(5, 7), dim=0, index=const([[0, 4], [1, 3]]), batchDims=0, mode=0),
        take(
            self=t(3, 5, 7),
            dim=2,
            index=const([[0, 4, 6], [1, 3, 3], [2, 6, 0]]),
            batchDims=1,
            mode=0,
        ),
        take(self=t(3, 5, 7), dim=-2, index=const([[0, 4], [1, 3], [2, 2]]), batchDims=1, mode=0),
        take(self=t(3, 5, 7), dim=1, index=const([[0, 4], [1, 3], [2, 2]]), batchDims=-1, mode=0),
    ],
)
def gather_v3(self: Array, dim: int, index: Array, batchDims: int) -> Array:
    if batchDims < 0:  # counted from the end of the index
        return gather_v3(self, dim, index, batchDims + index.ndim)
    if batchDims:
        return np.stack(
            [
                gather_v3(s, dim - (dim > 0), i, batchDims - 1)
                for s, i in zip(self, index, strict=True)
            ]
        )
    return np.take(self, index, dim)


@spec("aclnnScatterNd", "out:data", **_INDEX, samples=[
    take(data=t(4, 5, 6), indices=const([[0, 1], [3, 4], [2, 0]]), updates=t(3, 6))])  # fmt: skip
def scatter_nd(data: Array, indices: Array, updates: Array) -> Array:
    result = data.copy()
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return result


@spec("aclnnScatterNdUpdate", "varRef:varRef", **_INDEX, samples=[
    take(varRef=t(4, 5, 6), indices=const([[0, 1], [3, 4], [2, 0]]), updates=t(3, 6))])  # fmt: skip
def scatter_nd_update(varRef: Array, indices: Array, updates: Array) -> Array:
    return scatter_nd(varRef, indices, updates)


_AT: Final[dict[str, Any]] = {"Max": np.maximum, "Min": np.minimum, "Mul": np.multiply,
                              "Div": np.divide}  # fmt: skip


def _scatter_at(varRef: Array, indices: Array, updates: Array, word: np.ufunc) -> Array:
    result = varRef.copy()
    word.at(result, indices.reshape(-1), updates.reshape(-1, *varRef.shape[1:]))
    return result


for _name, _word in _AT.items():
    spec(f"aclnnScatter{_name}", "varRef:varRef", **{**COMPOSITE, "source":
         "TensorFlow documents: scatter_max, scatter_min, scatter_mul, scatter_div"}, samples=[
        take(varRef=t(5, 7), indices=const([4, 0, 2], "int32"), updates=t(3, 7, low=0.5, high=2),
             useLocking=False)])(
        lambda varRef, indices, updates, _word=_word: _scatter_at(varRef, indices, updates, _word),
    )  # fmt: skip
spec("aclnnTfScatterAdd", "varRef:varRef", **{**COMPOSITE, "source":
     "TensorFlow document: scatter_add"}, samples=[
    take(varRef=t(5, 7), indices=const([4, 0, 2], "int32"), updates=t(3, 7))])(
    lambda varRef, indices, updates: _scatter_at(varRef, indices, updates, np.add))  # fmt: skip


def scatter(self: Array, dim: int, index: Array, src: Any, reduce: int) -> Array:
    """reduce: 0 replaces, 1 adds, 2 multiplies (aclnnScatter document)."""
    result = self.copy()
    word = (lambda _, new: new, np.add, np.multiply)[reduce]
    for place in np.ndindex(index.shape):
        at = (*place[:dim], int(index[place]), *place[dim + 1 :])
        result[at] = word(result[at], src[place] if isinstance(src, np.ndarray) else src)
    return result


_SCATTER: Final[dict[str, Any]] = {"tolerance": "rounded", "specials": False,
                                   "source": "CANN document of aclnnScatter"}  # fmt: skip
_ONE_EACH: Final = const([[0, 3, 1], [2, 1, 0]])
spec("aclnnScatter", "out:self", **_SCATTER, samples=[
    take(self=t(*shape, dtype=d, low=low), dim=dim, index=_ONE_EACH, src=t(2, 3, dtype=d, low=low),
         reduce=r)
    for d, low in (("float32", -2), ("int32", -9)) for r in (0, 1, 2)
    for shape, dim in (((2, 4), 1), ((4, 3), 0), ((4, 3), -2))])(
    lambda self, dim, index, src, reduce:
    scatter(self, dim % self.ndim, index, src, reduce))  # fmt: skip
spec("aclnnScatterValue", "out:self", **_SCATTER, samples=[
    take(self=t(2, 4, dtype=d, low=-9, high=9), dim=dim, index=_ONE_EACH, value=v, reduce=r)
    for d in ("float32", "int32") for r, dim, v in ((0, 1, 3), (1, -1, -2), (2, 1, 3))])(
    lambda self, dim, index, value, reduce:
    scatter(self, dim % self.ndim, index, np.array(value).astype(self.dtype)[()],
            reduce))  # fmt: skip


def scatter_reduce(
    self: Array, dim: int, index: Array, src: Array, reduce: int, includeSelf: bool
) -> Array:  # fmt: skip
    """reduce: 1 add, 2 multiply, 3 maximum, 4 minimum, 5 mean (aclnnScatter's numbers, and on)."""
    result = self.copy()
    counts = np.full_like(result, 1.0 if includeSelf else 0.0)
    word = (np.add, np.multiply, np.maximum, np.minimum, np.add)[reduce - 1]
    for place in np.ndindex(index.shape):
        at = (*place[:dim], int(index[place]), *place[dim + 1 :])
        result[at] = word(result[at], src[place]) if counts[at] else src[place]
        counts[at] += 1
    return result / np.maximum(counts, 1) if reduce == 5 else result


_PICKED: Final[dict[str, Any]] = {"dim": 0, "index": const([[0, 2, 1, 0], [2, 2, 0, 1]]),
                                  "src": t(2, 4)}  # fmt: skip
spec("aclnnScatterReduce", "out:self", **SPARSE_GRADIENT,
     samples=[take(self=t(3, 4), **_PICKED, reduce=r, includeSelf=s)
              for r in (1, 2, 3, 4, 5) for s in (True, False)])(
    scatter_reduce)  # fmt: skip


@spec("aclnnInplaceScatterUpdate", "data:data", **_INDEX, samples=[
    take(data=t(2, 3, 9, 4), indices=const([5, 0], "int64"), updates=t(2, 3, 2, 4), axis=-2)],
    )  # fmt: skip
def scatter_update(data: Array, indices: Array, updates: Array, axis: int) -> Array:
    """A decoder's cache: batch b takes its rows from indices[b] on."""
    result = data.copy()
    for b, at in enumerate(indices):
        result[b, :, at : at + updates.shape[axis]] = updates[b]
    return result


@spec("aclnnScatterList", "varRef:varRef",
      ignored=one_value("reduceOptional"),
      tolerance="exact", specials=False,
      dtypes=("float16", "float32", "int8", "int32"), source="op-plugin document scatter_list",
      samples=[take(varRef=[t(2, 6, 4), t(2, 6, 4)], indice=const([2, 0], "int32"),
                    updates=t(2, 2, 3, 4), maskOptional=const(mask, "uint8"),
                    reduceOptional="update", axis=-2) for mask in ([1, 0], [1, 1])] + [
          take(varRef=[t(2, 3, 6), t(2, 3, 6)], indice=const([2, 0], "int32"),
               updates=t(2, 2, 3, 4), maskOptional=const([1, 1], "uint8"),
               reduceOptional="update", axis=-1)])  # fmt: skip
def scatter_list(
    varRef: list[Array], indice: Array, updates: Array, maskOptional: Array, axis: int
) -> list[Array]:
    out = [v.copy() for v in varRef]
    for v, begin, update, selected in zip(out, indice, updates, maskOptional, strict=True):
        if selected:
            np.moveaxis(v, axis, 0)[begin : begin + update.shape[axis]] = np.moveaxis(
                update, axis, 0
            )
    return out


@spec("aclnnExpandIntoJaggedPermute", "outputPermuteOut:permute",
      ignored=follows("outputSize"),
      tolerance="exact", source="FBGEMM's document of expand_into_jagged_permute", samples=[
          take(permute=const(p, "int32"), inputOffset=const(i, "int32"),
               outputOffset=const(o, "int32"), outputSize=o[-1])
          for p, i, o in (([1, 0, 2], [0, 2, 5, 6], [0, 3, 5, 6]),
                          ([2, 0, 1], [0, 4, 4, 7], [0, 3, 7, 7]))])  # fmt: skip
def jagged_permute(permute: Array, inputOffset: Array, outputOffset: Array) -> Array:
    """Segment k of the result counts on from where segment permute[k] of the input begins."""
    return np.concatenate([
        inputOffset[p] + np.arange(outputOffset[k + 1] - outputOffset[k])
        for k, p in enumerate(permute)])  # fmt: skip


@spec("aclnnUniqueDim", "valueOut:self inverseOut:int64 countsOut:int64",
      ignored=requested("sorted returnInverse"),
      tolerance="exact", specials=False, fixed_layout=True,
      source="torch 2.13, document of torch.unique", samples=[
          take(self=const([[3, 1], [2, 5], [3, 1], [2, 4]], "int64"), sorted=True,
               returnInverse=True, dim=0)])  # fmt: skip
def unique_dim(self: Array, dim: int) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True, axis=dim)
    return values, inverse.reshape(-1), counts
