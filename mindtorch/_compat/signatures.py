"""Owns torch's signatures by name: `add` is a function, `.add` a method.

`_VF.einsum` is what the function of Python calls in C.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence

from .._tensor.text_files import text_beside
from ..ops.source import compiled
from .argument_parser import FunctionSignature, signature

_OUT = re.compile(r"(, \*)?, Tensor(List)?(\[\d\])? out=None")


@functools.cache
def _table() -> dict[str, list[str]]:
    return parsed(text_beside(__file__, "signatures.txt"))


def parsed(text: str) -> dict[str, list[str]]:
    """The table of a text: `abs neg: F(Tensor input)`, then further signatures indented. `F` is
    the name without `.` or `_VF.` in front."""
    table: dict[str, list[str]] = {}
    names: list[str] = []
    for line in text.splitlines()[1:]:
        heading, _, row = ("", "", line[1:]) if line[0] == " " else line.partition(": ")
        names = heading.split() or names
        for name in names:
            table.setdefault(name, []).append(
                re.sub(r"\bF\b", name.rpartition(".")[2], row, count=1)
            )
    return table


def derived(name: str, table: Mapping[str, Sequence[str]]) -> list[str]:
    """A method's signatures from those of its function, those in place from the others'."""
    if name[-1] == "_" and name[:4] != "_VF.":
        plain = [_OUT.sub("", row) for row in rows_of(name[:-1], table)]
        return [re.sub(r"^((?:no |one )?[\w.]+)", r"\1_", row) for row in plain]
    if name[0] != ".":
        return []
    methods = [_OUT.sub("", r) for r in table.get(name[1:], ()) if "(Tensor input" in r]
    short = [re.sub(r"\(Tensor input(, )?", "(", row) for row in methods]
    alone = len(short) == 1 and "()" in short[0]
    return [f"no TensorBase{name}"] if alone else short


def rows_of(name: str, table: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines of a name, written or derived."""
    return list(table.get(name, ())) or derived(name, table)


@functools.cache
def python_function(name: str) -> Callable[..., None] | None:
    """A function that takes what torch's function of Python by this name takes."""
    rows = rows_of(name, _table())
    if len(rows) != 1 or not rows[0].startswith("def "):
        return None
    full, _, parameters = rows[0].removeprefix("def ").partition("(")
    function: Callable[..., None] = compiled(f"def bound({parameters}:\n    pass\n", f"{full}", {})
    function.__name__, function.__qualname__ = full.rpartition(".")[2], full
    return function


@functools.cache
def signatures_of(name: str) -> tuple[FunctionSignature, ...]:
    """The signatures of a name; () for what torch parses in Python, or not at all."""
    return tuple(signature(r) for r in rows_of(name, _table()) if "(" in r and r[:4] != "def ")


@functools.cache
def counted_by_python(name: str) -> tuple[str, int] | None:
    """The full name and the number of arguments, 0 or 1, of what takes no keywords."""
    rows = rows_of(name, _table())
    if len(rows) != 1 or "(" in rows[0]:
        return None
    kind, _, full = rows[0].partition(" ")
    return full, int(kind == "one")


@functools.cache
def takes_out(name: str) -> bool:
    """Whether a function has `out=`, by its parameters where torch has it in Python; functions of
    C are asked by their parser, before they run."""
    function = python_function(name)
    return function is None or "out" in function.__code__.co_varnames
