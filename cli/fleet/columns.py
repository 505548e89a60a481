"""Owns the lines of a journal as columns: what passes in arrays, by place and seed, every other
line as an object; and reading several journals at a time.

msgspec (the extra `cluster`) decodes the fields that count, several times faster than json.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Final, Literal, NamedTuple, Protocol

from ..conformance.cases.case import ITEMS, SOAK
from ..conformance.record import journal
from ..conformance.record.result import FAILING, VERDICTS
from . import run_files, stores
from .run_files import RunPart

_ROWS: Final = 8192  # of a block: memory is bounded by places, not by results
_HEX: Final = 16
_RANK: Final = {verdict: i for i, verdict in enumerate(VERDICTS) if verdict not in FAILING}
_SINGLE: Final = frozenset(("", SOAK, *ITEMS))  # forms whose results are looked at one by one
# Journals of other processes: the work that is worth starting them, a journal that is not held in
# memory as a whole, and how many at most.
_WORTH, _LARGEST, _PROCESSES = 32 << 20, 128 << 20, 16


@dataclass(slots=True)
class ResultBlock:
    """Cases of one seed that one place was to judge, began, and judged without a failure, by
    numbers in the order in which the journal first names them."""

    run: str
    node: str
    device: str
    seed: int
    planned: array[int] = field(default_factory=lambda: array("I"))
    started: array[int] = field(default_factory=lambda: array("I"))
    cases: array[int] = field(default_factory=lambda: array("I"))
    ranks: bytearray = field(default_factory=bytearray)
    digests: array[int] = field(default_factory=lambda: array("Q"))
    seconds: array[float] = field(default_factory=lambda: array("d"))


class CaseNames(NamedTuple):
    """Names of cases whose numbers follow those of the names before."""

    names: list[str]


class SingleLine(NamedTuple):
    """A line of a run that is looked at as it is."""

    number: int
    run: str
    line: dict[str, Any]


class Unreadable(NamedTuple):
    """What cannot be read: a line, or all that follows."""

    why: str


class TornLines(NamedTuple):
    """How many lines are no JSON."""

    lines: int


Event = ResultBlock | CaseNames | SingleLine | Unreadable | TornLines | RunPart


class CaseLine(Protocol):
    """A line that starts a case or has its result."""

    @property
    def kind(self) -> str:
        """start or result."""

    case: str
    form: str
    verdict: str
    seed: int
    node: str
    device: str
    digest: str
    seconds: float
    run: str


class PlanRow(Protocol):
    """A line that plans cases."""

    cases: list[str]
    seed: int
    device: str
    run: str


class _Decoders(NamedTuple):
    """What decodes the common lines, and what it raises for every other one."""

    row: Callable[[bytes], CaseLine]
    plan: Callable[[bytes], PlanRow]
    errors: tuple[type[Exception], ...]


def _decoders() -> _Decoders:
    if find_spec("msgspec") is None:
        return _Decoders(
            partial(_plain, _ROW), partial(_plain, _PLAN), (ValueError, RecursionError)
        )
    import msgspec

    class RowStruct(msgspec.Struct):
        kind: Literal["start", "result"]
        case: str
        form: str = ""
        verdict: str = ""
        seed: int = 0
        node: str = ""
        device: str = ""
        digest: str = ""
        seconds: float = 0.0
        run: str = ""

    class PlanStruct(msgspec.Struct):
        kind: Literal["plan"]
        cases: list[str]
        seed: int
        device: str = ""
        run: str = ""

    row, plan = msgspec.json.Decoder(RowStruct).decode, msgspec.json.Decoder(PlanStruct).decode
    return _Decoders(row, plan, (msgspec.DecodeError, UnicodeDecodeError, RecursionError))


_ROW: Final[Mapping[str, object]] = {
    "kind": "result", "case": str, "form": "", "verdict": "", "seed": 0, "node": "",
    "device": "", "digest": "", "seconds": 0.0, "run": "",
}  # fmt: skip
_PLAN: Final[Mapping[str, object]] = {
    "kind": "plan", "cases": list, "seed": int, "device": "", "run": "",
}  # fmt: skip


_KINDS: Final[Mapping[object, Sequence[str]]] = {"result": ("start", "result"), "plan": ("plan",)}


def _plain(fields: Mapping[str, object], text: bytes) -> Any:
    """What msgspec's decoders do, by Python's json; ValueError for any other line."""
    line = json.loads(text)
    if not isinstance(line, dict) or line.get("kind") not in _KINDS[fields["kind"]]:
        raise ValueError("another line")
    row = SimpleNamespace(**{name: line.get(name, default) for name, default in fields.items()})
    for name, default in fields.items():
        kind, value = default if isinstance(default, type) else type(default), getattr(row, name)
        if type(value) is not kind and (type(value), kind) != (int, float):
            raise ValueError(f"{name}: {value!r:.100}")
    if not all(isinstance(case, str) for case in line.get("cases", ())):
        raise ValueError("cases")
    return row


class JournalReader:
    """Reads one journal; lines without a run's id belong to the last header."""

    def __init__(self, source: run_files.Source) -> None:
        self._source = source
        self._numbers: dict[str, int] = {}
        self._fresh: list[str] = []
        self._blocks: dict[tuple[str, str, str, int], ResultBlock] = {}
        self._runs: set[str] = set()
        self._last = ""
        self._torn = 0
        self._decoders = _decoders()

    def events(self) -> Iterator[Event]:
        """Runs, blocks, plans and single lines, in an order in which each can be counted."""
        row, plan, errors = self._decoders
        try:
            for number, text in enumerate(run_files.lines(self._source), 1):
                try:
                    if text.startswith(b'{"kind":"plan"'):
                        block = self._plan(plan(text))
                    else:
                        block = self._take(row(text))
                    if block is None:
                        yield from self._single(number, text)
                    elif max(len(block.cases), len(block.planned)) >= _ROWS:
                        yield from self._flush(block)
                except errors:
                    yield from self._single(number, text)
        except journal.JournalError as error:
            yield from self._rest()
            yield Unreadable(f"{error}; what follows is left out")
            return
        yield from self._rest()
        yield TornLines(self._torn)

    def _number(self, case: str) -> int:
        number = self._numbers.get(case)
        if number is None:
            number = self._numbers[case] = len(self._numbers)
            self._fresh.append(case)
        return number

    def _take(self, row: CaseLine) -> ResultBlock | None:
        """Put a row into its block; None for one that is looked at by itself."""
        run = row.run or self._last
        rank, digest = -1, 0
        if row.kind == "result":
            rank = _RANK.get(row.verdict, -1)
            if rank < 0 or row.form in _SINGLE:
                return None
            if row.digest:
                try:
                    digest = int(row.digest, 16) if len(row.digest) == _HEX else -1
                except ValueError:
                    return None
                if digest <= 0:
                    return None
        block = self._block(run, row.node, row.device, row.seed)
        if block is None:
            return None
        number = self._number(row.case)
        if rank < 0:
            block.started.append(number)
        else:
            block.cases.append(number)
            block.ranks.append(rank)
            block.digests.append(digest)
            block.seconds.append(row.seconds)
        return block

    def _plan(self, row: PlanRow) -> ResultBlock | None:
        block = self._block(row.run or self._last, "", row.device, row.seed)
        if block is not None:
            block.planned.extend(map(self._number, row.cases))
        return block

    def _block(self, run: str, node: str, device: str, seed: int) -> ResultBlock | None:
        """The block of a place and seed; None where the run has no header."""
        key = run, node, device, seed
        block = self._blocks.get(key)
        if block is None and run in self._runs:
            block = self._blocks[key] = ResultBlock(*key)
        return block

    def _flush(self, block: ResultBlock) -> Iterator[Event]:
        del self._blocks[block.run, block.node, block.device, block.seed]
        if self._fresh:
            yield CaseNames(self._fresh)
            self._fresh = []
        yield block

    def _rest(self) -> Iterator[Event]:
        for block in list(self._blocks.values()):
            yield from self._flush(block)

    def _single(self, number: int, text: bytes) -> Iterator[Event]:
        line = run_files.as_object(text)
        if line is None:
            self._torn += 1
            return
        if line.get("kind") == "run":
            try:
                part = run_files.part_of(line, self._source, len(self._runs))
            except journal.JournalError as error:
                self._last = "\0"  # nothing of this run is known: its lines are left out
                yield Unreadable(f"line {number}: {error}")
                return
            self._last = part.run
            self._runs.add(part.run)
            yield part
        run = str(line.get("run") or self._last)
        if run in self._runs:
            yield SingleLine(number, run, line)


def _whole(source: run_files.Source) -> list[Event]:
    return list(JournalReader(source).events())


def read_all(
    sources: Sequence[run_files.Source],
) -> Iterator[tuple[run_files.Source, Iterator[Event]]]:
    """The events of every journal, in order; where it is worth it, read by a process for each CPU,
    and no more journals in memory than those."""
    sizes = {source: stores.size(source) for source in sources}
    split = [s for s in sources if 0 < sizes[s] <= _LARGEST]
    processes = min(len(os.sched_getaffinity(0)), len(split), _PROCESSES)
    if processes < 2 or sum(sizes[s] for s in split) < _WORTH:
        for source in sources:
            yield source, JournalReader(source).events()
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        waiting = deque(split)
        under_way: dict[run_files.Source, Future[list[Event]]] = {}
        for source in sources:
            try:
                while waiting and len(under_way) <= processes:
                    under_way[waiting[0]] = pool.submit(_whole, waiting[0])
                    waiting.popleft()
                future = under_way.pop(source, None)
                events = None if future is None else iter(future.result())
            except BrokenProcessPool:  # killed, for want of memory: this process reads the rest
                waiting.clear()
                events = None
            yield source, JournalReader(source).events() if events is None else events
