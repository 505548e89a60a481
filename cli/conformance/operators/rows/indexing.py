"""Reading and writing by index, searching, unique elements."""

from __future__ import annotations

from math import prod

from ....spec import *
from ....spec import contents as patterns_
from ._along import REAL, WHOLE, along, complex_too, near, pairs, value_of
from ._defaults import TORCH
from ._ignored import SPEED
from ._words import *

_MOVE: Final = Rule("exact", TORCH)
_SEARCH: Final = Rule("exact", TORCH, values="normal ties integer special")
# Integers beyond what float32 holds among them.
_EVERY: Final = "normal integer opposed positive halfway"
_AXIS: Final = axis("A", WHOLE)
_INTO: Final = "random edges repeated negative sorted"


def _first(x: Array, dim: int) -> Array:
    return np.moveaxis(x, dim, 0)


@spec("aclnnGatherV2", _MOVE, pairs("self", "index"), along("*B A *N *I"),
      self=tensor(WHOLE), dim=_AXIS, index=index("*I", into="A"), out=out("self"))  # fmt: skip
def gather_v2(self: Array, dim: int, index: Array) -> Array:
    return np.take(self, index, dim)


@spec("aclnnTake", _MOVE, pairs("self", "index"), along("*I"),
      self=tensor("*S"), index=index("*I", into="size(self)", patterns=_INTO), out=out("self"),
      )  # fmt: skip
def take_flat(self: Array, index: Array) -> Array:
    return self.reshape(-1)[index]


@spec("aclnnIndexCopy", _MOVE, pairs("selfRef", "index"), along("*B A *N I"), require("I <= A"),
      selfRef=tensor(WHOLE), dim=_AXIS, index=slots("I", into="A"),
      source=tensor("*B I *N", "selfRef"), outRef=out("selfRef"))  # fmt: skip
def index_copy(selfRef: Array, dim: int, index: Array, source: Array) -> Array:
    result = selfRef.copy()
    _first(result, dim)[index] = _first(source, dim)
    return result


@spec("aclnnIndexFillTensor", _MOVE, along("*B A *N I"),
      self=tensor(WHOLE, "f32 f16 bf16 i32 i64 bool"), dim=_AXIS,
      index=index("I", into="A", patterns=_INTO), value=scalar("self", 2.5, -1, 0, 2**24 + 1),
      out=out("self"))  # fmt: skip
def index_fill(self: Array, dim: int, index: Array, value: float) -> Array:
    result = self.copy()
    _first(result, dim)[list(index)] = value
    return result


def _masks(patterns: str) -> Domain:
    return forms(full=mask("*B N", patterns=patterns), row=mask("N", patterns="some"),
                 column=mask("*B 1", patterns="some"), one=mask("1", patterns="all"))  # fmt: skip


_MASKED: Final = sizes(N=row)


@spec("aclnnInplaceMaskedScatter", _MOVE,
      pairs("selfRef", "mask", f"{REAL} bool", "bool u8"), _MASKED,
      selfRef=inout(tensor("*B N")), mask=_masks("some none all last whole_row"),
      source=forms(same=tensor("*B N", "selfRef"), flat=tensor("size(selfRef)+3", "selfRef")),
      )  # fmt: skip
def masked_scatter(selfRef: Array, mask: Array, source: Array) -> Array:
    result, at = selfRef.copy(), np.broadcast_to(mask.astype(bool), selfRef.shape)
    result[at] = source.reshape(-1)[: int(at.sum())]
    return result


# No terms of half a step: of hundreds that meet in one place, each is lost.
@spec("aclnnInplacePut", Rule("accumulated", TORCH, numbers="stored",
                              values="normal integer opposed positive"),
      pairs("selfRef", "index"), along("*I"),
      require("accumulate or size(index) <= size(selfRef)"),
      selfRef=inout(tensor("*S")),
      index=by("accumulate", {False: slots("*I", into="size(selfRef)"),
                              True: index("*I", into="size(selfRef)", patterns=_INTO)}),
      source=tensor("*I", "selfRef"), accumulate=flag())  # fmt: skip
def put(selfRef: Array, index: Array, source: Array, accumulate: bool) -> Array:
    result = selfRef.copy().reshape(-1)
    if accumulate:
        np.add.at(result, index, source)
    else:
        result[index] = source
    return result.reshape(selfRef.shape)


@spec("aclnnMaskedSelect", _MOVE, pairs("self", "mask", f"{REAL} bool", "bool u8"), _MASKED,
      self=forms(full=tensor("*B N"), row=tensor("N")),
      mask=_masks("some none all last whole_row"), out=out("self", dynamic=True))  # fmt: skip
def masked_select(self: Array, mask: Array) -> Array:
    whole = np.broadcast_shapes(self.shape, mask.shape)
    return np.broadcast_to(self, whole)[np.broadcast_to(mask.astype(bool), whole)]


for _name, _columns in (("aclnnNonzero", False), ("aclnnNonzeroV2", True)):

    @spec(
        _name, _SEARCH, require("rank(self) > 0"), self=tensor("*S"), out=out("i64", dynamic=True)
    )
    def nonzero(self: Array, _columns: bool = _columns) -> Array:
        places = np.argwhere(self).astype(np.int64)
        return places.T if _columns else places


# --- searching --------------------------------------------------------------------------------

# What is searched beside what is sought: the same, and types whose numbers one of both holds.
_SOUGHT: Final = """
f32 f32|f16|i32|i8
f16 f16|f32|u8
i8  i8|i64
i16 i16|f32
i32 i32|i64|i16
i64 i64|i32
u8  u8|i32
"""
_PLACE: Final = by("outInt32", {False: out("i64"), True: out("i32")})


def _ascending(param: str, dtype: str, shape: str, sorter: bool = False) -> Content:
    """Rows in ascending order: with ties, all alike, or beyond what floats tell apart; where the
    call gives a `sorter`, they lie so that it leads to them in order."""

    def make(rng: Generator, pattern: str, draw: Draw) -> Array:
        dtype_ = draw.dtype(param, dtype)
        step = 1 if dtype_.startswith(("int", "uint")) else 0.5
        low = 0 if dtype_.startswith("u") else -4
        values = np.sort(rng.integers(low, low + 9, resolve(shape, draw)), -1) * step
        if pattern == "distinct":
            values[...] = (np.arange(values.shape[-1]) % 100 + low) * step
        elif pattern == "alike":
            values[...] = step
        elif pattern == "infinite" and step != 1 and values.size:
            values[..., 0], values[..., -1] = -np.inf, np.inf
        values = np.sort(values + (near(dtype_, 53) if pattern == "large" else 0), -1)
        order = draw["sorter"] if sorter else None
        if order is None:
            return values
        result = np.empty_like(values)
        np.put_along_axis(result, np.asarray(order.values()), values, -1)
        return result

    return content(make, "ties distinct alike infinite large", dtype, shape=shape)


_OFFERED: Final[dict[str, Domain]] = {"outInt32": flag(), "right": flag()}


@spec("aclnnBucketize", _SEARCH, dtypes(f"self boundaries {_SOUGHT}"), sizes(K=row),
      self=tensor("*S"), boundaries=_ascending("boundaries", "self", "K"), **_OFFERED,
      out=_PLACE)  # fmt: skip
def bucketize(self: Array, boundaries: Array, right: bool) -> Array:
    """NaN lies behind all numbers."""
    return np.asarray(np.searchsorted(boundaries, self, "right" if right else "left"), np.int64)


def _sorter(shape: str) -> Domain:
    def make(rng: Generator, pattern: str, draw: Draw) -> Array:
        order = np.argsort(rng.random(resolve(shape, draw)), -1)
        return np.sort(order, -1)[..., ::-1] if pattern == "reversed" else order

    return optional(content(make, "shuffled reversed", shape=shape))


_ROWS: Final = {"sortedSequence": _ascending("sortedSequence", "self", "*B K", True),
                "self": tensor("*B V"), "sorter": _sorter("*B K")}  # fmt: skip
_ONE: Final = {"sortedSequence": _ascending("sortedSequence", "self", "K", True),
               "self": tensor("*S"), "sorter": _sorter("K")}  # fmt: skip


@spec("aclnnSearchSorted", _SEARCH, dtypes(f"self sortedSequence {_SOUGHT}"),
      sizes(K=row, V=row(5, 1, 33)), overload("rows", **_ROWS), overload("one", **_ONE),
      sortedSequence=_ROWS["sortedSequence"], self=_ROWS["self"], **_OFFERED,
      sorter=_ROWS["sorter"], out=_PLACE)  # fmt: skip
def search_sorted(
    sortedSequence: Array, self: Array, right: bool, sorter: Array | None
) -> Array:  # fmt: skip
    side: Any = "right" if right else "left"
    if sorter is not None:
        sortedSequence = np.take_along_axis(sortedSequence, sorter, -1)
    if sortedSequence.ndim == 1:
        return np.asarray(np.searchsorted(sortedSequence, self, side), np.int64)
    result = np.zeros(self.shape, np.int64)
    for at in np.ndindex(self.shape[:-1]):
        result[at] = np.searchsorted(sortedSequence[at], self[at], side)
    return result


@spec("aclnnSearchSorteds", _SEARCH, sizes(K=row),
      require("self < 2**31 or dtype(sortedSequence) != 'int32'", refuses=None),
      sortedSequence=_ascending("sortedSequence", "", "K", True),
      self=scalar("sortedSequence", 0.5, 0, 3, -9, 2**53 + 1), **_OFFERED,
      sorter=_sorter("K"), out=_PLACE)  # fmt: skip
def search_sorteds(
    sortedSequence: Array, self: float, right: bool, sorter: Array | None
) -> Array:  # fmt: skip
    return search_sorted(sortedSequence, np.asarray(self), right, sorter)


def _among(param: str, sought: str, shape: str) -> Content:
    """Elements with a number among them: nowhere, at one end, everywhere, or beside it."""

    def make(rng: Generator, pattern: str, draw: Draw) -> Array:
        number_, dtype_ = value_of(draw[sought]), draw.dtype(param, "")
        values = rng.integers(0, 2, resolve(shape, draw)) + 9.0
        flat = values.reshape(-1)
        if draw["assumeUnique"]:
            flat[:] = 9 + np.arange(flat.size)
            pattern = "first" if pattern in ("all", "beside") else pattern
        if pattern == "beside":
            flat[:] = number_ + rng.integers(-1, 2, flat.size)
        elif pattern != "absent" and flat.size:
            at: Any = {"first": 0, "last": -1, "all": slice(None)}[pattern]
            flat[at] = number_
        if dtype_.startswith("float"):  # what rounds to the number is not among them
            rounded = flat.astype(np.float16 if dtype_ == "float16" else np.float32)
            flat[rounded != flat] = 9
        if dtype_.startswith("uint"):
            flat[flat < 0] = 9
        return values

    return content(make, "first last all absent beside", "", shape=shape)


def _distinct(param: str) -> tuple[Any, ...]:
    return require(f"not assumeUnique or size({param}) <= 100 and dtype({param}) != 'bool'",
                   refuses=None)  # fmt: skip


_PROMISE: Final = ignored("promises that elements are distinct, which they are then", flag())


@spec("aclnnIsInScalarTensor", _MOVE, _distinct("testElements"),
      element=scalar("testElements", 5, 0, 1, 2**24 + 1),
      testElements=_among("testElements", "element", "*S"), assumeUnique=_PROMISE,
      invert=flag(), out=out("bool"))  # fmt: skip
def is_in_scalar(element: float, testElements: Array, invert: bool) -> Array:
    return np.asarray(bool((testElements == element).any()) ^ invert)


@spec("aclnnIsInTensorScalar", _MOVE, _distinct("element"),
      element=_among("element", "testElement", "*S"),
      testElement=scalar("element", 5, 0, 1, 2**24 + 1), assumeUnique=_PROMISE,
      invert=flag(), out=out("bool"))  # fmt: skip
def is_in_tensor(element: Array, testElement: float, invert: bool) -> Array:
    return np.equal(element, testElement) ^ invert


# --- unique elements --------------------------------------------------------------------------

_TIES: Final = Rule("exact", "torch 2.13, document of torch.unique", specials=False,
                    values="normal ties wide integer halfway")  # fmt: skip
_FLAT: Final[dict[str, Domain]] = {
    "self": tensor("*S", f"{REAL} bool"),
    "sorted": only(True, "no order is stated for what is not sorted"),
}
_VALUES: Final = out("self", dynamic=True)


def _requested(result: Array, flag_: bool) -> Array:
    """A result, or an empty one where the call does not ask for it, as op-plugin passes it."""
    return result if flag_ else np.zeros(0, np.int64)


@spec("aclnnUnique", _TIES, **_FLAT, returnInverse=flag(True), valueOut=_VALUES,
      inverseOut=out("i64"))  # fmt: skip
def unique(self: Array, returnInverse: bool) -> tuple[Array, Array]:
    return unique2(self, returnInverse, False)[:2]


@spec("aclnnUnique2", _TIES, **_FLAT, returnInverse=flag(True), returnCounts=flag(True),
      valueOut=_VALUES, inverseOut=out("i64"), countsOut=out("i64", dynamic=True))  # fmt: skip
def unique2(
    self: Array, returnInverse: bool, returnCounts: bool
) -> tuple[Array, Array, Array]:  # fmt: skip
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True)
    inverse = _requested(inverse.reshape(self.shape), returnInverse)
    return values, inverse, _requested(counts, returnCounts)


def _slices(rng: Generator, pattern: str, draw: Draw) -> Array:
    """A tensor whose slices along the axis recur: here and there, in runs, all of them, never."""
    shape, at = resolve(WHOLE, draw), len(draw["*B"])
    n, dtype = shape[at], draw.dtype("self", "")
    if pattern in ("few", "runs", "large"):
        which = rng.integers(0, (n + 1) // 2, n)
    else:
        which = np.zeros(n, np.int64) if pattern == "alike" else rng.permutation(n)
    which = np.sort(which)[::-1] if pattern == "runs" else which
    kinds = rng.integers(0, 3, (n, *shape[:at], *shape[at + 1 :]))
    kinds = kinds + (near(dtype, 53) if pattern == "large" else 0)
    return np.moveaxis(complex_too(kinds[which], dtype), 0, at)


_RECURRING: Final = content(_slices, "few runs alike distinct large", "", shape=WHOLE)


def _along_axis(x: Array, which: Array, dim: int) -> tuple[Array, Array]:
    """Of the first of each group of slices along an axis, and how many each group has."""
    counts = np.bincount(which)
    firsts = np.array([np.argmax(which == k) for k in range(len(counts))], np.int64)
    return np.take(x, firsts, dim), counts


@spec("aclnnUniqueConsecutive", _TIES, along("*B A *N"), self=_RECURRING,
      returnInverse=flag(True), returnCounts=flag(True),
      dim=forms(flat=only(1000, "no dim: torch_npu's word"), along=_AXIS), valueOut=_VALUES,
      inverseOut=out("i64"), countsOut=out("i64", dynamic=True))  # fmt: skip
def unique_consecutive(
    self: Array, returnInverse: bool, returnCounts: bool, dim: int
) -> tuple[Array, Array, Array]:
    """`dim` 1000 flattens first."""
    x, at = (self.reshape(-1), 0) if dim == 1000 else (self, dim)
    rows = _first(x, at).reshape(x.shape[at], -1)
    which = np.cumsum(np.r_[False, (rows[1:] != rows[:-1]).any(1)])
    values, counts = _along_axis(x, which, at)
    inverse = which.reshape(self.shape) if dim == 1000 else which
    return values, _requested(inverse, returnInverse), _requested(counts, returnCounts)


@spec("aclnnUniqueDim", _TIES, along("*B A *N"), self=_RECURRING, sorted=_FLAT["sorted"],
      returnInverse=flag(True), dim=_AXIS, valueOut=_VALUES, inverseOut=out("i64"),
      countsOut=out("i64", dynamic=True))  # fmt: skip
def unique_dim(self: Array, returnInverse: bool, dim: int) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True, axis=dim)
    return values, _requested(inverse.reshape(-1), returnInverse), counts


# --- places that several may share --------------------------------------------------------------


@spec("aclnnIndexAddV2", Rule("gradient", TORCH, sparse=True, values=_EVERY),
      pairs("self", "index", REAL), along("*B A *N I"),
      require("alpha % 1 == 0 or floating(self)", refuses=None),
      self=tensor(WHOLE), dim=_AXIS, index=index("I", into="A"),
      source=tensor("*B I *N", "self"), alpha=scalar("self", 1, 2, -3, 0, -0.5),
      mode=ignored(SPEED, choice(0, 1)), out=out("self"))  # fmt: skip
def index_add(self: Array, dim: int, index: Array, source: Array, alpha: float) -> Array:
    result = self.copy()
    factor = np.asarray(alpha).astype(np.result_type(source, np.int8))
    np.add.at(_first(result, dim), index, (factor * _first(source, dim)).astype(result.dtype))
    return result


_INDEX: Final = Rule("exact", "TensorFlow documents: gather_nd, scatter_nd_update", specials=False)
# Dims that tuples of indices name, and those that they leave.
_TUPLES: Final = along("*I", **{"*K": row("4x5", 7, 1, "3x1", "2x3x4", 130),
                                "*N": row(6, "-", 1, 33, "2x3", 1025)})  # fmt: skip


def _tuples(patterns: str) -> Content:
    """Tuples of indices into `*K`, none twice unless `random`; `negative` counts from the ends."""

    def make(rng: Generator, pattern: str, draw: Draw) -> Array:
        dims_, lead = draw["*K"], draw["*I"]
        repeats = pattern in ("random", "edges", "repeated", "negative")
        flat = (patterns_.indices(rng, pattern, (prod(lead),), prod(dims_)) % prod(dims_)
                if repeats else
                patterns_.slots(rng, pattern, (prod(lead),), prod(dims_), None))  # fmt: skip
        places = np.stack(np.unravel_index(flat, dims_), -1)
        if pattern == "negative":
            places = np.where(np.arange(len(places))[:, None] % 2, places, places - dims_)
        return places.reshape(*lead, len(dims_))

    return content(make, patterns)


@spec("aclnnGatherNd", _INDEX, pairs("self", "indices", f"{REAL} bool"), _TUPLES,
      self=tensor("*K *N"), indices=by("negativeIndexSupport", {
          False: _tuples("random shuffled edges repeated"), True: _tuples("negative random")}),
      negativeIndexSupport=flag(), out=out("self", "*I *N"))  # fmt: skip
def gather_nd(self: Array, indices: Array) -> Array:
    """Where indices may be negative, they count from the end."""
    return self[tuple(np.moveaxis(indices, -1, 0))]


@spec("aclnnGatherV3", _INDEX, pairs("self", "index"),
      along("A *N", **{"*B": row(3, "-", 1, "2x3"), "*P": row("-", 2, "1x3"),
                       "*I": row(4, "-", 1, "2x3", 33)}),
      self=tensor("*B *P A *N"), dim=axis("A", "*B *P A *N"), index=index("*B *I", into="A"),
      batchDims=axis("I", "*B *I"), mode=only(0, "documents name no other"),
      out=out("self"))  # fmt: skip
def gather_v3(self: Array, dim: int, index: Array, batchDims: int) -> Array:
    """A negative `batchDims` is counted from the end of the index."""
    dim = dim % self.ndim
    if batchDims < 0:
        return gather_v3(self, dim, index, batchDims + index.ndim)
    if not batchDims:
        return np.take(self, index, dim)
    rows = zip(self, index, strict=True)
    return np.stack([gather_v3(s, dim - 1, i, batchDims - 1) for s, i in rows])


_SCATTERED: Final[dict[str, Domain]] = {
    "indices": _tuples("shuffled in_order last"), "updates": tensor("*I *N", "data"),
}  # fmt: skip


@spec("aclnnScatterNd", _INDEX, pairs("data", "indices", "f32 f16 bf16 bool"), _TUPLES,
      require("size(updates) <= size(data)", refuses=None),
      data=tensor("*K *N"), **_SCATTERED, out=out("data"))  # fmt: skip
def scatter_nd(data: Array, indices: Array, updates: Array) -> Array:
    result = data.copy()
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return result


@spec("aclnnScatterNdUpdate", _INDEX,
      pairs("varRef", "indices", "f32 f16 bf16 i64 i8 bool"), _TUPLES,
      require("size(updates) <= size(varRef)", refuses=None),
      varRef=inout(tensor("*K *N")),
      **_SCATTERED | {"updates": tensor("*I *N", "varRef")})  # fmt: skip
def scatter_nd_update(varRef: Array, indices: Array, updates: Array) -> Array:
    return scatter_nd(varRef, indices, updates)


def _quotient(x: Array, y: Array) -> Array:
    """Of integers towards zero (C, 6.5.5)."""
    return np.trunc(x / y).astype(x.dtype) if x.dtype.kind in "iu" else x / y


_AT: Final[dict[str, Any]] = {"Max": np.maximum, "Min": np.minimum, "Mul": np.multiply,
                              "Div": _quotient, "Add": np.add}  # fmt: skip


def _scatter_at(varRef: Array, indices: Array, updates: Array, word: Any) -> Array:
    result = varRef.copy()
    for at, update in zip(indices.reshape(-1), updates.reshape(-1, *varRef.shape[1:]), strict=True):
        result[at] = word(result[at], update)
    return result


for _name, _word in _AT.items():
    _low, _high = (1, 2) if _name in ("Mul", "Div") else (-2, 2)
    _params: dict[str, Domain] = {
        "varRef": inout(tensor("A *N")), "indices": index("*I", into="A"),
        "updates": tensor("*I *N", "varRef", _low, _high),
        "useLocking": ignored(SPEED, flag()),
    }  # fmt: skip
    _real = "f32 f16 i32 i8 u8"
    if _name == "Add":
        del _params["useLocking"]
        _real += " bf16"

    @spec("aclnnTfScatterAdd" if _name == "Add" else f"aclnnScatter{_name}",
          Rule("exact" if _name in ("Max", "Min") else "accumulated", "TensorFlow documents: "
               "scatter_add, scatter_max, scatter_min, scatter_mul, scatter_div",
               "stored" if _name in ("Mul", "Div", "Add") else {}, values=_EVERY),
          pairs("varRef", "indices", _real),
          along("A *N", **{"*I": row(4, "-", 1, "2x3", 17)}), **_params)  # fmt: skip
    def scatter_at(
        varRef: Array, indices: Array, updates: Array, _word: Any = _word
    ) -> Array:  # fmt: skip
        return _scatter_at(varRef, indices, updates, _word)


def _places(shape: str, before: str) -> Content:
    """Indices into `A` along the dim behind `before`. None stands twice along it where `reduce` is
    0, which leaves open which one stays."""

    def make(rng: Generator, pattern: str, draw: Draw) -> Array:
        dims_, at, size = resolve(shape, draw), len(resolve(before, draw)), draw["A"]
        if dims_[at] > size or (pattern == "random" and draw["reduce"] != 0):
            return rng.integers(0, size, dims_)
        whole = (*dims_[:at], size, *dims_[at + 1 :])
        order = np.argsort(rng.random(whole), at)
        if pattern == "in_order":
            order = np.sort(order, at)
        elif pattern == "pairs" and draw["reduce"] != 0:
            order = order // 2
        return np.take(order, np.arange(dims_[at]), at)

    return content(make, "random in_order pairs", shape=shape)


# The index covers all of the others, or a corner of them.
_CORNERED: Final[dict[str, Any]] = {"P": row(3, 1), "Q": row(4, 1, 33)}
_LENGTHS: Final = along("*B A *N I J", **_CORNERED)
_CORNER: Final = {"self": tensor("P+1 A Q+2"), "index": _places("P I Q", "P"),
                  "dim": axis("A", "P A Q")}  # fmt: skip
_FITS: Final = (*require("I <= J"), *require("reduce > 0 or I <= A", refuses=None))
# Products of many stay in range.
_SOURCES: Final = {0: tensor("*B J *N", "self"), 1: tensor("*B J *N", "self"),
                   2: tensor("*B J *N", "self", 0.5, 2)}  # fmt: skip
_SUM: Final = Rule("accumulated", "CANN document of aclnnScatter", "stored", specials=False,
                   values=_EVERY)  # fmt: skip


def _folded(self: Array, dim: int, index: Array, src: Array, word: Any) -> tuple[Array, Array]:
    """Each slice of the index along `dim` written in turn: `word(old, new, how many before)`, and
    how often each place was written."""
    result, counts = np.moveaxis(self.copy(), dim, 0), np.moveaxis(np.zeros(self.shape), dim, 0)
    index, src = np.moveaxis(index, dim, 0), np.moveaxis(src, dim, 0)
    corner = (slice(None), *(slice(n) for n in index.shape[1:]))
    for at, new in zip(index, src[: len(index)], strict=True):
        old = np.take_along_axis(result[corner], at[None], 0)
        before = np.take_along_axis(counts[corner], at[None], 0)
        values = word(old, new[corner[1:]][None], before)
        np.put_along_axis(result[corner], at[None], values, 0)
        np.put_along_axis(counts[corner], at[None], before + 1, 0)
    return np.moveaxis(result, 0, dim), np.moveaxis(counts, 0, dim)


@spec("aclnnScatter", _SUM, pairs("self", "index"), _LENGTHS, _FITS,
      overload("whole"),
      overload("corner", **_CORNER, src=tensor("P+2 J Q", "self", 0.5, 2)),
      pin("reduce=2 index=pairs dtype=int32", "products of integers"),
      self=tensor(WHOLE), dim=_AXIS, index=_places("*B I *N", "*B"), src=by("reduce", _SOURCES),
      reduce=choice(0, 1, 2), out=out("self"))  # fmt: skip
def scatter(self: Array, dim: int, index: Array, src: Array, reduce: int) -> Array:
    """reduce: 0 replaces, 1 adds, 2 multiplies (aclnnScatter document)."""
    word = (lambda _, new: new, np.add, np.multiply)[reduce]
    return _folded(self, dim, index, src, lambda old, new, _: word(old, new))[0]


@spec("aclnnScatterValue", _SUM, pairs("self", "index"),
      along("*B A *N I", **_CORNERED), _FITS[1:],
      require("value % 1 == 0 or floating(self)", refuses=None),
      overload("whole"), overload("corner", **_CORNER),
      self=tensor(WHOLE), dim=_AXIS, index=_places("*B I *N", "*B"),
      value=scalar("self", 3, -2, 0, 1, 0.5), reduce=choice(0, 1, 2), out=out("self"),
      )  # fmt: skip
def scatter_value(self: Array, dim: int, index: Array, value: float, reduce: int) -> Array:
    src = np.broadcast_to(np.array(value).astype(self.dtype), index.shape)
    return scatter(self, dim, index, src, reduce)


@spec("aclnnScatterReduce", Rule("gradient", TORCH, sparse=True, values=_EVERY),
      pairs("self", "index", REAL), _LENGTHS, _FITS[:1],
      overload("whole"),
      overload("corner", **_CORNER, src=tensor("P+2 J Q", "self", 0.5, 2)),
      # In which type more than 127 are counted and added is not stated.
      require("reduce != 5 or I < 64 or dtype(self) not in ('int8', 'uint8')", refuses=None),
      self=tensor(WHOLE), dim=_AXIS, index=_places("*B I *N", "*B"),
      src=by("reduce", {n: _SOURCES[2 if n == 2 else 1] for n in range(1, 6)}),
      reduce=choice(1, 2, 3, 4, 5), includeSelf=flag(True), out=out("self"))  # fmt: skip
def scatter_reduce(
    self: Array, dim: int, index: Array, src: Array, reduce: int, includeSelf: bool
) -> Array:  # fmt: skip
    """reduce: 1 add, 2 multiply, 3 maximum, 4 minimum, 5 mean (aclnnScatter's numbers, and on);
    means of integers round down."""
    word = (np.add, np.multiply, np.maximum, np.minimum, np.add)[reduce - 1]

    def joined(old: Array, new: Array, before: Array) -> Array:
        return np.where(before + includeSelf == 0, new, word(old, new))

    result, counts = _folded(self, dim, index, src, joined)
    if reduce != 5:
        return result
    counts = np.maximum(counts + includeSelf, 1)
    whole = result.dtype.kind in "iu"
    return result // counts.astype(np.int64) if whole else result / counts


# --- caches -----------------------------------------------------------------------------------

_CACHE: Final = along("A *N", **{"*P": row(3, "-", 2, "2x3")}, S=row(1, 2, 3, 17),
                      U=row(2, 1, 3, 5))  # fmt: skip
_FITTING: Final = require("S <= A")


def _starts(count: str, pairs_: bool) -> Content:
    """Where pieces of `S` begin in `A`: at both ends, anywhere; beside the batch they go to."""

    def make(rng: Generator, pattern: str, draw: Draw) -> Array:
        (many,) = resolve(count, draw)
        starts = patterns_.indices(rng, pattern, (many,), draw["A"] - draw["S"] + 1)
        return np.stack([rng.permutation(draw["B"])[:many], starts], -1) if pairs_ else starts

    return content(make, "random edges repeated", shape=f"{count} 2" if pairs_ else count)


@spec("aclnnInplaceScatterUpdate", _INDEX,
      pairs("data", "indices", "f32 f16 bf16 i32 i8"), _CACHE, _FITTING, require("U <= B"),
      data=inout(tensor("B *P A *N")),
      indices=forms(starts=_starts("U", False), pairs=_starts("U", True)),
      updates=tensor("U *P S *N", "data"), axis=axis("A", "B *P A *N"))  # fmt: skip
def scatter_update(data: Array, indices: Array, updates: Array, axis: int) -> Array:
    """A decoder's cache: update u goes to batch u from indices[u] on, or to batch indices[u][0]
    from indices[u][1] on."""
    result = data.copy()
    for u, at in enumerate(indices):
        batch, begin = (u, at) if indices.ndim == 1 else at
        piece = np.moveaxis(updates, axis, 0)[:, u]
        np.moveaxis(result, axis, 0)[begin : begin + len(piece), batch] = piece
    return result


def _lengths(rng: Generator, pattern: str, draw: Draw) -> Array:
    """Where each update begins, and how much of it is written."""
    starts = patterns_.indices(rng, pattern, (draw["L"],), draw["A"] - draw["S"] + 1)
    return np.stack([starts, rng.integers(0, draw["S"] + 1, draw["L"])], -1)


@spec("aclnnScatterList", Rule("exact", "op-plugin document scatter_list", specials=False),
      pairs("varRef", "indice", "f32 f16 bf16 i8 i16 i32 u8"),
      along("A *N", **{"*P": row(3, "-", 2, "2x3")}, S=row(1, 2, 3, 17)), _FITTING,
      varRef=inout(tensors("L", "*P A *N")),
      indice=forms(starts=_starts("L", False), lengths=content(_lengths, "random edges")),
      updates=tensor("L *P S *N", "varRef"),
      maskOptional=optional(mask("L", "u8", patterns="all some none last")),
      reduceOptional=only("update", "documents allow one value"),
      axis=axis("A", "*P A *N"))  # fmt: skip
def scatter_list(
    varRef: list[Array], indice: Array, updates: Array, maskOptional: Array | None, axis: int
) -> tuple[list[Array]]:
    result = [v.copy() for v in varRef]
    for i, (v, update) in enumerate(zip(result, updates, strict=True)):
        begin, many = indice[i] if indice.ndim == 2 else (indice[i], update.shape[axis])
        if maskOptional is None or maskOptional[i]:
            _first(v, axis)[begin : begin + many] = _first(update, axis)[:many]
    return (result,)


def _permuted_starts(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    lengths = np.diff(draw["inputOffset"].values())
    return np.concatenate([[0], np.cumsum(lengths[draw["permute"].values()])])


@spec("aclnnExpandIntoJaggedPermute",
      Rule("exact", "FBGEMM's document of expand_into_jagged_permute"), sizes(W=row),
      permute=permutation("T", "i32"),
      inputOffset=parts("T", of="W", form="starts", dtype="i32"),
      outputOffset=content(_permuted_starts, "follows", "i32", shape="T+1"),
      outputSize=ignored("follows from the offsets", equals("W")),
      outputPermuteOut=out("permute"))  # fmt: skip
def jagged_permute(permute: Array, inputOffset: Array, outputOffset: Array) -> Array:
    """Segment k of the result counts on from where segment permute[k] of the input begins."""
    return np.concatenate([
        inputOffset[p] + np.arange(outputOffset[k + 1] - outputOffset[k])
        for k, p in enumerate(permute)])  # fmt: skip
