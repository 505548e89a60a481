"""Owns torch.cuda.amp: autocast and scaling for a device that is not there, without effect."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import mindtorch.amp as _amp
from mindtorch._tensor import dtype as _dtype
from mindtorch.amp import GradScaler as _GradScaler, _warn_of_alias, autocast as _autocast


class autocast(_autocast):  # noqa: N801 - torch's name
    """`torch.amp.autocast("cuda")`: accepted, and without effect on cpu and npu tensors."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: _dtype.dtype = _dtype.float16,
        cache_enabled: bool = True,
    ):
        _warn_of_alias("cuda", "autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)

    def clone(self) -> autocast:
        return autocast(self.enabled, self.dtype)


class GradScaler(_GradScaler):
    """A scaler that is off, as torch's is without CUDA."""

    def __init__(self, *args: Any, **options: Any):
        _warn_of_alias("cuda", "GradScaler")
        super().__init__("cuda", *args, **options)


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}(args...,"
        " device_type='cuda')` instead.",
        FutureWarning,
        stacklevel=3,
    )


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: _dtype.dtype | None = None
) -> Any:
    """`torch.amp.custom_fwd` for CUDA."""
    _deprecated("custom_fwd")
    return functools.partial(_amp.custom_fwd, device_type="cuda")(fwd=fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """`torch.amp.custom_bwd` for CUDA."""
    _deprecated("custom_bwd")
    return _amp.custom_bwd(bwd, device_type="cuda")


autocast.__module__ = "mindtorch.cuda.amp.autocast_mode"
GradScaler.__module__ = "mindtorch.cuda.amp.grad_scaler"

__path__: list[str] = []  # what is below is in absent_modules.py
__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
