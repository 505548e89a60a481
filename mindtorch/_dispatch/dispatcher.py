"""Owns the order of layers: FUNCTIONALIZE, AUTOGRAD, backend; each is f(op, plan, args)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd.forward import forward, forward_inplace
from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.layer import autograd, autograd_inplace, refuse_inference
from .._autograd.node import INFERENCE
from .._autograd.views import track_view
from .._tensor.recording import RECORDING
from .._tensor.tensor import Tensor
from ..ops.spec import Op
from . import dispatch_modes, overrides, whole_gradients  # noqa: F401
from .autocast import recast
from .functionalize import functionalize_inplace
from .keys import DispatchKey
from .plans import CallPlan
from .profiled_names import profiled_call

AUTOGRAD = int(DispatchKey.Autograd)
FUNCTIONALIZE = int(DispatchKey.Functionalize)


def layers(op: Op, plan: CallPlan | dispatch_modes.Watched, args: Sequence[Any]) -> Any:
    """A call that makes new results, when plain running may not be enough."""
    if MODES.active and LOCAL.profilers:
        return profiled_call(op, args, lambda: _layers(op, plan, args))
    return _layers(op, plan, args)


def layers_of_method(
    op: Op, plan: CallPlan | dispatch_modes.Watched, args: Sequence[Any], form: str = "method"
) -> Any:
    """A call as a method."""
    if LOCAL.functions and not LOCAL.profilers:
        return overrides.through_mode(op, form, args)
    return layers(op, plan, args)


def layers_of_operator(op: Op, plan: CallPlan | dispatch_modes.Watched, args: Sequence[Any]) -> Any:
    """The same for a call as one of Python's operators."""
    return layers_of_method(op, plan, args, "operator")


def _layers(op: Op, plan: CallPlan | dispatch_modes.Watched, args: Sequence[Any]) -> Any:
    if MODES.active:
        if LOCAL.functions:
            return overrides.through_mode(op, "function", args)
        if LOCAL.dispatches:
            plan = dispatch_modes.Watched(op, plan)
        if RECORDING.recorder is not None:
            plan = RECORDING.recorder.watch(op, plan, False)
        if LOCAL.dual:
            return forward(op, args, lambda: _under_modes(op, plan, args))
        return _under_modes(op, plan, args)
    return autograd(op, plan, args)


def _under_modes(op: Op, plan: CallPlan | dispatch_modes.Watched, args: Sequence[Any]) -> Any:
    if LOCAL.autocast:
        other = recast(op, args)
        if other is not None:
            return op.entry("aten")(*other)
    if LOCAL.exclude & AUTOGRAD:
        return plan.run(*args)
    if LOCAL.inference:
        return _mark_inference(plan.run(*args))
    return autograd(op, plan, args)


def layers_inplace(op: Op, plan: CallPlan, args: Sequence[Any]) -> Any:
    """A call that writes to its first argument, when plain running may not be enough."""
    if MODES.active and LOCAL.profilers:
        return profiled_call(op, args, lambda: layers_inplace(op, plan, args), "_")
    if MODES.active and LOCAL.functions:
        return overrides.through_mode(op, "inplace", args)
    if MODES.active and LOCAL.dual:
        return forward_inplace(op, args, lambda: _write(op, plan, args))
    return _write(op, plan, args)


def _write(op: Op, plan: CallPlan | dispatch_modes.Watched, args: Sequence[Any]) -> Tensor:
    if MODES.active and _wants_functionalize():
        return functionalize_inplace(op, args)
    target = args[0]
    if MODES.active and LOCAL.dispatches:
        plan = dispatch_modes.WatchedInplace(op, plan)
    if MODES.active and RECORDING.recorder is not None:
        plan = RECORDING.recorder.watch(op, plan, True)

    def write() -> None:
        plan.run((target,), *args)
        target._storage.value += 1

    if MODES.active and (LOCAL.exclude & AUTOGRAD or LOCAL.inference):
        write()
        return target
    autograd_inplace(op, plan, args, write)
    refuse_inference(target)
    return target


def _wants_functionalize() -> bool:
    requested = LOCAL.functionalize or LOCAL.include & FUNCTIONALIZE
    return bool(requested) and not LOCAL.exclude & FUNCTIONALIZE


def _mark_inference(result: Tensor) -> Tensor:
    outs = (result,) if isinstance(result, Tensor) else result
    for out in outs:
        if not isinstance(out, Tensor):
            continue
        if out._base is None or out._base._fn is INFERENCE:
            out._fn = INFERENCE
        else:
            track_view(out, "inference")
    return result
