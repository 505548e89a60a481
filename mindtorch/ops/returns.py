"""Owns the named tuples of rows with several named results: torch.return_types, by schema."""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Sequence
from functools import cache
from typing import Any

from .spec import Op, overloads


def named_tuple(op: Op, end: str = "") -> Any:
    """The class of an op's results, with `end` of its `out=` form's; None where it has one, or they
    have no names."""
    names = [r.name for r in op.schema.returns]
    if len(names) < 2 or not all(names) or not op.places:
        return None
    return named_kind(op.base_name + end, tuple(names))


@cache
def named_kind(name: str, fields: tuple[str, ...]) -> Any:
    """The class of results of these names, as `torch.return_types.{name}`."""

    def text(self: tuple[Any, ...]) -> str:
        parts = (f"{n}={v!r}" for n, v in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n" + ",\n".join(parts) + ")"

    def new(cls: Any, *results: Any) -> Any:
        """Of one sequence, as in torch, or of the results, as other named tuples."""
        sequence = results if len(results) > 1 else results[0] if results else None
        if not isinstance(sequence, Sequence):
            raise TypeError("constructor requires a sequence")
        if len(sequence) != len(fields):
            raise TypeError(
                f"torch.return_types.{name}() takes a {len(fields)}-sequence"
                f" ({len(sequence)}-sequence given)"
            )
        return tuple.__new__(cls, sequence)

    base = namedtuple(name, fields)  # type: ignore[misc]
    return type(name, (base,), {
        "__slots__": (),
        "__new__": new,
        "__getnewargs__": lambda self: (tuple(self),),
        # `torch` where mindtorch stands in for it.
        "__module__": f"{sys.modules['mindtorch'].__name__}.return_types",
        "__doc__": f"What torch.{name} gives: {', '.join(fields)}.",
        "__repr__": text,
        "n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0,
    })  # fmt: skip


def by_name(name: str) -> Any:
    """The class called `name`; None where no row gives it."""
    end = "_out" if name.endswith("_out") else ""
    kinds = (named_tuple(op, end) for op in overloads(name.removesuffix(end)))
    return next((kind for kind in kinds if kind is not None), None)
