"""Owns torch.ops.quantized: functions of quantised tensors, which graphs call too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch as torch
from mindtorch import Tensor
from mindtorch._quantized import QuantizedTensor, make
from mindtorch.nn import functional as F
from mindtorch.ops.namespaces import namespace

from ..nn.quantized._kernels import (
    centered,
    channels_last,
    conv_dynamic,
    convolved,
    linear_dynamic,
    of_floats,
    weighted,
    within,
)


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


def _matmul(qa: Any, qb: Any, scale: float, zero_point: int) -> Tensor:
    for q in (qa, qb):
        centered(q, "matmul")
    product = torch.matmul(qa.dequantize(), qb.dequantize())
    result: Tensor = torch.quantize_per_tensor(product, float(scale), int(zero_point), qa.dtype)
    return result


def _number(name: str) -> Callable[..., Tensor]:
    return lambda qa, b: _NUMBERS[name](qa, b)


def _rectified(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *args, **kwargs: torch.relu(function(*args, **kwargs))


def _batch_norm(name: str) -> Callable[..., Tensor]:
    def operator(
        qx: Any, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float,
        output_scale: float, output_zero_point: int,
    ) -> Tensor:  # fmt: skip
        def normalise(x: Tensor) -> Tensor:
            return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)

        result: Any = of_floats(normalise, qx, output_scale, output_zero_point, name)
        result = torch.relu(result) if name.endswith("relu") else result
        return channels_last(result)

    return operator


class LinearPackedParamsBase:
    """A weight and a bias as `quantized::linear` takes them."""

    def __init__(self, weight: Any, bias: Tensor | None):
        self._weight, self._bias = weight, bias

    def unpack(self) -> tuple[Any, Tensor | None]:
        """The weight and the bias."""
        return self._weight, self._bias

    def weight(self) -> Any:
        """qint8 `[out, in]`."""
        return self._weight

    def bias(self) -> Tensor | None:
        """float32 `[out]`."""
        return self._bias


class ConvPackedParamsBase(LinearPackedParamsBase):
    """A weight and a bias with how the window moves, as `quantized::conv` takes them."""

    def __init__(
        self, weight: QuantizedTensor, bias: Tensor | None, name: str, stride: Sequence[int],
        padding: Sequence[int], output_padding: Sequence[int], dilation: Sequence[int], groups: int,
    ) -> None:  # fmt: skip
        super().__init__(weight, bias)
        self.name, self.transpose = name, "transpose" in name
        self.stride, self.padding = list(stride), list(padding)
        self.output_padding, self.dilation = list(output_padding), list(dilation)
        self.groups = groups

    def product(self, a: Tensor, w: Tensor) -> Tensor:
        """The convolution of floats."""
        more = (self.output_padding, self.groups, self.dilation)
        rest = more if self.transpose else (self.dilation, self.groups)
        result: Tensor = getattr(F, self.name)(a, w, None, self.stride, self.padding, *rest)
        return result


def _conv_operators(name: str, transpose: bool) -> dict[str, Callable[..., object]]:
    """What there is of a convolution: packing, the result, rectified or of floats, and parts."""

    def prepack(
        weight: QuantizedTensor, bias: Tensor | None, stride: Sequence[int],
        padding: Sequence[int], *rest: Any,
    ) -> ConvPackedParamsBase:  # fmt: skip
        more = rest if transpose else ([0] * len(stride), *rest)
        return ConvPackedParamsBase(weight, bias, name, stride, padding, *more)

    def result(relu: bool) -> Callable[..., Tensor]:
        full = name + "_relu" * relu

        def operator(
            qx: QuantizedTensor, packed_weight: ConvPackedParamsBase, output_scale: float,
            output_zero_point: int,
        ) -> Tensor:  # fmt: skip
            weight, bias = packed_weight.unpack()
            ends = float(output_scale), int(output_zero_point)
            return convolved(qx, weight, bias, *ends, relu, full, packed_weight.product)

        return operator

    def dynamic(
        qx: Tensor, packed_weight: ConvPackedParamsBase, reduce_range: bool = False
    ) -> Tensor:
        weight, bias = packed_weight.unpack()
        return conv_dynamic(qx, weight, bias, name, packed_weight.product, reduce_range)

    def part(key: str) -> Callable[..., object]:
        return lambda packed_weights: getattr(packed_weights, key)

    parts = ("stride", "padding", "output_padding", "dilation", "groups", "transpose")
    return {
        name: result(False), f"{name}_relu": result(True), f"{name}_dynamic": dynamic,
        f"{name}_prepack": prepack, f"{name}_unpack": lambda packed: packed.unpack(),
        **{f"{name}_{key}": part(key) for key in parts},
    }  # fmt: skip


def _linear(relu: bool) -> Callable[..., Tensor]:
    name = "linear_relu" if relu else "linear"

    def operator(X: Any, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int) -> Tensor:  # noqa: N803
        weight, bias = W_prepack.unpack()

        def product(a: Tensor, w: Tensor) -> Tensor:
            return torch.matmul(a, w.t())

        return weighted(X, weight, bias, Y_scale_i, Y_zero_point_i, relu, name, product, -1)

    return operator


def _linear_dynamic(X: Tensor, W_prepack: Any, reduce_range: bool = False) -> Tensor:  # noqa: N803
    weight, bias = W_prepack.unpack()
    return linear_dynamic(X, weight, bias, reduce_range)


def _prepack_fp16(W: Tensor, B: Tensor | None = None) -> LinearPackedParamsBase:  # noqa: N803
    """Weights that are rounded to float16."""
    return LinearPackedParamsBase(W.detach().half().float(), B)


# Functions of what the integers stand for: name → schema's parameters, and the function of floats.
_OF_FLOATS: dict[str, tuple[str, Callable[..., Tensor]]] = {
    "celu": ("output_scale output_zero_point alpha=1.0", F.celu),
    "elu": ("output_scale output_zero_point alpha=1.0", F.elu),
    "group_norm": ("num_groups weight bias eps output_scale output_zero_point", F.group_norm),
    "hardswish": ("output_scale output_zero_point", F.hardswish),
    "layer_norm": (
        "normalized_shape weight bias eps output_scale output_zero_point", F.layer_norm,
    ),
    "leaky_relu": (
        "negative_slope inplace output_scale output_zero_point",
        lambda x, slope, inplace: F.leaky_relu(x, slope),
    ),
    "prelu": (
        "weight output_scale output_zero_point", lambda x, w: F.prelu(x, w.dequantize()),
    ),
    "instance_norm": (
        "weight bias eps output_scale output_zero_point",
        lambda x, w, b, eps: F.instance_norm(x, None, None, w, b, True, 0.0, eps),
    ),
    "sigmoid": ("output_scale output_zero_point", torch.sigmoid),
    "softmax": ("dim output_scale output_zero_point", torch.softmax),
}  # fmt: skip


def _of_floats(name: str) -> Callable[..., Tensor]:
    text, function = _OF_FLOATS[name]
    words = [word.partition("=")[0] for word in text.split()]
    rest = [word for word in words if not word.startswith("output_")]

    def operator(qx: Any, *args: Any, **kwargs: Any) -> Tensor:
        values = dict(zip(words, args, strict=False)) | kwargs

        def computed(x: Tensor) -> Tensor:
            return function(x, *(values[word] for word in rest if word in values))

        scale, zero_point = values["output_scale"], values["output_zero_point"]
        return of_floats(computed, qx, scale, zero_point, name)

    return operator


OPERATORS = {
    "add": _pair("add", torch.add, False), "add_relu": _pair("add_relu", torch.add, True),
    "mul": _pair("mul", torch.mul, False), "mul_relu": _pair("mul_relu", torch.mul, True),
    "cat": _cat, "add_scalar": _number("add"), "mul_scalar": _number("mul"), "matmul": _matmul,
    "cat_relu": _rectified(_cat), "add_scalar_relu": _rectified(_number("add")),
    "mul_scalar_relu": _rectified(_number("mul")),
    **{n: _batch_norm(n) for d in ("", "1d", "2d", "3d")
       for n in (f"batch_norm{d}", f"batch_norm{d}_relu")},
    **{key: op for d in (1, 2, 3) for t in ("", "_transpose")
       for key, op in _conv_operators(f"conv{t}{d}d", bool(t)).items()},
    "clamp": lambda qx, min=None, max=None: torch.clamp(qx, min, max),
    "threshold": lambda qx, threshold, value: F.threshold(qx, threshold, value),
    "dropout": lambda self, output_p=0.5, training=False: F.dropout(self, output_p, training),
    "max_pool1d": lambda qx, *sizes: F.max_pool1d(qx, *sizes),
    "max_pool2d": lambda qx, *sizes: F.max_pool2d(qx, *sizes),
    "linear_prepack": lambda W, B=None: LinearPackedParamsBase(W, B),  # noqa: N803
    "linear": _linear(False), "linear_relu": _linear(True), "linear_dynamic": _linear_dynamic,
    "linear_relu_dynamic": _rectified(_linear_dynamic), "linear_prepack_fp16": _prepack_fp16,
    "linear_dynamic_fp16": _linear_dynamic, "linear_relu_dynamic_fp16": _rectified(_linear_dynamic),
    "linear_unpack": lambda W_prepack: W_prepack.unpack(),  # noqa: N803
    "linear_unpack_fp16": lambda W_prepack: W_prepack.unpack(),  # noqa: N803
    "relu6": lambda qx, inplace=False: within(qx, 0.0, 6.0, "relu6"),
    **{name: _of_floats(name) for name in _OF_FLOATS},
}  # fmt: skip
for _name, _operator in OPERATORS.items():
    _operator.__name__ = _operator.__qualname__ = _name
    _operator.__module__ = "torch.ops.quantized"
    setattr(namespace("quantized"), _name, _operator)
