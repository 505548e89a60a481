"""Owns the joining of headers into one set of declarations; refuses two meanings for one name."""

from __future__ import annotations

from collections.abc import Sequence

from ..abi import SCALARS, kind_of, unqualified
from ..signature import Kind, Skipped
from .direction import directions
from .doxygen import ParamDoc, is_deprecated, read_doc
from .layout import Layout, Layouts, UnknownLayout, resolve_bounds
from .markers import Markers
from .numbers import NotConstant
from .raw import RawFunction, RawStruct, Unit
from .symbols import HeaderSymbols, UnitScope, constant_value, enum_type
from .tables import DEPRECATED, DIRECTION_INDEX, EXPORTED, KIND_INDEX, Image, Row


class Linker:
    """Turns the units of a set of headers into an image."""

    def __init__(self, units: Sequence[Unit], markers: Markers) -> None:
        self.units = units
        self.markers = markers
        self.symbols: HeaderSymbols = HeaderSymbols(units)
        self.image: Image = Image()
        self.header_index: dict[str, int] = {u.header: i for i, u in enumerate(units)}
        self.skipped: list[Skipped] = []
        self.layouts: Layouts
        self._kinds: dict[str, Kind | None] = {}
        self._params: dict[tuple[object, ...], int] = {}

    def run(self) -> Image:
        """Everything, in an order in which each step has what it needs."""
        self.image.headers = [u.header for u in self.units]
        for index, unit in enumerate(self.units):
            self.enums(index, unit)
        self.layouts = Layouts(self.symbols)
        for index, unit in enumerate(self.units):
            self.typedefs(index, unit)
            self.constants(index, unit)
            self.structs(index, unit)
        for name, (raw, index) in list(self.layouts.inner.items()):
            self.struct(name, raw, index, self.layouts.done[name])
        for index, unit in enumerate(self.units):
            self.functions(index, unit)
        for unit in self.units:
            self.skipped.extend(unit.skipped)
        self.skipped.sort(key=lambda s: (self.header_index[s.header], s.line))
        self.image.skipped = [
            [self.header_index[s.header], s.line, s.text, s.reason] for s in self.skipped
        ]
        return self.image

    def skip(self, unit: Unit, line: int, text: str, reason: str) -> None:
        self.skipped.append(Skipped(unit.header, line, text[:120], reason))

    def add(self, section: str, name: str, row: Row, unit: Unit, line: int, same: Row) -> None:
        """Files a row; a second meaning of a name is noted and the first one stays."""
        rows = self.image.named[section]
        if name not in rows:
            rows[name] = row
        elif same is not None:
            self.skip(unit, line, name, f"declared before in another way: {same}")

    # -- sorts of declaration -----------------------------------------------------------------

    def enums(self, index: int, unit: Unit) -> None:
        for number, enum in enumerate(unit.enums):
            members: dict[str, int] = {}
            try:
                for name, value in self.symbols.members(index, enum, number):
                    members[name] = value
            except NotConstant as error:
                label = " ".join(enum.names) or "enum"
                self.skip(unit, enum.line, label, f"member after {len(members)} others: {error}")
            declaration = (
                self.symbols.scope(index).width(enum.underlying) if enum.underlying else None
            )
            width = declaration or enum_type(list(members.values()))
            for name in enum.names:
                self.symbols.enum_widths.setdefault(name, width)
                known = self.image.named["enums"].get(name)
                differs = known is not None and known != list(members.items())
                row = list(members.items())
                self.add("enums", name, row, unit, enum.line, "enum" if differs else None)
            if not enum.names:
                for name, value in members.items():
                    self.constant(name, value, unit, enum.line)

    def constant(self, name: str, value: int | float | str, unit: Unit, line: int) -> None:
        known = self.image.named["constants"].get(name)
        same = known[0] if known is not None and known[0] != value else None
        self.add("constants", name, [value], unit, line, same)

    def constants(self, index: int, unit: Unit) -> None:
        scope = self.symbols.scope(index)
        for constant in unit.constants:
            self.expression(constant.name, constant.expression, unit, constant.line, scope)
        for name, macro in unit.macros.items():
            if not macro.body or name in self.markers.dropped:
                continue
            if name in self.markers.replaced:
                self.image.named["typedefs"].setdefault(name, [" ".join(macro.body.split())])
                continue
            if macro.params is not None:
                label = f"#define {name}({', '.join(macro.params)})"
                self.skip(unit, macro.line, label, "macro with parameters")
                continue
            self.expression(name, macro.body, unit, macro.line, scope)

    def expression(self, name: str, text: str, unit: Unit, line: int, scope: UnitScope) -> None:
        try:
            value = constant_value(text, scope, name)
        except NotConstant as error:
            self.skip(unit, line, f"{name} {text}", f"not a constant: {error}")
        else:
            self.constant(name, value, unit, line)

    def typedefs(self, index: int, unit: Unit) -> None:
        scope = self.symbols.scope(index)
        rows = self.image.named["typedefs"]
        for typedef in unit.typedefs:
            try:
                ctype = resolve_bounds(typedef.type, scope)
            except NotConstant as error:
                self.skip(unit, typedef.line, f"typedef {typedef.name}", str(error))
                continue
            known = rows.get(typedef.name)
            same = known[0] if known is not None and known[0] != ctype else None
            self.add("typedefs", typedef.name, [ctype], unit, typedef.line, same)

    def structs(self, index: int, unit: Unit) -> None:
        for raw in unit.structs:
            for name in raw.names:
                known = self.layouts.raw[name][0]
                if known is not raw and known.fields != raw.fields:
                    self.skip(unit, raw.line, name, "struct declared before with other members")
                    continue
                try:
                    layout = self.layouts.layout(name)
                except (UnknownLayout, NotConstant) as error:
                    self.skip(unit, raw.line, f"struct {name}", f"layout not known: {error}")
                    continue
                self.struct(name, raw, index, layout)

    def struct(self, name: str, raw: RawStruct, index: int, layout: Layout) -> None:
        fields = [
            [f.name, f.type, f.offset, f.size, f.bits] if f.bits else
            [f.name, f.type, f.offset, f.size] for f in layout.fields
        ]  # fmt: skip
        row = [layout.size, layout.align, index, raw.line, int(raw.union), fields]
        self.image.named["structs"].setdefault(name, row)

    # -- functions ----------------------------------------------------------------------------

    def functions(self, index: int, unit: Unit) -> None:
        scope = self.symbols.scope(index)
        rows = self.image.named["functions"]
        for function in unit.functions:
            known = rows.get(function.name)
            try:
                row = self.function(function, index, unit, scope)
            except NotConstant as error:
                self.skip(unit, function.line, function.name, str(error))
                continue
            if known is None:
                rows[function.name] = row
            elif self._types(known) != self._types(row):
                first = f"{self.units[known[1]].header}:{known[2]}"
                self.skip(unit, function.line, function.name, f"another type than at {first}")

    def _types(self, row: Row) -> list[str]:
        return [row[0], *(self.image.params[n][0] for n in row[4])]

    def function(self, function: RawFunction, index: int, unit: Unit, scope: UnitScope) -> Row:
        docs: dict[str, ParamDoc] = read_doc(function.doc) if function.doc else {}
        types = [resolve_bounds(p.type, scope) for p in function.params]
        kinds = [self.kind(t, function, unit) for t in types]
        if kinds == [Kind.VOID]:
            # A name for void, alone: no parameters.
            function, types, kinds = function._replace(params=()), [], []
        ways = directions(function.name, function.params, kinds, docs)
        numbers = []
        for param, ctype, kind, way in zip(function.params, types, kinds, ways, strict=True):
            doc = docs.get(param.name)
            optional = "Optional" in param.name or (doc is not None and doc.optional)
            key = (
                ctype, param.name, KIND_INDEX[kind], DIRECTION_INDEX[way], int(optional),
                doc.dtypes if doc else (),
            )  # fmt: skip
            number = self._params.get(key)
            if number is None:
                number = self._params[key] = len(self.image.params)
                self.image.params.append(key)
            numbers.append(number)
        old = function.deprecated or (bool(function.doc) and is_deprecated(function.doc))
        flags = (EXPORTED if function.exported else 0) | (DEPRECATED if old else 0)
        return [function.returns, index, function.line, flags, numbers]

    def kind(self, ctype: str, function: RawFunction, unit: Unit) -> Kind:
        """The kind of a type; one that no header explains counts as a struct, and is noted."""
        if ctype not in self._kinds:
            named = self.image.named
            self._kinds[ctype] = kind_of(
                ctype, self.symbols.typedefs, named["enums"], self.layouts.raw
            )
        kind = self._kinds[ctype]
        if kind is None:
            known = unqualified(ctype) in SCALARS
            reason = "type cannot be passed by value" if known else "type is not declared"
            self.skip(unit, function.line, f"{function.name}: {ctype}", reason)
            return Kind.STRUCT
        return kind
