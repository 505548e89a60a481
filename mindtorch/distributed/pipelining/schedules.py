"""Owns the schedules that take batches through stages of a model in several processes.

A batch goes through in parts; each process sends what its stage computes to the next, and gradients
back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch
from mindtorch import nn

from ..._tensor.device import device as Device
from ..._tensor.tensor import Tensor
from .. import (
    get_global_rank,
    get_rank,
    get_world_size,
    isend,
    recv,
    recv_object_list,
    send_object_list,
)
from .._calls import Group
from .._group import Work, default
from .microbatch import merge_chunks, split_args_kwargs_into_chunks

__all__ = [
    "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS",
]  # fmt: skip
Tensors = tuple[Tensor, ...]


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


class PipelineStage:
    """A part of a model, in the process of its place; `input_args` need not be given.

    ValueError for a place that is none of the stages, RuntimeError for fewer stages than processes.
    """

    def __init__(
        self, submodule: nn.Module, stage_index: int, num_stages: int,
        device: Device | str, input_args: object = None, output_args: object = None,
        group: Group = None, dw_builder: object = None,
    ) -> None:  # fmt: skip
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group = mindtorch.device(device), group
        self.group_rank, self.group_size = get_rank(group), get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages"
                f" {num_stages}"
            )
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self.has_backward = True
        self._shapes: list[Any] | None = None
        self._waiting: dict[int, tuple[Tensors, Tensors]] = {}
        self._sent: list[tuple[Work | None, Tensor]] = []

    def _peer(self, step: int) -> int:
        """The rank among all of the process whose stage is `step` further on; the first comes
        behind the last where there are more stages than processes."""
        place = (self.group_rank + step) % self.group_size
        return get_global_rank(self.group or default(), place)

    def _tag(self, step: int, gradients: bool) -> int:
        """Of what goes between this stage and the one before (-1) or behind it (1)."""
        return 2 * (self.stage_index + min(step, 0)) + gradients

    def _send(self, tensors: Sequence[Tensor], step: int) -> None:
        for tensor in tensors:
            part = tensor.detach().contiguous()
            tag = self._tag(step, step < 0)
            self._sent.append((isend(part, self._peer(step), self.group, tag), part))

    def _received(self) -> Tensors:
        peer = self._peer(-1)
        if self._shapes is None:
            shapes: list[Any] = [None]
            recv_object_list(shapes, peer, self.group)
            self._shapes = shapes[0]
        assert self._shapes is not None
        tensors = []
        for shape, dtype in self._shapes:
            tensor = mindtorch.empty(shape, dtype=dtype, device=self.device)
            recv(tensor, peer, self.group, self._tag(-1, False))
            tensors.append(tensor.requires_grad_(self.has_backward and dtype.is_floating_point))
        return tuple(tensors)

    def forward_one(self, part: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensors:
        """What this stage makes of a part of the batch, which the next stage then has."""
        inputs = args if self.is_first else self._received()
        outputs = _tuple(self.submod(*inputs, **kwargs))
        if not self.is_last:
            if part == 0:
                shapes = [(tuple(t.shape), t.dtype) for t in outputs]
                send_object_list([shapes], self._peer(1), self.group)
            self._send(outputs, 1)
        self._waiting[part] = inputs, outputs
        return outputs

    def backward_one(self, part: int, loss: Tensor | None) -> None:
        """The gradients of a part, of its loss or of what the next stage sends."""
        inputs, outputs = self._waiting.pop(part)
        if self.is_last:
            assert loss is not None
            loss.backward()
        else:
            wants = [t for t in outputs if t.requires_grad]
            grads = []
            for output in wants:
                grad = mindtorch.empty_like(output)
                recv(grad, self._peer(1), self.group, self._tag(1, True))
                grads.append(grad)
            mindtorch.autograd.backward(wants, grads)
        if not self.is_first:
            self._send(
                [mindtorch.zeros_like(t) if t.grad is None else t.grad
                 for t in inputs if t.requires_grad], -1,
            )  # fmt: skip

    def finish(self, parts: int, scales: bool) -> None:
        """Wait for what was sent, and make gradients means over the parts."""
        for work, _ in self._sent:
            if work is not None:
                work.wait()
        self._sent.clear()
        self._waiting.clear()
        self._shapes = None
        if scales and self.has_backward:
            for p in self.submod.parameters():
                if p.grad is not None:
                    p.grad.div_(parts)


class _Schedule:
    """Takes a batch through this process's stages in `n_microbatches` parts, cut as specs say."""

    def __init__(
        self, stages: Sequence[PipelineStage], n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None, args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None, output_merge_spec: Any = None, scale_grads: bool = True,
    ) -> None:  # fmt: skip
        self._stages, self._n_microbatches, self._loss_fn = stages, n_microbatches, loss_fn
        self._specs, self._merge = (args_chunk_spec, kwargs_chunk_spec), output_merge_spec
        self.scale_grads = scale_grads
        self._backward(loss_fn is not None)

    def _backward(self, runs: bool) -> None:
        for stage in self._stages:
            stage.has_backward = runs

    def _order(self) -> Sequence[tuple[str, PipelineStage, int]]:
        """Forwards and backwards of this process's stages, by parts."""
        raise NotImplementedError

    def _check(self, name: str, values: Sequence[Any]) -> None:
        """ValueError before anything is sent, as others would wait for parts that are missing."""
        if len(values) != self._n_microbatches:
            raise ValueError(f"Expecting {self._n_microbatches} {name} but got {len(values)}")

    def _run(self, args: Any, kwargs: Any, target: Tensor | None, losses: Any) -> Any:
        parts, last = self._n_microbatches, self._stages[-1]
        cut, named = split_args_kwargs_into_chunks(args, kwargs, parts, *self._specs)
        self._check("arg_mbs", cut)
        self._check("kwarg_mbs", named)
        targets = [None] * parts if target is None else target.tensor_split(parts)
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        each: list[Tensor] = []
        outputs: list[Any] = []
        for what, stage, part in self._order():
            if what == "forward":
                out = stage.forward_one(part, cut[part], named[part])
                value = out[0] if len(out) == 1 else out
                if stage.is_last:
                    outputs.append(value)
                    if self._loss_fn is not None and target is not None:
                        each.append(self._loss_fn(value, targets[part]))
            elif stage.has_backward:
                stage.backward_one(part, each[part] if stage.is_last else None)
        for stage in self._stages:
            stage.finish(parts, self.scale_grads)
        if losses is not None and last.is_last:
            losses[:] = each
        return merge_chunks(outputs, self._merge) if last.is_last else None

    def step(
        self, *args: Any, target: Tensor | None = None, losses: list[Tensor] | None = None,
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        """A batch: inputs in the first process, targets in the last, which gets what the model
        computes; gradients of parameters in each."""
        return self._run(args, kwargs, target, losses)

    def eval(
        self, *args: Any, target: Tensor | None = None, losses: Any = None, **kwargs: Any
    ) -> Any:
        """The same without gradients."""
        before = self._stages[0].has_backward
        self._backward(False)
        try:
            with mindtorch.no_grad():
                return self._run(args, kwargs, target, losses)
        finally:
            self._backward(before)


class ScheduleGPipe(_Schedule):
    """All forwards, then all backwards."""

    def __init__(self, stage: PipelineStage, n_microbatches: int, *args: Any, **kwargs: Any):
        super().__init__([stage], n_microbatches, *args, **kwargs)

    def _order(self) -> Sequence[tuple[str, PipelineStage, int]]:
        (stage,), parts = self._stages, range(self._n_microbatches)
        return [("forward", stage, i) for i in parts] + [("backward", stage, i) for i in parts]


class ScheduleLoopedBFS(_Schedule):
    """Several stages a process: all parts forwards through one stage after the other, then back.

    NotImplementedError for NPUs, whose sends wait for who receives.
    """

    def __init__(
        self, stages: Sequence[PipelineStage], n_microbatches: int, *args: Any, **kwargs: Any
    ) -> None:
        if any(stage.device.type == "npu" for stage in stages):
            raise NotImplementedError("pipelining: several stages a process go over gloo alone")
        super().__init__(stages, n_microbatches, *args, **kwargs)

    def _order(self) -> Sequence[tuple[str, PipelineStage, int]]:
        parts = range(self._n_microbatches)
        forwards = [("forward", stage, i) for stage in self._stages for i in parts]
        return forwards + [("backward", stage, i) for stage in self._stages[::-1] for i in parts]


class ScheduleInterleaved1F1B(ScheduleLoopedBFS):
    """torch's results in the order of ScheduleLoopedBFS: values of all parts wait for backward.

    ValueError for parts that do not make whole rounds of the processes.
    """

    def __init__(
        self, stages: Sequence[PipelineStage], n_microbatches: int, *args: Any, **kwargs: Any
    ) -> None:
        rounds = max(1, n_microbatches // get_world_size(stages[0].group))
        if n_microbatches % rounds:
            raise ValueError(
                "Interleaved 1F1B requires the number of microbatches to be a multiple of the"
                f" number of rounds ({rounds}), but got {n_microbatches}."
            )
        super().__init__(stages, n_microbatches, *args, **kwargs)


class Schedule1F1B(_Schedule):
    """As many forwards as there are stages from here on, then a backward and a forward by turns.

    ValueError for fewer parts than stages.
    """

    def __init__(
        self, stage: PipelineStage, n_microbatches: int, *args: Any, **kwargs: Any
    ) -> None:
        if n_microbatches < stage.num_stages:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than or equal to the"
                f" number of stages ({stage.num_stages})."
            )
        super().__init__([stage], n_microbatches, *args, **kwargs)

    def _order(self) -> Sequence[tuple[str, PipelineStage, int]]:
        (stage,), parts = self._stages, self._n_microbatches
        ahead = stage.num_stages - stage.stage_index
        order = [("forward", stage, i) for i in range(min(ahead, parts))]
        for i in range(parts):
            order.append(("backward", stage, i))
            if i + ahead < parts:
                order.append(("forward", stage, i + ahead))
        return order
