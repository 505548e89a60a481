"""Rows of advanced indexing: reading and writing where index tensors point."""

from __future__ import annotations

from math import prod

from ...._tensor import dtype as dt
from ...._tensor.geometry import contiguous_strides, geometry
from ...complex_parts import in_pairs, is_real, put
from ...costs import lookup
from ...rules import Dynamic, _dense_in_order, _order, broadcast_all
from ...words import *
from ..view.shape import _expand, view_strides

_INDEX_DTYPES = (dt.int64, dt.int32, dt.uint8, dt.bool)


def _layout(
    self: Geometry, indices: Sequence[Geometry | None]
) -> tuple[tuple[int, ...], tuple[int, ...], list[Any]]:
    """Shape of `self[indices]`, that of the indices, and strides that order its dimensions."""
    if len(indices) > self.ndim:
        raise IndexError(
            f"too many indices for tensor of dimension {self.ndim} (got {len(indices)})"
        )
    tensors = {i: g for i, g in enumerate(indices) if g is not None}
    if any(g.dtype not in _INDEX_DTYPES for g in tensors.values()):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    used = list(tensors)
    try:
        common = broadcast_all(g.shape for g in tensors.values())
    except RuntimeError:
        shapes = ", ".join(str(list(g.shape)) for g in tensors.values())
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    if prod(common) and any(self.shape[i] == 0 for i in used):
        raise IndexError("index is out of bounds for dimension with size 0")
    adjacent = not used or used == list(range(used[0], used[-1] + 1))
    first = used[0] if used and adjacent else 0
    rest = [d for d in range(self.ndim) if d not in used]
    before = [d for d in rest if adjacent and used and d < used[0]]
    after = [d for d in rest if d not in before]
    shape = (*(self.shape[d] for d in before), *common, *(self.shape[d] for d in after))
    source = [self.strides[d] for d in before] + [0] * len(common)
    source += [self.strides[d] for d in after]
    rows = [source]
    ones = ((1,) * len(before), (1,) * len(after))
    for i in used:
        whole = _expand(tensors[i], common)
        local = (*ones[0], *common, *ones[1])
        strides = view_strides(whole, local) or contiguous_strides(local)
        rows.append(
            [0 if n == 1 != m else s for n, m, s in zip(local, shape, strides, strict=True)]
        )
    return shape, (first, *common), rows


def _index(self: Geometry, indices: tuple[Geometry | None, ...]) -> Geometry:
    shape, _, rows = _layout(self, indices)
    strides = _dense_in_order(shape, _order(shape, rows))
    return geometry(shape, strides, 0, self.dtype, self.device)


def _refuse_outside(indices: list[Array], sizes: list[int]) -> None:
    """IndexError for the first element, in the order of memory, that an index has not."""
    if not all(i.size for i in indices):
        return
    for values in np.nditer(indices, order="K"):
        for at, (i, size) in enumerate(zip(np.atleast_1d(values), sizes, strict=True)):
            if not -size <= i < size:  # torch counts the dims that are indexed
                raise IndexError(f"index {i} is out of bounds for dimension {at} with size {size}")


def _at(self: Array, indices: Sequence[Array | None], run: Callable[[tuple[Any, ...]], Any]) -> Any:
    """What `run` gives for the places; numpy looks whether there are such before it writes."""
    try:
        return run(tuple([slice(None) if i is None else i for i in indices]))
    except IndexError:
        used = [(index, size) for index, size in zip(indices, self.shape, strict=False)
                if index is not None]  # fmt: skip
        _refuse_outside([i for i, _ in used], [size for _, size in used])
        raise


def _outside(
    self: Geometry, indices: tuple[Geometry | None, ...], *_: Any
) -> list[tuple[tuple[int, int], int, int]]:
    sizes = zip(indices, self.shape, strict=False)
    return [((1, i), -n, n) for i, (g, n) in enumerate(sizes) if g is not None]


op(
    "index(Tensor self, Tensor?[] indices) -> Tensor",
    oracle=lambda torch: torch.ops.aten.index,
    infer=_index,
    bounds=_outside,
    cpu=lambda self, indices: _at(self, indices, self.__getitem__),
    compute="raw",
    aclnn=call("aclnnIndex", when=is_real),
    lower=in_pairs(lambda pairs, indices: aten.index(pairs, indices)),
    grad={
        "self": lambda grad, self_geom, indices: aten.index_put(
            aten.zeros(self_geom.shape, dtype=grad.dtype, device=grad.device), indices, grad, True
        )
    },
    samples=lambda: [
        Sample((Arg((4, 3)), [Arg((2,), "int64", values=(3, 0))])),
        Sample((Arg((4, 3)), [None, Arg((2, 2), "int64", values=((2, 0), (1, 1)))])),
        Sample((Arg((3, 4100), grad=False), [Arg((2,), "int64", values=(2, 0))])),
    ],
    cost=lookup,
    surface="none",
)


_INDICES = frozenset((dt.int64, dt.int32, dt.uint8, dt.bool))


def _index_put(
    self: Geometry, indices: tuple[Geometry | None, ...], values: Geometry, accumulate: bool = False
) -> Geometry:
    if any(i is not None and i.dtype not in _INDICES for i in indices):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    shape = _layout(self, indices)[0]
    lead = len(shape) - values.ndim
    fits = lead >= 0 and all(n in (1, m) for m, n in zip(shape[lead:], values.shape, strict=True))
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to"
            f" indexing result of shape {list(shape)}"
        )
    if self.dtype is not values.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got"
            f" {self.dtype.legacy} for the destination and {values.dtype.legacy} for the source."
        )
    return self.fresh()


def _write(self: Array, indices: tuple[Array | None, ...], values: Array, accumulate: bool) -> None:
    if not accumulate:
        _at(self, indices, lambda where: self.__setitem__(where, values))
    elif self.dtype == bool:
        _at(self, indices, lambda where: np.logical_or.at(self, where, values))
    elif self.dtype.kind not in "fiuc":
        wide = self.astype(np.float32)
        _at(self, indices, lambda where: np.add.at(wide, where, values.astype(np.float32)))
        self[...] = wide.astype(self.dtype)
    else:
        _at(self, indices, lambda where: np.add.at(self, where, values))


def _index_put_copy(
    self: Array, indices: tuple[Array | None, ...], values: Array, accumulate: bool
) -> Array:
    result = self.copy(order="C")
    _write(result, indices, values, accumulate)
    return result


def _put_grad_self(
    grad: Tensor, indices: tuple[Tensor | None, ...], values_geom: Geometry, accumulate: bool
) -> Tensor:
    if accumulate:
        return grad
    zero = aten.zeros((), dtype=grad.dtype, device=grad.device)
    return aten.index_put(grad, indices, zero, False)


op(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    summary="`self` with `values` at `indices`, a tensor for each dimension.",
    oracle=lambda torch: torch.ops.aten.index_put,
    infer=_index_put,
    bounds=_outside,
    cpu=_index_put_copy,
    cpu_inplace=_write,
    compute="raw",
    aclnn=call(
        "aclnnIndexPutImpl",
        "self",
        "indices",
        "values",
        "accumulate",
        False,
        inplace=True,
        when=is_real,
    ),
    lower=put,
    grad={
        "self": _put_grad_self,
        "values": lambda grad, indices: aten.index(grad, indices),
    },
    samples=lambda: [
        Sample((Arg((4, 3)), [Arg((2,), "int64", values=(3, 0))], Arg((2, 3)))),
        Sample((Arg((4, 3)), [Arg((3,), "int64", values=(3, 0, 3))], Arg((3, 3)), True)),
        Sample((Arg((4, 3)), [None, Arg((2,), "int64", values=(2, 0))], Arg(()))),
    ],
    tolerance="rounded",
    rule="stored",
    inplace=True,
    overlaps="tensor[indices] = tensor",
    apart=True,
)


_MANY = 1 << 11  # elements


def _places(self: Array) -> Array:
    """Of many elements from their places in the whole, which numpy finds sooner."""
    if not self.ndim:
        return np.argwhere(self)
    if self.size < _MANY:
        return np.array(self.nonzero()).T
    at = np.flatnonzero(self if self.dtype == bool else self != 0)
    places = np.empty((self.ndim, len(at)), np.int64)
    for dim in range(self.ndim - 1, 0, -1):
        whole = at // max(self.shape[dim], 1)
        places[dim] = at - whole * self.shape[dim]
        at = whole
    places[0] = at
    return places.T


op(
    "nonzero(Tensor self) -> Tensor",
    summary="Indices of elements that are not 0: `[N, dimensions]`.",
    infer=lambda self: Dynamic(dt.int64, self.device, (self.numel, self.ndim), column_major=True),
    cpu=_places,
    compute="raw",
    aclnn=call("aclnnNonzero", when=is_real),
    lower=lambda self: aten.nonzero(aten.ne(self, 0)),
    grad={},
    samples=lambda: [
        Sample((Arg((3, 4), values=((0, 1, 2, 0), (0, 0, 0, 3), (1, 1, 0, 0))),)),
        Sample((Arg((3,), "bool"),)),
        Sample((Arg((), values=1),)),
    ],
    out="{name}: Expected out tensor to have scalar type {Want} but got scalar type{Got}",
)


def _nonzero_columns(self: Tensor, as_tuple: bool) -> Tensor | tuple[Tensor, ...]:
    """Indices of what is not zero: a tuple of `[N]`, one per dimension, with `as_tuple`."""
    if not as_tuple:
        return aten.nonzero(self)
    indices = aten.nonzero(self if self.ndim else aten.reshape(self, (1,)))
    return tuple(aten.unbind(indices, 1))


composite(
    "nonzero.columns(Tensor self, *, bool as_tuple) -> Tensor[]",
    _nonzero_columns,
    samples=calls(
        Sample((Arg((3, 4), "int64", 0, 1),), {"as_tuple": True}),
        Sample((Arg((), values=1, grad=False),), {"as_tuple": True}),
        Sample((Arg((3,), "bool"),), {"as_tuple": False}),
    ),
    oracle=lambda torch: torch.nonzero,
    out="{name}: Expected out tensor to have scalar type {Want} but got scalar type{Got}",
)
composite(
    "argwhere(Tensor self) -> Tensor",
    lambda self: aten.nonzero(self),
    summary="Indices of elements that are not 0: `[N, dimensions]`.",
    samples=calls((Arg((3, 4), "int64", 0, 1),), (Arg((3,), "bool"),)),
)
