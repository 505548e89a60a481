"""Owns C's types and declarators: tokens in, canonical type text and names out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from .raw import RawEnum, RawField, RawParam, RawStruct
from .tokens import NotUnderstood, Tokens
from .words import BUILTIN, CXX, QUALIFIERS, RESTRICT, STORAGE, TAGS


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


class Cursor(Tokens):
    """The grammar of C declarations over tokens."""

    # -- specifiers ---------------------------------------------------------------------------

    def specifiers(self) -> Specifiers:
        """Takes the specifiers; identifiers beyond type and name count as attributes."""
        spec = Specifiers()
        qualifiers: list[str] = []
        builtin: list[str] = []
        plain: list[str] = []
        while True:
            token = self.peek()
            if token in QUALIFIERS:
                if self.take() not in qualifiers:
                    qualifiers.append(token)
            elif token in STORAGE:
                spec.storage.add(self.take())
            elif token in RESTRICT:
                self.take()
            elif token in BUILTIN and token:
                builtin.append(self.take())
            elif token in TAGS:
                self._tagged(spec)
            elif attribute := self.attribute():
                spec.attributes.append(attribute)
            elif token in CXX:
                raise NotUnderstood(f"C++: '{token}'")
            elif token.isidentifier():
                plain.append(self.take())
                if self.peek() == "(" and self._invocation(plain, builtin, spec):
                    spec.attributes.append(f"{plain.pop()}({' '.join(self.balanced())})")
            else:
                break
        if builtin:
            spec.base = builtin_type(builtin)
        self._resolve(spec, plain)
        if "volatile" in qualifiers:
            spec.base = f"volatile {spec.base}"
        if "const" in qualifiers:
            spec.base = f"const {spec.base}"
        return spec

    def _invocation(self, plain: list[str], builtin: list[str], spec: Specifiers) -> bool:
        """Whether the identifier just taken invokes a macro: more type or name follows its `)`."""
        depth, at = 0, self.at
        while at < len(self.tokens):
            depth += (self.tokens[at] == "(") - (self.tokens[at] == ")")
            at += 1
            if not depth:
                break
        after = self.tokens[at] if at < len(self.tokens) else ""
        if len(plain) == 1 and not builtin and not spec.base:
            # Nothing before it could be a type: `T (*name)(…)` is the only other reading.
            return self.peek(1) not in ("*", "&") and after.isidentifier()
        return False

    def _resolve(self, spec: Specifiers, plain: list[str]) -> None:
        """Gives each plain identifier its part: attribute, type or name."""
        ends_in_name = self.peek() not in ("*", "&")
        if spec.base:
            if plain and ends_in_name:
                spec.name = plain.pop()
        elif not plain:
            raise NotUnderstood(f"expected a type before '{self.peek()[:40] or 'the end'}'")
        elif len(plain) == 1:
            spec.base = plain.pop()
        elif ends_in_name and not (self.peek() == "(" and self.peek(1) == "*"):
            spec.name = plain.pop()
            spec.base = plain.pop()
        else:
            spec.base = plain.pop()
        spec.attributes.extend(plain)

    def _tagged(self, spec: Specifiers) -> None:
        """Takes `struct|union|enum [attributes] [tag] [{…}]`."""
        word = self.take()
        if word == "class":
            raise NotUnderstood("C++: 'class'")
        if word == "enum" and self.peek() in ("class", "struct"):
            raise NotUnderstood("C++: scoped enum")
        attributes = []
        while attribute := self.attribute():
            attributes.append(attribute)
        tag = ""
        # A macro may stand between the keyword and the tag.
        while self.peek().isidentifier() and not (tag and self.peek(1) not in ("{", ":")):
            tag = self.take()
            if self.peek() != "{" and not self.peek().isidentifier():
                break
        if self.peek() == ":" and word == "enum":
            while self.peek() not in ("{", ";", ""):
                self.take()
        elif self.peek() == ":":
            raise NotUnderstood("C++: base class")
        spec.tag = tag
        spec.base = f"{word} {tag}".strip()
        if self.peek() == "{":
            self.enter()
            if word == "enum":
                spec.enum = self._enum(tag)
            else:
                spec.struct = self._struct(tag, word == "union", attributes)
            self.depth -= 1
        elif tag:
            spec.introduces = tag

    def _enum(self, tag: str) -> RawEnum:
        self.expect("{")
        members: list[tuple[str, str]] = []
        while self.peek() != "}":
            name = self.take()
            if not name.isidentifier():
                raise NotUnderstood(f"enum member '{name[:40] or 'end'}'")
            while self.peek() not in ("=", ",", "}"):
                self._trailing_attribute()
            value = ""
            if self.peek() == "=":
                self.take()
                value = " ".join(self._until(",", "}"))
            members.append((name, value))
            if self.peek() == ",":
                self.take()
        self.expect("}")
        return RawEnum((tag,) if tag else (), tuple(members), self.line)

    def _until(self, *stops: str) -> list[str]:
        """Takes tokens up to a stop that stands outside all brackets."""
        depth, out = 0, []
        while (token := self.peek()) and (depth or token not in stops):
            depth += (token in "([{") - (token in ")]}")
            if depth < 0:
                break
            out.append(self.take())
        return out

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
        while attribute := self.attribute():
            attributes.append(attribute)
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

    # -- declarators --------------------------------------------------------------------------

    def declarators(self, spec: Specifiers) -> list[Declarator]:
        """Takes a comma-separated list of declarators; the first one's name may be in `spec`."""
        out = []
        name = spec.name
        while True:
            item = self.declarator(name)
            name = ""
            if self.peek() == ":" and self.peek(1):
                self.take()
                item.bits = " ".join(self._until(",", ";", "="))
            while self.peek() not in ("", ",", ";", "=", "{"):
                item.attributes.append(self._trailing_attribute())
            if self.peek() == "=":
                self.take()
                item.value = " ".join(self._until(",", ";"))
            out.append(item)
            if self.peek() != ",":
                return out
            self.take()

    def _trailing_attribute(self) -> str:
        if attribute := self.attribute():
            return attribute
        token = self.peek()
        if token in CXX or not token.isidentifier():
            found = "C++: " if token in CXX else "unexpected "
            raise NotUnderstood(f"{found}'{token[:40] or 'end'}'")
        self.take()
        return f"{token}({' '.join(self.balanced())})" if self.peek() == "(" else token

    def declarator(self, name: str = "") -> Declarator:
        """Takes pointers, name (unless it was taken already) and suffixes."""
        self.enter()
        pointers = "" if name else self._pointers()
        inner = Declarator(name)
        if not name and self.peek() == "(" and self._nests():
            self.take()
            inner = self.declarator()
            self.expect(")")
            if inner.before or inner.after or inner.params is not None:
                inner.before, inner.after = f"({inner.before}", f"{inner.after})"
        elif not name and self.peek().isidentifier():
            inner.name = self.take()
        self._suffixes(inner)
        inner.before = pointers + inner.before
        self.depth -= 1
        return inner

    def _nests(self) -> bool:
        """Whether the parenthesis at the cursor holds a declarator and not parameters."""
        token = self.peek(1)
        if token in ("*", "&", "("):
            return True
        return token.isidentifier() and self.peek(2) == ")" and self.peek(3) in ("(", "[")

    def _pointers(self) -> str:
        out = ""
        while True:
            token = self.peek()
            if token == "*":
                out += f" {self.take()}" if out[-1:].isalpha() else self.take()
            elif token == "&":
                self.take()
                if self.peek() == "&":
                    raise NotUnderstood("C++: '&&'")
                out += "&"
            elif token in QUALIFIERS and out:
                out += self.take()
            elif token in RESTRICT and out:
                self.take()
            elif token.startswith("__") and (attribute := self.attribute()):
                del attribute
            elif out and token.isidentifier() and self.peek(1).isidentifier():
                # A macro between pointer and name, such as a calling convention.
                self.take()
            else:
                return out

    def _suffixes(self, inner: Declarator) -> None:
        while True:
            token = self.peek()
            if token == "[" and self.peek(1) != "[":
                inside = self.balanced()
                inner.after += f"[{' '.join(w for w in inside if w not in RESTRICT)}]"
            elif token == "(":
                params = self.parameters(inner)
                if not inner.before and not inner.after and inner.params is None:
                    inner.params = params
                else:
                    inner.after += f"({', '.join(p.type for p in params) or 'void'})"
            else:
                return

    def parameters(self, owner: Declarator) -> tuple[RawParam, ...]:
        """Takes a parameter list with its parentheses."""
        self.enter()
        self.expect("(")
        out: list[RawParam] = []
        while self.peek() != ")":
            if self.peek() == "...":
                self.take()
                out.append(RawParam("...", ""))
            else:
                out.append(self.parameter(owner))
            if self.peek() == ",":
                self.take()
            elif self.peek() != ")":
                raise NotUnderstood(f"unexpected '{self.peek()[:40] or 'end'}' in parameters")
        self.expect(")")
        self.depth -= 1
        return () if out == [RawParam("void", "")] else tuple(out)

    def parameter(self, owner: Declarator) -> RawParam:
        """Takes one parameter; a default value goes to `owner.defaults`."""
        spec = self.specifiers()
        if spec.enum is not None or spec.struct is not None:
            raise NotUnderstood("type defined inside a parameter list")
        item = self.declarator(spec.name)
        while self.peek() not in (",", ")", "=", ""):
            self._trailing_attribute()
        if self.peek() == "=":
            self.take()
            self._until(",", ")")
            owner.defaults.append(item.name)
        if item.params is not None:
            inside = ", ".join(p.type for p in item.params) or "void"
            return RawParam(
                f"{join_type(spec.base, item.before + item.after)} (*)({inside})", item.name
            )
        return RawParam(item.type_of(spec.base), item.name)
