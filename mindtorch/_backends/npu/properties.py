"""Owns what a device says of itself: name, memory, allocator statistics."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

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


_before: dict[int, dict[str, int]] = {}  # by device: what the counters that only grow had


def memory_stats(device: Device | str | int | None = None) -> dict[str, int]:
    """The caching allocator's counters, keyed as torch.cuda.memory_stats keys them."""
    index = index_of(device)
    stats, before = dict(runtime.device(index).memory().stats), _before.get(index, {})
    return {name: count - before.get(name, 0) for name, count in stats.items()}


def memory_stats_as_nested_dict(device: Device | str | int | None = None) -> dict[str, Any]:
    """`memory_stats`, a dict for each dot in its keys."""
    tree: dict[str, Any] = {}
    for name, count in memory_stats(device).items():
        *way, last = name.split(".")
        at = tree
        for part in way:
            at = at.setdefault(part, {})
        at[last] = count
    return tree


def reset_accumulated_memory_stats(device: Device | str | int | None = None) -> None:
    """Count what was allocated and freed, retries and failures, from zero again."""
    index = index_of(device)
    grown = ("allocated", "freed", "num_alloc_retries", "num_ooms")
    stats = runtime.device(index).memory().stats
    _before[index] = {n: c for n, c in stats.items() if n.rpartition(".")[2] in grown}


def memory_snapshot() -> list[dict[str, Any]]:
    """What each stream of the opened devices holds, as torch.cuda.memory_snapshot tells segments:
    the allocator tells no addresses, and blocks by what they are for."""
    rows = []
    for index in range(runtime.device_count() if runtime.is_open() else 0):
        for pool in runtime.device(index).memory().holdings if runtime.is_open(index) else ():
            used = pool.tensors + pool.workspaces + pool.buffers
            sizes = ((used, "active_allocated"), (pool.cached, "inactive"))
            rows.append({
                "device": index, "stream": pool.stream, "total_size": used + pool.cached,
                "allocated_size": used, "active_size": used,
                "blocks": [{"size": n, "state": state} for n, state in sizes if n],
            })  # fmt: skip
    return rows


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


def get_per_process_memory_fraction(device: Device | str | int | None = None) -> float:
    """What `set_per_process_memory_fraction` set for a device; 1 without it."""
    bound = runtime.device(index_of(device))
    limit = bound.memory().stats["limit_bytes"]
    return limit / bound.memory_info()[1] if limit else 1.0


def get_device_capability(device: Device | str | int | None = None) -> tuple[int, int] | None:
    """None, as CANN numbers no capabilities, with a warning; or what TORCH_NPU_DEVICE_CAPABILITY
    says ("8.0"), as in torch_npu 2.13.0."""
    capability = os.environ.get("TORCH_NPU_DEVICE_CAPABILITY", "")
    major, _, minor = capability.partition(".")
    if major.isdigit() and minor.isdigit():
        return int(major), int(minor)
    warnings.warn(
        "torch.npu.get_device_capability: NPUs have no such numbers; programs that ask for one get"
        " that of TORCH_NPU_DEVICE_CAPABILITY (such as 8.0)",
        stacklevel=2,
    )
    return None
