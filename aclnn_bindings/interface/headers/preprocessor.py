"""Owns directives of one header: macros, conditionals, packing; includes are noted, not read."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Mapping
from typing import Final

from .expansion import expand
from .expression import evaluate
from .numbers import Constant, NotConstant
from .raw import Macro, Unit
from .tokenizer import tokenize

_DIRECTIVE: Final = re.compile(r"\s*#\s*(\w*)\s*(.*)", re.S)
_DEFINE: Final = re.compile(r"([A-Za-z_]\w*)(\(([^)]*)\))?\s*(.*)", re.S)
_PACK: Final = re.compile(r"pack\s*\(\s*(push|pop)?[\s,]*(\w*)[\s,]*(\d*)\s*\)")
_DEPTH: Final = 1000


def predefined() -> dict[str, Macro]:
    """Macros of a C compiler (GCC) on this machine's processor under Linux."""
    machine = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    ones = ["__linux__", "__linux", "linux", "__unix__", "__LP64__", "__STDC__", "true"]
    known = dict.fromkeys([*ones, f"__{machine}__"], "1")
    known |= {"__GNUC__": "12", "__STDC_VERSION__": "201710L", "__SIZEOF_POINTER__": "8"}
    known |= {"__BYTE_ORDER__": "1234", "__ORDER_LITTLE_ENDIAN__": "1234"}
    known |= {"__ORDER_BIG_ENDIAN__": "4321", "__CHAR_BIT__": "8"}
    return {name: Macro(None, body, 0) for name, body in known.items()}


class _Condition:
    """The scope of an `#if`, once macros are replaced: every name left is 0."""

    def value(self, name: str) -> Constant:
        del name
        return Constant(0)

    def width(self, ctype: str) -> None:
        del ctype  # An #if knows no types.


class Preprocessor:
    """Follows the directives of one header and tells whether the text between is active."""

    pack: int
    pack_changed: bool
    branch_changed: bool
    left: str
    active: bool

    def __init__(self, unit: Unit, defined: Mapping[str, Macro]) -> None:
        self.unit = unit
        self.defined = defined
        self.gone: set[str] = set()
        self.active = True
        self.pack = 0
        self.pack_changed = False
        self.branch_changed = False
        self.left = ""
        self._first = ""
        self._packs: list[int] = []
        # One row per open #if: outer text active, some branch taken, line, condition text.
        self._stack: list[tuple[bool, bool, int, str]] = []

    def macro(self, name: str) -> Macro | None:
        """What `name` is defined as here; None if it is not."""
        macro = self.unit.macros.get(name)
        if macro is None and name not in self.gone:
            macro = self.defined.get(name)
        return macro

    def _asked_macro(self, name: str) -> Macro | None:
        self.unit.asked.add(name)
        return self.macro(name)

    def is_defined(self, name: str) -> bool:
        """Whether `name` is a macro here."""
        self.unit.asked.add(name)
        return self.macro(name) is not None

    def directive(self, text: str, line: Callable[[], int]) -> None:
        """Obeys one directive; `line` gives its line number when that is needed."""
        self.pack_changed = self.branch_changed = False
        match = _DIRECTIVE.match(text)
        if match is None:
            return
        name, rest = match[1], match[2].rstrip()
        if name in ("if", "ifdef", "ifndef"):
            self._open(name, rest, line())
        elif name in ("elif", "else", "endif", "elifdef", "elifndef"):
            self._turn(name, rest, line())
        elif self.active:
            self._obey(name, rest, line)

    def _obey(self, name: str, rest: str, line: Callable[[], int]) -> None:
        if name == "define":
            self._define(rest, line())
        elif name == "include":
            self.unit.includes.append(rest.strip('"<> '))
        elif name == "undef":
            self.gone.add(rest)
            self.unit.macros.pop(rest, None)
        elif name == "pragma":
            self._pragma(rest, line)
        elif name in ("error", "warning"):
            self.unit.skip_at(line(), f"#{name} {rest}", f"#{name} would be reported by a compiler")
        elif name not in ("line", "ident") and (name or rest):
            self.unit.skip_at(line(), f"#{name} {rest}", "unknown directive")

    def _define(self, rest: str, line: int) -> None:
        match = _DEFINE.fullmatch(rest)
        if match is None:
            self.unit.skip_at(line, f"#define {rest}", "malformed #define")
            return
        params = None
        if match[2] is not None:
            params = tuple(p.strip() for p in match[3].split(",") if p.strip())
        self.unit.macros[match[1]] = Macro(params, match[4], line)
        if self._first == match[1] and not self.unit.guard and len(self._stack) == 1:
            self.unit.guard = match[1]

    def _pragma(self, rest: str, line: Callable[[], int]) -> None:
        if rest.startswith(("once", "GCC")):
            return
        match = _PACK.match(rest)
        if match is None:
            self.unit.skip_at(line(), f"#pragma {rest}", "unknown pragma")
            return
        action, first, second = match[1], match[2], match[3]
        size = next((int(s) for s in (second, first) if s.isdigit()), 0)
        if action == "push":
            self._packs.append(self.pack)
            self.pack = size or self.pack
        elif action == "pop":
            self.pack = self._packs.pop() if self._packs else 0
        else:
            self.pack = size
        self.pack_changed = True

    def _open(self, name: str, rest: str, line: int) -> None:
        if len(self._stack) >= _DEPTH:
            self.unit.skip_at(line, f"#{name} {rest}", f"conditionals nest deeper than {_DEPTH}")
            return
        if not self._first:
            self._first = rest if name == "ifndef" else "#"
        active = self.active and self._holds(name, rest, line)
        self._stack.append((self.active, active, line, f"#{name} {rest}"))
        self._switch(active)

    def _turn(self, name: str, rest: str, line: int) -> None:
        if not self._stack:
            self.unit.skip_at(line, f"#{name} {rest}", f"#{name} without #if")
            return
        outer, active, opened, text = self._stack.pop()
        self.left = text
        self.branch_changed = outer
        if name == "endif":
            self._switch(outer)
            return
        now = outer and not active and (name == "else" or self._holds(name[2:], rest, line))
        directive_text = f"#else of {text}" if name == "else" else f"#{name} {rest}"
        self._stack.append((outer, active or now, opened, directive_text))
        self._switch(now)

    def _switch(self, active: bool) -> None:
        if self._stack and not active and self.active:
            self.left = self._stack[-1][3]
        self.active = active

    def _holds(self, name: str, rest: str, line: int) -> bool:
        if name.endswith("def"):
            macro = rest.split(None, 1)[0] if rest else ""
            return self.is_defined(macro) == (name == "ifdef")
        try:
            tokens = expand(self._resolve(tokenize(rest)), self._asked_macro)
            return bool(evaluate(self._resolve(tokens), _Condition()).number)
        except NotConstant as error:
            self.unit.skip_at(line, f"#{name} {rest}", f"condition taken as false: {error}")
            return False

    def _resolve(self, tokens: list[str]) -> list[str]:
        """`tokens` with every `defined` and `__has_…` answered."""
        out: list[str] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token == "defined":
                bracket = at < len(tokens) and tokens[at] == "("
                at += bracket
                out.append(str(int(at < len(tokens) and self.is_defined(tokens[at]))))
                at += 1 + bracket
            elif token.startswith("__has_") and at < len(tokens) and tokens[at] == "(":
                while at < len(tokens) and tokens[at] != ")":
                    at += 1
                at += 1
                out.append("0")
            else:
                out.append(token)
        return out

    def finish(self) -> None:
        """Notes conditionals that the header leaves open."""
        for _, _, line, text in self._stack:
            self.unit.skip_at(line, text, "conditional is not closed before the end of the file")
