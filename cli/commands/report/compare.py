"""Owns what changed between two runs: verdicts, tiers, cases that only one of them has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...conformance.record.journal import Record
from ...conformance.record.result import Result
from ...conformance.run.environment import summary
from ...judge.classes import TIERS
from ...plurals import plural
from ...render import Block, Cell, Content, Facts, Grid, Heading, Line

_NEUTRAL = frozenset(("SKIP", "UNSUPPORTED"))


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """One case in both runs whose verdict or tier differs."""

    before: Result
    after: Result

    @property
    def kind(self) -> str:
        """regression, fixed, weaker, stricter, lost (no longer run to a verdict), or other."""
        if self.after.failing != self.before.failing:
            return "regression" if self.after.failing else "fixed"
        if self.before.verdict == "PASS" and self.after.verdict in _NEUTRAL:
            return "lost"
        if self.before.verdict == self.after.verdict == "PASS":
            return "weaker" if _rank(self.after) > _rank(self.before) else "stricter"
        return "other"


def _rank(r: Result) -> int:
    return TIERS.index(r.tier) if r.tier in TIERS else len(TIERS)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Changes between two records, and cases that one of them lacks."""

    before: Record
    after: Record
    changes: tuple[VerdictChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def shared(self) -> int:
        """How many cases both have."""
        return len(self.before.results) - len(self.only_before)

    @property
    def regressions(self) -> list[VerdictChange]:
        """Passes that fail now, and passes that no longer reach a verdict."""
        return [c for c in self.changes if c.kind in ("regression", "lost")]


def compare(before: Record, after: Record) -> RunComparison:
    """Compare the cases that both records have."""
    shared = [k for k in before.results if k in after.results]
    changes = [VerdictChange(before.results[k], after.results[k]) for k in shared]
    changed = [c for c in changes
               if (c.before.verdict, c.before.tier) != (c.after.verdict, c.after.tier)]  # fmt: skip
    return RunComparison(
        before, after, tuple(changed),
        tuple(k for k in before.results if k not in after.results),
        tuple(k for k in after.results if k not in before.results),
    )  # fmt: skip


def document(comparison: RunComparison) -> Iterator[Block]:
    """The comparison as blocks."""
    yield Line(Cell("comparison", "strong"))
    yield Facts([("before", _name(comparison.before)), ("after", _name(comparison.after))])
    for kind, style in (("regression", "bad"), ("lost", "bad"), ("fixed", "good"),
                        ("weaker", "warn"), ("stricter", "good"), ("other", "dim")):  # fmt: skip
        rows = [c for c in comparison.changes if c.kind == kind]
        if rows:
            yield Heading(f"{kind} ({len(rows)})")
            yield Grid(("before", "after", "case", "reason"), [_row(c, style) for c in rows[:50]])
    for title, keys in (
        ("only before", comparison.only_before),
        ("only after", comparison.only_after),
    ):
        if keys:
            yield Heading(f"{title} ({len(keys)})")
            yield Line(Cell(", ".join(keys[:20]) + (" …" if len(keys) > 20 else ""), "dim"))
    same = comparison.shared - len(comparison.changes)
    yield Line("")
    count = len(comparison.regressions)
    text = (f"{plural(count, 'regression')}, {plural(len(comparison.changes), 'change')}, "
            f"{plural(same, 'case')} the same")  # fmt: skip
    yield Line(Cell(text, "bad" if count else "good"))


def _row(change: VerdictChange, style: str) -> list[Content]:
    before, after = change.before, change.after
    return [
        f"{before.verdict} {before.tier}".strip(),
        Cell(f"{after.verdict} {after.tier}".strip(), style),  # type: ignore[arg-type]
        after.case,
        after.reason,
    ]


def _name(record: Record) -> str:
    environment = record.header.get("environment", {})
    named = summary(environment) if environment else "?"
    return f"{named} · {record.header.get('started', '?')} · {plural(len(record.results), 'case')}"
