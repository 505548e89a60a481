"""Owns torch's fake quantisation: numbers rounded to a grid of integers and back.

The gradient passes where the integer was in range and stops elsewhere (straight-through).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._autograd.function import BackwardCFunction, Function, FunctionNode
from .._autograd.grad_mode import LOCAL
from .._compat.argument_errors import parsed
from .._compat.refusals import without_kernel
from .._compat.unsupported_dtypes import refuse
from .._tensor import dtype as dt
from .._tensor.tensor import Tensor
from ..ops.rules import scalar_name, wrap_dim
from ..ops.spec import aten
from .creation import tensor as _tensor
from .publish import surface


def _on_grid(
    input: Tensor, scale: Any, zero_point: Any, least: int, most: int
) -> tuple[Tensor, Tensor]:
    """What the integers between the ends hold of `input`, and which of its elements they do."""
    if not input.dtype.is_floating_point:
        kernel = "fake_quantize_tensor_cachemask_kernel_type_handling"
        refuse({"whole bool": kernel}, None, [input._geom])
    step = float(1 / np.float32(scale)) if isinstance(scale, float) else 1.0 / scale
    steps = aten.round(input * step) + zero_point
    inside = aten.logical_and(aten.ge(steps, least), aten.le(steps, most))
    result = (aten.clamp(steps, least, most) - zero_point) * scale
    return aten.to(result, input.dtype), inside


class _FakeQuantized(Function):
    @staticmethod
    def forward(
        ctx: FunctionNode, input: Tensor, scale: Any, zero_point: Any, least: int, most: int
    ) -> Tensor:
        result, inside = _on_grid(input, scale, zero_point, least, most)
        ctx.save_for_backward(inside)
        return result

    @staticmethod
    def backward(ctx: FunctionNode, grad: Tensor) -> tuple[Any, ...]:
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None, None, None


class _Learned(Function):
    """The same with gradients of scale and zero point, `factor` times as large: of one for all, or
    of one for each place along `axis`."""

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, scale: Tensor, zero_point: Tensor, least: int, most: int,
        factor: float, axis: int | None,
    ) -> Tensor:  # fmt: skip
        sizes = [1] * input.dim()
        if axis is not None:
            sizes[axis] = scale.numel()
        step, place = (aten.view(v, sizes) for v in (scale, zero_point))
        zero = aten.to(aten.clamp(aten.round(place), least, most), step.dtype)
        # torch's gradients of one zero point for all round it towards zero once it is greater by ½.
        past = zero if axis is not None else aten.trunc(aten.clamp(place + 0.5, least, most))
        ctx.save_for_backward(input, step, past)
        ctx.rest = least, most, factor, axis
        return _on_grid(input, step, zero, least, most)[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        (input, scale, zero), (least, most, factor, axis) = ctx.saved_tensors, ctx.rest
        steps = input * (1.0 / scale)
        # For channels torch rounds here once the zero point is added.
        steps = aten.round(steps) + zero if axis is None else aten.round(steps + zero)
        inside = aten.logical_and(aten.ge(steps, least), aten.le(steps, most))
        outside = aten.where(aten.lt(steps, least), least - zero, most - zero)
        error = (aten.clamp(steps, least, most) - zero) * scale - input
        by_scale = aten.where(inside, grad * error * (1.0 / scale), grad * outside)
        by_zero = aten.where(inside, 0.0, grad * -scale)
        dims = [d for d in range(input.dim()) if d != axis]
        sums = [aten.view(aten.sum(by * factor, dims), [-1]) for by in (by_scale, by_zero)]
        return grad * inside, *sums, *[None] * 4


for _function, _title in ((_FakeQuantized, "FakeQuantized"), (_Learned, "FakeQuantizedLearned")):
    _members = {"_function": _function, "__module__": ""}
    _function._node_class = type(_title, (BackwardCFunction,), _members)


def _applied(name: str, function: type[Function], *args: Any) -> Tensor:
    """The result, with a node of the name of torch's operator."""
    result = function.apply(*args)
    assert isinstance(result, Tensor)
    if result.grad_fn is not None:
        result._fn.label = "".join(map(str.title, name.split("_"))) + "Backward0"
    return result


def _rounded(name: str, input: Tensor, scale: Any, zero_point: Any, *ends: int) -> Tensor:
    """What is rounded; RuntimeError in torch's words where the scale or the zero point wants a
    gradient."""
    for what, value in (("scale", scale), ("zero_point", zero_point)):
        if LOCAL.grad and isinstance(value, Tensor) and value.requires_grad:
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument '{what}'."
                " This input cannot have requires_grad True."
            )
    return _applied(name, _FakeQuantized, input, scale, zero_point, *ends)


def _refuse_range(least: int, most: int, zero_point: int | None) -> None:
    if least > most:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    if zero_point is not None and not least <= zero_point <= most:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


def _refuse_channels(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, least: int, most: int
) -> None:
    if scale.dtype not in (dt.float32, dt.bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {scalar_name(scale.dtype)}")
    if scale.dim() != 1 or zero_point.dim() != 1:
        raise RuntimeError("scale and zero point must be 1-D tensors")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if scale.numel() != input.shape[wrap_dim(axis, input.dim())]:
        raise RuntimeError(
            "dimensions of scale and zero-point are not consistent with input tensor"
        )
    _refuse_range(least, most, None)
    if axis < 0:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")


@surface(method=False)
@parsed()
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int, quant_max: int
) -> Tensor:
    """`input` as integers from `quant_min` to `quant_max` of one scale and zero point hold it."""
    number = zero_point if isinstance(zero_point, int) else None
    _refuse_range(quant_min, quant_max, number)
    name = "fake_quantize_per_tensor_affine_cachemask"
    if isinstance(scale, Tensor):
        name = f"_{name}_tensor_qparams"
    return _rounded(name, input, scale, zero_point, quant_min, quant_max)


@surface(method=False)
@parsed()
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """The same with a scale and a zero point, `[C]`, for each place along `axis`."""
    if zero_point.dtype not in (dt.int32, dt.float32, dt.float16, dt.bfloat16):
        kind = scalar_name(zero_point.dtype)
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {kind}")
    _refuse_channels(input, scale, zero_point, axis, quant_min, quant_max)
    ends = aten.aminmax(zero_point.detach()) if zero_point.numel() else ()
    if not all(quant_min <= end.item() <= quant_max for end in ends):
        _refuse_range(quant_min, quant_max, quant_max + 1)
    sizes = [1] * input.dim()
    sizes[axis] = scale.numel()
    places = aten.to(aten.view(zero_point, sizes), scale.dtype)
    name = "fake_quantize_per_channel_affine_cachemask"
    return _rounded(name, input, aten.view(scale, sizes), places, quant_min, quant_max)


@surface(method=False)
@parsed()
def _fake_quantize_learnable_per_tensor_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:  # fmt: skip
    """`input` rounded by the first scale and zero point, which get gradients."""
    scale, zero_point = (aten.reshape(aten.select(v, 0, 0), [1]) for v in (scale, zero_point))
    _refuse_range(quant_min, quant_max, None)
    name = "fake_quantize_learnable_per_tensor_affine"
    ends = quant_min, quant_max
    return _applied(name, _Learned, input, scale, zero_point, *ends, grad_factor, None)


@surface(method=False)
@parsed()
def _fake_quantize_learnable_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:  # fmt: skip
    """`input` rounded by a scale and a zero point, `[C]`, for each place along `axis`, which get
    gradients."""
    _refuse_channels(input, scale, zero_point, axis, quant_min, quant_max)
    name = "fake_quantize_learnable_per_channel_affine"
    ends = quant_min, quant_max
    return _applied(name, _Learned, input, scale, zero_point, *ends, grad_factor, axis)


@surface(method=False)
@parsed()
def fused_moving_avg_obs_fake_quant(
    input: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor,
    running_max: Tensor, scale: Tensor, zero_point: Tensor, averaging_const: float, quant_min: int,
    quant_max: int, ch_axis: int, per_row_fake_quant: bool = False, symmetric_quant: bool = False,
) -> Tensor:  # fmt: skip
    """Note the moving average of the range, set scale and zero point, and round by them."""
    if observer_on.item():
        _follow(input.detach(), running_min, running_max, averaging_const,
                ch_axis if per_row_fake_quant else None)  # fmt: skip
        ends = zip(running_min.reshape(-1).tolist(), running_max.reshape(-1).tolist(), strict=True)
        pairs = [_choose(low, high, quant_min, quant_max, symmetric_quant) for low, high in ends]
        for target, values in zip((scale, zero_point), zip(*pairs, strict=True), strict=True):
            target.resize_(len(values)).copy_(_tensor(values))
    if not fake_quant_on.item():
        return input
    if per_row_fake_quant:
        result = fake_quantize_per_channel_affine(
            input, scale, zero_point, ch_axis, quant_min, quant_max
        )
    else:
        result = fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)
    if result.grad_fn is not None:
        result._fn.label = "FusedMovingAvgObsFqHelperBackward0"
    return result


def _choose(low: float, high: float, least: int, most: int, symmetric: bool) -> tuple[float, int]:
    from .._quantized import choose_qparams  # it loads when something is quantised

    return choose_qparams(low, high, least, most, symmetric)


def _follow(x: Tensor, low: Tensor, high: Tensor, rate: float, axis: int | None) -> None:
    """Move the least and the greatest value, of each channel or of all, towards those of `x`."""
    if axis is not None:
        rows = aten.flatten(aten.transpose(x, 0, axis), 1)
        ends = aten.aminmax(rows, dim=1)
        if not low.numel():
            low.resize_(rows.shape[0]).fill_(float("inf"))
            high.resize_(rows.shape[0]).fill_(float("-inf"))
    else:
        ends = aten.aminmax(x)
    for target, now in zip((low, high), ends, strict=True):
        moved = target + rate * (now - target)
        target.copy_(aten.where(aten.isinf(target), now, moved))


@surface(function=False, internal=False)
def dequantize(self: Tensor) -> Tensor:
    """The elements as float32."""
    result: Tensor = aten.to(self, dt.float32)
    return result


def _of_quantized_tensors(name: str) -> None:
    """A method that quantised tensors have; torch's refusal for others."""

    def method(self: Tensor) -> object:
        """What a quantised tensor answers; NotImplementedError for any other."""
        backend = "CPU" if self.device.type == "cpu" else "PrivateUse1"
        raise NotImplementedError(without_kernel(name, backend))

    method.__name__ = method.__qualname__ = name
    surface(function=False, internal=False)(method)


for _name in ("int_repr", "q_scale", "q_zero_point", "qscheme", "q_per_channel_axis",
              "q_per_channel_scales", "q_per_channel_zero_points"):  # fmt: skip
    _of_quantized_tensors(_name)
