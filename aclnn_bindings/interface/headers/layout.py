"""Owns the layout of structs and unions (LP64, GCC's rules); refuses types of unknown size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ..abi import SCALARS, unqualified
from ..signature import Field
from .numbers import NotConstant
from .raw import RawField, RawStruct
from .spelling import join_type
from .symbols import HeaderSymbols, UnitScope, evaluate_text

_ARRAY: Final = re.compile(r"\[([^\[\]]*)\]")
_ALIGNED: Final = re.compile(r"(?:aligned(?:__)?|alignas|_Alignas)\s*\(\s*(?:\(\s*)?([^()]*)")
_MOST: Final = 1 << 40


class UnknownLayout(ValueError):
    """A struct whose size cannot be known; the text names the type that is missing."""


class Layout:
    """A struct's size, alignment and members, in bytes."""

    size: int
    align: int
    fields: list[Field]

    def __init__(self, size: int, align: int, fields: list[Field]) -> None:
        self.size, self.align, self.fields = size, align, fields


def resolve_bounds(ctype: str, scope: UnitScope) -> str:
    """`ctype` with each array bound as a number; NotConstant if one has no value."""
    if "[" not in ctype:
        return ctype

    def bound(match: re.Match[str]) -> str:
        text = match[1].strip()
        if not text or text.isdigit():
            return f"[{text}]"
        return f"[{int(evaluate_text(text, scope).number)}]"

    return _ARRAY.sub(bound, ctype)


class _StructMember(NamedTuple):
    """A member's type, size and alignment; `parts` are the members of an unnamed struct."""

    type: str
    size: int
    align: int
    parts: Sequence[Field] = ()


class _Placement:
    """Where the next member of a struct goes, in bits; all members of a union start at 0."""

    def __init__(self, union: bool, dense: bool) -> None:
        self.union, self.dense = union, dense
        self.bit, self.widest, self.size = 0, 1, 0
        self.fields: list[Field] = []

    def field(self, name: str, member: _StructMember) -> None:
        start = 0 if self.union else -(-self.bit // (8 * member.align)) * member.align
        if name:
            self.fields.append(Field(name, member.type, start, member.size))
        self.fields.extend(replace(f, offset=f.offset + start) for f in member.parts)
        self._end((start + member.size) * 8, member.align)

    def bit_field(self, name: str, member: _StructMember, bits: int) -> None:
        """A bit-field must not cross a boundary of its type unless the struct is packed."""
        unit = member.size * 8
        if not unit:
            raise NotConstant(f"bit-field {name} of a type without size")
        start = 0 if self.union else self.bit
        crosses = start // unit != (start + bits - 1) // unit
        if bits == 0 or (crosses and not self.dense):
            start = -(-start // unit) * unit
        if name:
            self.fields.append(Field(name, member.type, start // 8, member.size, bits))
        self._end(start + bits, member.align if name else 1)

    def _end(self, bit: int, align: int) -> None:
        self.bit = bit
        self.widest = max(self.widest, align)
        self.size = max(self.size, -(-bit // 8))


class Layouts:
    """Computes layouts on demand; structs may use one another in any order."""

    def __init__(self, symbols: HeaderSymbols) -> None:
        self.symbols = symbols
        self.raw: dict[str, tuple[RawStruct, int]] = {}
        self.done: dict[str, Layout] = {}
        self.inner: dict[str, tuple[RawStruct, int]] = {}
        self.open: list[str] = []
        for unit, content in enumerate(symbols.units):
            for struct in content.structs:
                for name in struct.names:
                    self.raw.setdefault(name, (struct, unit))
                self._inner_tags(struct, unit)
        symbols.struct_sizes = _Sizes(self)

    def _inner_tags(self, struct: RawStruct, unit: int) -> None:
        for item in struct.fields:
            if item.inner is not None:
                for name in item.inner.names:
                    self.raw.setdefault(name, (item.inner, unit))
                self._inner_tags(item.inner, unit)

    def layout(self, name: str) -> Layout:
        """The layout of a named struct; UnknownLayout if it or a part is not declared."""
        if name in self.done:
            return self.done[name]
        if name not in self.raw:
            raise UnknownLayout(f"type {name} is not declared")
        if name in self.open or len(self.open) > 64:
            raise UnknownLayout(f"struct {name} contains itself")
        self.open.append(name)
        try:
            struct, unit = self.raw[name]
            computed = self.compute(struct, name, self.symbols.scope(unit), unit)
        except NotConstant as error:
            raise UnknownLayout(str(error)) from error
        finally:
            self.open.pop()
        self.done[name] = computed
        return computed

    def measure(self, ctype: str, scope: UnitScope) -> tuple[int, int]:
        """Size and alignment of a type given as canonical text."""
        count = 1
        pointer = "(*" in ctype
        arrays = _ARRAY.findall(ctype[: ctype.index(")")] if pointer else ctype)
        for text in arrays:
            count *= max(int(text), 0) if text.strip() else 0
        if count > _MOST:
            raise UnknownLayout(f"array of {count} elements")
        base = ctype.partition("[")[0].rstrip() if not pointer else ctype
        if pointer or base.endswith(("*", "*const", "*volatile", "&")):
            return 8 * count, 8
        size, align = self._base(unqualified(base), scope)
        return size * count, align

    def _base(self, name: str, scope: UnitScope) -> tuple[int, int]:
        if name in SCALARS:
            size = SCALARS[name][0]
            return size, size
        bare = name.split(" ", 1)[1] if name.startswith(("struct ", "union ", "enum ")) else name
        if bare in self.symbols.enum_widths and not name.startswith(("struct ", "union ")):
            size = self.symbols.enum_widths[bare][0]
            return size, size
        if bare in self.raw:
            base = self.layout(bare)
            return base.size, base.align
        target = self.symbols.typedefs.get(name)
        if target is None or target == name:
            raise UnknownLayout(f"size of type {name} is not known")
        if len(self.open) > 64:
            raise UnknownLayout(f"typedef {name} stands for itself")
        self.open.append("")
        try:
            return self.measure(resolve_bounds(target, scope), scope)
        finally:
            self.open.pop()

    def compute(self, struct: RawStruct, name: str, scope: UnitScope, unit: int) -> Layout:
        """Lays out members in order; see System V AMD64 ABI 3.1.2 for bit-fields."""
        place = _Placement(struct.union, "packed" in struct.align or bool(struct.pack))
        for item in struct.fields:
            member = self._member(item, f"{name}.{item.name}", scope, unit)
            # GCC lets #pragma pack overrule the packed attribute for bit-fields.
            packed = "packed" in struct.align and not (item.bits and struct.pack)
            align = 1 if packed else member.align
            align = max(align, self._asked_alignment(item.align, scope))
            member = member._replace(align=min(align, struct.pack or align))
            if item.bits:
                bits = int(evaluate_text(item.bits, scope).number)
                place.bit_field(item.name, member, bits)
            else:
                place.field(item.name, member)
        widest = max(place.widest, self._asked_alignment(struct.align, scope))
        size = -(-place.size // widest) * widest
        alias = self._asked_alignment(struct.alias, scope)
        return Layout(size, max(widest, alias), place.fields)

    def _asked_alignment(self, attributes: str, scope: UnitScope) -> int:
        match = _ALIGNED.search(attributes) if attributes else None
        if match is None:
            return 1
        text = match[1].strip()
        return int(evaluate_text(text, scope).number) if text else 16

    def _member(self, item: RawField, member: str, scope: UnitScope, unit: int) -> _StructMember:
        """What one member takes up."""
        ctype = resolve_bounds(item.type, scope)
        if item.inner is None:
            return _StructMember(ctype, *self.measure(ctype, scope))
        if item.inner.names:
            inner = self.layout(item.inner.names[0])
        else:
            inner = self.compute(item.inner, member, scope, unit)
        if not item.name:
            return _StructMember(ctype, inner.size, inner.align, inner.fields)
        word = "union" if item.inner.union else "struct"
        suffix = ctype[len(word) :].strip().removeprefix(" ".join(item.inner.names[:1])).strip()
        if not item.inner.names:
            self.done[member] = inner
            self.inner[member] = (item.inner, unit)
            ctype = join_type(f"{word} {member}", suffix)
        if "*" in suffix:
            return _StructMember(ctype, 8, 8)
        count = 1
        for text in _ARRAY.findall(suffix):
            count *= int(text or 0)
        return _StructMember(ctype, inner.size * count, inner.align)


class _Sizes(Mapping[str, int]):
    """Struct sizes by name, for `sizeof`."""

    def __init__(self, layouts: Layouts) -> None:
        self.layouts = layouts

    def __getitem__(self, name: str) -> int:
        try:
            return self.layouts.layout(name).size
        except UnknownLayout:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.layouts.raw)

    def __len__(self) -> int:
        return len(self.layouts.raw)
