"""Owns the live view of a run: counts and time left on a terminal, nothing in a pipe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from ..conformance.record.result import Result
from ..conformance.run.engine import Run
from ..render import console
from .text import style_of


def follow(run: Run) -> list[Result]:
    """All results of a run; Ctrl-C ends it and keeps what there is."""
    results: list[Result] = []
    with contextlib.suppress(KeyboardInterrupt), _bar(console(sys.stderr), run) as advance:
        for result in run.results():
            results.append(result)
            advance(result)
    return results


@contextlib.contextmanager
def _bar(on: Console, run: Run) -> Iterator[Callable[[Result], None]]:
    if not on.is_terminal:
        yield lambda _result: None
        return
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeRemainingColumn(), TextColumn("{task.fields[counts]}"), console=on, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task("checking", total=run.total, counts="")

        def advance(result: Result) -> None:
            counts = "  ".join(
                f"[{style_of(v) or 'dim'}]{v} {n}[/]" for v, n in run.counts.ordered()
            )
            bar.update(task, advance=1, counts=counts, description=result.op)

        yield advance
