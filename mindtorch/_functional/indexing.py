"""Owns `t[...]` reading and writing: index expressions to view ops, index and index_put."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any, SupportsIndex

import numpy as np

from .._autograd.grad_mode import LOCAL, MODES
from .._compat.argument_errors import class_name
from .._compat.warn_once import warn
from .._dispatch.bind import refuse_overlap, warn_of_bytes, warn_of_overlap
from .._dispatch.dispatch_modes import through_mode
from .._dispatch.overrides import ask, by_name, hand_over
from .._tensor import dtype as dt
from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ..ops.limits import fits
from ..ops.rules import refuse_growth
from ..ops.spec import OPS, aten


def _getitem(self: Tensor, index: Any) -> Any:
    if MODES.active and by_name():
        return ask(Tensor.__getitem__, (), (self, index), {})
    kind = index.__class__
    if kind is slice and self._geom.ndim:
        return aten.slice(self, 0, *_bounds(index))
    if kind is int and self._geom.ndim:
        size = self._geom.shape[0]
        if not -size <= index < size:
            raise _outside(index, 0, size)
        return aten.select(self, 0, index)
    if kind is tuple and _PLAIN.issuperset(map(type, index)) and len(index) <= self._geom.ndim:
        part, dim = self, 0
        for position, item in enumerate(index):
            part, dim = _apply(part, dim, item, {}, self, position)
        return aten.alias(self) if part is self else part
    if kinds := _foreign(index):
        return hand_over(Tensor.__getitem__, kinds, (self, index), {})
    part, tensors = _views(self, index)
    if not tensors:
        return aten.alias(self) if part is self else part
    if MODES.active and _has_mask(tensors):
        return aten._asked_recorded("index.Tensor", aten.index, (part, list(tensors)))
    return aten.index(part, tensors)


def _has_mask(tensors: tuple[Tensor | None, ...]) -> bool:
    """Whether masks are there, which are looked at only where a mode sees the whole."""
    return any(t is not None and t._geom.dtype is dt.bool for t in tensors)


def _foreign(index: Any) -> list[Any]:
    """The items that see calls without being tensors: tracers' proxies."""
    items = index if isinstance(index, tuple) else (index,)
    return [
        i for i in items
        if not isinstance(i, Tensor) and hasattr(type(i), "__torch_function__")
    ]  # fmt: skip


def _outside(index: int, position: int, size: int) -> Exception:
    """What torch says of an index that a dimension does not have."""
    if not -(1 << 63) <= index < 1 << 63:
        return ValueError("Overflow when unpacking long long")
    return IndexError(f"index {index} is out of bounds for dimension {position} with size {size}")


_PLAIN = frozenset((int, slice))  # items that take a dimension each


def _bounds(index: slice) -> tuple[int | None, int | None, int]:
    start, stop, step = index.start, index.stop, index.step
    if start is not None and start.__class__ is not int:
        start = _whole(start)
    if stop is not None and stop.__class__ is not int:
        stop = _whole(stop)
    if step is None:
        return start, stop, 1
    step = _whole(step)
    if step <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    return start, stop, step


def _whole(value: SupportsIndex) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return value.__index__()


def _as_tuple(index: Any) -> list[Any]:
    if isinstance(index, tuple):
        return list(index)
    if isinstance(index, list | str) and len(index) < 32 and any(_is_compound(i) for i in index):
        warn(_NOT_A_TUPLE)
        return list(index)
    return [index]


_NOT_A_TUPLE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in"
    " pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as"
    " tensor index, x[torch.tensor(seq)], which will result either in an error or a different"
    " result"
)


def _is_compound(item: object) -> bool:
    """Whether such an item makes the list around it mean a tuple, as in numpy before 1.23."""
    if item is None or item is Ellipsis:
        return True
    return isinstance(item, slice | Tensor | list | tuple | str | range | np.ndarray)


def _consumes(item: object) -> int:
    """How many dimensions an index item uses."""
    if item.__class__ in _PLAIN:
        return 1
    if item is None or item is Ellipsis or isinstance(item, bool | np.bool_):
        return 0
    if isinstance(item, Tensor) and item._geom.dtype in (dt.bool, dt.uint8):
        return item._geom.ndim
    return 1


def _views(self: Tensor, index: Any) -> tuple[Tensor, tuple[Any, ...]]:
    """The view that ints, slices and None make, and the index tensors for what is left."""
    items = [_convert(i, self) for i in _as_tuple(index)]
    used = sum(_consumes(i) for i in items)
    if used > self.ndim:
        raise IndexError(_none_left(index, self.ndim))
    part, dim = self, 0
    tensors: dict[int, Tensor] = {}
    for position, item in enumerate(items):
        if item is Ellipsis:
            dim, used = dim + self.ndim - used, self.ndim
            continue
        part, dim = _apply(part, dim, item, tensors, self, position)
    if not tensors:
        return part, ()
    if MODES.active and LOCAL.dispatches:
        return part, tuple(_places(tensors))
    return part, tuple(tensors.get(i) for i in range(max(tensors) + 1))


def _places(tensors: dict[int, Tensor]) -> Iterator[Tensor | None]:
    """What indexes each dimension; a mask stands for as many as it has."""
    dim = 0
    while dim <= max(tensors):
        index = tensors.get(dim)
        yield index
        dim += 1 if index is None or index._geom.dtype is dt.int64 else index.ndim


def _none_left(index: Any, ndim: int) -> str:
    """What is wrong with more indices than there are dimensions."""
    if not ndim and isinstance(index, int):
        return (
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()`"
            " in C++ to convert a 0-dim tensor to a number"
        )
    if not ndim and isinstance(index, slice):
        return "slice() cannot be applied to a 0-dim tensor."
    return f"too many indices for tensor of dimension {ndim}"


def _convert(item: Any, self: Tensor) -> Any:
    if item.__class__ in _PLAIN:
        return item
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, list | tuple | range | np.ndarray):
        from .creation import tensor

        indices = tensor(item if isinstance(item, np.ndarray) else list(item))
        if indices._geom.numel == 0 or indices._geom.dtype not in (dt.bool, dt.uint8):
            indices = aten.to(indices, dt.int64)
        return aten.to(indices, self.device) if not self.is_meta else indices
    if item is None or item is Ellipsis or isinstance(item, int | slice | np.bool_):
        return item
    if isinstance(item, Tensor):
        whole = not item.ndim and item._geom.dtype.category == dt.INTEGER
        if whole and item.__class__ is not Tensor and hasattr(item, "_level"):
            return item  # another number for each element of a batch
        return item.item() if whole and item._geom.dtype is not dt.uint8 else item
    if isinstance(item, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(item).__name__}'")
    if hasattr(item, "__index__"):
        return item.__index__()
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid"
        f" indices (got {type(item).__name__})"
    )


def _apply(
    part: Tensor, dim: int, item: Any, tensors: dict[int, Tensor], self: Tensor, position: int
) -> tuple[Tensor, int]:
    """Index dimension `dim` of the view made so far, which errors call dimension `position`."""
    if item is None:
        return aten.unsqueeze(part, dim), dim + 1
    if isinstance(item, bool | np.bool_):
        tensors[dim] = _mask_index(aten.to(_one_bool(bool(item)), self.device))[0]
        return aten.unsqueeze(part, dim), dim + 1
    if isinstance(item, int):
        size = part._geom.shape[dim]
        if not -size <= item < size:
            raise _outside(item, position, size)
        return aten.select(part, dim, item), dim
    if isinstance(item, slice):
        start, stop, step = _bounds(item)
        if not start and step == 1 and (stop is None or stop == part._geom.shape[dim]):
            return part, dim + 1
        return aten.slice(part, dim, start, stop, step), dim + 1
    return _apply_tensor(part, dim, item, tensors)


def _one_bool(value: bool) -> Tensor:
    from .creation import tensor

    return tensor([value])


def _apply_tensor(
    part: Tensor, dim: int, item: Tensor, tensors: dict[int, Tensor]
) -> tuple[Tensor, int]:
    kind = item._geom.dtype
    if kind in (dt.bool, dt.uint8):
        if kind is dt.uint8:
            warn_of_bytes()
        for i, n in enumerate(item.shape):
            if n != part.shape[dim + i]:
                raise IndexError(
                    f"The shape of the mask {list(item.shape)} at index {i} does not match the"
                    f" shape of the indexed tensor {list(part.shape)} at index {dim + i}"
                )
        if not item.ndim:
            part = aten.unsqueeze(part, dim)
            item = aten.reshape(item, (1,))
        if MODES.active and LOCAL.dispatches and kind is dt.bool:
            tensors[dim] = _beside(item, part)
            return part, dim + item.ndim
        for i, axis_index in enumerate(_mask_index(item)):
            tensors[dim + i] = _beside(axis_index, part)
        return part, dim + item.ndim
    if kind is not dt.int64 and kind is not dt.int32:
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    tensors[dim] = _beside(item if kind is dt.int64 else aten.to(item, dt.int64), part)
    return part, dim + 1


def _beside(index: Tensor, part: Tensor) -> Tensor:
    """The index on the device of what it indexes: one on cpu may index all; else RuntimeError."""
    device = part._geom.device
    if index._geom.device is device:
        return index
    if index._geom.device.type != "cpu":
        raise RuntimeError(
            "indices should be either on cpu or on the same device as the indexed tensor"
            f" ({device})"
        )
    return aten.to(index, device)


def _mask_index(mask: Tensor) -> tuple[Tensor, ...]:
    if getattr(mask, "_level", None) is not None:  # each of a batch would give another shape
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting"
            " to batch over indexing with a boolean mask."
        )
    return tuple(aten._unseen(lambda: aten.unbind(aten.nonzero(mask), 1)))


def _setitem(self: Tensor, index: Any, value: Tensor | Number) -> None:
    if MODES.active and by_name():
        ask(Tensor.__setitem__, (), (self, index, value), {})
        return
    if kinds := _foreign(index):
        hand_over(Tensor.__setitem__, kinds, (self, index, value), {})
        return
    if index is False:
        return
    if index is True:
        index = None
    if isinstance(value, bool | int | float | complex):
        value = _element(value, self._geom.dtype)
    elif not isinstance(value, Tensor | np.integer | np.bool_):
        raise TypeError(f"can't assign a {class_name(value)} to a {self.type()}")
    watched = MODES.active and LOCAL.dispatches
    number = not isinstance(value, Tensor)
    if watched and not isinstance(value, Tensor):
        value = through_mode("lift_fresh", aten._unseen(_value, self, value))
    if _is_leading_mask(self, index) and _is_single(value) and not watched:
        before = self._fn
        index = aten.reshape(index, index.shape + (1,) * (self.ndim - index.ndim))
        warn_of_overlap(OPS["index_put"], self._geom)
        if isinstance(value, Tensor) and value.ndim:
            value = aten.reshape(value, ())
        self.masked_fill_(_beside(index, self), value)
        if self._base is None and self._fn is not before:
            self._fn.label = "IndexPutBackward0"  # torch's operator for it
        return
    part, tensors = _views(self, index)
    if not isinstance(value, Tensor):
        if not tensors and isinstance(value, bool | int | float | complex):
            refuse_overlap(part._geom)
            part.fill_(value)
            return
        value = _value(self, value)
    if not tensors and watched and number:
        part.fill_(value)
        return
    if not tensors:
        part.copy_(_fitted(value, part.shape))
        return
    source: Tensor = value
    if source.device is not self.device and not source.ndim:
        source = aten.to(source, self.device)
    if source.ndim and source.shape[0] == 1:  # torch's assignment, not its index_put, drops those
        first = next((i for i, n in enumerate(source.shape) if n != 1), source.ndim)
        source = aten.reshape(source, source.shape[first:])
    if MODES.active and _has_mask(tensors) and part._fn is None and source._fn is None:
        aten._asked("index_put_", (part, list(tensors), source), {})
        return
    part.index_put_(tensors, source)


def _is_leading_mask(self: Tensor, index: object) -> bool:
    if not isinstance(index, Tensor) or index._geom.dtype is not dt.bool:
        return False
    return index.shape == self.shape[: index.ndim]


def _is_single(value: object) -> bool:
    return not isinstance(value, Tensor | list | tuple | np.ndarray) or (
        isinstance(value, Tensor) and value._geom.numel == 1
    )


def _element(value: Number, dtype: dt.dtype) -> Number:
    """A number as an element that is assigned: halves round it, past their range to infinity."""
    if dtype.category == dt.FLOAT and dtype.itemsize <= 2 and not isinstance(value, complex):
        with np.errstate(over="ignore"):
            return float(dtype.np.type(value))
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    fits(value, dtype)
    return value


def _value(self: Tensor, value: Number) -> Tensor:
    from .creation import tensor

    if isinstance(value, bool | int | float | complex):
        return aten.full((), value, dtype=self.dtype, device=self.device)
    return tensor(value, dtype=self.dtype, device=self.device)


def _fitted(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`value` in `shape`: without leading dimensions of size 1 that it does not have, expanded."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = aten.select(value, 0, 0)
    if value.shape == shape:
        return value
    ones = next((i for i, n in enumerate(value.shape) if n != 1), value.ndim)
    refuse_growth(value.shape[ones:], shape)  # torch names the shape without these
    return aten.expand(value, shape)


_getitem.__name__, _setitem.__name__ = "__getitem__", "__setitem__"
setattr(Tensor, "__getitem__", _getitem)  # noqa: B010 - mypy reads an assignment as indexing
setattr(Tensor, "__setitem__", _setitem)  # noqa: B010


def _delitem(self: Tensor, index: object) -> None:
    raise TypeError("Tensor does not support deleting items")


setattr(Tensor, "__delitem__", _delitem)  # noqa: B010


def _contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, Tensor):
        return bool(aten.any(aten.eq(element, self)))
    if isinstance(element, numbers.Number):
        number: Any = element
        return bool(aten.any(aten.eq(self, number)))
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


setattr(Tensor, "__contains__", _contains)  # noqa: B010
