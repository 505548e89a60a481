"""Owns the hunt for one mutant: which cases run against it, in which order, until one kills."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from . import tree
from .judge import Answer, Judge
from .nearness import FAR, SAME_FILE, nearness
from .reach import Reach
from .sites import Mutant

_PATIENCE: Final = 4.0  # seconds beyond twenty times what a case takes when clean
_LONGER: Final = 10  # times that, for a second run of what hangs
_DEEPER: Final = 12  # operators whose cases of `full` are tried


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
            self.judge.board.off()
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
        """At most `most` cases: past killers of this file first, then those of the nearest
        operators, then the others in turn. No bound hides an operator that the change is in, or
        every case of another."""
        rng = random.Random(f"{self.seed} {mutant.key}")
        near: list[str] = []
        by_op: dict[str, list[str]] = {}
        place = (mutant.file, mutant.function)
        for case in rng.sample(list(cases), len(cases)):
            by_op.setdefault(case.partition("/")[0], []).append(case)
        ranks = {op: nearness(op, *place) for op in by_op}
        turns: list[str] = []
        for rank in range(FAR + 1):
            alike = turned(by_op[op] for op in by_op if ranks[op] == rank)
            (near if rank <= SAME_FILE else turns).extend(alike)
        turns.sort(key=lambda c: -self.kills[mutant.file, c])
        return near + (turns[: max(most - len(near), len(by_op))] if most else turns)

    def deeper(self, ops: Sequence[str], mutant: Mutant) -> list[str]:
        """Cases of `full` that `quick` does not have, of the operators that reach the mutant."""
        rng = random.Random(f"{self.seed} {mutant.key}")
        place = (mutant.file, mutant.function)
        nearest = sorted(rng.sample(list(ops), len(ops)), key=lambda op: nearness(op, *place))
        chosen = nearest[:_DEEPER]
        more = [c for c in self.judge.cases(chosen, "full") if c not in self.quick.cases]
        return self.order(more, mutant, self.most_full)

    def killed(self, case: str, mutant: Mutant) -> Answer | None:
        """The failing answer, if the case fails with the mutant and passes without it."""
        fresh = self.judge.served == 0
        answer = self.run_with(mutant, case)
        return self.confirmed(answer, mutant, fresh) if answer.failing else None

    def confirmed(self, answer: Answer, mutant: Mutant, fresh: bool) -> Answer | None:
        """A failing answer, where the mutant is what makes the case fail. `fresh`: nothing ran
        before in that process."""
        case, longer = answer.case, 1
        if answer.verdict == "HANG":
            # A loaded machine is slow too: only what hangs for much longer, alone, hangs.
            longer, fresh = _LONGER, False
        lost = answer.verdict in ("CRASH", "HANG", "POISONED", "OOM")
        if lost and not fresh:
            answer = self.run_with(mutant, case, longer)
            if not answer.failing:
                return None  # what an earlier mutant left behind
        if self._clean(case):
            return answer
        self.judge.restart()
        if not self._clean(case):
            return None
        answer = self.run_with(mutant, case, longer)
        return answer if answer.failing else None

    def run_with(self, mutant: Mutant, case: str, longer: int = 1) -> Answer:
        """The answer to one case with the mutant on, and whether it was met; `longer`: so many
        times the usual patience."""
        seconds = longer * (_PATIENCE + 20 * self.quick.seconds(case))
        self.judge.open_for(case)
        self.judge.board.choose(mutant.id, mutant.marked)
        try:
            answer = self.judge.run(case, seconds)
        finally:
            self.judge.board.off()
        return replace(answer, met=self.judge.board.met)

    def _clean(self, case: str) -> bool:
        return self.judge.run(case).verdict == "PASS"


def turned(queues: Iterable[list[str]]) -> list[str]:
    """One of each queue after the other, until all are empty."""
    left = [list(queue) for queue in queues]
    turns: list[str] = []
    while left:
        turns += [queue.pop() for queue in left]
        left = [queue for queue in left if queue]
    return turns
