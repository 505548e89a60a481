"""Reads a 64-bit library the way the loader does, by its segments; needs no section table.

This is what remains readable of a file whose end is lost. Source: System V gABI, chapter 5
(program header, dynamic section), and the layout of the GNU hash table.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM: Final = struct.Struct("<IIQQQQQQ")
_DYNAMIC: Final = struct.Struct("<qQ")
_LOAD, _DYN = 1, 2
_NEEDED, _HASH, _STRTAB, _SYMTAB, _SONAME, _GNU_HASH = 1, 4, 5, 6, 14, 0x6FFFFEF5


@dataclass(frozen=True, slots=True)
class Segments:
    """What the loader would read: `end` is the last byte that it maps."""

    end: int
    soname: str
    needed: tuple[str, ...]
    symbols: bytes
    names: bytes


def read_segments(data: bytes) -> Segments | None:
    """The loader's view of `data`; None when its dynamic segment is lost or it is not 64-bit."""
    if data[4:6] != b"\x02\x01" or len(data) < _HEADER.size:
        return None
    header = _HEADER.unpack_from(data)
    programs = list(_programs(data, header[5], header[9], header[10]))
    loads = [p for p in programs if p[0] == _LOAD]
    dynamic = next((p for p in programs if p[0] == _DYN), None)
    end = max((p[2] + p[5] for p in loads), default=0)
    if dynamic is None or dynamic[2] + dynamic[5] > len(data):
        return Segments(end, "", (), b"", b"") if loads else None
    tags = list(_tags(data[dynamic[2] : dynamic[2] + dynamic[5]]))
    return _from_tags(data, dict(tags), [v for t, v in tags if t == _NEEDED], loads, end)


def _programs(data: bytes, start: int, size: int, count: int) -> Iterator[tuple[int, ...]]:
    for i in range(count):
        if start + i * size + _PROGRAM.size <= len(data):
            yield _PROGRAM.unpack_from(data, start + i * size)


def _tags(table: bytes) -> Iterator[tuple[int, int]]:
    for tag, value in _DYNAMIC.iter_unpack(table[: len(table) // 16 * 16]):
        if tag == 0:
            return
        yield tag, value


def _from_tags(
    data: bytes, tags: dict[int, int], needed: list[int], loads: list[tuple[int, ...]], end: int
) -> Segments:
    places = {tag: _offset(address, loads) for tag, address in tags.items()}
    start, text = places.get(_SYMTAB), places.get(_STRTAB)
    if start is None or text is None:
        return Segments(end, "", (), b"", b"")
    count = _count(data, places.get(_GNU_HASH), places.get(_HASH))
    soname = _name(data, text, tags[_SONAME]) if _SONAME in tags else ""
    names = tuple(_name(data, text, at) for at in needed)
    return Segments(end, soname, names, data[start : start + 24 * count], data[text:])


def _offset(address: int, loads: list[tuple[int, ...]]) -> int | None:
    """Where a virtual address lies in the file."""
    for _, _, offset, start, _, size, _, _ in loads:
        if start <= address < start + size:
            return offset + address - start
    return None


def _count(data: bytes, gnu: int | None, sysv: int | None) -> int:
    """The number of symbols, which only the hash tables tell."""
    if sysv is not None:
        return int(struct.unpack_from("<II", data, sysv)[1])
    if gnu is None:
        return 0
    buckets, first, bloom, _ = struct.unpack_from("<IIII", data, gnu)
    base = gnu + 16 + 8 * bloom
    last = max(struct.unpack_from(f"<{buckets}I", data, base), default=0)
    if last < first:
        return int(first)
    chain = base + 4 * buckets
    while not struct.unpack_from("<I", data, chain + 4 * (last - first))[0] & 1:
        last += 1
    return int(last) + 1


def _name(data: bytes, text: int, at: int) -> str:
    end = data.find(b"\0", text + at)
    return data[text + at : end].decode("utf-8", "replace")
