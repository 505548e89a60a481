"""What quantised layers compute: sums of integers, scaled as FBGEMM scales them.

Sums are exact in float64. Results round to the nearest integer, those between two to the even
one. Only cpu has quantised tensors in torch; NotImplementedError for other devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch as torch
from mindtorch import Tensor
from mindtorch._compat.refusals import without_kernel
from mindtorch._quantized import QuantizedTensor, choose_qparams, make

_LIMITS = {torch.quint8: (torch.uint8, 0, 255), torch.qint8: (torch.int8, -128, 127)}


def centered(q: Tensor, name: str) -> Tensor:
    """The integers less the zero point, float64; NotImplementedError for other tensors."""
    if not isinstance(q, QuantizedTensor) or q.device.type != "cpu":
        backend = "CPU" if q.device.type == "cpu" else "PrivateUse1"
        text = without_kernel(f"quantized::{name}", backend)
        raise NotImplementedError(text)
    return q._ints.double() - _along(q._zeros, q)


def _along(parts: Any, q: QuantizedTensor) -> Any:
    if q._axis is None:
        return parts
    sizes = [1] * q.dim()
    sizes[q._axis] = -1
    return parts.double().reshape(sizes)


def _scales(q: QuantizedTensor) -> Tensor:
    """The scale of each channel of a weight, float32 [C] or [1]."""
    scales = q._scales if isinstance(q._scales, Tensor) else torch.tensor([float(q._scales)])
    return scales.float()


def weighted(
    x: QuantizedTensor, weight: QuantizedTensor, bias: Tensor | None, scale: float, zero_point: int,
    relu: bool, name: str, product: Callable[[Tensor, Tensor], Tensor], axis: int,
) -> QuantizedTensor:  # fmt: skip
    """A layer's result with `scale` and `zero_point`; `axis` is that of the output's channels."""
    sums = product(centered(x, name), centered(weight, name)).float()
    both = torch.tensor(x.q_scale(), dtype=torch.float32) * _scales(weight)
    sizes = [1] * sums.dim()
    sizes[axis] = -1
    if bias is not None:
        start = bias.detach() / both if weight._axis is not None else bias.detach() * (1 / both)
        sums = sums + start.reshape(sizes)
    return requantized(sums * (both / scale).reshape(sizes), zero_point, relu, scale, x._kind)


def requantized(
    steps: Tensor, zero_point: int, relu: bool, scale: float, kind: Any
) -> QuantizedTensor:
    """Steps of `scale` as a quantised tensor."""
    integers, least, most = _LIMITS[kind]
    least = max(least, zero_point) if relu else least
    ints = (torch.round(steps) + zero_point).clamp(least, most).to(integers)
    return make(ints, scale, zero_point, None, kind)


def linear_dynamic(x: Tensor, weight: Any, bias: Tensor | None) -> Tensor:
    """A linear layer of float32 whose input is quantised to 7 bits on the way."""
    if weight.dtype is not torch.qint8:  # float16 weights
        return torch.nn.functional.linear(x, weight, bias)
    if x.device.type != "cpu":
        text = without_kernel("quantized::linear_dynamic", "PrivateUse1")
        raise NotImplementedError(text)
    low, high = (x.min().item(), x.max().item()) if x.numel() else (0.0, 0.0)
    scale, zero_point = choose_qparams(low, high, 0, 127)
    single = torch.tensor(scale, dtype=torch.float32)
    ints = (torch.round(x.detach() * (1.0 / single)) + zero_point).clamp(0, 255)
    product = torch.matmul(ints.double() - zero_point, centered(weight, "linear_dynamic").t())
    result = product * (single * _scales(weight)).double()
    if bias is not None:  # FBGEMM multiplies and adds in one rounding
        result = result + bias.detach().double()
    return result.float()
