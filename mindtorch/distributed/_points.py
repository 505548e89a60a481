"""Owns what goes from one rank to another: tensors and objects, by tags, awaited or not.

Objects are pickles: only among processes that you trust.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, Final

import mindtorch

from .._tensor.tensor import Tensor
from ._calls import Group, inside, listed
from ._group import ProcessGroup, Work, array_of, bytes_as, default, fill

_OBJECT: Final = "object"


def send(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """To rank `dst`, which calls `recv` with the same tag."""
    isend(tensor, dst, group, tag, group_dst)


def isend(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """As `send`; the tensor may be changed as soon as this returns."""
    process_group = inside(group, "send")
    if process_group is None:
        return None
    place = _other(process_group, dst, group_dst, "destination")
    if process_group.on_npu(tensor, "send"):
        process_group.hccl(tensor).send(tensor.detach().contiguous(), place)
    else:
        process_group.mesh.send(place, f"send {tag}", array_of(tensor).tobytes())
    return Work(lambda _seconds: process_group.ranks[process_group.index])


def _other(process_group: ProcessGroup, rank: int | None, within: int | None, role: str) -> int:
    place = process_group.place(rank, within, "send" if role == "destination" else "recv")
    if place == process_group.index:
        raise ValueError(
            f"Invalid {role} rank: {role} rank should not be the same as the rank of the current "
            "process."
        )
    process_group.root(place, "send" if role == "destination" else "recv")
    return place


def recv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0,
    group_src: int | None = None,
) -> int:  # fmt: skip
    """From rank `src`, which calls `send` with the same tag, or from whichever did; its rank, -1
    for who is not in the group."""
    work = irecv(tensor, src, group, tag, group_src)
    return -1 if work is None else work.source_rank()


def irecv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """As `recv`; `tensor` is filled when the work was waited for."""
    process_group = inside(group, "recv")
    if process_group is None:
        return None
    anyone = src is None and group_src is None
    place = None if anyone else _other(process_group, src, group_src, "source")
    if process_group.on_npu(tensor, "recv"):
        if place is None:
            raise NotImplementedError("recv: HCCL receives from a named rank; name one as `src`")
        with mindtorch.no_grad():
            near = mindtorch.empty_like(tensor).contiguous()
            process_group.hccl(tensor).receive(near, place)
            tensor.copy_(near)
        rank = process_group.ranks[place]
        return Work(lambda _seconds: rank)
    name = f"send {tag}"

    def finish(seconds: float | None) -> int:
        sender, data = process_group.mesh.receive(place, name, seconds)
        fill(tensor, bytes_as(data, array_of(tensor)))
        return process_group.ranks[sender]

    return Work(finish, lambda: process_group.mesh.has(place, name))


class P2POp:
    """One of the calls of batch_isend_irecv: `op` is isend or irecv."""

    tensor: Tensor
    peer: int | None
    group: ProcessGroup | int | None
    tag: int
    group_peer: int | None

    def __init__(
        self, op: Callable[..., Work | None], tensor: Tensor, peer: int | None = None,
        group: Group = None, tag: int = 0, group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or"
                " ``torch.distributed.irecv``."
            )
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group
        self.tag, self.group_peer = tag, group_peer

    def __repr__(self) -> str:
        pg = default() if self.group is None else self.group
        if not isinstance(pg, ProcessGroup):
            return object.__repr__(self)
        mine, other = pg.rank(), pg.place(self.peer, self.group_peer, "P2POp")
        source, to = (mine, other) if self.op is isend else (other, mine)
        return (
            f"P2POp({self.op.__name__} pg={pg.name()}, group_src={source}, group_dst={to}, "
            f" {self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin all of them: what is sent first, and what goes over HCCL at once, as a send waits
    there for who receives."""
    if not p2p_op_list:
        raise IndexError("list index out of range")
    if not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type"
            " ``torch.distributed.P2POp``."
        )
    ordered = sorted(p2p_op_list, key=lambda one: one.op is irecv)
    groups: dict[ProcessGroup, list[P2POp]] = {}
    begun: list[Work | None] = []
    for one in ordered:
        process_group = inside(one.group, "batch_isend_irecv")
        if process_group is not None and process_group.on_npu(one.tensor, "batch_isend_irecv"):
            groups.setdefault(process_group, []).append(one)
        else:
            begun.append(one.op(one.tensor, one.peer, one.group, one.tag, one.group_peer))
    for process_group, several in groups.items():
        begun += _exchange(process_group, several)
    return [work for work in begun if work is not None]


def _exchange(process_group: ProcessGroup, several: Sequence[P2POp]) -> list[Work]:
    with mindtorch.no_grad():
        items = []
        for one in several:
            sends = one.op is isend
            role = "destination" if sends else "source"
            place = _other(process_group, one.peer, one.group_peer, role)
            near = one.tensor.detach() if sends else mindtorch.empty_like(one.tensor)
            items.append((sends, near.contiguous(), place))
        process_group.hccl(several[0].tensor).exchange(items)
        for one, (sends, near, _) in zip(several, items, strict=True):
            if not sends:
                one.tensor.copy_(near)
    return [_begun(process_group.ranks[place]) for _, _, place in items]


def _begun(rank: int) -> Work:
    """A call whose rest comes in stream order."""
    return Work(lambda _seconds: rank)


def all_gather_object(object_list: list[Any], obj: object, group: Group = None) -> None:
    """`object_list[i]` becomes rank i's object."""
    process_group = inside(group, "all_gather_object")
    if process_group is not None:
        parts = _objects(
            process_group, "all_gather_object", [pickle.dumps(obj)] * process_group.count
        )
        for i, part in enumerate(parts):
            object_list[i] = pickle.loads(part)


def _objects(process_group: ProcessGroup, name: str, parts: Sequence[bytes]) -> list[bytes]:
    """An exchange in its turn among the group's calls."""
    payloads: list[bytes] = []
    process_group.begin(lambda: payloads.extend(process_group.mesh.exchange(name, parts)), False)
    return payloads


def gather_object(
    obj: object, object_gather_list: list[Any] | None = None, dst: int | None = None,
    group: Group = None, group_dst: int | None = None,
) -> None:  # fmt: skip
    """`object_gather_list[i]` of rank `dst` becomes rank i's object; others name no list."""
    process_group = inside(group, "gather_object")
    if process_group is None:
        return
    place = process_group.place(
        0 if dst is None and group_dst is None else dst, group_dst, "gather_object"
    )
    if process_group.index == place and object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if process_group.index != place and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    process_group.root(place, "gather")
    mine = pickle.dumps(obj)
    sent = [mine if i == place else b"" for i in range(process_group.count)]
    parts = _objects(process_group, f"gather_object {place}", sent)
    if object_gather_list is not None and process_group.index == place:
        listed(object_gather_list, process_group.count, "gather_object")
        object_gather_list[:] = [pickle.loads(part) for part in parts]


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Group = None, device: object = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """`object_list` becomes that of rank `src`."""
    process_group = inside(group, "broadcast_object_list")
    if process_group is None:
        return
    place = process_group.place(
        0 if src is None and group_src is None else src, group_src, "broadcast_object_list"
    )
    process_group.root(place, "broadcast")
    part = pickle.dumps(object_list) if process_group.index == place else b""
    sent = [part] * process_group.count
    object_list[:] = pickle.loads(
        _objects(process_group, f"broadcast_object_list {place}", sent)[place]
    )


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
    src: int | None = None, group: Group = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """`scatter_object_output_list[0]` becomes rank `src`'s `scatter_object_input_list[rank]`."""
    process_group = inside(group, "scatter_object_list")
    if process_group is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    place = process_group.place(
        0 if src is None and group_src is None else src, group_src, "scatter_object_list"
    )
    process_group.root(place, "scatter")
    sent = [b""] * process_group.count
    if process_group.index == place:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        listed(scatter_object_input_list, process_group.count, "scatter_object_list")
        sent = [pickle.dumps(one) for one in scatter_object_input_list]
    part = _objects(process_group, f"scatter_object_list {place}", sent)[place]
    scatter_object_output_list[0] = pickle.loads(part)


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Group = None, device: object = None,
    group_dst: int | None = None, use_batch: bool = False,
) -> None:  # fmt: skip
    """To rank `dst`, which calls `recv_object_list`."""
    process_group = inside(group, "send_object_list")
    if process_group is not None:
        place = _other(process_group, dst, group_dst, "destination")
        process_group.mesh.send(place, _OBJECT, pickle.dumps(object_list))


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Group = None, device: object = None,
    group_src: int | None = None, use_batch: bool = False,
) -> int:  # fmt: skip
    """`object_list` becomes what rank `src`, or whichever did, sent; its rank."""
    process_group = inside(group, "recv_object_list")
    if process_group is None:
        return -1
    anyone = src is None and group_src is None
    place = None if anyone else _other(process_group, src, group_src, "source")
    sender, data = process_group.mesh.receive(place, _OBJECT)
    object_list[:] = pickle.loads(data)
    return process_group.ranks[sender]
