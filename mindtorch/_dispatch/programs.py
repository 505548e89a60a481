"""Owns programs: the rows that a composite ran for given geometries, run again without its body.

A body decides by shapes, dtypes and plain arguments alone, so that calls with one key run the same
rows. The third such call is recorded; later ones run the recorded plans, where nothing is recorded
for gradients. A body that reads values, draws numbers, warns, or makes tensors otherwise than by
rows has no program (`recording.unrepeatable`, and the checks here).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.views import track_view
from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.geometry import Geometry, Size
from .._tensor.recording import RECORDING, Unrepeatable
from .._tensor.slots import over
from .._tensor.tensor import Tensor
from ..ops.rules import Dynamic
from ..ops.schema import ArgKind, SchemaArgument
from ..ops.source import compiled
from ..ops.spec import Op
from . import plans
from .overrides import PLAIN_TENSORS

_TENSORS = (
    ArgKind.TENSOR,
    ArgKind.OPTIONAL_TENSOR,
    ArgKind.TENSORS,
    ArgKind.OPTIONAL_TENSORS,
    ArgKind.UNION,
)
_PLAIN = frozenset((type(None), bool, int, float, complex, str, Device, Dtype, Size))
_SIGHTS = 2  # calls before the one that is recorded
_RESULT = re.compile(r"\bt\d+\b")
_LARGEST_CONSTANT = 1 << 12  # elements
_MOST_STEPS = 256
_MOST_REFUSALS = 8  # of a composite that never had a program


def lookup(op: Op) -> str:
    """Lines of an entry that make `_key` and run the program of the call where there is one."""
    keys, histories = [], []
    for arg in op.schema.args:
        key, history = _part(arg)
        keys.append(key)
        histories += [history] if history else []
    names = ", ".join(tensor_names(op))
    return (
        "    _key = None\n"
        "    if not MODES.active:\n"
        "        try:\n"
        f"            _muted = ({' or '.join(histories)}) is not None\n"
        f"            _key = ({', '.join(keys)},)\n"
        "            _program = (unrecorded if LOCAL.grad else muted) if _muted else programs\n"
        "            _program = _program.get(_key)\n"
        "            if _program is not None:\n"
        f"                return {{named}}(_program({names}))\n"
        "        except Exception:  # the body says it in its own words\n"
        "            _key = None\n"
    )


def observation(names: str) -> str:
    """Lines of an entry before its body is called: a call whose key comes again is recorded."""
    return (
        "    if _key is not None:\n"
        f"        _answer = observe(_key, _muted, {names})\n"
        "        if _answer is not NotImplemented:\n"
        "            return {named}(_answer)\n"
    )


def _part(arg: SchemaArgument) -> tuple[str, str]:
    """What of an argument is in the key, and where its history is."""
    n, kind = arg.name, arg.kind
    if kind is ArgKind.TENSOR:
        return f"{n}._geom", f"{n}._fn"
    if kind is ArgKind.OPTIONAL_TENSOR:
        return f"None if {n} is None else {n}._geom", f"(None if {n} is None else {n}._fn)"
    if kind is ArgKind.UNION:
        number = f"{n}.__class__ in NUMBERS or {n} is None"
        key = f"({n} or str({n}), {n}.__class__) if {number} else {n}._geom"  # 0.0 is not -0.0
        return key, f"(None if {number} else {n}._fn)"
    if kind in (ArgKind.TENSORS, ArgKind.OPTIONAL_TENSORS):
        listed = f"{n} if {n}.__class__ in LISTS else None"
        one = "t._geom" if kind is ArgKind.TENSORS else "None if t is None else t._geom"
        return f"tuple([{one} for t in ({listed})])", f"first_fn({n})"
    value = f"tuple({n}) if {n}.__class__ is list else {n}"
    if kind is ArgKind.SCALAR or arg.type in ("float", "Number"):
        value = f"{n} or str({n})"
    value = f"({value}, {n}.__class__)"
    return (f"{n} if {n} is D_{n} else {value}" if arg.has_default else value), ""


def tensor_names(op: Op) -> list[str]:
    """The arguments that a program takes."""
    return [a.name for a in op.schema.args if a.kind in _TENSORS]


# Their bodies look at marks of tensors, or leave some: what `is_conj` and `is_neg` answer by.
_OF_MARKS = frozenset(("H", "adjoint", "conj", "imag", "mH", "resolve_conj", "resolve_neg"))


def replays(op: Op) -> bool:
    """Whether calls of a composite may have programs: they read tensors, and write to none."""
    args = op.schema.args
    reads = any(a.kind in _TENSORS for a in args) and not any(a.writes for a in args)
    return reads and op.base_name not in _OF_MARKS


def tables(op: Op) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """An op's programs: of calls without history, and of those under `no_grad` with some."""
    if "programs" not in op.cache:
        op.cache["programs"] = plans.table(), plans.table(), plans.table()
    programs, muted, _ = op.cache["programs"]
    return programs, muted


class Observer:
    """Counts a composite's calls by key, and records the third."""

    def __init__(self, op: Op, body: Callable[..., Any], names: Sequence[str]):
        self._op, self._body, self._names = op, body, names
        self._programs, self._muted = tables(op)
        self._sights = op.cache["programs"][2]
        self._refusals = 0

    def __call__(self, key: Any, muted: bool, /, *args: Any, **kwargs: Any) -> Any:
        """The result of a call that was recorded, NotImplemented where none was."""
        if MODES.active or self._refusals > _MOST_REFUSALS or (muted and LOCAL.grad):
            return NotImplemented
        sight = key, muted
        seen = self._sights.get(sight, 0)
        if seen <= _SIGHTS:
            self._see(sight, seen + 1)
        return self._record(sight, args, kwargs) if seen == _SIGHTS else NotImplemented

    def _record(self, sight: tuple[Any, bool], args: Any, kwargs: dict[str, Any]) -> Any:
        values = dict(zip(self._names, args, strict=False), **kwargs)
        inputs = _inputs(values[n] for n in tensor_names(self._op))
        key, muted = sight
        if len({*map(id, inputs)}) < len(inputs):  # which of them a row takes, the next call tells
            self._sights[sight] = _SIGHTS
            return NotImplemented
        try:
            recorder = Recorder(self._op, values, muted)
            result = recorder.run(self._body, args, kwargs)
            program = recorder.program(result)
        except Unrepeatable:
            self._refusals += 1
            return NotImplemented
        except Exception:  # the entry calls the body again, and says what is wrong
            return NotImplemented
        self._refusals = -(1 << 30)
        (self._muted if muted else self._programs)[key] = program
        return result

    def _see(self, sight: Any, times: int) -> None:
        if len(self._sights) >= plans.LIMIT:
            for table in self._op.cache["programs"]:
                table.clear()
        self._sights[sight] = times


def _inputs(values: Any) -> list[Tensor]:
    flat: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            flat.append(value)
        elif value.__class__ in (tuple, list):
            flat += [v for v in value if isinstance(v, Tensor)]
    return flat


class Recorder:
    """Records one call: each row with its plan and where its arguments come from."""

    def __init__(self, op: Op, values: dict[str, Any], muted: bool):
        self._muted = muted
        self._constants: list[Any] = []
        self._lines: list[tuple[str, str]] = []
        self._views: set[str] = set()  # whose notes only callers read
        self._names = tensor_names(op)
        self._sources: dict[int, tuple[str, Tensor]] = {}
        self._made: list[tuple[Tensor, Geometry, Any]] = []
        self._writes: dict[int, int] = {}
        self._storages: dict[int, str] = {}
        self._inputs: list[tuple[Tensor, Any, int]] = []
        self._foreign: dict[int, Tensor] = {}  # by storage: inputs and constants
        for at, name in enumerate(self._names):
            self._take(f"a{at}", values[name])
        if any(_unknown(v) for n, v in values.items() if n not in self._names):
            raise Unrepeatable

    def _take(self, source: str, value: Any) -> None:
        if isinstance(value, Tensor):
            if type(value) not in PLAIN_TENSORS:
                raise Unrepeatable
            self._sources[id(value)] = source, value
            self._inputs.append((value, value._storage, value._storage.value))
            self._foreign[id(value._storage)] = value
        elif value.__class__ in (tuple, list):
            for at, item in enumerate(value):
                self._take(f"{source}[{at}]", item)
        elif _unknown(value):
            raise Unrepeatable

    def run(self, body: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The body's result, its rows recorded."""
        MODES.active += 1
        RECORDING.recorder = self
        try:
            return body(*args, **kwargs)
        finally:
            RECORDING.recorder = None
            MODES.active -= 1

    def watch(self, op: Op, plan: Any, inplace: bool) -> Any:
        """A plan whose run is recorded."""
        return _Watched(self, op, plan, inplace)

    def look_at(self, plan: Any, target: Tensor | None) -> None:
        """Refuse a row before it runs: what it writes to is another's, or its shape is a value."""
        if len(self._lines) >= _MOST_STEPS or any(g.__class__ is Dynamic for g in plan.outs):
            raise Unrepeatable
        if target is not None and (
            id(target._storage) in self._foreign or not self._source(target).startswith("t")
        ):
            raise Unrepeatable

    def step(self, op: Op, plan: Any, inplace: bool, args: Sequence[Any], result: Any) -> None:
        """Record a row's call."""
        run = self._constant(plan.run)
        at = len(self._lines)
        if inplace:
            target, source = args[0][0], self._source(args[0][0])
            call = f"{run}(({source},), {', '.join(map(self._source, args[1:]))})"
            self._lines.append((f"t{at}", f"{call}; {source}._storage.value += 1"))
            key = id(target._storage)
            self._writes[key] = self._writes.get(key, 0) + 1
            return
        call = f"{run}({', '.join(map(self._source, args))})"
        if self._muted and op.is_view:
            self._views.add(f"t{at}")
        self._lines.append((f"t{at}", call))
        self._make(f"t{at}", result)

    def _make(self, source: str, result: Any) -> None:
        if isinstance(result, Tensor):
            self._sources.setdefault(id(result), (source, result))
            self._made.append((result, result._geom, result._storage))
            self._storages.setdefault(id(result._storage), source)
        elif result.__class__ in (tuple, list):
            for at, item in enumerate(result):
                self._make(f"{source}[{at}]", item)
        else:
            raise Unrepeatable

    def _constant(self, value: Any) -> str:
        self._constants.append(value)
        return f"c{len(self._constants) - 1}"

    def _source(self, value: Any) -> str:
        """The text of an argument or a result."""
        if isinstance(value, Tensor):
            known = self._sources.get(id(value))
            return known[0] if known is not None else self._aside(value)
        if value.__class__ in (tuple, list):
            if not _unknown(value):
                return self._constant(value)
            items = "".join(f"{self._source(v)}, " for v in value)
            return f"({items})" if value.__class__ is tuple else f"[{items}]"
        if hasattr(value, "n_fields"):
            items = "".join(f"{self._source(v)}, " for v in value)
            return f"{self._constant(type(value))}(({items}))"
        if _unknown(value):
            raise Unrepeatable
        return self._constant(value)

    def _aside(self, value: Tensor) -> str:
        """A tensor made by no row: over the memory of a result, or of numbers in the body."""
        source = self._storages.get(id(value._storage))
        if value._base is not None or value._fn is not None or type(value) is not Tensor:
            raise Unrepeatable
        if source is None:
            return self._number(value)
        at = len(self._lines)
        self._lines.append((f"t{at}", f"over({self._constant(value._geom)}, {source}._storage)"))
        self._make(f"t{at}", value)
        return f"t{at}"

    def _number(self, value: Tensor) -> str:
        if id(value._storage) in self._foreign or value._geom.numel > _LARGEST_CONSTANT:
            raise Unrepeatable
        self._foreign[id(value._storage)] = value
        self._sources[id(value)] = self._constant(value), value
        return self._sources[id(value)][0]

    def program(self, result: Any) -> Callable[..., Any]:
        """The recorded rows as a function of the arguments that hold tensors."""
        if _unknown(result, Tensor):
            raise Unrepeatable
        returned = self._source(result)
        self._check(result)
        for at, (name, call) in enumerate(self._lines):
            if name in self._views & _results_in(returned):
                self._lines[at] = name, f"track_view({call})"
        lines = "".join(f"        {line}\n" for line in _released(self._lines, returned))
        params = ", ".join(f"a{at}" for at in range(len(self._names)))
        unpack = ", ".join(f"c{at}" for at in range(len(self._constants)))
        source = (
            f"def make(constants):\n    {unpack}, = constants\n"
            if unpack
            else "def make(constants):\n"
        ) + f"    def program({params}):\n{lines}        return {returned}\n    return program\n"
        program: Callable[..., Any] = _maker(source)(self._constants)
        return program

    def _check(self, result: Any) -> None:
        """Refuse what was changed otherwise than by recorded rows, and constants as results."""
        if any(t._storage is not s or s.value != value for t, s, value in self._inputs):
            raise Unrepeatable
        inputs = {id(s) for _, s, _ in self._inputs}
        if any(id(t._storage) in self._foreign.keys() - inputs for t in _inputs((result,))):
            raise Unrepeatable
        for tensor, geom, storage in self._made:
            if tensor._geom is not geom or tensor._storage is not storage:
                raise Unrepeatable
            key = id(storage)
            if key not in self._foreign and storage.value != self._writes.get(key, 0):
                raise Unrepeatable


class _Watched:
    """A plan whose run a recorder is told of."""

    def __init__(self, recorder: Recorder, op: Op, plan: Any, inplace: bool):
        self._recorder, self._op, self._plan, self._inplace = recorder, op, plan, inplace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    def run(self, *args: Any) -> Any:
        """Run the plan, whose own rows are not recorded."""
        self._recorder.look_at(self._plan, args[0][0] if self._inplace else None)
        RECORDING.recorder = None
        MODES.active -= 1
        try:
            result = self._plan.run(*args)
        finally:
            MODES.active += 1
            RECORDING.recorder = self._recorder
        self._recorder.step(self._op, self._plan, self._inplace, args, result)
        return result


def _unknown(value: Any, *known: type) -> bool:
    """Whether a value is other than numbers, names, and what is made of them."""
    if value.__class__ in _PLAIN or isinstance(value, known):
        return False
    if isinstance(value, tuple | list):
        return any((v.__class__ is float and not v) or _unknown(v, *known) for v in value)
    return True


def _released(lines: Sequence[tuple[str, str]], returned: str) -> list[str]:
    """The program's lines, each result let go after its last use."""
    text: list[str] = []
    later = {name: at for at, (_, call) in enumerate(lines) for name in _results_in(call)}
    results = _results_in(returned)
    for at, (name, call) in enumerate(lines):
        writes = "+= 1" in call
        text.append(call if writes else f"{name} = {call}")
        text += [
            f"{n} = None" for n in sorted(_results_in(call)) if later[n] == at and n not in results
        ]
    return text


def _results_in(call: str) -> set[str]:
    names = call.replace("(", " ").replace(")", " ").replace("[", " ").replace(",", " ")
    return {
        w.partition(".")[0]
        for w in names.split()
        if w[0] == "t" and w[1:].partition(".")[0].isdigit()
    }


@lru_cache(1 << 10)
def _maker(source: str) -> Callable[..., Any]:
    return compiled(source, "program of a composite", {"over": over, "track_view": track_view})
