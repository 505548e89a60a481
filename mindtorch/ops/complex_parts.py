"""Owns what a device does with numbers that its operators do not take.

Complex ones by both parts: what moves elements moves pairs, a product of matrices is four real
ones. Products of float64 and of integers, which the matrix unit lacks, by multiplying and adding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor import dtype as dt
from .._tensor.tensor import Tensor
from .spec import SHORT_FLOATS, NoNumbers, aten, in_dtypes

# Whether a call's `self` is of real numbers, which CANN's operator takes.
is_real = NoNumbers(lambda args: args["self"].dtype.category != dt.COMPLEX)


# Elements of what a product of float64 or integers may multiply out: 512 MiB of float64. What is
# larger goes to CANN, whose refusal says to cast.
_MOST_PRODUCTS = 1 << 26


def on_matrix_unit(left: str) -> NoNumbers:
    """Whether CANN's product takes the call whose left matrix is `left`: its halves and float32
    (aclnnMatmul document), and what `multiplied` would need too much memory for."""

    on_unit = in_dtypes(left, *SHORT_FLOATS)

    def accepted(args: dict[str, Any]) -> bool:
        if on_unit(args):
            return True
        geom, out = args[left], args["out"]
        count = out.numel * (geom.shape[-1] if geom.ndim else 1)
        return geom.dtype is not dt.complex64 and count > _MOST_PRODUCTS

    return NoNumbers(accepted)


def below_double(name: str = "out") -> NoNumbers:
    """Whether the tensor `name` of a call is neither of float64 nor of complex128, which documents
    of many operators do not list: the row's `lower` then computes it from those that do."""
    return NoNumbers(lambda args: args[name].dtype not in (dt.float64, dt.complex128))


_below_double = below_double()
# Whether a call's `self` is of real numbers, and its result of no float64.
is_real_below_double = NoNumbers(lambda args: is_real(args) and _below_double(args))


def multiplied(product: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """A product of matrices from aclnnMul and aclnnReduceSum, of complex64 `by_parts`."""
    of_parts = by_parts(product)

    def lower(self: Tensor, other: Tensor) -> Tensor:
        if self.dtype is dt.complex64:
            return of_parts(self, other)
        columns = aten.transpose(other, -2, -1) if other.ndim > 1 else other
        if self.ndim > 1 and other.ndim > 1:
            self, columns = aten.unsqueeze(self, -2), aten.unsqueeze(columns, -3)
        result: Tensor = aten.sum(self * columns, -1, dtype=self.dtype)
        return result

    return lower


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
