"""Owns the collectives, as torch.distributed spells them; every rank calls them in one order."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

import mindtorch

from .._tensor.tensor import Tensor
from ._group import REDUCTIONS, Group, array_of, bytes_as, default, fill


class Work:
    """A call that was begun; here it is done, or in the stream's order, when it returns."""

    def wait(self, timeout: Any = None) -> bool:
        """True: what follows on the stream comes after it."""
        return True

    def is_completed(self) -> bool:
        return True


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def _whole(group: Any, name: str) -> Group:
    """The default group; subgroups are refused."""
    own = default()
    if group is not None and group is not own:
        raise NotImplementedError(f"{name}: there are no subgroups; leave `group` out")
    return own


def _reduction(op: str, tensor: Tensor, name: str) -> tuple[str, bool]:
    """(what ranks compute, whether to divide by their number after it)."""
    if op == "AVG":
        if not tensor.is_floating_point():
            raise ValueError(f"{name}: AVG needs floating point, got {tensor.dtype}")
        return "SUM", True
    if op not in REDUCTIONS:
        raise ValueError(f"{name}: op {op!r}: expected one of {', '.join((*REDUCTIONS, 'AVG'))}")
    return op, False


def _reduced(own: Group, array: Any, op: str, name: str) -> Any:
    """The reduction of all ranks' arrays, in the order of ranks."""
    parts = [bytes_as(p, array) for p in own.mesh.everywhere(f"{name} {op}", array.tobytes())]
    total = np.array(parts[0])
    for part in parts[1:]:
        total = REDUCTIONS[op](total, part).astype(array.dtype)
    return total


def all_reduce(
    tensor: Tensor, op: str = "SUM", group: Any = None, async_op: bool = False
) -> Work | None:
    """`tensor` becomes the reduction of every rank's."""
    own = _whole(group, "all_reduce")
    word, average = _reduction(op, tensor, "all_reduce")
    with mindtorch.no_grad():
        if own.on_npu(tensor, "all_reduce"):
            source = tensor.detach().contiguous()
            to = mindtorch.empty_like(source)
            own.hccl(tensor).all_reduce(source, to, word)
            tensor.copy_(to)
        else:
            fill(tensor, _reduced(own, array_of(tensor), word, "all_reduce"))
        if average:
            tensor.div_(own.size)
    return _done(async_op)


def reduce(
    tensor: Tensor, dst: int = 0, op: str = "SUM", group: Any = None, async_op: bool = False
) -> Work | None:
    """`tensor` of rank `dst` becomes the reduction; those of others keep what they had."""
    own = _whole(group, "reduce")
    kept = tensor.detach().clone()
    all_reduce(kept, op)
    if own.rank == dst:
        with mindtorch.no_grad():
            tensor.copy_(kept)
    return _done(async_op)


def broadcast(
    tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False
) -> Work | None:
    """`tensor` becomes that of rank `src`."""
    own = _whole(group, "broadcast")
    with mindtorch.no_grad():
        if own.on_npu(tensor, "broadcast"):
            near = tensor.detach().contiguous()
            own.hccl(tensor).broadcast(near, src)
            if own.rank != src:
                tensor.copy_(near)
            return _done(async_op)
        array = array_of(tensor)
        mine = array.tobytes() if own.rank == src else b""
        part = own.mesh.everywhere(f"broadcast {src}", mine)[src]
        if own.rank != src:
            fill(tensor, bytes_as(part, array))
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`output_tensor` [size * n, …] becomes every rank's `input_tensor` [n, …], by rank."""
    own = _whole(group, "all_gather")
    _sized(output_tensor, input_tensor, own.size, "all_gather")
    with mindtorch.no_grad():
        if own.on_npu(input_tensor, "all_gather"):
            to = mindtorch.empty_like(output_tensor).contiguous()
            own.hccl(input_tensor).all_gather(input_tensor.detach().contiguous(), to)
            output_tensor.copy_(to)
        else:
            array = array_of(input_tensor)
            parts = own.mesh.everywhere("all_gather", array.tobytes())
            fill(output_tensor, np.stack([bytes_as(p, array) for p in parts]))
    return _done(async_op)


def _sized(large: Tensor, small: Tensor, size: int, name: str) -> None:
    if large.numel() != size * small.numel() or large.dtype != small.dtype:
        raise ValueError(
            f"{name}: {large.dtype}{list(large.shape)} and {small.dtype}{list(small.shape)}: "
            f"expected one dtype, and {size} times as many elements in the first"
        )


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`tensor_list[i]` becomes rank i's `tensor`; one shape for all."""
    own = _whole(group, "all_gather")
    _listed(tensor_list, own.size, "all_gather")
    all_parts = mindtorch.empty((own.size, *tensor.shape), dtype=tensor.dtype, device=tensor.device)
    all_gather_into_tensor(all_parts, tensor)
    with mindtorch.no_grad():
        for to, part in zip(tensor_list, all_parts, strict=True):
            to.copy_(part)
    return _done(async_op)


def _listed(tensors: Sequence[Tensor], size: int, name: str) -> None:
    if len(tensors) != size:
        raise ValueError(f"{name}: {len(tensors)} tensors were given, expected {size}, one a rank")


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = "SUM", group: Any = None, async_op: bool = False
) -> Work | None:
    """`output` [n, …] becomes this rank's part of the reduction of every `input` [size * n, …]."""
    own = _whole(group, "reduce_scatter")
    _sized(input, output, own.size, "reduce_scatter")
    word, average = _reduction(op, input, "reduce_scatter")
    with mindtorch.no_grad():
        if own.on_npu(input, "reduce_scatter"):
            to = mindtorch.empty_like(output).contiguous()
            own.hccl(input).reduce_scatter(input.detach().contiguous(), to, word)
            output.copy_(to)
        else:
            total = _reduced(own, array_of(input), word, "reduce_scatter")
            fill(output, total.reshape(own.size, -1)[own.rank])
        if average:
            output.div_(own.size)
    return _done(async_op)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: str = "SUM", group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """`output` becomes the reduction of every rank's `input_list[rank]`."""
    own = _whole(group, "reduce_scatter")
    _listed(input_list, own.size, "reduce_scatter")
    return reduce_scatter_tensor(output, mindtorch.stack(list(input_list)), op, group, async_op)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None,
    group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Part i of `input`'s first dimension goes to rank i; equal parts."""
    own = _whole(group, "all_to_all")
    if output_split_sizes or input_split_sizes:
        raise NotImplementedError("all_to_all_single: parts of different sizes; pass equal ones")
    if input.numel() % own.size or output.numel() != input.numel():
        raise ValueError(
            f"all_to_all: {list(input.shape)} into {list(output.shape)}: expected as many "
            f"elements, in {own.size} equal parts"
        )
    with mindtorch.no_grad():
        if own.on_npu(input, "all_to_all"):
            to = mindtorch.empty_like(output).contiguous()
            own.hccl(input).all_to_all(input.detach().contiguous(), to, own.size)
            output.copy_(to)
        else:
            parts = array_of(input).reshape(own.size, -1)
            got = own.mesh.exchange("all_to_all", [p.tobytes() for p in parts])
            fill(output, np.stack([bytes_as(g, parts[0]) for g in got]))
    return _done(async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """`input_tensor_list[i]` goes to rank i; one shape for all."""
    own = _whole(group, "all_to_all")
    _listed(input_tensor_list, own.size, "all_to_all")
    source = mindtorch.stack(list(input_tensor_list))
    to = mindtorch.empty_like(source)
    all_to_all_single(to, source)
    with mindtorch.no_grad():
        for place, part in zip(output_tensor_list, to, strict=True):
            place.copy_(part)
    return _done(async_op)


def send(tensor: Tensor, dst: int, group: Any = None, tag: int = 0) -> None:
    """To rank `dst`, which calls `recv`."""
    own = _whole(group, "send")
    if own.on_npu(tensor, "send"):
        own.hccl(tensor).send(tensor.detach().contiguous(), dst)
    else:
        own.mesh.send(dst, f"send {tag}", array_of(tensor).tobytes())


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0) -> int:
    """From rank `src`, which calls `send`; its rank."""
    own = _whole(group, "recv")
    if src is None:
        raise NotImplementedError("recv: from any rank; name one as `src`")
    with mindtorch.no_grad():
        if own.on_npu(tensor, "recv"):
            near = mindtorch.empty_like(tensor).contiguous()
            own.hccl(tensor).receive(near, src)
            tensor.copy_(near)
        else:
            fill(tensor, bytes_as(own.mesh.receive(src, f"send {tag}"), array_of(tensor)))
    return src


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until every rank is here, and its NPU has done what came before."""
    own = _whole(group, "barrier")
    if "hccl" in own.backend and mindtorch.npu.is_initialized():
        mindtorch.npu.synchronize()
    own.mesh.everywhere("barrier", b"")
    return _done(async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """`object_list[i]` becomes rank i's object; pickles: only among processes you trust."""
    own = _whole(group, "all_gather_object")
    parts = own.mesh.everywhere("all_gather_object", pickle.dumps(obj))
    object_list[:] = [pickle.loads(part) for part in parts]


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: Any = None, device: Any = None
) -> None:
    """`object_list` becomes that of rank `src`; pickles: only among processes you trust."""
    own = _whole(group, "broadcast_object_list")
    part = pickle.dumps(object_list) if own.rank == src else b""
    object_list[:] = pickle.loads(own.mesh.everywhere("broadcast_object_list", part)[src])
