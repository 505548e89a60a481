"""Owns reading one header or a folder of them; each is read alone, then they are joined."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from ..signature import Declarations
from .declaration import Markers, read_declarations
from .linker import Linker
from .preprocessor import predefined
from .raw import Macro, Unit
from .source import Source, decode, read_source
from .tables import Image, declarations

_SUFFIXES = (".h", ".hpp", ".hh", ".inc")
_LARGEST = 64 << 20


class HeaderFile(NamedTuple):
    """A header on disk: its name inside the folder it was found in, and its path."""

    name: str
    path: str


def find_headers(folders: Iterable[str | os.PathLike[str]]) -> list[HeaderFile]:
    """All headers under some folders, sorted within each; a name found twice counts once."""
    found: dict[str, HeaderFile] = {}
    for folder in folders:
        root = os.fspath(folder)
        if os.path.isfile(root):
            name = os.path.basename(root)
            found.setdefault(name, HeaderFile(name, root))
            continue
        for header in sorted(_walk(root, "")):
            found.setdefault(header.name, header)
    return list(found.values())


def _walk(root: str, below: str) -> Iterable[HeaderFile]:
    """Headers under a folder; links to folders are followed, but not in a circle."""
    waiting = [(root, below)]
    seen: set[str] = set()
    while waiting:
        folder, prefix = waiting.pop()
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                yield HeaderFile(prefix + entry.name, entry.path)
            elif entry.is_dir():
                waiting.append((entry.path, f"{prefix}{entry.name}/"))


def read_bytes(path: str) -> bytes | str:
    """A header's bytes, or the reason why they cannot be had."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return data if len(data) <= _LARGEST else f"larger than {_LARGEST >> 20} MiB"


def _read(unit: Unit, text: str, defined: Mapping[str, str]) -> Source:
    return read_source(text, unit, dict(defined))


def build(texts: Mapping[str, str | bytes], unread: Mapping[str, str] | None = None) -> Image:
    """The image of some headers given by name; `unread` are names with the reason."""
    defined = predefined()
    units: list[Unit] = []
    sources: list[Source] = []
    seen: set[bytes] = set()
    for name, content in texts.items():
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        digest = blake2b(data, digest_size=16).digest()
        unit = Unit(name)
        units.append(unit)
        if digest in seen:
            sources.append(Source())
            continue
        seen.add(digest)
        text = content if isinstance(content, str) else decode(content)
        sources.append(_read(unit, text, defined))
    for name, reason in (unread or {}).items():
        unit = Unit(name)
        unit.skip_at(0, name, reason)
        units.append(unit)
        sources.append(Source())
    macros = _all_macros(units)
    markers = Markers(macros)
    for unit, source in zip(units, sources, strict=True):
        read_declarations(source, unit, markers)
    return Linker(units, macros, markers).run()


def _all_macros(units: Sequence[Unit]) -> dict[str, Macro]:
    macros: dict[str, Macro] = {}
    for unit in units:
        for name, macro in unit.macros.items():
            macros.setdefault(name, macro)
    return macros


def parse_text(text: str | bytes, header: str = "header.h") -> Declarations:
    """The declarations of one header's text; what was not understood is in `skipped`."""
    return declarations(build({header: text}))


def read_tree(headers: Sequence[HeaderFile]) -> tuple[dict[str, bytes], dict[str, str]]:
    """The bytes of headers by name, and those that cannot be read with the reason."""
    texts: dict[str, bytes] = {}
    unread: dict[str, str] = {}
    for header in headers:
        data = read_bytes(header.path)
        if isinstance(data, bytes):
            texts[header.name] = data
        else:
            unread[header.name] = data
    return texts, unread


def parse_tree(folders: Iterable[str | os.PathLike[str]]) -> Declarations:
    """The declarations of all headers under some folders; nothing is cached."""
    return declarations(build(*read_tree(find_headers(folders))))


__all__ = ["HeaderFile", "Path", "build", "find_headers", "parse_text", "parse_tree", "read_tree"]
