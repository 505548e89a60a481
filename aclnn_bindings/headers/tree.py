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
from .source import Source, decode, read_source
from .tables import Image


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
        sources.append(read_source(_text(content), unit, defined))
    for name, reason in (unread or {}).items():
        unit = Unit(name)
        unit.skip_at(0, name, reason)
        units.append(unit)
        sources.append(Source())
    for index, macros in inherited(units, defined).items():
        name = units[index].header
        text = _text(texts[name])
        units[index] = Unit(name)
        sources[index] = read_source(text, units[index], {**defined, **macros})
    macros = _all_macros(units)
    markers = Markers(macros)
    for unit, source in zip(units, sources, strict=True):
        read_declarations(source, unit, markers)
    return Linker(units, macros, markers).run()


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else decode(content)


def _all_macros(units: Sequence[Unit]) -> dict[str, Macro]:
    macros: dict[str, Macro] = {}
    for unit in units:
        for name, macro in unit.macros.items():
            macros.setdefault(name, macro)
    return macros
