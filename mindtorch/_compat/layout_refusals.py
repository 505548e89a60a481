"""Owns what torch says of functions that a layout lacks: the operator without kernel, or an error.

The table is what torch answered to ordinary calls (`tests/opdb/layouts.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from .._tensor.text_files import text_beside
from .refusals import without_kernel

_ERRORS = {
    e.__name__: e for e in (AttributeError, IndexError, NotImplementedError, TypeError, ValueError)
}


def pattern(args: Iterable[object]) -> str:
    """Arguments by a letter each: `t` of another layout, `d` strided, `n` a number, `l` a list."""
    return "".join(map(_letter, args)) or "-"


def _letter(value: object) -> str:
    if (layout := getattr(value, "layout", None)) is not None:  # torch's tensors have letters too
        marks = (getattr(value, name, False) for name in ("is_nested", "is_quantized"))
        return "d" if str(layout).endswith("strided") and not any(marks) else "t"
    kinds = (("b", bool), ("n", (int, float, complex)), ("s", str), ("l", (list, tuple)))
    return next((letter for letter, kind in kinds if isinstance(value, kind)), "-")


@cache
def _table() -> dict[tuple[str, str, str], str]:
    lines = text_beside(__file__, "layout_refusals.txt").splitlines()
    rows = (line.split(" ", 3) for line in lines if not line.startswith("#"))
    return {
        (kind, name, args): name if answer == "=" else answer
        for kind, names, several, answer in rows
        for name in names.split(",")
        for args in several.split(",")
    }


def layout_refusal(kind: str, backend: str, name: str, args: Iterable[object]) -> Exception | None:
    """torch's error of a call on tensors of a kind ("Sparse", "SparseCsr", "NestedTensor",
    "Quantized") and a backend ("CPU"); None where torch computes, or was not asked."""
    table = _table()
    answer = table.get((kind, name, "*")) or table.get((kind, name, pattern(args)))
    if answer is None:
        return None
    error, _, text = answer.partition(": ")
    if text:
        return _ERRORS.get(error, RuntimeError)(text)
    return NotImplementedError(without_kernel(answer, kind + backend))
