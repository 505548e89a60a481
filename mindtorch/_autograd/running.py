"""Owns what programs ask of the backward pass that runs: its number, its nodes, what ends it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from heapq import heappop, heappush
from types import FrameType

from .._compat.class_names import class_name
from .._tensor.tensor import Tensor
from . import engine
from .function import BackwardCFunction, Function, FunctionNode, barrier
from .grad_mode import LOCAL
from .node import LEAF, AccumulateGrad, Node, public_node

_numbers = itertools.count()


class EngineBase:
    """The engine as `Variable._execution_engine` shows it."""

    def queue_callback(self, callback: Callable[[], object]) -> None:
        """Call `callback()` when the pass that runs has done all else; RuntimeError outside."""
        if LOCAL.task is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        LOCAL.task.more.setdefault("callbacks", []).append(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether the pass that runs, if any, reaches all leaves."""
        return LOCAL.task is None or LOCAL.task.needed is None


EngineBase.__name__ = EngineBase.__qualname__ = "_EngineBase"
EngineBase.__module__ = "torch._C"
ENGINE = EngineBase()


def current_graph_task_id() -> int:
    """The number of the pass that runs: passes that are asked for theirs are counted; else -1."""
    if LOCAL.task is None:
        return -1
    more = LOCAL.task.more
    if "number" not in more:
        more["number"] = next(_numbers)
    number: int = more["number"]
    return number


def current_autograd_node() -> object:
    """The node whose step or hook calls this, None outside of a pass."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and LOCAL.task is not None:
        if frame.f_code is engine._drain.__code__:
            return public_node(frame.f_locals["node"])
        frame = frame.f_back
    return None


def will_engine_execute_node(node: object) -> bool:
    """Whether the pass that runs applies `node`; RuntimeError outside, or for what is no node."""
    name = "_will_engine_execute_node"
    if not isinstance(node, Node):
        raise RuntimeError(f"{name} expects an grad_fn, but got {class_name(node)}")
    task = LOCAL.task
    if task is None:
        raise RuntimeError(
            "_get_should_execute_nodes should only be called during the backward pass"
        )
    if node.__class__ is AccumulateGrad and node in task.captured:
        raise RuntimeError(
            f"A leaf node was passed to {name} but we are currently running autograd.grad(). This"
            " is currently not supported."
        )
    return node in task.reached()


def current_graph_task_execution_order() -> list[object]:
    """The nodes of the pass that runs in the order of their steps.

    RuntimeError outside of a pass, and while backward is said to use several threads.
    """
    name = "current_graph_task_execution_order"
    task = LOCAL.task
    if task is None:
        raise RuntimeError(f"_{name} should only be called during the backward pass")
    if LOCAL.multithreading:
        raise RuntimeError(
            f"get_{name} expects the current backward to be executed with multithreading disabled,"
            " e.g. by running:\n\n>>> with torch.autograd.set_multithreading_enabled(False):\n"
            "...     torch.autograd.grad(...)\n"
        )
    reached = task.reached()
    waits: dict[Node, int] = dict.fromkeys(reached, 0)
    for node in reached:
        for to in node.edges:
            if to is not None and to[0] in waits:
                waits[to[0]] += 1
    heap: list[tuple[float, int, Node]] = []
    places = itertools.count()

    def ready(node: Node) -> None:
        heappush(heap, (LEAF if node.seq < 0 else -node.seq, next(places), node))

    for node in dict.fromkeys(root[0][0] for root in task.roots):
        if not waits.get(node, 1):
            ready(node)
    order = []
    while heap:
        node = heappop(heap)[2]
        order.append(public_node(node))
        for to in node.edges:
            if to is not None and to[0] in waits:
                waits[to[0]] -= 1
                if not waits[to[0]]:
                    ready(to[0])
    return order


class _Undefined(Function):
    """What it is given, with gradients that are undefined."""

    @staticmethod
    def forward(ctx: FunctionNode, *values: Tensor) -> tuple[Tensor, ...]:
        return tuple(value.view_as(value) for value in values)

    @staticmethod
    def backward(ctx: FunctionNode, *grads: object) -> tuple[None, ...]:
        return (None,) * len(grads)


class UndefinedGrad:
    """Called with tensors, gives them with gradients that are undefined."""

    def __call__(self, *values: Tensor) -> object:
        results = _Undefined.apply(*values)
        return results if len(values) > 1 else results[0]


class DelayedError:
    """Called with `count` tensors, gives them; their backward is a RuntimeError of `text`."""

    def __init__(self, text: str, count: int):
        self.text, self.count = text, count

    def __call__(self, *values: Tensor) -> object:
        results = barrier(self.text, values)
        return results if len(values) > 1 else results[0]


_Undefined._node_class = type(
    "UndefinedGradBackward", (BackwardCFunction,), {"_function": _Undefined, "__module__": ""}
)
