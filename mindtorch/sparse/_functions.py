"""Owns what functions do with sparse tensors: one handler for each name that torch's calls have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import mindtorch

from .._autograd.node import Node
from .._compat.refusals import without_kernel
from .._dispatch.bind import can_cast
from .._functional.queries import layout as Layout, sparse_coo, sparse_csc, sparse_csr, strided
from .._tensor.device import DeviceLike
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.rules import broadcast, wrap_dim
from ._convert import coalesced, compressed, convert, dense, flat, gathered, to_coo
from ._tensor import (
    BLOCKED,
    BY_ROWS,
    HANDLERS,
    LAYOUT_NAMES,
    SparseTensor,
    batch_dim,
    become,
    block_of,
    make,
    refusal,
    refusal_of_places,
    with_values,
)

Result = TypeVar("Result", bound=Tensor)

# Functions that map zero to zero: of one element each, so that values change and places do not.
LINEAR = ("neg", "negative", "positive", "conj", "conj_physical", "resolve_conj", "resolve_neg")
ZERO_TO_ZERO = (
    "abs", "absolute", "angle", "arcsin", "arcsinh", "arctan", "arctanh", "asin", "asinh", "atan",
    "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "fix", "floor", "frac", "isinf", "isnan",
    "isneginf", "isposinf", "log1p", "nan_to_num", "rad2deg", "round", "sgn", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
CASTS = ("bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half", "int",
         "long", "short")  # fmt: skip


def handles(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function answer for these names."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            HANDLERS[name] = function
        return function

    return put


def _is_sparse(value: object) -> bool:
    return isinstance(value, SparseTensor)


def _flat_sorted(tensor: SparseTensor) -> Tensor:
    return flat(tensor._parts[0], tensor.shape[: tensor._parts[0].shape[0]])


# ---- what a tensor is made of


def _wants_coo(name: str, tensor: Tensor) -> None:
    kind = tensor._layout if isinstance(tensor, SparseTensor) else strided
    if kind is not sparse_coo:
        raise RuntimeError(
            f"{name} expected sparse coordinate tensor layout but got "
            f"{LAYOUT_NAMES.get(kind, 'Strided')}"
        )


@handles("reshape")
def reshape(self: SparseTensor, *shape: object) -> Tensor:
    """Always an error, as in torch."""
    _refuse_compressed(self, "is_contiguous")
    raise RuntimeError("reshape is not implemented for sparse tensors")


@handles("coalesce")
def coalesce(self: SparseTensor) -> SparseTensor:
    """Places sorted, each once."""
    _wants_coo("coalesce", self)
    return coalesced(self)


@handles("is_coalesced")
def is_coalesced(self: SparseTensor) -> bool:
    """Whether each place comes once, in order."""
    _wants_coo("is_coalesced", self)
    return self._coalesced


@handles("_coalesced_")
def _coalesced_(self: SparseTensor, coalesced: bool) -> SparseTensor:
    """Say so, unchecked."""
    self._coalesced = coalesced
    return self


@handles("_indices")
def _indices(self: SparseTensor) -> Tensor:
    _wants_coo("_indices", self)
    return self._parts[0]


@handles("_values")
def _values(self: SparseTensor) -> Tensor:
    _wants_coo("_values", self)
    return self._vals.detach()


@handles("indices")
def indices(self: SparseTensor) -> Tensor:
    """Coordinates [dims, nnz] of a coalesced tensor."""
    _wants_coo("indices", self)
    if not self._coalesced:
        raise RuntimeError(
            "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"
        )
    return self._parts[0]


@handles("values")
def values(self: Tensor) -> Tensor:
    """What stands at the places, of a coalesced tensor."""
    if not isinstance(self, SparseTensor):
        raise RuntimeError("values expected sparse tensor layout but got Strided")
    if not self._coalesced:
        raise RuntimeError(
            "Cannot get values on an uncoalesced tensor, please call .coalesce() first"
        )
    values = self._vals
    if not values.requires_grad:
        return values
    return label_last(values.view_as(values), "ValuesBackward0")


def _compressed_part(name: str, rows: bool, at: int) -> Callable[[Tensor], Tensor]:
    side = "row" if rows else "column"

    def part(self: Tensor) -> Tensor:
        kind = self._layout if isinstance(self, SparseTensor) else strided
        if not isinstance(self, SparseTensor) or kind is sparse_coo or (kind in BY_ROWS) != rows:
            raise RuntimeError(
                f"{name} expected sparse {side} compressed tensor layout but got"
                f" {LAYOUT_NAMES.get(kind, 'Strided')}"
            )
        return self._parts[at]

    part.__name__ = part.__qualname__ = name
    return part


for _name, _rows, _at in (
    ("crow_indices", True, 0), ("col_indices", True, 1),
    ("ccol_indices", False, 0), ("row_indices", False, 1),
):  # fmt: skip
    HANDLERS[_name] = _compressed_part(_name, _rows, _at)


@handles("sparse_dim", "_dimI")
def sparse_dim(self: Tensor) -> int:
    """How many dimensions have indices."""
    if not isinstance(self, SparseTensor):
        return 0
    return int(self._parts[0].shape[0]) if self._layout is sparse_coo else 2


@handles("dense_dim", "_dimV")
def dense_dim(self: Tensor) -> int:
    """How many dimensions stand whole at each place."""
    batch = batch_dim(self) if isinstance(self, SparseTensor) else 0
    return self.dim() - batch - sparse_dim(self)


@handles("to_dense")
def to_dense(
    self: Tensor, dtype: Dtype | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """All elements."""
    if not isinstance(self, SparseTensor):
        return self if dtype is None else self.to(dtype)
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    return dense(self)


@handles("to_sparse", "_to_sparse")
def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Layout | None = None,
    blocksize: Sequence[int] | None = None, dense_dim: int | None = None,
) -> Tensor:  # fmt: skip
    """The tensor by coordinates, or in the layout."""
    if layout is not None:
        return convert(self, layout, blocksize, dense_dim)
    if sparse_dim is not None and isinstance(self, SparseTensor):
        if self._layout is sparse_coo and sparse_dim != self.sparse_dim():
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument"
                " !=self.sparse_dim() is not supported"
            )
        if self._layout is not sparse_coo and sparse_dim != 2:
            raise RuntimeError(
                f"sparse_compressed_to_sparse: conversion from {LAYOUT_NAMES[self._layout]} to"
                " Sparse with sparse_dim argument !=2 is not supported"
            )
    return to_coo(self, sparse_dim)


@handles("to_sparse_coo")
def to_sparse_coo(self: Tensor) -> Tensor:
    """The tensor by coordinates."""
    return to_coo(self)


def _to_layout(name: str) -> Callable[..., Tensor]:
    kind = getattr(mindtorch, name.removeprefix("to_"))

    def plain(self: Tensor, dense_dim: int | None = None) -> Tensor:
        return convert(self, kind, None, dense_dim, name)

    def blocked(self: Tensor, blocksize: Sequence[int], dense_dim: int | None = None) -> Tensor:
        return convert(self, kind, blocksize, dense_dim, name)

    function: Callable[..., Tensor] = blocked if kind in BLOCKED else plain
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The matrix, or the batch of them, in another layout."
    return function


for _name in ("to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"):
    HANDLERS[_name] = _to_layout(_name)


# ---- values alone


def _on_values(name: str, sums: bool) -> Callable[..., Any]:
    def run(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        source = coalesced(self) if sums and self._layout is sparse_coo else self
        return with_values(source, getattr(source._vals, name)(*args, **kwargs))

    return run


for _name in (*LINEAR, *CASTS, "to", "cpu", "npu", "type_as"):
    HANDLERS[_name] = _on_values(_name, False)
for _name in ZERO_TO_ZERO:
    HANDLERS[_name] = _on_values(_name, True)


@handles("clone")
def clone(self: SparseTensor, *, memory_format: object = None) -> SparseTensor:
    """A copy of places and values."""
    parts = tuple(p.clone() for p in self._parts)
    return make(self._layout, parts, self._vals.clone(), self.shape, self._coalesced)


@handles("detach", "data")
def detach(self: SparseTensor) -> SparseTensor:
    """The same values outside the graph."""
    return with_values(self, self._vals.detach())


@handles("pow")
def power(self: SparseTensor, exponent: Any) -> SparseTensor:
    """Each value to a positive power."""
    if not _is_sparse(self):
        raise refusal("pow.Scalar", exponent)
    if _is_sparse(exponent) or isinstance(exponent, Tensor) or not exponent:
        raise RuntimeError(
            "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor"
            " dense"
        )
    source = coalesced(self) if self._layout is sparse_coo else self
    return with_values(source, source._vals**exponent)


# ---- arithmetic


def _scalar(value: Any) -> bool:
    return not _is_sparse(value) and (not isinstance(value, Tensor) or not value.dim())


def _restored(result: SparseTensor, *operands: Any) -> Tensor:
    """The layout of the first sparse operand."""
    kind = next(o._layout for o in operands if isinstance(o, SparseTensor))
    return (
        result
        if kind is sparse_coo
        else convert(result, kind, to=f"to_{kind}".replace("torch.", ""))
    )


def _laid_out_as(result: SparseTensor, like: SparseTensor) -> SparseTensor:
    """Coordinates in the layout of another tensor of the shape, in blocks of its size."""
    if like._layout is sparse_coo:
        return result
    return compressed(result, like._layout, block_of(like), dense_dim(like))


def _refuse_broadcast(one: Tensor, other: Tensor, what: str) -> None:
    if one.shape != other.shape:
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size, but self has size"
            f" {list(one.shape)} while other has size {list(other.shape)} (FYI: {what}-sparse"
            " addition does not currently support broadcasting)"
        )


@handles("add", "__radd__")
def add(self: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The sum: sparse of two sparse tensors, ordinary where `self` is."""
    if not _is_sparse(self):
        _refuse_broadcast(mindtorch.as_tensor(self), other, "dense")
        return self + dense(other) * alpha
    if not _is_sparse(other):
        if self._layout is sparse_coo:
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            )
        _refuse_broadcast(mindtorch.as_tensor(other), self, "op2")
        return dense(self) + other * alpha
    if self.shape != other.shape:
        raise RuntimeError(
            "add: expected sizes of 'self' and 'other' to match, but"
            f" {list(self.shape)} != {list(other.shape)}"
        )
    one, two = to_coo(self), to_coo(other)
    if one._parts[0].shape[0] != two._parts[0].shape[0]:
        raise RuntimeError("add: expected 'self' and 'other' to have same sparse dims")
    scaled = two._vals if alpha.__class__ is int and alpha == 1 else two._vals * alpha
    dtype = mindtorch.promote_types(one._vals.dtype, scaled.dtype)
    places = mindtorch.cat([one._parts[0], two._parts[0]], 1)
    joined = mindtorch.cat([one._vals.to(dtype), scaled.to(dtype)])
    result = make(sparse_coo, (places,), joined, self.shape)
    both = one._coalesced and two._coalesced
    if not (one._vals.is_contiguous() and two._vals.is_contiguous()):
        result._coalesced = result._nnz() < 2  # one list behind the other
    elif both or (_is_rising(one) and _is_rising(two)):
        result = coalesced(result)
        result._coalesced = both
    elif self.device.type == "cpu":
        result = _merged(result, one._nnz())
    label_last(result._vals, "AddBackward0")
    return _laid_out_as(result, self)


def _is_rising(tensor: SparseTensor) -> bool:
    """Whether the places come in order, each once, though the tensor may not say so."""
    if tensor._coalesced:
        return True
    places = _flat_sorted(tensor)
    return bool((places[1:] > places[:-1]).all())


def _merged(joined: SparseTensor, first: int) -> SparseTensor:
    """Two lists of places, of which the first has `first`, as torch's cpu merges them: what is
    equal at the heads of both becomes one."""
    places: list[int] = _flat_sorted(joined).tolist()
    slots, heads, at, beside = [0] * len(places), [], 0, first
    while at < first or beside < len(places):
        ahead = at < first and (beside == len(places) or places[at] <= places[beside])
        behind = beside < len(places) and (at == first or places[at] >= places[beside])
        heads.append(at if ahead else beside)
        if ahead:
            slots[at] = len(heads) - 1
            at += 1
        if behind:
            slots[beside] = len(heads) - 1
            beside += 1
    values = gathered(len(heads), mindtorch.tensor(slots, dtype=mindtorch.int64), joined._vals)
    indices = joined._parts[0].index_select(1, mindtorch.tensor(heads, dtype=mindtorch.int64))
    return make(sparse_coo, (indices,), values, joined.shape)


def label_last(result: Result, label: str) -> Result:
    """`result`, whose last node is named as torch's is."""
    node = (result._vals if isinstance(result, SparseTensor) else result)._fn
    if isinstance(node, Node):
        node.label = label
    return result


@handles("sub", "subtract")
def sub(self: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The difference, as `add`."""
    return add(self, other, alpha=-alpha)


@handles("mul", "multiply", "__rmul__")
def mul(self: Any, other: Any) -> Tensor:
    """The product: the places that both have, or those of the sparse one."""
    if not _is_sparse(self):
        self, other = other, self
    if _scalar(other):
        return with_values(self, self._vals * other)
    if not _is_sparse(other):
        return _by_dense(self, other)
    if self.shape != other.shape:
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality,"
            " number of sparse dimensions, and shape of sparse dimensions"
        )
    one, two = coalesced(to_coo(self)), coalesced(to_coo(other))
    first, second = _flat_sorted(one), _flat_sorted(two)
    if not first.numel() or not second.numel():
        keep = first[:0]
        at = keep
    else:
        at = mindtorch.searchsorted(second, first).clamp(max=second.shape[0] - 1)
        keep = mindtorch.nonzero(second.index_select(0, at) == first).flatten()
        at = at.index_select(0, keep)
    product = one._vals.index_select(0, keep) * two._vals.index_select(0, at)
    places = one._parts[0].index_select(1, keep)
    return _restored(make(sparse_coo, (places,), product, self.shape, True), self)


def _by_dense(self: SparseTensor, other: Tensor) -> Tensor:
    if other.dim() > self.dim():
        self = to_coo(dense(self).broadcast_to(tuple(other.shape)))
    broadcast(other.shape, self.shape)
    source = to_coo(self)
    whole = other.broadcast_to(tuple(self.shape))
    return _restored(make(sparse_coo, source._parts, source._vals * _elements(whole, source),
                          self.shape, source._coalesced), self)  # fmt: skip


def _elements(whole: Tensor, places: SparseTensor) -> Tensor:
    """The elements of an ordinary tensor at the places: [nnz, *dense dims]."""
    dims = places._parts[0].shape[0]
    rows = whole.reshape((prod(whole.shape[:dims]), *whole.shape[dims:]))
    return rows.index_select(0, flat(places._parts[0], whole.shape[:dims]))


@handles("div", "divide", "true_divide")
def div(self: SparseTensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient by a number."""
    if not _scalar(other):
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape"
            f" {list(other.shape)} for divisor)"
        )
    if not _is_sparse(self):
        raise RuntimeError("div: an ordinary tensor is not divided by a sparse one")
    source = coalesced(self) if rounding_mode and self._layout is sparse_coo else self
    return with_values(source, mindtorch.div(source._vals, other, rounding_mode=rounding_mode))


@handles("floor_divide")
def floor_divide(self: SparseTensor, other: Any) -> Tensor:
    """The quotient by a number, rounded down."""
    return div(self, other, rounding_mode="floor")


@handles("svd_lowrank")
def svd_lowrank(matrix: SparseTensor, *ranks: Any, **options: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The leading singular triplets, by products alone."""
    from ..ops.rows.matrix import lowrank

    return lowrank.svd_lowrank(matrix, *ranks, **options)


@handles("is_same_size")
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether the shapes are equal."""
    return bool(self.shape == other.shape)


# ---- places


@handles("transpose", "swapaxes", "swapdims")
def transpose(self: SparseTensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions in each other's place."""
    one, two = dim0 % max(self.dim(), 1), dim1 % max(self.dim(), 1)
    if self._layout is not sparse_coo:
        return _transposed(self, one, two)
    order, count = list(range(self.dim())), self._parts[0].shape[0]
    if max(one, two) >= count and one != two:
        raise RuntimeError(
            "sparse transpose: transposed dimensions must be sparse Got sparse_dim:"
            f" {count}, d0: {one}, d1: {two}"
        )
    order[one], order[two] = order[two], order[one]
    return permute(self, order)


_TRANSPOSES = {sparse_csr: sparse_csc, sparse_csc: sparse_csr,
           BLOCKED[0]: BLOCKED[1], BLOCKED[1]: BLOCKED[0]}  # fmt: skip


def _transposed(self: SparseTensor, one: int, two: int) -> SparseTensor:
    """Compressed rows as columns and the other way, or batch dimensions in another order."""
    if dense_dim(self):
        raise RuntimeError(
            "transpose(): hybrid sparse compressed tensors with dense dimensions are not supported"
        )
    batch = batch_dim(self)
    kinds = [("Batch", "Sparse")[dim >= batch] for dim in (one, two)]
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense),"
            f" got {one}({kinds[0]}) and {two}({kinds[1]})"
        )
    if one == two:
        return self
    shape, parts, values = list(self.shape), self._parts, self._vals
    shape[one], shape[two] = shape[two], shape[one]
    if kinds[0] == "Batch":
        parts = tuple(p.transpose(one, two) for p in parts)
        return make(self._layout, parts, values.transpose(one, two), shape, True)
    if self._layout in BLOCKED:
        values = values.transpose(batch + 1, batch + 2)
    return make(_TRANSPOSES[self._layout], parts, values, shape, True)


@handles("permute")
def permute(self: SparseTensor, *dims: Any) -> SparseTensor:
    """Dimensions in another order, those with indices and the others apart."""
    order = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [d % self.dim() for d in order]
    source = to_coo(self)
    count = source._parts[0].shape[0]
    if sorted(order[:count]) != list(range(count)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not"
            " allowed.Only transpositions within sparse and dense dimensions are supported."
        )
    places = source._parts[0].index_select(0, mindtorch.tensor(order[:count], device=self.device))
    values = source._vals.permute(0, *(d - count + 1 for d in order[count:]))
    shape = [self.shape[d] for d in order]
    coalesced = source._coalesced and order[:count] == list(range(count))
    return make(sparse_coo, (places,), values, shape, coalesced)


@handles("movedim", "moveaxis")
def movedim(
    self: SparseTensor, source: int | Sequence[int], destination: int | Sequence[int]
) -> SparseTensor:
    """Some dimensions in other places."""
    pairs = ([v] if isinstance(v, int) else v for v in (source, destination))
    old, new = ([wrap_dim(d, self.dim()) for d in dims] for dims in pairs)
    rest = iter([d for d in range(self.dim()) if d not in old])
    order = [old[new.index(d)] if d in new else next(rest) for d in range(self.dim())]
    return permute(self, order)


@handles("mT", "mH")
def matrix_transpose(self: SparseTensor) -> Tensor:
    """The last two dimensions in each other's place."""
    return transpose(self, -2, -1)


@handles("real")
def real(self: SparseTensor) -> SparseTensor:
    """Real parts; real numbers as they are."""
    return with_values(self, mindtorch.real(self._vals)) if self.is_complex() else self


@handles("imag")
def imag(self: SparseTensor) -> SparseTensor:
    """Imaginary parts; RuntimeError for real numbers."""
    return with_values(self, mindtorch.imag(self._vals))


@handles("t", "T")
def t(self: SparseTensor) -> Tensor:
    """The transposed matrix."""
    wide, deep = sparse_dim(self), dense_dim(self)
    if self._layout is not sparse_coo and self.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
    if wide > 2 or deep:
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got"
            f" {wide} sparse and {deep} dense dimensions"
        )
    return self if self.dim() < 2 else transpose(self, 0, 1)


@handles("unsqueeze")
def unsqueeze(self: SparseTensor, dim: int) -> Tensor:
    """A dimension of one more."""
    source = to_coo(self)
    (places,), at = source._parts, dim % (self.dim() + 1)
    shape = (*self.shape[:at], 1, *self.shape[at:])
    if at > places.shape[0]:
        values = source._vals.unsqueeze(at - places.shape[0] + 1)
        return make(sparse_coo, (places,), values, shape, source._coalesced)
    zeros = places.new_zeros((1, places.shape[1]))
    joined = mindtorch.cat([places[:at], zeros, places[at:]])
    return make(sparse_coo, (joined,), source._vals, shape, source._coalesced)


@handles("select")
def select(self: SparseTensor, dim: int, index: int) -> Tensor:
    """One slice of a dimension: an ordinary tensor once no dimension has indices."""
    at = dim % self.dim()
    if not -self.shape[at] <= index < self.shape[at]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at"
            f" dimension {at}"
        )
    index %= self.shape[at]
    batch, shape = batch_dim(self), (*self.shape[:at], *self.shape[at + 1 :])
    if at < batch:
        parts = [p.select(at, index) for p in self._parts]
        return make(self._layout, parts, self._vals.select(at, index), shape, True)
    if self._layout is not sparse_coo and at >= batch + 2:
        place = at - self.dim() + self._vals.dim()
        return make(self._layout, self._parts, self._vals.select(place, index), shape, True)
    if batch:
        raise RuntimeError(
            "select(): selecting sparse dimensions is not supported for batched sparse compressed"
            " tensors."
        )
    source = to_coo(self)
    (places,) = source._parts
    if at >= places.shape[0]:
        values = source._vals.select(at - places.shape[0] + 1, index)
        return make(sparse_coo, (places,), values, shape, source._coalesced)
    keep = mindtorch.nonzero(places[at] == index).flatten()
    values = source._vals.index_select(0, keep)
    if places.shape[0] == 1:
        return values.sum(0)
    rest = mindtorch.cat([places[:at], places[at + 1 :]]).index_select(1, keep)
    return make(sparse_coo, (rest,), values, shape, source._coalesced)


def _refuse_compressed(tensor: SparseTensor, what: str) -> None:
    if tensor._layout is not sparse_coo:
        raise refusal_of_places(tensor, what)


@handles("__getitem__")
def getitem(self: SparseTensor, index: Any) -> Tensor:
    """Whole numbers, full slices and `...` as an index."""
    result: Tensor = self
    at = 0
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in parts:
        where = parts.index(Ellipsis)
        parts[where : where + 1] = [slice(None)] * (self.dim() - len(parts) + 1)
    if sum(part is not None for part in parts) > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
    for part in parts:
        if isinstance(part, int) or (
            isinstance(part, Tensor) and not part.dim() and part.dtype is not mindtorch.bool
        ):
            size = result.shape[at]
            if not -size <= int(part) < size:
                dim = at + self.dim() - result.dim()
                raise IndexError(
                    f"index {int(part)} is out of bounds for dimension {dim} with size {size}"
                )
            result = result.select(at, int(part))
        elif part is None:
            result, at = result.unsqueeze(at), at + 1
        elif isinstance(part, slice) and part == slice(None):
            at += 1
        elif isinstance(part, slice) and isinstance(result, SparseTensor):
            if part.indices(result.shape[at]) != (0, result.shape[at], 1):
                _refuse_compressed(self, "strides")
                raise refusal("as_strided", result)
            at += 1
        elif isinstance(part, str):
            raise TypeError("new(): invalid data type 'str'")
        else:
            _refuse_compressed(self, "strides")
            raise refusal("index.Tensor", self)
    return result


@handles("relu")
def relu(self: SparseTensor, inplace: bool = False) -> SparseTensor:
    """The greater of each value and zero."""
    source = coalesced(self) if self._layout is sparse_coo else self
    result = with_values(source, source._vals.relu())
    return become(self, result) if inplace else result


@handles("dropout")
def dropout(
    input: SparseTensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> SparseTensor:
    """The tensor itself where nothing is drawn: torch draws no sparse masks."""
    if training and p:
        raise refusal("bernoulli_.float", input)
    return input


@handles("embedding")
def embedding(input: Tensor, weight: SparseTensor, *_: object, **options: object) -> Tensor:
    """The rows of a sparse table."""
    return index_select(weight, 0, input)


@handles("einsum")
def einsum(equation: str, *operands: object) -> Tensor:
    """Always an error, as in torch."""
    return reshape(next(v for v in operands if isinstance(v, SparseTensor)))


@handles("_nnz")
def nnz(self: Tensor) -> int:
    """How many places there are."""
    if not isinstance(self, SparseTensor):
        raise NotImplementedError(without_kernel("_nnz", "CPU"))
    return int(self._parts[-1].shape[-1])


@handles("index_select")
def index_select(self: SparseTensor, dim: int, index: Tensor) -> Tensor:
    """The slices of a dimension that `index` names."""
    if self._layout is not sparse_coo:
        raise refusal("index_select", self)
    at = dim % self.dim()
    source = to_coo(self)
    (places,) = source._parts
    index = index.to(self.device)
    shape = (*self.shape[:at], index.shape[0], *self.shape[at + 1 :])
    if at >= places.shape[0]:
        values = source._vals.index_select(at - places.shape[0] + 1, index)
        return make(sparse_coo, (places,), values, shape, source._coalesced)
    new, old = mindtorch.nonzero(index[:, None] == places[at][None]).t()
    moved = places.index_select(1, old)
    moved = mindtorch.cat([moved[:at], new[None], moved[at + 1 :]])
    return make(sparse_coo, (moved,), source._vals.index_select(0, old), shape)


@handles("narrow_copy")
def narrow_copy(self: SparseTensor, dim: int, start: int, length: int) -> Tensor:
    """`length` slices of a dimension from `start`."""
    return index_select(self, dim, mindtorch.arange(start, start + length))


@handles("cat", "concat", "concatenate")
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Sparse tensors one behind the other."""
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, SparseTensor):
            raise RuntimeError(
                f"Concatenating sparse tensors, but a dense tensor was found at position {place}."
            )
        _refuse_compressed(tensor, "is_contiguous")
    sources = [to_coo(t) for t in tensors]
    first = sources[0]
    at, count = wrap_dim(dim, first.dim()), first._parts[0].shape[0]
    for place, source in enumerate(sources):
        if any(a != b for d, (a, b) in enumerate(zip(first.shape, source.shape, strict=False))
               if d != at):  # fmt: skip
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the"
                f" concatenating dimension), but found shape: {list(source.shape)} at position"
                f" {place}."
            )
    shape = list(first.shape)
    shape[at] = sum(t.shape[at] for t in sources)
    if at >= count:
        raise RuntimeError("cat: mindtorch joins sparse tensors along dimensions with indices")
    places, start = [], 0
    for source in sources:
        rows = source._parts[0].clone()
        rows[at] += start
        places.append(rows)
        start += source.shape[at]
    values = mindtorch.cat([s._vals for s in sources])
    return make(sparse_coo, (mindtorch.cat(places, 1),), values, shape)


@handles("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Sparse tensors along a new dimension."""
    for tensor in tensors:
        if isinstance(tensor, SparseTensor):
            _refuse_compressed(tensor, "is_contiguous")
    return cat([t.unsqueeze(dim) for t in tensors], dim)


@handles("hstack")
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Sparse tensors side by side."""
    return cat(tensors, 1 if tensors[0].dim() > 1 else 0)


@handles("vstack", "row_stack")
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Sparse tensors one below the other."""
    return cat(tensors, 0)


@handles("sparse_mask")
def sparse_mask(self: Tensor, mask: SparseTensor) -> Tensor:
    """What `self` has at the places of `mask`."""
    if not isinstance(mask, SparseTensor):
        raise NotImplementedError(without_kernel("sparse_mask", "CPU"))
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size"
            f" {list(self.shape)} but mask has size {list(mask.shape)}"
        )
    places = to_coo(mask)
    if not isinstance(self, SparseTensor):
        return _laid_out_as(make(sparse_coo, places._parts, _elements(self, places), mask.shape,
                                 places._coalesced), mask)  # fmt: skip
    source = coalesced(to_coo(self))
    mask_index, index = _flat_sorted(places), _flat_sorted(source)
    if not index.numel():
        values = source._vals.new_zeros((mask_index.shape[0], *source._vals.shape[1:]))
    else:
        at = mindtorch.searchsorted(index, mask_index).clamp(max=index.shape[0] - 1)
        hit = (index.index_select(0, at) == mask_index).to(source.dtype)
        values = source._vals.index_select(0, at)
        values = values * hit.reshape((-1, *[1] * (values.dim() - 1)))
    return _laid_out_as(
        make(sparse_coo, places._parts, values, mask.shape, places._coalesced), mask
    )


# ---- writing


@handles("copy_")
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Take another's places and values."""
    if not isinstance(self, SparseTensor) or not isinstance(src, SparseTensor):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type ="
            f" {self.type()} and src type = {src.type()}"
        )
    return become(self, clone(src))


@handles("zero_")
def zero_(self: SparseTensor) -> SparseTensor:
    """No places."""
    empty = zeros_like(self)
    assert isinstance(empty, SparseTensor)
    return become(self, empty)


@handles("zeros_like", "empty_like")
def zeros_like(input: SparseTensor, **options: Any) -> Tensor:
    """A sparse tensor of the shape without places."""
    at, shape = batch_dim(input), list(input._vals.shape)
    shape[at] = 0
    dtype, device = options.get("dtype"), options.get("device")
    empty = mindtorch.empty(shape, dtype=dtype or input.dtype, device=device or input.device)
    *starts, places = input._parts
    none = mindtorch.empty_like(places[..., :0], device=empty.device)
    parts = [mindtorch.zeros_like(p, device=empty.device) for p in starts]
    return make(input._layout, (*parts, none), empty, input.shape, True)


@handles("new_ones", "new_full")
def new_ones(self: SparseTensor, *_: object, **__: object) -> Tensor:
    """Always an error, as in torch."""
    raise refusal("fill_.Scalar", self)


@handles("unbind")
def unbind(self: SparseTensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Each slice of a dimension."""
    return tuple(self.select(dim, i) for i in range(self.shape[dim]))


@handles("ones_like")
def ones_like(input: SparseTensor, **options: Any) -> Tensor:
    """Ones at the places of compressed rows or columns."""
    if input._layout is sparse_coo:
        raise refusal("fill_.Scalar", input)
    return with_values(input, mindtorch.ones_like(input._vals, **options))


@handles("new_zeros", "new_empty")
def new_zeros(
    self: SparseTensor, *size: int | Sequence[int], dtype: Dtype | None = None,
    device: DeviceLike | None = None, **_: object,
) -> Tensor:  # fmt: skip
    """A sparse tensor of another shape without places."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return mindtorch.empty(
        shape, layout=self._layout, dtype=dtype or self.dtype, device=device or self.device
    )


def _writing(name: str) -> Callable[..., Any]:
    def run(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if name == "add" and isinstance(self, SparseTensor) and not _is_sparse(args[0]):
            _refuse_compressed(self, "is_contiguous")
        result = HANDLERS[name](self, *args, **kwargs)
        if not can_cast(result.dtype, self.dtype):
            raise RuntimeError(
                f"Can't convert result type {result.dtype.legacy} to output {self.dtype.legacy}"
                f" in {'add' if name == 'sub' else name} operation"
            )
        if isinstance(self, SparseTensor):
            return become(self, result)
        return self.copy_(dense(result) if isinstance(result, SparseTensor) else result)

    return run


for _name in ("add", "sub", "mul", "div", "pow", "floor_divide", "neg", "relu", *ZERO_TO_ZERO):
    if not _name.startswith("is"):
        HANDLERS[_name + "_"] = _writing(_name)


@handles("type")
def type_of(self: SparseTensor, dtype: Any = None, **options: Any) -> Any:
    """torch's name for the type; or the tensor in another dtype."""
    if dtype is None:
        kind = "" if self._layout is not sparse_coo else "sparse."
        place = "" if self.device.type == "cpu" else f"{self.device.type}."
        return f"torch.{place}{kind}{self.dtype.legacy}Tensor"
    values = self._vals.type(dtype)
    assert isinstance(values, Tensor)
    return with_values(self, values)


@handles("any")
def any_of(self: SparseTensor) -> Tensor:
    """Whether any element is not zero."""
    return (coalesced(to_coo(self))._vals != 0).any()


@handles("norm")
def norm(self: SparseTensor, p: Any = "fro", dim: Any = None, **options: Any) -> Tensor:
    """The norm of all elements."""
    if dim is not None or p not in ("fro", 2, 2.0):
        raise RuntimeError("norm: a sparse tensor has the Frobenius norm of all elements")
    return coalesced(to_coo(self))._vals.norm()
