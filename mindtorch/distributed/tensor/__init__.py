"""Owns torch.distributed.tensor's names for isinstance: no tensor is spread over processes."""

from __future__ import annotations

from typing import Any

from .. import DistributedNotAvailableError


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


class Replicate(Placement):
    """A copy in each process."""


class Shard(Placement):
    """A part in each process, along `dim`."""

    def __init__(self, dim: int):
        self.dim = dim


class Partial(Placement):
    """A summand in each process."""

    def __init__(self, reduce_op: str = "sum"):
        self.reduce_op = reduce_op


def distribute_tensor(*_: object, **__: object) -> Any:
    """Refused: there is one process."""
    return _refuse("distribute_tensor")
