"""The command `preflight`: every chip and the links between them, before a job, in seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from ... import exits, render
from ...conformance.cases.cases import CaseFilter
from ...conformance.record import compressed, journal, state, votes
from ...conformance.record.result import Result
from ...conformance.run import engine
from ...conformance.run.devices import DeviceListError
from ...conformance.run.pool import EnvironmentFailedError, Setup
from ...render import Block, Cell, Heading, Item, Items, Line, Style
from ..check import devices, progress
from ..check.runner import new_journal
from .links import Ring, ring

# One case for each unit of a chip, judged by its reference: matrix unit in both precisions, vector
# unit, its transcendental functions, reductions, data movement, integers.
CASES: Final = (
    "matmul/functional/s0/float16", "matmul/functional/s0/float32", "add/functional/s0/float32",
    "exp/functional/s0/float32", "softmax/functional/s0/float32", "sum/functional/s0/float32",
    "index_select/functional/s0/float32", "add/functional/s0/int32",
)  # fmt: skip
# Of the budget: what is left for the ring, and the least that a soak is worth starting for.
_RING: Final = 0.25
_LEAST_SOAK: Final = 2.0


def run(seconds: float, device: str, home: Path | None, simulator: bool, book: Path | None) -> int:
    """Run it, show what it gave, and give the exit code."""
    deadline = time.monotonic() + seconds
    book = book or state.default_path("preflight")
    root = str(home) if home else None
    try:
        path = new_journal(book)
        started = time.monotonic()
        checked, results = _run(Setup(device, root, simulator, str(path), seconds), path, 0.0)
        first = time.monotonic() - started  # the soak's workers start as long
        linked = Ring()
        if device == "all":
            linked = ring(len(checked.pool.devices), seconds * _RING, root, simulator)
        left = deadline - time.monotonic() - first
        if left >= _LEAST_SOAK:
            soak = path.with_name(f"{path.stem}-soak{path.suffix}")
            long = soak.with_name(soak.name + book.name.removeprefix(path.name))
            setup = Setup(device, root, simulator, str(soak), seconds)
            soaked, more = _run(setup, soak, left)
            results += more
            checked.deviations += soaked.deviations
            checked.lost += soaked.lost
            compressed.pack(soak, long)
        compressed.pack(path, book)
    except (DeviceListError, journal.JournalError, compressed.CompressionError) as error:
        raise click.UsageError(str(error)) from None
    except EnvironmentFailedError as error:
        click.echo(f"error: no worker can use {device}: {error}", err=True)
        return exits.NOTHING
    render.show(_document(checked, results, linked))
    click.echo(f"journal: {book}")
    return _code(checked, results, linked, soaked=left >= _LEAST_SOAK)


def _run(setup: Setup, path: Path, seconds: float) -> tuple[engine.Run, list[Result]]:
    """Cases on every device, or a soak of so many seconds."""
    options = {"what": "preflight", "compare": True, "seed": 0,
               "where": {"device": setup.device, "simulator": setup.simulator}}  # fmt: skip
    request = engine.RunRequest(
        (), CaseFilter(), setup, jobs=1, only=() if seconds else CASES, options=options,
        compare=True,
        minutes=seconds / 60, run=journal.new_run(),
    )  # fmt: skip
    run = engine.begin(request, path)
    return run, progress.follow(run)


def _code(run: engine.Run, results: Sequence[Result], linked: Ring, soaked: bool) -> int:
    wrong = any(r.failing for r in results) or votes.suspects(run.deviations)
    if wrong or linked.wrong or run.lost:
        return exits.PROBLEMS
    if linked.unjudged or not soaked or any(r.verdict != "PASS" for r in results):
        return exits.NOT_JUDGED
    return exits.OK


def _document(run: engine.Run, results: Sequence[Result], linked: Ring) -> Iterator[Block]:
    places = {votes.place_of(r) for r in results}
    failing = [r for r in results if r.failing]
    style: Style = "bad" if failing or linked.wrong or run.deviations or run.lost else "good"
    yield Line(Cell(f"preflight · {len(places)} devices · {len(results)} cases, {len(failing)} "
                    f"failing", style))  # fmt: skip
    if failing:
        yield Heading("Wrong results")
        yield Items([Item(Cell(f"{votes.place_of(r)}: {r.verdict} {r.case}", "bad"),
                          [("why", r.reason)]) for r in failing[:20]])  # fmt: skip
    yield from devices.document(run.deviations, run.lost, len(places))
    if linked.wrong:
        yield Heading("Links")
        yield Items([Item(Cell(text, "bad")) for text in linked.wrong])
    if linked.unjudged:
        yield Line(Cell(f"links are not judged: {linked.unjudged}", "warn"))
