"""Owns the inputs of a case: from the row's sample to arrays, the same on every device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mindtorch.ops import OPS
from mindtorch.ops.samples import Arg

from ...judge.precision import Array
from ...plurals import plural
from ..run.tensors import dtype_of
from . import values
from .case import Case
from .inputs import Input, Sampled, main_dtype, samples, tensors_of
from .layouts import REPEATED
from .shapes import reshaped


class NoSuchSampleError(LookupError):
    """The row has fewer samples than the case asks for; the message counts them."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A tensor's place among the arguments, with its description and elements."""

    arg: Arg
    array: Any
    same: int | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """The arguments of a case with a Slot for every tensor."""

    args: list[Any]
    kwargs: dict[str, Any]
    slots: list[Slot]
    error: bool
    together: bool = False

    def fill(self, change: Callable[[Slot], Any], number: Any = None) -> tuple[list[Any], Any]:
        """Arguments with `change(slot)` for tensors and `number(value)` for Python floats."""
        args = [_walk(a, change, number) for a in self.args]
        kwargs = {k: _walk(v, change, number) for k, v in self.kwargs.items()}
        return args, {k: _dtype(k, v) for k, v in kwargs.items()}


def recipe(op: Sampled, case: Case, seed: int, arrays: Any = None) -> Recipe:
    """The inputs of a case, or `arrays` (a saved case's) in their places.

    NoSuchSampleError, or NotApplicableError of shapes.
    """
    if case.designed:
        return _designed(op, case, seed, arrays)
    known = samples(op)
    if case.sample >= len(known):
        raise NoSuchSampleError(
            f"{case.id}: {case.op} has {plural(len(known), 'sample')}, counted from s0"
        )
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
            changed = values.whole_range(changed)
        array = values.values(changed, case, seed, position) if arrays is None else arrays[position]
        if changed.values is None:
            array = _repeating(array, case.layout)
        slots.append(Slot(changed, array))
        return slots[-1]

    args, kwargs = sample.map(describe)
    return Recipe(args, kwargs, slots, sample.error)


_FIELDS = tuple(field.name for field in fields(Arg))


def _designed(op: Any, case: Case, seed: int, arrays: Any) -> Recipe:
    """The inputs of a designed case: its space or declaration makes the call, fills make the
    elements."""
    from .design import sample_of
    from .spaces.pointwise import POINTWISE
    from .spaces.table import space_of

    # A subject, a row, or what says how a row is tested: only the first has a declaration.
    has_declaration = getattr(op, "declaration", None) is not None
    sample = op.sample(case, seed) if has_declaration else sample_of(OPS[case.op], case)
    slots: list[Slot] = []
    marks = tuple(_numbers_of([*sample.args, *sample.kwargs.values()]))

    def describe(arg_: Arg) -> Slot:
        arg = arg_ if isinstance(arg_, Input) else Input(**{n: getattr(arg_, n) for n in _FIELDS})
        if arg.marks != marks:
            arg = replace(arg, marks=marks)
        if arrays is not None:
            array = arrays[len(slots)]
        elif arg.same is not None:
            array = slots[arg.same].array
        elif arg.values is not None:
            array = values.explicit_values(arg)
        else:
            key = f"{case.op}/{arg.shape}/{arg.dtype}/{arg.fill}"
            array = values.designed(arg, key, seed)
            array = _repeating(array, arg.layout)
        slots.append(Slot(arg, array, arg.same))
        return slots[-1]

    args, kwargs = sample.map(describe)
    together = not has_declaration and space_of(case.op) is POINTWISE
    return Recipe(args, kwargs, slots, sample.error, together)


def _numbers_of(arguments: Iterable[Any]) -> Iterator[float]:
    """The numbers that a call states, fractions in lists too: limits, thresholds, factors."""
    for value in arguments:
        if isinstance(value, list | tuple):
            yield from (v for v in value if isinstance(v, float))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield value


def _repeating(array: Array, layout: str) -> Array:
    """Elements that stride 0 can hold: the same along the expanded dimension."""
    if layout not in REPEATED or not array.ndim or not array.size:
        return array
    at = array.ndim // 2 if layout == "middle" and array.ndim > 2 else 0
    first = array.take([0], axis=at)
    return np.ascontiguousarray(np.broadcast_to(first, array.shape))


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
