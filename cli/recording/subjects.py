"""Makes a recorded launch into a subject of `check`: the operator's formula, on its arguments.

Where a spec row states the formula, header parameters are its arguments. Where a torch row's call
does, its schema's arguments are read back from the places where the row puts them; a value that
the row computes for the call is not asked for again.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from aclnn_bindings import ScalarSpec
from aclnn_bindings.interface.dtypes import DTYPES
from mindtorch.ops.samples import Arg, Sample

from ..conformance.operators.derived import DerivedOperator, candidates
from ..conformance.operators.find import subject as subject_of
from ..conformance.operators.operator import Operator
from .values import Array, Scalar, Tensor, Unknown

# Asks for speed instead of precision; the formula is the same.
_PRECISION: Final = ("cubeMathType",)

Held = Mapping[str, Sequence[Any]]


class NotAskableError(LookupError):
    """A launch that no formula here can be asked about; the message says what is missing."""


def subject(
    name: str, launches: Sequence[tuple[Mapping[str, Any], Held]], declarations: Any
) -> Any:
    """The operator `name` with the launches as its samples, in order.

    Each is its arguments by header name, and the elements that tensors had (or nothing, and then
    fresh ones are drawn). UnknownSubjectError without a formula, NotAskableError where
    arguments do not fit it.
    """
    operator = subject_of(name, declarations)
    if isinstance(operator, Operator):
        taken = operator.known
        renamed = operator.spec.renamed
        samples = [_of_spec(taken, renamed, *launch) for launch in launches]
        return Operator(operator.signature, replace(operator.spec, samples=lambda: samples))
    if isinstance(operator, DerivedOperator):
        return _derived(operator, launches)
    raise NotAskableError(f"{name}: its formula takes no recorded arguments")


def _of_spec(
    taken: Mapping[str, Any],
    renamed: Mapping[str, str],
    arguments: Mapping[str, Any],
    contents: Held,
) -> Sample:
    kwargs = {}
    for param, value in arguments.items():
        name = renamed.get(param, param)
        if name in taken:
            kwargs[name] = sample_value(param, value, contents.get(param))
    return Sample((), kwargs)


def _derived(
    operator: DerivedOperator, launches: Sequence[tuple[Mapping[str, Any], Held]]
) -> DerivedOperator:
    """Of the rows that call the operator, the one that asks for the arguments recorded."""
    why: NotAskableError | None = None
    for candidate in candidates(operator.signature):
        try:
            samples = [_of_row(candidate, *launch) for launch in launches]
        except NotAskableError as error:
            why = why or error
            continue
        candidate.__dict__["_samples"] = samples
        return candidate
    raise why or NotAskableError(f"{operator.name}: no row calls it")


def _of_row(operator: DerivedOperator, arguments: Mapping[str, Any], contents: Held) -> Sample:
    """The launch as a sample of the row, if the row then asks for the same launch."""
    base = operator.name.replace("aclnnInplace", "aclnn", 1) if operator.inplace else operator.name
    why = f"{operator.name}: no row asks for it with these arguments"
    for call in (c for c in operator.op.kernels.aclnn if c.name == base):
        call_args = _inplace(call.args) if operator.inplace else call.args
        sample = _read_back(operator, call_args, arguments, contents)
        if sample is None:
            continue
        if _asks_for(operator, sample, arguments):
            return sample
    raise NotAskableError(why)


def _asks_for(operator: DerivedOperator, sample: Sample, arguments: Mapping[str, Any]) -> bool:
    """Whether the row, called with the sample, makes a launch with the recorded arguments."""
    try:
        specs = operator.asked(sample)
    except Exception:
        return False
    rank = next((len(v.shape) for v in arguments.values() if isinstance(v, Tensor)), 0)
    return specs is not None and all(
        _same(specs[name], arguments[name], rank)
        for name in specs
        if name in arguments and name not in _PRECISION
    )


def _same(asked: Any, recorded: Any, rank: int) -> bool:
    """Equal arguments; dimensions of a tensor of `rank` may count from either end."""
    if isinstance(asked, ScalarSpec):
        asked = asked.value
    if isinstance(recorded, Tensor):
        return getattr(asked, "shape", None) == recorded.shape
    if isinstance(recorded, Scalar):
        return _near(asked, number(recorded))
    if isinstance(recorded, Array):
        pairs = zip(asked or (), recorded.values, strict=False)
        return len(asked or ()) == len(recorded.values) and all(
            a == r or (r < 0 and a == r + rank) for a, r in pairs
        )
    if isinstance(recorded, tuple):
        return isinstance(asked, tuple | list) and len(asked) == len(recorded)
    if isinstance(recorded, int | float) and isinstance(asked, int | float | bool):
        return _near(asked, recorded) or (recorded < 0 and asked == recorded + rank)
    return isinstance(asked, str) == isinstance(recorded, str)


def _near(asked: Any, recorded: Any) -> bool:
    """Numbers reach an operator in its own precision."""
    if not isinstance(asked, int | float | complex):
        return False
    if asked != asked or recorded != recorded:
        return asked != asked and recorded != recorded
    return bool(asked == recorded or abs(asked - recorded) <= 1e-6 * abs(recorded))


def _inplace(args: Sequence[Any]) -> Sequence[Any]:
    """In-place forms take the same arguments without the result."""
    return [a for a in args if a != "out"]


def _read_back(
    operator: DerivedOperator,
    call_args: Sequence[Any],
    arguments: Mapping[str, Any],
    contents: Held,
) -> Sample | None:
    """The schema's arguments as the call's places show them; None where one shows nowhere."""
    schema = operator.op.schema.args
    declared = {a.name for a in schema}
    values: dict[str, Any] = {}
    for param, place in zip(operator.signature.params, call_args, strict=False):
        if isinstance(place, str) and place in declared:
            values[place] = sample_value(
                param.name, arguments.get(param.name), contents.get(param.name)
            )
    for arg in (a for a in schema if a.name not in values):
        counts = arg.type.startswith(("int", "float", "bool", "SymInt"))
        guess = _by_name(arg.name, arguments) if counts else None
        if guess is not None:
            values[arg.name] = guess
        elif not arg.has_default and arg.type == "bool":
            values[arg.name] = False
    if any(a.name not in values and not a.has_default for a in schema):
        return None
    ordered = {a.name: values.get(a.name, a.default) for a in schema}
    keyword = {a.name for a in schema if a.keyword_only}
    args = tuple(v for n, v in ordered.items() if n not in keyword)
    return Sample(args, {n: v for n, v in ordered.items() if n in keyword})


def _by_name(name: str, arguments: Mapping[str, Any]) -> Any:
    """A number or numbers that the header calls nearly as the schema does: `dims` for `dim`.

    Whether the guess is right shows when the row asks for the launch with it.
    """
    wanted = name.replace("_", "").lower().removesuffix("s")
    for param, value in arguments.items():
        if param.lower().removesuffix("s") == wanted and not isinstance(value, Tensor | tuple):
            return None if isinstance(value, Unknown) else sample_value(param, value, None)
    return None


def sample_value(param: str, value: Any, contents: Sequence[Any] | None) -> Any:
    """One argument as samples have it; elements where they were kept."""
    if isinstance(value, Tensor):
        return _arg(param, value, contents[0] if contents else None)
    if isinstance(value, tuple):
        known = contents or [None] * len(value)
        return [sample_value(param, v, [h]) for v, h in zip(value, known, strict=True)]
    if isinstance(value, Scalar):
        return number(value)
    if isinstance(value, Array):
        return tuple(value.values)
    if isinstance(value, Unknown):
        raise NotAskableError(f"{param}: its handle was not made by the program's own calls")
    return value


def _arg(param: str, tensor: Tensor, elements: Array | None) -> Arg:
    dtype = DTYPES[tensor.dtype].numpy if tensor.dtype in DTYPES else ""
    if not dtype:
        raise NotAskableError(f"{param}: {tensor.dtype} has no counterpart in numpy")
    if elements is not None:
        return Arg(tensor.shape, dtype, values=elements)
    # Integers may be indices: 0 and 1 are ones into nearly anything.
    return Arg(tensor.shape, dtype, 0, 1) if "int" in dtype else Arg(tensor.shape, dtype)


def number(scalar: Scalar) -> complex:
    """A Python number of an aclScalar's bytes."""
    code = DTYPES[scalar.dtype].code if scalar.dtype in DTYPES else ""
    if scalar.dtype == "BFLOAT16":
        return struct.unpack("<f", b"\0\0" + scalar.data)[0]
    if not code or not scalar.data:
        raise NotAskableError(f"a scalar of {scalar.dtype} has no number in Python")
    parts = struct.unpack(f"<{code}", scalar.data)
    return complex(*parts) if len(parts) == 2 else parts[0]
