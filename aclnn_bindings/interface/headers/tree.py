"""Owns the reading of a set of headers: each is read alone, then they are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from .declaration import read_declarations
from .includes import inherited
from .linker import Linker
from .markers import Markers
from .preprocessor import predefined
from .raw import Macro, Unit
from .source import HeaderSource, decode, read_source
from .tables import Image


def build(texts: Mapping[str, str | bytes], unread: Mapping[str, str] | None = None) -> Image:
    """The image of some headers given by name; `unread` are names with the reason."""
    units, sources = _read(texts)
    for name, reason in (unread or {}).items():
        unit = Unit(name)
        unit.skip_at(0, name, reason)
        units.append(unit)
        sources.append(HeaderSource())
    markers = Markers(_all_macros(units))
    for unit, source in zip(units, sources, strict=True):
        read_declarations(source, unit, markers)
    return Linker(units, markers).run()


def _read(texts: Mapping[str, str | bytes]) -> tuple[list[Unit], list[HeaderSource]]:
    """Each header's code; a copy of an earlier header has none."""
    defined = predefined()
    units = [Unit(name) for name in texts]
    sources: list[HeaderSource] = []
    seen: set[bytes] = set()
    for unit, content in zip(units, texts.values(), strict=True):
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        digest = blake2b(data, digest_size=16).digest()
        copied = digest in seen
        seen.add(digest)
        sources.append(HeaderSource() if copied else read_source(_text(content), unit, defined))
    for index, macros in inherited(units, defined).items():
        name = units[index].header
        units[index] = Unit(name)
        sources[index] = read_source(_text(texts[name]), units[index], {**defined, **macros})
    return units, sources


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else decode(content)


def _all_macros(units: Sequence[Unit]) -> dict[str, Macro]:
    macros: dict[str, Macro] = {}
    for unit in units:
        for name, macro in unit.macros.items():
            macros.setdefault(name, macro)
    return macros
