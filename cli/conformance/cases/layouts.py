"""Owns memory layouts of test tensors: where elements lie in a larger, sentinel-filled storage."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from ...judge.precision import Array

# Elements before and after the view that nobody may write: at least a page of 4 KiB for types of
# 8 bytes, so that writes beyond the end stay in watched memory.
PAD: Final = 512
# Bytes of sentinels: as a float of any width NaN or huge, so that a kernel which reads them shows.
_SENTINELS: Final = np.array([*range(0x7B, 0x80), *range(0xFB, 0x100)], np.uint8)
# Places among sentinels at which a storage may begin, and bytes (a prime) after which they repeat.
_STARTS: Final = 65521
_PERIOD: Final = 524287
# Layouts with stride 0: elements repeat, and nothing may be written there.
REPEATED: Final = frozenset(("expanded", "middle"))


@dataclass(frozen=True, slots=True)
class StorageLayout:
    """Strides and offset (elements) of a view in a storage of `numel` elements."""

    strides: tuple[int, ...]
    offset: int
    numel: int


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, torch's way (sizes of 0 count as 1)."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def _ordered(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides where dimension order[-1] is innermost."""
    inner = dense([shape[d] for d in order])
    strides = [0] * len(shape)
    for stride, d in zip(inner, order, strict=True):
        strides[d] = stride
    return tuple(strides)


def _contiguous(shape: tuple[int, ...]) -> StorageLayout:
    return StorageLayout(dense(shape), 0, prod(shape) + PAD)


def _transposed(shape: tuple[int, ...]) -> StorageLayout:
    if len(shape) < 2:
        return _sliced(shape)
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    return StorageLayout(_ordered(shape, order), 0, prod(shape) + PAD)


def _sliced(shape: tuple[int, ...]) -> StorageLayout:
    # Gaps in the first and the last dimension: all of eight would make storage of 3^8 the size.
    wider = {0, len(shape) - 1}
    whole = [n + 2 if d in wider else n for d, n in enumerate(shape)]
    strides = dense(whole)
    start = sum(s for d, s in enumerate(strides) if d in wider)
    return StorageLayout(strides, PAD + start, prod(whole) + 2 * PAD)


def _stepped(shape: tuple[int, ...]) -> StorageLayout:
    if not shape:
        return _sliced(shape)
    whole = [*shape[:-1], shape[-1] * 2]
    strides = dense(whole)
    return StorageLayout((*strides[:-1], 2), PAD + 1, prod(whole) + 2 * PAD)


def _expanded(shape: tuple[int, ...]) -> StorageLayout:
    if not shape:
        return _sliced(shape)
    return StorageLayout((0, *dense(shape)[1:]), PAD, prod(shape[1:]) + 2 * PAD)


def _middle(shape: tuple[int, ...]) -> StorageLayout:
    """Stride 0 in a middle dimension."""
    if len(shape) < 3:
        return _expanded(shape)
    at = len(shape) // 2
    stored = (*shape[:at], 1, *shape[at + 1 :])
    strides = [0 if d == at else s for d, s in enumerate(dense(stored))]
    return StorageLayout(tuple(strides), PAD, prod(stored) + 2 * PAD)


def _reversed(shape: tuple[int, ...]) -> StorageLayout:
    """Dimensions in the opposite order, as in column-major memory."""
    order = list(range(len(shape)))[::-1]
    return StorageLayout(_ordered(shape, order), PAD, prod(shape) + 2 * PAD)


def _channels_last(shape: tuple[int, ...]) -> StorageLayout:
    if len(shape) != 4:
        return _transposed(shape)
    return StorageLayout(_ordered(shape, (0, 2, 3, 1)), 0, prod(shape) + PAD)


_PLACES: Final[dict[str, Callable[[tuple[int, ...]], StorageLayout]]] = {
    "contiguous": _contiguous,
    "transposed": _transposed,
    "sliced": _sliced,
    "stepped": _stepped,
    "expanded": _expanded,
    "middle": _middle,
    "reversed": _reversed,
    "channels-last": _channels_last,
}


_EXPLICIT: Final = "strides="


def explicit(strides: Sequence[int], offset: int, room: int) -> str:
    """The layout of these strides and offset in a storage of `room` elements, for `place`."""
    return f"{_EXPLICIT}{','.join(map(str, strides))} offset={offset} room={room}"


def place(layout: str, shape: tuple[int, ...]) -> StorageLayout:
    """Where a tensor of `shape` lies in `layout`; layouts that need more dimensions fall back."""
    if layout.startswith(_EXPLICIT):
        strides, offset, room = (part.partition("=")[2] for part in layout.split(" "))
        steps = tuple(int(s) for s in strides.split(",") if s)
        return StorageLayout(steps, int(offset), int(room) + PAD)
    return _PLACES[layout](shape)


def view(storage: Array, shape: tuple[int, ...], at: StorageLayout) -> Array:
    """The numpy view of a flat storage; empty views start at its beginning."""
    size = storage.itemsize
    if not prod(shape):
        return storage[:0].reshape(shape)
    strides = [s * size for s in at.strides]
    return np.ndarray(shape, storage.dtype, storage, at.offset * size, strides)


def sentinel_storage(numel: int, dtype: np.dtype[Any], number: int = 0) -> Array:
    """A flat array of sentinel bytes, valid values for bool. Each `number` has others, so that a
    copy from one tensor's surroundings to those of another changes them."""
    size, start = numel * dtype.itemsize, number % _STARTS
    pattern = _sentinels(dtype == np.bool_)
    if start + size <= _PERIOD:
        return pattern[start : start + size].copy().view(dtype)
    turns = (start + size) // _PERIOD
    return np.concatenate([pattern[start:], *[pattern] * turns])[:size].view(dtype)


@lru_cache(2)
def _sentinels(flags: bool) -> Array:
    """A period of sentinel bytes: no size of a tensor divides it, so nothing shorter repeats."""
    mixed = np.arange(_PERIOD, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(16)
    return (mixed % 2).astype(np.uint8) if flags else _SENTINELS[mixed % 10]


def number_of(array: Array) -> int:
    """A number for `sentinel_storage` that follows from a tensor's elements."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1)[:256].tobytes())


def strayed(
    before: Array, now: Array, at: StorageLayout, shape: tuple[int, ...], inside: bool
) -> int:
    """Elements of a flat storage that changed, bit for bit, and may not have: all of them, or those
    outside of the view where its `inside` may change."""
    if inside:
        before = before.copy()
        view(before, shape, at)[...] = view(now, shape, at)
    old, new = before.view(np.uint8), now.view(np.uint8)
    if old.tobytes() == new.tobytes():
        return 0
    return int((old != new).reshape(now.size, -1).any(-1).sum())
