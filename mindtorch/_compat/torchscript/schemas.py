"""Owns declarations: of torch's operators and functions, and of what a program defines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mindtorch._tensor.text_files import text_beside

from .kinds import DEVICE, INT, STR, ScriptType, list_of, optional


class MISSING:
    """The default of a parameter that has none."""


_SAME = {"ScalarType": INT, "Layout": INT, "MemoryFormat": INT, "SymInt": INT, "QScheme": INT,
         "Device": DEVICE, "number": ScriptType("Scalar")}  # fmt: skip


@dataclass
class ScriptArgument:
    """A parameter: `length` is that of a list that one number may stand for."""

    name: str
    kind: ScriptType
    default: Any = MISSING
    length: int | None = None
    keyword: bool = False
    mutated: bool = False


@dataclass(repr=False)
class ScriptDeclaration:
    """A declaration."""

    name: str
    overload: str
    arguments: list[ScriptArgument]
    returns: list[ScriptType]
    return_names: list[str] = field(default_factory=list)
    variadic: bool = False
    aliases: bool = False
    text: str = ""

    def __str__(self) -> str:
        parts = []
        for argument in self.arguments:
            if argument.keyword and "*" not in parts:
                parts.append("*")
            kind, value = argument.kind, argument.default
            text = f"{kind.annotation() if kind.fields else kind} {argument.name}"
            if isinstance(value, tuple):
                text += f"=({', '.join(map(str, value))})"
            elif value is not MISSING:
                text += f"={constant_text(value, kind)}"
            parts.append(text)
        result = ", ".join(str(r) for r in self.returns)
        if len(self.returns) != 1 or result.startswith("("):
            result = f"({result})"
        return f"{self.name}({', '.join(parts)}) -> {result}"

    __repr__ = __str__


def float_text(value: float) -> str:
    """A floating number as TorchScript writes it: 17 digits, and a point."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    text = f"{value:.17g}"
    return text if any(c in text for c in ".en") else text + "."


def quoted(text: str) -> str:
    """A text in double quotes."""
    table = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t",
             "\r": "\\r", "\f": "\\f", "\v": "\\v"}  # fmt: skip
    return '"' + "".join(table.get(c, c if c >= " " else f"\\{ord(c):03o}") for c in text) + '"'


def constant_text(value: Any, kind: ScriptType | None = None) -> str:
    """A constant as a declaration and a program write it."""
    match value:
        case bool() | None:
            return str(value)
        case int() if kind is not None and kind.kind == "float":
            return float_text(float(value))
        case float():
            return float_text(value)
        case complex():
            return f"{float_text(value.real)}+{float_text(value.imag)}j"
        case str():
            return quoted(value)
        case list():
            inner = kind.args[0] if kind is not None and kind.kind == "List" else None
            if not value:
                return f"annotate(List[{inner.annotation() if inner else 'int'}], [])"
            return f"[{', '.join(constant_text(v, inner) for v in value)}]"
        case tuple():
            kinds = kind.args if kind is not None and kind.args else [None] * len(value)
            inner_text = ", ".join(constant_text(v, k) for v, k in zip(value, kinds, strict=True))
            return f"({inner_text}{',' if len(value) == 1 else ''})"
    return str(value)


class _DeclarationReader:
    """Reads one declaration from its text."""

    def __init__(self, text: str):
        self.text, self.at = text, 0

    def take(self, *ends: str) -> str:
        """The next letters, up to one of `ends`."""
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in "".join(ends):
            self.at += 1
        return self.text[start : self.at].strip()

    def skip(self, token: str) -> bool:
        """Whether `token` comes next; it is passed by."""
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1
        hit = self.text.startswith(token, self.at)
        self.at += len(token) * hit
        return hit

    def kind(self) -> tuple[ScriptType, int | None, bool, bool]:
        """A type, the length of its list, whether it has an alias, whether it is written."""
        if self.skip("("):
            parts = []
            while not self.skip(")"):
                parts.append(self.kind()[0])
                self.skip(",")
            result = ScriptType("Tuple", parts)
        else:
            start = self.at
            while self.at < len(self.text) and (
                self.text[self.at].isalnum() or self.text[self.at] in "_."
            ):
                self.at += 1
            name = self.text[start : self.at]
            if name in ("Dict", "Future", "RRef", "Await", "Union"):
                self.skip("(")
                parts = []
                while not self.skip(")"):
                    parts.append(self.kind()[0])
                    self.skip(",")
                result = ScriptType(name, parts)
            elif len(name) <= 4 and name[:1] == "t" and name not in ("type",):
                result = ScriptType("Var", name=name)
            else:
                result = _SAME.get(name) or ScriptType(name)
        length, alias, mutated = None, False, False
        while self.at < len(self.text):
            if self.text.startswith("[", self.at):
                self.at += 1
                number = self.take("]")
                self.at += 1
                length = int(number) if number else None
                result = list_of(result)
            elif self.text.startswith("?", self.at):
                self.at += 1
                result = optional(result)
            elif self.text.startswith("(", self.at):
                mutated |= "!" in self.take(")")
                alias = True
                self.at += 1
            else:
                break
        return result, length, alias, mutated

    def default(self) -> Any:
        """The default that comes next."""
        start, depth, quote = self.at, 0, ""
        while self.at < len(self.text):
            letter = self.text[self.at]
            if quote:
                quote = "" if letter == quote else quote
            elif letter in "\"'":
                quote = letter
            elif letter in "[(":
                depth += 1
            elif letter == "," and not depth:
                break
            elif letter in "])":
                if not depth:
                    break
                depth -= 1
            self.at += 1
        text = self.text[start : self.at].strip()
        named = {"Mean": 1, "contiguous_format": 0, "strided": 0, "long": 4}
        return named[text] if text in named else ast.literal_eval(text)


def parse(text: str) -> ScriptDeclaration:
    """A declaration: `name.overload(arguments) -> returns`."""
    head, _, rest = text.partition("(")
    space, separator, name = head.rpartition("::")
    name, _, overload = name.partition(".") if not head.startswith("torch.") else (head, "", "")
    reader = _DeclarationReader(rest)
    schema = ScriptDeclaration(space + separator + name, overload, [], [])
    schema.text = text if "::" in text or text.startswith("torch.") else f"aten::{text}"
    keyword = False
    while not reader.skip(")"):
        if reader.skip("*,"):
            keyword = True
        elif reader.skip("..."):
            schema.variadic = True
        else:
            kind, length, alias, mutated = reader.kind()
            reader.skip(" ")
            argument = ScriptArgument(
                reader.take(",", "=", ")"), kind, MISSING, length, keyword, mutated
            )
            schema.aliases |= alias
            if reader.skip("="):
                argument.default = reader.default()
                if length and not text.startswith("torch.") and type(argument.default) is int:
                    argument.default = [argument.default] * length
                if argument.default == "none" and kind != STR:
                    argument.default = None
            schema.arguments.append(argument)
        reader.skip(",")
    reader.skip("->")
    several = reader.skip("(")
    if several and reader.text[reader.at] == "(":  # one tuple, in brackets
        schema.returns.append(reader.kind()[0])
        return schema
    while reader.at < len(reader.text) and not (several and reader.skip(")")):
        schema.returns.append(reader.kind()[0])
        reader.skip(" ")
        returned = reader.take(",", ")")
        if returned:
            schema.return_names.append(returned)
        reader.skip(",")
    return schema


def _lines(name: str) -> Iterator[str]:
    text = text_beside(__file__, name)
    return (line for line in text.splitlines() if not line.startswith("#"))


@cache
def _texts() -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for line in _lines("operators.txt"):
        heads, _, rest = line.partition(": ")
        for head in heads.split():
            name = head.partition(".")[0]
            table.setdefault(name if "::" in name else f"aten::{name}", []).append(head + rest)
    return table


@cache
def operators(name: str) -> list[ScriptDeclaration]:
    """The overloads of an operator, `aten::add` or `prim::min`, in the order of their trial."""
    return [parse(text) for text in _texts().get(name, ())]


def has_operator(name: str) -> bool:
    """Whether there is an operator of that name."""
    return name in _texts()


@cache
def _functions() -> dict[str, list[tuple[str, str]]]:
    table: dict[str, list[tuple[str, str]]] = {}
    for line in _lines("functions.txt"):
        head, _, schema = line.partition(" = ")
        name, _, flag = head.partition(" ")
        table.setdefault(name, []).append((flag, schema))
    return table


def function_schemas(name: str) -> tuple[str, list[ScriptDeclaration]]:
    """torch's function of Python: the argument that chooses, and one declaration or two of them."""
    rows = _functions().get(name, [])
    return (rows[0][0] if rows else ""), [parse(text) for _, text in rows]
