"""Owns torch.distributed._functional_collectives: collectives that give new tensors.

A group is one, its ranks, a mesh of one dimension, or a mesh and a dimension. Results are
`AsyncCollectiveTensor`s, whose values are there at once.
"""
# ruff: noqa: N803 - torch's names of arguments

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from math import prod
from typing import Any

import mindtorch

from .._tensor.tensor import Tensor
from ..autograd import Function
from ..ops.namespaces import OpOverloadPacket, namespace
from ..utils._pytree import tree_map_only
from . import _calls, get_rank, get_world_size, new_group
from ._calls import Group
from ._counted import counted
from ._group import ProcessGroup, default
from .device_mesh import DeviceMesh
from .nn import functional

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


class AsyncCollectiveTensor(Tensor):
    """What a collective gives: views of it are such too, all else takes `elem`, its values."""

    elem: Tensor
    completed: bool

    @staticmethod
    def __new__(cls: type[AsyncCollectiveTensor], elem: Tensor) -> AsyncCollectiveTensor:
        tensor: AsyncCollectiveTensor = Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(),
            dtype=elem.dtype, layout=elem.layout, device=elem.device,
            requires_grad=elem.requires_grad,
        )  # fmt: skip
        tensor.elem, tensor.completed = elem, False
        return tensor

    def __init__(self, *_: object) -> None:
        """All is done in `__new__`."""

    def __repr__(self, **_: object) -> str:
        return f"AsyncCollectiveTensor({self.trigger_wait()})"

    def tolist(self) -> Any:
        """The values as lists."""
        return self.trigger_wait().tolist()

    def numpy(self, *more: Any, force: bool = False) -> Any:
        """The values as an array."""
        return self.wait().numpy(*more, force=force)

    def trigger_wait(self) -> Tensor:
        """The values, which have been waited for from then on."""
        self.completed = True
        return self.elem

    def wait(self) -> Tensor:
        """The values."""
        return self.elem

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        plain = func.is_view
        values = tree_map_only(
            AsyncCollectiveTensor,
            lambda t: t.elem if plain else t.trigger_wait(),
            (args, kwargs or {}),
        )
        out = func(*values[0], **values[1])
        return tree_map_only(Tensor, AsyncCollectiveTensor, out) if plain else out


class _Wrap(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return AsyncCollectiveTensor(tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def _wrapped(tensor: Tensor) -> Any:
    return _Wrap.apply(tensor)


def wait_tensor(tensor: Tensor) -> Tensor:
    """The values of a collective's tensor."""
    return tensor.wait() if isinstance(tensor, AsyncCollectiveTensor) else tensor


def broadcast(self: Tensor, src: int, group: Where, tag: str = "") -> Tensor:
    """Rank `src`'s tensor."""
    counted("broadcast")
    return _wrapped(functional.broadcast(self, src, _group(group)))


def all_reduce(self: Tensor, reduceOp: str, group: Where, tag: str = "") -> Tensor:
    """The reduction of every rank's tensor."""
    counted("all_reduce")
    return _wrapped(functional.all_reduce(self, _op(reduceOp), _group(group)))


def all_gather_single(self: Tensor, gather_dim: int, group: Where, tag: str = "") -> Tensor:
    """Every rank's tensor, one after the other along a dimension."""
    counted("all_gather_into_tensor")
    parts = functional.all_gather(wait_tensor(self), _group(group))
    whole = mindtorch.cat(parts, gather_dim)
    is_view = gather_dim == 0 or (self.shape[0] == 1 and prod(self.shape[1:gather_dim]) == 1)
    return _wrapped(whole) if is_view else whole


def reduce_scatter_single(
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
    return _wrapped(functional.reduce_scatter(mindtorch.empty_like(parts[0]), parts, op, place))


def all_to_all_single(
    self: Tensor, output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None, group: Where, tag: str = "",
) -> Tensor:  # fmt: skip
    """Rows to each rank, and theirs."""
    counted("all_to_all_single")
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = self.new_empty((rows, *self.shape[1:]))
    place = _group(group)
    return _wrapped(
        functional.all_to_all_single(output, self, output_split_sizes, input_split_sizes, place)
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
    return _wrapped(moved.reshape(self.shape))


def all_reduce_coalesced(
    self: Sequence[Tensor], reduceOp: str, group: Where, tag: str = ""
) -> list[Tensor]:
    """`all_reduce` of each tensor."""
    return [all_reduce(t, reduceOp, group) for t in self]


def all_gather_single_coalesced(
    self: Sequence[Tensor], group: Where, tag: str = ""
) -> list[Tensor]:
    """`all_gather_single` of each tensor, along its first dimension."""
    return [all_gather_single(t, 0, group) for t in self]


def reduce_scatter_single_coalesced(
    inputs: Sequence[Tensor], reduceOp: str, scatter_dim: Sequence[int], group: Where,
    tag: str = "",
) -> list[Tensor]:  # fmt: skip
    """`reduce_scatter_single` of each tensor."""
    pairs = zip(inputs, scatter_dim, strict=True)
    return [reduce_scatter_single(t, reduceOp, dim, group) for t, dim in pairs]


def _older(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function under an older name, which warns."""
    instead = name.replace("into_tensor", "single").replace("tensor", "single")

    @wraps(function)
    def older(*args: Any, **kwargs: Any) -> Any:
        where = "_functional_collectives"
        _calls._warn_of_older_name(f"{where}.{name}", f"{where}.{instead}")
        return function(*args, **kwargs)

    older.__name__ = name
    return older


all_gather_single_autograd, reduce_scatter_single_autograd = (
    all_gather_single,
    reduce_scatter_single,
)
all_to_all_single_autograd = all_to_all_single
all_gather_tensor = _older(all_gather_single, "all_gather_tensor")
all_gather_tensor_autograd = _older(all_gather_single, "all_gather_tensor_autograd")
reduce_scatter_tensor = _older(reduce_scatter_single, "reduce_scatter_tensor")
reduce_scatter_tensor_autograd = _older(reduce_scatter_single, "reduce_scatter_tensor_autograd")
all_gather_into_tensor_coalesced = _older(
    all_gather_single_coalesced, "all_gather_into_tensor_coalesced"
)
reduce_scatter_tensor_coalesced = _older(
    reduce_scatter_single_coalesced, "reduce_scatter_tensor_coalesced"
)
all_reduce_inplace, all_to_all_inplace = _calls.all_reduce, _calls.all_to_all_single


def _plain(call: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda *args: wait_tensor(call(*args))


# torch.ops.c10d_functional has those of older programs: a tag, ranks and their number come last.
_CALLS: dict[str, Callable[..., Any]] = {
    "all_gather_into_tensor": lambda t, tag, ranks, size: all_gather_single(t, 0, ranks),
    "all_reduce": lambda t, op, tag, ranks, size: all_reduce(t, op, ranks),
    "all_to_all_single": lambda t, to, of, tag, ranks, size: all_to_all_single(t, to, of, ranks),
    "broadcast": lambda t, source, tag, ranks, size: broadcast(t, source, ranks),
    "reduce_scatter_tensor": lambda t, op, tag, ranks, size: reduce_scatter_single(t, op, 0, ranks),
    "wait_tensor": wait_tensor,
}
for _name, _call in _CALLS.items():
    _packet = OpOverloadPacket("c10d_functional", _name, _plain(_call))
    setattr(namespace("c10d_functional"), _name, _packet)
