"""torch.ao.nn.quantized.functional: functions of quantised tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mindtorch as torch
from mindtorch import Tensor
from mindtorch.nn import functional as F

from ._kernels import convolved, of_floats, weighted
from .modules.conv import _CONVS

Sizes = int | tuple[int, ...] | list[int]


def _need(input: Tensor, name: str) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def linear(
    input: Any, weight: Any, bias: Tensor | None = None, scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:  # fmt: skip
    """quint8 `[*, in]` by qint8 `[out, in]` → quint8 `[*, out]`, of the input's scale unless
    given."""
    step = input.q_scale() if scale is None else scale
    zero = input.q_zero_point() if zero_point is None else zero_point
    return weighted(
        input, weight, bias, step, zero, False, "linear", lambda a, w: torch.matmul(a, w.t()), -1
    )


def _conv(dims: int) -> Callable[..., Tensor]:
    letters = ("L", "H, W", "D, H, W")[dims - 1]

    def conv(
        input: Any, weight: Any, bias: Tensor | None, stride: Sizes = 1, padding: Sizes = 0,
        dilation: Sizes = 1, groups: int = 1, padding_mode: str = "zeros", scale: float = 1.0,
        zero_point: int = 0, dtype: torch.dtype = torch.quint8,
    ) -> Tensor:  # fmt: skip
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        if input.dtype != torch.quint8:
            raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
        if weight.dtype != torch.qint8:
            raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
        if input.ndim != dims + 2:
            raise ValueError(f"Input shape must be `(N, C, {letters})`!")

        def product(a: Tensor, w: Tensor) -> Tensor:
            return _CONVS[dims](a, w, None, stride, padding, dilation, groups)

        return convolved(input, weight, bias, scale, zero_point, False, conv.__name__, product)

    conv.__name__ = conv.__qualname__ = f"conv{dims}d"
    conv.__doc__ = f"quint8 `[N, C, {letters}]` by qint8 weights, with `scale` and `zero_point`."
    return conv


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)


def _passed(name: str) -> Callable[..., Any]:
    """The function of floats, of integers."""
    function: Callable[..., Any] = getattr(F, name, None) or getattr(torch, name)

    def call(input: Tensor, *args: Any, **options: Any) -> Any:
        _need(input, name)
        return function(input, *args, **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{name}` of a quantised tensor, of its scale; ValueError for others."
    return call


adaptive_avg_pool2d = _passed("adaptive_avg_pool2d")
adaptive_avg_pool3d = _passed("adaptive_avg_pool3d")
avg_pool2d, avg_pool3d = _passed("avg_pool2d"), _passed("avg_pool3d")
clamp, hardtanh, threshold = _passed("clamp"), _passed("hardtanh"), _passed("threshold")
hardsigmoid, interpolate = _passed("hardsigmoid"), _passed("interpolate")


def _resized(name: str, *arguments: Any) -> Tensor:
    warnings.warn(
        f"nn.quantized.functional.{name} is deprecated. Use nn.quantized.functional.interpolate"
        " instead.",
        stacklevel=3,
    )
    result: Tensor = interpolate(*arguments)
    return result


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """`interpolate`, by its older name."""
    return _resized("upsample", input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` between four pixels, corners on corners."""
    return _resized("upsample_bilinear", input, size, scale_factor, "bilinear", True)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` to the nearest pixel."""
    return _resized("upsample_nearest", input, size, scale_factor, "nearest")


def _max_pool(name: str) -> Callable[..., Tensor]:
    function: Callable[..., Tensor] = getattr(F, name)

    def max_pool(
        input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
        dilation: Sizes = 1, ceil_mode: bool = False, return_indices: bool = False,
    ) -> Tensor:  # fmt: skip
        if return_indices:
            raise NotImplementedError("return_indices is not yet implemented!")
        return function(input, kernel_size, stride, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = name
    max_pool.__doc__ = "The largest of each window; NotImplementedError for indices."
    return max_pool


max_pool1d, max_pool2d = _max_pool("max_pool1d"), _max_pool("max_pool2d")


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """CELU, with `scale` and `zero_point`."""
    _need(input, "celu")
    return of_floats(lambda x: F.celu(x, alpha), input, scale, zero_point, "celu")


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """ELU, with `scale` and `zero_point`."""
    _need(input, "elu")
    return of_floats(lambda x: F.elu(x, alpha), input, scale, zero_point, "elu")


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """Hardswish, with `scale` and `zero_point`."""
    _need(input, "hardswish")
    return of_floats(F.hardswish, input, scale, zero_point, "hardswish")


def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False, scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:  # fmt: skip
    """Leaky ReLU, of the input's scale unless both are given."""
    if scale is None or zero_point is None:
        return F.leaky_relu(input, negative_slope)
    return of_floats(
        lambda x: F.leaky_relu(x, negative_slope), input, scale, zero_point, "leaky_relu"
    )
