"""Owns steps that all processes take: each does its part, one decides, all learn of failures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..._tensor.tensor import Tensor
from .. import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    get_global_rank,
    get_rank,
    get_world_size,
    is_initialized,
    scatter_object_list,
)
from .._group import ProcessGroup
from ..tensor._api import DTensor
from .api import CheckpointException, failure, is_failure
from .metadata import MetadataIndex

__all__ = ["find_state_dict_object", "find_tensor_shard"]
T = TypeVar("T")
R = TypeVar("R")
_NO_OFFSET = "FQN: '{}' is not a ShardedTensor, can't find by offset: '{}'"


class Processes:
    """The processes of a save or a load; this one alone where there is no group.

    What a step raises in one process is raised in all of them, as a CheckpointException.
    """

    def __init__(self, group: ProcessGroup | None, alone: bool, coordinator: int = 0) -> None:
        self.group, self.alone = group, alone
        self.rank = 0 if alone else get_rank(group)
        self.is_coordinator = alone or self.rank == coordinator
        self._first = 0
        if not alone:
            self._first = coordinator if group is None else get_global_rank(group, coordinator)

    @property
    def count(self) -> int:
        """How many processes there are."""
        return 1 if self.alone else get_world_size(self.group)

    def _gathered(self, value: Any) -> list[Any] | None:
        """The values of all, in the process that decides."""
        if self.alone:
            return [value]
        values = [None] * self.count if self.is_coordinator else None
        gather_object(value, values, dst=self._first, group=self.group)
        return values

    def _decided(self, step: str, mine: Callable[[], Any], decide: Callable[[Any], Any]) -> Any:
        """What the deciding process makes of the values of all: a CheckpointException where some
        failed; None in the others."""
        values = self._gathered(_tried(mine))
        if values is None:
            return None
        failures = {rank: v for rank, v in enumerate(values) if is_failure(v)}
        result = None if failures else _tried(lambda: decide(values))
        if is_failure(result):
            failures[self.rank] = result
        return CheckpointException(step, failures) if failures else result

    def scatter(self, step: str, mine: Callable[[], T], decide: Callable[[list[T]], list[R]]) -> R:
        """Each process's part of what one of them makes of the values of all."""
        parts = self._decided(step, mine, decide)
        if isinstance(parts, CheckpointException):
            parts = [parts] * self.count
        if not self.alone:
            part = [None]
            scatter_object_list(part, parts, src=self._first, group=self.group)
            parts = part
        return _raised(parts[0])

    def reduce(self, step: str, mine: Callable[[], T], decide: Callable[[list[T]], R]) -> R:
        """What one process makes of the values of all."""
        whole = [self._decided(step, mine, decide)]
        if not self.alone:
            broadcast_object_list(whole, src=self._first, group=self.group)
        return _raised(whole[0])

    def gather(self, step: str, mine: Callable[[], T]) -> list[T]:
        """The values of all processes, in each."""
        values = [_tried(mine)] * self.count
        if not self.alone:
            all_gather_object(values, values[0], group=self.group)
        failures = {rank: v for rank, v in enumerate(values) if is_failure(v)}
        return _raised(CheckpointException(step, failures) if failures else values)


def _tried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except BaseException as error:
        return failure(error)


def _raised(value: Any) -> Any:
    if isinstance(value, CheckpointException):
        raise value
    return value


def alone(no_dist: bool, what: str) -> bool:
    """Whether this process saves or loads by itself; a warning where it was not asked to."""
    if no_dist or is_initialized():
        return no_dist
    warnings.warn(
        "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to"
        f" {what} in a single process.",
        stacklevel=3,
    )
    return True


def find_tensor_shard(tensor: Tensor, index: MetadataIndex) -> Tensor:
    """This process's part of a tensor; ValueError for a chunk that begins elsewhere."""
    if isinstance(tensor, DTensor):
        return tensor.to_local()
    if index.offset is not None and any(index.offset):
        raise ValueError(_NO_OFFSET.format(index.fqn, index.offset))
    return tensor


def find_state_dict_object(state_dict: dict[str, Any], index: MetadataIndex) -> Any:
    """An object of a state, a tensor's part; ValueError for what the state does not have."""
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    value = state_dict[index.fqn]
    if isinstance(value, Tensor):
        return find_tensor_shard(value, index)
    if index.offset is not None:
        raise ValueError(_NO_OFFSET.format(index.fqn, index.offset))
    return value


def narrowed(tensor: Tensor, offsets: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """A box of a tensor, its memory."""
    for dim, (start, length) in enumerate(zip(offsets, lengths, strict=True)):
        if length < tensor.shape[dim]:
            tensor = tensor.narrow(dim, start, length)
    return tensor
