"""Owns the AUTOGRAD layer: whether a call is recorded, and what a write does to histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor.dtype import FLOAT
from .._tensor.tensor import Tensor, forget_array
from ..ops.spec import Op
from .codegen import compiled_functions, edge
from .grad_mode import LOCAL
from .node import INFERENCE, STALE, keep
from .views import is_view_of_leaf, rebase, refuse_view, track_view


def autograd(op: Op, plan: Any, args: Sequence[Any]) -> Tensor | tuple[Tensor, ...]:
    """A functional call: run below, put a node on the results."""
    if not LOCAL.grad:
        result = plan.run(*args)
        return track_view(result) if op.schema.is_view else result
    if not (op.is_view or tracked(args)):
        return plan.run(*args)  # without reading the derivative of an op that needs none yet
    return compiled_functions(op).watched(plan, *args)


def tracked(args: Sequence[Any]) -> bool:
    """Whether an argument, or an element of a list, has a history, is a leaf or an inference
    tensor."""
    for arg in args:
        if isinstance(arg, Tensor):
            if arg._fn is not None:
                return True
        elif isinstance(arg, list | tuple) and tracked(arg):
            return True
    return False


def autograd_inplace(op: Op, plan: Any, args: Sequence[Any], write: Callable[[], None]) -> Tensor:
    """An in-place call: check, save, `write()`, rebase history; gives its first argument."""
    target: Tensor = args[0]
    if not (LOCAL.grad and tracked(args)):
        write()
        return target
    functions = compiled_functions(op)
    target_edge = edge(target)
    if LOCAL.derivatives:
        refuse_captured(target, lambda: _called(op, args))
    node = functions.capture(plan, target_edge is not None, *args)
    if node is None:
        write()
        return target
    refuse_view(target)
    if target_edge is not None:
        refuse_leaf(target)
    if target._geom.dtype.category < FLOAT:
        write()
        return target
    write()
    for place, (how, i) in enumerate(functions.formula.saved):
        if how == "result":
            node.saved[place] = keep(target, i)
    rebase(target, node)
    return target


# Set by transforms: whether a tensor is one that the function being differentiated captured.
CAPTURED: list[Callable[[Tensor], bool]] = []


def refuse_captured(target: Tensor, name: Callable[[], str]) -> None:
    """RuntimeError in torch's words where a function being differentiated writes to a capture."""
    if any(captured(target) for captured in CAPTURED):
        raise RuntimeError(
            "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call"
            f" in-place operation (aten::{name()}) that would mutate a captured Tensor. This is not"
            " supported; please rewrite the function being transformed to explicitly accept the"
            " mutated Tensor(s) as inputs."
        )


def _called(op: Op, args: Sequence[Any]) -> str:
    """The overload of torch's operator that a call in place is."""
    from ..ops.aten_overloads import call_of_row

    call = call_of_row(op, "_", args)
    name = f"{op.base_name}_" if call is None else str(call[0]).removeprefix("aten.")
    return name.removesuffix(".default")


def reshape_inplace(target: Tensor, view: Tensor) -> Tensor:
    """An in-place view: `target` takes the geometry of `view`, a view of it, and its history.

    A leaf that requires grad is refused, versions are bumped, and a target that is itself a view
    makes its history again from its base when asked for.
    """
    refuse_recorded(target)
    recorded = view._fn
    target._geom = view._geom
    forget_array(target)
    refuse_inference(target)
    target._storage.value += 1
    base = target._base
    if base is not None and base._fn is not None:
        target._fn = STALE
    elif LOCAL.grad and recorded is not None:
        recorded.label = _IN_PLACE.get(recorded.name(), recorded.label)
        target._fn, target._nr = recorded, view._nr
    return target


# torch numbers the nodes of views in place after those of views.
_IN_PLACE = {
    "SqueezeBackward0": "SqueezeBackward3", "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5", "TBackward0": "TBackward1",
    "TransposeBackward0": "TransposeBackward1", "UnsqueezeBackward0": "UnsqueezeBackward1",
}  # fmt: skip


def refuse_written(target: Tensor) -> None:
    """RuntimeError in torch's words for a write that gradients or inference mode forbid."""
    refuse_inference(target)
    refuse_recorded(target)


def refuse_recorded(target: Tensor) -> None:
    """RuntimeError in torch's words where gradients forbid a write, whatever else is wrong."""
    if LOCAL.grad and edge(target) is not None:
        refuse_view(target)
        refuse_leaf(target)


def refuse_inference(target: Tensor) -> None:
    """RuntimeError in torch's words for a tensor of inference mode that is, or was, written to
    outside of it."""
    if target._fn is INFERENCE and not LOCAL.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make"
            " a clone to get a normal tensor before doing inplace update."
            "See https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def refuse_leaf(target: Tensor) -> None:
    """RuntimeError in torch's words for a leaf that requires grad, or a view of one."""
    leaf = getattr(target._fn, "variable_ref", None) is not None
    if is_view_of_leaf(target) or (leaf and target._base is not None):
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )
    if leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
