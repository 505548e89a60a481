"""Owns operators that torch defines in the language itself: a call is replaced by their steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from .graph import Graph, ScriptValue
from .kinds import ScriptType
from .schemas import ScriptDeclaration, operators, parse

Step = tuple[str, tuple[str | int, ...]]  # an operator, and letters of parameters, "_", constants
_NUMBERS = ("float", "int", "complex")
_REAL = ("float", "int")
# An operator: types of the number that comes first, the line in torch's text, the steps. "_" is the
# step before.
_OF_NUMBER: dict[str, tuple[tuple[str, ...], int, tuple[Step, ...]]] = {
    "mul": (_NUMBERS, 3, (("mul", ("b", "a")),)),
    "add": (_NUMBERS, 5, (("add", ("b", "a", 1)),)),
    "ne": (_NUMBERS, 7, (("ne", ("b", "a")),)),
    "eq": (_NUMBERS, 9, (("eq", ("b", "a")),)),
    "sub": (_NUMBERS, 11, (("neg", ("b",)), ("add", ("_", "a", 1)))),
    "div": (_NUMBERS, 13, (("reciprocal", ("b",)), ("mul", ("_", "a")))),
    "lt": (_REAL, 3, (("gt", ("b", "a")),)),
    "le": (_REAL, 5, (("ge", ("b", "a")),)),
    "gt": (_REAL, 7, (("lt", ("b", "a")),)),
    "ge": (_REAL, 9, (("le", ("b", "a")),)),
}
_OF_TENSOR: dict[str, tuple[str, int, tuple[Step, ...]]] = {
    "aten::floordiv": ("floordiv(Tensor a, {} b) -> Tensor", 3, (("floor_divide", ("a", "b")),)),
    "prim::ndim": ("ndim(Tensor a) -> int", 3, (("dim", ("a",)),)),
    "prim::T": ("T(Tensor a) -> Tensor", 5, (("numpy_T", ("a",)),)),
    "prim::H": ("H(Tensor a) -> Tensor", 7, (("matrix_H", ("a",)),)),
    "aten::__contains__": (
        "__contains__(str a, str b) -> bool",
        5,
        (("len", ("a",)), ("find", ("a", "b", 0, "_")), ("ne", ("_", -1))),
    ),
    "prim::shape": ("shape(Tensor a) -> int[]", 13, (("size", ("a",)),)),
}


@cache
def _table() -> dict[str, list[tuple[ScriptDeclaration, int, tuple[Step, ...]]]]:
    table: dict[str, list[tuple[ScriptDeclaration, int, tuple[Step, ...]]]] = {}
    for name, (numbers, line, steps) in _OF_NUMBER.items():
        rows = [(parse(f"{name}({n} a, Tensor b) -> Tensor"), line, steps) for n in numbers]
        table[f"aten::{name}"] = rows
    for name, (text, line, steps) in _OF_TENSOR.items():
        seconds = ("Tensor", "Scalar") if "{}" in text else ("",)
        table[name] = [(parse(text.format(s)), line, steps) for s in seconds]
    return table


def inlined_schemas(name: str) -> list[ScriptDeclaration]:
    """The declarations of an operator's forms in the language."""
    return [row[0] for row in _table().get(name, ())]


def insert_inlined(
    graph: Graph, schema: ScriptDeclaration, inputs: Sequence[ScriptValue]
) -> ScriptValue:
    """The result of such a form's steps, inserted."""
    rows = next(r for r in _table().values() if any(schema is s for s, _, _ in r))
    line, steps = next((n, t) for s, n, t in rows if s is schema)
    numbers = [v for _, reads in steps for v in reads if isinstance(v, int)]
    constants: dict[str | int, ScriptValue] = {v: graph.constant(v) for v in numbers}
    values: dict[str | int, ScriptValue] = {**constants, **dict(zip("ab", inputs, strict=False))}
    for name, reads in steps:
        operator = f"aten::{name}"
        arguments = [values[t] for t in reads]
        kinds = [v.kind for v in arguments]
        local = [s for s in operators(operator) if len(s.arguments) == len(arguments)]
        known = next(
            s for s in local if all(map(ScriptType.is_a, kinds, (a.kind for a in s.arguments)))
        )
        place = ("<string>", line, 9)
        node = graph.insert(operator, arguments, known.returns, place, schema=known)
        values["_"] = node.output
    return values["_"]
