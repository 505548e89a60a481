"""Owns the hunt for one mutant: which cases run against it, in which order, until one kills."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from . import tree
from .board import OFF
from .judge import Answer, Judge
from .reach import Reach
from .sites import Mutant

_PATIENCE: Final = 4.0  # seconds beyond twenty times what a case takes when clean


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant. `level` is where it was killed; `tried` counts cases."""

    key: str
    kind: str
    file: str
    state: str  # killed, survived, unreached
    level: str = ""
    case: str = ""
    reason: str = ""
    ops: tuple[str, ...] = ()
    tried: int = 0
    line: int = 0
    function: str = ""
    before: str = ""
    after: str = ""


class Hunter:
    """Hunts mutants with one worker; learns which cases kill and tries those first."""

    def __init__(self, judge: Judge, quick: Reach, seed: int, most: int, most_full: int) -> None:
        self.judge, self.quick = judge, quick
        self.seed, self.most, self.most_full = seed, most, most_full
        self.by_site = quick.by_site()
        self.places: dict[str, set[int]] = {}
        for mutant in tree.load():
            self.places.setdefault(mutant.file, set()).add(mutant.site)
        self.kills: Counter[tuple[str, str]] = Counter()

    def hunt(self, mutant: Mutant) -> Verdict:
        """Run the cases that reach the mutant until one fails because of it."""
        reaching = self._reaching(mutant)
        ops = tuple(dict.fromkeys(c.partition("/")[0] for c in reaching))
        if not reaching:
            return self._verdict(mutant, "unreached")
        tried = 0
        if mutant.once:
            self.judge.restart()
        try:
            for level, case in self.cases(mutant, reaching, ops):
                tried += 1
                answer = self.killed(case, mutant)
                if answer is not None:
                    self.kills[mutant.file, case] += 1
                    why = f"{answer.verdict}: {answer.reason}"
                    return self._verdict(mutant, "killed", level, case, why, ops, tried)
        finally:
            self.judge.board.choose(OFF)
            if mutant.once:
                self.judge.restart()
        return self._verdict(mutant, "survived", "", "", "", ops, tried)

    def _reaching(self, mutant: Mutant) -> list[str]:
        """The cases that get there. What a process makes once is noted for its first reader alone:
        the other places of the file tell who else reads it."""
        if not mutant.once:
            return self.by_site.get(mutant.site, [])
        places = self.places.get(mutant.file, ())
        return list(dict.fromkeys(c for place in places for c in self.by_site.get(place, ())))

    def cases(
        self, mutant: Mutant, reaching: Sequence[str], ops: Sequence[str]
    ) -> Iterator[tuple[str, str]]:
        """(level, case) in the order of trying; those of `full` are only listed when it comes to
        them."""
        yield from (("quick", c) for c in self.order(reaching, mutant, self.most))
        if self.most_full:
            yield from (("full", c) for c in self.deeper(ops, mutant))

    def _verdict(self, m: Mutant, state: str, *rest: Any) -> Verdict:
        named = dict(zip(("level", "case", "reason", "ops", "tried"), rest, strict=False))
        return Verdict(m.key, m.kind, m.file, state, line=m.line, function=m.function,
                       before=m.before, after=m.after, **named)  # fmt: skip

    def order(self, cases: Sequence[str], mutant: Mutant, most: int) -> list[str]:
        """At most `most` cases: past killers of this file first, then all operators in turn."""
        rng = random.Random(f"{self.seed} {mutant.key}")
        by_op: dict[str, list[str]] = {}
        for case in rng.sample(list(cases), len(cases)):
            by_op.setdefault(case.partition("/")[0], []).append(case)
        turns: list[str] = []
        queues = list(by_op.values())
        while queues:
            turns += [q.pop() for q in queues]
            queues = [q for q in queues if q]
        turns.sort(key=lambda c: -self.kills[mutant.file, c])
        return turns[:most] if most else turns

    def deeper(self, ops: Sequence[str], mutant: Mutant) -> list[str]:
        """Cases of `full` that `quick` does not have, of the operators that reach the mutant."""
        rng = random.Random(f"{self.seed} {mutant.key}")
        chosen = rng.sample(list(ops), min(len(ops), 12))
        more = [c for c in self.judge.cases(chosen, "full") if c not in self.quick.cases]
        return self.order(more, mutant, self.most_full)

    def killed(self, case: str, mutant: Mutant) -> Answer | None:
        """The failing answer, if the case fails with the mutant and passes without it."""
        seconds = _PATIENCE + 20 * self.quick.seconds(case)
        fresh = self.judge.served == 0
        answer = self._with(mutant, case, seconds)
        if not answer.failing:
            return None
        lost = answer.verdict in ("CRASH", "HANG", "POISONED", "OOM")
        if lost and not fresh and not self._with(mutant, case, seconds).failing:
            return None  # what an earlier mutant left behind
        if self._clean(case):
            return answer
        self.judge.restart()
        if self._clean(case) and self._with(mutant, case, seconds).failing:
            return answer
        return None

    def _with(self, mutant: Mutant, case: str, seconds: float) -> Answer:
        self.judge.open_for(case)
        self.judge.board.choose(mutant.id)
        try:
            return self.judge.run(case, seconds)
        finally:
            self.judge.board.choose(OFF)

    def _clean(self, case: str) -> bool:
        return self.judge.run(case).verdict == "PASS"
