"""Owns what a call says that lacks an argument: torch's words, which Python's own are not.

Entries have a `Missing` where Python would have no default, so that the call reaches them; what
finds no plan for it, or runs a composite, asks `refuse_missing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ops.schema import Arg, Kind
from ..ops.spec import Op


class Missing:
    """Stands for an argument that a call of a form did not give."""

    __slots__ = ("end", "method")

    def __init__(self, form: str) -> None:
        self.method = form != "function"
        self.end = "_" if form == "inplace" else ""

    def __repr__(self) -> str:
        return "<required>"


# By the name that it has in the text of an entry.
MARKS = {f"OF_{form.upper()}": Missing(form) for form in ("function", "method", "inplace")}
UNGIVEN: Any = MARKS["OF_FUNCTION"]
# Factors that torch took in front of a tensor once: of these rows its errors show the signature.
_FACTORS = frozenset(("alpha", "beta", "value"))
_DISPLAY_LIMIT = {"Scalar": "Number", "ScalarType": "torch.dtype", "int[]": "tuple of ints",
          "Tensor[]": "tuple of Tensors"}  # fmt: skip


def before_missing(values: Sequence[Any]) -> list[Any]:
    """The values in front of the first missing one."""
    classes = [v.__class__ for v in values]
    return list(values[: classes.index(Missing)] if Missing in classes else values)


def refuse_missing(op: Op, values: Sequence[Any]) -> None:
    """TypeError in torch's words where a value of the schema's arguments is missing."""
    lacking = next((v for v in values if v.__class__ is Missing), None)
    if lacking is None:
        return
    name = op.base_name + lacking.end
    pairs = list(zip(op.schema.args, values, strict=True))
    if lacking.method:
        pairs = [(a, v) for a, v in pairs if a.name != "self"]
    absent = [_name(a) for a, v in pairs if v.__class__ is Missing]
    if any(a.keyword_only and a.name in _FACTORS for a in op.schema.args):
        end = "" if lacking.method else ", Tensor out = None"
        expected = f"but expected ({_signature(op, lacking.method)}{end})"
    elif any(a.kind is Kind.UNION for a in op.schema.args) and op.base_name != "mul":
        expected = f"but expected one of:\n * ({_signature(op, lacking.method)})"
    else:
        names = ", ".join(f'"{n}"' for n in absent)
        one = "s" * (len(absent) == 1)  # sic
        raise TypeError(
            f"{name}() missing {len(absent)} required positional argument{one}: {names}"
        )
    types = ", ".join(
        type(v).__name__
        for a, v in pairs
        if v.__class__ is not Missing and not (a.has_default and v is a.default)
    )
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({types}), {expected}"
    )


def _name(arg: Arg) -> str:
    return "input" if arg.name == "self" else arg.name


def _signature(op: Op, method: bool) -> str:
    parts = []
    for arg in op.schema.args:
        if arg.name == "self" and method:
            continue
        if arg.keyword_only and "*" not in parts:
            parts.append("*")
        kind = "Tensor" if arg.kind is Kind.UNION else _DISPLAY_LIMIT.get(arg.type, arg.type)
        parts.append(f"{kind} {_name(arg)}" + (f" = {arg.default}" if arg.has_default else ""))
    return ", ".join(parts)
