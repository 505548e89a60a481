"""Splits chunks of 64-byte rows into calls and what they refer to; knows no operator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

CALL, WORDS, GEOMETRY, DETAIL, DATA, STACK, UNFINISHED, DEVICE_TIME = range(1, 9)
PHASE_ONE, PHASE_TWO, MAKES, MICROSECONDS, MORE_WORDS, INJECTED, HAS_DATA = 1, 2, 4, 8, 16, 32, 64

CALL_ROW: Final = np.dtype(
    [("type", "u1"), ("words", "u1"), ("flags", "<u2"), ("function", "<u4"), ("number", "<u8"),
     ("start", "<u8"), ("duration", "<u4"), ("status", "<i4"), ("detail", "<u4"),
     ("stack", "<u4"), ("word", "<u8", 3)]
)  # fmt: skip
ROW_SIZE: Final = CALL_ROW.itemsize
_PAYLOAD_HEAD: Final = 16

Rows = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Payload:
    """A row of variable length: a geometry, a detail, data, a stack."""

    type: int
    id: int
    extra: int
    data: bytes


def split(data: bytes) -> tuple[Rows, dict[int, tuple[int, ...]], list[Payload]]:
    """The calls of a chunk, more words by position among these, and everything else."""
    rows = np.frombuffer(data[: len(data) // ROW_SIZE * ROW_SIZE], CALL_ROW)
    others = np.flatnonzero((rows["type"] != CALL) & (rows["type"] != UNFINISHED))
    keep = np.ones(len(rows), bool)
    payloads: list[Payload] = []
    words: dict[int, tuple[int, ...]] = {}
    removed = 0  # rows before this one that are no calls
    for at, size, payload in _walk(data, rows, others):
        if payload is None:
            more = np.frombuffer(data, "<u8", 7, at * ROW_SIZE + 8)
            words[at - removed - 1] = tuple(int(w) for w in more)
        else:
            payloads.append(payload)
        keep[at : at + size] = False
        removed += size
    return rows[keep], words, payloads


def choose(data: bytes, numbers: Collection[int], predicate: Callable[[Payload], bool]) -> bytes:
    """The rows of the calls of these numbers, and those payloads that are wanted, in order."""
    rows = np.frombuffer(data[: len(data) // ROW_SIZE * ROW_SIZE], CALL_ROW)
    others = np.flatnonzero((rows["type"] != CALL) & (rows["type"] != UNFINISHED))
    keep = (rows["type"] == CALL) & np.isin(rows["number"], list(numbers))
    for at, size, payload in _walk(data, rows, others):
        keep[at : at + size] = keep[at - 1] if payload is None else predicate(payload)
    return rows[keep].tobytes()


def _walk(
    data: bytes, rows: Rows, others: NDArray[Any]
) -> Iterator[tuple[int, int, Payload | None]]:
    """Rows that are no calls: where, how many rows, and what; bytes inside a payload are none."""
    place = 0
    while place < len(others):
        at = int(others[place])
        kind = int(rows["type"][at])
        if kind == WORDS:
            place += 1
            yield at, 1, None
            continue
        start = at * ROW_SIZE
        number, length, extra = np.frombuffer(data, "<u4", 3, start + 4).tolist()
        size = -(-(_PAYLOAD_HEAD + length) // ROW_SIZE)
        # Data fill most rows of a large recording: those of one piece are passed at once.
        place = place + 1 if size == 1 else int(np.searchsorted(others, at + size))
        body = data[start + _PAYLOAD_HEAD : start + _PAYLOAD_HEAD + length]
        yield at, size, Payload(kind, number, extra, body)
