"""Owns torch.xpu's names for code that asks whether XPU is there: it is not."""

from typing import Any

from . import cuda
from .cuda import (
    device_count,
    empty_cache,
    is_available,
    is_initialized,
    manual_seed,
    manual_seed_all,
    max_memory_allocated,
    memory_allocated,
    reset_peak_memory_stats,
)

__all__ = [
    "device_count", "empty_cache", "is_available", "is_initialized", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "memory_allocated", "reset_peak_memory_stats",
]  # fmt: skip
__path__: list[str] = []  # what is below is in absent_modules.py
_REFUSED = frozenset((
    "Event", "MemPool", "Stream", "StreamContext", "XPUGraph", "XPUPluggableAllocator",
    "can_device_access_peer", "change_current_allocator", "current_device", "current_stream",
    "device", "device_of", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_gencode_flags", "get_per_process_memory_fraction",
    "get_rng_state", "get_rng_state_all", "get_stream_from_external", "graph",
    "graph_pool_handle", "init", "initial_seed", "is_bf16_supported",
    "is_current_stream_capturing", "is_tf32_supported", "make_graphed_callables",
    "max_memory_reserved", "mem_get_info", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "reset_accumulated_memory_stats", "seed", "seed_all",
    "set_device", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all",
    "set_stream", "stream", "synchronize",
))  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _REFUSED:
        raise AttributeError(f"module 'mindtorch.xpu' has no attribute '{name}'")
    if name[0].isupper() or name in ("device", "device_of", "graph"):
        return cuda.absent_class(f"xpu.{name}")

    def refuse(*_: object, **__: object) -> Any:
        raise RuntimeError(f"torch.xpu.{name}: mindtorch has no XPU device")

    return refuse
