"""Owns campaigns against silent data corruption: soaks over days, in rounds.

A campaign is a folder: `campaign.json` has its options and totals, `round-000001.jsonl.zst` and so
on the journals of its rounds. The number of a round is the seed of its inputs. Whatever ends the
process costs at most the case under way: the same command goes on. Journals of rounds in which
nothing was found go first where the folder grows over its size; totals keep what they said.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from aclnn_bindings.interface import atomic_write

from ... import exits, render
from ...conformance.cases.cases import CaseFilter
from ...conformance.record import compressed, journal
from ...conformance.run import engine
from ...conformance.run.pool import Setup
from ...fleet import advice, merge
from ...fleet.ray_pool import maker
from ...foreign import ForeignError, parsed, text_of
from ...plurals import plural
from ...render import Block, Cell, Content, Grid, Line, Style
from . import progress
from .options import CampaignOptions

SCHEMA: Final = "mindtorch-npu/campaign/1"
_STATE: Final = "campaign.json"
_LOCK: Final = ".lock"


class CampaignError(click.UsageError):
    """A folder that is no campaign's, is another one's, or in use."""


@dataclass(slots=True)
class Totals:
    """What the rounds of a device come to."""

    rounds: int = 0
    launches: int = 0
    wrong: int = 0


@dataclass(slots=True)
class CampaignState:
    """Where a campaign is: `last` is the number of the last round that is over and counted;
    `suspect` and `incomplete` are those in which a device was found wrong, or was not judged;
    `removed` counts journals that are gone."""

    options: dict[str, Any]
    last: int = 0
    suspect: list[int] = field(default_factory=list)
    incomplete: list[int] = field(default_factory=list)
    removed: int = 0
    devices: dict[str, Totals] = field(default_factory=dict)

    def take(self, number: int, fleet: merge.Fleet) -> None:
        """Count a round."""
        self.last = number
        seen = set()
        for part in fleet.parts:
            for kind, note in part.notes.values():
                if kind != "soak":
                    continue
                place = f"{note.get('node') or part.node} {note['device']}"
                totals = self.devices.setdefault(place, Totals())
                totals.rounds += place not in seen
                totals.launches += int(note["launches"])
                totals.wrong += int(note["wrong"])
                seen.add(place)
        blamed = any(a.action == advice.TAKE_OUT for a in advice.advice(fleet))
        if fleet.failing or blamed:
            self.suspect.append(number)
        elif fleet.incomplete:
            self.incomplete.append(number)

    def write(self, folder: Path) -> None:
        """Replace the folder's record in one step."""
        atomic_write.write(
            folder / _STATE, json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n"
        )


def run(options: CampaignOptions) -> int:
    """Run the rounds that are left; show totals; the exit code."""
    options.folder.mkdir(parents=True, exist_ok=True)
    with _alone(options.folder):
        state = _opened(options)
        count = max(1, math.ceil(options.hours * 60 / options.round_minutes))
        if 0 < state.last < count:
            click.echo(f"going on with round {state.last + 1} of {count}", err=True)
        code = None
        while code is None and state.last < count:
            code = _round(options, state, state.last + 1)
            code = code or _limit(options, state)
        render.show(_document(state, count))
    if code is not None:
        return code
    if state.suspect:
        return exits.PROBLEMS
    return exits.NOT_JUDGED if state.incomplete and not options.allow_unjudged else exits.OK


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a second process in the folder."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise CampaignError(f"{folder}: another process runs this campaign") from None
    try:
        yield
    finally:
        os.close(lock)


def _opened(options: CampaignOptions) -> CampaignState:
    """The state of the folder, new where it has none."""
    declared = options.declared()
    path = options.folder / _STATE
    if not path.exists():
        state = CampaignState(declared)
        state.write(options.folder)
        return state
    state = _state(path)
    if state.options != declared:
        raise CampaignError(
            f"{options.folder}: a campaign of other options: {json.dumps(state.options)}; use "
            "those, or name another folder"
        )
    for left in sorted(options.folder.glob("round-*.jsonl")):
        if left.stem <= _name(state.last):
            compressed.pack(left, left.with_suffix(left.suffix + compressed.suffix()))
    return state


def _state(path: Path) -> CampaignState:
    try:
        data = parsed(text_of(path))
        if data.pop("schema") != SCHEMA:
            raise ValueError("another format")
        devices = {str(p): Totals(**totals) for p, totals in data.pop("devices").items()}
        state = CampaignState(**data, devices=devices)
        counts = [state.last, state.removed, *state.suspect, *state.incomplete,
                  *(n for t in devices.values() for n in asdict(t).values())]  # fmt: skip
        if not all(isinstance(n, int) and n >= 0 for n in counts):
            raise ValueError("a count is none")
    except (OSError, ForeignError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CampaignError(f"{path}: no record of a campaign: {error}") from None
    return state


def _name(number: int) -> str:
    return f"round-{number:06d}"


def _round(options: CampaignOptions, state: CampaignState, number: int) -> int | None:
    """Run a round, or what is left of it, and count it; the exit code where that ends all."""
    path = options.folder / f"{_name(number)}.jsonl"
    record = _record(path)
    if record is None or record.end is None or record.end.get("interrupted"):
        going = engine.begin(_request(options, number, path, record), path)
        progress.follow(going)
        if going.stopped:
            click.echo(f"error: {going.stopped}; the same command goes on", err=True)
            return exits.NOTHING
    fleet = merge.merge([path])
    if any(part.end is None or part.end.get("interrupted") for part in fleet.parts):
        click.echo(f"interrupted in round {number}; the same command goes on", err=True)
        return exits.INTERRUPTED
    state.take(number, fleet)
    state.write(options.folder)
    compressed.pack(path, path.with_suffix(path.suffix + compressed.suffix()))
    return None


def _record(path: Path) -> journal.Record | None:
    """What a round that was cut has in its journal; None where it had not begun."""
    if not path.exists():
        return None
    try:
        return journal.read(path)
    except journal.JournalError:
        path.unlink()  # cut off in its first line
        return None


def _request(
    options: CampaignOptions, number: int, path: Path, record: journal.Record | None
) -> engine.RunRequest:
    """A soak of every device, on inputs of its own."""
    target = options.target
    minutes = min(options.round_minutes, options.hours * 60)
    setup = Setup(target.device, str(target.home) if target.home else None, target.simulator,
                  str(path), options.workers.timeout, soc=target.soc or "")  # fmt: skip
    declaration = {"what": f"round {number} of a campaign", "compare": True, "seed": number,
              "where": target.as_json()}  # fmt: skip
    return engine.RunRequest(
        (), CaseFilter(), setup, number, jobs=options.workers.jobs or 1, options=declaration,
        done={} if record is None else record.results, compare=True, minutes=minutes,
        run=journal.new_run() if record is None else str(record.header.get("run", "")),
        scheduler=maker(options.workers.ray) if options.workers.ray else None,
    )  # fmt: skip


def _limit(options: CampaignOptions, state: CampaignState) -> int | None:
    """Keep the folder within its size: the oldest rounds without a finding go. An exit code where
    the others alone are larger."""
    most = options.megabytes * 1e6
    packed = [p for p in options.folder.glob("round-*.jsonl.*") if p.suffix in compressed.SUFFIXES]
    clean = sorted(p for p in packed if _number(p) not in state.suspect)
    while clean and _size(options.folder) > most:
        clean.pop(0).unlink()
        state.removed += 1
        state.write(options.folder)
    if _size(options.folder) <= most:
        return None
    click.echo(
        f"stopped after round {state.last}: journals of rounds with findings take more than "
        f"{options.megabytes:g} MB", err=True,
    )  # fmt: skip
    return exits.PROBLEMS if state.suspect else exits.NOTHING


def _number(path: Path) -> int:
    digits = path.name.removeprefix("round-").partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def _size(folder: Path) -> int:
    """Bytes of all files in it."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def _document(state: CampaignState, count: int) -> Iterator[Block]:
    """Totals of every device, those that were wrong first."""
    style: Style = "bad" if state.suspect else "good"
    yield Line(Cell(f"campaign · {state.last} of {count} rounds · "
                    f"{plural(len(state.devices), 'device')} · "
                    f"findings in {plural(len(state.suspect), 'round')}", style))  # fmt: skip
    ordered = sorted(state.devices.items(), key=lambda x: (-x[1].wrong, x[0]))
    rows: list[list[Content]] = [
        [place, str(t.rounds), f"{t.launches:,}", Cell(f"{t.wrong:,}", "bad" if t.wrong else ""),
         _rate(t)] for place, t in ordered
    ]  # fmt: skip
    if rows:
        yield Grid(("device", "rounds", "launches", "wrong", "wrong launches"), rows,
                   frozenset((1, 2, 3)))  # fmt: skip
    if state.suspect:
        names = ", ".join(_name(n) for n in state.suspect[:8])
        yield Line(f"look into `report --merge` of {names}" + ("…" * (len(state.suspect) > 8)))
    if state.removed:
        yield Line(
            Cell(f"journals of {state.removed} rounds without a finding were removed", "dim")
        )


def _rate(totals: Totals) -> str:
    """One in how many launches is wrong; where none was, what 95 % of luck would not hide."""
    if totals.wrong:
        return f"1 in {totals.launches / totals.wrong:,.0f}"
    return f"fewer than 1 in {totals.launches / 3:,.0f}" if totals.launches > 3 else ""
