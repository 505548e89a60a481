"""Owns a tensor's text as torch's C++ streams print it, which few of its errors show."""

from __future__ import annotations

from itertools import product
from math import ceil, floor, isfinite, log10

from .._tensor import dtype as dt
from .._tensor.tensor import Tensor
from .rules import type_name
from .spec import aten

_WIDTH = 80  # of a line


def streamed(tensor: Tensor) -> str:
    """The elements of at least two dimensions, matrix by matrix, then the type and the sizes."""
    shape = tuple(tensor.shape)
    end = f"[ {type_name(tensor.dtype)}{{{','.join(map(str, shape))}}} ]"
    if tensor.is_meta or not tensor.numel():
        return end
    real = tensor.dtype.category == dt.COMPLEX
    values = aten.to(aten.real(tensor) if real else tensor, dt.float64, device="cpu").detach()
    parts = []
    for place in product(*map(range, shape[:-2])):
        matrix = values
        for i in place:
            matrix = aten.select(matrix, 0, i)
        head = f"({','.join(str(i + 1) for i in place)},.,.) = \n" if place else ""
        parts.append(head + _matrix(matrix.tolist(), " " if place else ""))
    return "\n".join(parts) + end


def _exponent(number: float) -> int:
    return floor(log10(number)) + 1 if number else 1


def _matrix(rows: list[list[float]], indent: str) -> str:
    sizes = [abs(v) for row in rows for v in row if isfinite(v)]
    low, high = (_exponent(end(sizes)) if sizes else 1 for end in (min, max))
    scale, form = 1.0, ".4f"
    if all(v == ceil(v) for v in sizes):
        width, form = (11, ".4e") if high > 9 else (high + 1, "g")
    elif high - low > 4:
        width, form = 11 + (abs(high) > 99 or abs(low) > 99), ".4e"
    elif high > 5 or high < 0:
        width, scale = 7, 10.0 ** (high - 1)
    else:
        width = high + 6 if high else 7
    count, columns = (_WIDTH - len(indent)) // (width + 1), len(rows[0])
    factor, gap = ("", indent) if scale == 1 else (f"{scale:g} *\n{indent}", indent + " ")
    text = ""
    for first in range(0, columns, count):
        last = min(first + count, columns)
        if count < columns:
            text += "\n" * bool(first) + f"Columns {first + 1} to {last}{indent}"
        text += factor
        lines = (" ".join(f"{v / scale:{width}{form}}" for v in row[first:last]) for row in rows)
        text += f"\n{gap}".join(lines) + "\n"
    return text
