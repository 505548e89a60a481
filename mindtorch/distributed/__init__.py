"""Owns torch.distributed: a group of processes, one a device, and their collectives.

CPU tensors over sockets (gloo's role), NPU tensors over HCCL. Refused by name: subgroups, meshes,
sharded tensors.
"""

from __future__ import annotations

import importlib
import os
from datetime import timedelta
from typing import Any

from . import _group
from ._calls import (
    Work,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    broadcast_object_list,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    send,
)
from ._mesh import DistributedError

__all__ = [
    "DistributedError", "DistributedNotAvailableError", "ProcessGroup", "ReduceOp", "Work",
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "destroy_process_group",
    "get_backend", "get_rank", "get_world_size", "init_process_group", "is_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "send",
]  # fmt: skip


class DistributedNotAvailableError(RuntimeError):
    """Something of torch.distributed that is not here was asked for."""


class ProcessGroup:
    """Stands for a group of processes, for isinstance: making one by hand is refused."""

    def __init__(self, *_: object, **__: object):
        raise DistributedNotAvailableError(
            "torch.distributed.ProcessGroup: there is the default group, which init_process_group "
            "makes"
        )


class ReduceOp:
    """Names of reductions."""

    SUM, AVG, PRODUCT, MIN, MAX = "SUM", "AVG", "PRODUCT", "MIN", "MAX"


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
    **_: Any,
) -> None:
    """Meet the other processes; `backend` is gloo (cpu), hccl (npu) or both, which is the default.

    ValueError for a second group, an unknown backend or missing addresses; DistributedError where
    not all ranks come within `timeout` (30 minutes).
    """
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    limit = _group.TIMEOUT_SECONDS if seconds is None else float(seconds)
    _group.start(backend, init_method, limit, world_size, rank)


def destroy_process_group(group: Any = None) -> None:
    """Leave the group."""
    _group.stop()


def is_available() -> bool:
    """Whether a launcher started several processes, or a group is there.

    Libraries that are told so reach for sharded tensors too, which are not here.
    """
    return is_initialized() or int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_initialized() -> bool:
    """Whether init_process_group was called."""
    return _group.current() is not None


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_gloo_available() -> bool:
    """True: sockets have its role."""
    return True


def is_nccl_available() -> bool:
    """False."""
    return False


is_mpi_available = is_nccl_available


def get_rank(group: Any = None) -> int:
    """This process's rank; ValueError before init_process_group."""
    return _group.default().rank


def get_world_size(group: Any = None) -> int:
    """How many processes there are; ValueError before init_process_group."""
    return _group.default().size


def get_backend(group: Any = None) -> str:
    """gloo, hccl, or both; ValueError before init_process_group."""
    return _group.default().backend


def __getattr__(name: str) -> Any:
    if name in ("device_mesh", "tensor"):
        return importlib.import_module(f"{__spec__.name}.{name}")
    if name.startswith("_") or name[0].isupper():
        raise AttributeError(f"module 'mindtorch.distributed' has no attribute '{name}'")

    def refuse(*_: Any, **__: Any) -> Any:
        raise DistributedNotAvailableError(f"torch.distributed.{name}: not here; see its __all__")

    return refuse
