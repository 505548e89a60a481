"""Owns `out=`: a call that writes into tensors that the caller gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd.codegen import edge
from .._autograd.forward import tangent_of
from .._autograd.grad_mode import LOCAL, MODES
from .._backends.registry import registry
from .._compat.argument_errors import explained_here
from .._compat.missing_args import refuse_missing
from .._compat.signatures import takes_out
from .._compat.warn_once import warn
from .._tensor.geometry import Geometry
from .._tensor.subclass import DOOR
from .._tensor.tensor import Tensor
from ..ops.rules import Pointwise
from ..ops.spec import Op
from . import dispatch_modes, overrides, plans
from .bind import normalise, refuse_overlap, refuse_shared, watch_overlap
from .functionalize import write_back
from .out_dtypes import decided, refuse_out
from .slow import slow


def out_call(op: Op, out: Tensor, raw: Sequence[Any]) -> Any:
    """A call with `out=`: resize where the shape differs, then write."""
    refuse_missing(op, raw)
    answer = overrides.hand_over_out(op, out, raw)
    if answer is not NotImplemented:
        return answer
    if MODES.active and LOCAL.dispatches:
        answer = dispatch_modes.ask_into(op, out, raw)
        if answer is not NotImplemented:
            return answer
    several = len(op.schema.returns) > 1 and not isinstance(out, tuple | list)
    if (several or not takes_out(op.base_name)) and (error := explained_here()):
        raise error
    outs = out if isinstance(out, tuple | list) else (out,)
    if not all(isinstance(dest, Tensor) for dest in outs):
        kind = type(out).__name__
        text = f"{op.base_name}(): argument 'out' must be Tensor, not {kind}"
        raise explained_here() or TypeError(text)
    if op.writes.apart:
        refuse_shared(outs, raw)
    if op.body is not None:
        return _out_by_copy(op, outs, op.body(*decided(op, tuple(raw), outs[0]._geom)), out)
    raw = decided(op, tuple(raw), outs[0]._geom)
    args = normalise(op, raw)
    _refuse_grad(op, (*args, *outs))
    expected = plans.infer(op, plans.geometries(args)) if op.infer and not op.is_view else ()
    if not expected or any(e.__class__ is not Geometry for e in expected):
        return _out_by_copy(op, outs, slow(op, raw), out)
    for dest, geom in zip(outs, expected, strict=True):
        _prepare_out(op, dest, geom, args)
    if MODES.active and LOCAL.functionalize:
        return _out_by_writeback(op, outs, slow(op, raw), out)
    geometries = tuple(o._geom for o in outs)
    plan = plans.into(op, args, geometries, False)
    watch_overlap(plan, geometries, op)
    plan.run(tuple(outs), *args)
    for dest in outs:
        dest._storage.value += 1
    return out


def _refuse_grad(op: Op, values: Sequence[Any]) -> None:
    if LOCAL.dual and any(isinstance(v, Tensor) and tangent_of(v) is not None for v in values):
        raise NotImplementedError(
            f"Trying to use forward AD with {op.base_name}_out that does not support it because it"
            " is an out= function"
        )
    if not LOCAL.grad:
        return
    for value in values:
        for tensor in value if isinstance(value, tuple) else (value,):
            if isinstance(tensor, Tensor) and edge(tensor) is not None:
                raise RuntimeError(
                    f"{op.base_name}(): functions with out=... arguments don't support automatic"
                    " differentiation, but one of the arguments requires grad."
                )


def warn_of_resize(current: Geometry, shape: Sequence[int]) -> None:
    """torch's warning of a destination that has elements, and another shape."""
    if current.numel and current.shape != shape:
        warn(
            f"An output with one or more elements was resized since it had shape"
            f" {list(current.shape)}, which does not match the required output shape"
            f" {list(shape)}. This behavior is deprecated, and in a future PyTorch release"
            " outputs will not be resized unless they have zero elements. You can explicitly"
            " reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            UserWarning,
        )


def _prepare_out(op: Op, out: Tensor, geom: Geometry, args: Sequence[Any] = ()) -> None:
    current = out._geom
    if current.device is not geom.device:
        raise RuntimeError(
            f"Expected out tensor to be on {geom.device}, but it is on {current.device}"
        )
    source = args[0].dtype if args and isinstance(args[0], Tensor) else None
    refuse_out(op, current.dtype, geom.dtype, source)
    if current.shape == geom.shape:
        refuse_overlap(current)
        return
    if isinstance(op.infer, Pointwise) and any(a is out for a in args):
        raise RuntimeError(
            f"output with shape {list(current.shape)} doesn't match the broadcast shape"
            f" {list(geom.shape)}"
        )
    if isinstance(op.infer, Pointwise):
        refuse_shared((out,), [a for a in args if isinstance(a, Tensor)])
    # torch resizes what it computes in and what it casts to.
    casts = isinstance(op.infer, Pointwise) and current.dtype is not geom.dtype
    for _ in range(1 + casts):
        warn_of_resize(current, geom.shape)
    out.resize_(geom.shape)
    if isinstance(op.infer, Pointwise):  # laid out as the result without out= would be
        out.as_strided_(geom.shape, geom.strides)


def _out_by_writeback(op: Op, outs: Sequence[Tensor], result: Tensor, out: Tensor) -> Tensor:
    results = result if isinstance(result, tuple) else (result,)
    for dest, value in zip(outs, results, strict=True):
        write_back(op, dest, value)
    return out


def _out_by_copy(op: Op, outs: Sequence[Tensor], result: Tensor, out: Tensor) -> Tensor:
    results = result if isinstance(result, tuple) else (result,)
    if isinstance(result, tuple) and not isinstance(out, tuple | list):
        as_tuple = " when as_tuple is True" * any(a.name == "as_tuple" for a in op.schema.args)
        raise RuntimeError(f"{op.base_name} does not support the out kwarg{as_tuple}")
    for dest, value in zip(outs, results, strict=True):
        _prepare_out(op, dest, value._geom)
        if MODES.active and LOCAL.dispatches:
            dispatch_modes.ask("copy_", (dest, value), {})
            continue
        registry.backend(dest.device).copy(dest, value.detach())
        dest._storage.value += 1
    return out


def into(op: Op, args: Sequence[Any], kwargs: dict[str, Any], outs: tuple[Tensor, ...]) -> Any:
    """A call of an operator that writes into `outs`."""
    import mindtorch

    function = getattr(mindtorch, op.base_name, None) or overrides._public(op, "function")
    return function(*args, **kwargs, out=outs if len(outs) > 1 else outs[0])


DOOR["into"] = into
