"""Rows of matrix products."""

from __future__ import annotations

from math import prod

from ...._compat.unsupported_dtypes import kernel, several_dtypes
from ...complex_parts import multiplied, on_matrix_unit
from ...costs import product
from ...rules import broadcast, c_name
from ...words import *

_SMALL = 400  # multiplications of one product, below which torch's own loop computes it
_OF_MKL = (dt.float32, dt.float64, dt.complex64, dt.complex128)


def refuse_batches(
    left: Dtype, right: Dtype, multiplications: int, by_addmm: str = "", names: Any = c_name
) -> None:
    """RuntimeError in the words of the kernel that torch's batched product of two dtypes reaches.

    Larger products go to MKL or, in dtypes that it lacks, to matrix after matrix.
    """
    if left is right:
        return
    if multiplications >= _SMALL and right not in _OF_MKL:
        by_addmm = by_addmm or "expected m1 and m2 to have the same dtype, but got: {} != {}"
        raise RuntimeError(by_addmm.format(names(left), names(right)))
    expected, actual = (left, right) if multiplications < _SMALL else (right, left)
    raise RuntimeError(
        f"expected scalar type {scalar_name(expected)} but found {scalar_name(actual)}"
    )


def _matmul(self: Geometry, other: Geometry) -> Geometry:
    if not self.ndim or not other.ndim:
        raise RuntimeError(
            "both arguments to matmul need to be at least 1D, but they are"
            f" {self.ndim}D and {other.ndim}D"
        )
    if self.dtype is not other.dtype and self.ndim == other.ndim == 1:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found"
            f" {self.dtype.legacy} and {other.dtype.legacy}"
        )
    a = self.shape if self.ndim > 1 else (1, *self.shape)
    b = other.shape if other.ndim > 1 else (*other.shape, 1)
    if a[-1] != b[-2]:
        raise RuntimeError(_mismatch(self, other, a, b))
    if self.dtype is not other.dtype and other.ndim == 1:
        vector, matrix = scalar_name(other.dtype), scalar_name(self.dtype)
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got"
            f" {vector}, {matrix}, and {vector}"
        )
    if other.ndim > 2:
        refuse_batches(self.dtype, other.dtype, a[-2] * a[-1] * b[-1])
    if self.dtype is not other.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got:"
            f" {c_name(self.dtype)} != {c_name(other.dtype)}"
        )
    batch = broadcast(a[:-2], b[:-2])
    tail = (a[-2],) if self.ndim > 1 else ()
    return self.fresh((*batch, *tail, *((b[-1],) if other.ndim > 1 else ())))


def _mismatch(self: Geometry, other: Geometry, a: tuple[int, ...], b: tuple[int, ...]) -> str:
    if self.ndim == 1 and other.ndim == 1:
        return (
            f"inconsistent tensor size, expected tensor [{self.shape[0]}] and src"
            f" [{other.shape[0]}] to have the same number of elements, but got"
            f" {self.shape[0]} and {other.shape[0]} elements respectively"
        )
    rows = prod(a[:-1])
    if other.ndim == 1 and _foldable(self):
        return f"size mismatch, got input ({rows}), mat ({rows}x{a[-1]}), vec ({b[0]})"
    if other.ndim == 2 and _foldable(self):
        return f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and {b[-2]}x{b[-1]})"
    batch = prod(np.broadcast_shapes(a[:-2], b[:-2]))
    return (
        "Expected size for first two dimensions of batch2 tensor to be:"
        f" [{batch}, {a[-1]}] but got: [{batch}, {b[-2]}]."
    )


def _foldable(self: Geometry) -> bool:
    """Whether the rows of all matrices are one matrix's, which torch then multiplies."""
    stacked = zip(self.strides, self.strides[1:], self.shape[1:-1], strict=False)
    return not self.numel or all(outer == inner * n for outer, inner, n in stacked)


def _grad_self(grad: Tensor, self_geom: Geometry, other: Tensor) -> Tensor:
    if self_geom.ndim == 1 and other.ndim == 1:
        return grad * aten.conj_of(other)
    if other.ndim == 1:
        return aten.unsqueeze(grad, -1) * aten.conj_of(other)
    if self_geom.ndim == 1:
        grad = aten.unsqueeze(grad, -2)
        product = grad @ adjoint(other)
        return aten.sum_to_size(product, (1, *self_geom.shape)).reshape(self_geom.shape)
    if self_geom.ndim == other.ndim == 2:
        return grad_left(grad, self_geom, other)
    return grad @ adjoint(other)


def _grad_other(grad: Tensor, self: Tensor, other_geom: Geometry) -> Tensor:
    if self.ndim == 1 and other_geom.ndim == 1:
        return grad * aten.conj_of(self)
    if self.ndim == 1:
        return aten.unsqueeze(aten.conj_of(self), -1) * aten.unsqueeze(grad, -2)
    if other_geom.ndim == 1:
        return aten.conj_of(aten.t(_one_matrix(self))) @ aten.reshape(grad, (prod(grad.shape),))
    if other_geom.ndim == 2:
        return grad_right(_one_matrix(grad), _one_matrix(self), other_geom)
    return adjoint(self) @ grad


def _one_matrix(t: Tensor) -> Tensor:
    """The rows of `t`, whose last dim stays."""
    return t if t.ndim == 2 else aten.reshape(t, (prod(t.shape[:-1]), t.shape[-1]))


def _by_columns(geom: Geometry) -> bool:
    return geom.strides[0] == 1 and geom.strides[1] == geom.shape[0]


def grad_left(grad: Tensor, left: Geometry, right: Tensor) -> Tensor:
    """The gradient of a product of matrices by the left one, in its layout as torch's."""
    if _by_columns(left):
        return aten.t(aten.mm(aten.conj_of(right), aten.t(grad)))
    return aten.mm(grad, adjoint(right))


def grad_right(grad: Tensor, left: Tensor, right: Geometry) -> Tensor:
    """The gradient of a product of matrices by the right one, in its layout as torch's."""
    if _by_columns(right):
        return aten.t(aten.mm(aten.t(grad), aten.conj_of(left)))
    return aten.mm(adjoint(left), grad)


def adjoint(t: Tensor) -> Tensor:
    """The conjugate of each matrix, turned over."""
    return aten.conj_of(aten.t(t) if t.ndim == 2 else aten.transpose(t, -2, -1))


def samples() -> list[Sample]:
    shapes = [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)),
              ((2, 2, 3), (2, 3, 4)), ((5, 1, 2, 3), (2, 3, 2)), ((2, 0), (0, 3))]  # fmt: skip
    samples = [Sample((Arg(a), Arg(b, high=2.5))) for a, b in shapes]
    types = ("float64", "float16", "bfloat16")
    samples += [Sample((Arg((2, 3), d), Arg((3, 4), d, high=2.5))) for d in types]
    return [*samples, Sample((Arg((2, 3)), Arg((2, 3))), error=True)]


def multiply(self: Array, other: Array) -> Array:
    """The product. Small ones of BLAS's types cost half as much through `dot`, rows in several
    dims are those of one matrix."""
    if self.dtype.char in "fdFD" and other.ndim == 2:
        if self.ndim == 2:
            return self.dot(other)
        if self.ndim > 2 and self.flags.c_contiguous and self.size:
            rows = self.reshape(-1, self.shape[-1]).dot(other)
            return rows.reshape(*self.shape[:-1], other.shape[1])
    return np.matmul(self, other)


op(
    "matmul(Tensor self, Tensor other) -> Tensor",
    summary="Matrix product `[*, M, K] @ [*, K, N] → [*, M, N]`; vectors count as matrices.",
    infer=_matmul,
    cpu=multiply,
    aclnn=call(
        "aclnnMatmul", "self", "other", "out", "cube_math_type", when=on_matrix_unit("self")
    ),
    lower=multiplied(lambda a, b: aten.matmul(a, b)),
    grad={"self": _grad_self, "other": _grad_other},
    unsupported={"bool": kernel("addmm_impl_cpu_", unless=several_dtypes)},
    samples=samples,
    tolerance="accumulated",
    out="expected",
    cost=product("self"),
    autocast="lower",
)
