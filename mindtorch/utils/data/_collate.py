"""Owns making a batch of samples: tensors stacked, numbers to
tensors, containers by their fields."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

import mindtorch

from ..._tensor.tensor import Tensor

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)

CollateFn = Callable[..., Any]


def collate(batch: Sequence[Any], *, collate_fn_map: Mapping[Any, CollateFn] | None = None) -> Any:
    """Joins samples by the functions of `collate_fn_map` (type →
    function), containers by their fields."""
    first = batch[0]
    for kind, function in (collate_fn_map or {}).items():
        if isinstance(first, kind):
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _mapping(batch, first, collate_fn_map)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        fields = zip(*batch, strict=True)
        return type(first)(*(collate(field, collate_fn_map=collate_fn_map) for field in fields))
    if isinstance(first, Sequence):
        return _sequence(batch, first, collate_fn_map)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def _mapping(batch: Sequence[Any], first: Any, functions: Mapping[Any, CollateFn] | None) -> Any:
    joined = {
        key: collate([item[key] for item in batch], collate_fn_map=functions) for key in first
    }
    try:
        if isinstance(first, MutableMapping):
            collated = copy.copy(first)
            collated.update(joined)
            return collated
        return type(first)(joined)
    except TypeError:  # the mapping's type can't be made from a dict
        return joined


def _sequence(batch: Sequence[Any], first: Any, functions: Mapping[Any, CollateFn] | None) -> Any:
    items = list(batch)
    if any(len(item) != len(first) for item in items):
        raise RuntimeError("each element in list of batch should be of equal size")
    joined = [collate(field, collate_fn_map=functions) for field in zip(*items, strict=True)]
    if isinstance(first, tuple):
        return joined  # torch gives a list for tuples
    try:
        if isinstance(first, MutableSequence):
            collated = copy.copy(first)
            for i, value in enumerate(joined):
                collated[i] = value
            return collated
        return type(first)(joined)
    except TypeError:  # the sequence's type can't be made from a list
        return joined


def _stack(
    batch: Sequence[Any], *, collate_fn_map: Mapping[Any, CollateFn] | None = None
) -> Tensor:
    if batch[0].layout is not mindtorch.strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn;"
            " please provide a custom collate_fn to handle them appropriately."
        )
    return mindtorch.stack(list(batch), 0)


def _arrays(
    batch: Sequence[Any], *, collate_fn_map: Mapping[Any, CollateFn] | None = None
) -> Tensor:
    if batch[0].dtype.kind in "SUOV":
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([mindtorch.as_tensor(item) for item in batch], collate_fn_map=collate_fn_map)


def _scalars(
    batch: Sequence[Any], *, collate_fn_map: Mapping[Any, CollateFn] | None = None
) -> Tensor:
    return mindtorch.as_tensor(np.asarray(batch))


def _floats(
    batch: Sequence[Any], *, collate_fn_map: Mapping[Any, CollateFn] | None = None
) -> Tensor:
    return mindtorch.tensor(list(batch), dtype=mindtorch.float64)


def _ints(batch: Sequence[Any], *, collate_fn_map: Mapping[Any, CollateFn] | None = None) -> Tensor:
    return mindtorch.tensor(list(batch))


def _same(batch: Sequence[Any], *, collate_fn_map: Mapping[Any, CollateFn] | None = None) -> Any:
    return batch


default_collate_fn_map: dict[Any, CollateFn] = {
    Tensor: _stack,
    np.ndarray: _arrays,
    (np.bool_, np.number, np.object_): _scalars,
    float: _floats,
    int: _ints,
    str: _same,
    bytes: _same,
}


def default_collate(batch: Sequence[Any]) -> Any:
    """Joins samples to a batch: tensors `[*]` to `[N, *]`,
    numbers to `[N]`; strings stay a list."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Makes tensors of the numpy arrays in a sample, without a batch dimension."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SUOV" else mindtorch.as_tensor(data)
    if isinstance(data, Mapping):
        return _converted_mapping(data)
    if isinstance(data, tuple):
        parts = [default_convert(item) for item in data]
        return type(data)(*parts) if hasattr(data, "_fields") else parts
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return [default_convert(item) for item in data]
    return data


def _converted_mapping(data: Any) -> Any:
    converted = {key: default_convert(value) for key, value in data.items()}
    try:
        return type(data)(converted)
    except TypeError:  # the mapping's type can't be made from a dict
        return converted


# What torch calls the functions of `default_collate_fn_map`.
collate_tensor_fn = _stack
collate_numpy_array_fn = _arrays
collate_numpy_scalar_fn = _scalars
collate_float_fn = _floats
collate_int_fn = _ints
collate_str_fn = _same

# Kinds of numpy's arrays that no tensor holds: bytes, text, objects.
np_str_obj_array_pattern = re.compile(r"[SaUO]")
