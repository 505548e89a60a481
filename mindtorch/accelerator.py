"""Owns torch.accelerator: the npu, by torch's device-neutral names."""

from __future__ import annotations

from typing import Any

from ._tensor.device import device
from ._tensor.device import device as Device


def _npu() -> Any:
    from . import npu

    return npu


def is_available() -> bool:
    """Whether an npu is there."""
    return bool(_npu().is_available())


def current_accelerator(check_available: bool = False) -> device | None:
    """`device("npu")`; None without one when `check_available`."""
    return None if check_available and not is_available() else device("npu")


def device_count() -> int:
    """How many npus there are."""
    return int(_npu().device_count())


def current_device_index() -> int:
    """The current npu's index."""
    return int(_npu().current_device())


def set_device_index(index: Any) -> None:
    """Make an npu the current one."""
    _npu().set_device(index)


def synchronize(device: Device | str | int | None = None) -> None:
    """Wait for what was launched on an npu."""
    _npu().synchronize(device)


def current_stream(device: Device | str | int | None = None) -> Any:
    """The current stream of an npu."""
    return _npu().current_stream(device)
