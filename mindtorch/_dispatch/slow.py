"""Owns what entries do off the hot path: binding, new plans, what in-place calls may write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.layer import refuse_recorded
from .._compat.argument_errors import explained_here
from .._tensor.dtype import COMPLEX
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from ..ops.rules import NUMBERS
from ..ops.schema import ArgKind
from ..ops.spec import Op, aten
from . import dispatch_modes, overrides, plans
from .autocast import recast
from .bind import MASKS, can_cast, normalise, number, refuse_overlap, warn_of_overlap, watch_overlap
from .dispatcher import layers, layers_inplace, layers_of_method, layers_of_operator
from .key import key_of
from .overrides import overriding


def operand(op: Op, value: Any) -> Any:
    """An operator's other side as its row takes it; None for what is left to Python's protocol.

    `==` takes numpy's arrays, as torch's does and none of its other operators; in `array / tensor`
    it is the product that leaves the array to numpy.
    """
    if isinstance(value, Tensor) or overriding((value,)):
        return value
    if value.__class__ in NUMBERS:
        return None if op.schema.args[1].kind is ArgKind.TENSOR else value
    if op.name == "__rtruediv__" and isinstance(value, np.ndarray):
        return value
    if op.name == "eq" and isinstance(value, np.ndarray):
        return aten.from_numpy(value) if value.dtype.kind in "biufc" else None
    return None if op.schema.args[1].kind is ArgKind.TENSOR else number(value)


def operated(op: Op, raw: Sequence[Any]) -> Any:
    """An operator's call whose plan was not found; NotImplemented where Python asks further.

    As in torch, it asks further after a TypeError too, as a `__torch_function__` may raise.
    """
    return _operated(_slow_operator, op, raw, "operator")


def operated_inplace(op: Op, raw: Sequence[Any]) -> Any:
    """`a += b` whose plan was not found; NotImplemented where Python asks further."""
    return _operated(slow_inplace, op, raw, "augmented")


def _operated(run: Callable[..., Any], op: Op, raw: Sequence[Any], form: str) -> Any:
    other = operand(op, raw[1])
    try:
        if other is None:
            return NotImplemented
        args = (raw[0], other, *raw[2:])
        if kinds := overriding(args):
            return overrides.call(op, form, kinds, args)
        return run(op, args)
    except TypeError:
        return NotImplemented


def _raw_key(op: Op, args: Sequence[Any]) -> Any:
    """The key of arguments as given, None where finding it again by identity would be wrong."""
    for arg, value in zip(op.schema.args, args, strict=True):
        if arg.kind in (ArgKind.INTS, ArgKind.ATTR) and not _plain(value):
            return None
        if arg.kind in (ArgKind.UNION, ArgKind.SCALAR) and not (
            isinstance(value, Tensor) or value is None or value.__class__ in NUMBERS
        ):
            return None
        if arg.kind is ArgKind.SCALAR and isinstance(value, Tensor):
            return None
        if arg.kind is ArgKind.OPTIONAL_TENSORS and any(
            v is not None and v._geom.dtype in MASKS for v in value
        ):
            return None
    try:
        return key_of(op, args)
    except (AttributeError, TypeError):
        return None


def _plain(value: Any) -> bool:
    if value.__class__ is tuple or value.__class__.__name__ == "Size":
        return all(v.__class__ is int for v in value)
    return not isinstance(value, Tensor | list)


def plans_of(op: Op, inplace: bool) -> Any:
    """The table of an op's plans: key → plan."""
    name = "plans_" if inplace else "plans"
    if name not in op.cache:
        op.cache[name] = plans.table()
    return op.cache[name]


def find_plan(op: Op, raw: Sequence[Any], args: tuple[Any, ...]) -> Any:
    """The plan of a functional call, made if there is none; stored under both keys."""
    table = plans_of(op, False)
    key = key_of(op, args)
    plan = table.get(key)
    if plan is None:
        plan = plans.functional(op, args)
        plans.put(table, key, plan)
    as_given = _raw_key(op, raw)
    if as_given is not None and as_given != key:
        plans.put(table, as_given, plan)
    return plan


def _bound(op: Op, raw: Sequence[Any], first: int) -> tuple[Any, ...]:
    """The arguments as plans want them; TypeError as torch's parser says it."""
    try:
        return normalise(op, raw, first)
    except TypeError as error:
        raise explained_here() or error from None


def slow_method(op: Op, raw: Sequence[Any]) -> Any:
    """A method's call whose plan was not found."""
    return slow(op, raw, 1, layers_of_method)


def _slow_operator(op: Op, raw: Sequence[Any]) -> Any:
    return slow(op, raw, 0, layers_of_operator)


def slow(op: Op, raw: Sequence[Any], first: int = 0, above: Callable[..., Any] = layers) -> Any:
    """A functional call whose plan was not found; `first` is where errors count from.

    `above` are the layers of the call's form.
    """
    if kinds := overriding(raw):
        return overrides.call(op, "method" if first else "function", kinds, raw)
    args = _bound(op, raw, first)
    if MODES.active and LOCAL.autocast:
        other = recast(op, args)
        if other is not None:
            raw = args = other
    try:
        plan = find_plan(op, raw, args)
    except REFUSALS:
        if (result := _asked_anyway(op, "", args)) is NotImplemented:
            raise
        return result
    return above(op, plan, args)


# What rules of results raise.
REFUSALS = (AttributeError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError)


def _asked_anyway(op: Op, end: str, args: Sequence[Any]) -> Any:
    """What a mode or a class makes of a call that has no plan; NotImplemented where none is asked.

    As in torch, they are asked before anybody looks at shapes. `end` is `_` for what writes.
    """
    if not (MODES.active and LOCAL.dispatches):
        return NotImplemented
    if not end and (result := dispatch_modes.in_parts(op, args)) is not NotImplemented:
        return result
    if op.body is not None:
        return NotImplemented
    return dispatch_modes.ask_operator(*dispatch_modes.operator_call(op, end, args))


def slow_inplace(op: Op, raw: Sequence[Any]) -> Any:
    """An in-place call whose plan was not found."""
    if kinds := overriding(raw):
        return overrides.call(op, "inplace", kinds, raw)
    args = _bound(op, raw, 1)
    target = args[0]
    refuse_recorded(target)
    if not op.writes.overlaps:
        refuse_overlap(target._geom)
    deprecated = warn_of_overlap(op, target._geom)
    table = plans_of(op, True)
    key = key_of(op, args)
    plan = table.get(key)
    if plan is None:
        try:
            plan = plans.into(op, args, (target._geom,), True)
            _check_inplace(op, target._geom, plan.outs[0])
        except REFUSALS:
            if (result := _asked_anyway(op, "_", args)) is NotImplemented:
                raise
            return result
        watch_overlap(plan, (target._geom,), op)
        if not deprecated:  # else each call comes here
            plans.put(table, key, plan)
    as_given = None if deprecated else _raw_key(op, raw)
    if as_given is not None and as_given != key:
        plans.put(table, as_given, plan)
    return layers_inplace(op, plan, args)


def fitting(op: Op, target: Tensor, result: Tensor) -> Tensor:
    """A composite's result, where its in-place form may write it to the target."""
    _check_inplace(op, target._geom, result._geom)
    return result


def _check_inplace(op: Op, target: Geometry, result: Geometry) -> None:
    real = getattr(op.infer, "kind", "") == "real"
    if real and target.dtype.category == COMPLEX:
        raise RuntimeError(f"In-place {op.base_name} is not supported for complex tensors.")
    if not can_cast(result.dtype, target.dtype) and not op.writes.casts_inplace:
        raise RuntimeError(
            f"result type {result.dtype.legacy} can't be cast to the desired output type"
            f" {target.dtype.legacy}"
        )
    if result.shape != target.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape"
            f" {list(result.shape)}"
        )
