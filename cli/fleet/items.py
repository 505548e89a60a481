"""Owns runs of work items (probes, workloads) over all devices or hosts: request, progress, report.

They go through the schedulers that deal `check`'s cases, into the same journals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from .. import exits, render
from ..commands.check.progress import follow
from ..conformance.cases.cases import CaseFilter
from ..conformance.record import compressed, journal
from ..conformance.run import engine
from ..conformance.run.devices import DeviceListError
from ..conformance.run.pool import EnvironmentFailedError, Setup
from . import files, merge, report
from .ray_pool import maker

Option = str | float | Sequence[str]


@dataclass(frozen=True, slots=True)
class WorkItems:
    """Items by their cases' names, `rounds` times on every device that `setup` names (on every NPU,
    or for a device of "cpu" on every host, of the Ray cluster at `ray`)."""

    what: str
    cases: Sequence[str]
    setup: Setup
    rounds: int = 1
    options: Mapping[str, Option] = field(default_factory=dict)
    ray: str | None = None


def run(work: WorkItems, book: Path, outputs: Mapping[str, Path | None]) -> tuple[merge.Fleet, int]:
    """Run all, show the report or write it; the fleet as the journal has it, and an exit code."""
    try:
        path = compressed.live(book)
        if path.exists() or book.exists():
            raise click.UsageError(f"{book} exists: name another file")
        going = engine.begin(_request(work), path)
    except (DeviceListError, compressed.CompressionError) as error:
        raise click.UsageError(str(error)) from None
    except EnvironmentFailedError as error:
        click.echo(f"error: no worker can use {work.setup.device}: {error}", err=True)
        return merge.Fleet(), exits.NOTHING
    follow(going)
    fleet = merge.merge([path])
    paths = files.write_all(fleet, outputs)
    if not paths:
        render.show(report.document(fleet))
    for name in paths:
        click.echo(f"wrote {name}")
    if going.stopped:
        click.echo(f"journal: {path}")
        click.echo(f"error: {going.stopped}", err=True)
        return fleet, exits.NOTHING
    if going.done + sum(len(lost.cases) for lost in going.lost) < going.total:
        click.echo(f"journal: {path}")
        click.echo(f"interrupted after {going.done} of {going.total} items", err=True)
        return fleet, exits.INTERRUPTED
    compressed.pack(path, book)
    click.echo(f"journal: {book}")
    return fleet, exits.PROBLEMS if fleet.failing else exits.OK


def slow(fleet: merge.Fleet) -> list[str]:
    """Devices that are slow against the others."""
    return [p.name for p in fleet.devices if p.speed is not None and p.speed.slow]


def _request(work: WorkItems) -> engine.RunRequest:
    where = {"device": work.setup.device, "home": work.setup.home,
             "simulator": work.setup.simulator}  # fmt: skip
    recorded = {"what": work.what, "items": True, "compare": True, "seed": 0, "where": where}
    return engine.RunRequest(
        (), CaseFilter(), work.setup, fresh_seeds=work.rounds - 1, jobs=1, only=tuple(work.cases),
        options=recorded, compare=True, run=journal.new_run(),
        scheduler=maker(work.ray) if work.ray else None,
        items={"rounds": work.rounds, **work.options},
    )  # fmt: skip
