"""Owns the schema language: torch's native_functions syntax to frozen data, and back to nothing.

`add.Tensor(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor`

Our one extension is the union `Tensor|Scalar`: torch gives such ops two overloads.
`Tensor(a)` marks a view of, and `Tensor(a!)` a write to, what `a` names.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any


class ArgKind(Enum):
    """What an argument is, as far as keys, checks and kernels care."""

    TENSOR = "Tensor"
    OPTIONAL_TENSOR = "Tensor?"
    TENSORS = "Tensor[]"
    OPTIONAL_TENSORS = "Tensor?[]"
    UNION = "Tensor|Scalar"
    SCALAR = "Scalar"
    INTS = "int[]"
    ATTR = "attribute"


@dataclass(frozen=True, slots=True)
class SchemaArgument:
    """One argument: `type` is the schema's text without alias mark or `?`."""

    name: str
    type: str
    kind: ArgKind
    optional: bool
    has_default: bool
    default: Any
    keyword_only: bool
    alias: str
    writes: bool
    size: int | None = None

    def is_left(self, value: object) -> bool:
        """Whether `value` is a number that the call left as the schema says it: the key and the
        plan then know it by itself, other numbers by their class."""
        return self.counts_default and value is self.default

    @property
    def counts_default(self) -> bool:
        return self.kind is ArgKind.SCALAR and isinstance(self.default, int | float | complex)


@dataclass(frozen=True, slots=True)
class Return:
    """One result: `list` is true for `Tensor[]`; `alias` names the input that it views."""

    name: str
    type: str
    alias: str
    list: bool


@dataclass(frozen=True, slots=True)
class Schema:
    """A parsed schema."""

    text: str
    name: str
    overload: str
    args: tuple[SchemaArgument, ...]
    returns: tuple[Return, ...]
    is_view: bool  # asked of every recorded call

    @property
    def mutates(self) -> bool:
        return any(a.writes for a in self.args)


class SchemaError(ValueError):
    """A schema text that does not parse; the message shows the part."""


_HEAD = re.compile(r"^([A-Za-z_0-9]+)(?:\.([A-Za-z_0-9]+))?\((.*)\)\s*->\s*(.*)$", re.S)
_ARG = re.compile(
    r"^(Tensor\|Scalar|[A-Za-z_]+)(?:\(([a-z]\d*)(!)?\))?(\?)?(?:\[(\d*)\])?(\?)?"
    r"\s+([A-Za-z_][A-Za-z_0-9]*)\s*(?:=\s*(.+))?$",
    re.S,
)
_RETURN = re.compile(r"^([A-Za-z]+)(?:\(([a-z]\d*)!?\))?(\[\])?(?:\s+([A-Za-z_0-9]+))?$")


def parse(text: str) -> Schema:
    """Parse one schema; SchemaError names the part that is not understood."""
    head = _HEAD.match(text.strip())
    if head is None:
        raise SchemaError(f"schema: expected 'name(args) -> returns', got {text!r}")
    name, overload, arg_text, return_text = head.groups()
    args: list[SchemaArgument] = []
    keyword_only = False
    for part in _split(arg_text):
        if part == "*":
            keyword_only = True
            continue
        arg = _parse_arg(part, keyword_only)
        if arg is None:
            raise SchemaError(f"schema: argument {part!r} not understood in {text!r}")
        args.append(arg)
    returns = _parse_returns(return_text, text)
    is_view = any(r.alias for r in returns) and not any(a.writes for a in args)
    return Schema(text, name, overload or "", tuple(args), returns, is_view)


def names_in(text: str) -> tuple[str, ...]:
    """Names of a schema's arguments, then of its results; of a single one "out"."""
    arguments, _, returns = text.partition("(")[2].rpartition(") ->")
    parts = [part.partition("=")[0] for part in _split(arguments) if part != "*"]
    results = _split(returns.strip()[1:-1]) if "(" in returns and "," in returns else ["out"]
    return tuple(part.split()[-1] for part in (*parts, *results))


@cache
def _parse_arg(part: str, keyword_only: bool) -> SchemaArgument | None:
    """An argument, of which schemas share most; None where it is not understood."""
    match = _ARG.match(part)
    if match is None:
        return None
    base, alias, write, inner, size, optional, name, default = match.groups()
    is_list = size is not None
    is_optional = bool(optional) or (bool(inner) and not is_list)
    return SchemaArgument(
        name=name,
        type=base + ("[]" if is_list else ""),
        kind=_kind(base, is_list, is_optional, bool(inner)),
        optional=is_optional,
        has_default=default is not None,
        default=_default(default) if default is not None else None,
        keyword_only=keyword_only,
        alias=alias or "",
        writes=bool(write),
        size=int(size) if size else None,
    )


def _kind(base: str, is_list: bool, optional: bool, inner_optional: bool) -> ArgKind:
    if base == "Tensor|Scalar":
        return ArgKind.UNION
    if base == "Tensor" and is_list:
        return ArgKind.OPTIONAL_TENSORS if inner_optional else ArgKind.TENSORS
    if base == "Tensor":
        return ArgKind.OPTIONAL_TENSOR if optional else ArgKind.TENSOR
    if base == "Scalar" and not is_list:
        return ArgKind.SCALAR
    if base in ("int", "SymInt") and is_list:
        return ArgKind.INTS
    return ArgKind.ATTR


_WORDS = {"None": None, "True": True, "False": False, "inf": float("inf")}


def _default(text: str) -> Any:
    text = text.strip()
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("["):
        return tuple(_default(t) for t in _split(text[1:-1]))
    if text[0] in "'\"":
        return text[1:-1]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text  # the name of a dtype


def _parse_returns(text: str, whole: str) -> tuple[Return, ...]:
    text = text.strip()
    if text == "()":
        return ()
    returns = []
    for part in _split(text[1:-1] if text.startswith("(") else text):
        match = _RETURN.match(part)
        if match is None:
            raise SchemaError(f"schema: result {part!r} not understood in {whole!r}")
        base, alias, brackets, name = match.groups()
        returns.append(Return(name or "", base, alias or "", bool(brackets)))
    return tuple(returns)


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts = [part.strip() for part in _COMMA.split(text)]
    return parts if parts[-1] else parts[:-1]


_COMMA = re.compile(r",(?![^(\[]*[)\]])")
