"""Owns casts in graphs of ATen operators: which overload of `to` a call is, and what core programs
make of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import mindtorch

from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.aten_overloads import Call
from ..ops.namespaces import namespace

# Methods that are `to` with a dtype.
CASTS = {"bfloat16": "bfloat16", "bool": "bool", "byte": "uint8", "char": "int8",
           "double": "float64", "float": "float32", "half": "float16", "int": "int32",
           "long": "int64", "short": "int16"}  # fmt: skip


class CastCall(NamedTuple):
    """What a call of `to` asks for."""

    dtype: Dtype | None = None
    device: Device | None = None
    non_blocking: bool = False
    copy: bool = False
    memory_format: Any = None

    def keeps(self, tensor: Tensor) -> bool:
        """Whether a tensor is what is asked for."""
        dtype, device = self.dtype or tensor.dtype, self.device or tensor.device
        same = (dtype, device) == (tensor.dtype, tensor.device)
        return same and not self.copy and self.memory_format is None


def cast_of(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> CastCall | None:
    """The cast that a method of a tensor is; None for others."""
    if not args or not isinstance(args[0], Tensor):
        return None
    memory_format = kwargs.get("memory_format")
    if name in CASTS:
        return CastCall(getattr(mindtorch, CASTS[name]), memory_format=memory_format)
    if name == "cpu":
        return CastCall(device=Device("cpu"), memory_format=memory_format)
    rest = [*args[1:]]
    if name == "type":
        return CastCall(rest[0]) if rest and isinstance(rest[0], Dtype) else None
    if name != "to":
        return None
    cast = CastCall(kwargs.get("dtype"), memory_format=memory_format)
    device = kwargs.get("device")
    other = rest.pop(0) if rest and isinstance(rest[0], Tensor) else kwargs.get("other")
    if other is not None:
        device, cast = other.device, cast._replace(dtype=other.dtype)
    if rest and isinstance(rest[0], str | Device):
        device = rest.pop(0)
    if rest and (rest[0] is None or isinstance(rest[0], Dtype)):
        cast = cast._replace(dtype=rest.pop(0))
    flags = dict(zip(("non_blocking", "copy", "memory_format"), rest, strict=False))
    flags.update({n: kwargs[n] for n in ("non_blocking", "copy") if n in kwargs})
    return cast._replace(device=None if device is None else Device(device), **flags)


def call_of_cast(tensor: Tensor, cast: CastCall) -> Call:
    """The overload that torch calls, with its arguments."""
    packet = namespace("aten").to
    formats = {} if cast.memory_format is None else {"memory_format": cast.memory_format}
    if cast.dtype is None:
        named = {"dtype": tensor.dtype, "layout": mindtorch.strided,
                 "device": cast.device or tensor.device}  # fmt: skip
        named.update({n: True for n in ("non_blocking", "copy") if getattr(cast, n)})
        return packet.dtype_layout, (tensor,), {**named, **formats}
    flags = [cast.non_blocking, cast.copy, cast.memory_format]
    while flags and not flags[-1]:
        flags.pop()
    if cast.device is None:
        return packet.dtype, (tensor, cast.dtype, *flags), {}
    return packet.device, (tensor, cast.device, cast.dtype, *flags), {}


def moved(tensor: Tensor, cast: CastCall, keeps: bool, device: object = None) -> Tensor:
    """The cast on the tensor's own device; the tensor itself where the cast keeps it."""
    named = {} if cast.memory_format is None else {"memory_format": cast.memory_format}
    result = tensor.to(cast.dtype or tensor.dtype, copy=cast.copy, **named)
    return result.view_as(result) if result is tensor and not keeps else result
