"""Owns the collectives, as torch.distributed spells them; ranks call them in one order."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

import mindtorch

from .._tensor.tensor import Tensor
from ._group import (
    BITWISE,
    REDUCTIONS,
    ProcessGroup,
    Work,
    array_of,
    bytes_as,
    current,
    default,
    fill,
)


class _World(type):
    """Gives `group.WORLD` as it is now."""

    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 - torch's name
        return current()


class GroupMember(metaclass=_World):
    """What new_group gives: a group, or NON_GROUP_MEMBER to who is not in it."""

    NON_GROUP_MEMBER = -100


Group = ProcessGroup | int | None


def inside(group: Group, name: str) -> ProcessGroup | None:
    """The group that is meant, the one of all for None; None (and a warning, as in torch) for who
    is not in it."""
    if group is None:
        return default()
    if group == GroupMember.NON_GROUP_MEMBER:
        warnings.warn(f"Running {name} on a rank that is not part of the group", stacklevel=3)
        return None
    if isinstance(group, ProcessGroup):
        return group
    if name == "get_rank":
        raise ValueError(
            f"Group {group} is not registered, please create group with"
            " torch.distributed.new_group API"
        )
    raise ValueError(
        f"Process group {group} is not initialized in the world group map. Please initialize the"
        " group first."
    )


def _is_tensor(value: object, name: str) -> None:
    """TypeError for another class."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def _are_tensors(values: object, name: str) -> None:
    """TypeError for what is no list of tensors."""
    expected = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]"
    if not isinstance(values, list):
        raise TypeError(f"{expected}\n             but got {type(values)} instead.")
    if not all(isinstance(v, Tensor) for v in values):
        kinds = [type(v) for v in values]
        raise TypeError(
            f"{expected}\n             but got {type(values)} with elements of type {kinds}."
        )


def _alike(parts: Sequence[Tensor], tensor: Tensor, name: str) -> None:
    """Tensors of one dtype and shape; ValueError for dtypes, RuntimeError for shapes."""
    _one_dtype([*parts, tensor])
    for index, part in enumerate(parts):
        _same_size(part.shape, tensor.shape, index, name)


def _one_dtype(tensors: Sequence[Tensor]) -> None:
    kinds = [t.dtype for t in tensors]
    other = next((kind for kind in kinds if kind != kinds[0]), None)
    if other is not None:
        raise ValueError(
            f"Invalid usage of tensors with different dtypesFound {kinds[0]} and  {other}"
        )


def _same_size(shape: Sequence[int], expected: Sequence[int], index: int, name: str) -> None:
    if tuple(shape) != tuple(expected):
        sizes = ("(" + ", ".join(map(str, s)) + ")" for s in (expected, shape))
        raise RuntimeError(
            f"ProcessGroupGloo::{name}: invalid tensor size at index {index} (expected"
            f" {next(sizes)}, got {next(sizes)})"
        )


def _now(async_op: bool, outputs: Sequence[Any] = ()) -> Work | None:
    """Of NPUs: done in the stream's order."""
    return Work(outputs=outputs) if async_op else None


def _reduction(op: str, tensor: Tensor, name: str) -> tuple[str, bool]:
    """(what ranks compute, whether to divide by their number after it)."""
    if op == "AVG":
        if not tensor.is_floating_point():
            raise ValueError(f"{name}: AVG needs floating point, got {tensor.dtype}")
        return "SUM", True
    if op not in REDUCTIONS:
        raise TypeError(f"{name}: op {op!r}: expected one of {', '.join((*REDUCTIONS, 'AVG'))}")
    word = str.__str__(op)
    if op != "SUM" and tensor.is_complex():
        raise ValueError(f"{name} does not support RedOpType.{word} on complex tensors")
    if op in BITWISE and tensor.is_floating_point():
        raise RuntimeError(f"Cannot use ReduceOp.{word} with non-integral dtype")
    return word, False


def _reduced(process_group: ProcessGroup, array: Any, op: str, name: str) -> Any:
    """The reduction of all ranks' arrays, in the order of ranks."""
    parts = [
        bytes_as(p, array) for p in process_group.mesh.everywhere(f"{name} {op}", array.tobytes())
    ]
    total = np.array(parts[0])
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            total = REDUCTIONS[op](total, part).astype(array.dtype)
    return total


def all_reduce(
    tensor: Tensor, op: str = "SUM", group: Group = None, async_op: bool = False
) -> Work | None:
    """`tensor` becomes the reduction of every rank's."""
    _is_tensor(tensor, "tensor")
    process_group = inside(group, "all_reduce")
    if process_group is None:
        return None
    word, average = _reduction(op, tensor, "all_reduce")
    if process_group.later is not None:
        return process_group.put_off(all_reduce, async_op, tensor, op, process_group)
    if process_group.on_npu(tensor, "all_reduce"):
        with mindtorch.no_grad():
            source = tensor.detach().contiguous()
            to = mindtorch.empty_like(source)
            process_group.hccl(tensor).all_reduce(source, to, word)
            tensor.copy_(to.div_(process_group.count) if average else to)
        return _now(async_op, [tensor])

    def call() -> None:
        fill(tensor, _reduced(process_group, array_of(tensor), word, "all_reduce"))
        _divide(tensor, process_group.count, average)

    return process_group.begin(call, async_op, [tensor])


def _divide(tensor: Tensor, count: int, average: bool) -> None:
    if average:
        with mindtorch.no_grad():
            tensor.div_(count)


def reduce(
    tensor: Tensor, dst: int | None = None, op: str = "SUM", group: Group = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """`tensor` of rank `dst` becomes the reduction; those of others keep what they had."""
    process_group = inside(group, "reduce")
    if process_group is None:
        return None
    place = process_group.place(dst, group_dst, "reduce")
    process_group.root(place, "reduce")
    word, average = _reduction(op, tensor, "reduce")
    if process_group.on_npu(tensor, "reduce"):
        with mindtorch.no_grad():
            source = tensor.detach().contiguous()
            to = mindtorch.empty_like(source)
            process_group.hccl(tensor).all_reduce(source, to, word)
            if process_group.index == place:
                tensor.copy_(to.div_(process_group.count) if average else to)
        return _now(async_op)

    def call() -> None:
        total = _reduced(process_group, array_of(tensor), word, f"reduce {place}")
        if process_group.index == place:
            fill(tensor, total)
            _divide(tensor, process_group.count, average)

    return process_group.begin(call, async_op)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Group = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """`tensor` becomes that of rank `src`."""
    _is_tensor(tensor, "tensor")
    process_group = inside(group, "broadcast")
    if process_group is None:
        return None
    place = process_group.place(src, group_src, "broadcast")
    process_group.root(place, "broadcast")
    if process_group.on_npu(tensor, "broadcast"):
        with mindtorch.no_grad():
            near = tensor.detach().contiguous()
            process_group.hccl(tensor).broadcast(near, place)
            if process_group.index != place:
                tensor.copy_(near)
        return _now(async_op)

    def call() -> None:
        array = array_of(tensor)
        mine = array.tobytes() if process_group.index == place else b""
        part = process_group.mesh.everywhere(f"broadcast {place}", mine)[place]
        if process_group.index != place:
            fill(tensor, bytes_as(part, array))

    return process_group.begin(call, async_op, [tensor])


def _warn_of_older_name(name: str, new: str) -> None:
    warnings.warn(
        f"`torch.distributed.{name}` is deprecated. Please use `torch.distributed.{new}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """`all_gather_single` by its older name, with a warning."""
    _warn_of_older_name("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """`output_tensor` [size * n, …] becomes every rank's `input_tensor` [n, …], by rank."""
    _is_tensor(output_tensor, "output_tensor")
    _is_tensor(input_tensor, "input_tensor")
    process_group = inside(group, "all_gather")
    if process_group is None:
        return None
    _sized(output_tensor, input_tensor, process_group.count, "all_gather")
    if process_group.later is not None:
        return process_group.put_off(
            all_gather_single, async_op, output_tensor, input_tensor, process_group
        )
    if process_group.on_npu(input_tensor, "all_gather"):
        with mindtorch.no_grad():
            to = mindtorch.empty_like(output_tensor).contiguous()
            process_group.hccl(input_tensor).all_gather(input_tensor.detach().contiguous(), to)
            output_tensor.copy_(to)
        return _now(async_op)

    def call() -> None:
        array = array_of(input_tensor)
        parts = process_group.mesh.everywhere("all_gather", array.tobytes())
        fill(output_tensor, np.stack([bytes_as(p, array) for p in parts]))

    return process_group.begin(call, async_op, [output_tensor])


def _sized(large: Tensor, small: Tensor, size: int, name: str) -> None:
    """ValueError unless the first holds `size` of the second; RuntimeError in all_gather's words
    where it is divided into parts of another size."""
    if (
        name == "all_gather"
        and large.dtype == small.dtype
        and large.numel() != size * small.numel()
    ):
        parts = large.chunk(size)
        _as_many(parts, size)
        _alike(parts, small, "allgather")
    if large.numel() != size * small.numel() or large.dtype != small.dtype:
        raise ValueError(
            f"{name}: {large.dtype}{list(large.shape)} and {small.dtype}{list(small.shape)}: "
            f"expected one dtype, and {size} times as many elements in the first"
        )


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """`tensor_list[i]` becomes rank i's `tensor`; one shape for all."""
    _are_tensors(tensor_list, "tensor_list")
    _is_tensor(tensor, "tensor")
    process_group = inside(group, "all_gather")
    if process_group is None:
        return None
    _as_many(tensor_list, process_group.count)
    _alike(tensor_list, tensor, "allgather")
    if process_group.on_npu(tensor, "all_gather"):
        parts = mindtorch.empty(
            (process_group.count, *tensor.shape), dtype=tensor.dtype, device=tensor.device
        )
        all_gather_single(parts, tensor, process_group)
        with mindtorch.no_grad():
            for to, part in zip(tensor_list, parts, strict=True):
                to.copy_(part)
        return _now(async_op, [tensor_list])

    def call() -> None:
        array = array_of(tensor)
        parts = process_group.mesh.everywhere("all_gather", array.tobytes())
        for to, part in zip(tensor_list, parts, strict=True):
            fill(to, bytes_as(part, array))

    return process_group.begin(call, async_op, tensor_list)


def _as_many(tensors: Sequence[Tensor], count: int) -> None:
    if len(tensors) != count:
        raise RuntimeError(
            "ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length"
            f" {count}, got {len(tensors)})"
        )


def listed(tensors: Sequence[object], size: int, name: str) -> None:
    """ValueError unless there is one for each rank."""
    if len(tensors) != size:
        raise ValueError(f"{name}: {len(tensors)} tensors were given, expected {size}, one a rank")


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None,
    group: Group = None, async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """`gather_list[i]` of rank `dst` becomes rank i's `tensor`; others name no list."""
    process_group = inside(group, "gather")
    if process_group is None:
        return None
    place = process_group.place(
        0 if dst is None and group_dst is None else dst, group_dst, "gather"
    )
    _at_root(gather_list, process_group, place, "gather", "gather_list", "destination")
    _alike(gather_list or (), tensor, "gather")
    if process_group.on_npu(tensor, "gather"):
        parts = [mindtorch.empty_like(tensor) for _ in range(process_group.count)]
        all_gather(parts, tensor, process_group)
        with mindtorch.no_grad():
            for to, part in zip(gather_list or (), parts, strict=False):
                to.copy_(part)
        return _now(async_op)

    def call() -> None:
        array = array_of(tensor)
        sent = [array.tobytes() if i == place else b"" for i in range(process_group.count)]
        parts = process_group.mesh.exchange(f"gather {place}", sent)
        for to, part in zip(gather_list or (), parts, strict=False):
            fill(to, bytes_as(part, array))

    return process_group.begin(call, async_op)


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None,
    group: Group = None, async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """`tensor` becomes `scatter_list[rank]` of rank `src`; others name no list."""
    process_group = inside(group, "scatter")
    if process_group is None:
        return None
    place = process_group.place(
        0 if src is None and group_src is None else src, group_src, "scatter"
    )
    _at_root(scatter_list, process_group, place, "scatter", "scatter_list", "source")
    _alike(scatter_list or (), tensor, "scatter")
    if process_group.on_npu(tensor, "scatter"):
        whole = mindtorch.stack(list(scatter_list)) if scatter_list else mindtorch.empty(
            (process_group.count, *tensor.shape), dtype=tensor.dtype, device=tensor.device
        )  # fmt: skip
        broadcast(whole, group_src=place, group=process_group)
        with mindtorch.no_grad():
            tensor.copy_(whole[process_group.index])
        return _now(async_op)

    def call() -> None:
        array = array_of(tensor)
        sent = [array_of(t).tobytes() for t in scatter_list or ()] or [b""] * process_group.count
        fill(tensor, bytes_as(process_group.mesh.exchange(f"scatter {place}", sent)[place], array))

    return process_group.begin(call, async_op)


def _at_root(
    tensors: Sequence[Tensor] | None,
    process_group: ProcessGroup,
    place: int,
    name: str,
    what: str,
    role: str,
) -> None:
    """ValueError unless the root, and it alone, names a list with a tensor for each rank."""
    if process_group.index == place:
        if not tensors:
            raise ValueError(f"Argument ``{what}`` must be specified on {role} rank.")
        if len(tensors) != process_group.count:
            side = "output" if name == "gather" else "input"
            raise RuntimeError(
                f"ProcessGroupGloo::{name}: Incorrect {side} list size {len(tensors)}."
                f" {side.title()} list size should be {process_group.count}, same as size of the"
                " process group."
            )
    elif tensors:
        raise ValueError(f"Argument ``{what}`` must NOT be specified on non-{role} ranks.")
    process_group.root(place, name)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = "SUM", group: Group = None, async_op: bool = False
) -> Work | None:
    """`reduce_scatter_single` by its older name, with a warning."""
    _warn_of_older_name("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


def reduce_scatter_single(
    output: Tensor, input: Tensor, op: str = "SUM", group: Group = None, async_op: bool = False
) -> Work | None:
    """`output` [n, …] becomes this rank's part of the reduction of every `input` [size * n, …]."""
    process_group = inside(group, "reduce_scatter")
    if process_group is None:
        return None
    _sized(input, output, process_group.count, "reduce_scatter")
    if process_group.later is not None:
        return process_group.put_off(
            reduce_scatter_single, async_op, output, input, op, process_group
        )
    word, average = _reduction(op, input, "reduce_scatter")
    if process_group.on_npu(input, "reduce_scatter"):
        with mindtorch.no_grad():
            to = mindtorch.empty_like(output).contiguous()
            process_group.hccl(input).reduce_scatter(input.detach().contiguous(), to, word)
            output.copy_(to.div_(process_group.count) if average else to)
        return _now(async_op)

    def call() -> None:
        total = _reduced(process_group, array_of(input), word, "reduce_scatter")
        fill(output, total.reshape(process_group.count, -1)[process_group.index])
        _divide(output, process_group.count, average)

    return process_group.begin(call, async_op)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: str = "SUM", group: Group = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """`output` becomes the reduction of every rank's `input_list[rank]`."""
    process_group = inside(group, "reduce_scatter")
    if process_group is None:
        return None
    _is_tensor(output, "output")
    _are_tensors(input_list, "input_list")
    if len(input_list) != process_group.count:
        raise RuntimeError("invalid input tensor list size, must be world size")
    whole = mindtorch.stack([t.detach() for t in input_list])
    return reduce_scatter_single(output, whole, op, process_group, async_op)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Group = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Part i of `input`'s first dimension goes to rank i: as many rows as the split sizes say,
    equal parts without."""
    process_group = inside(group, "all_to_all")
    if process_group is None:
        return None
    there = _splits(input, input_split_sizes, process_group.count, "input")
    here = _splits(output, output_split_sizes, process_group.count, "output")
    if process_group.on_npu(input, "all_to_all"):
        with mindtorch.no_grad():
            to = mindtorch.empty_like(output).contiguous()
            even = not (output_split_sizes or input_split_sizes)
            process_group.hccl(input).all_to_all(input.detach().contiguous(), to, there, here, even)
            output.copy_(to)
        return _now(async_op)

    def call() -> None:
        flat = array_of(input).reshape(-1)
        ends = list(accumulate(there))
        sent = [flat[e - n : e].tobytes() for e, n in zip(ends, there, strict=True)]
        parts = process_group.mesh.exchange("all_to_all", sent)
        likes = (np.empty(n, flat.dtype) for n in here)
        fill(output, np.concatenate([bytes_as(p, a) for p, a in zip(parts, likes, strict=True)]))

    return process_group.begin(call, async_op)


def _splits(tensor: Tensor, sizes: Sequence[int] | None, count: int, name: str) -> list[int]:
    """Elements of each rank's part."""
    rows = tensor.shape[0] if tensor.dim() else 1
    width = tensor.numel() // rows if rows else 0
    if not sizes:
        if rows % count:
            raise RuntimeError(
                f"Tensor's dim 0 does not divide equally across group size: all_to_all: {name} "
                f"{list(tensor.shape)} among {count}"
            )
        return [rows // count * width] * count
    if len(sizes) != count:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != rows:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return [size * width for size in sizes]


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Group = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """`input_tensor_list[i]` goes to rank i; sizes may differ."""
    process_group = inside(group, "all_to_all")
    if process_group is None:
        return None
    listed(input_tensor_list, process_group.count, "all_to_all")
    listed(output_tensor_list, process_group.count, "all_to_all")
    if process_group.on_npu(input_tensor_list[0], "all_to_all"):
        there, here = ([t.numel() for t in ts] for ts in (input_tensor_list, output_tensor_list))
        with mindtorch.no_grad():
            source = mindtorch.cat([t.detach().reshape(-1) for t in input_tensor_list])
            to = mindtorch.empty(sum(here), dtype=source.dtype, device=source.device)
            process_group.hccl(source).all_to_all(source, to, there, here, False)
            for place, part in zip(output_tensor_list, to.split(here), strict=True):
                place.copy_(part.view(place.shape))
        return _now(async_op)

    def call() -> None:
        sent = [array_of(t).tobytes() for t in input_tensor_list]
        parts = process_group.mesh.exchange("all_to_all", sent)
        for to, part in zip(output_tensor_list, parts, strict=True):
            fill(to, bytes_as(part, array_of(to)))

    return process_group.begin(call, async_op)


def barrier(
    group: Group = None, async_op: bool = False, device_ids: Sequence[int] | None = None,
    timeout: object = None,
) -> Work | None:  # fmt: skip
    """Wait until every rank is here, and its NPU has done what came before."""
    process_group = inside(group, "barrier")
    if process_group is None:
        return None
    if "hccl" in process_group.backend and mindtorch.npu.is_initialized():
        mindtorch.npu.synchronize()

    def call() -> None:
        process_group.mesh.everywhere("barrier", b"")

    return process_group.begin(call, async_op)


def monitored_barrier(
    group: Group = None, timeout: Any = None, wait_all_ranks: bool = False
) -> None:
    """A barrier; DistributedError names a rank that does not come in time."""
    barrier(group)
