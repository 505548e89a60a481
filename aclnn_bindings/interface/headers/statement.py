"""Owns what one complete declaration declares; refuses what is not C or not exported."""

from __future__ import annotations

import re
from typing import NamedTuple

from .declarator import DeclarationParser
from .markers import Markers
from .raw import RawConstant, RawFunction, RawParam, RawTypedef, Unit
from .source import HeaderSource
from .spelling import Declarator, Specifiers, join_type, type_list
from .tokenizer import tokenize
from .tokens import NotUnderstood
from .words import INTRICATE

_MAX_PARAMS = 100_000
_NOTHING = (RawParam("void", ""), RawParam("", ""))


class SourcePosition(NamedTuple):
    """Where a declaration stands: its line, the comment before it, and packing in force."""

    line: int
    doc: str
    pack: int = 0
    exported: bool = True


class Statements:
    """Files the declarations of one header in its unit."""

    source: HeaderSource
    unit: Unit
    markers: Markers

    def __init__(self, source: HeaderSource, unit: Unit, markers: Markers) -> None:
        self.source, self.unit, self.markers = source, unit, markers
        self.prefixes: dict[str, str] = {}

    # -- plain prototypes ---------------------------------------------------------------------

    def prototype(self, text: str, place: SourcePosition) -> bool:
        """Files a plain prototype, the form of nearly all; False leaves it to `declare`."""
        head, bracket, rest = text.partition("(")
        inside, closed, after = rest.partition(")")
        if not bracket or not closed or "(" in inside or after.strip() != ";":
            return False
        words = head.replace("*", " * ").split()
        if len(words) < 2 or not words[-1].isidentifier():
            return False
        name = words.pop()
        prefix = " ".join(words)
        returns = self.prefixes.get(prefix)
        if returns is None:
            returns = self._returned(words)
            if returns is None:
                return False
            self.prefixes[prefix] = returns
        params = self._parameters(inside)
        if params is None:
            return False
        old = "DEPRECATED" in prefix
        line = place.line + head.rstrip().count("\n")
        function = RawFunction(name, returns, params, line, place.doc, True, old)
        self.unit.functions.append(function)
        return True

    def _returned(self, words: list[str]) -> str | None:
        """The return type in the words before a function's name, None if not simple."""
        left = [w for w in words if w not in self.markers.dropped]
        if any(w in INTRICATE or w in self.markers.replaced for w in left):
            return None
        left = [w for w in left if w != "extern"]
        stars = left.count("*")
        if stars and left[-stars:] != ["*"] * stars:
            return None
        names = left[: len(left) - stars]
        const = "const" in names
        names = [n for n in names if n != "const"]
        if not names or not all(n.isidentifier() for n in names):
            return None
        return join_type(("const " if const else "") + names[-1], "*" * stars)

    def _parameters(self, inside: str) -> tuple[RawParam, ...] | None:
        known = self.markers.params
        params = []
        for piece in inside.split(","):
            piece = " ".join(piece.split())
            param = known.get(piece)
            if param is None:
                param = self._parameter(piece)
                if param is None:
                    return None
            params.append(param)
        if len(params) == 1 and params[0] in _NOTHING:
            return ()
        return tuple(params) if _NOTHING[1] not in params else None

    def _parameter(self, piece: str) -> RawParam | None:
        """One parameter of a plain prototype; None if it needs the full grammar to fail."""
        if not piece:
            return _NOTHING[1]
        if piece == "...":
            return RawParam("...", "")
        tokens = tokenize(piece)
        if self.markers.expand(tokens) is not tokens or "=" in tokens or '"' in piece:
            return None
        cursor = DeclarationParser(tokens)
        try:
            param = cursor.parameter(Declarator(""))
        except (NotUnderstood, RecursionError):
            return None
        if cursor.peek():
            return None
        if len(self.markers.params) < _MAX_PARAMS:
            self.markers.params[piece] = param
        return param

    # -- everything else ----------------------------------------------------------------------

    def declare(self, text: str, place: SourcePosition) -> None:
        """Files what a declaration says, by the full grammar; NotUnderstood if it cannot."""
        tokens = self.markers.expand(tokenize(text))
        if tokens[:1] == ["extern"] and tokens[1:2] in (['"C"'], ['"C++"']):
            del tokens[1]
        cursor = DeclarationParser(tokens, place.pack, place.line)
        spec = cursor.specifiers()
        items = None
        if cursor.peek() != ";" or spec.name:
            items = cursor.declarators(spec)
        cursor.expect(";")
        if cursor.peek():
            raise NotUnderstood(f"unexpected '{cursor.peek()[:40]}'")
        if items is None:
            self._bare(spec, place.line)
        elif "typedef" in spec.storage:
            self._typedefs(spec, items, place.line)
        else:
            self._values(spec, items, place, text)
        self.unit.enums.extend(cursor.enums)

    def _bare(self, spec: Specifiers, line: int) -> None:
        """A declaration without declarators: a tag, or a type of its own."""
        unit = self.unit
        if spec.struct is not None and spec.tag:
            unit.structs.append(spec.struct)
        elif spec.enum is not None:
            unit.enums.append(spec.enum)
        elif spec.introduces:
            unit.opaque.append((spec.introduces, line))
        else:
            raise NotUnderstood("declares nothing")

    def _values(
        self, spec: Specifiers, items: list[Declarator], place: SourcePosition, text: str
    ) -> None:
        """Functions and constants; a declaration that also has something else is refused."""
        if spec.struct is not None or spec.enum is not None:
            raise NotUnderstood("a variable of a type defined in place")
        for entry in [self._value(spec, item, place) for item in items]:
            if isinstance(entry, RawFunction):
                # A function stands where its name does; attributes may be lines above.
                name = re.search(rf"\b{entry.name}\b\W*\(", text)
                below = text.count("\n", 0, name.start()) if name else 0
                self.unit.functions.append(entry._replace(line=place.line + below))
            else:
                self.unit.constants.append(entry)

    def _value(
        self, spec: Specifiers, item: Declarator, place: SourcePosition
    ) -> RawFunction | RawConstant:
        if not item.name:
            raise NotUnderstood("declares nothing")
        if item.params is None:
            constant = spec.base.startswith("const ") or "constexpr" in spec.storage
            if constant and item.value and not item.after:
                return RawConstant(item.name, self.source.restore(item.value), place.line)
            raise NotUnderstood(f"variable '{item.name}' of type {item.type_of(spec.base)}")
        if not place.exported or "static" in spec.storage:
            raise NotUnderstood("defined in the header, so no library exports it")
        if item.defaults:
            left_out = f"C++: default value of {', '.join(item.defaults)} left out"
            self.unit.skip_at(place.line, item.name, left_out)
        old = any("deprecated" in a.lower() for a in [*spec.attributes, *item.attributes])
        returns = item.type_of(spec.base)
        return RawFunction(item.name, returns, item.params, place.line, place.doc, True, old)

    def _typedefs(self, spec: Specifiers, items: list[Declarator], line: int) -> None:
        plain = tuple(i.name for i in items if not i.before and not i.after and i.params is None)
        attributes = " ".join([*spec.attributes, *(a for i in items for a in i.attributes)])
        base = spec.base
        if spec.struct is not None or spec.enum is not None:
            name = self._named_type(spec, plain, attributes)
            base = base if spec.tag else f"{base} {name}"
        elif "aligned" in attributes:
            raise NotUnderstood("typedef that changes the alignment of its type")
        for item in items:
            if not item.name:
                raise NotUnderstood("typedef without a name")
            ctype = item.type_of(base)
            if item.params is not None:
                ctype = join_type(ctype, f"({type_list(item.params)})")
            self.unit.typedefs.append(RawTypedef(item.name, ctype, line))

    def _named_type(self, spec: Specifiers, plain: tuple[str, ...], attributes: str) -> str:
        """Files a type defined inside a typedef under all its names; gives the first."""
        if not spec.tag and not plain:
            raise NotUnderstood("typedef of a type without a name")
        if spec.enum is not None:
            names = tuple(dict.fromkeys([*spec.enum.names, *plain]))
            self.unit.enums.append(spec.enum._replace(names=names))
            return names[0]
        struct = spec.struct
        assert struct is not None
        names = tuple(dict.fromkeys([*struct.names, *plain]))
        if "aligned" not in attributes:
            self.unit.structs.append(struct._replace(names=names))
            return names[0]
        if struct.names:
            self.unit.structs.append(struct)
        aligned = tuple(n for n in names if n not in struct.names)
        self.unit.structs.append(struct._replace(names=aligned, alias=attributes))
        return names[0]
