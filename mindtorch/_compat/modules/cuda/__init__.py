"""Owns torch.cuda's names for code that asks whether CUDA is there: it is not."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache
from typing import Any

from mindtorch._functional.queries import typed_tensor
from mindtorch._tensor import dtype as dt
from mindtorch._tensor.device import device as Device


class CudaNotAvailableError(RuntimeError):
    """Something of torch.cuda was used; the message says what to use instead."""


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
    """Nothing to set; CudaNotAvailableError for the state of a device."""
    if list(new_states):
        _refuse("set_rng_state_all")


def get_arch_list() -> list[str]:
    """Compiled for none."""
    return []


def memory_stats(device: Device | str | int | None = None) -> dict[str, Any]:
    """Empty: no allocator ran."""
    return {}


def _refuse(name: str) -> Any:
    raise CudaNotAvailableError(
        f"torch.cuda.{name}: mindtorch has no CUDA devices; torch.npu has the same functions"
    )


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


_initialized = False


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'mindtorch.cuda' has no attribute '{name}'")
    if name in ("amp", "nvtx", "profiler"):
        return importlib.import_module(f".{name}", __name__)
    if name.endswith("Tensor"):
        legacy = {d.legacy: d for d in dt.ALL}.get(name.removesuffix("Tensor"))
        if legacy is not None:
            return typed_tensor(legacy, "cuda")
    if name[0].isupper() or name in ("device", "device_of", "graph"):
        return absent_class(name)
    return lambda *_, **__: _refuse(name)
