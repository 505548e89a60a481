"""Owns folding a batch normalization in evaluation into the layer before it."""

from __future__ import annotations

import copy
from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from ..parameter import Parameter


def _folded(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    scale: Tensor | None,
    shift: Tensor | None,
    channel: int,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of one layer that gives what the two give; channels are dim `channel`."""
    bias = mindtorch.zeros_like(mean) if bias is None else bias
    shift = mindtorch.zeros_like(mean) if shift is None else shift
    factor = mindtorch.rsqrt(var + eps)
    factor = factor if scale is None else factor * scale
    spread = [1] * weight.dim()
    spread[channel] = -1
    new_weight = (weight * factor.reshape(spread)).to(weight.dtype)
    new_bias = ((bias - mean) * factor + shift).to(bias.dtype)
    return Parameter(new_weight, weight.requires_grad), Parameter(new_bias, bias.requires_grad)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight `[O, I, *]` (`[I, O, *]` with `transpose`) and bias `[O]` with the norm folded in."""
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, int(transpose))


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Weight `[O, I]` and bias `[O]` with the norm folded in."""
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(layer: Any, bn: Any, channel: int) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Tried to fuse a batch norm without running statistics")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = _folded(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        channel,
    )  # fmt: skip
    return fused


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that also normalizes as `bn` does; AssertionError in training."""
    return _fused(conv, bn, int(transpose))


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer that also normalizes as `bn` does; AssertionError in training."""
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got"
            f" linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, 0)
