"""Owns torch.accelerator: the npu, by torch's device-neutral names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._tensor.device import device, device as Device

__path__: list[str] = []  # what is below is in absent_modules.py


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


def set_device_index(device: Any, /) -> None:
    """Make an npu the current one."""
    _npu().set_device(device)


def synchronize(device: Device | str | int | None = None) -> None:
    """Wait for what was launched on an npu."""
    _npu().synchronize(device)


def current_stream(device: Device | str | int | None = None) -> Any:
    """The current stream of an npu."""
    return _npu().current_stream(device)


set_device_idx, current_device_idx = set_device_index, current_device_index


def set_stream(stream: object) -> None:
    """Make a stream the current one of its npu."""
    _npu().set_stream(stream)


def get_device_capability(device: Device | str | int | None = None) -> dict[str, object]:
    """What an npu supports: its dtypes."""
    from ._tensor.dtype import ALL

    return {"supported_dtypes": set(ALL)}


class device_index:  # noqa: N801 - torch's name
    """Inside, an npu is the current one; None changes nothing."""

    before: int

    idx: int | None

    def __init__(self, device: int | None):
        self.idx, self.before = device, -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.before = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *_: object) -> None:
        if self.idx is not None:
            set_device_index(self.before)


def _forward(name: str) -> Callable[..., object]:
    def ask(device_index: Device | str | int | None = None) -> object:
        answer: object = getattr(_npu(), name)(device_index)
        return answer

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"torch.npu.{name}."
    return ask


max_memory_allocated = _forward("max_memory_allocated")
max_memory_reserved = _forward("max_memory_reserved")
memory_allocated = _forward("memory_allocated")
memory_reserved = _forward("memory_reserved")
memory_stats = _forward("memory_stats")
reset_accumulated_memory_stats = _forward("reset_accumulated_memory_stats")
reset_peak_memory_stats = _forward("reset_peak_memory_stats")
get_memory_info = _forward("mem_get_info")


def __getattr__(name: str) -> Any:
    if name == "Graph":
        from .npu.accelerator_graph import Graph

        return Graph
    raise AttributeError(f"module 'mindtorch.accelerator' has no attribute '{name}'")


def empty_cache() -> None:
    """Give unused memory back to the device."""
    _npu().empty_cache()


def empty_host_cache() -> None:
    """Nothing: pinned memory goes back when its tensor does."""
