"""Owns what a call says that lacks an argument: torch's words, which Python's own are not.

Entries have a `Missing` where Python would have no default, so that the call reaches them; what
finds no plan for it, or runs a composite, asks `refuse_missing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ops.spec import Op


class Missing:
    """Stands for an argument that a call of a form did not give."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<required>"


# By the name that it has in the text of an entry.
MARKS = {f"OF_{form.upper()}": Missing() for form in ("function", "method", "inplace")}
UNGIVEN: Any = MARKS["OF_FUNCTION"]


def before_missing(values: Sequence[Any]) -> list[Any]:
    """The values in front of the first missing one."""
    classes = [v.__class__ for v in values]
    return list(values[: classes.index(Missing)] if Missing in classes else values)


def refuse_missing(op: Op, values: Sequence[Any]) -> None:
    """TypeError where a value of the schema's arguments is missing."""
    absent = [a.name for a, v in zip(op.schema.args, values, strict=True) if v.__class__ is Missing]
    if absent:
        names = ", ".join(f'"{"input" if n == "self" else n}"' for n in absent)
        one = "s" * (len(absent) == 1)  # sic
        raise TypeError(
            f"{op.base_name}() missing {len(absent)} required positional argument{one}: {names}"
        )
