"""Owns the batching rules of layers: the batch joins the samples, or the channels as groups.

A batch that only the input has is more samples. Where weights have one too, each element's channels
are groups of their own: `[B, N, C, …]` becomes `[N, B * C, …]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor.tensor import Tensor
from ..ops.spec import Op, aten
from ._batched import RULES, BatchedTensor, at, batched
from ._rules import Result, any_at, rule, whole


def _folding(rank: int) -> Callable[..., Any]:
    """A rule for rows over [N, C, …]: the batch joins the samples."""

    def folded(op: Op, level: int, size: int, self: BatchedTensor, *rest: Any) -> Result:
        if not at(self, level) or any_at(level, *rest):
            return None
        if self.dim() == rank - 1:
            return op.entry("aten")(self._value, *rest)
        if self.dim() != rank:
            return None
        result = op.entry("aten")(aten.flatten(self._value, 0, 1), *rest)
        several = isinstance(result, tuple | list)
        parts = [_unfolded(r, size) for r in (result if several else (result,))]
        return tuple(parts) if several else parts[0]

    return folded


def _unfolded(value: Tensor, size: int) -> Tensor:
    samples = value.shape[0] // max(size, 1)
    result: Tensor = aten.reshape(value, (size, samples, *value.shape[1:]))
    return result


for _rank, _rows in (
    (3, ("reflection_pad1d", "replication_pad1d", "upsample_linear1d")),
    (4, ("max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d",
         "im2col", "reflection_pad2d", "replication_pad2d", "upsample_bilinear2d",
         "upsample_bicubic2d")),
    (5, ("max_pool3d_with_indices", "avg_pool3d", "_adaptive_avg_pool3d", "adaptive_max_pool3d",
         "reflection_pad3d", "replication_pad3d", "upsample_trilinear3d")),
):  # fmt: skip
    for _name in _rows:
        RULES[_name] = _folding(_rank)


def _in_channels(value: Tensor, level: int, size: int) -> Tensor:
    """[N, B * C, …] of [N, C, …]."""
    result: Tensor = aten.flatten(aten.transpose(whole(value, level, size), 0, 1), 1, 2)
    return result


def _out_of_channels(value: Tensor, size: int) -> Tensor:
    """The batch of [N, B * C, …], in front."""
    shape = (value.shape[0], size, value.shape[1] // size, *value.shape[2:])
    result: Tensor = aten.transpose(aten.reshape(value, shape), 0, 1)
    return result


def _in_rows(value: Tensor | None, level: int, size: int) -> Tensor | None:
    """[B * C, …] of [C, …]."""
    return None if value is None else aten.flatten(whole(value, level, size), 0, 1)


@rule("convolution")
def convolution(
    op: Op,
    level: int,
    size: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *sizes: Any,
) -> Result:
    """By groups where weights have a batch; `sizes` ends with their number."""
    if not any_at(level, weight, bias):
        return _folding(weight.dim())(op, level, size, input, weight, bias, *sizes)
    if input.dim() != weight.dim() or not size:
        return None
    *windows, groups = sizes
    result = op.entry("aten")(
        _in_channels(input, level, size),
        _in_rows(weight, level, size),
        _in_rows(bias, level, size),
        *windows,
        groups * size,
    )
    return _out_of_channels(result, size)


@rule("_convolution_weight_grad")
def convolution_weight_grad(
    op: Op, level: int, size: int, grad_output: Tensor, input: Tensor, weight: Tensor, *sizes: Any
) -> Result:
    if not size:
        return None
    *windows, groups = sizes
    result = op.entry("aten")(
        _in_channels(grad_output, level, size),
        _in_channels(input, level, size),
        _in_rows(weight, level, size),
        *windows,
        groups * size,
    )
    return _unfolded(result, size)


@rule("_batch_norm_functional")
def batch_norm(op: Op, level: int, size: int, input: Tensor, *rest: Any) -> Result:
    """Channels of all elements beside each other, each with statistics of its own."""
    if not size:
        return None
    *per_channel, training, eps = rest
    rows = (_in_rows(t, level, size) for t in per_channel)
    out, *statistics = op.entry("aten")(_in_channels(input, level, size), *rows, training, eps)
    return _out_of_channels(out, size), *(
        aten.reshape(k, (size, k.shape[0] // size)) for k in statistics
    )


def _scaled(value: Tensor, weight: Tensor | None, bias: Tensor | None, level: int) -> Tensor:
    viewed: Tensor = batched(value, level)
    viewed = viewed if weight is None else viewed * weight
    viewed = viewed if bias is None else viewed + bias
    assert isinstance(viewed, BatchedTensor)
    return viewed._value


@rule("native_layer_norm")
def layer_norm(
    op: Op,
    level: int,
    size: int,
    input: Tensor,
    shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Result:
    """Weights with a batch are put on what was standardized without them."""
    value = whole(input, level, size)
    if not any_at(level, weight, bias):
        return op.entry("aten")(value, shape, weight, bias, eps)
    out, *statistics = op.entry("aten")(value, shape, None, None, eps)
    return _scaled(out, weight, bias, level), *statistics


@rule("native_group_norm")
def group_norm(
    op: Op,
    level: int,
    size: int,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    samples: int,
    *sizes: Any,
) -> Result:
    value = aten.flatten(whole(input, level, size), 0, 1)
    per_element = any_at(level, weight, bias)
    scale = (None, None) if per_element else (weight, bias)
    out, *statistics = (
        _unfolded(r, size) for r in op.entry("aten")(value, *scale, samples * size, *sizes)
    )
    if per_element:
        spread = (-1, *[1] * (input.dim() - 2))
        weight, bias = (t if t is None else t.reshape(spread) for t in (weight, bias))
        out = _scaled(out, weight, bias, level)
    return out, *statistics
