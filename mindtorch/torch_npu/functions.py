"""Owns torch_npu's functions that are torch's own by another name or order; gradients follow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import mindtorch

from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..nn import functional

__all__ = [
    "npu_apply_adam_w", "npu_bmmV2", "npu_broadcast", "npu_confusion_transpose", "npu_dtype_cast",
    "npu_gelu", "npu_layer_norm_eval", "npu_linear", "npu_max", "npu_min", "npu_mish",
    "npu_one_hot", "npu_pad", "npu_prefetch", "npu_reshape", "npu_scaled_masked_softmax",
    "npu_silu", "npu_silu_", "npu_slice", "npu_sort_v2", "npu_transpose",
    "npu_transpose_batchmatmul",
]  # fmt: skip


def npu_dtype_cast(self: Tensor, dtype: Dtype) -> Tensor:
    """The tensor in a dtype."""
    return self.to(dtype)


def npu_transpose(self: Tensor, perm: Sequence[int], require_contiguous: bool = True) -> Tensor:
    """The tensor with its dims in another order, contiguous where asked for."""
    permuted = self.permute(tuple(perm))
    return permuted.contiguous() if require_contiguous else permuted


def npu_confusion_transpose(
    self: Tensor, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> Tensor:
    """Dims in another order and then another shape, or the shape first; contiguous."""
    if transpose_first:
        return self.permute(tuple(perm)).reshape(tuple(shape)).contiguous()
    return self.reshape(tuple(shape)).permute(tuple(perm)).contiguous()


def npu_reshape(self: Tensor, shape: Sequence[int], can_refresh: bool = False) -> Tensor:
    """A copy in another shape."""
    return self.reshape(tuple(shape)).clone()


def npu_broadcast(self: Tensor, size: Sequence[int]) -> Tensor:
    """A copy that fills a shape."""
    return self.expand(tuple(size)).contiguous()


def npu_slice(self: Tensor, offsets: Sequence[int], size: Sequence[int]) -> Tensor:
    """A copy of the block of `size` that begins at `offsets`."""
    part = self
    for dim, (start, length) in enumerate(zip(offsets, size, strict=True)):
        part = part.narrow(dim, start, length)
    return part.contiguous()


def npu_pad(self: Tensor, paddings: Sequence[int]) -> Tensor:
    """Zeros before and after each dim: two numbers a dim, of the first dim first."""
    pairs = [tuple(paddings[i : i + 2]) for i in range(0, len(paddings), 2)]
    return functional.pad(self, [n for pair in reversed(pairs) for n in pair])


def npu_one_hot(
    self: Tensor, num_classes: int = -1, depth: int = 1, on_value: float = 1, off_value: float = 0
) -> Tensor:
    """float32 `[*, depth]`: `on_value` where the last index is the element, else `off_value`."""
    classes = mindtorch.arange(depth, device=self.device)
    return mindtorch.where(self.unsqueeze(-1) == classes, float(on_value), float(off_value))


def npu_gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    """torch's gelu."""
    return functional.gelu(self, approximate=approximate)


def npu_silu(self: Tensor) -> Tensor:
    """torch's silu."""
    return functional.silu(self)


def npu_silu_(self: Tensor) -> Tensor:
    """torch's silu, in place."""
    return functional.silu(self, inplace=True)


def npu_mish(self: Tensor) -> Tensor:
    """torch's mish."""
    return functional.mish(self)


def npu_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch's linear."""
    return functional.linear(input, weight, bias)


def npu_bmmV2(self: Tensor, mat2: Tensor, output_sizes: Sequence[int]) -> Tensor:  # noqa: N802
    """The batched product, in the shape `output_sizes` unless that is empty."""
    product = mindtorch.matmul(self, mat2)
    return product.reshape(tuple(output_sizes)) if output_sizes else product


def npu_max(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """(the largest along a dim, where it is as int32)."""
    values, indices = self.max(dim, keepdim)
    return values, indices.int()


def npu_min(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """(the smallest along a dim, where it is as int32)."""
    values, indices = self.min(dim, keepdim)
    return values, indices.int()


def npu_scaled_masked_softmax(
    x: Tensor, mask: Tensor, scale: float = 1, fixed_triu_mask: bool = False
) -> Tensor:
    """softmax over the last dim of `x` scaled, -10000 where `mask` is True, or above the diagonal
    with `fixed_triu_mask`."""
    if fixed_triu_mask:
        mask = mindtorch.ones(x.shape[-2:], dtype=mindtorch.bool, device=x.device).triu(1)
    return functional.softmax((x * scale).masked_fill(mask.bool(), -10000.0), -1)


def npu_layer_norm_eval(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
    bias: Tensor | None = None, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """torch's layer norm."""
    return functional.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


def npu_sort_v2(self: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """The sorted values along a dim."""
    return self.sort(dim, descending)[0]


def npu_transpose_batchmatmul(
    input: Tensor, weight: Tensor, *, bias: Tensor | None = None, scale: Tensor | None = None,
    perm_x1: Sequence[int] = (0, 1, 2), perm_x2: Sequence[int] = (0, 1, 2),
    perm_y: Sequence[int] = (1, 0, 2),
) -> Tensor:  # fmt: skip
    """The batched product of both operands in another order of dims, `perm_y` of it."""
    product = input.permute(tuple(perm_x1)) @ weight.permute(tuple(perm_x2))
    out = product.permute(tuple(perm_y)).contiguous()
    return out if bias is None else out + bias


def npu_prefetch(self: Tensor, dependency: Tensor | None, max_size: int, offset: int = 0) -> None:
    """A hint to read memory early: nothing is computed."""


def npu_apply_adam_w(
    beta1_power: float, beta2_power: float, lr: float, weight_decay: float, beta1: float,
    beta2: float, epsilon: float, grad: Tensor, max_grad_norm: Tensor | None,
    amsgrad: bool | None, maximize: bool | None, *, out: Sequence[Tensor] = (),
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """A step of AdamW in the tensors `out`, (var, m, v); powers are those before it.

    aclnnApplyAdamW is one launch of it, on the 950 alone.
    """
    if not out:
        raise RuntimeError("npu_apply_adam_w is not implemented for Tensor")
    var, m, v = out
    # As the operator has them: in float32.
    lr, weight_decay, beta1, beta2 = (
        float(np.float32(n)) for n in (lr, weight_decay, beta1, beta2)
    )
    with mindtorch.no_grad():
        slope = -grad if maximize else grad
        m.mul_(beta1).add_(slope, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(slope, slope, value=1 - beta2)
        second = mindtorch.maximum(max_grad_norm, v) if amsgrad and max_grad_norm is not None else v
        root = (second / (1 - beta2_power * beta2)).sqrt_().add_(epsilon)
        var.mul_(1 - lr * weight_decay)
        var.addcdiv_(m, root, value=-lr / (1 - beta1_power * beta1))
    return var, m, v
