"""Owns scores: how many mutants of each kind and operator are killed, and how that is told."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tomllib

from .hunt import Verdict
from .sites import KINDS

FLOOR: Final = Path(__file__).with_name("floor.toml")
SCORES: Final = Path(__file__).with_name("scores.json")
# What the atlas tells of them: "killed of reached" → the rows with these counts.
ATLAS: Final = Path(__file__).parents[2] / "cli" / "commands" / "ops" / "atlas" / "mutants.json"
STATES: Final = ("quick", "full", "survived", "equivalent", "unreached")


def state_of(verdict: Verdict) -> str:
    """The column of a verdict: quick or full for where it was killed, else its state."""
    return verdict.level if verdict.state == "killed" else verdict.state


def share(counts: Counter[str], *, full: bool) -> float | None:
    """Percent killed of the reached and not equivalent; None where there is none."""
    killed = counts["quick"] + (counts["full"] if full else 0)
    judged = counts["quick"] + counts["full"] + counts["survived"]
    return 100 * killed / judged if judged else None


def by_kind(verdicts: Iterable[Verdict]) -> dict[str, Counter[str]]:
    """Counts of states by kind, in the order of KINDS."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS if kind != "bug"}
    for verdict in verdicts:
        if verdict.kind in found:
            found[verdict.kind][state_of(verdict)] += 1
    return {k: c for k, c in found.items() if c}


def by_file(verdicts: Iterable[Verdict]) -> dict[str, Counter[str]]:
    """Counts of states by kernel file."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for verdict in verdicts:
        found[verdict.file][state_of(verdict)] += 1
    return dict(sorted(found.items()))


def by_operator(verdicts: Iterable[Verdict]) -> dict[str, Counter[str]]:
    """Counts by operator over the mutants of its kernels (not of the loops that all share)."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for verdict in verdicts:
        if verdict.file.startswith("ops/"):
            for op in verdict.ops:
                found[op][state_of(verdict)] += 1
    return dict(sorted(found.items()))


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def summary(verdicts: Sequence[Verdict]) -> str:
    """A table for the terminal: one line for each kind, then all."""
    lines = [f"{'kind':12s}" + "".join(f"{s:>11s}" for s in STATES) + "    quick %     full %"]
    whole: Counter[str] = Counter()
    for kind, counts in [*by_kind(verdicts).items(), ("all", whole)]:
        if kind != "all":
            whole.update(counts)
        lines.append(f"{kind:12s}" + "".join(f"{counts[s]:11d}" for s in STATES)
                     + f"{percent(share(counts, full=False)):>11s}"
                     + f"{percent(share(counts, full=True)):>11s}")  # fmt: skip
    return "\n".join(lines)


def survivors(verdicts: Iterable[Verdict]) -> str:
    """Survivors by file and function: what was changed, where, and which operators reach it."""
    lines = []
    place = ("", "")
    left = [v for v in verdicts if v.state == "survived"]
    for v in sorted(left, key=lambda v: (v.file, v.line, v.key)):
        if (v.file, v.function) != place:
            place = (v.file, v.function)
            ops = ", ".join(v.ops[:6]) + (f" and {len(v.ops) - 6} more" if len(v.ops) > 6 else "")
            lines.append(f"\n{v.file} {v.function}  ({ops})")
        lines.append(f"  {v.line:4d} {v.kind:11s} {v.before}  ->  {v.after}   [{v.tried} cases]")
    return "\n".join(lines)


def write(verdicts: Sequence[Verdict], bugs: Mapping[str, list[str]], words: str) -> None:
    """Store the counts, so that pages can be made without running anything. Without names of
    hand-written bugs by state, those that are stored stay."""
    stored = json.loads(SCORES.read_text("utf-8"))["bugs"] if SCORES.exists() else {}
    states = {state: bugs.get(state, []) for state in STATES}
    parts = {
        "kinds": {k: counts_of(c) for k, c in by_kind(verdicts).items()},
        "files": {k: counts_of(c) for k, c in by_file(verdicts).items()},
        "bugs": states if bugs else stored,
    }
    SCORES.write_text(rendered({"words": words, **parts}), "utf-8")
    ATLAS.write_text(json.dumps(reached(by_operator(verdicts)), indent=0) + "\n", "utf-8")


def counts_of(counts: Mapping[str, int]) -> list[int]:
    """Numbers in the order of STATES."""
    return [counts.get(state, 0) for state in STATES]


def rendered(data: Mapping[str, Any]) -> str:
    """JSON with one line for each entry of a table."""
    tables = []
    for name, value in data.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict):
            lines = (f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}"
                     for k, v in value.items())  # fmt: skip
            text = "{\n" + ",\n".join(lines) + "\n}"
        tables.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(tables) + "\n}\n"


def reached(operators: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """ "killed of reached and not equivalent" → the rows with these counts, if they reached one."""
    rows: dict[tuple[int, int], list[str]] = defaultdict(list)
    for row, c in sorted(operators.items()):
        counts = sum(c.get(s, 0) for s in STATES[:3]), c.get("quick", 0) + c.get("full", 0)
        rows[counts].append(row)
    return {f"{k} of {n}": " ".join(names) for (n, k), names in sorted(rows.items()) if n}


@dataclass(frozen=True, slots=True)
class Floor:
    """What the sampled part must reach: measured numbers, less what chance takes."""

    seed: int
    count: int
    cases: int
    reached: int
    percent: float
    files: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()

    def problem(self, verdicts: Iterable[Verdict]) -> str:
        """What is below the floor, and what to do; nothing when it holds."""
        counts: Counter[str] = Counter(state_of(v) for v in verdicts)
        judged = counts["quick"] + counts["full"] + counts["survived"]
        killed = share(counts, full=True)
        if judged < self.reached:
            return (f"only {judged} sampled mutants are reached, the floor is {self.reached}: "
                    "cases were lost, or time was too short")  # fmt: skip
        if killed is None or killed < self.percent:
            return (f"{percent(killed)} % of the sampled mutants are killed, the floor is "
                    f"{self.percent} %: see the survivors above")  # fmt: skip
        return ""


@dataclass(frozen=True, slots=True)
class BookFloor:
    """What a sample of the project's book must reach: shares in %, and how many cases of those that
    meet a bug fail."""

    seed: int
    count: int
    quick: float
    thickness: float
    thin: float

    def problem(self, totals: Mapping[str, Any]) -> str:
        """What of `findings.totals` is below the floor; nothing when it holds."""
        caught = totals["verdicts"].get("caught", 0)
        thin = 100 * totals["thin"] / max(caught, 1)
        if totals["quick %"] < self.quick:
            return (f"{totals['quick %']} % of the bugs are caught at quick, the floor is "
                    f"{self.quick} %")  # fmt: skip
        if (totals["median thickness"] or 0) < self.thickness:
            return (f"of the cases that meet a bug {totals['median thickness']} fail (median), the "
                    f"floor is {self.thickness}")  # fmt: skip
        if thin > self.thin:
            return f"{thin:.0f} % of the catches are thin, at most {self.thin} % may be"
        return ""


def floor(path: Path = FLOOR) -> Floor:
    """The floor of mutants as it is written down."""
    found = tomllib.loads(path.read_text("utf-8"))["sample"]
    return Floor(**{k: tuple(v) if isinstance(v, list) else v for k, v in found.items()})


def book_floor(path: Path = FLOOR) -> BookFloor:
    """The floor of the book as it is written down."""
    return BookFloor(**tomllib.loads(path.read_text("utf-8"))["book"])
