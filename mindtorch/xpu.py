"""Owns torch.xpu's names for code that asks whether XPU is there: it is not."""

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
    synchronize,
)

__all__ = [
    "device_count", "empty_cache", "is_available", "is_initialized", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "memory_allocated", "reset_peak_memory_stats",
    "synchronize",
]  # fmt: skip
