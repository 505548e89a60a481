"""Owns torch.distributed.nn.functional: collectives through which gradients flow.

A gradient goes the way back: where copies were made gradients add up, where parts went out they
come in. Every process of the group takes part in the backward too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import mindtorch

from ..._autograd.function import Function
from ..._tensor.tensor import Tensor
from .. import ReduceOp, _calls, get_rank, get_world_size
from .._calls import Group

Tensors = tuple[Tensor, ...]


def _dense(tensors: Sequence[Tensor | None], likes: Sequence[Tensor]) -> list[Tensor]:
    """Gradients as collectives take them; zeros where there is none."""
    return [
        mindtorch.zeros_like(like) if t is None else t.contiguous()
        for t, like in zip(tensors, likes, strict=True)
    ]


def _is(rank: int, group: Group) -> bool:
    """Whether this process is `rank` of all processes."""
    return get_rank() == rank


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Group, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        tensor = tensor.clone()
        _calls.broadcast(tensor, src, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        gradient = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        zero = mindtorch.zeros_like(grad)
        return None, None, gradient if _is(ctx.src, ctx.group) else zero


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Group, tensor: Tensor) -> Tensors:
        ctx.dst, ctx.group = dst, group
        parts = [mindtorch.zeros_like(tensor) for _ in range(get_world_size(group))]
        tensor = tensor.contiguous()
        _calls.gather(tensor, parts if _is(dst, group) else None, dst, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Group, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        output = mindtorch.zeros_like(tensors[0])
        parts = [t.contiguous() for t in tensors]
        _calls.scatter(output, parts if _is(src, group) else None, src, group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, *cast("Tensors", _Gather.apply(ctx.src, ctx.group, grad))


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: str, group: Group, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        tensor = tensor.clone()
        _calls.reduce(tensor, dst, op, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _Reduce_Scatter(Function):  # noqa: N801 - graphs show the name
    @staticmethod
    def forward(ctx: Any, op: str, group: Group, output: Tensor, *inputs: Tensor) -> Tensor:
        ctx.group = group
        _calls.reduce_scatter(output, [t.contiguous() for t in inputs], op, group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, None, *cast("Tensors", _AllGather.apply(ctx.group, grad))


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Group, tensor: Tensor) -> Tensors:
        ctx.group = group
        tensor = tensor.contiguous()
        parts = [mindtorch.empty_like(tensor) for _ in range(get_world_size(group))]
        _calls.all_gather(parts, tensor, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        gradients = _dense(grads, grads)
        output = mindtorch.empty_like(gradients[get_rank(ctx.group)])
        _calls.reduce_scatter(output, gradients, ReduceOp.SUM, ctx.group)
        return None, output


class _AlltoAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Group, outputs: Sequence[Tensor], *inputs: Tensor) -> Tensors:
        ctx.group, ctx.sizes = group, [t.shape for t in inputs]
        _calls.all_to_all(outputs, [t.contiguous() for t in inputs], group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        outputs = [grads[0].new_empty(size) for size in ctx.sizes]
        return None, None, *cast("Tensors", _AlltoAll.apply(ctx.group, outputs, *grads))


class _AlltoAllSingle(Function):
    @staticmethod
    def forward(
        ctx: Any, group: Group, output: Tensor, there: Any, here: Any, input: Tensor
    ) -> Tensor:
        ctx.group, ctx.there, ctx.here, ctx.size = group, there, here, input.shape
        _calls.all_to_all_single(output, input.contiguous(), there, here, group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        output = grad.new_empty(ctx.size)
        back = _AlltoAllSingle.apply(ctx.group, output, ctx.here, ctx.there, grad)
        return None, None, None, None, back


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: str, group: Group, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        tensor = tensor.contiguous().clone()
        _calls.all_reduce(tensor, op, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


def broadcast(tensor: Tensor, src: int, group: Group = None) -> Tensor:
    """Rank `src`'s tensor, in every process; its gradient is the sum of theirs."""
    return cast("Tensor", _Broadcast.apply(src, group, tensor))


def gather(tensor: Tensor, dst: int = 0, group: Group = None) -> Tensors:
    """Every process's tensor in rank `dst`, zeros in the others."""
    return cast("Tensors", _Gather.apply(dst, group, tensor))


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Group = None) -> Tensor:
    """This process's of rank `src`'s tensors; the others' say what shape it has."""
    return cast("Tensor", _Scatter.apply(src, group, *tensors))


def reduce(tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: Group = None) -> Tensor:
    """The reduction of every process's tensor in rank `dst`; elsewhere it means nothing."""
    return cast("Tensor", _Reduce.apply(dst, op, group, tensor))


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM, group: Group = None
) -> Tensor:
    """`output`, which becomes the reduction of every process's `input_list[rank]`."""
    return cast("Tensor", _Reduce_Scatter.apply(op, group, output, *input_list))


def all_gather(tensor: Tensor, group: Group = None) -> Tensors:
    """Every process's tensor, by rank."""
    return cast("Tensors", _AllGather.apply(group, tensor))


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Group = None
) -> Tensors:
    """`output_tensor_list`, which becomes what each rank's list has for this process."""
    return cast("Tensors", _AlltoAll.apply(group, output_tensor_list, *input_tensor_list))


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Group = None,
) -> Tensor:  # fmt: skip
    """Rows of `input` to each rank; `output`, which becomes theirs."""
    result = _AlltoAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)
    return cast("Tensor", result)


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Group = None) -> Tensor:
    """The reduction of every process's tensor; its gradient is reduced likewise."""
    return cast("Tensor", _AllReduce.apply(op, group, tensor))
