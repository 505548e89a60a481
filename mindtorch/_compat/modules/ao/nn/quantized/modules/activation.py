"""torch.ao.nn.quantized: activations of quantised tensors."""

from __future__ import annotations

from typing import Any

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch.nn import functional as F

from .._kernels import of_floats, within
from .utils import ScaledModule, observed_scale


class ReLU6(nn.ReLU):
    """Values between 0 and 6, of the input's scale."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input: Tensor) -> Tensor:
        return within(input, 0.0, 6.0, "relu6")

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """For an nn.ReLU6."""
        return ReLU6(mod.inplace)


class Hardswish(ScaledModule, nn.Hardswish):
    """With `scale` and `zero_point`."""

    def __init__(
        self, scale: float, zero_point: int, device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.keep_scale(scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return of_floats(F.hardswish, input, self.scale, self.zero_point, "hardswish")

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Hardswish:
        """With the observed scale of an nn.Hardswish."""
        return cls(*observed_scale(mod))

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> Hardswish:
        """From a layer that computes in floating point."""
        return cls(float(scale), int(zero_point))


class ELU(nn.ELU):
    """With `scale` and `zero_point`."""

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        def elu(x: Tensor) -> Tensor:
            return F.elu(x, self.alpha)

        return of_floats(elu, input, self.scale, self.zero_point, "elu")

    def _get_name(self) -> str:
        return "QuantizedELU"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> ELU:
        """With the observed scale of an nn.ELU."""
        return ELU(*observed_scale(mod), mod.alpha)

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> ELU:
        """From a layer that computes in floating point."""
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(ScaledModule, nn.LeakyReLU):
    """With `scale` and `zero_point`."""

    def __init__(
        self, scale: float, zero_point: int, negative_slope: float = 1e-2, inplace: bool = False,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(negative_slope, inplace)
        self.keep_scale(scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        def leaky(x: Tensor) -> Tensor:
            return F.leaky_relu(x, self.negative_slope)

        return of_floats(leaky, input, self.scale, self.zero_point, "leaky_relu")

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> LeakyReLU:
        """With the observed scale of an nn.LeakyReLU."""
        return cls(*observed_scale(mod), mod.negative_slope, mod.inplace)

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> LeakyReLU:
        """From a layer that computes in floating point."""
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


class Sigmoid(nn.Sigmoid):
    """With `output_scale` and `output_zero_point`."""

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Tensor) -> Tensor:
        return of_floats(torch.sigmoid, input, self.output_scale, self.output_zero_point, "sigmoid")

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Sigmoid:
        """With the observed scale of an nn.Sigmoid."""
        return cls(*observed_scale(mod))


class Softmax(nn.Softmax):
    """Along `dim`, with `scale` and `zero_point`."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__()
        self.dim, self.scale, self.zero_point = dim, scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        def softmax(x: Tensor) -> Tensor:
            return F.softmax(x, self.dim, 3)

        return of_floats(softmax, input, self.scale, self.zero_point, "softmax")

    def _get_name(self) -> str:
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Softmax:
        """With the observed scale of an nn.Softmax."""
        return Softmax(mod.dim, *observed_scale(mod))

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> Softmax:
        """From a layer that computes in floating point."""
        return cls(mod.dim, float(scale), int(zero_point))


class PReLU(nn.Module):
    """With `output_scale` and `output_zero_point`; `weight` is quantised."""

    weight: Any

    def __init__(
        self, output_scale: float, output_zero_point: int, num_parameters: int = 1
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.scale, self.zero_point = output_scale, output_zero_point
        slopes = torch.randn(num_parameters, dtype=torch.float)
        self.set_weight(torch.quantize_per_tensor(slopes, 1.0, 0, torch.quint8))

    def set_weight(self, w: Tensor) -> None:
        """Replace the slopes."""
        self.weight = w

    def forward(self, input: Tensor) -> Tensor:
        def prelu(x: Tensor) -> Tensor:
            return F.prelu(x, self.weight.dequantize())

        return of_floats(prelu, input, self.scale, self.zero_point, "prelu")

    def _get_name(self) -> str:
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> PReLU:
        """With the observed scale of an nn.PReLU."""
        observer = mod.qconfig.weight()
        new = cls(*observed_scale(mod), mod.num_parameters)
        observer(mod.weight.float())
        if observer.dtype is not torch.quint8:
            import warnings

            warnings.warn(
                f"PReLU's weight observer should have dtype quint8 but got {observer.dtype}",
                stacklevel=2,
            )
        return new._with_weight(mod.weight, *observer.calculate_qparams())

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> PReLU:
        """From a layer that computes in floating point."""
        observer = mod.qconfig.weight()
        observer(mod.weight.float())
        new = cls(float(scale), int(zero_point), mod.num_parameters)
        return new._with_weight(mod.weight, *observer.calculate_qparams())

    def _with_weight(self, weight: Tensor, scale: Tensor, zero_point: Tensor) -> PReLU:
        ints = torch.quantize_per_tensor(
            weight.detach().float(), float(scale), int(zero_point), torch.quint8
        )
        self.set_weight(ints)
        return self
