"""Owns groups of processes: which ranks, how their tensors reach each other, what waits its turn.

CPU tensors travel over sockets, NPU tensors over HCCL. Reductions on the CPU go in the order of
ranks, so that every rank has the same bits. A group's calls run in the order in which they were
begun, those that nobody waits for on a thread of the group.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError as FutureTimeoutError
from datetime import timedelta
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import numpy as np

import mindtorch

from .._tensor.device import CPU
from .._tensor.geometry import contiguous
from .._tensor.tensor import Tensor, adopt, host_array
from ..futures import Future as TorchFuture
from ._meeting import meet, meet_within
from ._mesh import DistributedError, Mesh

if TYPE_CHECKING:
    from .._backends.npu.hccl import Communicator

BACKENDS: Final = ("gloo", "hccl", "cpu:gloo,npu:hccl")
REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "SUM": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum,
    "BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor,
}  # fmt: skip
BITWISE: Final = frozenset(("BAND", "BOR", "BXOR"))
TIMEOUT_SECONDS: Final = 1800.0


class Work:
    """A call that was begun; `wait` returns when what follows comes after it.

    `outputs` are the tensors that it writes.
    """

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(
        self, finish: Callable[[float | None], object] | None = None,
        ready: Callable[[], bool] | None = None, outputs: Sequence[Any] = (),
        pending: Future[None] | None = None,
    ) -> None:  # fmt: skip
        self._outputs, self._pending = list(outputs), pending
        self._finish, self._ready = finish, ready
        self._error: Exception | None = None
        self._outcome: object = None

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """True when it is done; DistributedError where it failed, or `timeout` passed."""
        if self._finish is not None:
            try:
                self._outcome = self._finish(seconds_of(timeout))
            except (TimeoutError, FutureTimeoutError):
                raise DistributedError(f"Work.wait: not done within {timeout}") from None
            except Exception as error:
                self._error = error
            self._finish = None
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether `wait` would return at once."""
        return self._finish is None or self._ready is None or self._ready()

    def is_success(self) -> bool:
        """Whether it is done, and did not fail."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        """Why it failed, once it is done."""
        if self.is_completed() and self._finish is not None:
            try:
                self.wait()
            except Exception as error:
                return error
        return self._error

    def source_rank(self) -> int:
        """Of `irecv`: who sent it."""
        self.wait()
        if not isinstance(self._outcome, int):
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or"
                " recv-from-any call."
            )
        return self._outcome

    def result(self) -> list[Tensor]:
        """The tensors that it writes, once it is done."""
        self.wait()
        return self._outputs

    def get_future(self) -> TorchFuture[list[Tensor]]:
        """A future of `result()`."""
        future: TorchFuture[list[Tensor]] = TorchFuture()

        def complete(done: Future[None]) -> None:
            error = done.exception()
            if error is None:
                future.set_result(self._outputs)
            else:
                future.set_exception(error)

        if self._pending is None:
            future.set_result(self.result())
        else:
            self._pending.add_done_callback(complete)
        return future


class _IllegalWork(Work):
    """Of a call that begins later; ValueError for whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            raise ValueError(f"Illegal to call {name} on IllegalWork object")
        return super().__getattribute__(name)


class ProcessGroup:
    """Some processes of a run: rank, size, and the ways between them; made by init_process_group
    and new_group."""

    __module__ = "torch.distributed.distributed_c10d"

    backend: str
    mesh: Mesh
    group_name: str
    index: int
    count: int
    ranks: tuple[int, ...]

    def __init__(self, backend: str, mesh: Mesh, name: str, desc: str = "undefined") -> None:
        self.backend, self.mesh, self.group_name, self.group_desc = backend, mesh, name, desc
        self.index, self.count, self.ranks = mesh.rank, mesh.size, mesh.ranks
        self._hccl: Communicator | None = None
        self._queue: ThreadPoolExecutor | None = None
        self.later: list[tuple[str, Callable[[bool], Work | None]]] | None = None
        self._worker = 0  # the ident of the queue's thread
        self._last: Future[None] | None = None

    def _begin_thread(self) -> None:
        self._worker = get_ident()

    def rank(self) -> int:
        """This process's place in the group."""
        return self.index

    def size(self) -> int:
        """How many processes it has."""
        return self.count

    def name(self) -> str:
        """The backend's name, as in torch."""
        return self.backend

    def place(self, rank: int | None, within: int | None, name: str) -> int:
        """A place in the group: of a rank among all processes, or (`within`) among the group's.

        ValueError where both or neither are named, or the group has no such rank.
        """
        if rank is None and within is None:
            raise ValueError("Must specify global_rank or group_rank")
        if rank is not None and within is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        if within is not None:
            if not 0 <= within < self.count:
                raise ValueError(f"{name}: group rank {within}: expected 0 to {self.count - 1}")
            return within
        if rank is not None and self is _world:
            return rank
        if rank not in self.ranks:
            raise ValueError(f"Global rank {rank} is not part of group {self}")
        return self.ranks.index(rank)

    def root(self, place: int, name: str) -> None:
        """RuntimeError where the group has no such place."""
        if not 0 <= place < self.count:
            raise RuntimeError(f"ProcessGroupGloo::{name}: invalid root rank: {place}")

    def begin(
        self, call: Callable[[], None], async_op: bool, outputs: Sequence[Tensor] = ()
    ) -> Work | None:
        """Run a call in its turn: here, or on the group's thread with a Work that tells its end.

        What a callback begins on that thread comes at once: its turn is that of the call it
        follows.
        """
        if get_ident() == self._worker:
            call()
            return Work(outputs=outputs) if async_op else None
        waiting = self._last is not None and not self._last.done()
        if not async_op and not waiting:
            call()
            return None
        if self._queue is None:
            self._queue = ThreadPoolExecutor(1, "collectives", self._begin_thread)
        last = self._last = self._queue.submit(call)
        if async_op:
            return Work(lambda seconds: last.result(seconds), last.done, outputs, last)
        last.result()
        return None

    def put_off(self, call: Callable[..., Any], async_op: bool, *args: Any) -> Work | None:
        """Leave a call to the end of the `_coalescing_manager` around it; its Work is no one's to
        wait for."""
        assert self.later is not None
        self.later.append((call.__name__, lambda awaited: call(*args, async_op=awaited)))
        return _IllegalWork() if async_op else None

    def hccl(self, tensor: Tensor) -> Communicator:
        """The communicator of NPUs, made by the first call with a tensor on one."""
        index = int(tensor.device.index or 0)
        if self._hccl is None:
            from .._backends.npu.hccl import Communicator

            def share(part: bytes) -> bytes:
                return self.mesh.everywhere("root info", part)[0]

            self._hccl = Communicator(self.index, self.count, index, share)
        if self._hccl.index != index:
            raise ValueError(
                f"rank {self.index} uses npu:{self._hccl.index} in this group; got a tensor on "
                f"npu:{index}"
            )
        return self._hccl

    def on_npu(self, tensor: Tensor, name: str) -> bool:
        """Whether a tensor goes over HCCL; RuntimeError where the backend has no way for it."""
        kind = tensor.device.type
        if kind == "npu" and "hccl" in self.backend:
            return True
        if kind == "cpu" and "gloo" in self.backend:
            return False
        raise RuntimeError(
            f"No backend type associated with device type {kind}\n{name}: {self.backend!r} has no"
            " way for it: gloo is for cpu, hccl for npu, cpu:gloo,npu:hccl for both"
        )

    def close(self) -> None:
        """Leave the group, when all that was begun is done."""
        if self._queue is not None:
            self._queue.shutdown(wait=True)
        if self._hccl is not None:
            mindtorch.npu.synchronize(self._hccl.index)
            self._hccl.close()
        self.mesh.close()


_world: ProcessGroup | None = None
_groups: list[ProcessGroup] = []
_serial = 0


def default() -> ProcessGroup:
    """The group of all; ValueError before init_process_group, as torch says it."""
    if _world is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call"
            " init_process_group."
        )
    return _world


def current() -> ProcessGroup | None:
    """The group of all, or None."""
    return _world


def start(
    backend: str | None, init_method: str | None, timeout: float, size: int, rank: int
) -> None:
    """Meet the others. Address, rank and size come from `tcp://host:port` and the arguments, else
    from MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, which launchers such as torchrun set."""
    global _world
    where = urlsplit(init_method or "env://")
    if where.scheme not in ("env", "tcp"):
        raise RuntimeError(f"No rendezvous handler for {where.scheme}://")
    tcp = where.scheme == "tcp"
    rank = rank if rank >= 0 else int(_checked_option("RANK"))
    size = size if size >= 0 else int(_checked_option("WORLD_SIZE"))
    host = str(where.hostname) if tcp else _checked_option("MASTER_ADDR")
    port = int(where.port or 0) if tcp else int(_checked_option("MASTER_PORT"))
    backend = known(backend or "cpu:gloo,npu:hccl")
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank}: expected 0 to {size - 1} (world_size {size})")
    _world = ProcessGroup(backend, meet(host, port, rank, size, timeout), "0", "default_pg")


def known(backend: str) -> str:
    """A backend's name; ValueError for one that is not here."""
    if not isinstance(backend, str):
        raise ValueError(f"Backend constructor parameter must be string-ish, got {backend=}")
    if backend in ("nccl", "mpi", "ucc", "xccl"):
        raise RuntimeError(f"Distributed package doesn't have {backend.upper()} built in")
    if backend not in BACKENDS:
        raise AssertionError(f"Unknown backend type {backend}")
    return backend


def make(
    ranks: Sequence[int] | None, backend: str | None, timeout: float | None
) -> ProcessGroup | None:
    """A group of some ranks, which every process makes; None for who is not in it."""
    global _serial
    world = default()
    ranks = world.ranks if ranks is None else tuple(ranks)
    if not ranks or len(set(ranks)) < len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {list(ranks)}")
    if len(ranks) > world.count:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by"
            " init_process_group"
        )
    if wrong := [r for r in ranks if r not in world.ranks]:
        raise ValueError(
            f"Rank {wrong[0]} is out of range. Valid ranks are 0 to {world.count - 1}"
            f" (world_size={world.count})"
        )
    backend_class = known(backend or world.backend)
    _serial += 1
    limit = world.mesh.timeout if timeout is None else timeout
    mesh = meet_within(world.mesh, ranks, limit, _serial)
    if mesh is None:
        return None
    _groups.append(ProcessGroup(backend_class, mesh, str(_serial)))
    return _groups[-1]


def seconds_of(timeout: timedelta | float | None) -> float | None:
    """Seconds of what torch takes as a time limit."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout


def _checked_option(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set"
        )
    return value


def stop(group: ProcessGroup | None = None) -> None:
    """Leave a group; the group of all and with it every other, where none is named."""
    global _world, _serial
    if group is not None and group is not _world:
        _groups.remove(group)
        group.close()
        return
    leaving, _world = [*_groups, *([_world] if _world is not None else [])], None
    _groups.clear()
    _serial = 0
    for one in leaving:
        one.close()


def array_of(tensor: Tensor) -> Any:
    """The elements of a cpu tensor as a contiguous array (bfloat16 by ml_dtypes)."""
    near = tensor.detach().contiguous()
    return np.ascontiguousarray(host_array(near._geom, near._storage))


def fill(tensor: Tensor, array: Any) -> None:
    """Put an array's elements into a cpu tensor."""
    owned = np.array(array, order="C").reshape(tuple(tensor.shape))
    with mindtorch.no_grad():
        tensor.copy_(adopt(contiguous(owned.shape, tensor.dtype, CPU), owned))


def bytes_as(data: bytes, like: Any) -> Any:
    """Received bytes as an array of the same dtype and shape as `like`."""
    if len(data) != like.nbytes:
        raise DistributedError(
            f"received {len(data)} bytes for {like.dtype.name}{list(like.shape)} ({like.nbytes} "
            "bytes): every rank must pass tensors of one shape and dtype"
        )
    return np.frombuffer(data, np.uint8).view(like.dtype).reshape(like.shape)
