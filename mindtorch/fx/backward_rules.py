"""Owns what operators of gradients are made of, where a table of decompositions has them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import mindtorch

from .._tensor.tensor import Tensor
from .decompositions import ATEN, CORE, OTHER, decomposes


@decomposes("hardtanh", OTHER)
def _hardtanh(x: Tensor, min_val: float = -1, max_val: float = 1) -> object:
    return ATEN.clamp.default(x, min_val, max_val)


@decomposes("silu_backward", CORE)
def _silu_backward(grad: Tensor, x: Tensor) -> object:
    sigmoid = mindtorch.sigmoid(x)
    return grad * sigmoid * (1 + x * (1 - sigmoid))


@decomposes("gelu_backward", CORE)
def _gelu_backward(grad: Tensor, x: Tensor, *, approximate: str = "none") -> object:
    if approximate != "none":
        return NotImplemented
    share = (mindtorch.erf(x * 0.7071067811865476) + 1) * 0.5
    return grad * (share + x * (mindtorch.exp(x * x * -0.5) * 0.3989422804014327))


@decomposes("native_layer_norm_backward", CORE)
def _layer_norm_backward(
    grad: Tensor, x: Tensor, shape: Sequence[int], mean: Tensor, rstd: Tensor,
    weight: Tensor | None, bias: Tensor | None, mask: Sequence[bool],
) -> object:  # fmt: skip
    outer = list(range(x.dim() - len(shape)))
    inner = list(range(len(outer), x.dim()))
    count = prod(x.shape[dim] for dim in inner)
    normal = (x - mean) * rstd
    scaled = grad if weight is None else grad * weight
    by_input = by_weight = by_bias = None
    part, whole = scaled * count, mindtorch.sum(scaled, inner, True)
    rest = normal * mindtorch.sum(scaled * normal, inner, True)
    centered = part - whole - rest
    if mask[0]:
        by_input = rstd / count * centered
    if mask[1] and weight is not None:
        product = grad * normal
        by_weight = mindtorch.sum(product, outer, False) if outer else product
    if mask[2] and bias is not None:
        by_bias = mindtorch.sum(grad, outer, False) if outer else grad.clone()
    return by_input, by_weight, by_bias
