"""Owns a run from selection to record: which cases, dealt how, recorded where; prints nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from ...plurals import plural
from ...spec.errors import near, undeclared
from ..cases.case import CONTRACTS, ITEMS, Case, parse
from ..cases.cases import cases
from ..cases.contract import cases_of as contract_of
from ..cases.inputs import samples
from ..cases.shard import CaseShard
from ..operators.families import in_family, operator_families, without_formula
from ..record import journal, known, votes
from ..record.result import Counts, Result
from . import chips
from .batches import batches_of
from .bits import unpack
from .comparing import ENDINGS, bits_folder, ended_again, repeats, verdicts_of
from .devices import devices
from .lane import Lane
from .lost_cases import LostCases
from .pool import Batch, EnvironmentFailedError, Lost, Note, Pool, Scheduler, Setup
from .products import Products
from .request import RunRequest
from .subject import PREFIX

__all__ = [
    "NothingSelectedError", "Progress", "Run", "RunRequest", "begin", "declarations", "find_ops",
    "members", "select", "selection",
]  # fmt: skip


class NothingSelectedError(ValueError):
    """The selection is empty; the message says what was asked and what there is."""


@dataclass(slots=True)
class Run:
    """A run in progress: iterate `results()`; everything is in the journal as well."""

    request: RunRequest
    pool: Scheduler
    environment: dict[str, Any]
    batches: list[Batch]
    total: int
    journal: journal.Journal
    counts: Counts = field(default_factory=Counts)
    seconds: float = 0.0
    done: int = 0
    stopped: str = ""
    deadline: float = 0.0
    lost: list[Lost] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    deviations: list[votes.Deviation] = field(default_factory=list)
    _judged: set[tuple[str, int, str]] = field(default_factory=set)

    def results(self) -> Iterator[Result]:
        """Every result, those of a resumed journal first; the journal gets an end line."""
        started = time.monotonic()
        interrupted = True
        try:
            for result in self.request.done.values():
                yield self._take(result)
            voting: list[Result] = []
            lost = self._lost_cases()
            for outcome in self._outcomes(self.batches):
                explained = lost.explain(outcome) if lost is not None else outcome
                result = known.apply(explained, self.request.issues, self.environment)
                self.journal.result(result)
                self._hold_budget()
                self.seconds = time.monotonic() - started
                if self.request.compare:
                    voting.append(result)
                yield self._take(result)
            if self.request.compare and not self.request.items:
                self._vote([*self.request.done.values(), *voting])
            interrupted = False
        except journal.JournalFullError as error:
            self.stopped = str(error.strerror)
        finally:
            self.seconds = time.monotonic() - started
            self.pool.stop()
            if not interrupted:
                self._health()
            self.journal.last(self._ending(interrupted))
            self.journal.close()

    def _lost_cases(self) -> LostCases | None:
        """Explains crashes and hangs, where one device runs named cases without a deadline."""
        request = self.request
        if request.compare or request.items or request.minutes or request.setup.until:
            return None
        if request.scheduler is not None:
            return None
        return LostCases(request.setup, partial(declarations, request.setup),
                         str(self.environment.get("soc", "")), request.save)  # fmt: skip

    def _hold_budget(self) -> None:
        """Deal no more cases once the budget is spent."""
        if self.deadline and time.monotonic() > self.deadline and isinstance(self.pool, Pool):
            self.pool.drain()

    @property
    def left_out(self) -> tuple[str, ...]:
        """The cases that a spent budget left out."""
        if not self.deadline or self.stopped:
            return ()
        planned = ((case, b.seed, b.device) for b in self.batches for case in b.cases)
        return tuple(key[0] for key in planned if key not in self._judged)

    def _health(self) -> None:
        """Record the counters of chips that were read before the run, as they are after it."""
        before = self.environment.get("chips", {})
        for device, chip in chips.read([*before], self.request.setup, identity=False).items():
            with contextlib.suppress(journal.JournalFullError):  # the end line says so
                self.journal.write("health", {"device": device, **chip})

    def _ending(self, interrupted: bool) -> dict[str, Any]:
        ending = {"seconds": round(self.seconds, 3), "replaced": self.pool.replaced,
                  "interrupted": interrupted, "ended": journal.now()}  # fmt: skip
        if self.left_out:
            ending |= {"budget": self.request.budget, "left_out": len(self.left_out)}
        return {**ending, "stopped": self.stopped} if self.stopped else ending

    def _outcomes(self, batches: Sequence[Batch]) -> Iterator[Result]:
        """Results of batches; what else the scheduler tells goes to the journal."""
        for event in self.pool.results(batches):
            if isinstance(event, Result):
                yield event
            elif isinstance(event, Lost):
                self.lost.append(event)
                self.journal.write("lost", event.as_json())
            elif event.kind != "beat":
                self._note(event)

    def _note(self, note: Note) -> None:
        outputs = note.data.get("outputs")
        if outputs is not None:  # of a node of a cluster, whose disk nobody else sees
            data = {k: v for k, v in note.data.items() if k != "outputs"}
            unpack(bits_folder(self.journal.path), str(data["case"]), int(data["seed"]), outputs)
            note = Note(note.kind, data)
        self.notes.append(note)
        self.journal.write(note.kind, note.data)

    def _vote(self, results: Sequence[Result]) -> None:
        """Let devices vote; where they differ, ask both sides how often that comes."""
        folder = bits_folder(self.journal.path)
        for again in self._outcomes(repeats(results, folder)):
            # Notes tell what repetitions gave, but of a worker that ended in one.
            if again.verdict in ENDINGS:
                self._note(ended_again(again, results))
        self.deviations = verdicts_of(results, self.notes, folder)
        for deviation in self.deviations:
            self.journal.write("deviation", deviation.line())

    def _take(self, result: Result) -> Result:
        self.counts.add(result)
        self._judged.add((result.case, result.seed, result.device * self.request.compare))
        self.done += 1
        return result


def begin(request: RunRequest, path: Path) -> Run:
    """Start a worker, select the cases, write the journal's header.

    EnvironmentFailedError when no worker starts; NothingSelectedError for an empty selection.
    """
    deadline = time.monotonic() + request.budget if request.budget else 0.0
    watched = not request.items and not request.minutes
    setup = replace(request.setup, run=request.run, guard=watched, every=request.every)
    request = replace(request, setup=setup)
    try:
        pool = _scheduler(request)
        # Before a worker is on them: it would be a process beside.
        known = chips.read(pool.devices, request.setup)
        environment = pool.open()
    except EnvironmentFailedError as error:
        if request.shard.count > 1 or request.items:
            _tell_absence(request, path, str(error))
        raise
    if known and (environment.get("kind") == "cann" or chips.COMMAND in os.environ):
        environment["chips"] = known
    exported = environment.pop("exported", [])
    environment["operators"] = len(exported)
    if request.every:
        environment["unspecified"] = sorted(without_formula().intersection(exported))
    try:
        selected = list(select(request, environment, exported))
        if not selected and not _elsewhere(request, environment, exported):
            raise NothingSelectedError(
                "nothing selected: no case matches these operators and restrictions"
            )
        products = Products(request.setup, environment, request.compare)
        batches = list(batches_of(request, selected, pool.devices, bits_folder(path), products))
        total = sum(len(b.cases) for b in batches) + len(request.done)
        options = {**request.options, "selection": selection(request)}
        book = _book(request, path, journal.header(environment, options, total), batches)
    except BaseException:
        pool.stop()
        raise
    return Run(request, pool, environment, batches, total, book, deadline=deadline)


def selection(request: RunRequest) -> str:
    """A name for what was selected, whatever host, devices and shard: parts of one run have the
    same."""
    plan = {name: getattr(request.plan, name) for name in request.plan.__slots__}
    parts = [request.ops, plan, request.seed, request.fresh_seeds, request.only, request.every,
             request.raw, request.every_raw, request.compare, request.minutes,
             dict(request.items)]  # fmt: skip
    return hashlib.blake2b(json.dumps(parts, default=str).encode(), digest_size=6).hexdigest()


def _elsewhere(
    request: RunRequest, environment: Mapping[str, Any], exported: Sequence[str]
) -> bool:
    """Whether other shards have cases: one without any is complete."""
    whole = _selected(replace(request, shard=CaseShard()), environment, exported)
    return request.shard.count > 1 and next(iter(whole), None) is not None


def _book(
    request: RunRequest, path: Path, header: Mapping[str, Any], batches: Sequence[Batch]
) -> journal.Journal:
    """The journal, this run's alone, with its first lines; with an end line where they stop."""
    book = journal.Journal(path, request.run)
    try:
        book.own()
        if not request.done:
            book.write("run", header)
            for batch in batches:
                if batch.required or not request.extra:
                    book.write("plan", batch.plan())
    except journal.JournalFullError as error:
        book.last({"seconds": 0.0, "interrupted": True, "stopped": str(error.strerror)})
        book.close()
        raise
    except BaseException:
        book.close()
        raise
    return book


def _scheduler(request: RunRequest) -> Scheduler:
    if request.scheduler is not None:
        return request.scheduler(request.setup, request.jobs)
    first = Lane(replace(request.setup, device="npu:0"))
    named = devices(request.setup.device, lambda: _count(first))
    # Its worker is used on where a start costs part of a budget; else chips are read without it.
    used = first if request.setup.until and named[0] == "npu:0" else None
    return Pool(replace(request.setup, device=named[0]), request.jobs, named, used)


def _count(lane: Lane) -> int:
    """How many devices the install sees, by asking a worker: this process opens no device."""
    count = int(lane.open().get("devices", 0))
    if not lane.setup.until:
        lane.stop()
    return count


def _tell_absence(request: RunRequest, path: Path, reason: str) -> None:
    """A host that can run nothing says so in its journal: a fleet's report names it."""
    book = journal.Journal(path, request.run)
    environment = {"device": request.setup.device, "node": journal.node()}
    options = {**request.options, "selection": selection(request)}
    book.write("run", journal.header(environment, options, 0))
    book.last({"seconds": 0.0, "interrupted": True, "stopped": f"no device: {reason}"})
    book.close()


def select(
    request: RunRequest, environment: Mapping[str, Any], exported: Sequence[str] = ()
) -> Iterator[Case]:
    """The cases of the request's shard, in a stable order; `exported` are the install's
    operators."""
    if request.minutes:
        yield from _soak(environment)
        return
    yield from (c for c in _selected(request, environment, exported) if request.shard.has(c.id))


def _soak(environment: Mapping[str, Any], with_memory: bool = False) -> Iterator[Case]:
    from .memory_scan import memory_case
    from .soak import mix

    kind = str(environment.get("kind", ""))
    return map(parse, [memory_case(kind)] * with_memory + mix(kind))


def _selected(
    request: RunRequest, environment: Mapping[str, Any], exported: Sequence[str]
) -> Iterator[Case]:
    if request.only:
        yield from (_named_case(name) for name in (*request.only, *request.extra))
        if request.soak_until:
            yield from _soak(environment, with_memory=True)
        if not request.design:
            return
    names = dict.fromkeys((*request.ops, *(exported if request.every else ())))
    yield from _of_subjects(request, list(names), environment)
    if request.raw or request.every_raw:
        yield from _of_functions(request)


def _of_subjects(
    request: RunRequest, names: Sequence[str], environment: Mapping[str, Any]
) -> Iterator[Case]:
    from ..cases.spaces.table import space_of
    from ..operators.find import subject
    from .subject import UnknownSubjectError

    declared = declarations(request.setup)
    products = Products(request.setup, environment, request.compare)
    for name in names:
        if name.startswith("acl"):
            _require(name, declared)
        if name in request.parts and products.lack(name):
            continue
        try:
            what = subject(name, declared)
        except UnknownSubjectError:
            if not request.plan.deterministic:
                yield from contract_of(declared.ops[name])
            continue
        soc = products.soc(name) or products.own
        planned = cases(what, what.claims(declared, soc).dtypes, request.plan)
        row_shares = request.every and request.plan.level == "quick" and what.shares_row
        if row_shares and not request.plan.deterministic:
            # The row's own cases run the same kernel over the rest of the space; a design of the
            # row has every layout of each operand.
            plain = space_of(what.shares_row) is None
            planned = [c for c in planned if c.shape == "sample" and c.fill == "normal"
                       and (plain or c.layout == "contiguous")]  # fmt: skip
        yield from planned
        if name.startswith("acl") and request.plan.level != "quick" and not request.plan.narrow:
            yield from contract_of(declared.ops[name])


def _named_case(name: str) -> Case:
    """The case of an id; NothingSelectedError for a sample that its row does not have."""
    from mindtorch.ops import OPS

    case = parse(name)
    if case.op in OPS and not case.designed and case.form not in (*CONTRACTS, *ITEMS):
        count = len(samples(OPS[case.op].testing))
        if case.sample >= count:
            raise NothingSelectedError(
                f"--case {name}: {case.op} has {plural(count, 'sample')}, counted from s0"
            )
    return case


def _require(name: str, declared: Any) -> None:
    if declared is None:
        raise NothingSelectedError(f"{name}: ACLNN operators need an npu device; see --device")
    if name not in declared.ops:
        raise NothingSelectedError(undeclared(name, declared.ops))


def _of_functions(request: RunRequest) -> Iterator[Case]:
    declared = declarations(request.setup)
    if declared is None:
        raise NothingSelectedError("raw mode calls ACLNN functions: it needs an npu device")
    for name in request.raw or tuple(declared.ops):
        _require(name, declared)
        yield from contract_of(declared.ops[name])


def declarations(setup: Setup) -> Any:
    """What the install declares that workers open; None for other devices than npu."""
    if not setup.device.startswith(("npu", "all")):
        return None
    import aclnn_bindings

    return aclnn_bindings.open(setup.home, simulator=setup.simulator).declarations


def find_ops(names: Sequence[str], families: Sequence[str], every: bool) -> tuple[str, ...]:
    """Subjects for what was typed: names, base names, ACLNN names, families of either.

    NothingSelectedError for a name that no row has, with the nearest ones; whether an install
    declares an ACLNN operator shows when its cases are made.
    """
    from mindtorch.ops import OPS

    from ..cases.spaces.table import space_of

    sampled = [n for n, op in OPS.items() if op.testing.samples is not None or space_of(n)]
    if every:
        return tuple(sampled)
    selection: dict[str, None] = {}
    for family in families:
        selection.update((n, None) for n in members(family) if n in sampled or n not in OPS)
    for name in names:
        selection.update(dict.fromkeys(_named(name, OPS, sampled)))
    return tuple(selection)


def members(family: str) -> list[str]:
    """The torch operators and the ACLNN ones of a family; NothingSelectedError where none is."""
    from mindtorch.ops import OPS

    names = [n for n, op in OPS.items() if op.family == family] + in_family(family)
    if names:
        return names
    known = sorted({*(op.family for op in OPS.values()), *operator_families()})
    raise NothingSelectedError(f"--family {family}: no such family{near(family, known)}")


def _named(name: str, ops: Mapping[str, Any], sampled: Sequence[str]) -> list[str]:
    if name.startswith(PREFIX):
        return [name]
    stem = name.removesuffix("_") if name not in ops else name
    matching = [n for n in sampled if stem in (n, n.partition(".")[0].strip("_"))]
    if matching:
        return matching
    if stem in ops:
        raise NothingSelectedError(f"{name}: its row has no samples, so there is nothing to run")
    close = get_close_matches(stem, [*ops], 3)
    raise NothingSelectedError(
        f"{name}: no such operator"
        + (f"; did you mean {', '.join(close)}?" if close else "")
        + "; `mindtorch-npu ops` lists them"
    )


Progress = Callable[[Run, Result], None]
