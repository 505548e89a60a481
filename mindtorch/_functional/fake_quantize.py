"""Owns torch's fake quantisation: numbers rounded to a grid of integers and back.

The gradient passes where the integer was in range and stops elsewhere (straight-through).
"""

from __future__ import annotations

from typing import Any

from .._autograd.function import BackwardCFunction, Function, FunctionNode
from .._autograd.grad_mode import LOCAL
from .._compat.argument_errors import parsed
from .._compat.refusals import without_kernel
from .._tensor import dtype as dt
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from .creation import tensor as _tensor
from .publish import surface


class _FakeQuantized(Function):
    @staticmethod
    def forward(
        ctx: FunctionNode, input: Tensor, scale: Any, zero_point: Any, least: int, most: int
    ) -> Tensor:
        steps = aten.round(input * (1.0 / scale)) + zero_point
        inside = aten.logical_and(aten.ge(steps, least), aten.le(steps, most))
        ctx.save_for_backward(inside)
        rounded = (aten.clamp(steps, least, most) - zero_point) * scale
        return aten.to(rounded, input.dtype)

    @staticmethod
    def backward(ctx: FunctionNode, grad: Tensor) -> tuple[Any, ...]:
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None, None, None


_members = {"_function": _FakeQuantized, "__module__": ""}
_FakeQuantized._node_class = type("FakeQuantized", (BackwardCFunction,), _members)


def _rounded(name: str, input: Tensor, scale: Any, zero_point: Any, *ends: int) -> Tensor:
    """The result, with a node of the name of torch's operator; RuntimeError in torch's words where
    the scale or the zero point wants a gradient."""
    for what, value in (("scale", scale), ("zero_point", zero_point)):
        if LOCAL.grad and isinstance(value, Tensor) and value.requires_grad:
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument '{what}'."
                " This input cannot have requires_grad True."
            )
    result = _FakeQuantized.apply(input, scale, zero_point, *ends)
    assert isinstance(result, Tensor)
    if result.grad_fn is not None:
        result._fn.label = "".join(map(str.title, name.split("_"))) + "Backward0"
    return result


def _refuse_range(least: int, most: int, zero_point: int | None) -> None:
    if least > most:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    if zero_point is not None and not least <= zero_point <= most:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


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
    _refuse_range(quant_min, quant_max, None)
    if scale.dtype is not dt.float32:
        raise RuntimeError(f"Scale must be Float, found {scale.dtype.legacy}")
    if zero_point.dtype not in (dt.int32, dt.float32, dt.float16):
        kind = zero_point.dtype.legacy
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {kind}")
    if scale.dim() != 1 or zero_point.dim() != 1:
        raise RuntimeError("scale and zero point must be 1-D tensors")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if scale.numel() != input.shape[axis]:
        raise RuntimeError(
            "dimensions of scale and zero-point are not consistent with input tensor"
        )
    sizes = [1] * input.dim()
    sizes[axis] = scale.numel()
    places = aten.to(aten.view(zero_point, sizes), scale.dtype)
    name = "fake_quantize_per_channel_affine_cachemask"
    return _rounded(name, input, aten.view(scale, sizes), places, quant_min, quant_max)


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
