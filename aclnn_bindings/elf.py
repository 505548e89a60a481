"""Reads what a shared library's file says: exports, needs, machine; refuses to load or run it.

A library that the loader rejects (truncated, other architecture, missing dependency) is still read
as far as its tables go. Sources: System V gABI chapters 4 and 5, GNU symbol versioning.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

MACHINES: Final = {
    "EM_X86_64": "x86_64",
    "EM_AARCH64": "aarch64",
    "EM_ARM": "arm",
    "EM_386": "i386",
}
_GLOBAL_OR_WEAK: Final = (1, 2)
_CALLABLE_OR_DATA: Final = (0, 1, 2, 10)


@dataclass(frozen=True, slots=True)
class Elf:
    """One library file: `exports` are its defined dynamic symbols; `problem` why it is unusable."""

    path: Path
    size: int = 0
    machine: str = ""
    soname: str = ""
    exports: frozenset[str] = frozenset()
    needed: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    versions: tuple[str, ...] = field(default=())
    problem: str = ""


def read(path: Path) -> Elf:
    """The tables of the library at `path`; never raises for what the file contains."""
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        missing = "is a broken link" if path.is_symlink() else f"cannot be read: {error.strerror}"
        return Elf(path, problem=missing)
    except ValueError:
        return Elf(path, problem="is an empty file")
    with data:
        return _read(path, data)


def _read(path: Path, data: mmap.mmap) -> Elf:
    if data[:4] != b"\x7fELF":
        return Elf(path, size=len(data), problem=_not_elf(data))
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
    stream: Any = data  # a map reads, seeks and tells like a file
    elf = ELFFile(stream)
    machine = MACHINES.get(str(elf["e_machine"]), str(elf["e_machine"]))
    end = elf["e_shoff"] + elf["e_shnum"] * elf["e_shentsize"]
    if end > len(data):
        reason = f"its section table ends at byte {end} of {len(data)}"
        return Elf(path, len(data), machine, problem=f"is truncated: {reason}")
    facts: dict[str, Any] = {"needed": (), "runpath": (), "soname": "", "versions": ()}
    exports: frozenset[str] = frozenset()
    for section in elf.iter_sections():
        kind = section["sh_type"]
        if kind == "SHT_DYNSYM":
            names = elf.get_section(section["sh_link"])
            exports = _exports(elf, section, names, data)
        elif isinstance(section, DynamicSection):
            facts.update(_dynamic(section))
        elif isinstance(section, GNUVerNeedSection):
            facts["versions"] = _versions(section)
    return Elf(path, len(data), machine, exports=exports, **facts)


def _exports(elf: Any, section: Any, names: Any, data: mmap.mmap) -> frozenset[str]:
    """Defined global and weak names; read with struct, for tables of 100,000 symbols."""
    order = "<" if elf.little_endian else ">"
    wide = elf.elfclass == 64
    row = struct.Struct(order + ("IBBHQQ" if wide else "IIIBBH"))
    start = section["sh_offset"]
    table = data[start : start + section["sh_size"] // row.size * row.size]
    base = names["sh_offset"]
    text = data[base : base + names["sh_size"]]
    found = set()
    for entry in row.iter_unpack(table):
        name, info, other, index = (entry[0], *entry[1:4]) if wide else (entry[0], *entry[3:6])
        hidden = other & 3 in (1, 2)
        bind, kind = info >> 4, info & 15
        if not index or hidden or bind not in _GLOBAL_OR_WEAK or kind not in _CALLABLE_OR_DATA:
            continue
        found.add(text[name : text.index(b"\0", name)].decode("utf-8", "replace"))
    return frozenset(found)


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


def _versions(section: Any) -> tuple[str, ...]:
    """Symbol versions wanted of other libraries, such as `GLIBC_2.34`."""
    return tuple(sorted({aux.name for _, auxes in section.iter_versions() for aux in auxes}))


def _damaged(path: Path, data: mmap.mmap, reason: str) -> Elf:
    code = int.from_bytes(data[18:20], "little") if len(data) >= 20 else 0
    machine = {62: "x86_64", 183: "aarch64", 40: "arm", 3: "i386"}.get(code, "")
    return Elf(path, len(data), machine, problem=f"is damaged: its tables do not parse ({reason})")
