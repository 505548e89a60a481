"""Puts together what tensors held, from the pieces that a recording has of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from aclnn_bindings.interface.dtypes import DTYPES

from ..judge.precision import Array, numpy_dtype
from .values import Tensor

_PIECE: Final = struct.Struct("<QQQHHB3x")
_MOST: Final = 1 << 32  # bytes that a tensor is spread out to
# (parameter's position, which tensor of it) → bytes, of one side of a launch.
Side = dict[tuple[int, int], bytearray]


def call_number(piece: bytes) -> int:
    """The number of the call whose data a piece is of."""
    return int(_PIECE.unpack_from(piece)[0])


class Pieces:
    """Data of launches under way, by call number; each is given out once.

    `most` bytes are all that the file can hold: a tensor that says more is forged (ValueError).
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sides: dict[int, tuple[Side, Side]] = {}

    def add(self, data: bytes) -> None:
        number, offset, total, parameter, member, after = _PIECE.unpack_from(data)
        side = self._sides.setdefault(number, ({}, {}))[after]
        if total > self._most:
            raise ValueError(f"a tensor of {total} bytes, more than the file can hold")
        if (parameter, member) not in side:
            side[parameter, member] = bytearray(total)
        piece = side[parameter, member]
        piece[offset : offset + len(data) - _PIECE.size] = data[_PIECE.size :]

    def take(self, number: int) -> tuple[Side, Side]:
        """What was read and what was written by a call."""
        return self._sides.pop(number, ({}, {}))


def arrays(side: Side, names: Sequence[str], arguments: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Parameter → its tensors' elements; None where they were not kept, have no numpy
    dtype, or are many that few bytes stand for (an expanded tensor's, or a forged one's)."""
    by_name: dict[str, list[Any]] = {}
    for position, name in enumerate(names):
        value = arguments.get(name)
        tensors = value if isinstance(value, tuple) else (value,)
        if not any((position, k) in side for k in range(len(tensors))):
            continue
        by_name[name] = [
            _array(side.get((position, k)), tensor) for k, tensor in enumerate(tensors)
        ]
    return by_name


def _array(piece: bytearray | None, tensor: Any) -> Array | None:
    """The view's elements, of the bytes from its first to its last."""
    name = (
        DTYPES[tensor.dtype].numpy if isinstance(tensor, Tensor) and tensor.dtype in DTYPES else ""
    )
    if not name:
        return None
    dtype = numpy_dtype(name)
    if 0 in tensor.shape:
        return np.empty(tensor.shape, dtype)
    if piece is None or math.prod(tensor.shape) * dtype.itemsize > _MOST:
        return None
    pairs = zip(tensor.shape, tensor.strides, strict=True)
    low = sum((n - 1) * step for n, step in pairs if step < 0)
    steps = tuple(step * dtype.itemsize for step in tensor.strides)
    return np.ndarray(tensor.shape, dtype, bytes(piece), -low * dtype.itemsize, steps).copy()
