"""Owns which cases reach which mutants on the clean simulator, and what they say there."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from . import tree
from .judge import Judge

_PATIENCE: Final = 10.0  # seconds; a case that takes longer is left out of every hunt


@dataclass(slots=True)
class Reach:
    """Per case: its verdict and seconds when clean, and the number of its set of sites."""

    level: str
    cases: dict[str, tuple[str, float, int]] = field(default_factory=dict)
    sets: list[Any] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)  # operators without a case
    build: str = ""  # of the mutants whose numbers these are

    def joined(self, other: Reach) -> Reach:
        """Both maps in one; what `other` says of a case wins."""
        shift = len(self.sets)
        moved = {c: (v, s, which + shift) for c, (v, s, which) in other.cases.items()}
        return Reach(self.level, {**self.cases, **moved}, self.sets + other.sets,
                     self.silent | other.silent, self.build)  # fmt: skip

    def of(self, op: str) -> set[str]:
        """The recorded cases of an operator."""
        return {c for c in self.cases if c.partition("/")[0] == op}

    def without(self, ops: Iterable[str]) -> Reach:
        """The map less some operators."""
        gone = set(ops)
        kept = {c: v for c, v in self.cases.items() if c.partition("/")[0] not in gone}
        return Reach(self.level, kept, self.sets, self.silent - gone, self.build)

    def clean(self, case: str) -> bool:
        """Whether the case passes without a mutant, so that a failure means something."""
        return self.cases.get(case, ("", 0, 0))[0] == "PASS"

    def seconds(self, case: str) -> float:
        return self.cases[case][1] if case in self.cases else 1.0

    def by_site(self) -> dict[int, list[str]]:
        """Cases that pass, by site that they reach."""
        members: dict[int, list[str]] = {}
        for case, (verdict, _, which) in self.cases.items():
            if verdict == "PASS":
                members.setdefault(which, []).append(case)
        found: dict[int, list[str]] = {}
        for which, cases in members.items():
            for site in self.sets[which].tolist():
                found.setdefault(site, []).extend(cases)
        return found

    def save(self) -> None:
        path = where(self.level)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps((self.level, self.cases, self.sets, self.silent, self.build)))


def where(level: str) -> Path:
    return tree.work() / f"reach-{level}.pickle"


def load(level: str) -> Reach | None:
    """What an earlier run recorded of the mutants at hand; None if there is nothing."""
    path = where(level)
    found = Reach(*pickle.loads(path.read_bytes())) if path.exists() else None
    return found if found is not None and found.build == tree.build_id() else None


def record(judge: Judge, ops: Iterable[str], level: str, progress: Any = None) -> Reach:
    """Run every case of `ops` once with all mutants off."""
    found = Reach(level, build=tree.build_id())
    known: dict[bytes, int] = {}
    judge.board.off()
    for op in ops:
        started = time.monotonic()
        try:
            names: Sequence[str] = judge.cases((op,), level)
        except Exception as error:
            print(f"{op}: no cases: {error}")
            names = ()
        if not names:
            found.silent.add(op)
        for case in names:
            judge.board.record(True)
            answer = judge.run(case, _PATIENCE)
            sites = judge.board.reached()
            which = known.setdefault(sites.tobytes(), len(found.sets))
            if which == len(found.sets):
                found.sets.append(sites)
            found.cases[case] = (answer.verdict, answer.seconds, which)
        if progress is not None:
            progress(op, len(names), time.monotonic() - started)
    judge.board.record(False)
    return found
