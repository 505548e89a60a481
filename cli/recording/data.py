"""Puts together what tensors held, from the pieces that a recording has of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from aclnn_bindings.interface.dtypes import DTYPES

from ..judge.precision import Array, numpy_dtype
from .values import RecordedTensor

_PIECE: Final = struct.Struct("<QQQHHB3x")
_MOST: Final = 1 << 29  # bytes that a tensor is spread out to
_IN_FLIGHT: Final = 1 << 30  # bytes of launches whose data are not all there yet


class Piece:
    """A tensor's bytes while they come in: no more of them than have come are held."""

    def __init__(self, total: int) -> None:
        self._total, self._parts = total, dict[int, bytes]()
        self.size = 0

    def add(self, offset: int, data: bytes) -> None:
        """ValueError where they do not lie in the tensor."""
        if offset + len(data) > self._total:
            raise ValueError("a piece of a tensor lies past its end")
        self.size += len(data) - len(self._parts.get(offset, b""))
        self._parts[offset] = data

    @property
    def whole(self) -> bool:
        return self.size == self._total

    def joined(self) -> bytes:
        """All bytes; b"" where some are lost."""
        data = b"".join(self._parts[at] for at in sorted(self._parts))
        end = 0
        for at in sorted(self._parts):
            if at != end:
                return b""
            end += len(self._parts[at])
        return data if end == self._total else b""


# (parameter's position, which tensor of it) → bytes, of one side of a launch.
Side = dict[tuple[int, int], Piece]


def call_number(piece: bytes) -> int:
    """The number of the call whose data a piece is of."""
    return int(_PIECE.unpack_from(piece)[0])


class Pieces:
    """Data of launches under way, by call number; each is given out once.

    Past `_IN_FLIGHT` bytes what comes is not kept, and its launch lacks it.
    """

    def __init__(self) -> None:
        self._size = 0
        self._sides: dict[int, tuple[Side, Side]] = {}

    def add(self, data: bytes) -> None:
        number, offset, total, parameter, member, after = _PIECE.unpack_from(data)
        side = self._sides.setdefault(number, ({}, {}))[after]
        piece = side.setdefault((parameter, member), Piece(total))
        if self._size + len(data) <= _IN_FLIGHT:
            before = piece.size
            piece.add(offset, data[_PIECE.size :])
            self._size += piece.size - before

    def whole(self, number: int) -> bool:
        """Whether all bytes have come of every tensor of which some have."""
        return all(p.whole for side in self._sides.get(number, ()) for p in side.values())

    def take(self, number: int) -> tuple[Side, Side]:
        """What was read and what was written by a call."""
        sides = self._sides.pop(number, ({}, {}))
        self._size -= sum(piece.size for side in sides for piece in side.values())
        return sides


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


def _array(piece: Piece | None, tensor: Any) -> Array | None:
    """The view's elements, of the bytes from its first to its last; None where some are lost."""
    name = (
        DTYPES[tensor.dtype].numpy
        if isinstance(tensor, RecordedTensor) and tensor.dtype in DTYPES
        else ""
    )
    if not name:
        return None
    dtype = numpy_dtype(name)
    if 0 in tensor.shape:
        return np.empty(tensor.shape, dtype)
    if piece is None or math.prod(tensor.shape) * dtype.itemsize > _MOST:
        return None
    if not (data := piece.joined()):
        return None
    pairs = zip(tensor.shape, tensor.strides, strict=True)
    low = sum((n - 1) * step for n, step in pairs if step < 0)
    steps = tuple(step * dtype.itemsize for step in tensor.strides)
    return np.ndarray(tensor.shape, dtype, data, -low * dtype.itemsize, steps).copy()
