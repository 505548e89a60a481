"""Owns torch.distributed.tensor's names for isinstance: no tensor is spread over processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import DistributedNotAvailableError
from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh


def _refuse(name: str) -> Any:
    raise DistributedNotAvailableError(
        f"torch.distributed.tensor.{name}: mindtorch runs one process and spreads no tensors"
    )


class DTensor:
    """Stands for a tensor over processes: nothing is one."""

    def __new__(cls, *_: object, **__: object) -> Any:
        return _refuse("DTensor")

    @staticmethod
    def from_local(*_: object, **__: object) -> Any:
        """Refused: there is one process."""
        return _refuse("DTensor.from_local")


class Placement:
    """How a tensor would lie over processes."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part, along `dim` where one is named."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has a copy."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each process has a summand, or one of another reduction."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Replicate(Placement):
    """A copy in each process."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Shard(Placement):
    """A part in each process, along `dim`."""

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Partial(Placement):
    """A summand in each process."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


def distribute_tensor(*_: object, **__: object) -> Any:
    """Refused: there is one process."""
    return _refuse("distribute_tensor")
