"""torch.npu: devices, streams, events and memory, as torch.cuda has them; imports open nothing."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from .._autograd.scope import StepScope
from .._backends.npu import runtime as _runtime
from .._backends.npu.graphs import graph, graph_pool_handle, is_current_stream_capturing
from .._backends.npu.properties import (
    get_device_capability,
    get_device_name,
    get_device_properties,
)
from .._backends.npu.recording import record
from .._backends.npu.runtime import (
    conv,
    device_count,
    is_available,
    matmul,
    set_deterministic_level,
)
from .._backends.npu.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    index_of,
    set_stream,
)
from .._random import generator as _random
from .._tensor import device as _device
from .._tensor.device import DeviceLike, device as Device
from ..amp import switches
from .config import config, is_jit_compile_false, set_compile_mode, set_option
from .graphs import NPUGraph, make_graphed_callables
from .memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)

__all__ = [
    "Event", "NPUGraph", "Stream", "StreamContext", "caching_allocator_alloc",
    "caching_allocator_delete", "can_device_access_peer", "config", "conv", "current_device",
    "current_stream", "default_stream", "device", "device_count", "device_of", "empty_cache",
    "get_allocator_backend", "get_autocast_dtype", "get_device_capability", "get_device_name",
    "get_device_properties", "get_per_process_memory_fraction", "get_rng_state",
    "get_rng_state_all", "graph", "graph_pool_handle", "host_syncs", "init", "initial_seed",
    "is_autocast_enabled", "is_available", "is_bf16_supported", "is_current_stream_capturing",
    "is_initialized", "is_jit_compile_false", "make_graphed_callables", "manual_seed",
    "manual_seed_all", "matmul", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached",
    "memory_reserved", "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict",
    "memory_summary", "record", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats", "restart_device", "seed", "seed_all",
    "set_autocast_dtype", "set_autocast_enabled", "set_compile_mode", "set_deterministic_level",
    "set_device", "set_option", "set_per_process_memory_fraction", "set_rng_state",
    "set_rng_state_all", "set_stream", "stream", "synchronize",
]  # fmt: skip


def init() -> None:
    """Initialise the runtime now rather than at the first use."""
    _runtime.cann().runtime.start()


def is_initialized() -> bool:
    """Whether a device has been used in this process."""
    return _runtime.is_open()


def current_device() -> int:
    """The index that `npu` without one means on this thread."""
    return _device.current_npu()


def set_device(device: Device | str | int | None) -> None:
    """Make `npu` mean this device on this thread; RuntimeError when there is no such device."""
    index = index_of(device)
    if index < 0:
        return
    count = device_count()
    if index >= count:
        raise RuntimeError(
            f"set_device: npu:{index} was asked for, this machine has {count} (npu:0 to"
            f" npu:{count - 1})"
        )
    _device.set_current_npu(index)


class device(StepScope):  # noqa: N801 - torch's name
    """`with torch.npu.device(1):`: the current device inside; None or -1 changes nothing."""

    def __init__(self, device: DeviceLike | None):
        self.index: int = -1 if device is None else index_of(device)

    def steps(self) -> Iterator[None]:
        before = current_device()
        try:
            set_device(self.index)
            yield
        finally:
            try:
                _device.set_current_npu(before)
            except KeyboardInterrupt:  # it may not have come to an end
                _device.set_current_npu(before)
                raise


class device_of(device):  # noqa: N801 - torch's name
    """`with torch.npu.device_of(tensor):`: that tensor's device; one on cpu changes nothing."""

    def __init__(self, tensor: Any):
        super().__init__(tensor.device if tensor.device.type == "npu" else None)


def synchronize(device: Device | str | int | None = None) -> None:
    """Wait for all work on a device; raises its first error."""
    _runtime.device(index_of(device)).synchronize()


def restart_device(device_id: int, rebuild_all_resources: int = False) -> None:
    """Reset a device that an error broke (507015 and its like), as in torch_npu.

    All devices of the process are closed and open again at their next use: what was on them is
    lost, and a tensor of before refuses use by name. RuntimeError where the end failed otherwise.
    """
    if index_of(device_id) >= device_count():
        raise RuntimeError(f"restart_device: npu:{device_id}: this machine has {device_count()}")
    opened = _runtime.cann().runtime
    try:
        opened.close()
    except RuntimeError as error:
        # What its queued work failed with is why it is restarted.
        if opened.started or not 507_000 <= getattr(error, "code", 0) < 508_000:
            raise


def stream(stream: Stream | None) -> StreamContext:
    """`with torch.npu.stream(s):`: work inside goes to `s`."""
    return StreamContext(stream)


def is_bf16_supported() -> bool:
    """Whether aclnnCast and arithmetic take bfloat16 here: not before the 910B generation."""
    name = get_device_name()
    return not name.startswith(("Ascend910A", "Ascend310")) and name not in (
        "Ascend910", "Ascend910B", "Ascend910ProA", "Ascend910ProB",
    )  # fmt: skip


def manual_seed(seed: int) -> None:
    """Seed the current device's default generator."""
    _random.default_generator("npu").manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed every device's default generator."""
    for index in range(device_count()):
        _random.default_generator(f"npu:{index}").manual_seed(int(seed))


def seed() -> None:
    """Seed the current device's default generator from the system."""
    _random.default_generator("npu").seed()


def seed_all() -> None:
    """Seed every device's default generator from the system, all alike."""
    seed()
    manual_seed_all(initial_seed())


def initial_seed() -> int:
    """The seed of the current device's default generator."""
    return _random.default_generator("npu").initial_seed()


def get_rng_state(device: Device | str | int | None = "npu") -> Any:
    """The state of a device's default generator, as a uint8 tensor."""
    return _random.default_generator(f"npu:{index_of(device)}").get_state()


def get_rng_state_all() -> list[Any]:
    """The states of all devices' default generators."""
    return [get_rng_state(f"npu:{index}") for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Put all devices' default generators into states."""
    for index, state in enumerate(new_states):
        set_rng_state(state, f"npu:{index}")


def set_rng_state(new_state: Any, device: Device | str | int | None = "npu") -> None:
    """Put a device's default generator into a state."""
    _random.default_generator(f"npu:{index_of(device)}").set_state(new_state)


def can_device_access_peer(device_id: int, peer_device_id: int) -> bool:
    """Whether two devices can copy from each other; AssertionError for one that is not there."""
    for index in (device_id, peer_device_id):
        if not 0 <= index < device_count():
            raise AssertionError("Invalid device id")
    try:
        _runtime.device(device_id).reach(_runtime.device(peer_device_id))
    except RuntimeError:
        return False
    return device_id != peer_device_id


get_autocast_dtype = partial(switches.get_autocast_dtype, "npu")
set_autocast_dtype = partial(switches.set_autocast_dtype, "npu")
is_autocast_enabled = partial(switches.is_autocast_enabled, "npu")
set_autocast_enabled = partial(switches.set_autocast_enabled, "npu")


def host_syncs() -> int:
    """How often this process waited for a device so far."""
    return _runtime.cann().runtime.counters()["host_syncs"]


def __getattr__(name: str) -> Any:
    if name == "OutOfMemoryError":
        from .._backends.npu.memory import OutOfMemoryError

        return OutOfMemoryError
    if name == "default_generators":
        return tuple(_random.default_generator(f"npu:{i}") for i in range(device_count()))
    if name in ("amp", "mstx", "random", "streams", "utils"):
        return importlib.import_module("." + name, __name__)
    from .._functional.queries import typed_tensor_named

    if typed := typed_tensor_named(name, "npu"):
        return typed
    raise AttributeError(f"module 'mindtorch.npu' has no attribute '{name}'")
