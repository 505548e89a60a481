"""Owns what fused functions of torch_npu compute, made of torch's functions.

Formulas: Ascend Extension for PyTorch, "Custom API reference" (torch_npu.npu_*).
"""

from __future__ import annotations

import mindtorch

from .._tensor.tensor import Tensor
from ..nn import functional

Pair = tuple[Tensor, Tensor]


def rms_norm(x: Tensor, gamma: Tensor, epsilon: float) -> Pair:
    """(x over its root mean square times gamma, the reciprocal of that root in float32)."""
    wide = x.float()
    dims = tuple(range(-gamma.dim(), 0))
    reciprocal = (wide.square().mean(dims, keepdim=True) + epsilon).rsqrt()
    return (wide * reciprocal * gamma.float()).to(x.dtype), reciprocal


def gemma_rms_norm(x: Tensor, gamma: Tensor, epsilon: float) -> Pair:
    """`rms_norm` by one more than gamma."""
    return rms_norm(x, 1 + gamma.float(), epsilon)


def add_rms_norm(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float) -> tuple[Tensor, ...]:
    """`rms_norm` of a sum, and the sum."""
    total = x1 + x2
    return (*rms_norm(total, gamma, epsilon), total)


def deep_norm(
    x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, alpha: float, epsilon: float
) -> tuple[Tensor, ...]:
    """Layer norm of alpha x + gx: (mean, reciprocal deviation, result)."""
    wide = (alpha * x + gx).float()
    dims = tuple(range(-gamma.dim(), 0))
    mean = wide.mean(dims, keepdim=True)
    reciprocal = ((wide - mean).square().mean(dims, keepdim=True) + epsilon).rsqrt()
    return mean, reciprocal, ((wide - mean) * reciprocal * gamma + beta).to(x.dtype)


def group_norm_silu(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, group: int, eps: float
) -> tuple[Tensor, ...]:
    """(silu of the group norm, mean and reciprocal deviation of each group)."""
    rows = x.reshape(x.size(0), group, -1)
    mean = rows.mean(-1)
    reciprocal = (rows.var(-1, correction=0) + eps).rsqrt()
    return functional.silu(functional.group_norm(x, group, weight, bias, eps)), mean, reciprocal


def swiglu(x: Tensor, dim: int) -> Tensor:
    """silu of the first half of a dim, times the second half."""
    gate, value = x.chunk(2, dim)
    return functional.silu(gate) * value


def geglu(x: Tensor, dim: int, approximate: int, activate_left: bool) -> Pair:
    """(one half of a dim times gelu of the other, that gelu); `approximate` 1 is tanh's."""
    left, right = x.chunk(2, dim)
    gate, value = (left, right) if activate_left else (right, left)
    gelu = functional.gelu(gate, approximate="tanh" if approximate else "none")
    return value * gelu, gelu


def fast_gelu(x: Tensor) -> Tensor:
    """x / (1 + exp(-1.702 |x|)) exp(0.851 (x - |x|))."""
    return x * mindtorch.sigmoid(1.702 * x)


def rotary_mul(x: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str) -> Tensor:
    """x r1 + rotated x r2: halves are rotated, or neighbours (`interleave`)."""
    if rotary_mode == "half":
        left, right = x.chunk(2, -1)
        return x * r1 + mindtorch.cat((-right, left), -1) * r2
    if rotary_mode != "interleave":
        raise ValueError(f"npu_rotary_mul: rotary_mode is half or interleave, not {rotary_mode}")
    rotation = mindtorch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * r1 + rotation * r2


def token_permute(
    tokens: Tensor, indices: Tensor, num_out_tokens: int | None, padded_mode: bool
) -> Pair:
    """(tokens in the order of the experts that they go to, where each of them went)."""
    order = indices.flatten().argsort(stable=True)
    number = num_out_tokens or order.numel()
    number = number if number > 0 else order.numel() + number
    ways = 1 if indices.dim() == 1 else indices.size(1)
    return tokens.index_select(0, order[:number] // ways), order.argsort(stable=True).int()


def token_unpermute(
    tokens: Tensor, sorted_indices: Tensor, probs: Tensor | None, padded_mode: bool,
    restore_shape: object,
) -> Tensor:  # fmt: skip
    """Tokens back in their order, the copies of each weighted by `probs` and summed."""
    back = tokens.index_select(0, sorted_indices.long())
    if probs is None:
        return back
    return (back.unflatten(0, probs.shape) * probs.unsqueeze(-1)).sum(1).to(tokens.dtype)


def scatter_nd_update(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """A copy with the blocks at `indices` `[*, K]` replaced."""
    return x.index_put(tuple(indices.long().unbind(-1)), updates)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int,
    label_smoothing: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """(loss `[1]` or `[N]`, log-probabilities, two empty tensors)."""
    loss = functional.cross_entropy(
        input, target, weight, ignore_index=ignore_index, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip
    empty = input.new_empty(0)
    return loss.reshape(-1), functional.log_softmax(input, -1), empty, empty.clone()
