"""torch.npu.memory: what programs ask of the caching allocator, and memory beside tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._backends.npu import memory as _memory
from .._backends.npu.properties import (
    empty_cache,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .._backends.npu.streams import Stream, StreamContext, index_of
from .._tensor.device import DeviceLike, device as Device
from .._tensor.dtype import uint8
from .._tensor.geometry import contiguous
from .._tensor.tensor import Tensor

__all__ = ["caching_allocator_alloc", "caching_allocator_delete", "empty_cache",
           "get_allocator_backend", "get_per_process_memory_fraction", "max_memory_allocated",
           "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated",
           "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
           "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_memory_stats",
           "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats",
           "set_per_process_memory_fraction"]  # fmt: skip


def get_allocator_backend() -> str:
    """ "native": the caching allocator of the bindings."""
    return "native"


def _renamed(name: str, now: Callable[..., Any], how: str) -> Callable[..., Any]:
    """A function by its old name, with torch_npu's warning."""

    def call(device: DeviceLike | None = None) -> Any:
        warnings.warn(f"torch_npu.npu.{name} {how}", DeprecationWarning, stacklevel=2)
        return now(device)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{now.__name__}`, by its old name."
    return call


_RESETS = "now calls torch_npu.npu.reset_peak_memory_stats, which resets /all/ peak memory stats."
_MOVED = "has been renamed to torch_npu.npu."
reset_max_memory_allocated = _renamed(
    "reset_max_memory_allocated", reset_peak_memory_stats, _RESETS
)
reset_max_memory_cached = _renamed("reset_max_memory_cached", reset_peak_memory_stats, _RESETS)
memory_cached = _renamed("memory_cached", memory_reserved, f"{_MOVED}memory_reserved")
max_memory_cached = _renamed(
    "max_memory_cached", max_memory_reserved, f"{_MOVED}max_memory_reserved"
)

_lent: dict[int, Tensor] = {}  # what is freed by its address


def caching_allocator_alloc(
    size: int, device: Device | str | int | None = None, stream: Stream | None = None
) -> int:
    """The address of `size` bytes from the allocator, for libraries beside torch; they stay until
    `caching_allocator_delete`. OutOfMemoryError as for tensors."""
    place = Device("npu", index_of(device))
    with StreamContext(stream):
        block = _memory.allocate(contiguous((size,), uint8, place))
    address = int(block._storage.memory.address)
    _lent[address] = block
    return address


def caching_allocator_delete(mem_ptr: int) -> None:
    """Free what `caching_allocator_alloc` gave; RuntimeError for another address."""
    if _lent.pop(mem_ptr, None) is None:
        raise RuntimeError(f"invalid device pointer: {mem_ptr:#x}")
