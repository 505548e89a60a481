"""Owns what a device does with complex numbers where its operators take real ones: both parts.

What moves elements moves pairs; a product of matrices is four real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor import dtype as dt
from .._tensor.tensor import Tensor
from .spec import NoNumbers, aten

# Whether a call's `self` is of real numbers, which CANN's operator takes.
is_real = NoNumbers(lambda args: args["self"].dtype.category != dt.COMPLEX)


def in_pairs(move: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What moves a complex tensor as `move` does its pairs of reals, whose last dimension stays."""

    def lower(self: Tensor, *args: Any) -> Tensor:
        moved = move(aten.view_as_real(self), *args)
        result: Tensor = aten.view_as_complex(aten.contiguous(moved))
        return result

    return lower


def by_parts(product: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i, of a product that takes reals."""

    def lower(self: Tensor, other: Tensor) -> Tensor:
        a, b = (_part(self, n) for n in (0, 1))
        c, d = (_part(other, n) for n in (0, 1))
        real, imag = product(a, c) - product(b, d), product(a, d) + product(b, c)
        result: Tensor = aten.complex(real, imag)
        return result

    return lower


def _part(t: Tensor, number: int) -> Tensor:
    part: Tensor = aten.contiguous(aten.select(aten.view_as_real(t), -1, number))
    return part


def rolled(pairs: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] = ()) -> Tensor:
    """roll of pairs; without dimensions, of all pairs in a row."""
    result: Tensor
    n, along = pairs.ndim - 1, (dims,) if isinstance(dims, int) else dims
    if along and n:
        result = aten.roll(pairs, shifts, tuple(d % n for d in along))
        return result
    result = aten.roll(aten.reshape(pairs, (-1, 2)), shifts, (0,))
    return result.reshape(pairs.shape)


def gathered(pairs: Tensor, dim: int, index: Tensor, *_: object) -> Tensor:
    """gather of pairs."""
    result: Tensor
    if pairs.ndim == 1:
        result = aten.expand(pairs, (*index.shape, 2))
        return result
    wide = aten.expand(aten.unsqueeze(index, -1), (*index.shape, 2))
    result = aten.gather(pairs, dim % (pairs.ndim - 1), wide)
    return result


def put(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """index_put of complex numbers."""
    pairs, both = aten.view_as_real(self), aten.view_as_real(values)
    result: Tensor = aten.view_as_complex(aten.index_put(pairs, indices, both, accumulate))
    return result


def filled(pairs: Tensor, dim: int, index: Tensor, value: complex) -> Tensor:
    """index_fill of pairs by both parts of a number."""
    n, number = pairs.ndim - 1, complex(value)
    parts = [
        aten.index_fill(aten.select(pairs, -1, at), dim % max(n, 1), index, part)
        for at, part in enumerate((number.real, number.imag))
    ]
    result: Tensor = aten.stack(parts, -1)
    return result
