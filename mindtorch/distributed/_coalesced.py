"""Owns collectives of several tensors at once, and what puts several calls together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from ..futures import Future
from . import _calls
from ._calls import Group, inside
from ._group import ProcessGroup, Work, default


def _warn(name: str, new: str) -> None:
    warnings.warn(
        f"`torch.distributed.{name}` will be deprecated. If you must use it, please revisit our "
        f"documentation later at https://pytorch.org/docs/main/distributed.html#{new}",
        FutureWarning,
        stacklevel=3,
    )


def _one_dtype(tensors: list[Tensor], name: str) -> None:
    _calls._are_tensors(tensors, name)
    for tensor in tensors:
        _calls._one_dtype([tensors[0], tensor])


def _ended(works: list[Work | None], outputs: Any, async_op: bool) -> Future[Any] | None:
    """A future of the outputs behind the last of the calls, where one is asked for."""
    if not async_op:
        return None
    future: Future[Any] = Future()
    if not works or works[-1] is None:
        future.set_result(outputs)
        return future
    return works[-1].get_future().then(lambda last: [last.wait(), outputs][1])


def all_reduce_coalesced(
    tensors: Tensor | list[Tensor], op: str = "SUM", group: Group = None, async_op: bool = False
) -> Future[list[Tensor]] | None:
    """Each of `tensors`, of one dtype, becomes the reduction of every rank's."""
    _warn("all_reduce_coalesced", "collective-functions")
    several = [tensors] if isinstance(tensors, Tensor) else tensors
    _one_dtype(several, "tensor")
    if inside(group, "all_reduce_coalesced") is None:
        return None
    works = [_calls.all_reduce(t, op, group, async_op) for t in several]
    return _ended(works, several, async_op)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Group = None,
    async_op: bool = False,
) -> Future[list[list[Tensor]]] | None:  # fmt: skip
    """`output_tensor_lists[i]` becomes rank i's `input_tensor_list`, of one dtype."""
    _warn("all_gather_coalesced", "collective-functions")
    process_group = inside(group, "all_gather_coalesced")
    if process_group is None:
        return None
    _one_dtype(input_tensor_list, "input_tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for outputs in output_tensor_lists:
        _one_dtype(outputs, "output_tensor_lists")
    if len(output_tensor_lists) != process_group.count:
        raise RuntimeError(
            "ProcessGroupGloo::allgather_coalesced: output lists should be equal to world size"
        )
    columns = zip(*output_tensor_lists, strict=True)
    works = [
        _calls.all_gather(list(column), tensor, process_group, async_op)
        for column, tensor in zip(columns, input_tensor_list, strict=True)
    ]
    return _ended(works, output_tensor_lists, async_op)


class _CoalescingManager:
    """What the calls of a `_coalescing_manager` ended in, to be waited for."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add what is to be waited for."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all of it."""
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(
    group: ProcessGroup | None = None, device: Device | None = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """Calls of one kind inside (all_reduce, all_gather_single, reduce_scatter_single) begin at the
    end; RuntimeError for several kinds, ValueError inside of another one with calls."""
    process_group = default() if group is None else group
    if process_group.later:
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    process_group.later = []
    manager = _CoalescingManager()
    try:
        yield manager
        calls = process_group.later
    finally:
        process_group.later = None
    kinds = {name for name, _ in calls or ()}
    if len(kinds) > 1:
        raise RuntimeError(
            "Coalescing manager requires all collectives to be the same type, but got mixed types:"
            f" {kinds}"
        )
    works = [call(async_ops) for _, call in calls or ()]
    if works:
        manager.append(works[-1])
