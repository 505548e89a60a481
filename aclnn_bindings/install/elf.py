"""Reads what a shared library's file says: exports, needs, machine; refuses to load or run it.

A library that the loader rejects (truncated, other architecture, missing dependency) is still read
as far as its tables go. Sources: System V gABI chapters 4 and 5, GNU symbol versioning.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

from .segments import read_segments

MACHINES: Final = {
    "EM_X86_64": "x86_64",
    "EM_AARCH64": "aarch64",
    "EM_ARM": "arm",
    "EM_386": "i386",
}
_SYMBOL: Final = {64: "IBBHQQ", 32: "IIIBBH"}
_GLOBAL_OR_WEAK: Final = (1, 2)
_CALLABLE_OR_DATA: Final = (0, 1, 2, 10)


@dataclass(frozen=True, slots=True)
class Elf:
    """One library file: `exports` are its defined dynamic symbols; `problem` what is wrong with
    the file, and `fatal` whether that keeps it from being loaded."""

    path: Path
    size: int = 0
    machine: str = ""
    soname: str = ""
    exports: frozenset[str] = frozenset()
    needed: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    versions: tuple[str, ...] = field(default=())
    problem: str = ""
    fatal: bool = False


def read(path: Path) -> Elf:
    """The tables of the library at `path`; never raises for what the file contains."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
            return Elf(path, problem="is no regular file: a pipe, socket or device", fatal=True)
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        missing = _unreadable(path, error)
        return Elf(path, problem=missing, fatal=True)
    except ValueError:
        return Elf(path, problem="is an empty file", fatal=True)
    with data:
        return _read(path, data)


def undefined(path: Path) -> frozenset[str]:
    """Dynamic symbols that the library at `path` needs from others; none where it is damaged."""
    try:
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            symbols = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
            return frozenset(
                s.name for s in symbols
                if s["st_shndx"] == "SHN_UNDEF" and s["st_info"]["bind"] == "STB_GLOBAL"
            )  # fmt: skip
    except (ELFError, OSError, ValueError):
        return frozenset()


def _unreadable(path: Path, error: OSError) -> str:
    if path.is_symlink() and isinstance(error, FileNotFoundError):
        return f"is a broken link to {os.readlink(path)}"
    return f"cannot be read: {error.strerror}"


def _read(path: Path, data: mmap.mmap) -> Elf:
    if data[:4] != b"\x7fELF":
        return Elf(path, size=len(data), problem=_not_elf(data), fatal=True)
    try:
        return _tables(path, data)
    except (ELFError, ValueError, KeyError, struct.error, IndexError, OverflowError) as error:
        return _damaged(path, data, str(error) or type(error).__name__)
    except Exception as error:  # construct raises its own kinds for damaged tables
        return _damaged(path, data, type(error).__name__)


def _not_elf(data: mmap.mmap) -> str:
    start = data[:24].decode("ascii", "replace").splitlines()[0:1]
    if data[:23] == b"version https://git-lfs":
        return "is a git-lfs pointer, not the library: run `git lfs pull`"
    if b"GROUP" in data[:200] or data[:5] == b"INPUT":
        return "is a linker script, not a library"
    return f"is not an ELF file (it starts with {start[0]!r})" if start else "is not an ELF file"


def _tables(path: Path, data: mmap.mmap) -> Elf:
    if problem := _unfit(data):
        return Elf(path, len(data), _machine(data), problem=problem, fatal=True)
    stream: Any = data  # a map reads, seeks and tells like a file
    end = _section_end(data)
    if end > len(data):
        return _truncated(path, data, end)
    if not end and _sections(data) == 0:
        return _without_sections(path, data)
    elf = ELFFile(stream)
    machine = MACHINES.get(str(elf["e_machine"]), str(elf["e_machine"]))
    facts: dict[str, Any] = {"needed": (), "runpath": (), "soname": "", "versions": ()}
    exports: frozenset[str] = frozenset()
    for section in elf.iter_sections():
        kind = section["sh_type"]
        if kind == "SHT_DYNSYM":
            names = elf.get_section(section["sh_link"])
            row = struct.Struct(("<" if elf.little_endian else ">") + _SYMBOL[elf.elfclass])
            exports = _exports(_bytes(data, section), _bytes(data, names), row, elf.elfclass == 64)
        elif isinstance(section, DynamicSection):
            facts.update(_dynamic(section))
        elif isinstance(section, GNUVerNeedSection):
            facts["versions"] = _versions(section, min(len(data) // _VERSION_BYTES, _MOST_VERSIONS))
    return Elf(path, len(data), machine, exports=exports, **facts)


_KINDS: Final = {1: "an object file, which is not linked yet", 2: "a program", 4: "a core dump"}
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")  # of 64 bits: e_ident, e_type, …, e_shstrndx


def _unfit(data: mmap.mmap) -> str:
    """What in the header of a 64-bit little-endian file no loader takes for a library's."""
    if len(data) < _HEADER.size or (data[4], data[5]) != (2, 1):
        return ""
    header = _HEADER.unpack_from(data)
    system, kind, start, size, count = header[0][7], header[1], header[5], header[9], header[10]
    if system not in (0, 3):  # System V, and GNU extensions to it
        return f"is built for another operating system (ELF's number {system})"
    if kind != 3:
        return f"is {_KINDS.get(kind, 'of an unknown kind')}, not a shared library"
    if not count:
        return "is damaged: it has no program headers"
    if start + size * count > len(data):
        return f"is damaged: its program headers end at byte {start + size * count} of {len(data)}"
    return ""


def _section_end(data: mmap.mmap) -> int:
    """Where the section table ends, which is the end of the file when nothing is lost; else 0."""
    if data[4] not in (1, 2) or data[5] != 1 or not _machine(data):
        return 0
    layout, at = (struct.Struct("<Q"), 40) if data[4] == 2 else (struct.Struct("<I"), 32)
    start = layout.unpack_from(data, at)[0]
    size, count = struct.unpack_from("<HH", data, 58 if data[4] == 2 else 46)
    return int(start + size * count)


def _sections(data: mmap.mmap) -> int | None:
    """How many sections a 64-bit little-endian file says that it has; None for others."""
    plain = data[4] == 2 and data[5] == 1 and len(data) >= 64
    return int(struct.unpack_from("<H", data, 60)[0]) if plain else None


def _without_sections(path: Path, data: mmap.mmap) -> Elf:
    """A file stripped of its section table, which the loader does not need."""
    segments = read_segments(data[:])
    if segments is None or segments.end > len(data):
        return _damaged(path, data, "neither sections nor segments")
    exports = _exports(segments.symbols, segments.names, struct.Struct("<" + _SYMBOL[64]), True)
    return Elf(path, len(data), _machine(data), segments.soname, exports, segments.needed)


def _truncated(path: Path, data: mmap.mmap, end: int) -> Elf:
    """What the loader would still find; the file is fatal to it when a loaded part is lost."""
    reason = f"is truncated: its section table ends at byte {end} of {len(data)}"
    segments = read_segments(data[:])
    if segments is None or segments.end > len(data) or not segments.symbols:
        return Elf(path, len(data), _machine(data), problem=reason, fatal=True)
    row = struct.Struct("<" + _SYMBOL[64])
    exports = _exports(segments.symbols, segments.names, row, True)
    message = f"{reason}; what the loader reads is still there"
    return Elf(
        path, len(data), _machine(data), segments.soname, exports, segments.needed, problem=message
    )


def _bytes(data: mmap.mmap, section: Any) -> bytes:
    return data[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]


def _exports(table: bytes, text: bytes, row: struct.Struct, wide: bool) -> frozenset[str]:
    """Defined global and weak names; read with struct, for tables of 100,000 symbols."""
    names = set()
    for entry in row.iter_unpack(table[: len(table) // row.size * row.size]):
        name, info, other, index = (entry[0], *entry[1:4]) if wide else (entry[0], *entry[3:6])
        bind, kind, hidden = info >> 4, info & 15, other & 3 in (1, 2)
        if not index or hidden or bind not in _GLOBAL_OR_WEAK or kind not in _CALLABLE_OR_DATA:
            continue
        names.add(text[name : text.index(b"\0", name)].decode("utf-8", "replace"))
    return frozenset(names)


def _dynamic(section: Any) -> dict[str, Any]:
    needed, runpath, soname = [], [], ""
    for tag in section.iter_tags():
        kind = tag.entry.d_tag
        if kind == "DT_NEEDED":
            needed.append(tag.needed)
        elif kind == "DT_SONAME":
            soname = tag.soname
        elif kind in ("DT_RUNPATH", "DT_RPATH"):
            text = tag.runpath if kind == "DT_RUNPATH" else tag.rpath
            runpath += [part for part in text.split(":") if part]
    return {"needed": tuple(needed), "runpath": tuple(runpath), "soname": soname}


_VERSION_BYTES: Final = 16  # of Elf64_Verneed and Elf64_Vernaux each (LSB core, 10.7)
_MOST_VERSIONS: Final = 1 << 14


def _versions(section: Any, most: int) -> tuple[str, ...]:
    """Symbol versions wanted of other libraries, such as `GLIBC_2.34`; ValueError for a chain of
    more than `most`, which leads back to itself."""
    names, left = set[str](), most
    if section.num_versions() > most:
        raise ValueError(f"{section.num_versions():,} versions")
    for _, auxes in section.iter_versions():
        for aux in auxes:
            names.add(aux.name)
            left -= 1
            if left < 0:
                raise ValueError(f"more than {most:,} versions")
    return tuple(sorted(names))


def _damaged(path: Path, data: mmap.mmap, reason: str) -> Elf:
    problem = f"is damaged: its tables do not parse ({reason})"
    return Elf(path, len(data), _machine(data), problem=problem, fatal=True)


def _machine(data: mmap.mmap) -> str:
    code = int.from_bytes(data[18:20], "little") if len(data) >= 20 else 0
    return {62: "x86_64", 183: "aarch64", 40: "arm", 3: "i386"}.get(code, "")
