"""Owns the parts of a C declaration, and the one spelling that each type has here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from .raw import RawEnum, RawParam, RawStruct


@dataclass(slots=True)
class Specifiers:
    """What stands before the declarators of one declaration."""

    base: str = ""
    storage: set[str] = field(default_factory=set)
    attributes: list[str] = field(default_factory=list)
    name: str = ""
    tag: str = ""
    enum: RawEnum | None = None
    struct: RawStruct | None = None
    introduces: str = ""
    qualifiers: set[str] = field(default_factory=set)
    builtin: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Declarator:
    """A name with the type text around it; `params` is None unless it is a function."""

    name: str
    before: str = ""
    after: str = ""
    params: tuple[RawParam, ...] | None = None
    bits: str = ""
    value: str | None = None
    attributes: list[str] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)

    def type_of(self, base: str) -> str:
        """Canonical text of this declarator's type (of what it returns, for a function)."""
        return join_type(base, self.before + self.after)


def join_type(base: str, suffix: str) -> str:
    """`base` and an abstract declarator as one canonical text."""
    return f"{base} {suffix}" if suffix[:1] in ("*", "(", "&") else base + suffix


def type_list(params: Sequence[RawParam]) -> str:
    """The text between the parentheses of a function's type."""
    return ", ".join(p.type for p in params) or "void"


_LONGS: Final = {0: "int", 1: "long", 2: "long long"}


def builtin_type(words: list[str]) -> str:
    """The canonical spelling of a builtin type given in any order of its words."""
    if len(words) == 1:
        return {"_Bool": "bool", "unsigned": "unsigned int", "signed": "int"}.get(
            words[0], words[0]
        )
    left = [w for w in words if w not in ("signed", "int") or (w == "signed" and "char" in words)]
    longs = left.count("long")
    sign = "unsigned " if "unsigned" in left else ""
    for word in ("double", "float"):
        if word in left:
            return ("long " if longs else "") + word + (" _Complex" if "_Complex" in left else "")
    if "char" in left:
        return (sign or ("signed " if "signed" in left else "")) + "char"
    for word in ("short", "__int128"):
        if word in left:
            return sign + word
    return sign + _LONGS[min(longs, 2)]
