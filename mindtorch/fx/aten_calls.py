"""Owns which ATen operator a traced call is, and what computes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import mindtorch

from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from ..ops.aten_overloads import Call, call_of_function, call_of_row
from ..ops.namespaces import namespace
from ..ops.spec import Op, aten
from .fake import FACTORIES

# Functions that are no rows and that graphs hold as they are called.
_NAMES: dict[object, str] = {Tensor.__dict__["T"]: "numpy_T", "__rsub__": "rsub"}
_WHOLE = FACTORIES | frozenset((
    "clone", "detach", "empty_like", "expand_as", "full_like", "new_empty", "new_full", "new_ones",
    "new_zeros", "numpy_T", "ones_like", "rand_like", "randn_like", "reshape_as", "rsub",
    "type_as", "view_as", "zeros_like",
))  # fmt: skip

# Operators of Python that torch has by their own names.
_SIGNS = {"bitwise_and": "__and__", "bitwise_or": "__or__", "bitwise_xor": "__xor__"}


def _normalize(input: Tensor, p: float, dim: int, eps: float, out: None = None) -> object:
    norm = aten.linalg_vector_norm(input, p, (dim,), True)
    return aten.div(input, mindtorch.clamp_min(norm, eps).expand_as(input))


def _of_broadcast(name: str) -> Callable[..., Any]:
    """A loss whose operands are broadcast first."""

    def loss(input: Tensor, target: Tensor, *options: object) -> object:
        a, b = mindtorch.broadcast_tensors(input, target)
        reduction = next(o for o in options if isinstance(o, str))
        return getattr(aten, name)(a, b, ("none", "mean", "sum").index(reduction))

    return loss


# Functions that torch makes of others in Python.
_FOLLOWED: dict[str, Callable[..., Any]] = {
    "mse_loss.nn": _of_broadcast("mse_loss"), "normalize": _normalize,
}  # fmt: skip


class AtenCall(NamedTuple):
    """The operator of a row's call, None where torch has none; and the call that computes it."""

    call: Call | None
    run: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def aten_call_of_row(op: Op, form: str, raw: Sequence[Any]) -> AtenCall:
    """A row's call."""
    if op.name == "slice":
        start, end = 0 if raw[2] is None else raw[2], sys.maxsize if raw[3] is None else raw[3]
        raw = (*raw[:2], start, end, *raw[4:])
    if form not in ("inplace", "augmented"):
        call = None if op.name in _FOLLOWED else call_of_row(op, "", raw)
        if form == "operator" and op.name in _SIGNS and call is not None:
            packet = getattr(namespace("aten"), _SIGNS[op.name])
            call = getattr(packet, call[0]._overloadname), *call[1:]
        return AtenCall(call, op.entry("aten"), tuple(raw), {})
    named = {a.name: v for a, v in zip(op.schema.args, raw, strict=True) if a.keyword_only}
    places = tuple(raw[: len(raw) - len(named)])
    return AtenCall(call_of_row(op, "_", raw), op.entry("inplace"), places, named)


def body_of(op: Op) -> Any:
    """What is followed of a row that has no operator in torch; None where nothing is."""
    return _FOLLOWED.get(op.name, op.body)


def aten_call_of_function(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Call | None:  # fmt: skip
    """The operator of a call of a function that is no row; None where graphs look into it."""
    name = func.__name__
    name = _NAMES.get(getattr(func, "__self__", None), _NAMES.get(name, name))
    if name not in _WHOLE:
        return None
    return call_of_function(name, args, {**_memory_options(name, kwargs), **kwargs})


def _memory_options(name: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What torch's parser adds to functions that make tensors."""
    if name in FACTORIES:
        return {"device": Device(kwargs.get("device") or "cpu"), "pin_memory": False}
    return {"pin_memory": False} if name.endswith("_like") or name.startswith("new_") else {}
