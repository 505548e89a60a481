"""Owns torch.cuda.amp: autocast and scaling for a device that is not there, without effect."""

from __future__ import annotations

from typing import Any

from mindtorch._tensor import dtype as _dtype
from mindtorch.amp import GradScaler as _GradScaler
from mindtorch.amp import _warn_of_alias, custom_bwd, custom_fwd
from mindtorch.amp import autocast as _autocast


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


autocast.__module__ = "mindtorch.cuda.amp.autocast_mode"
GradScaler.__module__ = "mindtorch.cuda.amp.grad_scaler"

__path__: list[str] = []  # what is below is in absent_modules.py
__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
