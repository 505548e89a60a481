"""Owns torch.distributed: groups of processes, one a device, and their collectives.

CPU tensors over sockets (gloo's role), NPU tensors over HCCL.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, ClassVar

from .._compat import absent_modules
from .._compat.refusals import refused
from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from . import _group
from ._calls import (
    Group,
    GroupMember,
    all_gather,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    inside,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from ._coalesced import (
    _coalescing_manager as _coalescing_manager,
    all_gather_coalesced,
    all_reduce_coalesced,
)
from ._group import ProcessGroup, Work
from ._mesh import DistributedError
from ._points import (
    P2POp,
    all_gather_object,
    batch_isend_irecv,
    broadcast_object_list,
    gather_object,
    irecv,
    isend,
    recv,
    recv_object_list,
    scatter_object_list,
    send,
    send_object_list,
)
from ._store import (
    DistStoreError,
    FileStore,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
    TCPStore,
)
from ._subgroups import (
    BackendConfig,
    get_pg_count,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
    supports_complex,
)

__all__ = [
    "Backend",
    "BackendConfig",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "DistributedError",
    "DistributedNotAvailableError",
    "FileStore",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_hccl_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "split_group",
    "supports_complex",
]  # fmt: skip
# torch's names for what goes wrong between processes.
DistError = DistBackendError = DistNetworkError = DistributedError


class DistributedNotAvailableError(RuntimeError):
    """Something of torch.distributed that is not here was asked for."""


class RedOpType(str, Enum):
    """Names of reductions; those that begin with B are of integers' bits, and not on NPUs."""

    SUM, AVG, PRODUCT, MIN, MAX = "SUM", "AVG", "PRODUCT", "MIN", "MAX"
    BAND, BOR, BXOR, PREMUL_SUM = "BAND", "BOR", "BXOR", "PREMUL_SUM"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {list(RedOpType).index(self)}>"


class ReduceOp:
    """The reductions that collectives take."""

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    def __new__(cls, op: object) -> Any:
        """The reduction itself; TypeError for what is none."""
        if not isinstance(op, RedOpType):
            raise TypeError(f"ReduceOp: expected a RedOpType, got {op!r}")
        return op


class GradBucket:
    """Gradients of some parameters as one tensor, which a hook of DistributedDataParallel gets."""

    def __init__(self, place: int, count: int, parameters: Sequence[Tensor], buffer: Tensor):
        self._place, self._count = place, count
        self._parameters, self._buffer = list(parameters), buffer

    def index(self) -> int:
        """The bucket's place in the order in which they are sent."""
        return self._place

    def is_last(self) -> bool:
        """Whether it is the last of this backward."""
        return self._place == self._count - 1

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients it has."""
        return self._parameters

    def buffer(self) -> Tensor:
        """All gradients one after the other [n]."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the gradients."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The part of `buffer()` of each parameter, by its shape."""
        parts = self._buffer.split([p.numel() for p in self._parameters])
        return [g.view(p.shape) for g, p in zip(parts, self._parameters, strict=True)]


class Backend(str):
    """A backend's name in small letters; here there are gloo (cpu) and hccl (npu)."""

    UNDEFINED, GLOO, HCCL, NCCL, UCC, MPI, XCCL = (
        "undefined", "gloo", "hccl", "nccl", "ucc", "mpi", "xccl",
    )  # fmt: skip
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, HCCL]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "npu": HCCL}

    def __new__(cls, name: str) -> Backend:
        """ValueError for what is no text."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


default_pg_timeout = timedelta(seconds=_group.TIMEOUT_SECONDS)


def _get_default_group() -> ProcessGroup:
    """The group of all processes; ValueError before init_process_group."""
    world = _group.current()
    if world is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call"
            " init_process_group."
        )
    return world


class group(GroupMember):  # noqa: N801 - torch's name
    """`group.WORLD`: every process of the run, None before init_process_group."""


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    **_: Any,
) -> None:
    """Meet the other processes; `backend` is gloo (cpu), hccl (npu) or both, which is the default.

    ValueError for a second group, an unknown backend or missing addresses; DistributedError where
    not all ranks come within `timeout` (30 minutes).
    """
    if _group.current() is not None:
        raise ValueError("trying to initialize the default process group twice!")
    seconds = _group.seconds_of(timeout)
    limit = _group.TIMEOUT_SECONDS if seconds is None else float(seconds)
    if init_method is not None and init_method.startswith("file://") and world_size > 0:
        store = FileStore(init_method.removeprefix("file://"), world_size)
        init_method = None
    if store is not None:
        if init_method is not None:
            raise AssertionError("Cannot specify both init_method and store.")
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
        init_method = _meeting_place(store, rank, world_size)
    _group.start(backend, init_method, limit, world_size, rank)


def _meeting_place(store: Store, rank: int, world_size: int) -> str:
    """Where the processes of a store meet: a free port of rank 0's machine."""
    if world_size == 1:
        return "tcp://localhost:0"  # which a process alone does not open
    host = getattr(store, "host", "localhost")
    if rank == 0:
        with socket.create_server(("", 0)) as free:
            store.set("mindtorch/address", f"tcp://{host}:{free.getsockname()[1]}")
    return store.get("mindtorch/address").decode()


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; without one, all of them."""
    if group is not None and not isinstance(group, ProcessGroup):
        return
    if group is None and not is_initialized():
        raise AssertionError("Process group cannot be None")
    _group.stop(group)


def is_available() -> bool:
    """True: groups of processes are part of the library."""
    return True


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


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_hccl_available() -> bool:
    """Whether the opened install has NPUs, between which HCCL moves data."""
    from .._backends.npu.runtime import is_available

    return is_available()


def is_backend_available(backend: str) -> bool:
    """Whether init_process_group takes it."""
    return backend.lower() in _group.BACKENDS


def get_rank(group: Group = None) -> int:
    """This process's rank in a group, -1 for who is not in it; ValueError before
    init_process_group."""
    process_group = _of(group)
    return -1 if process_group is None else process_group.rank()


def get_world_size(group: Group = None) -> int:
    """How many processes a group has, -1 for who is not in it; ValueError before
    init_process_group."""
    process_group = _of(group)
    return -1 if process_group is None else process_group.size()


def get_backend(group: Group = None) -> str:
    """gloo, hccl, or both; ValueError before init_process_group."""
    process_group = _of(group)
    if process_group is None:
        raise ValueError("Invalid process group specified")
    return process_group.backend


def get_backend_config(group: Group = None) -> str:
    """The backend of each type of device, `cpu:gloo,npu:hccl`; ValueError for who is not in the
    group."""
    return str(BackendConfig(get_backend(group)))


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's place on its host, as a launcher's LOCAL_RANK says."""
    value = os.environ.get("LOCAL_RANK")
    if value is None and fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
            "`get_node_local_rank` to work, assuming you are not running in a multi-device context"
            " and want the code to run locally instead."
        )
    return int(value if value is not None else fallback_rank or 0)


def get_process_group_ranks(group: Group = None) -> list[int]:
    """The ranks of a group, by their places in it."""
    process_group = _of(group)
    return [] if process_group is None else list(process_group.ranks)


def get_global_rank(group: Group, group_rank: int) -> int:
    """A rank among all processes of one in a group."""
    process_group = _of(group)
    if process_group is not None and process_group is _group.current():
        return group_rank
    if process_group is None or not 0 <= group_rank < process_group.count:
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return process_group.ranks[group_rank]


def get_group_rank(group: Group, global_rank: int) -> int:
    """A rank in a group of one among all processes."""
    process_group = _of(group)
    if process_group is None:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return process_group.place(global_rank, None, "get_group_rank")


def get_default_backend_for_device(device: str | Device) -> str:
    """gloo or hccl; ValueError for a type of device without one."""
    kind = Device(device).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


class DebugLevel(Enum):
    """How much torch logs of collectives: kept, without effect."""

    OFF, INFO, DETAIL = range(3)

    def __str__(self) -> str:
        return f"DebugLevel.{self.name}"


_debug_level = [DebugLevel.OFF]


def get_debug_level() -> DebugLevel:
    """What set_debug_level was given."""
    return _debug_level[0]


def set_debug_level(level: DebugLevel) -> None:
    """Kept, without effect."""
    _debug_level[0] = level


def set_debug_level_from_env() -> None:
    """Take TORCH_DISTRIBUTED_DEBUG; RuntimeError for no level's name."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF")
    if name.upper() not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[name.upper()])


def _of(group: Group) -> ProcessGroup | None:
    """A group; None for who is not in it."""
    return None if group == GroupMember.NON_GROUP_MEMBER else inside(group, "get_rank")


# Functions of torch.distributed that are not here, which are there to be refused.
_FUNCTIONS = frozenset((
    "breakpoint", "record_comm", "register_rendezvous_handler", "rendezvous", "shrink_group",
))  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("DeviceMesh", "init_device_mesh"):
        from . import device_mesh

        return getattr(device_mesh, name)
    if not name.startswith("_") and importlib.util.find_spec(f"{__spec__.name}.{name}"):
        return importlib.import_module(f"{__spec__.name}.{name}")
    if name in absent_modules.refused_names().get("distributed", ()) and name[0].isupper():
        return refused(f"torch.distributed.{name}", absent_modules.reason("distributed"))
    if name not in _FUNCTIONS:
        raise AttributeError(f"module 'torch.distributed' has no attribute '{name}'")

    def refuse(*_: Any, **__: Any) -> Any:
        raise DistributedNotAvailableError(f"torch.distributed.{name}: not here; see its __all__")

    return refuse
