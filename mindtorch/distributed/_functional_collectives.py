"""Owns torch.distributed._functional_collectives: collectives that give new tensors.

A group is one, its ranks, a mesh of one dimension, or a mesh and a dimension. Results are there at
once, and `wait_tensor` gives them as they are.
"""
# ruff: noqa: N803 - torch's names of arguments

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch

from .._tensor.tensor import Tensor
from ..ops.namespaces import OpOverloadPacket, namespace
from . import _calls, get_rank, get_world_size, new_group
from ._calls import Group
from ._counted import counted
from ._group import ProcessGroup, default
from .device_mesh import DeviceMesh
from .nn import functional

AsyncCollectiveTensor = Tensor
Ranks = Sequence[int] | Sequence[Sequence[int]]
Where = ProcessGroup | DeviceMesh | tuple[DeviceMesh, int | str] | Ranks | None
_GROUPS: dict[tuple[int, ...], ProcessGroup | int] = {}


def _group(group: Where) -> Group:
    if isinstance(group, ProcessGroup) or group is None:
        return group
    if isinstance(group, DeviceMesh):
        return group.get_group()
    first, *rest = group
    if isinstance(first, DeviceMesh):
        (dim,) = rest
        assert isinstance(dim, int | str)
        return first.get_group(dim)
    ranks: tuple[Any, ...] = tuple(group if isinstance(first, int) else first)
    if ranks == tuple(range(get_world_size())):
        return default()
    if ranks not in _GROUPS:
        _GROUPS[ranks] = new_group(ranks)
    return _GROUPS[ranks]


def _op(name: str) -> str:
    return name.upper()


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, which is there."""
    return tensor


def broadcast(self: Tensor, src: int, group: Where, tag: str = "") -> Tensor:
    """Rank `src`'s tensor."""
    counted("broadcast")
    return functional.broadcast(self, src, _group(group))


def all_reduce(self: Tensor, reduceOp: str, group: Where, tag: str = "") -> Tensor:
    """The reduction of every rank's tensor."""
    counted("all_reduce")
    return functional.all_reduce(self, _op(reduceOp), _group(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Where, tag: str = "") -> Tensor:
    """Every rank's tensor, one after the other along a dimension."""
    counted("all_gather_into_tensor")
    return mindtorch.cat(functional.all_gather(self, _group(group)), gather_dim)


def reduce_scatter_tensor(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Where, tag: str = ""
) -> Tensor:
    """This rank's part, along a dimension, of the reduction of every rank's tensor."""
    counted("reduce_scatter_tensor")
    place = _group(group)
    count = get_world_size(place)
    if self.size(scatter_dim) % count:
        raise AssertionError(
            f"input dimension 0 ({self.size(0)} must be a multiple of group_size {count})"
        )
    parts = self.chunk(count, scatter_dim)
    op = _op(reduceOp)
    return functional.reduce_scatter(mindtorch.empty_like(parts[0]), parts, op, place)


def all_to_all_single(
    self: Tensor, output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None, group: Where, tag: str = "",
) -> Tensor:  # fmt: skip
    """Rows to each rank, and theirs."""
    counted("all_to_all_single")
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = self.new_empty((rows, *self.shape[1:]))
    return functional.all_to_all_single(
        output, self, output_split_sizes, input_split_sizes, _group(group)
    )


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Where, tag: str = "") -> Tensor:
    """The tensor of the rank that sends to this one: rank i sends to `src_dst[i]`."""
    counted("all_to_all_single")
    place = _group(group)
    rank = get_rank(place)
    there, here = ([0] * get_world_size(place) for _ in range(2))
    there[src_dst[rank]] = here[list(src_dst).index(rank)] = self.numel()
    flat = self.reshape(-1)
    moved = functional.all_to_all_single(flat.new_empty(sum(here)), flat, here, there, place)
    return moved.reshape(self.shape)


def all_reduce_coalesced(
    self: Sequence[Tensor], reduceOp: str, group: Where, tag: str = ""
) -> list[Tensor]:
    """`all_reduce` of each tensor."""
    return [all_reduce(t, reduceOp, group) for t in self]


def all_gather_single_coalesced(
    self: Sequence[Tensor], group: Where, tag: str = ""
) -> list[Tensor]:
    """`all_gather_tensor` of each tensor, along its first dimension."""
    return [all_gather_tensor(t, 0, group) for t in self]


def reduce_scatter_single_coalesced(
    inputs: Sequence[Tensor], reduceOp: str, scatter_dim: Sequence[int], group: Where,
    tag: str = "",
) -> list[Tensor]:  # fmt: skip
    """`reduce_scatter_tensor` of each tensor."""
    pairs = zip(inputs, scatter_dim, strict=True)
    return [reduce_scatter_tensor(t, reduceOp, dim, group) for t, dim in pairs]


all_gather_single = all_gather_single_autograd = all_gather_tensor_autograd = all_gather_tensor
all_gather_into_tensor_coalesced = all_gather_single_coalesced
all_to_all_single_autograd = all_to_all_single
reduce_scatter_single = reduce_scatter_single_autograd = reduce_scatter_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
all_reduce_inplace, all_to_all_inplace = _calls.all_reduce, _calls.all_to_all_single


# torch.ops.c10d_functional has those of older programs: a tag, ranks and their number come last.
_CALLS: dict[str, Callable[..., Any]] = {
    "all_gather_into_tensor": lambda t, tag, ranks, size: all_gather_tensor(t, 0, ranks),
    "all_reduce": lambda t, op, tag, ranks, size: all_reduce(t, op, ranks),
    "all_to_all_single": lambda t, to, of, tag, ranks, size: all_to_all_single(t, to, of, ranks),
    "broadcast": lambda t, source, tag, ranks, size: broadcast(t, source, ranks),
    "reduce_scatter_tensor": lambda t, op, tag, ranks, size: reduce_scatter_tensor(t, op, 0, ranks),
    "wait_tensor": wait_tensor,
}
for _name, _call in _CALLS.items():
    _packet = OpOverloadPacket("c10d_functional", _name, _call)
    setattr(namespace("c10d_functional"), _name, _packet)
