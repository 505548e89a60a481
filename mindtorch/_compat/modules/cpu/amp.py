"""torch.cpu.amp: autocast with the device fixed to cpu."""

from __future__ import annotations

from mindtorch._tensor.dtype import bfloat16, dtype
from mindtorch.amp import GradScaler as _GradScaler, _warn_of_alias, autocast as _autocast

__path__: list[str] = []  # what is below is in absent_modules.py
__all__ = ["GradScaler", "autocast"]


class autocast(_autocast):  # noqa: N801 - torch's name
    """amp.autocast("cpu", …)."""

    def __init__(self, enabled: bool = True, dtype: dtype = bfloat16, cache_enabled: bool = True):
        _warn_of_alias("cpu", "autocast")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """amp.GradScaler("cpu", …)."""

    def __init__(
        self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ):  # fmt: skip
        _warn_of_alias("cpu", "GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


autocast.__module__ = "mindtorch.cpu.amp.autocast_mode"
GradScaler.__module__ = "mindtorch.cpu.amp.grad_scaler"
