"""Owns which universal function of ours multiplies matrices of float32, and with which operands.

Their sums are added in the order in which torch's CPU wheels add them (`loops/float_gemm.h`).
Which product torch asks for is in its `LinearAlgebra.cpp` (`matmul`, `bmm`, `addmm`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..._tensor.dtype import float32
from ..._tensor.geometry import Geometry
from ..._tensor.types import Array, Number
from ...ops.spec import Op
from .ufuncs import universal

Kernel = Callable[..., Any]


_LONG = 1 << 16  # of one size
_FEW = 64  # elements of the two others


def _product(m: int, k: int, n: int) -> Kernel | None:
    """Of matrices `[m, k]` and `[k, n]`; of a long and narrow one BLAS has it ten times as soon,
    and its many sums are equal to torch's within rounding alone."""
    if max(m, k, n) >= _LONG and m * k * n <= _FEW * max(m, k, n):
        return _by_blas
    return universal("product")


def _by_blas(left: Array, right: Array) -> Any:
    return left.dot(right)


def _multiply(name: str) -> Callable[[Op, Sequence[Any], Geometry], Kernel | None]:
    def make(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
        if out.dtype is not float32:
            return None
        kernel = _one_number(args[1]._geom, tuple(out.shape))
        if kernel is None and name == "product" and args[0].ndim == 2:
            left, right = args[0].shape, args[1].shape
            return _product(left[0], left[1], right[1])
        return kernel or universal(name)

    return make


def _one_number(right: Geometry, shape: tuple[int, ...]) -> Kernel | None:
    """Of a row by a line of a matrix, which BLAS is told apart from a column by its steps."""
    line = universal("by_vector")
    if shape != (1, 1) or line is None or tuple(right.strides) == (1, 1):
        return None
    return lambda self, other: line(other.T, self.reshape(-1)).reshape(1, 1)


def _folded(function: Kernel, shape: tuple[int, ...]) -> Kernel:
    """Rows in several dims are those of one matrix."""

    def run(self: Array, other: Array) -> Any:
        return function(self.reshape(-1, self.shape[-1]), other).reshape(shape)

    return run


def _matmul(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    one, many, line, dot = map(universal, ("product", "products", "by_vector", "dot"))
    if out.dtype is not float32 or one is None or many is None or line is None:
        return None
    ranks, shape = (args[0].ndim, args[1].ndim), tuple(out.shape)
    if ranks == (2, 2):
        product = _product(shape[0], args[0].shape[1], shape[1])
        return _one_number(args[1]._geom, shape) or product
    if ranks == (1, 2) or (ranks[1] == 2 and ranks[0] > 2):
        product = _product(prod(shape[:-1]), args[0].shape[-1], shape[-1])
        return product and _folded(product, shape)
    if ranks == (1, 1):
        return dot
    if ranks[1] == 1:
        return line if ranks[0] == 2 else _folded(line, shape)
    return many


def _fused(name: str, plain: str) -> Callable[[Op, Sequence[Any], Geometry], Kernel | None]:
    def make(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
        added, alone, usual = universal(name), universal(plain), op.kernels.cpu
        if out.dtype is not float32 or added is None or alone is None or usual is None:
            return None

        def run(self: Array, a: Array, b: Array, beta: Number, alpha: Number) -> Any:
            if alpha != 1:
                return usual(self, a, b, beta, alpha)
            if beta == 0:
                return alone(a, b)
            scaled = self if beta == 1 else self * np.asarray(beta, np.float32)
            return added(a, b, np.broadcast_to(scaled, out.shape))

        return run

    return make


def _linear(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    added, alone, line = map(universal, ("product_biased", "product", "by_vector"))
    if out.dtype is not float32 or added is None or alone is None or args[1].ndim != 2:
        return None
    shape = tuple(out.shape)
    rows = (prod(shape[:-1]), shape[-1])
    if rows == (1, 1) and line is not None:

        def number(input: Array, weight: Array, bias: Array | None) -> Any:
            product = line(weight, input.reshape(-1)).reshape(shape)
            return product if bias is None else product + bias

        return number

    plain = _product(rows[0], args[1].shape[1], rows[1]) or alone

    def run(input: Array, weight: Array, bias: Array | None) -> Any:
        matrix = input if input.ndim == 2 else input.reshape(rows[0], -1)
        if bias is None:
            return plain(matrix, weight.T).reshape(shape)
        if plain is not alone:
            return (plain(matrix, weight.T) + bias).reshape(shape)
        return added(matrix, weight.T, bias).reshape(shape)

    return run


def _linear_backward(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    columns = universal("column_sums")
    if out.dtype is not float32 or columns is None:
        return None

    outs, ins = args[2].shape
    count = prod(args[1].shape[:-1])
    by_input, by_weight = _product(count, outs, ins), _product(outs, count, ins)
    if by_input is None or by_weight is None:
        return None

    def run(grad: Array, input: Array, weight: Array, mask: tuple[bool, ...]) -> Any:
        flow, rows = grad.reshape(count, weight.shape[0]), input.reshape(count, weight.shape[1])
        none = np.zeros(0, grad.dtype)
        return (
            by_input(flow, weight).reshape(input.shape) if mask[0] else none,
            by_weight(flow.T, rows) if mask[1] else none,
            columns(flow) if mask[2] else none,
        )

    return run


MAKERS = {
    "_linear_backward": _linear_backward,
    "addmm": _fused("product_added", "product"),
    "baddbmm": _fused("products_added", "products"),
    "bmm": _multiply("products"),
    "linear": _linear,
    "matmul": _matmul,
    "mm": _multiply("product"),
}
