"""torch.ao.nn.qat: convolutions whose weights are rounded as they train."""

from __future__ import annotations

from typing import Any, ClassVar

import mindtorch as torch
from mindtorch import Tensor, nn

from ...intrinsic.modules.fused import Sizes, _FusedModule
from .linear import attach_weight_observer, refuse_float_module


class _ConvNd(nn.modules.conv._ConvNd):
    """A convolution with the arguments of nn.Conv, and a qconfig."""

    _FLOAT_MODULE: ClassVar[type[nn.Module]]
    _FLOAT_CONV_MODULE: ClassVar[Any]
    _FLOAT_RELU_MODULE: ClassVar[Any] = None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes,
        stride: Sizes = 1, padding: str | Sizes = 0, dilation: Sizes = 1, groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros", qconfig: Any = None, device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        factory = {"device": device, "dtype": dtype}
        self._FLOAT_CONV_MODULE.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, **factory,
        )  # fmt: skip
        attach_weight_observer(self, qconfig, factory_kwargs=factory)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> _ConvNd:
        """The same weights, rounded by the module's `qconfig`."""
        refuse_float_module(cls, mod)
        qconfig = mod.qconfig
        if isinstance(mod, _FusedModule):
            mod = mod[0]
            qconfig = mod.qconfig
        new = cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding,
            mod.dilation, mod.groups, mod.bias is not None, mod.padding_mode, qconfig=qconfig,
        )  # fmt: skip
        new.weight, new.bias = mod.weight, mod.bias
        return new

    def to_float(self) -> nn.Module:
        """A plain convolution with these weights."""
        conv = self._FLOAT_CONV_MODULE(
            self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding,
            self.dilation, self.groups, self.bias is not None, self.padding_mode,
        )  # fmt: skip
        conv.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            conv.bias = nn.Parameter(self.bias.detach())
        if not issubclass(type(self), _FusedModule):
            return conv
        return self._FLOAT_MODULE(conv, nn.ReLU()).train(self.training)


class Conv1d(_ConvNd, nn.Conv1d):
    """A convolution over `[N, C, L]` whose weights are rounded."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv1d


class Conv2d(_ConvNd, nn.Conv2d):
    """A convolution over `[N, C, H, W]` whose weights are rounded."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv2d


class Conv3d(_ConvNd, nn.Conv3d):
    """A convolution over `[N, C, D, H, W]` whose weights are rounded."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv3d
