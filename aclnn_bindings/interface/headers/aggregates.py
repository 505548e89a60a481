"""Owns types that are defined in place: enums with their members, structs with their fields."""

from __future__ import annotations

from .raw import RawEnum, RawField, RawStruct
from .spelling import Declarator, Specifiers
from .tokens import NotUnderstood, Tokens


class Aggregates(Tokens):
    """The part of the grammar between braces; what stands outside comes from a subclass."""

    def specifiers(self) -> Specifiers:
        """Takes what stands before the declarators."""
        raise NotImplementedError

    def declarators(self, spec: Specifiers) -> list[Declarator]:
        """Takes the declarators behind `spec`."""
        raise NotImplementedError

    def tagged(self, spec: Specifiers) -> None:
        """Takes `struct|union|enum [attributes] [tag] [{…}]`."""
        word = self.take()
        if word == "class" or self.peek() in ("class", "struct"):
            raise NotUnderstood(f"C++: '{word} {self.peek()}'")
        attributes = self.attributes()
        spec.tag = self._tag()
        underlying: list[str] = []
        if self.peek() == ":" and word == "enum":
            self.take()
            underlying = self.until("{", ";", ",", ")")
        elif self.peek() == ":":
            raise NotUnderstood("C++: base class")
        spec.base = f"{word} {spec.tag}".strip()
        if self.peek() == "{":
            self.enter()
            if word == "enum":
                spec.enum = self._enum(spec.tag, " ".join(underlying))
            else:
                spec.struct = self._struct(spec.tag, word == "union", attributes)
            self.depth -= 1
        elif spec.tag:
            spec.introduces = spec.tag

    def _tag(self) -> str:
        """Takes the tag; a macro may stand between the keyword and it."""
        tag = ""
        while self.peek().isidentifier() and not (tag and self.peek(1) not in ("{", ":")):
            tag = self.take()
            if self.peek() != "{" and not self.peek().isidentifier():
                break
        return tag

    def _enum(self, tag: str, underlying: str) -> RawEnum:
        self.expect("{")
        members: list[tuple[str, str]] = []
        while self.peek() != "}":
            name = self.take()
            if not name.isidentifier():
                raise NotUnderstood(f"enum member '{name[:40] or 'end'}'")
            while self.peek() not in ("=", ",", "}"):
                self.trailing_attribute()
            value = ""
            if self.peek() == "=":
                self.take()
                value = " ".join(self.until(",", "}"))
            members.append((name, value))
            if self.peek() == ",":
                self.take()
        self.expect("}")
        return RawEnum((tag,) if tag else (), tuple(members), self.line, underlying)

    def _struct(self, tag: str, union: bool, attributes: list[str]) -> RawStruct:
        self.expect("{")
        fields: list[RawField] = []
        while self.peek() != "}":
            if self.peek() == ";":
                self.take()
                continue
            if self.peek(1) == ":" and self.peek() in ("public", "private", "protected"):
                raise NotUnderstood(f"C++: '{self.peek()}'")
            fields.extend(self._fields())
        self.expect("}")
        attributes.extend(self.attributes())
        names = (tag,) if tag else ()
        align = " ".join(attributes)
        return RawStruct(names, union, tuple(fields), self.line, self.pack, align)

    def _fields(self) -> list[RawField]:
        """Takes one member declaration, up to and with its semicolon."""
        spec = self.specifiers()
        out = []
        if spec.enum is not None:
            self.enums.append(spec.enum)
            # An unnamed enum's members are constants; a field of it is as wide as this.
            spec.base = spec.base if spec.tag else "unsigned int"
        if self.peek() == ";" and not spec.name:
            if spec.struct is not None:
                out.append(RawField("", spec.base, "", "", spec.struct))
            elif spec.enum is None:
                raise NotUnderstood(f"member of type {spec.base} has no name")
        else:
            for item in self.declarators(spec):
                if item.params is not None:
                    raise NotUnderstood(f"C++: member function '{item.name}'")
                align = " ".join([*spec.attributes, *item.attributes])
                ctype = item.type_of(spec.base)
                out.append(RawField(item.name, ctype, item.bits, align, spec.struct))
        self.expect(";")
        return out
