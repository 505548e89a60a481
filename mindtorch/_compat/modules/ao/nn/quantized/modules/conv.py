"""torch.ao.nn.quantized: convolutions of integers."""

from __future__ import annotations

from typing import Any, ClassVar

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch._compat.method_names import written_out
from mindtorch.nn import functional as F
from mindtorch.nn.modules.utils import _pair, _single, _triple

from ...intrinsic import modules as nni
from ...intrinsic.modules.fused import Sizes
from .._kernels import convolved
from .utils import WeightedQuantizedModule, _quantize_weight

_CONVS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


@written_out("__init__", "forward")
class _ConvNd(WeightedQuantizedModule):
    """A convolution of quint8 with qint8 weights; the result has `scale` and `zero_point`."""

    _FLOAT_MODULE: ClassVar[Any]
    _dims: ClassVar[int]
    _relu: ClassVar[bool] = False
    _transposed: ClassVar[bool] = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes,
        stride: Sizes = 1, padding: str | Sizes = 0, dilation: Sizes = 1, groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros", device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if out_channels <= 0:
            raise ValueError(f"out_channels must be greater than 0, got {out_channels}")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect"):
            raise ValueError(
                f"'padding_mode' {padding_mode} is not supported by quantized convolution"
            )
        if padding_mode == "reflect" and self._dims == 3:
            raise AssertionError("Conv3d does not support reflection padding")
        several = {1: _single, 2: _pair, 3: _triple}[self._dims]
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = several(kernel_size), several(stride)
        self.padding = padding if isinstance(padding, str) else several(padding)
        self.dilation, self.transposed = several(dilation), self._transposed
        self.output_padding, self.padding_mode = several(0), padding_mode
        first, second = out_channels, in_channels
        if self._transposed:
            first, second = second, first
        size = [first, second // groups, *self.kernel_size]
        weight = torch._empty_affine_quantized(size, scale=1.0, zero_point=0, dtype=torch.qint8)
        self.set_weight_bias(weight, torch.zeros(out_channels) if bias else None)
        self.scale: float = 1.0
        self.zero_point = 0

    def set_weight_bias(self, w: Any, b: Tensor | None) -> None:
        """Replace both."""
        self._packed_params = (w, b)

    def _weight_bias(self) -> tuple[Any, Tensor | None]:
        return self._packed_params

    def weight(self) -> Any:
        """qint8 `[out_channels, in_channels / groups, *kernel_size]`; transposed,
        `[in_channels, out_channels / groups, *kernel_size]`."""
        return self._packed_params[0]

    def bias(self) -> Tensor | None:
        """float32 `[out_channels]`."""
        return self._packed_params[1]

    def _get_name(self) -> str:
        kind = "Transpose" if self._transposed else "ReLU" if self._relu else ""
        return f"QuantizedConv{kind}{self._dims}d"

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}",
                 f"stride={self.stride}, scale={self.scale}",
                 f"zero_point={self.zero_point}"]  # fmt: skip
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            if value != (usual,) * len(value):
                parts.append(f"{name}={value}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias() is None:
            parts.append("bias=False")
        return ", ".join(parts)

    def forward(self, input: Tensor) -> Tensor:
        self._check(input)
        weight, bias = self._weight_bias()
        name = f"conv{'_transpose' * self._transposed}{self._dims}d{'_relu' * self._relu}"
        return convolved(
            input, weight, bias, self.scale, self.zero_point, self._relu, name, self._product
        )

    def _check(self, input: Tensor) -> None:
        if input.dim() != self._dims + 2:
            letters = {1: "L", 2: "H, W", 3: "D, H, W"}[self._dims]
            raise ValueError(f"Input shape must be `(N, C, {letters})`!")

    def _product(self, a: Tensor, w: Tensor) -> Tensor:
        padding: Any = self.padding
        if self._transposed:
            return _TRANSPOSED[self._dims](
                a, w, None, self.stride, padding, self.output_padding, self.groups, self.dilation
            )
        if self.padding_mode != "zeros":
            twice = [p for p in reversed(padding) for _ in range(2)]
            a, padding = F.pad(a, twice, mode=self.padding_mode), 0
        return _CONVS[self._dims](a, w, None, self.stride, padding, self.dilation, self.groups)

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"], destination[prefix + "bias"] = self._weight_bias()
        destination[prefix + "scale"] = torch.tensor(self.scale)
        destination[prefix + "zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any],
        strict: bool, *rest: Any,
    ) -> None:  # fmt: skip
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> _ConvNd:
        """A layer with the observed scales of `mod`, which `prepare` or `prepare_qat` made."""
        observer = getattr(mod, "activation_post_process", None)
        if hasattr(mod, "weight_fake_quant"):
            if hasattr(mod, "bn"):
                mod.weight, mod.bias = mod.fused_weights()
            if observer is None:
                raise AssertionError("Input QAT module must have observer attached")
            weights = mod.weight_fake_quant
        else:
            if type(mod) is not cls._FLOAT_MODULE:
                raise AssertionError(
                    f"nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}"
                    f" but got: {type(mod).__name__}"
                )
            if not hasattr(mod, "qconfig"):
                raise AssertionError("Input float module must have qconfig defined.")
            if isinstance(mod, nni._FusedModule):
                mod = mod[0]
            weights = mod.qconfig.weight()
        weights(mod.weight)
        if weights.dtype is not torch.qint8:
            raise AssertionError(f"Weight observer must have a dtype of qint8, got {weights.dtype}")
        new = cls._like(mod)
        new.set_weight_bias(_quantize_weight(mod.weight.float(), weights), mod.bias)
        if observer is not None and observer.dtype is not torch.float:
            scale, zero_point = observer.calculate_qparams()
            new.scale, new.zero_point = float(scale), int(zero_point)
        return new

    @classmethod
    def _like(cls, mod: nn.Module) -> Any:
        return cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding,
            mod.dilation, mod.groups, mod.bias is not None, mod.padding_mode,
        )  # fmt: skip

    @classmethod
    def from_reference(
        cls, ref_qconv: nn.Module, output_scale: float, output_zero_point: int
    ) -> _ConvNd:
        """From a layer that computes in floating point."""
        new = cls._like(ref_qconv)
        new.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        new.scale, new.zero_point = float(output_scale), int(output_zero_point)
        return new


class Conv1d(_ConvNd):
    """`[N, C, L]` quint8."""

    _FLOAT_MODULE: ClassVar[Any] = nn.Conv1d
    _dims = 1


class Conv2d(_ConvNd):
    """`[N, C, H, W]` quint8."""

    _FLOAT_MODULE: ClassVar[Any] = nn.Conv2d
    _dims = 2


class Conv3d(_ConvNd):
    """`[N, C, D, H, W]` quint8."""

    _FLOAT_MODULE: ClassVar[Any] = nn.Conv3d
    _dims = 3


@written_out("__init__", "forward")
class _ConvTransposeNd(_ConvNd):
    """A transposed convolution of quint8 with qint8 weights."""

    _transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes,
        stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1,
        bias: bool = True, dilation: Sizes = 1,
        padding_mode: str = "zeros", device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip
        self.output_padding = {1: _single, 2: _pair, 3: _triple}[self._dims](output_padding)

    @classmethod
    def _like(cls, mod: nn.Module) -> Any:
        return cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding,
            mod.output_padding, mod.groups, mod.bias is not None, mod.dilation, mod.padding_mode,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Any:
        """A layer with the observed scales of `mod`, which `prepare` made."""
        if hasattr(mod, "qconfig") and mod.qconfig is not None:
            observer = mod.qconfig.weight()
            if getattr(observer, "ch_axis", 1) == 0:
                raise AssertionError("Per channel quantization of transposed convolutions has"
                                     " channels along dimension 1, not 0")  # fmt: skip
        return super().from_float(mod, use_precomputed_fake_quant)


class ConvTranspose1d(_ConvTransposeNd):
    """`[N, C, L]` quint8."""

    _FLOAT_MODULE: ClassVar[Any] = nn.ConvTranspose1d
    _dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """`[N, C, H, W]` quint8."""

    _FLOAT_MODULE: ClassVar[Any] = nn.ConvTranspose2d
    _dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """`[N, C, D, H, W]` quint8."""

    _FLOAT_MODULE: ClassVar[Any] = nn.ConvTranspose3d
    _dims = 3
