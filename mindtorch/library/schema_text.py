"""Owns what torch's parser says of the schema of a user's operator that it does not take.

`check("add(Tensor x, int n=1) -> Tensor")` reads the text token by token, as torch does, and
raises RuntimeError with the place of the first that is not expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from .._tensor import dtype as dtypes
from ..ops.function_schema import FunctionSchema, function_schema
from ..ops.schema import SchemaError

_TOKENS = re.compile(
    r"(?P<space>\s+)|(?P<arrow>->)|(?P<dots>\.\.\.)|(?P<string>\"[^\"]*\"|'[^']*')"
    r"|(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?j?)|(?P<ident>[A-Za-z_]\w*)"
    r"|(?P<sign>[(){}\[\],.:=?!*|+\-])"
)
_TYPES = frozenset((
    "Any", "AnyEnumType", "ConstQuantizerPtr", "Device", "DeviceIndex", "DeviceObjType", "Dict",
    "Dimname", "Future", "Generator", "Layout", "MemoryFormat", "None", "NoneType", "QScheme",
    "Scalar", "ScalarType", "Storage", "Stream", "SymBool", "SymInt", "Tensor", "bool", "complex",
    "float", "int", "real", "str",
))  # fmt: skip
_VALUES = frozenset((
    "None", "True", "False", "cpu", "strided", "Mean", "contiguous_format", "long", "float",
    *(name for name, value in vars(dtypes).items() if isinstance(value, dtypes.dtype)),
))  # fmt: skip
_UNKNOWN = (
    "unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool,"
    " Scalar; for a full list, please see "
    "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func "
)
_DOUBLE = (
    "Use `float` instead of `double` in an operator's schema string. `float` in schema corresponds"
    " to the double type in C++"
)


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            raise RuntimeError(
                f"expected a valid token but found '{text[at]}' here:\n{_marked(text, at, 1)}"
            )
        kind = match.lastgroup or ""
        if kind != "space":
            tokens.append(_Token(match[0] if kind == "sign" else kind, match[0], at))
        at = match.end()
    return [*tokens, _Token("eof", "", len(text))]


def _marked(text: str, start: int, length: int) -> str:
    """The text with a token underlined; the end of the text has no line."""
    return f"{text}\n{' ' * start}{'~' * length} <--- HERE\n" if length else text


class _SchemaReader:
    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at = text, _tokens(text), 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def refuse(self, what: str) -> NoReturn:
        _, text, start = self.token
        raise RuntimeError(f"\n{what}:\n{_marked(self.text, start, len(text))}")

    def expect(self, kind: str) -> str:
        actual, text, start = self.token
        if actual != kind:
            place = _marked(self.text, start, len(text)) or ""
            raise RuntimeError(f"expected {kind} but found '{actual}' here:\n{place}")
        self.at += 1
        return text

    def takes(self, kind: str) -> bool:
        """Whether the next token is of a kind; then it is behind."""
        is_next = self.token.kind == kind
        self.at += is_next
        return is_next

    def name(self) -> None:
        self.expect("ident")
        if self.takes(":"):
            self.expect(":")
            self.expect("ident")
        if self.takes("."):
            self.expect("ident")

    def kind_of_value(self) -> str:
        """A type with its marks; gives its first word."""
        if self.takes("("):
            self.several(self.kind_of_value)
            return "tuple"
        word = self.token.text
        if self.token.kind == "ident" and word not in _TYPES and word != "__torch__":
            self.refuse(_DOUBLE if word == "double" else _UNKNOWN)
        self.expect("ident")
        if word == "__torch__":
            while self.takes("."):
                self.expect("ident")
        elif word in ("Dict", "Future"):
            self.expect("(")
            self.several(self.kind_of_value)
        elif self.takes("("):
            self.alias()
        while self.token.kind in ("?", "["):
            if self.takes("["):
                if not self.takes("]"):
                    self.expect("number")
                    self.expect("]")
                if self.takes("("):
                    self.alias()
            else:
                self.expect("?")
        return word

    def alias(self) -> None:
        """`a!)`, `a -> *)` or `a|b)` after the bracket."""
        if not self.takes("*"):
            self.expect("ident")
            while self.takes("|"):
                self.expect("ident")
            self.takes("!")
        if self.takes("arrow") and not self.takes("*"):
            self.expect("ident")
        self.expect(")")

    def several(self, read: Callable[[], object]) -> None:
        """Items between commas up to the bracket."""
        if self.takes(")"):
            return
        read()
        while self.takes(","):
            read()
        self.expect(")")

    def argument(self) -> None:
        if self.takes("*") or self.takes("dots"):
            return
        word = self.kind_of_value()
        self.expect("ident")
        if self.takes("="):
            self.default(word)

    def default(self, word: str) -> None:
        if self.takes("["):
            if not self.takes("]"):
                self.default(word)
                while self.takes(","):
                    self.default(word)
                self.expect("]")
        elif self.token.kind == "ident":
            value = self.expect("ident")
            if value not in _VALUES and not (word == "float" and value in ("inf", "nan")):
                self.refuse("invalid numeric default value")
        elif not self.takes("string"):
            self.takes("-")
            self.expect("number")

    def result(self) -> None:
        if not self.takes("dots"):
            self.kind_of_value()
            self.takes("ident")


def check(text: str) -> None:
    """RuntimeError, in the words of torch's parser, for a schema that it does not take."""
    reader = _SchemaReader(text)
    reader.name()
    if reader.token.kind == "eof":
        raise RuntimeError("Tried to parse a function schema but only the operator name was given")
    if reader.token.kind != "(":
        reader.expect("eof")
    reader.expect("(")
    reader.several(reader.argument)
    reader.expect("arrow")
    if reader.takes("("):
        reader.several(reader.result)
    else:
        reader.result()
    reader.expect("eof")


def parse_schema(schema: str) -> FunctionSchema:
    """The schema that a text says, `space::name(Tensor x) -> Tensor`; RuntimeError, in the words
    of torch's parser, for another text, or for a type that operators here do not take."""
    check(schema)
    head, bracket, rest = schema.partition("(")
    space, _, name = head.rpartition("::")
    try:
        return function_schema(space, name + bracket + rest)
    except SchemaError as error:
        raise RuntimeError(str(error)) from None
