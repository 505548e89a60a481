"""Owns the default group: which rank this process is, how its tensors reach the others.

CPU tensors travel over sockets, NPU tensors over HCCL. Reductions on the CPU go in the order of
ranks, so that every rank has the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import numpy as np

import mindtorch

from .._tensor.device import CPU
from .._tensor.geometry import contiguous
from .._tensor.tensor import Tensor, adopt, host_array
from ._mesh import DistributedError, Mesh

if TYPE_CHECKING:
    from .._backends.npu.hccl import Communicator

BACKENDS: Final = ("gloo", "hccl", "cpu:gloo,npu:hccl")
REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "SUM": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum,
}  # fmt: skip
TIMEOUT_SECONDS: Final = 1800.0
_current: Group | None = None


class Group:
    """Every process of a run: rank, size, and the ways between them."""

    def __init__(self, backend: str, mesh: Mesh) -> None:
        self.backend, self.mesh = backend, mesh
        self.rank, self.size = mesh.rank, mesh.size
        self._hccl: Communicator | None = None

    def hccl(self, tensor: Tensor) -> Communicator:
        """The communicator of NPUs, made by the first call with a tensor on one."""
        index = int(tensor.device.index or 0)
        if self._hccl is None:
            from .._backends.npu.hccl import Communicator

            def share(part: bytes) -> bytes:
                return self.mesh.everywhere("root info", part)[0]

            self._hccl = Communicator(self.rank, self.size, index, share)
        if self._hccl.index != index:
            raise ValueError(
                f"rank {self.rank} uses npu:{self._hccl.index} in this group; got a tensor on "
                f"npu:{index}"
            )
        return self._hccl

    def on_npu(self, tensor: Tensor, name: str) -> bool:
        """Whether a tensor goes over HCCL; ValueError where the backend has no way for it."""
        kind = tensor.device.type
        if kind == "npu" and "hccl" in self.backend:
            return True
        if kind == "cpu" and "gloo" in self.backend:
            return False
        raise ValueError(
            f"{name}: backend {self.backend!r} has no way for tensors on {tensor.device}: gloo is "
            "for cpu, hccl for npu, cpu:gloo,npu:hccl for both"
        )

    def close(self) -> None:
        """Leave the group."""
        if self._hccl is not None:
            mindtorch.npu.synchronize(self._hccl.index)
            self._hccl.close()
        self.mesh.close()


def default() -> Group:
    """The group; ValueError before init_process_group, as torch says it."""
    if _current is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call"
            " init_process_group."
        )
    return _current


def current() -> Group | None:
    """The group, or None."""
    return _current


def start(
    backend: str | None, init_method: str | None, timeout: float, size: int, rank: int
) -> None:
    """Meet the others. Address, rank and size come from `tcp://host:port` and the arguments, else
    from MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, which launchers such as torchrun set."""
    global _current
    if _current is not None:
        raise ValueError("trying to initialize the default process group twice!")
    backend = backend or "cpu:gloo,npu:hccl"
    if backend not in BACKENDS:
        raise ValueError(f"backend {backend!r}: expected one of {', '.join(BACKENDS)}")
    where = urlsplit(init_method or "env://")
    if where.scheme not in ("env", "tcp"):
        raise ValueError(f"init_method {init_method!r}: expected env:// or tcp://host:port")
    tcp = where.scheme == "tcp"
    host = str(where.hostname) if tcp else _asked("MASTER_ADDR")
    port = int(where.port or 0) if tcp else int(_asked("MASTER_PORT"))
    rank = rank if rank >= 0 else int(_asked("RANK"))
    size = size if size >= 0 else int(_asked("WORLD_SIZE"))
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank}: expected 0 to {size - 1} (world_size {size})")
    _current = Group(backend, Mesh(host, port, rank, size, timeout))


def _asked(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set"
        )
    return value


def stop() -> None:
    """Leave the group, if there is one."""
    global _current
    leaving, _current = _current, None
    if leaving is not None:
        leaving.close()


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
