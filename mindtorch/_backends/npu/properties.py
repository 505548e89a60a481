"""Owns what a device says of itself: name, memory, allocator statistics."""

from __future__ import annotations

from dataclasses import dataclass

from ..._tensor.device import device as Device
from . import runtime
from .streams import index_of


@dataclass(frozen=True, slots=True)
class NpuDeviceProperties:
    """`name` is the SoC name (aclrtGetSocName); memory and cache in bytes."""

    name: str
    total_memory: int
    cube_core_num: int
    vector_core_num: int
    L2_cache_size: int

    def __repr__(self) -> str:
        mebibyte = 1 << 20
        return (
            f"_NPUDeviceProperties(name={self.name!r},"
            f" total_memory={self.total_memory / mebibyte:.1f}MB,"
            f" cube_core_num={self.cube_core_num}, vector_core_num={self.vector_core_num},"
            f" L2_cache_size={self.L2_cache_size // mebibyte}MB)"
        )


def get_device_name(device: Device | str | int | None = None) -> str:
    """The SoC name of the machine's devices, such as Ascend910B2."""
    runtime.device(_existing(device))
    return runtime.cann().soc_name()


def _existing(device: Device | str | int | None) -> int:
    index = index_of(device)
    if not 0 <= index < runtime.device_count():
        raise AssertionError("Invalid device id")
    return index


def get_device_properties(device: Device | str | int | None = None) -> NpuDeviceProperties:
    """Name, memory, cores and cache of a device (aclGetDeviceCapability)."""
    index = _existing(device)
    total = runtime.device(index).memory_info()[1]
    ask = runtime.cann().function("aclGetDeviceCapability")
    cores = [int(ask(index, kind)) for kind in (0, 1, 2)]  # acl_rt.h: aclDeviceInfo
    return NpuDeviceProperties(get_device_name(index), total, *cores)


def mem_get_info(device: Device | str | int | None = None) -> tuple[int, int]:
    """(free, total) bytes of the device, other processes included."""
    return runtime.device(index_of(device)).memory_info()


def memory_stats(device: Device | str | int | None = None) -> dict[str, int]:
    """The caching allocator's counters, keyed as torch.cuda.memory_stats keys them."""
    return dict(runtime.device(index_of(device)).memory().stats)


# What a table of memory shows: titles, counters, and whether they are bytes.
_COLUMNS = ("current", "peak", "allocated", "freed")
_ROWS = (
    ("Allocated memory", "allocated_bytes", True), ("Requested memory", "requested_bytes", True),
    ("NPU reserved memory", "reserved_bytes", True), ("Allocations", "allocation", False),
    ("NPU reserved segments", "segment", False),
)  # fmt: skip


def memory_summary(device: Device | str | int | None = None, abbreviated: bool = False) -> str:
    """Who holds how much device memory: a table of counters, then the allocator's own words."""
    index = index_of(device)
    usage = runtime.device(index).memory()
    stats, line = usage.stats, "-" * 75
    ooms, retries = stats["num_ooms"], stats["num_alloc_retries"]
    lines = [
        "=" * 75, f"{f'PyTorch NPU memory summary, device ID {index}':^75}", line,
        f"{'':12}NPU OOMs: {ooms:<13} |{'':8}npuMalloc retries: {retries:<9}  ", "=" * 75,
        "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ",
    ]  # fmt: skip
    for title, counter, is_bytes in _ROWS:
        lines.append(line)
        for pool in ("all",) if abbreviated else ("all", "large_pool", "small_pool"):
            name = title if pool == "all" else f"      from {pool.replace('_', ' ')}"
            keys = (f"{counter}.{pool}.{part}" for part in _COLUMNS)
            cells = (_bytes(stats[k]) if is_bytes else f"{stats[k]:7d}   " for k in keys)
            lines.append(f" {name:<21} | {' | '.join(cells)} ")
    lines.append("=" * 75)
    return "".join(f"|{line}|\n" for line in lines) + usage.text() * (not abbreviated)


def _bytes(count: int) -> str:
    unit = 0
    while unit < 5 and count >> 10 * unit >= 768 * 1024:
        unit += 1
    return f"{count >> 10 * unit:7d} {('B', 'KB', 'MB', 'GB', 'TB', 'PB')[unit]:<2}"


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
