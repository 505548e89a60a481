"""Owns the structure sequences of rows with several named results (torch.return_types)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from operator import itemgetter
from typing import Any

from .spec import OPS, Op, overloads


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

    def new(cls: Any, *args: Any, **named: Any) -> Any:
        """Of one sequence, as CPython's structure sequences are made."""
        if not args and "sequence" not in named:
            raise TypeError("structseq() missing required argument 'sequence' (pos 1)")
        sequence = args[0] if args else named["sequence"]
        if not isinstance(sequence, Sequence):
            raise TypeError("constructor requires a sequence")
        if len(sequence) != len(fields):
            raise TypeError(
                f"torch.return_types.{name}() takes a {len(fields)}-sequence"
                f" ({len(sequence)}-sequence given)"
            )
        return tuple.__new__(cls, sequence)

    def absent(self: object, field: str, *_: object) -> None:
        text = f"'torch.return_types.{name}' object has no attribute '{field}'"
        raise AttributeError("readonly attribute" if field in fields else text)

    return type(name, (tuple,), {
        "__slots__": (),
        "__new__": new,
        "__getattr__": absent, "__setattr__": absent,
        "__reduce__": lambda self: (type(self), (tuple(self), {})),
        # `torch` where mindtorch stands in for it.
        "__module__": f"{sys.modules['mindtorch'].__name__}.return_types",
        "__match_args__": fields,
        "__repr__": text,
        "n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0,
        **{field: property(itemgetter(at)) for at, field in enumerate(fields)},
    })  # fmt: skip


def names() -> list[str]:
    """The names of all classes: of rows with named results, and of those that write."""
    bases = sorted({name.partition(".")[0] for name in OPS})
    return [base + end for base in bases for end in ("", "_out") if by_name(base + end)]


def by_name(name: str) -> Any:
    """The class called `name`; None where no row gives it."""
    end = "_out" if name.endswith("_out") else ""
    kinds = (named_tuple(op, end) for op in overloads(name.removesuffix(end)))
    return next((kind for kind in kinds if kind is not None), None)
