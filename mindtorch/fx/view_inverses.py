"""Owns what a view's memory becomes when the view has another value: views undone as operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..ops.namespaces import OpOverload, namespace
from .node import Node

Emit = Callable[..., Node]  # what adds a call: operator, arguments, keywords
Rule = Callable[[Emit, "ViewStep", Node, Sequence[int], Node], Node]
Sizes = Sequence[int]
Places = tuple[object, ...]
_ATEN = namespace("aten")


class ViewStep(NamedTuple):
    """A view: its operator, the arguments behind the tensor, and which of how many results."""

    function: OpOverload
    args: tuple[Any, ...]
    kwargs: Mapping[str, object]
    part: int | None
    parts: int = 1


def _scatter(name: str) -> Rule:
    def scattered(emit: Emit, step: ViewStep, whole: Node, shape: Sizes, value: Node) -> Node:
        return emit(getattr(_ATEN, name).default, (whole, value, *step.args), step.kwargs)

    return scattered


def _again(emit: Emit, step: ViewStep, whole: Node, shape: Sizes, value: Node) -> Node:
    return emit(step.function, (value, *step.args))


def _reshaped(emit: Emit, step: ViewStep, whole: Node, shape: Sizes, value: Node) -> Node:
    return emit(_ATEN.view.default, (value, list(shape)))


def _permuted(emit: Emit, step: ViewStep, whole: Node, shape: Sizes, value: Node) -> Node:
    order = [dim % len(shape) for dim in step.args[0]]
    return emit(step.function, (value, [order.index(at) for at in range(len(order))]))


def _unsqueezed(emit: Emit, step: ViewStep, whole: Node, shape: Sizes, value: Node) -> Node:
    return emit(_ATEN.squeeze.dim, (value, step.args[0]))


def _squeezed(emit: Emit, step: ViewStep, whole: Node, shape: Sizes, value: Node) -> Node:
    dims = step.args[0] if step.args else range(len(shape))
    gone = {dim % len(shape) for dim in ((dims,) if isinstance(dims, int) else dims)}
    for dim in sorted(gone):
        if shape[dim] == 1:
            value = emit(_ATEN.unsqueeze.default, (value, dim))
    return value


def _split(emit: Emit, step: ViewStep, whole: Node, shape: Sizes, value: Node) -> Node:
    dim = step.args[1] if len(step.args) > 1 else 0
    sizes, at = step.args[0], step.part or 0
    first = sizes * at if isinstance(sizes, int) else sum(sizes[:at])
    size = sizes if isinstance(sizes, int) else sizes[at]
    last = min(first + size, shape[dim])
    return emit(_ATEN.slice_scatter.default, (whole, value, dim, first, last))


def _unbound(emit: Emit, step: ViewStep, whole: Node, shape: Sizes, value: Node) -> Node:
    dim = step.args[0] if step.args else 0
    return emit(_ATEN.select_scatter.default, (whole, value, dim, step.part or 0))


def _same(emit: Emit, step: ViewStep, whole: Node, shape: Sizes, value: Node) -> Node:
    return value


_INVERSES: dict[str, Rule] = {
    "alias": _same, "as_strided": _scatter("as_strided_scatter"), "detach": _same,
    "diagonal": _scatter("diagonal_scatter"), "permute": _permuted,
    "select": _scatter("select_scatter"), "slice": _scatter("slice_scatter"), "split": _split,
    "split_with_sizes": _split, "squeeze": _squeezed, "t": _again, "transpose": _again,
    "unbind": _unbound, "unsqueeze": _unsqueezed, "view": _reshaped, "_unsafe_view": _reshaped,
}  # fmt: skip


def undo(emit: Emit, step: ViewStep, whole: Node, shape: Sizes, value: Node) -> Node:
    """Make of `value`, the view's, what the view is of: `whole`, of a shape.

    NotImplementedError for views that cannot be undone.
    """
    kind = step.function.overloadpacket.__name__
    rule = _INVERSES.get(name := kind.removesuffix("_copy"))
    if rule is None:
        raise NotImplementedError(f"functionalize: a write through {name} is no operator here")

    def copied(function: OpOverload, args: Places, kwargs: Mapping[str, object] = {}) -> Node:
        back = function.overloadpacket.__name__
        if name != kind and not back.endswith(("_copy", "_scatter")):
            function = getattr(getattr(_ATEN, f"{back}_copy"), function._overloadname)
        return emit(function, args, kwargs)

    return rule(copied, step, whole, shape, value)
