"""Owns a run over many mutants: the map of what reaches what, then one hunt after another."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from . import book, reach, tree
from .hunt import Hunter, Verdict
from .judge import Judge, every_op
from .reach import Reach
from .sites import Mutant

T = TypeVar("T")


def quick_map(again: bool = False, jobs: int = 1, ops: Sequence[str] = ()) -> Reach:
    """Which cases of `check --level quick` reach which sites; recorded once, then read.

    Operators whose cases are others now are recorded again. `ops`: only these; empty: all.
    """
    found = None if again else reach.load("quick")
    changed: Sequence[str] = ops or every_op()
    if found is None:
        found = Reach("quick", build=tree.build_id())
    else:
        with Judge() as judge:
            changed = [op for op in changed if _cases(judge, op) != found.of(op)]
        if not changed:
            return found
    found = found.without(changed)
    with ThreadPoolExecutor(jobs) as pool:
        for fresh in pool.map(_recorded, [changed[i::jobs] for i in range(jobs)]):
            found = found.joined(fresh)
    found.save()
    return found


def _recorded(ops: Sequence[str]) -> Reach:
    with Judge() as judge:
        return reach.record(judge, ops, "quick", _told)


def _cases(judge: Judge, op: str) -> set[str]:
    try:
        return set(judge.cases((op,), "quick"))
    except Exception:
        return set()  # its samples raise: recording says so


def _told(op: str, cases: int, seconds: float) -> None:
    if seconds > 5:
        print(f"{op}: {cases} cases in {seconds:.1f} s", flush=True)


def sampled(mutants: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """`count` mutants, drawn by seed; all of them when count is 0. Hand-written bugs are apart.

    Each name draws its own lot, so that an edit of kernels exchanges few of them.
    """

    def lot(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()

    generic = sorted((m for m in mutants if m.kind != "bug"), key=lot)
    return generic[:count] if count else generic


def run(
    mutants: Sequence[Mutant], quick: Reach, path: Path, *, jobs: int = 1, seed: int = 0,
    most: int = 300, most_full: int = 0, seconds: float = 0.0,
) -> Iterator[Verdict]:  # fmt: skip
    """Hunt every mutant that `path` has no verdict of; `seconds` bounds the time (0: no bound)."""
    done = book.read(path)
    yield from (done[m.key] for m in mutants if m.key in done)

    def hunter(judge: Judge) -> Callable[[Mutant], Verdict]:
        return Hunter(judge, quick, seed, most, most_full).hunt

    left = [m for m in mutants if m.key not in done]
    for verdict in dealt(left, hunter, jobs, seconds):
        book.write(path, verdict)
        yield verdict


def dealt(
    mutants: Sequence[Mutant], hunter: Callable[[Judge], Callable[[Mutant], T]], jobs: int,
    seconds: float = 0.0,
) -> Iterator[T]:  # fmt: skip
    """What `hunter(judge)` makes of each mutant, on so many workers, as they come."""
    left: SimpleQueue[Mutant] = SimpleQueue()
    for mutant in mutants:
        left.put(mutant)
    found: SimpleQueue[T | BaseException | None] = SimpleQueue()
    deadline = time.monotonic() + seconds if seconds else float("inf")

    def work() -> None:
        try:
            with Judge() as judge:
                _serve(hunter(judge), left, found, deadline)
        except BaseException as error:
            found.put(error)
        found.put(None)

    for thread in [threading.Thread(target=work, daemon=True) for _ in range(jobs)]:
        thread.start()
    while jobs:
        verdict = found.get()
        if verdict is None:
            jobs -= 1
        elif isinstance(verdict, BaseException):
            raise verdict
        else:
            yield verdict


def _serve(
    hunt: Callable[[Mutant], T], left: SimpleQueue[Mutant],
    found: SimpleQueue[T | BaseException | None], deadline: float,
) -> None:  # fmt: skip
    while time.monotonic() < deadline:
        try:
            mutant = left.get_nowait()
        except Empty:
            return
        found.put(hunt(mutant))
