"""Owns the inputs of a case: from the row's sample to arrays, the same on every device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mindtorch.ops import Op
from mindtorch.ops.samples import Arg, Sample

from . import fills
from .case import Case
from .precision import FORMATS
from .shapes import reshaped
from .subject import dtype_of


class NoSuchSampleError(LookupError):
    """The row has fewer samples than the case asks for; the message counts them."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A tensor's place among the arguments, with its description and elements."""

    arg: Arg
    array: Any


@dataclass(frozen=True, slots=True)
class Recipe:
    """The arguments of a case with a Slot for every tensor."""

    args: list[Any]
    kwargs: dict[str, Any]
    slots: list[Slot]
    error: bool

    def fill(self, change: Callable[[Slot], Any], number: Any = None) -> tuple[list[Any], Any]:
        """Arguments with `change(slot)` for tensors and `number(value)` for Python floats."""
        args = [_walk(a, change, number) for a in self.args]
        kwargs = {k: _walk(v, change, number) for k, v in self.kwargs.items()}
        return args, {k: _dtype(k, v) for k, v in kwargs.items()}


def samples(op: Op) -> list[Sample]:
    """The row's samples; none where it has none."""
    return list(op.samples()) if op.samples is not None else []


def tensors_of(sample: Sample) -> list[Arg]:
    """The sample's tensors in order of appearance."""
    found: list[Arg] = []
    sample.map(lambda arg: found.append(arg))
    return found


def main_dtype(args: list[Arg]) -> str:
    """The dtype that a dtype axis replaces: that of the first float tensor, else of the first."""
    for arg in args:
        if arg.dtype in FORMATS:
            return arg.dtype
    return args[0].dtype if args else ""


def recipe(op: Op, case: Case, seed: int, arrays: Any = None) -> Recipe:
    """The inputs of a case, or `arrays` (a saved case's) in their places.

    NoSuchSampleError, or NotApplicableError of shapes.
    """
    known = samples(op)
    if case.sample >= len(known):
        raise NoSuchSampleError(f"{case.id}: {op.name} has {len(known)} samples, counted from s0")
    sample = known[case.sample]
    plain = tensors_of(sample)
    main = main_dtype(plain)
    slots: list[Slot] = []

    def describe(arg: Arg) -> Slot:
        position = len(slots)
        changed = reshaped(case.shape, arg, plain)
        if case.dtype and arg.dtype == main:
            changed = replace(changed, dtype=case.dtype)
        if case.fill == "sweep":
            changed = fills.whole_range(changed)
        array = fills.values(changed, case, seed, position) if arrays is None else arrays[position]
        varied = case.layout == "expanded" and changed.values is None
        if varied and changed.shape and changed.shape[0]:
            array = np.ascontiguousarray(np.broadcast_to(array[:1], array.shape))
        slots.append(Slot(changed, array))
        return slots[-1]

    args, kwargs = sample.map(describe)
    return Recipe(args, kwargs, slots, sample.error)


def _walk(value: Any, change: Callable[[Slot], Any], number: Any) -> Any:
    if isinstance(value, Slot):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_walk(v, change, number) for v in value)
    if number is not None and value.__class__ in (int, float):
        return number(value)
    return value


def _dtype(name: str, value: Any) -> Any:
    return dtype_of(value) if name == "dtype" and isinstance(value, str) else value


def describe(slot: Slot, layout: str) -> str:
    """`float16[3, 4] transposed`."""
    shape = ", ".join(map(str, slot.arg.shape))
    return f"{slot.arg.dtype}[{shape}]" + ("" if layout == "contiguous" else f" {layout}")
