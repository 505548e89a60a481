"""torch.ao.nn.intrinsic.qat: convolutions with batch norm and ReLU, rounded as they train."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch.nn import functional as F, init
from mindtorch.nn.utils.fusion import fuse_conv_bn_weights

from ....qat.modules.conv import Conv1d, Conv2d, Conv3d
from ....qat.modules.linear import attach_weight_observer
from ... import modules as nni
from ...modules.fused import Sizes

_Float = nn.modules.conv._ConvNd


class _ConvBnNd(nni._FusedModule):
    """A convolution whose weights are rounded with the scale of its batch norm in them."""

    _version = 2
    _FLOAT_MODULE: ClassVar[Any]
    _FLOAT_CONV_MODULE: ClassVar[Any]
    _FLOAT_BN_MODULE: ClassVar[Any]
    _FLOAT_RELU_MODULE: ClassVar[Any] = None
    _FUSED_FLOAT_MODULE: ClassVar[Any] = None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes,
        stride: Sizes = 1, padding: str | Sizes = 0, dilation: Sizes = 1, groups: int = 1,
        bias: bool | None = None,
        padding_mode: str = "zeros", eps: float = 1e-05, momentum: float | None = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ) -> None:  # fmt: skip
        self._FLOAT_CONV_MODULE.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, False,
            padding_mode,
        )  # fmt: skip
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = self._FLOAT_BN_MODULE(out_channels, eps, momentum, True, True)
        attach_weight_observer(self, qconfig)
        if bias:
            self.bias = nn.Parameter(torch.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_bn_parameters()
        if self.training and not freeze_bn:
            self.update_bn_stats()
        else:
            self.freeze_bn_stats()
        self._enable_slow_path_for_better_numerical_stability = False

    def reset_running_stats(self) -> None:
        """Forget the statistics of batches."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """Draw the norm's weights and the bias anew."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def update_bn_stats(self) -> _ConvBnNd:
        """Follow the statistics of batches."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> _ConvBnNd:
        """Keep the statistics."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def _forward(self, input: Tensor) -> Tensor:
        scale = self.bn.weight / torch.sqrt(self.bn.running_var + self.bn.eps)
        along = [-1] + [1] * (self.weight.dim() - 1)
        across = [1, -1] + [1] * (self.weight.dim() - 2)
        weight = self.weight_fake_quant(self.weight * scale.reshape(along))
        if self.bias is not None:
            zeros = torch.zeros_like(self.bias, dtype=input.dtype)
        else:
            zeros = torch.zeros(self.out_channels, device=weight.device, dtype=input.dtype)
        result = self._conv_forward(input, weight, zeros) / scale.reshape(across)
        if self.bias is not None:
            result = result + self.bias.reshape(across)
        normed: Tensor = self.bn(result)
        return normed

    def forward(self, input: Tensor) -> Tensor:  # type: ignore[override]
        result = self._forward(input)
        return F.relu(result) if self._FLOAT_RELU_MODULE else result

    def train(self, mode: bool = True) -> _ConvBnNd:
        """As of any module, but a frozen norm stays so."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> _ConvBnNd:
        """The same weights, rounded by the module's `qconfig`."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError("Input float module must have a valid qconfig")
        conv, bn, *_ = mod.children()
        new = cls(
            conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding,
            conv.dilation, conv.groups, conv.bias is not None, conv.padding_mode, bn.eps,
            bn.momentum, False, mod.qconfig,
        )  # fmt: skip
        new.weight, new.bias = conv.weight, conv.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(new.bn, name, getattr(bn, name))
        return new

    def fused_weights(self) -> tuple[Tensor, Tensor]:
        """Weight and bias with the norm in them."""
        bn = self.bn
        return fuse_conv_bn_weights(
            self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )

    def to_float(self) -> nn.Module:
        """Plain modules, the norm in the weights."""
        conv = self._FLOAT_CONV_MODULE(
            self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding,
            self.dilation, self.groups, self.bias is not None, self.padding_mode,
        )  # fmt: skip
        conv.weight, conv.bias = self.fused_weights()
        if self._FLOAT_RELU_MODULE:
            return self._FUSED_FLOAT_MODULE(conv, nn.ReLU()).train(self.training)
        return conv.train(self.training)


def _class(name: str, base: type, size: int, **more: Any) -> Any:
    conv, norm = getattr(nn, f"Conv{size}d"), getattr(nn, f"BatchNorm{size}d")
    scope = {"_FLOAT_MODULE": getattr(nni, name), "_FLOAT_CONV_MODULE": conv,
             "_FLOAT_BN_MODULE": norm, "__module__": __name__, **more}  # fmt: skip
    doc = "A convolution with batch norm{}, its weights rounded as it trains."
    scope["__doc__"] = doc.format(" and ReLU" if "ReLU" in name else "")
    return type(name, (base, conv) if base is _ConvBnNd else (base,), scope)


def _relu(size: int) -> dict[str, Any]:
    fused = getattr(nni, f"ConvReLU{size}d")
    return {"_FLOAT_RELU_MODULE": nn.ReLU, "_FUSED_FLOAT_MODULE": fused}


ConvBn1d = _class("ConvBn1d", _ConvBnNd, 1)
ConvBn2d = _class("ConvBn2d", _ConvBnNd, 2)
ConvBn3d = _class("ConvBn3d", _ConvBnNd, 3)
ConvBnReLU1d = _class("ConvBnReLU1d", ConvBn1d, 1, **_relu(1))
ConvBnReLU2d = _class("ConvBnReLU2d", ConvBn2d, 2, **_relu(2))
ConvBnReLU3d = _class("ConvBnReLU3d", ConvBn3d, 3, **_relu(3))


def _conv_relu(conv: Any, size: int) -> Any:
    def forward(self: Any, input: Tensor) -> Tensor:
        return F.relu(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))

    scope = {"_FLOAT_MODULE": getattr(nni, f"ConvReLU{size}d"), "forward": forward,
             "__module__": __name__,
             "__doc__": "A convolution with rounded weights, and ReLU."}  # fmt: skip
    return type(f"ConvReLU{size}d", (conv, nni._FusedModule), scope)


ConvReLU1d, ConvReLU2d, ConvReLU3d = (
    _conv_relu(conv, size) for size, conv in enumerate((Conv1d, Conv2d, Conv3d), 1)
)


def update_bn_stats(mod: nn.Module) -> None:
    """Let the norms of fused modules follow batches; for `model.apply`."""
    if isinstance(mod, _ConvBnNd):
        mod.update_bn_stats()


def freeze_bn_stats(mod: nn.Module) -> None:
    """Let the norms of fused modules keep their statistics; for `model.apply`."""
    if isinstance(mod, _ConvBnNd):
        mod.freeze_bn_stats()
