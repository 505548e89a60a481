"""The command `preflight`: every chip and the links between them, before a job, in seconds.

The deadline is the workers': whatever devices, drivers or the load of the host do, what is under
way when it comes is cut, and what was not judged until then is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from ... import exits, planted_faults, render
from ...conformance.cases.case import SOAK
from ...conformance.cases.cases import CaseFilter
from ...conformance.record import compressed, journal, state, votes
from ...conformance.record.result import Result
from ...conformance.run import engine, launch_times
from ...conformance.run.devices import DeviceListError
from ...conformance.run.pool import THREADS, EnvironmentFailedError, Setup
from ...conformance.run.process import OutOfTimeError
from ...plurals import plural
from ...render import Block, Cell, Heading, Item, Items, Line, Style
from ..check import devices, progress
from ..check.runner import new_journal
from .breadth import one_of_each
from .links import Ring, ring
from .slow import DEVICES, Slow, least_rounds, slow_devices
from .verdict import Verdict, judge

# Cases for each unit of a chip, judged by their references: matrix unit in both precisions, vector
# unit with special values, its transcendental functions, reductions of long rows, data movement,
# integers. The first ones are those that find most of the simulator's kinds of faults per second
# (benchmarks/preflight.py --order); those from the seventh on find none that these miss.
CASES: Final = (
    "sum/functional/s0/float32/long", "exp/functional/s0/float16/odd/special",
    "index_select/functional/s0", "mul/functional/s0/bfloat16/long",
    "matmul/functional/s0/bfloat16/long", "mul/functional/s0/float32/odd/special",
    "matmul/functional/s0", "add/functional/s0", "softmax/functional/s0", "exp/functional/s0",
    "sum/functional/s0", "matmul/functional/s0/float16", "add/functional/s0/int32",
    "softmax/functional/s0/float32/long",
)  # fmt: skip
# Of the time: for a case of each operator, and for what follows the soak (a differing case again,
# chips), and for the report; how long a worker may say nothing.
_BREADTH, _REST, _SILENCE, _REPORT = 0.5, 0.1, 1 / 3, 0.05
_LEAST_REST: Final = 1.0
# Rounds of timed launches that fit into the time, at most.
_ROUNDS: Final = 200
_THREADS: Final = "2"
_LEAST_SILENCE: Final = 10.0
# Lines of a part of the report, and of the evidence for one device.
_DISPLAY_LIMIT, _EVIDENCE = 20, 5


@dataclass(frozen=True, slots=True)
class Findings:
    """What a preflight knows: who is wrong by results, slow devices and links that are wrong, and
    what was not judged in time."""

    run: engine.Run
    results: Sequence[Result]
    linked: Ring
    slow: Mapping[str, Slow]
    unjudged: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        return judge(self.results, self.run.deviations, self.run.lost, CASES)

    @property
    def wrong(self) -> dict[str, list[str]]:
        """Devices and links that are wrong, each with its evidence."""
        wrong = {place: list(texts) for place, texts in self.verdict.wrong.items()}
        for device, slow in self.slow.items():
            wrong.setdefault(device, []).append(f"slow: {slow.text}")
        for text in self.linked.wrong:
            place, _, what = text.partition(": ")
            wrong.setdefault(place, []).append(what)
        return wrong

    @property
    def left_open(self) -> tuple[str, ...]:
        """What has no verdict."""
        links = self.linked.unjudged
        return (*self.unjudged, *self.verdict.unjudged, *([f"links: {links}"] if links else []))

    @property
    def code(self) -> int:
        if self.wrong:
            return exits.PROBLEMS
        return exits.NOT_JUDGED if self.left_open else exits.OK


def run(
    seconds: float, device: str, home: Path | None, simulator: bool, book: Path | None,
    started: float,
) -> int:  # fmt: skip
    """Run it within `seconds` of its start, show what it gave, and give the exit code."""
    until = started + (1 - _REPORT) * seconds
    book = book or state.default_path("preflight")
    root = str(home) if home else None
    try:
        path = new_journal(book)
        silence = max(_LEAST_SILENCE, _SILENCE * seconds)
        # A chip has many cores: the simulator's kernels share their work too.
        threads = {} if THREADS in os.environ else {THREADS: _THREADS}
        setup = Setup(device, root, simulator, str(path), silence, threads, until=until,
                      time_every=seconds / _ROUNDS)  # fmt: skip
        findings = _run(setup, path, seconds)
        compressed.pack(path, book)
    except (DeviceListError, journal.JournalError, compressed.CompressionError) as error:
        raise click.UsageError(str(error)) from None
    except OutOfTimeError as error:
        click.echo(f"not judged: {error}", err=True)
        return exits.NOT_JUDGED
    except EnvironmentFailedError as error:
        click.echo(f"error: no worker can use {device}: {error}", err=True)
        return exits.NOTHING
    render.show(_document(findings))
    click.echo(f"journal: {book}")
    return findings.code


def _run(setup: Setup, path: Path, seconds: float) -> Findings:
    """Cases on every device, a soak of the rest of the time, and a ring beside them."""
    options = {"what": "preflight", "compare": True, "seed": 0,
               "where": {"device": setup.device, "simulator": setup.simulator}}  # fmt: skip
    declared = engine.declarations(setup)
    extra = one_of_each(frozenset(CASES), declared.ops if declared is not None else ())
    request = engine.RunRequest(
        (), CaseFilter(), setup, jobs=1, only=CASES, options=options, compare=True,
        run=journal.new_run(), extra=tuple(extra),
        budget=_BREADTH * setup.left, soak_until=setup.until - max(_LEAST_REST, _REST * seconds),
    )  # fmt: skip
    run = engine.begin(request, path)
    with ThreadPoolExecutor(1) as beside:
        named = run.pool.devices
        linked = beside.submit(ring, named, setup.until, setup.home, setup.simulator)
        results = progress.follow(run)
        return Findings(run, results, linked.result(), slow_devices(_rounds(run)),
                        _unjudged(run, results))  # fmt: skip


def _rounds(run: engine.Run) -> dict[str, list[list[float]]]:
    """The rounds of timed launches of each device."""
    rounds: dict[str, list[list[float]]] = {device: [] for device in run.pool.devices}
    for note in run.notes:
        if note.kind == launch_times.NOTE and note.data.get("milliseconds"):
            rounds[note.data["device"]].append(note.data["milliseconds"])
    return rounds


def _unjudged(run: engine.Run, results: Sequence[Result]) -> tuple[str, ...]:
    """What of the required cases has no verdict, device by device, and faults that never struck."""
    required = {(case, b.device) for b in run.batches if b.required for case in b.cases}
    passing = {(r.case, r.device) for r in results if r.failing or r.verdict == "PASS"}
    cut = {note.data["device"]: note.data for note in run.notes if note.kind == "cut"}
    lines = []
    for device in run.pool.devices:
        left = sum(where == device for _, where in required - passing)
        at = cut.get(device)
        waits = f"; {at['case']} had run for {at['seconds']:.1f} s" if at else ""
        if left:
            lines.append(f"{device}: {left} of {sum(w == device for _, w in required)} cases "
                         f"had no verdict when time was up{waits}")  # fmt: skip
    lines += _untimed(run)
    lines += [f"{note.data['device']}: no memory was scanned in time" for note in run.notes
              if note.data.get("bytes") == 0]  # fmt: skip
    return (*lines, *planted_faults.unstruck())


def _untimed(run: engine.Run) -> Iterator[str]:
    """Devices with too few rounds of timed launches; of one or two nobody can say which is slow."""
    needed = least_rounds(len(run.pool.devices))
    for device, rounds in _rounds(run).items():
        if len(rounds) < needed and len(run.pool.devices) >= DEVICES:
            yield (f"{device}: {plural(len(rounds), 'round')} of timed launches; whether it "
                   f"is slow takes {needed}")  # fmt: skip


def _document(findings: Findings) -> Iterator[Block]:
    run, wrong = findings.run, findings.wrong
    places = {votes.place_of(r) for r in findings.results}
    soaks = [note.data for note in run.notes if note.kind == SOAK]
    launches = sum(data["launches"] for data in soaks)
    scanned = min((data["bytes"] for data in soaks if "bytes" in data), default=0) / 2**20
    style: Style = "bad" if findings.code == exits.PROBLEMS else "good"
    yield Line(Cell(
        f"preflight · {plural(len(places), 'device')} · {plural(len(findings.results), 'case')} · "
        f"soak of {launches:,} launches · {scanned:,.0f} MiB of memory of each scanned", style,
    ))  # fmt: skip
    yield from devices.document(run.deviations, run.lost, len(places))
    for title, texts in (
        ("Alike on every device: the operator or the install", findings.verdict.alike),
        ("Not judged", findings.left_open),
    ):
        if texts:
            yield Heading(title)
            yield Items([Item(Cell(text, "warn")) for text in texts[:_DISPLAY_LIMIT]])
        if len(texts) > _DISPLAY_LIMIT:
            yield Line(Cell(f"{len(texts) - _DISPLAY_LIMIT:,} more are in the journal", "warn"))
    if wrong:
        yield Heading("Wrong")
        yield Items([Item(Cell(place, "bad"), [("why", text) for text in texts[:_EVIDENCE]])
                     for place, texts in wrong.items()])  # fmt: skip
