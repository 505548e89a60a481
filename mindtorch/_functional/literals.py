"""Owns what `torch.tensor` reads: numbers, nested sequences and arrays, as one numpy array."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from .._compat.class_names import class_name
from .._compat.warn_once import warn_once
from .._tensor import dtype as dt
from .._tensor.dtype import dtype as Dtype
from .._tensor.eight_bits import fitting
from .._tensor.tensor import Tensor
from .._tensor.types import Array
from ..ops.limits import fits


def refuse_strides(array: Array | np.generic) -> None:
    """ValueError in torch's words for arrays that run backwards in memory."""
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative"
            " strides are not currently supported. (You can probably work around this by making"
            " a copy of your array  with array.copy().) "
        )


def _plain(data: Any, kinds: set[Dtype]) -> Any:
    """`data` with tensors of one element as numbers; `kinds` gathers the dtypes of all."""
    if isinstance(data, Tensor):
        kinds.add(data.dtype)
        if data.numel() != 1 and not data.is_floating_point():
            raise TypeError("only integer tensors of a single element can be converted to an index")
        if data.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return data.item()
    if isinstance(data, list | tuple):
        return [_plain(v, kinds) for v in data]
    if isinstance(data, np.generic | np.ndarray):
        kinds.add(dt.from_numpy_dtype(data.dtype))
    else:
        kinds.add(_kind_of_number(data))
    return data


_NUMBERS = {bool, int, float, complex}


def _kind_of_number(value: Any) -> Dtype:
    if isinstance(value, bool):
        return dt.bool
    if isinstance(value, complex):
        return dt.get_default_dtype().to_complex()
    return dt.int64 if isinstance(value, int) else dt.get_default_dtype()


def _are_numbers(data: Any) -> bool:
    """Whether all values in lists are Python's own numbers, of no subclass."""
    if not isinstance(data, list | tuple):
        return type(data) in _NUMBERS
    return _NUMBERS.issuperset(map(type, data)) or all(map(_are_numbers, data))


def _has_kind(data: Any) -> bool:
    """Whether a value has a dtype of its own, so that all must be asked for theirs."""
    if not isinstance(data, list | tuple):
        return isinstance(data, Tensor | np.generic | np.ndarray)
    kinds = set(map(type, data))
    if kinds <= _NUMBERS:
        return False
    return any(_has_kind(v) for v in data if type(v) not in _NUMBERS)


def array_of(data: Any, dtype: Dtype | None) -> Any:
    """A fresh numpy array for `torch.tensor(data, dtype=dtype)`; ValueError for ragged data."""
    if isinstance(data, np.str_):
        raise _no_dtype(data, None)
    if isinstance(data, np.ndarray | np.generic):
        dt.from_numpy_dtype(data.dtype)  # refuses what torch has no dtype for
        refuse_strides(data)
        converted = np.array(data)
    else:
        _refuse_circles(data, ())
        numbers = _are_numbers(data)
        if not numbers:
            data = _listed(data, dtype)
            _refuse_leading_values(data)
        if dtype is not None and dtype.category == dt.FLOAT:
            data = _as_real(data)
        kinds: set[Dtype] = set()
        plain = data if numbers or not _has_kind(data) else _plain(data, kinds)
        try:
            converted = np.array(plain)
        except ValueError:
            if isinstance(data[0], list | tuple) and not data[0]:
                converted = np.empty((len(data), 0))  # sizes are those of the first elements
            else:
                raise _ragged(data, dtype) from None
        except OverflowError:
            raise ValueError("Overflow when unpacking long long") from None
        _refuse_or_warn(data, converted, dtype)
        large = converted.dtype == object and isinstance(_culprit(data), int)  # beyond 64 bits
        if large and dtype is not None and dtype.category >= dt.FLOAT:
            converted = converted.astype(np.complex128)
            converted = converted if dtype.is_complex else converted.real
        if kinds:
            dtype = dtype or reduce(dt.promote_types, kinds)
        elif converted.dtype == np.float64:
            converted = _cast(
                converted,
                (dtype or dt.get_default_dtype()).np
                if not dtype or dtype.category >= dt.FLOAT
                else converted.dtype,
            )
        elif converted.dtype == np.complex128:
            wide = dtype if dtype and dtype.category == dt.COMPLEX else dt.SCALAR_DTYPES[complex]()
            converted = _cast(converted, wide.np)
    if converted.dtype == object or converted.dtype.kind in "US":
        raise _no_dtype(_culprit(data), None if isinstance(data, str | bytes) else dtype)
    if dtype is not None and converted.dtype != dtype.np:
        _refuse_numbers(data, converted, dtype)
        converted = _cast(converted, dtype.np)
    return converted


_VALUES = (int, float, complex, str, bytes, Tensor, np.generic, np.ndarray)


def is_sequence(data: Any) -> bool:
    """Whether a value has items by number: Python's sequences, and classes of programs alike."""
    kind = type(data)
    return hasattr(kind, "__getitem__") and not isinstance(data, dict | np.generic)


def _listed(data: Any, dtype: Dtype | None) -> Any:
    """`data` with all sequences as lists; the error for what is neither number nor sequence."""
    if isinstance(data, list | tuple):
        return data if _NUMBERS.issuperset(map(type, data)) else [_listed(v, dtype) for v in data]
    if isinstance(data, _VALUES):
        return data
    if is_sequence(data):
        return [_listed(data[i], dtype) for i in range(len(data))]
    whole = dtype is not None and dtype.category <= dt.INTEGER
    says = "__index__" if whole else "__float__"
    if dtype is not None and (hasattr(data, says) or hasattr(data, "__index__")):
        return data
    raise _no_dtype(data, dtype)


def _refuse_circles(data: Any, outer: tuple[int, ...]) -> None:
    """TypeError in torch's words for a list that holds itself."""
    if not isinstance(data, list | tuple):
        return
    if id(data) in outer:
        raise TypeError("new(): self-referential lists are incompatible")
    if data and (isinstance(data[0], list | tuple) or isinstance(data[-1], list | tuple)):
        for value in data:
            _refuse_circles(value, (*outer, id(data)))


def _as_real(data: Any) -> Any:
    """`data` with objects as the numbers that they say they are; TypeError for complex ones."""
    if isinstance(data, list | tuple):
        plain = {float, int, bool}.issuperset(map(type, data))
        return data if plain else [_as_real(v) for v in data]
    if isinstance(data, complex) and not isinstance(data, np.generic):
        raise TypeError("must be real number, not complex")
    known = isinstance(data, int | float | np.ndarray | np.generic | Tensor | str | bytes)
    if known or (not hasattr(data, "__float__") and not hasattr(data, "__index__")):
        return data
    return float(data)


def _culprit(data: Any) -> Any:
    """The first value that is no number; a number where all are numbers."""
    if not isinstance(data, list | tuple):
        return data
    leaves = [_culprit(v) for v in data]
    return next((v for v in leaves if not isinstance(v, int | float | complex)), 0)


def _no_dtype(value: Any, dtype: Dtype | None) -> Exception:
    """The error for a value that has no dtype, or is no number of the one asked for, in torch's
    words."""
    kind = class_name(value)
    if dtype is not None and not isinstance(value, int | float | complex):
        return _no_number(value, dtype.category <= dt.INTEGER)
    if isinstance(value, str | bytes):
        return TypeError(f"new(): invalid data type '{kind}'")
    return RuntimeError(f"Could not infer dtype of {kind}")


def _refuse_leading_values(data: Any) -> None:
    """ValueError in torch's words for lists that begin with text: each letter has letters;
    TypeError for those that begin with an array of no dimensions."""
    first = _first(data)
    if isinstance(first, np.ndarray) and not first.ndim:
        raise TypeError("len() of unsized object")
    if isinstance(data, list | tuple) and isinstance(_first(data), str) and _first(data):
        raise ValueError("too many dimensions 'str'")


def _cast(values: Array, kind: np.dtype[Any] | type) -> Array:
    """Numbers that do not fit become infinite or wrap, as torch's do, and nobody is warned."""
    with np.errstate(over="ignore", invalid="ignore"):
        return fitting(values, np.dtype(kind)).astype(kind)


def _refuse_or_warn(data: Any, values: Array, dtype: Dtype | None) -> None:
    """ValueError for integers beyond int64; a warning where a list holds numpy arrays."""
    large = values.dtype == np.uint64 or (
        values.dtype == object and isinstance(_culprit(data), int) and values.size > 0
    )
    if large and (dtype is None or (dtype.category == dt.INTEGER and dtype is not dt.uint64)):
        raise ValueError("Overflow when unpacking long long")
    if isinstance(data, list | tuple) and data and isinstance(data[0], np.ndarray):
        warn_once(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider"
            " converting the list to a single numpy.ndarray with numpy.array() before converting"
            " to a tensor."
        )


def _refuse_numbers(data: Any, values: Array, dtype: Dtype) -> None:
    """RuntimeError in torch's words for Python numbers outside of an integer dtype's range."""
    if isinstance(data, np.ndarray | np.generic) or _has_kind(data):
        return
    if dtype.category != dt.INTEGER or not values.size or values.dtype.kind not in "iuf":
        return
    name = str(dtype).removeprefix("torch.")
    for value in (values.min().item(), values.max().item()):
        fits(value, dtype, name)


def _first(data: Any) -> Any:
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return data


def _no_number(value: object, whole: bool) -> TypeError:
    kind = type(value).__name__
    if whole:
        return TypeError(f"'{kind}' object cannot be interpreted as an integer")
    return TypeError(f"must be real number, not {kind}")


def _ragged(data: Any, dtype: Dtype | None) -> Exception:
    """The error for rows of different lengths, in torch's words."""
    if isinstance(text := _culprit(data), str | bytes):
        return _no_dtype(text, dtype)
    lengths = [len(v) if isinstance(v, list | tuple) or np.ndim(v) else None for v in data]
    for value, n in zip(data, lengths, strict=True):
        if n == lengths[0]:
            continue
        if lengths[0] is None:
            if dtype is None:
                return _no_number(value, isinstance(data[0], int))
            return _no_number(value, dtype.category <= dt.INTEGER)
        if n is None:
            return TypeError("not a sequence")
        return ValueError(f"expected sequence of length {lengths[0]} at dim 1 (got {n})")
    return ValueError(f"expected sequence of equal lengths, got {lengths}")
