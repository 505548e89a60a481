"""The command `preflight`: every chip and the links between them, before a job, in seconds.

The deadline is the workers': whatever devices, drivers or the load of the host do, what is under
way when it comes is cut, and what was not judged until then is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import click

from ... import exits, planted_faults, render
from ...conformance.cases.cases import CaseFilter
from ...conformance.record import compressed, journal, state, votes
from ...conformance.record.result import Result
from ...conformance.run import engine
from ...conformance.run.devices import DeviceListError
from ...conformance.run.pool import EnvironmentFailedError, Setup
from ...conformance.run.process import OutOfTimeError
from ...render import Block, Cell, Heading, Item, Items, Line, Style
from ..check import devices, progress
from ..check.runner import new_journal
from .breadth import one_of_each
from .links import Ring, ring

# Cases for each unit of a chip, judged by their references: matrix unit in both precisions, vector
# unit with special values, its transcendental functions, reductions of long rows, data movement,
# integers.
CASES: Final = (
    "matmul/functional/s0/float16", "matmul/functional/s0/float32", "add/functional/s0/float32",
    "exp/functional/s0/float32", "softmax/functional/s0/float32", "sum/functional/s0/float32",
    "index_select/functional/s0/float32", "add/functional/s0/int32",
    "mul/functional/s0/float32/odd/special", "exp/functional/s0/float16/odd/special",
    "softmax/functional/s0/float32/long", "sum/functional/s0/float32/long",
    "mul/functional/s0/bfloat16/long", "matmul/functional/s0/bfloat16/long",
)  # fmt: skip
# Of the time: for a case of each operator, and for what follows the soak (a differing case again,
# chips), and for the report; how long a worker may say nothing.
_BREADTH, _REST, _SILENCE, _REPORT = 0.5, 0.1, 1 / 3, 0.05
_LEAST_REST: Final = 1.0
_LEAST_SILENCE: Final = 10.0
# Of two chips that differ one is wrong, whichever.
_WRONG: Final = votes.ABOUT_DEVICES | {votes.UNDECIDED}
# A chip whose fastest launches take so many times as long as those of the others is slow.
_SLOW: Final = 1.5
_LEAST_TIMES: Final = 100  # of launches in a case: the fastest of fewer says little
# From so many seconds on, operators of ACLNN that torch does not have are tried too: finding out
# which there are takes a second.
_ACLNN_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Findings:
    """What a preflight knows: failing results, slow devices and links that are wrong, and what was
    not judged in time."""

    run: engine.Run
    results: Sequence[Result]
    linked: Ring
    slow: dict[str, float]
    unjudged: tuple[str, ...]

    @property
    def failing(self) -> list[Result]:
        return [r for r in self.results if r.failing]

    @property
    def code(self) -> int:
        differ = any(d.kind in _WRONG for d in self.run.deviations)
        if self.failing or differ or self.run.lost or self.slow or self.linked.wrong:
            return exits.PROBLEMS
        return exits.NOT_JUDGED if self.unjudged or self.linked.unjudged else exits.OK


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
        setup = Setup(device, root, simulator, str(path), silence, until=until)
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
    declared = engine.declarations(setup) if seconds >= _ACLNN_SECONDS else None
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
        return Findings(run, results, linked.result(), slow_devices(run), _unjudged(run, results))


def slow_devices(run: engine.Run) -> dict[str, float]:
    """How many times as long as the others' the fastest launches of a device take, in most cases of
    the soak; it takes three devices to tell."""
    times: dict[str, dict[str, float]] = defaultdict(dict)
    for note in run.notes:
        if note.kind == "soak" and note.data.get("timed", 0) >= _LEAST_TIMES:
            times[note.data["case"]][note.data["device"]] = note.data["fastest"]
    ratios = defaultdict(list)
    for of_case in times.values():
        for device, fastest in of_case.items():
            others = [other_time for other, other_time in of_case.items() if other != device]
            if len(others) > 1 and (usual := median(others)) > 0:
                ratios[device].append(fastest / usual)
    slowness = {device: median(of_device) for device, of_device in ratios.items()}
    return {device: ratio for device, ratio in slowness.items() if ratio >= _SLOW}


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
    return (*lines, *planted_faults.unstruck())


def _document(findings: Findings) -> Iterator[Block]:
    run, failing = findings.run, findings.failing
    places = {votes.place_of(r) for r in findings.results}
    launches = sum(note.data["launches"] for note in run.notes if note.kind == "soak")
    style: Style = "bad" if findings.code == exits.PROBLEMS else "good"
    yield Line(Cell(
        f"preflight · {len(places)} devices · {len(findings.results):,} cases, {len(failing):,} "
        f"failing · soak of {launches:,} launches", style,
    ))  # fmt: skip
    if failing:
        yield Heading("Wrong results")
        yield Items([Item(Cell(f"{votes.place_of(r)}: {r.verdict} {r.case}", "bad"),
                          [("why", r.reason)]) for r in failing[:20]])  # fmt: skip
        if len(failing) > 20:
            yield Line(Cell(f"{len(failing) - 20:,} more are in the journal", "bad"))
    yield from devices.document(run.deviations, run.lost, len(places))
    wrong = [f"{device} is slow: its launches take {ratio:.1f} times as long as the others'"
             for device, ratio in findings.slow.items()]  # fmt: skip
    for title, texts in (("Speed", wrong), ("Links", findings.linked.wrong)):
        if texts:
            yield Heading(title)
            yield Items([Item(Cell(text, "bad")) for text in texts])
    if findings.linked.unjudged:
        yield Line(Cell(f"links are not judged: {findings.linked.unjudged}", "warn"))
    for text in findings.unjudged:
        yield Line(Cell(f"not judged: {text}", "warn"))
