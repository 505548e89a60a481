"""Owns reductions of masked elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .._tensor import dtype as dt
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ..ops.spec import aten
from .masks import dims_of, filled, highest, lowest, mask_of, widened

# The dimensions of a reduction: one, some, or all.
Dims: TypeAlias = int | Sequence[int] | None


def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of elements where the mask is true."""
    input = widened(input, dtype, True)
    dims, mask = dims_of(dim, input), mask_of(input, mask)
    value = filled(input, mask, 0)
    return aten.sum(value, dims, bool(keepdim), dtype=value.dtype) if dims else aten.clone(value)


def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of elements where the mask is true; an empty list of dimensions reduces none."""
    input = widened(input, dtype, True)
    none = isinstance(dim, Sequence) and not dim
    dims, mask = () if none else dims_of(dim, input), mask_of(input, mask)
    result = filled(input, mask, 1)
    for d in sorted(dims, reverse=True):
        result = aten.prod_dim(result, d, bool(keepdim))
    return result


def cumsum(
    input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Running sums; elements that are left out add nothing."""
    input = widened(input, dtype, True)
    return aten.cumsum(filled(input, mask_of(input, mask), 0), dim)


def cumprod(
    input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Running products; elements that are left out change nothing."""
    input = widened(input, dtype, True)
    return aten.cumprod(filled(input, mask_of(input, mask), 1), dim)


def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest of elements where the mask is true."""
    input = widened(input, dtype)
    dims, mask = dims_of(dim, input), mask_of(input, mask)
    value = filled(input, mask, lowest(input.dtype))
    return aten.amax(value, dims, bool(keepdim)) if dims else aten.clone(value)


def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The smallest of elements where the mask is true."""
    input = widened(input, dtype)
    dims, mask = dims_of(dim, input), mask_of(input, mask)
    value = filled(input, mask, highest(input.dtype))
    return aten.amin(value, dims, bool(keepdim)) if dims else aten.clone(value)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False,
    dtype: Dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where the largest of elements is for which the mask is true, in the input's dtype."""
    input = widened(input, dtype)
    value = filled(input, mask_of(input, mask), lowest(input.dtype))
    return aten.to(aten.argmax(value, dim, bool(keepdim)), input.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False,
    dtype: Dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where the smallest of elements is for which the mask is true, in the input's dtype."""
    input = widened(input, dtype)
    value = filled(input, mask_of(input, mask), highest(input.dtype))
    return aten.to(aten.argmin(value, dim, bool(keepdim)), input.dtype)


def _count(
    input: Tensor, mask: Tensor | None, dims: Sequence[int], keepdim: bool, dtype: Dtype | None
) -> Tensor:
    ones = aten.ones_like(input, dtype=dt.int64) if mask is None else aten.to(mask, dt.int64)
    return aten.sum(ones, dims, keepdim) if dims else ones


def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of elements where the mask is true; NaN of none."""
    if (dtype or input.dtype).category < dt.FLOAT:
        which = "Optional" if dtype else "Input"
        raise ValueError(
            f"mean(): Could not infer output dtype. {which} dtype must be either a floating point"
            f" or complex dtype. Got: {dtype or input.dtype}"
        )
    input = widened(input, dtype)
    dims, mask = dims_of(dim, input), mask_of(input, mask)
    if mask is None:
        return aten.mean(input, dims, bool(keepdim)) if dims else aten.clone(input)
    count = _count(input, mask, dims, bool(keepdim), input.dtype)
    return sum(input, dim, keepdim=keepdim, mask=mask) / count


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The lower median of elements where the mask is true; NaN of none."""
    if input.dtype.category != dt.FLOAT and dtype is None:
        raise ValueError(f"input dtype must be floating, got {input.dtype}")
    input = widened(input, dtype)
    mask = mask_of(input, mask)
    if mask is None:
        return aten.median_dim(input, dim, keepdim)[0]
    return aten.nanmedian_dim(filled(input, mask, float("nan")), dim, keepdim)[0]


def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of exponentials of elements where the mask is true."""
    input = widened(input, dtype)
    dims, mask = dims_of(dim, input), mask_of(input, mask)
    value = filled(input, mask, lowest(input.dtype))
    return aten.logsumexp(value, dims, keepdim) if dims else value


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: Dtype | None = None,
    input_mask: Tensor | None = None, other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """logaddexp of elements where the masks are true; what is left out counts as -inf."""
    input, other = widened(input, dtype), widened(other, dtype)
    first = filled(input, mask_of(input, input_mask), float("-inf"))
    return aten.logaddexp(first, filled(other, mask_of(other, other_mask), float("-inf")))


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of elements where the mask is true."""
    input = widened(input, dtype)
    dims, mask = dims_of(dim, input), mask_of(input, mask)
    order = 2.0 if ord is None else float(ord)
    value = filled(input, mask, float("inf") if order == float("-inf") else 0)
    return aten.linalg_vector_norm(value, order, dims, bool(keepdim))


def _variance(
    input: Tensor,
    dim: Dims,
    unbiased: bool | None,
    correction_opt: Number | None,
    keepdim: bool | None,
    dtype: Dtype | None,
    mask: Tensor | None,
    root: bool,
) -> Tensor:
    if unbiased is not None and correction_opt is not None:
        raise RuntimeError("Only one of unbiased and correction may be given")
    correction = 1 if correction_opt is None else correction_opt
    if unbiased is not None:
        correction = 1 if unbiased else 0
    kind = dtype or (input.dtype if input.dtype.category >= dt.FLOAT else dt.float32)
    input = aten.to(input, kind)
    dims, mask = dims_of(dim, input), mask_of(input, mask)
    count = aten.to(_count(input, mask, dims, True, kind), kind.to_real())
    total = sum(input, dims, keepdim=True, mask=mask)
    gap = input - total / count
    spread = sum(gap * aten.conj_of(gap), dims, keepdim=keepdim, mask=mask)
    if not keepdim:
        count = aten.reshape(count, tuple(spread.shape))
    if correction:
        count = aten.maximum(count - correction, aten.zeros_like(count))
    result = spread / count
    return aten.sqrt(result) if root else result


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: Number | None = None,
    keepdim: bool | None = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of elements where the mask is true."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, False)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: Number | None = None,
    keepdim: bool | None = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of elements where the mask is true."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, True)
