"""Owns what one header says, before names are looked up in other headers: plain tuples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..signature import Skipped


class RawParam(NamedTuple):
    """A parameter as written: canonical C type text and name (empty when unnamed)."""

    type: str
    name: str


class RawFunction(NamedTuple):
    """A function prototype, or a definition when `exported` is False."""

    name: str
    returns: str
    params: tuple[RawParam, ...]
    line: int
    doc: str
    exported: bool
    deprecated: bool


class RawEnum(NamedTuple):
    """An enum: its tag and typedef names, and members with unevaluated expressions.

    `underlying` is the type that C++ or C23 states behind a colon.
    """

    names: tuple[str, ...]
    members: tuple[tuple[str, str], ...]
    line: int
    underlying: str = ""


class RawField(NamedTuple):
    """A struct's member; `inner` is set when its type is defined in place."""

    name: str
    type: str
    bits: str
    align: str
    inner: RawStruct | None


class RawStruct(NamedTuple):
    """A struct or union with its members; `pack` is the maximal alignment, 0 if none.

    `alias` are attributes of a typedef's name: they align that name and leave the size.
    """

    names: tuple[str, ...]
    union: bool
    fields: tuple[RawField, ...]
    line: int
    pack: int
    align: str
    alias: str = ""


class RawTypedef(NamedTuple):
    """A name for a type."""

    name: str
    type: str
    line: int


class RawConstant(NamedTuple):
    """A constant with its unevaluated expression."""

    name: str
    expression: str
    line: int


class Macro(NamedTuple):
    """A macro: `params` is None for one without a parameter list."""

    params: tuple[str, ...] | None
    body: str
    line: int


@dataclass(slots=True)
class Unit:
    """All that one header says; `chunks` counts its top-level declarations, `spans` has them."""

    header: str
    functions: list[RawFunction] = field(default_factory=list)
    enums: list[RawEnum] = field(default_factory=list)
    structs: list[RawStruct] = field(default_factory=list)
    typedefs: list[RawTypedef] = field(default_factory=list)
    constants: list[RawConstant] = field(default_factory=list)
    opaque: list[tuple[str, int]] = field(default_factory=list)
    macros: dict[str, Macro] = field(default_factory=dict)
    includes: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    guard: str = ""
    skipped: list[Skipped] = field(default_factory=list)
    linkage: int = 0
    chunks: int = 0

    def skip_at(self, line: int, text: str, reason: str) -> None:
        """Notes that the declaration at `line` was not taken, and why."""
        snippet = " ".join(text.split())
        self.skipped.append(Skipped(self.header, line, snippet[:120], reason))

    def declared(self) -> int:
        """How many declarations were taken, of all sorts."""
        return (
            len(self.functions) + len(self.enums) + len(self.structs)
            + len(self.typedefs) + len(self.constants) + len(self.opaque)
        )  # fmt: skip
