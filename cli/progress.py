"""Owns the live line of a command that takes long: how far it is, and an estimate of the time left.

On stderr, and on a terminal alone: a pipe or a file gets none of it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from .render import console


@contextlib.contextmanager
def steps(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """`what` is done in `total` steps; call what this gives with the name of each as it begins."""
    on = console(sys.stderr)
    if not on.is_terminal:
        yield lambda _name: None
        return
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=on, transient=True) as bar:
        task = bar.add_task(what, total=total)
        started = 0

        def begin(name: str) -> None:
            nonlocal started
            bar.update(task, completed=started, description=f"{what} {escape(name)}")
            started += 1

        yield begin


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """A spinner beside `what`, which cannot say how far it is."""
    on = console(sys.stderr)
    if not on.is_terminal:
        yield
        return
    with on.status(what):
        yield
