"""Owns torch.distributed.pipelining: a model's stages in processes, one behind the other.

A batch goes through in parts; each process sends what its stage computes to the next, and gradients
back. Refused by name: cutting a model by a trace, and several stages in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch
from mindtorch import nn

from .._compat.refusals import refusals
from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from . import get_global_rank, get_rank, isend, recv, recv_object_list, send_object_list
from ._calls import Group
from ._group import Work, default

_NAMES = (
    "Pipe", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble", "SplitPoint", "build_stage", "pipe_split", "pipeline",
)  # fmt: skip

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"]
__getattr__ = refusals(
    "torch.distributed.pipelining", "mindtorch has one stage a process, which it does not cut",
    _NAMES,
)  # fmt: skip
Tensors = tuple[Tensor, ...]


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


class PipelineStage:
    """A part of a model, in the process of its place; `input_args` need not be given.

    ValueError for a place that is none of the stages.
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
        self.group_rank = get_rank(group)
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self.has_backward = True
        self._shapes: list[Any] | None = None
        self._waiting: dict[int, tuple[Tensors, Tensors]] = {}
        self._sent: list[tuple[Work | None, Tensor]] = []

    def _peer(self, step: int) -> int:
        """The rank among all of the process whose stage is `step` further on."""
        return get_global_rank(self.group or default(), self.group_rank + step)

    def _send(self, tensors: Sequence[Tensor], peer: int) -> None:
        for tensor in tensors:
            part = tensor.detach().contiguous()
            self._sent.append((isend(part, peer, self.group), part))

    def _received(self, peer: int) -> Tensors:
        if self._shapes is None:
            shapes: list[Any] = [None]
            recv_object_list(shapes, peer, self.group)
            self._shapes = shapes[0]
        assert self._shapes is not None
        tensors = []
        for shape, dtype in self._shapes:
            tensor = mindtorch.empty(shape, dtype=dtype, device=self.device)
            recv(tensor, peer, self.group)
            tensors.append(tensor.requires_grad_(self.has_backward and dtype.is_floating_point))
        return tuple(tensors)

    def forward_one(self, part: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensors:
        """What this stage makes of a part of the batch, which the next stage then has."""
        inputs = args if self.is_first else self._received(self._peer(-1))
        outputs = _tuple(self.submod(*inputs, **kwargs))
        if not self.is_last:
            if part == 0:
                shapes = [(tuple(t.shape), t.dtype) for t in outputs]
                send_object_list([shapes], self._peer(1), self.group)
            self._send(outputs, self._peer(1))
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
                recv(grad, self._peer(1), self.group)
                grads.append(grad)
            mindtorch.autograd.backward(wants, grads)
        if not self.is_first:
            self._send(
                [mindtorch.zeros_like(t) if t.grad is None else t.grad
                 for t in inputs if t.requires_grad], self._peer(-1),
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
    """Takes a batch through the stages in `n_microbatches` parts."""

    def __init__(
        self, stage: PipelineStage, n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None, args_chunk_spec: object = None,
        kwargs_chunk_spec: object = None, output_merge_spec: object = None,
        scale_grads: bool = True,
    ) -> None:  # fmt: skip
        if args_chunk_spec or kwargs_chunk_spec or output_merge_spec:
            raise NotImplementedError("pipelining: batches are cut along their first dimension")
        self._stage, self._n_microbatches, self._loss_fn = stage, n_microbatches, loss_fn
        self.scale_grads = scale_grads
        stage.has_backward = loss_fn is not None

    def _order(self) -> Sequence[tuple[str, int]]:
        """Forwards and backwards of this process's stage, by parts."""
        raise NotImplementedError

    def _run(self, args: Any, kwargs: Any, target: Tensor | None, losses: Any) -> Any:
        stage, parts = self._stage, self._n_microbatches
        cut = [a.chunk(parts) if isinstance(a, Tensor) else [a] * parts for a in args]
        named = {
            k: a.chunk(parts) if isinstance(a, Tensor) else [a] * parts for k, a in kwargs.items()
        }
        targets = [None] * parts if target is None else target.chunk(parts)
        each: list[Tensor] = []
        outputs: list[Tensors] = []
        for what, part in self._order():
            if what == "forward":
                mine = tuple(a[part] for a in cut)
                out = stage.forward_one(part, mine, {k: a[part] for k, a in named.items()})
                outputs.append(out)
                if stage.is_last and self._loss_fn is not None and target is not None:
                    each.append(self._loss_fn(out[0] if len(out) == 1 else out, targets[part]))
            elif stage.has_backward:
                stage.backward_one(part, each[part] if stage.is_last else None)
        stage.finish(parts, self.scale_grads)
        if losses is not None and stage.is_last:
            losses[:] = each
        if not stage.is_last:
            return None
        whole = [mindtorch.cat(list(column)) for column in zip(*outputs, strict=True)]
        return whole[0] if len(whole) == 1 else tuple(whole)

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
        before, self._stage.has_backward = self._stage.has_backward, False
        try:
            with mindtorch.no_grad():
                return self._run(args, kwargs, target, losses)
        finally:
            self._stage.has_backward = before


class ScheduleGPipe(_Schedule):
    """All forwards, then all backwards."""

    def _order(self) -> Sequence[tuple[str, int]]:
        parts = range(self._n_microbatches)
        return [("forward", i) for i in parts] + [("backward", i) for i in parts]


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
        super().__init__(stage, n_microbatches, *args, **kwargs)

    def _order(self) -> Sequence[tuple[str, int]]:
        parts, ahead = self._n_microbatches, self._stage.num_stages - self._stage.stage_index
        order = [("forward", i) for i in range(min(ahead, parts))]
        for i in range(parts):
            order.append(("backward", i))
            if i + ahead < parts:
                order.append(("forward", i + ahead))
        return order
