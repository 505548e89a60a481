"""torch.npu.memory: torch.npu's functions of memory by this address."""

from . import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)  # fmt: skip

__all__ = ["empty_cache", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
           "memory_reserved", "memory_stats", "memory_summary", "reset_peak_memory_stats",
           "set_per_process_memory_fraction"]  # fmt: skip
