"""Writes a shim as an ELF shared library, without a compiler; refuses to know what its symbols do.

The library exports the given names, each with a trampoline (`trampolines.py`), needs the core, the
other shims and the real library by absolute path, and describes itself to the core. Layout: System
V gABI, chapters 4 and 5; the GNU hash table as glibc's and musl's loaders read it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .trampolines import MACHINES as MACHINES, ImageAddresses, Machine, size_of, stub_of

ENTRY: Final = "mindtorch_layers_entry"
MAGIC: Final = 0x314D4948534C434D  # "MCLSHIM1"
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELA: Final = struct.Struct("<QQq")
_DESCRIPTOR_WORDS: Final = 10
_NULL, _NEEDED, _STRTAB, _SYMTAB, _RELA_TAG, _RELASZ, _RELAENT, _STRSZ, _SYMENT, _SONAME = (
    0, 1, 5, 6, 7, 8, 9, 10, 11, 14,
)  # fmt: skip
_GNU_HASH: Final = 0x6FFFFEF5


@dataclass(frozen=True, slots=True)
class Shim:
    """What a shim stands for: its soname, the real library, what to load first, its symbols.

    `numbers` are the symbols' rows in the table of functions, in the order of `names`.
    """

    soname: str
    real: str
    needed: tuple[str, ...]
    names: tuple[str, ...]
    numbers: tuple[int, ...]


class _Strings:
    """A string table; equal texts have one place."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self.places: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        if text not in self.places:
            self.places[text] = len(self.data)
            self.data += os.fsencode(text) + b"\0"
        return self.places[text]


def _gnu_hash(name: str) -> int:
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def _hash_table(hashes: Sequence[int], buckets: int, first: int) -> bytes:
    """DT_GNU_HASH for symbols sorted by bucket; the bloom filter has one word per 8 symbols."""
    words = 1
    while words * 8 < len(hashes):
        words *= 2
    bloom, heads, chains = [0] * words, [0] * buckets, []
    for i, value in enumerate(hashes):
        bloom[value // 64 % words] |= 1 << value % 64 | 1 << (value >> 6) % 64
        bucket = value % buckets
        heads[bucket] = heads[bucket] or first + i
        ends = i + 1 == len(hashes) or hashes[i + 1] % buckets != bucket
        chains.append(value & ~1 | ends)
    head = struct.pack("<4I", buckets, first, words, 6)
    return head + struct.pack(f"<{words}Q{buckets + len(chains)}I", *bloom, *heads, *chains)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def write(shim: Shim, machine: str) -> bytes:
    """The shim's file for `machine` (`x86_64` or `aarch64`); KeyError for another."""
    return _Image(shim, MACHINES[machine]).file()


class _Image:
    """One image while it is laid out: sizes first, then places, then bytes."""

    def __init__(self, shim: Shim, machine: Machine) -> None:
        self.machine = machine
        self.count = len(shim.names)
        self.buckets = max(1, self.count // 2)
        pairs = zip(shim.names, shim.numbers, strict=True)
        keyed = sorted(((_gnu_hash(n), n, i) for n, i in pairs), key=lambda k: k[0] % self.buckets)
        self.hashes = [key[0] for key in keyed]
        self.numbers = [key[2] for key in keyed]
        self.strings = _Strings()
        self.strings.add(ENTRY)
        self.names = [self.strings.add(key[1]) for key in keyed]
        self.soname = self.strings.add(shim.soname)
        self.needed = [self.strings.add(name) for name in shim.needed]
        self.real = self.strings.add(shim.real)
        self._lay_out()

    def _lay_out(self) -> None:
        self.hash_bytes = _hash_table(self.hashes, self.buckets, 2)
        self.hash = 64 + 56 * 5
        self.symbols = _up(self.hash + len(self.hash_bytes), 8)
        self.text_of_names = self.symbols + _SYMBOL.size * (self.count + 2)
        self.relocations = _up(self.text_of_names + len(self.strings.data), 8)
        self.relocation_count = self.count + 7
        self.head_end = self.relocations + _RELA.size * self.relocation_count
        text = _up(self.head_end, self.machine.page)
        self.text_end = text + size_of(self.count)
        self.data = _up(self.text_end, self.machine.page)
        self.dynamic_size = 16 * (len(self.needed) + 10)
        descriptor = self.data + self.dynamic_size
        self.number_table = descriptor + 8 * _DESCRIPTOR_WORDS
        self.name_table = self.number_table + 4 * self.count
        slots = _up(self.name_table + 4 * self.count, 8)
        self.data_end = slots + 8 * self.count
        self.places = ImageAddresses(text, slots, descriptor)

    def file(self) -> bytes:
        out = bytearray(self.data_end)
        self._put(out, 64, self._segments())
        self._put(out, self.hash, self.hash_bytes)
        self._put(out, self.symbols, self._symbol_table())
        self._put(out, self.text_of_names, bytes(self.strings.data))
        self._put(out, self.relocations, self._relocation_table())
        self._put(out, self.places.text, self.machine.code(self.count, self.places))
        self._put(out, self.data, self._dynamic())
        self._put(out, self.places.descriptor, self._descriptor())
        self._put(out, self.number_table, struct.pack(f"<{self.count}I", *self.numbers))
        self._put(out, self.name_table, struct.pack(f"<{self.count}I", *self.names))
        sections = self._sections(_up(len(out), 8))
        self._put(out, 0, self._header(_up(len(out), 8)))
        return bytes(out).ljust(_up(len(out), 8), b"\0") + sections

    @staticmethod
    def _put(out: bytearray, at: int, data: bytes) -> None:
        out[at : at + len(data)] = data

    def _header(self, sections: int) -> bytes:
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        rest = (3, self.machine.number, 1, 0, 64, sections, 0, 64, 56, 5, 64, 7, 6)
        return ident + struct.pack("<HHIQQQIHHHHHH", *rest)

    def _segments(self) -> bytes:
        page, text, data = self.machine.page, self.places.text, self.data
        rows = (
            (1, 4, 0, self.head_end, page),
            (1, 5, text, self.text_end - text, page),
            (1, 6, data, self.data_end - data, page),
            (2, 6, data, self.dynamic_size, 8),
            (0x6474E551, 6, 0, 0, 16),
        )
        return b"".join(struct.pack("<IIQQQQQQ", kind, flags, at, at, at, size, size, align)
                        for kind, flags, at, size, align in rows)  # fmt: skip

    def _symbol_table(self) -> bytes:
        rows = [_SYMBOL.pack(0, 0, 0, 0, 0, 0), _SYMBOL.pack(1, 0x10, 0, 0, 0, 0)]
        text = self.places.text
        rows += [_SYMBOL.pack(n, 0x12, 0, 4, text + 16 * i, 16) for i, n in enumerate(self.names)]
        return b"".join(rows)

    def _relocation_table(self) -> bytes:
        """The entry's address from the core; everything else is relative to the load address."""
        place, names = self.places, self.text_of_names
        locations = (names + self.real, names + self.soname, place.slots, self.number_table,
               self.name_table, names)  # fmt: skip
        relative = self.machine.relative
        rows = [(place.descriptor, 1 << 32 | self.machine.absolute, 0)]
        rows += [(place.descriptor + 8 * i, relative, at) for i, at in enumerate(locations, 3)]
        rows += [(place.slots + 8 * i, relative, stub_of(i, self.count, place))
                 for i in range(self.count)]  # fmt: skip
        return b"".join(_RELA.pack(*row) for row in rows)

    def _dynamic(self) -> bytes:
        rows = [(_NEEDED, at) for at in self.needed]
        rows += [
            (_SONAME, self.soname), (_GNU_HASH, self.hash), (_STRTAB, self.text_of_names),
            (_STRSZ, len(self.strings.data)), (_SYMTAB, self.symbols), (_SYMENT, _SYMBOL.size),
            (_RELA_TAG, self.relocations), (_RELASZ, _RELA.size * self.relocation_count),
            (_RELAENT, _RELA.size), (_NULL, 0),
        ]  # fmt: skip
        return b"".join(struct.pack("<QQ", *row) for row in rows)

    def _descriptor(self) -> bytes:
        """What `native/shim.h` reads; addresses come by relocation."""
        return struct.pack("<3Q", 0, MAGIC, self.count)

    def _sections(self, at: int) -> bytes:
        """Section headers, for tools that read a file instead of loading it."""
        names = b"\0.dynsym\0.dynstr\0.gnu.hash\0.text\0.dynamic\0.shstrtab\0"
        rows = (
            (b".dynsym", 11, 2, self.symbols, _SYMBOL.size * (self.count + 2), 2, 1, 8, 24),
            (b".dynstr", 3, 2, self.text_of_names, len(self.strings.data), 0, 0, 1, 0),
            (b".gnu.hash", 0x6FFFFFF6, 2, self.hash, len(self.hash_bytes), 1, 0, 8, 0),
            (b".text", 1, 6, self.places.text, size_of(self.count), 0, 0, 16, 0),
            (b".dynamic", 6, 3, self.data, self.dynamic_size, 2, 0, 8, 16),
            (b".shstrtab", 3, 0, at + 64 * 7, len(names), 0, 0, 1, 0),
        )
        table = bytes(64)
        for name, kind, flags, place, size, link, info, align, entry in rows:
            loaded = 0 if name == b".shstrtab" else place
            start = names.index(b"\0" + name + b"\0") + 1
            table += struct.pack("<IIQQQQIIQQ", start, kind, flags, loaded, place, size, link,
                                 info, align, entry)  # fmt: skip
        return table + names
