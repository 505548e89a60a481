"""Owns torch.cuda's names for code that asks whether CUDA is there: it is not."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache
from typing import Any

from mindtorch._functional.queries import typed_tensor_named
from mindtorch._tensor.device import device as Device


def is_available() -> bool:
    """False: devices here are npu."""
    return False


def device_count() -> int:
    """0."""
    return 0


def is_initialized() -> bool:
    """False."""
    return False


is_bf16_supported = is_current_stream_capturing = is_available


def empty_cache() -> None:
    """Nothing is cached for CUDA."""


def synchronize(device: Device | str | int | None = None) -> None:
    """Refused: there is no CUDA device."""
    _refuse("synchronize")


def manual_seed(seed: int) -> None:
    """Accepted without effect, as torch does without CUDA."""


manual_seed_all = manual_seed


def seed() -> None:
    """Accepted without effect, as torch does without CUDA."""


seed_all = seed


def get_rng_state_all() -> list[Any]:
    """No device, no state."""
    return []


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Nothing to set; AssertionError for the state of a device."""
    if list(new_states):
        _refuse("set_rng_state_all")


def get_arch_list() -> list[str]:
    """Compiled for none."""
    return []


def memory_stats(device: Device | str | int | None = None) -> dict[str, Any]:
    """Empty: no allocator ran."""
    return {}


def _refuse(name: str) -> Any:
    """torch's error of a build without CUDA; what to do is a note, which tracebacks show."""
    error: Exception = AssertionError("Torch not compiled with CUDA enabled")
    if name[0].isupper():
        text = f"Tried to instantiate dummy base class {name}"
        error = RuntimeError(
            "torch.cuda.Stream requires CUDA support" if name == "Stream" else text
        )
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(f"torch.cuda.{name}: there are no CUDA devices; torch.npu has the same")
    raise error


def max_memory_allocated(device: Device | str | int | None = None) -> int:
    """0."""
    return 0


memory_allocated = memory_reserved = max_memory_reserved = max_memory_allocated


def reset_peak_memory_stats(device: Device | str | int | None = None) -> None:
    """Nothing to reset."""


@cache
def absent_class(name: str) -> type:
    """A class of torch.cuda: isinstance is false, making one is refused."""

    def refuse(cls: type, *_: object, **__: object) -> Any:
        _refuse(name)

    return type(name, (), {"__new__": refuse, "__module__": "mindtorch.cuda"})


class device:  # noqa: N801 - torch's name
    """A CUDA device to be current: `with` says that there is none."""

    __module__ = "mindtorch.cuda"

    def __init__(self, device: Any) -> None:
        self.idx = _place(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *_: object) -> None:
        pass


def _of_none(self: device, obj: Any) -> None:
    device.__init__(self, -1)


# The device of a tensor, which is none of CUDA.
device_of = type("device_of", (device,), {"__init__": _of_none, "__module__": "mindtorch.cuda"})


def _place(device: Any) -> int:
    """The index of a CUDA device; ValueError for another one."""
    if isinstance(device, int):
        return device
    if device is None:
        return -1
    place = Device(device)
    if place.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {place}")
    return place.index or 0


_initialized = False
# Functions of torch.cuda, which are there to be refused.
_FUNCTIONS = frozenset((
    "caching_allocator_alloc", "caching_allocator_delete", "caching_allocator_disabled",
    "caching_allocator_enable", "can_device_access_peer", "change_current_allocator",
    "check_error", "clock_rate", "cudaStatus", "cudart", "current_blas_handle", "current_device",
    "current_solver_handle", "current_stream", "default_stream", "device_memory_used",
    "get_allocator_backend", "get_device_capability", "get_device_name", "get_device_properties",
    "get_gencode_flags", "get_per_process_memory_fraction", "get_rng_state",
    "get_stream_from_external", "get_sync_debug_mode", "graph_pool_handle", "host_memory_stats",
    "host_memory_stats_as_nested_dict", "init", "initial_seed", "ipc_collect",
    "is_tf32_supported", "list_gpu_processes", "make_graphed_callables", "max_memory_cached",
    "mem_get_info", "memory_cached", "memory_snapshot", "memory_stats_as_nested_dict",
    "memory_summary", "memory_usage", "power_draw", "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_host_memory_stats", "set_device", "set_per_process_memory_fraction",
    "set_rng_state", "set_stream", "set_sync_debug_mode", "stream", "temperature", "use_mem_pool",
    "utilization",
))  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'torch.cuda' has no attribute '{name}'")
    if name in ("amp", "nvtx", "profiler"):
        return importlib.import_module(f".{name}", __name__)
    if name == "OutOfMemoryError":
        import mindtorch

        return mindtorch.OutOfMemoryError
    if typed := typed_tensor_named(name, "cuda"):
        return typed
    if name[0].isupper() or name == "graph":
        return absent_class(name)
    if name not in _FUNCTIONS:
        raise AttributeError(f"module 'torch.cuda' has no attribute '{name}'")
    return lambda *_, **__: _refuse(name)
