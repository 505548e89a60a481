"""Owns what a device says of itself: name, memory, allocator statistics."""

from __future__ import annotations

from dataclasses import dataclass

from ..._tensor.device import device as Device
from . import runtime
from .streams import index_of


@dataclass(frozen=True, slots=True)
class NpuDeviceProperties:
    """`name` is the SoC name (aclrtGetSocName); memory in bytes."""

    name: str
    total_memory: int


def get_device_name(device: Device | str | int | None = None) -> str:
    """The SoC name of the machine's devices, such as Ascend910B2."""
    runtime.device(index_of(device))
    return runtime.cann().soc_name()


def get_device_properties(device: Device | str | int | None = None) -> NpuDeviceProperties:
    """Name and memory of a device."""
    total = runtime.device(index_of(device)).memory_info()[1]
    return NpuDeviceProperties(get_device_name(device), total)


def mem_get_info(device: Device | str | int | None = None) -> tuple[int, int]:
    """(free, total) bytes of the device, other processes included."""
    return runtime.device(index_of(device)).memory_info()


def memory_stats(device: Device | str | int | None = None) -> dict[str, int]:
    """The caching allocator's counters, keyed as torch.cuda.memory_stats keys them."""
    return dict(runtime.device(index_of(device)).memory().stats)


def memory_summary(device: Device | str | int | None = None, abbreviated: bool = False) -> str:
    """Who holds how much device memory, as text."""
    del abbreviated
    return runtime.device(index_of(device)).memory().text()


def memory_allocated(device: Device | str | int | None = None) -> int:
    """Bytes that tensors hold now."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Device | str | int | None = None) -> int:
    """The most bytes that tensors held since the start or the last reset."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Device | str | int | None = None) -> int:
    """Bytes that the allocator took from the device."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Device | str | int | None = None) -> int:
    """The most bytes that the allocator took since the start or the last reset."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Device | str | int | None = None) -> None:
    """Set every peak to the present value."""
    runtime.device(index_of(device)).reset_peak()


def empty_cache() -> None:
    """Return cached memory of every opened device to it."""
    if runtime.is_open():
        for index in range(runtime.device_count()):
            if runtime.is_open(index):
                runtime.device(index).empty_cache()


def set_per_process_memory_fraction(
    fraction: float, device: Device | str | int | None = None
) -> None:
    """Let this process use at most this part of a device's memory; ValueError outside 0..1."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    bound = runtime.device(index_of(device))
    bound.limit_memory(int(fraction * bound.memory_info()[1]))
