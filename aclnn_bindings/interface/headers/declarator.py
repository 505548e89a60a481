"""Owns C's types and declarators: tokens in, canonical type text and names out."""

from __future__ import annotations

from .aggregates import Aggregates
from .raw import RawParam
from .spelling import Declarator, Specifiers, builtin_type, join_type, type_list
from .tokens import NotUnderstood
from .words import BUILTIN, CXX, QUALIFIERS, RESTRICT, STORAGE, TAGS


class DeclarationParser(Aggregates):
    """The grammar of C declarations over tokens."""

    # -- specifiers ---------------------------------------------------------------------------

    def specifiers(self) -> Specifiers:
        """Takes the specifiers; identifiers beyond type and name count as attributes."""
        spec = Specifiers()
        while self._specifier(spec, self.peek()):
            pass
        if spec.builtin:
            spec.base = builtin_type(spec.builtin)
        self._resolve(spec)
        for qualifier in ("volatile", "const"):
            if qualifier in spec.qualifiers:
                spec.base = f"{qualifier} {spec.base}"
        return spec

    def _specifier(self, spec: Specifiers, token: str) -> bool:
        """Takes one specifier; False if the cursor is not at one."""
        if token in QUALIFIERS:
            spec.qualifiers.add(self.take())
        elif token in STORAGE:
            spec.storage.add(self.take())
        elif token in RESTRICT:
            self.take()
        elif token in BUILTIN:
            spec.builtin.append(self.take())
        elif token in TAGS:
            self.tagged(spec)
        elif attribute := self.attribute():
            spec.attributes.append(attribute)
        elif token in CXX:
            raise NotUnderstood(f"C++: '{token}'")
        elif token.isidentifier():
            self.take()
            if self.peek() == "(" and self._invokes(spec):
                spec.attributes.append(f"{token}({' '.join(self.balanced())})")
            else:
                spec.plain.append(token)
        else:
            return False
        return True

    def _invokes(self, spec: Specifiers) -> bool:
        """Whether the identifier just taken invokes a macro: a type or name follows its `)`."""
        if spec.plain or spec.builtin or spec.base or self.peek(1) in ("*", "&"):
            return False
        # Nothing before it could be a type: `T (*name)(…)` is the only other reading.
        here = self.at
        self.balanced()
        follows = self.peek().isidentifier()
        self.at: int = here
        return follows

    def _resolve(self, spec: Specifiers) -> None:
        """Gives each plain identifier its part: attribute, type or name."""
        plain = spec.plain
        named = self.peek() not in ("*", "&") and (self.peek(), self.peek(1)) != ("(", "*")
        if not plain and not spec.base:
            raise NotUnderstood(f"expected a type before '{self.peek()[:40] or 'the end'}'")
        if plain and named and (spec.base or len(plain) > 1):
            spec.name = plain.pop()
        if not spec.base:
            spec.base = plain.pop()
        spec.attributes.extend(plain)

    def declarators(self, spec: Specifiers) -> list[Declarator]:
        """Takes a comma-separated list of declarators; the first one's name may be in `spec`."""
        out = []
        name = spec.name
        while True:
            item = self.declarator(name)
            name = ""
            if self.peek() == ":" and self.peek(1):
                self.take()
                item.bits = " ".join(self.until(",", ";", "="))
            while self.peek() not in ("", ",", ";", "=", "{"):
                item.attributes.append(self.trailing_attribute())
            if self.peek() == "=":
                self.take()
                item.value = " ".join(self.until(",", ";"))
            out.append(item)
            if self.peek() != ",":
                return out
            self.take()

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
            elif token == "&" or (out and token in QUALIFIERS):
                out += self.take()
            elif not self._beside_pointer(token, out):
                break
        if "&&" in out:
            raise NotUnderstood("C++: '&&'")
        return out

    def _beside_pointer(self, token: str, out: str) -> bool:
        """Takes what may stand between pointer and name and means nothing here."""
        if token.startswith("__") and self.attribute():
            return True
        # A macro in that place is such as a calling convention.
        macro = out and token.isidentifier() and self.peek(1).isidentifier()
        if macro or (out and token in RESTRICT):
            self.take()
            return True
        return False

    def _suffixes(self, inner: Declarator) -> None:
        while True:
            token = self.peek()
            if token == "[" and self.peek(1) != "[":
                inside = " ".join(w for w in self.balanced() if w not in RESTRICT)
                inner.after += f"[{inside}]"
            elif token != "(":
                return
            elif inner.before or inner.after or inner.params is not None:
                inner.after += f"({type_list(self.parameters(inner))})"
            else:
                inner.params = self.parameters(inner)

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
            self.trailing_attribute()
        if self.peek() == "=":
            self.take()
            self.until(",", ")")
            owner.defaults.append(item.name)
        if item.params is not None:
            returns = join_type(spec.base, item.before + item.after)
            return RawParam(f"{returns} (*)({type_list(item.params)})", item.name)
        return RawParam(item.type_of(spec.base), item.name)
