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


def convolved(
    x: Any, weight: Any, bias: Tensor | None, scale: float, zero_point: int, relu: bool, name: str,
    product: Callable[[Tensor, Tensor], Tensor],
) -> QuantizedTensor:  # fmt: skip
    """`weighted` of a convolution: a result with its channels last."""
    result = weighted(x, weight, bias, scale, zero_point, relu, name, product, 1)
    return channels_last(result)


def channels_last(q: QuantizedTensor) -> QuantizedTensor:
    """The same values, `[N, C, ...]`, with channels next to each other in memory."""
    ints = q._ints
    return q._with(ints.movedim(1, -1).contiguous().movedim(-1, 1))


def requantized(
    steps: Tensor, zero_point: int, relu: bool, scale: float, kind: Any
) -> QuantizedTensor:
    """Steps of `scale` as a quantised tensor."""
    integers, least, most = _LIMITS[kind]
    least = max(least, zero_point) if relu else least
    ints = (torch.round(steps) + zero_point).clamp(least, most).to(integers)
    return make(ints, scale, zero_point, None, kind)


def of_floats(
    function: Callable[[Tensor], Tensor], x: Any, scale: Any, zero_point: Any, name: str
) -> Tensor:
    """`function` of what the integers stand for, with `scale` and `zero_point`."""
    centered(x, name)  # refuses what is not quantised
    # torch's vectors multiply and add at once, so the product of the zero point is rounded.
    step = torch.tensor(x.q_scale(), dtype=torch.float32)
    values = (x._ints.double() * step.double() - (step * x.q_zero_point()).double()).float()
    inverse = 1.0 / torch.tensor(float(scale), dtype=torch.float32)
    steps = function(values).detach() * inverse
    return requantized(steps, int(zero_point), False, float(scale), x.dtype)


def within(x: Any, low: float, high: float, name: str) -> Tensor:
    """Values between two numbers, of the input's scale."""
    centered(x, name)
    scale, zero_point = x.q_scale(), x.q_zero_point()
    least, most = (int(torch.round(torch.tensor(v / scale))) + zero_point for v in (low, high))
    _, first, last = _LIMITS[x.dtype]
    result: Tensor = x._with(x._ints.clamp(max(least, first), min(most, last)))
    return result


def _quantised_input(x: Tensor, name: str, reduce_range: bool = True) -> QuantizedTensor:
    """An input of float32 on 7 bits, as dynamic layers take it, or on 8."""
    if x.device.type != "cpu":
        text = without_kernel(f"quantized::{name}", "PrivateUse1")
        raise NotImplementedError(text)
    low, high = (x.min().item(), x.max().item()) if x.numel() else (0.0, 0.0)
    scale, zero_point = choose_qparams(low, high, 0, 127 if reduce_range else 255)
    single = torch.tensor(scale, dtype=torch.float32)
    ints = (torch.round(x.detach() * (1.0 / single)) + zero_point).clamp(0, 255)
    return make(ints.to(torch.uint8), scale, zero_point, None, torch.quint8)


def linear_dynamic(
    x: Tensor, weight: Any, bias: Tensor | None, reduce_range: bool = True
) -> Tensor:
    """A linear layer of float32 whose input is quantised on the way."""
    if weight.dtype is not torch.qint8:  # float16 weights
        return torch.nn.functional.linear(x, weight, bias)
    name = "linear_dynamic"
    q = _quantised_input(x, name, reduce_range)
    product = torch.matmul(centered(q, name), centered(weight, name).t())
    step = torch.tensor(q.q_scale(), dtype=torch.float32)
    result = product * (step * _scales(weight)).double()
    if bias is not None:  # FBGEMM multiplies and adds in one rounding
        result = result + bias.detach().double()
    return result.float()


def conv_dynamic(
    x: Tensor, weight: Any, bias: Tensor | None, name: str,
    product: Callable[[Tensor, Tensor], Tensor], reduce_range: bool = True,
) -> Tensor:  # fmt: skip
    """A convolution of float32 whose input is quantised on the way, its result in steps of the
    input's."""
    q = _quantised_input(x, name, reduce_range)
    scale, zero_point = float(q._scales), int(q._zeros)
    return convolved(q, weight, bias, scale, zero_point, False, name, product).dequantize()
