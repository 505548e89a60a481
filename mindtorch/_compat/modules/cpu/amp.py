"""torch.cpu.amp: autocast with the device fixed to cpu."""

from __future__ import annotations

from typing import Any

from mindtorch._tensor.dtype import bfloat16, dtype
from mindtorch.amp import GradScaler as _GradScaler
from mindtorch.amp import _warn_of_alias
from mindtorch.amp import autocast as _autocast

__path__: list[str] = []  # what is below is in absent_modules.py
__all__ = ["GradScaler", "autocast"]


class autocast(_autocast):  # noqa: N801 - torch's name
    """amp.autocast("cpu", …)."""

    def __init__(self, enabled: bool = True, dtype: dtype = bfloat16, cache_enabled: bool = True):
        _warn_of_alias("cpu", "autocast")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """amp.GradScaler("cpu", …)."""

    def __init__(self, *args: Any, **options: Any):
        _warn_of_alias("cpu", "GradScaler")
        super().__init__("cpu", *args, **options)


autocast.__module__ = "mindtorch.cpu.amp.autocast_mode"
GradScaler.__module__ = "mindtorch.cpu.amp.grad_scaler"
