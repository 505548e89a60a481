"""Makes a recorded launch into a subject of `check`: the operator's formula, on its arguments.

Where a spec row states the formula, header parameters are its arguments. Where a torch row's call
does, its schema's arguments are read back from the places where the row puts them; a value that
the row computes for the call is not asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any, Final

from aclnn_bindings import ScalarSpec
from aclnn_bindings.call.specs import TensorSpec
from aclnn_bindings.interface.dtypes import DTYPES
from aclnn_bindings.interface.signature import Direction, OpSignature, Param
from mindtorch.ops.samples import Arg, Sample

from ..conformance.operators.derived import DerivedOperator, candidates
from ..conformance.operators.find import subject as subject_of
from ..conformance.operators.operator import Operator
from ..conformance.operators.row import Spec
from ..conformance.run.tensors import dtype_of
from .values import Array, NotAskableError, RecordedScalar, RecordedTensor, Unknown, number

# Of these the formula is the same: precision, the order of what is equal, whether indices are
# looked at before they are used.
_NOT_IN_FORMULA: Final = ("cubeMathType", "stable", "unsafe")
# Of a launch, no argument of the operator.
_OF_LAUNCH: Final = frozenset(("stream", "workspaceSize", "preparedBy", "executor"))
_COUNTS: Final = ("int", "float", "bool", "SymInt", "Scalar?", "number")
_TRIALS: Final = 64  # samples that are tried for one launch

LiveObjects = Mapping[str, Sequence[Any]]


def subject(
    name: str, launches: Sequence[tuple[Mapping[str, Any], LiveObjects]], declarations: Any
) -> Any:
    """The operator `name` with the launches as its samples, in order.

    Each is its arguments by header name, and the elements that tensors had (or nothing, and then
    fresh ones are drawn). UnknownSubjectError without a formula, NotAskableError where
    arguments do not fit it.
    """
    operator = subject_of(name, declarations)
    if isinstance(operator, Operator):
        known = operator.known
        renamed = operator.spec.renamed
        samples = [_of_spec(known, renamed, *launch) for launch in launches]
        row = operator.spec
        outs = _result_dtypes(row.outs, renamed, launches[-1][0])
        recorded = replace(row, samples=lambda: samples, outs=outs)
        return RecordedOperator(operator.signature, recorded, launches[-1][0])
    if isinstance(operator, DerivedOperator):
        return _derived(operator, launches)
    raise NotAskableError(f"{name}: its formula takes no recorded arguments")


class RecordedOperator(Operator):
    """An operator on the arguments of a launch: what no sample has, it has as it was recorded."""

    def __init__(self, signature: OpSignature, row: Spec, arguments: Mapping[str, Any]) -> None:
        super().__init__(signature, row)
        self._recorded = arguments

    def _input(self, param: Param, name: str, drawn: Mapping[str, Any]) -> Any:
        value = self._recorded.get(param.name)
        if name not in drawn and isinstance(value, int | float | str):
            return value
        return super()._input(param, name, drawn)


def _result_dtypes(
    outs: Mapping[str, str], renamed: Mapping[str, str], arguments: Mapping[str, Any]
) -> dict[str, str]:
    """Dtypes of results as the program asked for them, where numpy has them."""
    recorded = {
        renamed.get(n, n): v.dtype for n, v in arguments.items() if isinstance(v, RecordedTensor)
    }
    names = {n: DTYPES[dtype].numpy for n, dtype in recorded.items() if dtype in DTYPES}
    return {name: names.get(name) or rule for name, rule in outs.items()}


def _of_spec(
    known: Mapping[str, Any],
    renamed: Mapping[str, str],
    arguments: Mapping[str, Any],
    contents: LiveObjects,
) -> Sample:
    kwargs = {}
    for param, value in arguments.items():
        name = renamed.get(param, param)
        if name in known:
            kwargs[name] = sample_value(param, value, contents.get(param))
    return Sample((), kwargs)


def _derived(
    operator: DerivedOperator, launches: Sequence[tuple[Mapping[str, Any], LiveObjects]]
) -> DerivedOperator:
    """Of the rows that call the operator, the one that asks for the arguments recorded: for
    results of the same dtypes, else for other integers, of which the numbers are compared."""
    why: NotAskableError | None = None
    rows = [row.unconditional() for row in candidates(operator.signature)]
    for integers, candidate in ((integers, row) for integers in (False, True) for row in rows):
        try:
            samples = [_of_row(candidate, *launch, integers) for launch in launches]
        except NotAskableError as error:
            why = why or error
            continue
        return candidate.with_samples(samples)
    raise why or NotAskableError(f"{operator.name}: no row calls it")


def _of_row(
    operator: DerivedOperator, arguments: Mapping[str, Any], contents: LiveObjects, integers: bool
) -> Sample:
    """The launch as a sample of the row, if the row then asks for the same launch; with `integers`
    also if for results of other integers."""
    base = operator.name.replace("aclnnInplace", "aclnn", 1) if operator.inplace else operator.name
    why = f"{operator.name}: no row asks for it with these arguments"
    for call in (c for c in operator.op.kernels.aclnn if c.name == base):
        call_args = _inplace(call.args) if operator.inplace else call.args
        for sample in _read_back(operator, call_args, arguments, contents):
            if _asks_for(operator, sample, arguments, integers):
                return sample
    raise NotAskableError(why)


def _asks_for(
    operator: DerivedOperator, sample: Sample, arguments: Mapping[str, Any], integers: bool
) -> bool:
    """Whether the row, called with the sample, makes a launch with the recorded arguments."""
    try:
        specs = operator.asked(sample)
    except Exception:
        return False
    rank = next((len(v.shape) for v in arguments.values() if isinstance(v, RecordedTensor)), 0)
    written = [p.name for p in operator.signature.params if p.direction is not Direction.IN]
    if specs is None:
        return False
    if not all(_same_dtype(specs.get(n), arguments.get(n), integers) for n in written):
        return False
    return all(
        _same(specs[name], arguments[name], rank)
        for name in specs
        if name in arguments
        and name not in _NOT_IN_FORMULA
        and (arguments[name] is not None or name not in written)  # a result nobody asked for
    )


def _same_dtype(expected: Any, recorded: Any, integers: bool) -> bool:
    """Whether a result has the dtype that the row gives it; with `integers` any of these does."""
    if not isinstance(recorded, RecordedTensor) or not isinstance(expected, TensorSpec):
        return True
    kinds = [DTYPES[n].numpy if n in DTYPES else n for n in (expected.dtype, recorded.dtype)]
    return kinds[0] == kinds[1] or (integers and all("int" in kind for kind in kinds))


def _same(expected: Any, recorded: Any, rank: int) -> bool:
    """Equal arguments; dimensions of a tensor of `rank` may count from either end."""
    if isinstance(expected, ScalarSpec):
        expected = expected.value
    if expected is None or recorded is None:
        return expected is recorded
    if isinstance(recorded, RecordedTensor):
        return getattr(expected, "shape", None) == recorded.shape
    if isinstance(recorded, RecordedScalar):
        return _near(expected, number(recorded))
    if isinstance(recorded, Array):
        pairs = zip(expected or (), recorded.values, strict=False)
        if not recorded.values and expected and rank:  # of no dimension: of all of them
            return sorted(expected) == list(range(rank))
        return len(expected or ()) == len(recorded.values) and all(
            a == r or (r < 0 and a == r + rank) for a, r in pairs
        )
    if isinstance(recorded, tuple):
        return isinstance(expected, tuple | list) and len(expected) == len(recorded)
    if isinstance(recorded, int | float) and isinstance(expected, int | float | bool):
        return _near(expected, recorded) or (recorded < 0 and expected == recorded + rank)
    return isinstance(expected, str) == isinstance(recorded, str)


def _near(expected: Any, recorded: Any) -> bool:
    """Numbers reach an operator in its own precision."""
    if not isinstance(expected, int | float | complex):
        return False
    if expected != expected or recorded != recorded:
        return expected != expected and recorded != recorded
    return bool(expected == recorded or abs(expected - recorded) <= 1e-6 * abs(recorded))


def _inplace(args: Sequence[Any]) -> Sequence[Any]:
    """In-place forms take the same arguments without the result."""
    return [a for a in args if a != "out"]


def _read_back(
    operator: DerivedOperator,
    call_args: Sequence[Any],
    arguments: Mapping[str, Any],
    contents: LiveObjects,
) -> Iterator[Sample]:
    """Samples with the schema's arguments as the call's places show them.

    Of one that shows nowhere, because the row computes what it puts there, everything that was
    recorded is tried: whether it was that shows when the row asks for the launch with it.
    """
    schema = operator.op.schema.args
    declared = {a.name for a in schema}
    values: dict[str, Any] = {}
    for param, place in zip(operator.signature.params, call_args, strict=False):
        if isinstance(place, str) and place in declared:
            values[place] = sample_value(
                param.name, arguments.get(param.name), contents.get(param.name)
            )
    hidden = [arg for arg in schema if arg.name not in values]
    choices = [_choices(arg, arguments) for arg in hidden]
    keyword = {a.name for a in schema if a.keyword_only}
    for trial in islice(product(*choices), _TRIALS):
        own = values | {arg.name: value for arg, value in zip(hidden, trial, strict=True)}
        args = tuple(own[a.name] for a in schema if a.name not in keyword)
        yield Sample(args, {a.name: own[a.name] for a in schema if a.name in keyword})


def _choices(arg: Any, arguments: Mapping[str, Any]) -> list[Any]:
    """What an argument may have been: what bears its name, its default, anything recorded."""
    number = arg.type.startswith(_COUNTS) or "Scalar" in arg.type.split("|")
    guess = _by_name(arg.name, arguments) if number else None
    choices = [] if guess is None else [guess]
    if arg.has_default:
        choices.append(arg.default)
    elif arg.type == "bool":
        choices.append(False)
    if arg.type == "ScalarType":
        recorded = {v.dtype: None for v in arguments.values() if isinstance(v, RecordedTensor)}
        choices += [dtype_of(DTYPES[n].numpy) for n in recorded if n in DTYPES and DTYPES[n].numpy]
    if not number:
        return choices
    for name, value in arguments.items():
        if isinstance(value, RecordedTensor):
            choices += [list(value.shape)] if "[" in arg.type else []
        elif isinstance(value, RecordedScalar | Array | int | float) and name not in _OF_LAUNCH:
            choices.append(sample_value(name, value, None))
    return choices


def _by_name(name: str, arguments: Mapping[str, Any]) -> Any:
    """A number or numbers that the header calls nearly as the schema does: `dims` for `dim`.

    Whether the guess is right shows when the row asks for the launch with it.
    """
    wanted = name.replace("_", "").lower().removesuffix("s")
    for param, value in arguments.items():
        if param.lower().removesuffix("s") == wanted and not isinstance(
            value, RecordedTensor | tuple
        ):
            return None if isinstance(value, Unknown) else sample_value(param, value, None)
    return None


def sample_value(param: str, value: Any, contents: Sequence[Any] | None) -> Any:
    """One argument as samples have it; elements where they were kept."""
    if isinstance(value, RecordedTensor):
        return _arg(param, value, contents[0] if contents else None)
    if isinstance(value, tuple):
        known = contents or [None] * len(value)
        return [sample_value(param, v, [h]) for v, h in zip(value, known, strict=True)]
    if isinstance(value, RecordedScalar):
        return number(value)
    if isinstance(value, Array):
        return tuple(value.values)
    if isinstance(value, Unknown):
        raise NotAskableError(f"{param}: its handle was not made by the program's own calls")
    return value


def _arg(param: str, tensor: RecordedTensor, elements: Array | None) -> Arg:
    dtype = DTYPES[tensor.dtype].numpy if tensor.dtype in DTYPES else ""
    if not dtype:
        raise NotAskableError(f"{param}: {tensor.dtype} has no counterpart in numpy")
    if elements is not None:
        return Arg(tensor.shape, dtype, values=elements)
    # Integers may be indices: 0 and 1 are ones into nearly anything.
    return Arg(tensor.shape, dtype, 0, 1) if "int" in dtype else Arg(tensor.shape, dtype)
