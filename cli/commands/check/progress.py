"""Owns the live view of a run: counts, time left and each host's share, nothing in a pipe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ...conformance.record.result import Counts, Result
from ...conformance.run.engine import Run
from ...render import console
from .text import style_of

# Hosts that get a line of their own; the others share one.
_HOSTS: Final = 12


class _Left(TimeRemainingColumn):
    """Time left of the run; a host's share has none."""

    def render(self, task: Task) -> Text:
        return Text("") if task.fields.get("host") else super().render(task)


class _Hosts:
    """A line for each host of a run that has several."""

    def __init__(self, bar: Progress, total: int) -> None:
        self._bar, self._total = bar, total
        self._lines: dict[str, TaskID] = {}
        self._counts: dict[str, Counts] = {}

    def add(self, result: Result) -> None:
        known = result.node in self._counts
        counts = self._counts.setdefault(result.node, Counts())
        counts.add(result)
        if len(self._counts) < 2:
            return
        for node in [result.node] if known and self._lines else list(self._counts):
            self._show(node)

    def _show(self, node: str) -> None:
        shared = node not in self._lines and len(self._lines) >= _HOSTS
        name = f"{len(self._counts) - _HOSTS} more hosts" if shared else node
        counts = [
            c for n, c in self._counts.items() if n == node or (shared and n not in self._lines)
        ]
        line = self._lines.get("" if shared else node)
        if line is None:
            line = self._bar.add_task(name, total=self._total, counts="", host=True)
            self._lines["" if shared else node] = line
        failing = sum(c.failing for c in counts)
        self._bar.update(line, description=name, completed=sum(c.total for c in counts),
                         counts=f"[bad]{failing} failing[/]" if failing else "")  # fmt: skip


def follow(run: Run, whole: bool = False) -> list[Result]:
    """All results of a run, briefly where they pass unless `whole` is asked for; Ctrl-C ends it
    and keeps what there is."""
    results: list[Result] = []
    with contextlib.suppress(KeyboardInterrupt), _bar(console(sys.stderr), run) as advance:
        for result in run.results():
            results.append(result if whole or result.failing else result.brief())
            advance(result)
    return results


@contextlib.contextmanager
def _bar(on: Console, run: Run) -> Iterator[Callable[[Result], None]]:
    if not on.is_terminal:
        yield lambda _result: None
        return
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        _Left(), TextColumn("{task.fields[counts]}"), console=on, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task("checking", total=run.total, counts="")
        hosts = _Hosts(bar, run.total)

        def advance(result: Result) -> None:
            counts = "  ".join(
                f"[{style_of(v) or 'dim'}]{v} {n}[/]" for v, n in run.counts.ordered()
            )
            hosts.add(result)
            bar.update(task, advance=1, counts=counts, description=result.op)

        yield advance
