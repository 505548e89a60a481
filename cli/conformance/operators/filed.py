"""Owns rows of a case file as subjects: one operator, exactly the call that the row states, judged
by our rule and by the row's named standard."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from aclnn_bindings import ScalarSpec
from aclnn_bindings.interface.signature import Direction, Kind, OpSignature, Param
from mindtorch.ops.samples import Sample

from ...judge import standards
from ...judge.precision import numpy_dtype
from ...spec.declaration import Declaration
from ..cases.case import ACL_DTYPES, Case
from ..cases.case_file import MARK, CaseFile, CaseFileError, FileCase, invalid, read
from ..cases.claims import Claims
from ..cases.inputs import Input
from ..cases.layouts import StorageLayout, dense, explicit, view
from ..cases.recipe import Recipe, Slot
from ..record.result import Result
from ..run.reference import Golden, ReferenceRefusesError
from ..run.subject import Law, UnknownSubjectError
from ..run.trial import Trial
from .kit_specs import kit_spec
from .laws import functional
from .operator import Operator
from .row import MISSING

_CODES: Final = {name: acl for acl, name in ACL_DTYPES.items()}
_ARRAYS: Final = (Kind.INT_ARRAY, Kind.BOOL_ARRAY, Kind.FLOAT_ARRAY)
_RANGE: Final = (-2, 2)
# The kit's rule for which parameters are results.
_ENDS: Final = ("Ref", "Out", "Output", "OutOptional", "OutputOptional")
_NO_RESULTS: Final = ("gradOutput", "gradOut", "grad_output", "attentionOut")


def describe(path: Path, sheet: str, rerun: bool, named: Sequence[str], deciding: str) -> str:
    """What workers are told of a case file."""
    return json.dumps([str(path.resolve()), sheet, rerun, list(named), deciding])


def case_ids(described: str) -> list[str]:
    """The case of each row."""
    return [f"{subject_name(row)}/functional/plain" for row in _file(described).rows]


def subject_name(row: FileCase) -> str:
    """`aclnnAdd@small`: what a slash or a space in a row's name would break is `_`."""
    return f"{row.api}{MARK}{''.join(c if c.isalnum() or c in '_-.' else '_' for c in row.name)}"


@cache
def _file(described: str) -> CaseFile:
    path, sheet, rerun, *_ = json.loads(described)
    return read(Path(path), sheet, rerun)


def subject(described: str, name: str, declarations: Any) -> FiledOperator:
    """The subject of a row; UnknownSubjectError where there is none, or no formula."""
    from .find import subject as operator_of

    _, _, _, named, deciding = json.loads(described)
    file = _file(described)
    row = next((r for r in file.rows if subject_name(r) == name), None)
    if row is None:
        raise UnknownSubjectError(f"{name}: {file.path} has no such row")
    base = operator_of(row.api, declarations)
    if not isinstance(base, Operator):
        raise UnknownSubjectError(f"{row.api}: its formula is a composition of torch's rows, which "
                                  "takes no case files: give --golden")  # fmt: skip
    return FiledOperator(base, FiledCall(file.path, row, base.signature), named, deciding)


def validate(described: str, declared: Any) -> None:
    """CaseFileError for a row that does not fit the header of its operator, if that is declared."""
    file = _file(described)
    for row in file.rows:
        if declared is not None and row.api in declared.ops:
            call = FiledCall(file.path, row, declared.ops[row.api])
            for tensor in call.tensors:
                call.layout(tensor)


class FiledCall:
    """What a row says of each parameter of the header."""

    def __init__(self, path: Path, row: FileCase, signature: OpSignature) -> None:
        self.path, self.row, self.params = path, row, signature.params
        self.cells, self.api = row.cells, row.api
        self.attributes: Mapping[str, Any] = row.cells.get("attributes", {})
        self.tensors = [p for p in self.params if p.kind in (Kind.TENSOR, Kind.TENSOR_LIST)]
        shapes = row.cells["tensor_view_shapes"]
        if len(shapes) != len(self.tensors):
            raise self._wrong("tensor_view_shapes", f"{len(self.tensors)} shapes, one for each of "
                              + ", ".join(p.name for p in self.tensors))  # fmt: skip
        names = [p.name for p in self.params]
        for name in self.attributes:
            if name not in names:
                raise self._wrong("attributes", f"parameters of the header, not {name!r}: "
                                  + ", ".join(names))  # fmt: skip
        self.outs = self._outs()
        if row.cells.get("output_inplace_indexes") and not any(
            p.direction is Direction.INOUT for p in self.params
        ):
            raise self._wrong("output_inplace_indexes", "nothing: a result that shares an input's "
                              "memory is taken from the header (…Ref) alone")  # fmt: skip

    def _wrong(self, column: str, expected: str) -> CaseFileError:
        return invalid(self.path, self.row, column, expected)

    def _outs(self) -> set[str]:
        indexes = self.cells.get("output_tensor_indexes")
        if indexes is not None:
            if not all(0 <= i < len(self.tensors) for i in indexes):
                raise self._wrong("output_tensor_indexes", f"0 to {len(self.tensors) - 1}")
            return {self.tensors[i].name for i in indexes}
        declared = {p.name for p in self.tensors if p.direction is Direction.OUT}
        named = {p.name for p in self.tensors
                 if (p.name.endswith(_ENDS) or p.name in ("output", "out"))
                 and p.name not in _NO_RESULTS}  # fmt: skip
        return declared or named or {self.tensors[-1].name}

    def cell(self, column: str, param: Param, default: Any) -> Any:
        """A tensor's part of a cell; one value stands for all, None for the default."""
        value = self.cells.get(column)
        if value is None or isinstance(value, str):
            return default if value is None else value
        at = self.tensors.index(param)
        inputs = [p for p in self.tensors if p.name not in self.outs]
        if len(value) == len(self.tensors):
            part = value[at]
        elif column == "input_data_ranges" and len(value) == len(inputs):
            part = value[inputs.index(param)] if param in inputs else None
        else:
            raise self._wrong(column, f"{len(self.tensors)} values, one for each of "
                              + ", ".join(p.name for p in self.tensors))  # fmt: skip
        return default if part is None else part

    def dtype(self, param: Param) -> str:
        """The dtype of a tensor parameter, of a list that of its first."""
        value = self.cell("tensor_dtypes", param, "float32")
        while isinstance(value, tuple):
            value = value[0]
        return str(value)

    def layout(self, param: Param) -> str:
        """How a tensor lies, in the words of `layouts.place`; "" for contiguous."""
        strides = self.cell("tensor_view_strides", param, None)
        offset = self.cell("tensor_view_offsets", param, 0)
        storage = self.cell("tensor_storage_shapes", param, None)
        shape = self.cell("tensor_view_shapes", param, ())
        if strides is None and not offset and storage is None:
            return ""
        steps = tuple(strides) if strides is not None else dense(shape)
        if len(steps) != len(shape):
            raise self._wrong("tensor_view_strides", f"{len(shape)} strides for {param.name}")
        last = offset + sum((n - 1) * s for n, s in zip(shape, steps, strict=True) if n)
        room = prod(storage) if storage is not None else last + 1
        if last >= room:
            raise self._wrong("tensor_storage_shapes", f"room for element {last} of {param.name}")
        return explicit(steps, offset, room)

    def argument(self, param: Param, seed: int) -> Any:
        """The value of a parameter as samples have it."""
        if param.name in self.attributes:
            value = self.attributes[param.name]
            if param.kind is Kind.TENSOR:
                array = np.asarray(value)
                return Input(array.shape, self._listed_dtype(param), values=array)
            return tuple(value) if param.kind in _ARRAYS else value
        if param.kind not in (Kind.TENSOR, Kind.TENSOR_LIST):
            return self._scalar(param, seed)
        shape = self.cell("tensor_view_shapes", param, None)
        if shape is None:
            return None
        if param.kind is Kind.TENSOR:
            return self._tensor(param, tuple(shape), self.dtype(param), seed, 0)
        dtypes = self.cell("tensor_dtypes", param, "float32")
        each = dtypes if isinstance(dtypes, tuple) else (dtypes,) * len(shape)
        return [self._tensor(param, tuple(s), d, seed, i)
                for i, (s, d) in enumerate(zip(shape, each, strict=True))]  # fmt: skip

    def _listed_dtype(self, param: Param) -> str:
        return self.dtype(param) if "tensor_dtypes" in self.cells else "int64"

    def _scalar(self, param: Param, seed: int) -> Any:
        """A scalar from its range; nothing where the row gives no value."""
        ranges = self.cells.get("scalar_data_ranges")
        scalars = [p for p in self.params if p.kind in (Kind.SCALAR, Kind.SCALAR_LIST)]
        if ranges is None or param not in scalars:
            return None
        low, high = ranges[scalars.index(param)][:2]
        return float(self._generator(param, seed).uniform(low, high))

    def scalar_dtype(self, param: Param) -> str:
        """ACL's dtype of a scalar parameter; "" where the row states none."""
        dtypes = self.cells.get("scalar_dtypes")
        scalars = [p.name for p in self.params if p.kind in (Kind.SCALAR, Kind.SCALAR_LIST)]
        if dtypes is None or param.name not in scalars:
            return ""
        return _CODES.get(dtypes[scalars.index(param.name)] if isinstance(dtypes, tuple)
                          else dtypes, "")  # fmt: skip

    def _generator(self, param: Param, seed: int, member: int = 0) -> np.random.Generator:
        key = zlib.crc32(f"{self.row.name}/{param.name}/{member}".encode())
        return np.random.default_rng((seed, key))

    def _tensor(
        self, param: Param, shape: tuple[int, ...], dtype: str, seed: int, member: int
    ) -> Input:
        low, high, *must = self.cell("input_data_ranges", param, _RANGE)
        rng, kind = self._generator(param, seed, member), numpy_dtype(dtype)
        array: Any
        if kind == np.bool_:
            array = rng.random(shape) < 0.5
        elif kind.kind in "iu":
            bounds = np.iinfo(kind)
            array = rng.integers(max(int(np.ceil(low)), bounds.min), min(int(high), bounds.max),
                                 shape, endpoint=True)  # fmt: skip
        else:
            array = np.asarray(rng.uniform(low, high, shape))
            if kind.kind == "c":
                array = array + 1j * rng.uniform(low, high, shape)
        flat = np.asarray(array).reshape(-1)
        flat[: len(must)] = must[: flat.size]
        layout = self.layout(param) or "contiguous"
        return Input(shape, dtype, layout=layout,
                     values=_as_stored(flat.reshape(shape).astype(kind), layout))  # fmt: skip


def _as_stored(array: Any, layout: str) -> Any:
    """The elements that a view with strides of 0 or overlaps can hold."""
    if layout == "contiguous" or not array.size:
        return array
    from ..cases.layouts import place

    at: StorageLayout = place(layout, array.shape)
    storage = np.zeros(at.numel, array.dtype)
    view(storage, array.shape, at)[...] = array
    return np.array(view(storage, array.shape, at))


class FiledOperator(Operator):
    """An operator on the call of one row."""

    def __init__(
        self, base: Operator, call: FiledCall, named: Sequence[str], deciding: str
    ) -> None:
        outs = {n: call.dtype(p) for p in call.tensors
                if (n := base.spec.renamed.get(p.name, p.name)) in base.spec.outs}  # fmt: skip
        super().__init__(base.signature, replace(base.spec, outs={**base.spec.outs, **outs}))
        self.name, self.filed, self.forms = base.name, call, ()
        self.named, self.deciding = tuple(named), deciding
        self.declaration = Declaration(base.name, {})

    def samples(self) -> list[Sample]:
        return [self._sample(0)]

    def sample(self, _case: Case, seed: int) -> Sample:
        """The row's call."""
        return self._sample(seed)

    def _sample(self, seed: int) -> Sample:
        arguments = {}
        for param in self.filed.params:
            reads = param.name not in self.filed.outs or param.direction is Direction.INOUT
            value = self.filed.argument(param, seed) if reads else None
            if value is not None:
                arguments[self._row_name(param.name)] = value
        return Sample((), arguments)

    def claims(self, declarations: Any, soc: str) -> Claims:
        """What a row states is claimed: a refusal of it is a failure."""
        super().claims(declarations, soc)
        dtypes = {self.filed.dtype(p) for p in self.filed.tensors}
        return Claims(tuple(sorted(dtypes)), source="the row of the case file", person=True)

    def layout(self, param: str) -> str:
        """How a result lies."""
        known = next(p for p in self.filed.tensors if p.name == param)
        return self.filed.layout(known) if known.kind is Kind.TENSOR else ""

    def format(self, param: str) -> str:
        """The aclFormat that the row states."""
        known = next((p for p in self.filed.tensors if p.name == param), None)
        format_ = self.filed.cell("tensor_formats", known, "") if known is not None else ""
        return format_ if isinstance(format_, str) and format_ else super().format(param)

    def _input(self, param: Param, name: str, inputs: Mapping[str, Any]) -> Any:
        value = inputs.get(name)
        if value is None and param.name in self.filed.attributes:
            value = self.filed.attributes[param.name]
        if value is None:
            return super()._input(param, name, inputs)
        if param.kind is Kind.SCALAR and (dtype := self.filed.scalar_dtype(param)):
            return ScalarSpec(value, dtype)
        return value

    def golden(self, recipe: Recipe, need: Any) -> Golden:
        """The reference; an error of it where its results have other shapes than the row's."""
        golden = super().golden(recipe, need)
        for name, group in zip(self.spec.outs, golden.groups, strict=True):
            param = next((p for p in self.filed.tensors if self._row_name(p.name) == name), None)
            if param is None or isinstance(group, tuple) or golden.native[group] is None:
                continue
            shape = self.filed.cell("tensor_view_shapes", param, None)
            have = golden.native[group].shape
            if shape is not None and tuple(shape) != have:
                raise ReferenceRefusesError(ValueError(
                    f"{param.name}: the reference gives shape {list(have)}, "
                    f"row {self.filed.row.line} says {list(shape)}"))  # fmt: skip
        return golden

    def witness(self, recipe: Recipe, golden: Sequence[Any]) -> list[Any]:
        """Another implementation's results: those of the reference where it computes in the
        inputs' own dtypes, as a library on the CPU does; else the reference rounded once."""
        inputs = recipe.kwargs
        spec = kit_spec(self.spec.reference)
        if spec is not None and spec.third_party is not None:
            values = {n: _own_dtype(inputs.get(n)) for n in self.known}
            return [np.asarray(a) for a in spec.witness(values)]
        arguments = {self._python(n): _own_dtype(inputs.get(n, None if d is MISSING else d))
                     for n, d in self.known.items()}  # fmt: skip
        try:
            with np.errstate(all="ignore"):
                returned = self.spec.reference(**arguments)
        except Exception:  # a reference may need higher precision
            return list(golden)
        many = returned if isinstance(returned, tuple) else (returned,)
        flat = [np.asarray(r) for v in many for r in (v if isinstance(v, list) else [v])]
        same = [a.shape for a in flat] == [g.shape for g in golden]
        return flat if same else list(golden)

    def laws(self) -> Mapping[str, Law]:
        return {"functional": _with_standards}


def _own_dtype(value: Any) -> Any:
    """What a reference takes, as it is on the device."""
    if isinstance(value, list):
        return [_own_dtype(v) for v in value]
    return value.array if isinstance(value, Slot) else value


def _with_standards(trial: Trial) -> Result:
    """Our verdict, with that of each named standard beside it."""
    operator: Any = trial.subject
    result = functional(trial)
    if len(trial.outputs) != len(trial.expected) or result.verdict in ("SKIP", "UNSUPPORTED"):
        return result
    lines, passed = [], True
    for outcome, place in _outcomes(trial, operator):
        passed &= outcome.passed
        word = "PASS" if outcome.passed else "FAIL"
        lines.append(f"{outcome.standard}{place}: {word} ({outcome.text})")
    result = result.with_(standards=tuple(lines))
    if operator.deciding == "ours" or result.verdict not in ("PASS", "FAIL", "MISTRUSTED"):
        return result
    if passed:
        return result.with_(verdict="PASS", reason="")
    return result.with_(verdict="FAIL", reason=next(x for x in lines if ": FAIL" in x))


def _outcomes(trial: Trial, operator: Any) -> Iterator[tuple[standards.StandardVerdict, str]]:
    """What each standard says of each result, and which result it is: those that are named, else
    the TestSpec's own comparison or tolerance, else the dtype's standard."""
    spec, stated = kit_spec(operator.spec.reference), _numbers(operator.filed.cells)
    table = spec.tolerance if spec is not None else {}
    pairs = [(got, np.asarray(e)) for got, e in zip(trial.outputs, trial.expected, strict=True)]
    chosen = {name for name, _ in table.values()} | set(operator.named)
    witness: Sequence[Any] = [None] * len(pairs)
    if "cross_check" in chosen:
        rounded = [expected.astype(got.dtype) for got, expected in pairs]
        witness = operator.witness(trial.recipe, rounded)
    for name in operator.named or ("",):
        for i, (got, expected) in enumerate(pairs):
            place = f" of result {i}" if len(pairs) > 1 else ""
            dtype = got.dtype.name
            if not name and spec is not None and spec.compare is not None:
                agrees, text = spec.agrees(got, expected.astype(got.dtype))
                yield standards.StandardVerdict("compare", agrees, text), place
                continue
            own, numbers = table.get(dtype, (standards.default(dtype), stated))
            yield standards.judge(name or own, got, expected, dtype,
                                  stated if name else numbers, witness[i]), place  # fmt: skip


def _numbers(cells: Mapping[str, Any]) -> standards.Tolerances:
    numbers: Any = cells.get("precision_tolerances")
    while isinstance(numbers, list | tuple) and numbers and isinstance(numbers[0], list | tuple):
        numbers = numbers[0]
    pair = list(numbers) if isinstance(numbers, list | tuple) else [numbers]
    absolute = float(cells.get("absolute_precision", 1e-8))
    return standards.Tolerances(pair[0] if pair else None, pair[1] if len(pair) > 1 else None,
                                absolute)  # fmt: skip
