"""Owns torch.distributed's names for code that asks whether it runs distributed: it does not."""

from __future__ import annotations

import importlib
from typing import Any


class DistributedNotAvailableError(RuntimeError):
    """A collective was asked for; there is one process."""


class ProcessGroup:
    """Stands for a group of processes: making one is refused."""

    def __init__(self, *_: Any, **__: Any):
        raise DistributedNotAvailableError(
            "torch.distributed.ProcessGroup: mindtorch runs one process and has no groups"
        )


class ReduceOp:
    """Names of reductions, for defaults of arguments."""

    SUM, AVG, PRODUCT, MIN, MAX = "SUM", "AVG", "PRODUCT", "MIN", "MAX"


def is_available() -> bool:
    """False: there are no collectives here."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


is_torchelastic_launched = is_nccl_available = is_gloo_available = is_mpi_available = is_initialized


def get_rank(group: Any = None) -> int:
    """Refused as torch does before init_process_group."""
    raise ValueError(
        "Default process group has not been initialized, please make sure to call"
        " init_process_group."
    )


get_world_size = get_rank


def __getattr__(name: str) -> Any:
    if name in ("device_mesh", "tensor"):
        return importlib.import_module(f"{__spec__.name}.{name}")
    if name.startswith("_") or name[0].isupper():
        raise AttributeError(f"module 'mindtorch.distributed' has no attribute '{name}'")

    def refuse(*_: Any, **__: Any) -> Any:
        raise DistributedNotAvailableError(
            f"torch.distributed.{name}: mindtorch runs one process and has no collectives"
        )

    return refuse
