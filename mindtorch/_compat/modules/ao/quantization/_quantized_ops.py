"""Owns torch.ops.quantized's functions of two tensors, or several, that graphs call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch as torch
from mindtorch import Tensor
from mindtorch._quantized import make
from mindtorch.ops.namespaces import namespace

from ..nn.quantized._kernels import centered


def _moved(a: Any, number: float) -> Tensor:
    """`a + number`: another zero point, and another scale where that has no place."""
    centered(a, "add")
    scale, least, most = a.q_scale(), *_RANGES[a.dtype]
    zero_point = a.q_zero_point() - round(number / scale)
    ints = a.int_repr()
    if least <= zero_point <= most:
        return make(ints, scale, zero_point, None, a.dtype)
    end, start = (least, most) if zero_point < least else (most, least)
    wider = abs(start - zero_point) / (most - least) * scale
    values = (ints.double() - zero_point) * (scale / wider)
    moved = (torch.round(values) + end).clamp(least, most).to(ints.dtype)
    return make(moved, wider, end, None, a.dtype)


def _scaled(a: Any, number: float) -> Tensor:
    """`a * number`: another scale, and the integers turned around for a negative number."""
    centered(a, "mul")
    least, most = _RANGES[a.dtype]
    ints, zero_point = a.int_repr(), a.q_zero_point()
    if number == 0:
        return make(ints * 0, 1.0, 0, None, a.dtype)
    if number < 0:
        ints = (least + most - ints.int()).to(ints.dtype)
        zero_point = least + most - zero_point
    return make(ints, a.q_scale() * abs(number), zero_point, None, a.dtype)


_RANGES = {torch.quint8: (0, 255), torch.qint8: (-128, 127)}
_NUMBERS = {"add": _moved, "mul": _scaled}


def _pair(name: str, function: Callable[[Tensor, Tensor], Tensor], relu: bool) -> Any:
    def operator(a: Any, b: Any, scale: float = 1.0, zero_point: int = 0) -> Tensor:
        if not isinstance(b, Tensor):
            result = _NUMBERS[name.removesuffix("_relu")](a, b)
            return torch.relu(result) if relu else result
        for q in (a, b):
            centered(q, name)
        values = function(a.dequantize(), b.dequantize())
        values = torch.relu(values) if relu else values
        return torch.quantize_per_tensor(values, float(scale), int(zero_point), a.dtype)

    return operator


def _cat(tensors: Sequence[Any], dim: int, scale: float | None = None,
         zero_point: int | None = None) -> Tensor:  # fmt: skip
    """Tensors one after the other, by the scale of the first unless another is named."""
    for q in tensors:
        centered(q, "cat")
    first = tensors[0]
    scale = first.q_scale() if scale is None else float(scale)
    zero_point = first.q_zero_point() if zero_point is None else int(zero_point)
    values = torch.cat([q.dequantize() for q in tensors], dim)
    return torch.quantize_per_tensor(values, scale, zero_point, first.dtype)


OPERATORS = {
    "add": _pair("add", torch.add, False), "add_relu": _pair("add_relu", torch.add, True),
    "mul": _pair("mul", torch.mul, False), "mul_relu": _pair("mul_relu", torch.mul, True),
    "cat": _cat,
}  # fmt: skip
for _name, _operator in OPERATORS.items():
    _operator.__name__ = _operator.__qualname__ = _name
    _operator.__module__ = "torch.ops.quantized"
    setattr(namespace("quantized"), _name, _operator)
