"""Owns how laws call an op, compare two results, and say what is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

import mindtorch
from mindtorch import Tensor
from mindtorch.ops.samples import Sample
from mindtorch.ops.spec import SPACES, Op

from ..judge.agreement import Tolerance, tolerance
from ..judge.precision import Array


class LawBroken(AssertionError):
    """What was got, what was expected, and for which call."""


class NotApplicable(Exception):
    """The law says nothing about this op and sample; the message says why."""


def call(op: Op, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
    """The op's functional entry."""
    return op.entry("aten")(*args, **kwargs)


def as_list(result: Any) -> list[Any]:
    """Results of one call as a list."""
    return list(result) if isinstance(result, tuple | list) else [result]


def to_numpy(tensor: Tensor) -> Array:
    """The values of a mindtorch or torch tensor, on the host, bfloat16 as float32."""
    host = tensor.detach().cpu()
    if str(host.dtype) == "torch.bfloat16":
        host = host.float()
    return np.array(host.numpy(force=True))


def made_on(op: Op, sample: Sample, device: str) -> tuple[list[Any], dict[str, Any]]:
    """The sample's arguments on a device; a factory is told the device instead."""
    args, kwargs = sample.make(mindtorch, device)
    return args, with_device(op, kwargs, device)


def with_device(op: Op, kwargs: dict[str, Any], device: str) -> dict[str, Any]:
    if any(a.type == "Device" for a in op.schema.args):
        return {"device": mindtorch.device(device), **kwargs}
    return kwargs


def samples(op: Op) -> list[Sample]:
    """The row's samples; empty when it has none."""
    return list(op.testing.samples()) if op.testing.samples is not None else []


def limit(op: Op, result: Tensor) -> Tolerance:
    return tolerance(op.testing.tolerance, str(result.dtype).removeprefix("torch."))


def compare_values(op: Op, what: str, got: Tensor, expected: Any, limit: Tolerance) -> None:
    """LawBroken unless values agree within the op's tolerance; NaNs and infinities must match."""
    a, b = to_numpy(got), to_numpy(expected)
    if a.shape != b.shape:
        raise LawBroken(f"{op.name}: {what}: shape {a.shape}, expected {b.shape}")
    if limit.relative == float("inf"):
        return
    wide = np.complex128 if a.dtype.kind == "c" or b.dtype.kind == "c" else np.float64
    if a.dtype.kind not in "fc":
        close = a == b
    else:
        x, y = a.astype(wide), b.astype(wide)
        with np.errstate(all="ignore"):
            close = np.abs(x - y) <= limit.absolute + limit.relative * np.abs(y)
        close |= (x == y) | (np.isnan(x) & np.isnan(y))
    if not np.all(close):
        at = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(close)))
        raise LawBroken(
            f"{op.name}: {what}: got {np.atleast_1d(a)[at]!r} at {at}, expected"
            f" {np.atleast_1d(b)[at]!r} (relative {limit.relative:g}, absolute {limit.absolute:g})"
        )


def compare_metadata(op: Op, what: str, got: Any, expected: Any, strides: bool = True) -> None:
    names = ("dtype", "shape") + (("strides",) if strides and expected.numel() else ())
    for name in names:
        a = str(tuple(got.stride()) if name == "strides" else _plain(getattr(got, name)))
        b = str(tuple(expected.stride()) if name == "strides" else _plain(getattr(expected, name)))
        if a != b:
            raise LawBroken(f"{op.name}: {what}: {name} {a}, expected {b}")


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, tuple) else value


def oracle_function(op: Op, torch: ModuleType) -> Callable[..., Any]:
    """torch's function for this row; NotApplicable where torch has none."""
    if op.testing.oracle is not None:
        return op.testing.oracle(torch)
    name = op.base_name
    places: tuple[Any, ...] = (torch.Tensor, torch, torch.nn.functional, torch._C._nn)
    if "nn" in op.places and "method" not in op.places:
        places = (torch.nn.functional,)
    for space in op.places.intersection(SPACES):
        places, name = (getattr(torch, space),), name.removeprefix(space + "_")
    for place in places if not name.startswith("_") else ():
        function = getattr(place, name, None)
        if function is not None:
            return function
    try:
        return getattr(torch.ops.aten, name)
    except AttributeError:
        raise NotApplicable(f"torch has no {name}") from None


def working(sample: Sample) -> None:
    if sample.error:
        raise NotApplicable("the sample is of an error")
