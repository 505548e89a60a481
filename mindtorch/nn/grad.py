"""torch.nn.grad: the gradients of convolutions by their input and weight, as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import mindtorch

from .._tensor.tensor import Tensor
from . import functional

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input",
           "conv3d_weight"]  # fmt: skip

Sizes: TypeAlias = int | Sequence[int]


def _gradient(
    convolve: Callable[..., Tensor], operands: list[Tensor], at: int, grad_output: Tensor,
    options: Sequence[Any],
) -> Tensor:  # fmt: skip
    other = operands[1 - at]
    further = mindtorch.is_grad_enabled() and (other.requires_grad or grad_output.requires_grad)
    with mindtorch.enable_grad():
        operands[at].requires_grad_()
        output = convolve(*operands, None, *options)
        (gradient,) = mindtorch.autograd.grad(
            output, operands[at], grad_output, create_graph=further
        )
    if gradient.grad_fn is not None:
        gradient._fn.label = "ConvolutionBackwardBackward0"
    return gradient


def _by_input(dims: int) -> Callable[..., Tensor]:
    def conv_input(
        input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Sizes = 1,
        padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        operands = [grad_output.new_zeros(tuple(input_size)), weight]
        convolve = getattr(functional, f"conv{dims}d")
        return _gradient(convolve, operands, 0, grad_output, (stride, padding, dilation, groups))

    conv_input.__name__ = conv_input.__qualname__ = f"conv{dims}d_input"
    conv_input.__doc__ = (
        f"The gradient of conv{dims}d by its input, of shape `input_size` [N, C, ...]."
    )
    return conv_input


def _by_weight(dims: int) -> Callable[..., Tensor]:
    def conv_weight(
        input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Sizes = 1,
        padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        operands = [input, grad_output.new_zeros(tuple(weight_size))]
        convolve = getattr(functional, f"conv{dims}d")
        return _gradient(convolve, operands, 1, grad_output, (stride, padding, dilation, groups))

    conv_weight.__name__ = conv_weight.__qualname__ = f"conv{dims}d_weight"
    conv_weight.__doc__ = (
        f"The gradient of conv{dims}d by its weight, of shape `weight_size` [M, C / groups, ...]."
    )
    return conv_weight


conv1d_input, conv2d_input, conv3d_input = map(_by_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_by_weight, (1, 2, 3))
