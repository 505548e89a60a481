"""Owns the small language of sizes and relations: parsed once, evaluated over named values.

Arithmetic, comparisons, `and`/`or`/`not`, `in`, conditionals and the functions of `FUNCTIONS`;
everything else is refused when it is parsed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import Any, Final, Protocol

import numpy as np

from .errors import DeclarationError
from .values import ScalarValue


class Named(Protocol):
    """What gives the sizes and parameters of a call by name."""

    def __getitem__(self, name: str, /) -> Any: ...


def _shape(value: Any) -> tuple[int, ...]:
    first = value[0] if isinstance(value, list) and value else value
    return tuple(getattr(first, "shape", ()))


def _values(value: Any) -> Any:
    content = getattr(value, "values", value)
    whole = content() if callable(content) else content
    return np.asarray(whole if whole is not None else ())


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "ceil": _ceil,
    "rank": lambda x: len(_shape(x)),
    "size": lambda x: prod(_shape(x)),
    "dim": lambda x, i: _shape(x)[i] if -len(_shape(x)) <= i < len(_shape(x)) else 1,
    "len": lambda x: len(x) if isinstance(x, list | tuple) else 0,
    "given": lambda x: x is not None,
    "dtype": lambda x: getattr(x[0] if isinstance(x, list) and x else x, "dtype", ""),
    "floating": lambda x: any(w in getattr(x, "dtype", "") for w in ("float", "complex")),
    "largest": lambda x: int(_values(x).max(initial=0)),
    "total": lambda x: int(_values(x).sum()),
    "unique": lambda x: len(np.unique(_values(x))) == _values(x).size,
    "load": lambda x: int(np.bincount(_values(x).reshape(-1).clip(0)).max(initial=0)),
    "min": min, "max": max, "abs": abs, "sum": sum, "any": any, "all": all,
}  # fmt: skip
_NODES: Final = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.Name,
    ast.Constant, ast.Load, ast.IfExp, ast.Tuple, ast.operator, ast.unaryop, ast.boolop,
    ast.cmpop, ast.Subscript,
)  # fmt: skip


class Expression:
    """One parsed expression; `names` are what it reads."""

    __slots__ = ("_code", "_name", "names", "text")

    def __init__(self, text: str) -> None:
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError as error:
            raise DeclarationError(f"{text!r} is no expression: {error.msg}") from None
        called = {n.func.id for n in ast.walk(tree)
                  if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}  # fmt: skip
        for node in ast.walk(tree):
            if not isinstance(node, _NODES):
                raise DeclarationError(f"{text!r}: {type(node).__name__} is not supported")
        if unknown := called - set(FUNCTIONS):
            raise DeclarationError(f"{text!r}: no function {sorted(unknown)[0]!r}; there are "
                                   f"{', '.join(FUNCTIONS)}")  # fmt: skip
        self.text = text.strip()
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        self.names = frozenset(names - called)
        self._code = compile(tree, f"<{text}>", "eval")
        # Most are one name, which needs no evaluation.
        self._name = self.text if isinstance(tree.body, ast.Name) else ""

    def __call__(self, values: Named) -> Any:
        """The value; a name that `values` lacks is a KeyError."""
        if self._name:
            value = values[self._name]
            return value.value if isinstance(value, ScalarValue) else value
        return eval(self._code, _GLOBALS, _Names(values))

    def __repr__(self) -> str:
        return self.text


_GLOBALS: Final = {"__builtins__": {}, **FUNCTIONS}


class _Names(Mapping[str, Any]):
    """Names of an expression, looked up as it is evaluated; a scalar is its number."""

    def __init__(self, values: Named) -> None:
        self._known = values

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __getitem__(self, name: str) -> Any:
        if name in FUNCTIONS:
            raise KeyError(name)
        value = self._known[name]
        return value.value if isinstance(value, ScalarValue) else value


@lru_cache(4096)
def expression(text: str) -> Expression:
    """The parsed expression of a text."""
    return Expression(text)
