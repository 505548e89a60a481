"""Owns the row of the cross entropy of a linear map."""

from __future__ import annotations

from math import prod

from ...words import *
from .losses import cross_entropy


def _refuse(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.dim()}"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got"
            f" {input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    lead = tuple(weight.shape[:-1])
    if bias is not None and tuple(bias.shape) != lead:
        raise RuntimeError(f"expected linear_bias shape {lead}, got {tuple(bias.shape)}")
    if weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires"
            f" batched input, (N, {input.shape[-1]}), got unbatched input with shape"
            f" {tuple(input.shape)}"
        )


@composite(
    "linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, *,"
    " Tensor? linear_bias=None, Tensor? weight=None, str reduction='mean',"
    " int? ignore_index=None, float label_smoothing=0.0, Any options=None) -> Tensor",
    samples=calls(
        (Arg((3, 4)), Arg((5, 4)), Arg((3,), "int64", 0, 4)),
        Sample(
            (Arg((3, 4)), Arg((5, 2, 4)), Arg((3, 2), "int64", 0, 4)),
            {"linear_bias": Arg((5, 2)), "reduction": "sum"},
        ),
        Sample((Arg((3, 4)), Arg((5, 3)), Arg((3,), "int64", 0, 4)), error=True),
    ),
    tolerance="accumulated",
    fixed_shape=True,
)
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Cross entropy of input `[N, in]` times linear_weight `[C, *out, in]`, plus a bias.

    `options` say in which chunks torch computes; the logits are computed at once here.
    """
    _refuse(input, linear_weight, linear_bias)
    shape = (*input.shape[:-1], *linear_weight.shape[:-1])
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    rows = prod(linear_weight.shape[:-1])
    flat = linear_weight.reshape((rows, input.shape[-1]))
    bias = None if linear_bias is None else linear_bias.reshape((rows,))
    logits = aten.linear(input, flat, bias).reshape(shape)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip
