"""torch.ao.nn.quantized: normalisations of quantised tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch.nn import functional as F

from .._kernels import channels_last, of_floats
from .utils import ScaledModule, observed_scale

Device = torch.device | str | None


class _Norm(ScaledModule):
    """Normalises what the integers stand for; the result has `scale` and `zero_point`.

    `_KERNEL` is the operator's name, `_ARGUMENTS` the attributes of a layer of floats that the
    class is made with, `_OPTIONS` those after the scale.
    """

    _KERNEL: str
    _ARGUMENTS: Sequence[str]
    _OPTIONS: Sequence[str]

    def normalise(self, x: Tensor) -> Tensor:
        """What the layer of floats gives."""
        result: Tensor = super().forward(x)
        return result

    def forward(self, input: Tensor) -> Tensor:
        return of_floats(self.normalise, input, self.scale, self.zero_point, self._KERNEL)

    def keep_parameters(self, weight: Any, bias: Any, *scale: Any) -> None:
        """`weight` and `bias` are parameters or None."""
        self.weight, self.bias = weight, bias
        self.keep_scale(*scale)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Any:
        """With the observed scale of a layer of floats."""
        return cls.from_reference(mod, *observed_scale(mod))

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> Any:
        """From a layer that computes in floating point."""
        first = [getattr(mod, name) for name in cls._ARGUMENTS]
        rest = [getattr(mod, name) for name in cls._OPTIONS]
        return cls(*first, mod.weight, mod.bias, float(scale), int(zero_point), *rest)


class LayerNorm(_Norm, nn.LayerNorm):
    """Over the last dimensions, `normalized_shape`."""

    _KERNEL = "layer_norm"
    _ARGUMENTS, _OPTIONS = ("normalized_shape",), ("eps", "elementwise_affine")

    def __init__(
        self, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, scale: float,
        zero_point: int, eps: float = 1e-5, elementwise_affine: bool = True,
        device: Device = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            normalized_shape, eps=eps, elementwise_affine=elementwise_affine, device=device,
            dtype=dtype,
        )  # fmt: skip
        self.keep_parameters(weight, bias, scale, zero_point, device, dtype)


class GroupNorm(_Norm, nn.GroupNorm):
    """Over groups of channels."""

    _KERNEL = "group_norm"
    _ARGUMENTS, _OPTIONS = ("num_groups", "num_channels"), ("eps", "affine")

    def __init__(
        self, num_groups: int, num_channels: int, weight: Tensor | None, bias: Tensor | None,
        scale: float, zero_point: int, eps: float = 1e-5, affine: bool = True,
        device: Device = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self.keep_parameters(weight, bias, scale, zero_point, device, dtype)


class _InstanceNorm(_Norm):
    _KERNEL = "instance_norm"
    _ARGUMENTS, _OPTIONS = ("num_features",), ("eps", "affine")

    def __init__(
        self, num_features: int, weight: Tensor | None, bias: Tensor | None, scale: float,
        zero_point: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Device = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype
        )
        self.keep_parameters(weight, bias, scale, zero_point, device, dtype)

    def normalise(self, x: Tensor) -> Tensor:
        """By the statistics of `x`, of any dims."""
        return F.instance_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> Any:
        """From a layer that computes in floating point."""
        return cls(
            mod.num_features, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps,
            affine=mod.affine,
        )  # fmt: skip


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """Over the length of each channel."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """Over the pixels of each channel."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """Over the voxels of each channel."""


class _BatchNorm(ScaledModule, nn.modules.batchnorm._BatchNorm):
    _dims: int

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self.keep_scale(1.0, 0, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        def normalise(x: Tensor) -> Tensor:
            return F.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )

        name = f"batch_norm{self._dims}d"
        result: Any = of_floats(normalise, input, self.scale, self.zero_point, name)
        return channels_last(result)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Any:
        """With the observed scale and the statistics of a layer of floats."""
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return cls.from_reference(mod, scale, zero_point)

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: Any, zero_point: Any) -> Any:
        """From a layer that computes in floating point."""
        new = cls(mod.num_features, mod.eps)
        new.weight, new.bias = mod.weight, mod.bias
        new.running_mean, new.running_var = mod.running_mean, mod.running_var
        new.scale, new.zero_point = scale, zero_point
        return new


class BatchNorm2d(_BatchNorm):
    """`[N, C, H, W]` quantised, by the statistics of training."""

    _dims = 2


class BatchNorm3d(_BatchNorm):
    """`[N, C, D, H, W]` quantised, by the statistics of training."""

    _dims = 3
