"""Owns torch.npu.amp: autocast and gradient scaling for NPUs, without naming the device."""

from __future__ import annotations

from functools import partial
from typing import Any

from .._tensor.dtype import dtype as Dtype, float16
from ..amp import (
    GradScaler as _GradScaler,
    autocast as _autocast,
    custom_bwd as _custom_bwd,
    custom_fwd as _custom_fwd,
)

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

custom_fwd = partial(_custom_fwd, device_type="npu")
custom_bwd = partial(_custom_bwd, device_type="npu")


class autocast(_autocast):  # noqa: N801 - torch's name
    """`torch.amp.autocast("npu")`."""

    def __init__(
        self, enabled: bool = True, dtype: Dtype = float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("npu", dtype, enabled, cache_enabled)

    def clone(self) -> autocast:
        return autocast(self.enabled, self.dtype)


class GradScaler(_GradScaler):
    """`torch.amp.GradScaler("npu")`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__("npu", *args, **options)
