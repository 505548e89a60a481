"""Owns what entries do off the hot path: binding, new plans, `out=`, in-place rules, composites."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

from .._autograd.formula import edge
from .._autograd.grad_mode import LOCAL, MODES
from .._backends.registry import registry
from .._dtype import COMPLEX, FLOAT, INTEGER
from .._geometry import Geometry
from .._tensor import Tensor
from ..ops.rules import NUMBERS
from ..ops.schema import Kind
from ..ops.spec import Op
from . import plans
from .autocast import recast
from .bind import normalise, number
from .dispatcher import layers, layers_inplace


def first_fn(tensors: Any) -> Any:
    """The first gradient edge among tensors, None if there is none."""
    for tensor in tensors:
        if tensor is not None and tensor._fn is not None:
            return tensor._fn
    return None


def refused(value: Any) -> bool:
    """Whether an operator's other side is nothing a tensor can take."""
    return number(value) is None


def key_of(op: Op, args: Sequence[Any]) -> Any:
    """The key that an entry makes from arguments in plan form; TypeError if there is none."""
    keys: list[Any] = []
    for arg, value in zip(op.schema.args, args, strict=True):
        if isinstance(value, Tensor):
            keys.append(value._geom)
        elif arg.kind in (Kind.TENSORS, Kind.OPTIONAL_TENSORS):
            keys.append(tuple([None if t is None else t._geom for t in value]))
        elif arg.kind in (Kind.SCALAR,) or arg.type == "Generator":
            keys.append(value.__class__)
        elif arg.kind is Kind.UNION:
            keys.append(value.__class__ if value is not None or not arg.optional else type(None))
        elif arg.kind is Kind.ATTR and arg.type in ("Number", "float"):
            keys += [value, value.__class__]
        else:
            keys.append(value)
    return keys[0] if len(keys) == 1 else tuple(keys) if keys else None


def _raw_key(op: Op, args: Sequence[Any]) -> Any:
    """The key of arguments as given, None where finding it again by identity would be wrong."""
    for arg, value in zip(op.schema.args, args, strict=True):
        if arg.kind in (Kind.INTS, Kind.ATTR) and not _plain(value):
            return None
        if arg.kind in (Kind.UNION, Kind.SCALAR) and not (
            isinstance(value, Tensor) or value is None or value.__class__ in NUMBERS
        ):
            return None
        if arg.kind is Kind.SCALAR and isinstance(value, Tensor):
            return None
    return key_of(op, args)


def _plain(value: Any) -> bool:
    if value.__class__ is tuple or value.__class__.__name__ == "Size":
        return all(v.__class__ is int for v in value)
    return not isinstance(value, Tensor | list)


def find_plan(op: Op, raw: Sequence[Any], args: tuple[Any, ...]) -> Any:
    """The plan of a functional call, made if there is none; stored under both keys."""
    held = op.cache.get("plans")
    if held is None:
        held = op.cache["plans"] = plans.table()
    key = key_of(op, args)
    plan = held.get(key)
    if plan is None:
        plan = plans.functional(op, args)
        plans.put(held, key, plan)
    as_given = _raw_key(op, raw)
    if as_given is not None and as_given != key:
        plans.put(held, as_given, plan)
    return plan


def slow(op: Op, raw: Sequence[Any]) -> Any:
    """A functional call whose plan was not found."""
    args = normalise(op, raw)
    if MODES.active and LOCAL.autocast:
        other = recast(op, args)
        if other is not None:
            raw = args = other
    plan = find_plan(op, raw, args)
    return layers(op, plan, args)


def slow_inplace(op: Op, raw: Sequence[Any]) -> Any:
    """An in-place call whose plan was not found."""
    args = normalise(op, raw)
    target = args[0]
    if op.base_name not in _OVERLAP_FREELY:
        _refuse_overlap(target._geom)
    held = op.cache["plans_"]
    key = key_of(op, args)
    plan = held.get(key)
    if plan is None:
        plan = plans.into(op, args, (target._geom,), True)
        _check_inplace(op, target._geom, plan.outs[0])
        plans.put(held, key, plan)
    as_given = _raw_key(op, raw)
    if as_given is not None and as_given != key:
        plans.put(held, as_given, plan)
    return layers_inplace(op, plan, args)


def _check_inplace(op: Op, target: Geometry, result: Geometry) -> None:
    if not can_cast(result.dtype, target.dtype) and op.base_name not in _CASTS_FREELY:
        raise RuntimeError(
            f"result type {result.dtype.legacy} can't be cast to the desired output type"
            f" {target.dtype.legacy}"
        )
    if result.shape != target.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape"
            f" {list(result.shape)}"
        )


def _refuse_overlap(target: Geometry) -> None:
    if any(s == 0 and n > 1 for n, s in zip(target.shape, target.strides, strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a"
            " single memory location. Please clone() the tensor before performing the operation."
        )


# Writing one value to overlapping elements gives what it says.
_OVERLAP_FREELY = frozenset(("fill", "zero"))
_CASTS_FREELY = frozenset(("copy", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
                           "logical_or", "logical_xor", "logical_not"))  # fmt: skip


def can_cast(source: Any, target: Any) -> bool:
    """torch.can_cast: never complex to real, float to integer, or anything to bool."""
    if source.category == COMPLEX and target.category != COMPLEX:
        return False
    if source.category == FLOAT and target.category <= INTEGER:
        return False
    return not (source.category > 0 and target.category == 0)


def out_call(op: Op, out: Any, raw: Sequence[Any]) -> Any:
    """A call with `out=`: resize where the shape differs, then write."""
    outs = out if isinstance(out, tuple | list) else (out,)
    if op.body is not None:
        return _out_by_copy(op, outs, op.body(*raw), out)
    args = normalise(op, raw)
    _refuse_grad(op, (*args, *outs))
    expected = plans.infer(op, plans.geometries(args)) if op.infer and not op.is_view else ()
    if not expected or any(e.__class__ is not Geometry for e in expected):
        return _out_by_copy(op, outs, slow(op, raw), out)
    for held, geom in zip(outs, expected, strict=True):
        _prepare_out(held, geom)
    if MODES.active and LOCAL.functionalize:
        return _out_by_writeback(op, outs, slow(op, raw), out)
    plan = plans.into(op, args, tuple(o._geom for o in outs), False)
    plan.run(tuple(outs), *args)
    for held in outs:
        held._storage.value += 1
    return out


def _refuse_grad(op: Op, values: Sequence[Any]) -> None:
    if not LOCAL.grad:
        return
    for value in values:
        for tensor in value if isinstance(value, tuple) else (value,):
            if isinstance(tensor, Tensor) and edge(tensor) is not None:
                raise RuntimeError(
                    f"{op.base_name}(): functions with out=... arguments don't support automatic"
                    " differentiation, but one of the arguments requires grad."
                )


def _prepare_out(out: Tensor, geom: Geometry) -> None:
    held = out._geom
    if held.device is not geom.device:
        raise RuntimeError(
            f"Expected out tensor to be on {geom.device}, but it is on {held.device}"
        )
    if not can_cast(geom.dtype, held.dtype):
        raise RuntimeError(
            f"result type {geom.dtype.legacy} can't be cast to the desired output type"
            f" {held.dtype.legacy}"
        )
    if held.shape == geom.shape:
        _refuse_overlap(held)
        return
    if held.numel:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape"
            f" {list(held.shape)}, which does not match the required output shape"
            f" {list(geom.shape)}. This behavior is deprecated, and in a future PyTorch release"
            " outputs will not be resized unless they have zero elements. You can explicitly"
            " reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            UserWarning,
            stacklevel=4,
        )
    out.resize_(geom.shape)


def _out_by_writeback(op: Op, outs: Sequence[Tensor], result: Any, out: Any) -> Any:
    from .functionalize import write_back

    results = result if isinstance(result, tuple) else (result,)
    for held, value in zip(outs, results, strict=True):
        write_back(op, held, value)
    return out


def _out_by_copy(op: Op, outs: Sequence[Tensor], result: Any, out: Any) -> Any:
    results = result if isinstance(result, tuple) else (result,)
    for held, value in zip(outs, results, strict=True):
        _prepare_out(held, value._geom)
        registry.backend(held.device).copy(held, value.detach())
        held._storage.value += 1
    return out


_ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input"}


def renamed(op: Op, form: str, given: dict[str, Any], extra: dict[str, Any]) -> Any:
    """A call with numpy's names (`axis=`); TypeError in torch's words for an unknown one."""
    from .entry import entry

    names = [a.name for a in op.schema.args]
    values = {n: given[n] for n in names}
    for name, value in extra.items():
        target = _ALIASES.get(name)
        if target not in names:
            raise TypeError(f"{op.base_name}() got an unexpected keyword argument '{name}'")
        values[target] = value
    result = entry(op, "inplace" if form == "inplace" else "aten")
    if given.get("out") is not None:
        return out_call(op, given["out"], tuple(values.values()))
    return result(**values)


def composite_entry(op: Op, form: str) -> Any:
    """The entry of a composite: its body, with the form's names."""
    from .entry import _params, _prelude, takes_varargs

    varargs = form in ("method", "inplace") and takes_varargs(op)
    names = ", ".join(a.name for a in op.schema.args)
    source = (
        f"def {op.base_name}{'_' if form == 'inplace' else ''}({_params(op, form, varargs)}):\n"
    )
    source += _prelude(op, form, varargs)
    if form == "inplace":
        source += f"    return self.copy_(body({names}))\n"
    else:
        source += f"    return body({names})\n"
    scope: dict[str, Any] = {
        "D": {a.name: a.default for a in op.schema.args}, "NUMBERS": NUMBERS, "Tensor": Tensor,
        "body": op.body, "op": op, "out_call": out_call, "refused": refused, "renamed": renamed,
    }  # fmt: skip
    exec(compile(source, f"<composite {op.name}>", "exec"), scope)
    made = scope[op.base_name + ("_" if form == "inplace" else "")]
    made.__doc__ = inspect.getdoc(op.body) or op.text
    return made
