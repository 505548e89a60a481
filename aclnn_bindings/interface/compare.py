"""Compares two sets of declarations and classes each change; refuses to judge behaviour.

`breaks ABI`: a caller compiled against one side corrupts memory or misreads values on the other.
`source only`: the same bytes are passed, only C text differs (names, const, an enum's name).
`documents`: the interface is the same, the operator's document lists other dtypes or products.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from .signature import Declarations, Signature, Struct

Effect = Literal["breaks ABI", "source only", "documents"]
_CONST: Final = re.compile(r"\bconst\b")
_TAG: Final = re.compile(r"\b(struct|union|enum)\b")
_SPACES: Final = re.compile(r"\s*([*&()\[\],])\s*|\s+")
# Version numbers and end marks move with every release and are passed to no function.
_MOVING: Final = re.compile(r"(_VERSION(_STR|_NUM)?|_MAX|_RESERVED|_END|_BUTT)$")
# By-value and pointed-to integers of one width are passed alike; names of one width are one class.
_WIDTHS: Final[Mapping[str, str]] = {
    "bool": "i8", "_Bool": "i8", "char": "i8", "signed char": "i8", "unsigned char": "i8",
    "int8_t": "i8", "uint8_t": "i8", "int16_t": "i16", "uint16_t": "i16", "short": "i16",
    "unsigned short": "i16", "int": "i32", "unsigned int": "i32", "unsigned": "i32",
    "int32_t": "i32", "uint32_t": "i32", "long": "i64", "unsigned long": "i64",
    "long long": "i64", "unsigned long long": "i64", "int64_t": "i64", "uint64_t": "i64",
    "size_t": "i64", "uintptr_t": "i64", "intptr_t": "i64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """One name that both sides declare differently; `what` is its kind of declaration."""

    name: str
    what: str
    effect: Effect
    detail: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What `b` adds to, removes from and changes in `a`; names are functions unless `what` says."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[Change, ...]
    added_ops: tuple[str, ...]
    removed_ops: tuple[str, ...]

    @property
    def breaking(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changed if change.effect == "breaks ABI")


def diff(a: Declarations, b: Declarations) -> Difference:
    """Functions, enums, constants and structs of `a` against those of `b`."""
    return Difference(
        added=tuple(sorted(b.functions.keys() - a.functions.keys())),
        removed=tuple(sorted(a.functions.keys() - b.functions.keys())),
        changed=tuple(_changes(a, b)),
        added_ops=tuple(sorted(set(b.ops) - set(a.ops))),
        removed_ops=tuple(sorted(set(a.ops) - set(b.ops))),
    )


def _changes(a: Declarations, b: Declarations) -> Iterator[Change]:
    types = Types(a, b)
    for name in sorted(a.functions.keys() & b.functions.keys()):
        if change := types.function(a.functions[name], b.functions[name]):
            yield change
    for name in sorted(a.enums.keys() & b.enums.keys()):
        yield from _members(f"{name}::", "enum", a.enums[name], b.enums[name])
    yield from _members("", "constant", a.constants, b.constants)
    for name in sorted(a.structs.keys() & b.structs.keys()):
        if difference := _struct(a.structs[name], b.structs[name]):
            yield difference


def _members(
    prefix: str, what: str, a: Mapping[str, int | float | str], b: Mapping[str, int | float | str]
) -> Iterator[Change]:
    for name in sorted(a.keys() & b.keys()):
        if a[name] != b[name]:
            effect: Effect = "source only" if _MOVING.search(name) else "breaks ABI"
            yield Change(prefix + name, what, effect, f"{a[name]} -> {b[name]}")
    if what == "enum":
        for name in sorted(a.keys() - b.keys()):
            yield Change(prefix + name, what, "source only", f"removed (was {a[name]})")


def _struct(a: Struct, b: Struct) -> Change | None:
    if a.size != b.size:
        return Change(a.name, "struct", "breaks ABI", f"{a.size} -> {b.size} bytes")
    before = {field.name: field.offset for field in a.fields}
    after = {field.name: field.offset for field in b.fields}
    moved = [n for n in before if n in after and before[n] != after[n]]
    if moved:
        return Change(a.name, "struct", "breaks ABI", f"moved: {', '.join(moved)}")
    if before.keys() != after.keys():
        names = ", ".join(sorted(before.keys() ^ after.keys()))
        return Change(a.name, "struct", "source only", f"members differ: {names}")
    return None


class Types:
    """What a C type means to a caller's machine code, on either side of a comparison."""

    def __init__(self, a: Declarations, b: Declarations) -> None:
        self._sides = (a, b)
        self._known: dict[tuple[int, str], str] = {}

    def function(self, a: Signature, b: Signature) -> Change | None:
        """How `a` became `b`, or None when a caller and a compiler see no difference."""
        before, after = [p.type for p in a.params], [p.type for p in b.params]
        if [a.returns, *before] != [b.returns, *after]:
            detail, effect = self._types(a, b)
            if detail:
                return Change(a.name, "function", effect, detail)
        renamed = [
            f"{p.name} -> {q.name}"
            for p, q in zip(a.params, b.params, strict=False)
            if p.name != q.name and p.name and q.name
        ]
        if renamed:
            return Change(a.name, "function", "source only", f"renamed: {', '.join(renamed)}")
        return None

    def _types(self, a: Signature, b: Signature) -> tuple[str, Effect]:
        if len(a.params) != len(b.params):
            count = f"{len(a.params)} -> {len(b.params)} parameters"
            return f"{count}: {b.prototype}", "breaks ABI"
        rows = [("returns", a.returns, b.returns)]
        rows += [(p.name, p.type, q.type) for p, q in zip(a.params, b.params, strict=True)]
        differ = [row for row in rows if _spelled(row[1]) != _spelled(row[2])]
        broken = [r for r in differ if self.meaning(0, r[1]) != self.meaning(1, r[2])]
        changes = ", ".join(f"{name}: {old} -> {new}" for name, old, new in broken or differ)
        return changes, "breaks ABI" if broken else "source only"

    def meaning(self, side: int, ctype: str) -> str:
        """`ctype` with const dropped, typedefs followed and integers reduced to their width."""
        key = (side, ctype)
        if key not in self._known:
            self._known[key] = self._resolve(side, ctype, 0)
        return self._known[key]

    def _resolve(self, side: int, ctype: str, depth: int) -> str:
        if "(" in ctype:
            return "function*"
        text = _spelled(_TAG.sub("", _CONST.sub("", ctype)))
        base = text.rstrip("*&[]0123456789 ")
        marks = text[len(base) :].replace(" ", "").replace("&", "*")
        marks = re.sub(r"^\[\d*\]", "*", marks)
        declared = self._sides[side]
        if base in _WIDTHS:
            return _WIDTHS[base] + marks
        if base in declared.enums:
            return "i32" + marks
        target = declared.typedefs.get(base)
        if target and depth < 8 and _spelled(_TAG.sub("", target)) != base:
            return self._resolve(side, target, depth + 1) + marks
        return base + marks


def _spelled(ctype: str) -> str:
    """`ctype` without the spaces that no compiler sees."""
    return _SPACES.sub(lambda m: m[1] or " ", ctype).strip()
