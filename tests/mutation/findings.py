"""Owns what became of each bug of a book: whether a case met it, and whether that case noticed."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from aclnn_bindings.interface import atomic_write

from . import nearness, runner, tree
from .bugs import Bug
from .hunt import Hunter
from .judge import Judge
from .reach import Reach
from .sites import Mutant

CAUGHT: Final = "caught"
NEVER: Final = "never met"
UNNOTICED: Final = "met and not noticed"
# A catch is thin where so many cases met the bug and no more than this share of them noticed.
_THIN, _MANY = 0.05, 20


@dataclass(frozen=True, slots=True)
class Finding:
    """`state` is live, dead, does-not-compile or does-not-apply; `verdict` is of a live one.

    Of cases: `reached` get to the place with all bugs off, `tried` ran with the bug on, `met` of
    those changed something, `failed` of those failed. `case` is the first that failed, at `level`.
    `artefacts` failed and had not met the bug: they catch nothing.
    """

    name: str
    file: str
    state: str
    verdict: str = ""
    level: str = ""
    reached: int = 0
    tried: int = 0
    met: int = 0
    failed: int = 0
    case: str = ""
    reason: str = ""
    artefacts: tuple[str, ...] = ()
    digest: str = ""  # of what the book says of the bug

    @property
    def thickness(self) -> float | None:
        """The share of cases that met the bug and failed."""
        return self.failed / self.met if self.met else None

    @property
    def thin(self) -> bool:
        return self.verdict == CAUGHT and self.met >= _MANY and self.failed <= _THIN * self.met

    def as_json(self) -> dict[str, Any]:
        share = self.thickness
        return {**asdict(self), "thickness": None if share is None else round(share, 4)}


class Trier(Hunter):
    """Runs the cases of a bug until one fails, then until `enough` met it."""

    def __init__(
        self, judge: Judge, quick: Reach, bugs: Mapping[str, Bug], *,
        cases: int = 300, full: int = 300, enough: int = 40,
    ) -> None:  # fmt: skip
        super().__init__(judge, quick, 0, cases, full)
        self.enough, self.bugs = enough, bugs

    def finding(self, mutant: Mutant) -> Finding:
        """What becomes of one bug."""
        reaching = self.by_site.get(mutant.site, [])
        ops = list(dict.fromkeys(case.partition("/")[0] for case in reaching))
        bug = self.bugs[mutant.after]
        finding = Finding(
            bug.name, bug.file, "live", NEVER, reached=len(reaching), digest=digest(bug)
        )
        finding = self._tried(finding, mutant, "quick", self.order(reaching, mutant, self.most))
        if finding.verdict != CAUGHT and self.most_full:
            recorded = {case.partition("/")[0] for case in self.quick.cases}
            ops = ops or [op for op in nearness.of_file(bug.file) if op in recorded]
            finding = self._tried(finding, mutant, "full", self.deeper(ops, mutant))
        return finding

    def _tried(self, finding: Finding, mutant: Mutant, level: str, cases: Sequence[str]) -> Finding:
        for case in cases:
            if finding.case and finding.met >= self.enough:
                break
            fresh = self.judge.served == 0
            answer: Any = self.run_with(mutant, case)
            finding = replace(finding, tried=finding.tried + 1, met=finding.met + answer.met)
            if answer.met and finding.verdict == NEVER:
                finding = replace(finding, verdict=UNNOTICED)
            if answer.failing and not finding.case:
                answer = self.confirmed(answer, mutant, fresh)
            if answer is None or not answer.failing:
                continue
            if not answer.met:
                finding = replace(finding, artefacts=(*finding.artefacts, case))
                continue
            finding = replace(finding, failed=finding.failed + 1)
            if not finding.case:
                why = f"{answer.verdict}: {answer.reason}"
                finding = replace(finding, verdict=CAUGHT, level=level, case=case, reason=why)
        return finding


def digest(bug: Bug) -> str:
    """Changes when a book says something else of a bug."""
    return hashlib.sha256(json.dumps(asdict(bug)).encode()).hexdigest()[:12]


def left_out(bugs: Iterable[Bug], problems: Mapping[str, str]) -> Iterator[Finding]:
    """Findings of bugs that cannot be run, or need not be."""
    for bug in bugs:
        reason = problems.get(bug.name, bug.dead)
        if not reason:
            continue
        state = "does-not-compile" if reason == tree.DOES_NOT_COMPILE else "does-not-apply"
        state = state if bug.name in problems else "dead"
        yield Finding(bug.name, bug.file, state, reason=reason, digest=digest(bug))


def hunted(
    mutants: Sequence[Mutant], trier: Callable[[Judge], Trier], jobs: int
) -> Iterator[Finding]:
    """Findings of live bugs, as they come."""
    yield from runner.dealt(mutants, lambda judge: trier(judge).finding, jobs)


def read(path: Path, bugs: Iterable[Bug]) -> dict[str, Finding]:
    """Earlier findings of bugs that are as they were, by name."""
    if not path.exists():
        return {}
    known = {bug.name: digest(bug) for bug in bugs}
    names = [field.name for field in fields(Finding)]
    findings: dict[str, Finding] = {}
    for data in json.loads(path.read_text("utf-8"))["bugs"]:
        values = {name: data[name] for name in names}
        finding = Finding(**{**values, "artefacts": tuple(data["artefacts"])})
        if known.get(finding.name) == finding.digest:
            findings[finding.name] = finding
    return findings


def write(path: Path, findings: Mapping[str, Finding]) -> None:
    """All findings so far, in one piece."""
    data = {"totals": totals(findings.values()), "bugs": [f.as_json() for f in findings.values()]}
    atomic_write.write(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def totals(findings: Iterable[Finding]) -> dict[str, Any]:
    """Counts, and the shares of live bugs that were caught: what no case meets escapes too."""
    every = list(findings)
    live = [f for f in every if f.state == "live"]
    levels = Counter(f.level for f in live if f.verdict == CAUGHT)
    shares = sorted(f.thickness or 0.0 for f in live if f.verdict == CAUGHT)
    count = max(len(live), 1)
    return {
        "states": dict(Counter(f.state for f in every)),
        "verdicts": dict(Counter(f.verdict for f in live)),
        "unreached": sum(not f.reached and f.verdict == NEVER for f in live),
        "quick %": round(100 * levels["quick"] / count, 1),
        "full %": round(100 * levels.total() / count, 1),
        "median thickness": round(shares[len(shares) // 2], 3) if shares else None,
        "thin": sum(f.thin for f in live),
        "artefacts": sum(len(f.artefacts) for f in live),
    }


def line(finding: Finding) -> str:
    """One finding for the terminal."""
    word = finding.verdict or finding.state
    if finding.verdict == CAUGHT:
        word = f"caught at {finding.level}" + (", thin" if finding.thin else "")
    numbers = f"{finding.failed}/{finding.met}/{finding.tried}"
    return f"{word:22s} {numbers:>12s} {finding.name:55s} {finding.case or finding.reason}"


def states(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """Names by the words of `score.STATES`."""
    words: dict[str, list[str]] = {}
    for finding in sorted(findings, key=lambda f: f.name):
        word = finding.level
        if not word:
            word = "survived" if finding.reached else "unreached"
        word = {"dead": "equivalent"}.get(finding.state, word)
        if finding.state in ("live", "dead"):
            words.setdefault(word, []).append(finding.name)
    return words
