"""Owns normalizations of masked elements: what is left out gets no share."""

from __future__ import annotations

from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from .masks import filled, mask_of, widened
from .reductions import norm


def softmax(
    input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Shares of elements where the mask is true; NaN where it is nowhere."""
    input = widened(input, dtype)
    return aten.softmax(filled(input, mask_of(input, mask), float("-inf")), dim)


def log_softmax(
    input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of `softmax`."""
    input = widened(input, dtype)
    return aten.log_softmax(filled(input, mask_of(input, mask), float("-inf")), dim)


def softmin(
    input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Shares of elements turned round."""
    input = widened(input, dtype)
    return aten.softmax(-filled(input, mask_of(input, mask), float("inf")), dim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Divided by the norm of elements where the mask is true, at least `eps`."""
    input = widened(input, dtype)
    size = norm(input, ord, dim, keepdim=True, mask=mask)
    return filled(input, mask_of(input, mask), 0) / aten.clamp_min(size, eps)
