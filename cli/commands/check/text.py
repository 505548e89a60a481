"""Owns what `check` shows on a terminal, in a pipe and as Markdown: blocks made from a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from aclnn_bindings.install.products import nondeterministic

from ...conformance.cases.case import INVARIANTS
from ...conformance.operators.coverage import coverage
from ...conformance.record.journal import repro
from ...conformance.record.result import FAILING, VERDICTS, Counts, Result
from ...conformance.run.environment import summary
from ...judge import classes
from ...render import Block, Cell, Content, Facts, Grid, Heading, Item, Items, Line, Style
from .causes import causes

_STYLES: Final[dict[str, Style]] = {
    "PASS": "good", "XPASS": "warn", "XFAIL": "dim", "SKIP": "dim", "UNSUPPORTED": "dim",
    "MISTRUSTED": "warn", "FLAKY": "warn",
}  # fmt: skip
_FORMS: Final = (
    ("functional", "npu = ref"), ("out", "out="), ("inplace", "in place"), ("method", "method"),
    ("meta", "meta = cpu"), ("grad", "gradient"), ("error", "errors"), ("contract", "contract"),
    ("repeat", "repeated"), ("process", "other process"), ("batch", "batch"),
)  # fmt: skip
_ORDER: Final = (*classes.TIERS, "none", "")
SHOWN_FAILURES: Final = 10
DETAILED: Final = 40
WIDE: Final = 100


def style_of(verdict: str) -> Style:
    return _STYLES.get(verdict, "bad")


def document(
    header: Mapping[str, Any], results: Sequence[Result], seconds: float, verbose: bool = False,
    extra: Sequence[str] = (), width: int = WIDE,
) -> Iterator[Block]:  # fmt: skip
    """The whole report; below WIDE columns the table of operators gets by with fewer."""
    yield Line(Cell(title(header), "strong"))
    yield Line(Cell(summary(header.get("environment", {"device": "?"})), "dim"))
    if verbose:
        yield cases_table(results)
    yield from causes(results, extra)
    yield from ops_table(results, width)
    yield from failures(results, SHOWN_FAILURES, extra)
    yield from notes(results)
    yield from documented_as_nondeterministic(results)
    yield Line("")
    yield Line(totals(results, seconds))
    environment = header.get("environment", {})
    exported = int(environment.get("operators", 0))
    if header.get("options", {}).get("restart", {}).get("every") and exported:
        yield Line(coverage(results, exported, environment.get("unspecified", ())).text())


def title(header: Mapping[str, Any]) -> str:
    options = header.get("options", {})
    what = options.get("what", "check")
    parts = [
        f"check {what}",
        f"level {options.get('level', '?')}",
        f"seed {options.get('seed', 0)}",
    ]
    return " · ".join(parts)


def cases_table(results: Iterable[Result]) -> Grid:
    """One row a case."""
    rows: list[list[Content]] = []
    for r in results:
        worst = (r.measure or {}).get("max_ulp")
        ulp = f"{worst:.3g}" if isinstance(worst, float | int) else (worst or "")
        rows.append([Cell(r.verdict, style_of(r.verdict)), r.case, r.tier, ulp, r.reason])
    return Grid(("verdict", "case", "tier", "max ULP", "reason"), rows, frozenset((3,)))


def ops_table(results: Sequence[Result], width: int = WIDE) -> Iterator[Block]:
    """One row an op: how many cases of each form passed, and how many reached which tier."""
    by_op: dict[str, list[Result]] = {}
    for r in results:
        by_op.setdefault(r.op, []).append(r)
    forms = [(f, label) for f, label in _FORMS if any(_form(r) == f for r in results)]
    heading = "Operators"
    if len(by_op) > DETAILED:
        heading = "Operators with failures"
        by_op = {op: outcomes for op, outcomes in by_op.items() if any(r.failing for r in outcomes)}
        if not by_op:
            return
    yield Heading(heading)
    if width < WIDE:
        yield _narrow_table(by_op)
        return
    rows: list[list[Content]] = []
    for op, outcomes in by_op.items():
        cells: list[Content] = [_share([r for r in outcomes if _form(r) == f]) for f, _ in forms]
        rows.append([op, _verdict_cell(outcomes), *cells, _tiers(outcomes)])
    columns = ("operator", "verdict", *(label for _, label in forms), "tiers")
    yield Grid(columns, rows, frozenset(range(2, 2 + len(forms))))


def _narrow_table(by_op: Mapping[str, Sequence[Result]]) -> Grid:
    rows: list[list[Content]] = [
        [op, _verdict_cell(results), _share(results), _tiers(results)]
        for op, results in by_op.items()
    ]
    return Grid(("operator", "verdict", "passed", "tiers"), rows, frozenset((2,)))


def _form(r: Result) -> str:
    return "contract" if r.form.startswith("contract") else r.form


def _verdict_cell(results: Sequence[Result]) -> Cell:
    present = {r.verdict for r in results}
    worst = next(v for v in VERDICTS if v in present)
    if worst in ("SKIP", "UNSUPPORTED", "XFAIL") and "PASS" in present:
        worst = "PASS"
    return Cell(worst, style_of(worst))


def _share(results: Sequence[Result]) -> Content:
    """`12` when all pass, `11/12` when not; skipped and unsupported cases do not count."""
    counted = [r for r in results if r.verdict not in ("SKIP", "UNSUPPORTED")]
    if not counted:
        return Cell("-", "dim")
    good = sum(not r.failing for r in counted)
    if good == len(counted):
        return Cell(str(good), "good")
    return Cell(f"{good}/{len(counted)}", "bad")


def _tiers(results: Sequence[Result]) -> str:
    """`T0 41, T1 12`: how many passes reached which tier, strictest first."""
    counts: dict[str, int] = {}
    for r in results:
        if r.verdict == "PASS" and r.tier and r.tier != "none":
            counts[r.tier] = counts.get(r.tier, 0) + 1
    return ", ".join(f"{t} {counts[t]}" for t in _ORDER if t in counts)


def failures(results: Iterable[Result], most: int, extra: Sequence[str] = ()) -> Iterator[Block]:
    """Failing cases with rule, worst element and the command that runs them again."""
    failing = [r for r in results if r.verdict in FAILING]
    if not failing:
        return
    yield Heading(f"Failures ({len(failing)})")
    yield Items([failure(r, extra) for r in _telling(failing)[:most]])
    if len(failing) > most:
        yield Line(
            Cell(
                f"… and {len(failing) - most} more; all are in the journal, `-v` shows them", "dim"
            )
        )


def _telling(failing: list[Result]) -> list[Result]:
    """Worst verdicts first, and of those one of every operator before a second of any."""
    seen: dict[tuple[str, str], int] = {}
    turns = []
    for r in failing:
        turns.append(seen.get((r.op, r.verdict), 0))
        seen[r.op, r.verdict] = turns[-1] + 1
    order = list(VERDICTS)
    ranked = sorted(zip(turns, failing, strict=True),
                    key=lambda x: (min(x[0], 1), order.index(x[1].verdict), x[0]))  # fmt: skip
    return [r for _, r in ranked]


def failure(r: Result, extra: Sequence[str] = ()) -> Item:
    details = [("why", r.reason)] if r.reason else []
    details += [("guard", g) for g in r.guards if g != r.reason]
    if r.tier and r.verdict == "FAIL":
        details.append(("holds", f"{r.tier} ({classes.MEANING[r.tier]}); required is {r.required}"))
    if r.inputs:
        call = f" → {r.aclnn}" if r.aclnn else ""
        details.append(("inputs", ", ".join(r.inputs) + call))
    details += _worst(r)
    if r.pattern:
        details += [("where", r.pattern["text"]), ("map", r.pattern["blocks"])]
    if len({recheck.rpartition(": ")[2] for recheck in r.rechecks} | {r.verdict}) > 1:
        details.append(("rechecks", ", ".join(r.rechecks)))
    if r.issue:
        details.append(("known issue", r.issue))
    details.append(("again", repro(r.case, r.seed, _at(r, extra))))
    return Item(Cell(f"{r.verdict}  {r.case}", style_of(r.verdict)), details)


def _at(r: Result, extra: Sequence[str]) -> list[str]:
    """The words of a place, with the one device that the case ran on."""
    words = list(extra)
    if r.device and "--device" in words:
        words[words.index("--device") + 1] = r.device
    return words


def _worst(r: Result) -> list[tuple[str, str]]:
    measure = r.measure or {}
    worst = measure.get("worst")
    if not worst or "max_ulp" not in measure:
        return []
    size = "NaN or Inf" if measure["nonfinite"] else f"{_number(measure['max_ulp'])} ULP"
    text = f"{size} at {list(worst['index'])}"
    inputs = worst.get("inputs") or {}
    if inputs:
        text += " from " + ", ".join(inputs.values())
    if measure["nonfinite"]:
        return [("worst", text)]
    return [("worst", text), ("bias", f"{_number(measure['bias'])} ULP mean signed error")]


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | int) else str(value)


def notes(results: Sequence[Result]) -> Iterator[Block]:
    """What is neither pass nor failure, by reason."""
    for verdict in ("XPASS", "XFAIL", "UNSUPPORTED", "SKIP"):
        reasons: dict[str, list[str]] = {}
        for r in results:
            if r.verdict == verdict:
                reasons.setdefault(_kind(r), []).append(r.case)
        if not reasons:
            continue
        yield Heading(f"{verdict}: {VERDICTS[verdict][1]}")
        rows: list[list[Content]] = [
            [str(len(cases)), cases[0], reason]
            for reason, cases in sorted(reasons.items(), key=lambda x: -len(x[1]))[:8]
        ]
        if len(reasons) > 8:
            rows.append([str(sum(map(len, reasons.values())) - sum(int(str(r[0])) for r in rows)),
                         "…", "other reasons"])  # fmt: skip
        yield Grid(("cases", "such as", "reason"), rows, frozenset((0,)))


def documented_as_nondeterministic(results: Sequence[Result]) -> Iterator[Block]:
    """The functions, of those whose determinism was checked, that documents call non-deterministic:
    what differs there is no failure."""
    called = {n for r in results if r.form in INVARIANTS for n in r.aclnn.split(", ")}
    names = sorted(filter(nondeterministic, called))
    if names:
        yield Heading("Not deterministic by document, unless ACL_OPT_DETERMINISTIC is 1 "
                      f"({len(names)})")  # fmt: skip
        yield Line(", ".join(names))


def _kind(r: Result) -> str:
    text = r.issue or r.reason
    return text if len(text) <= 160 else text[:160].rpartition(" ")[0] + " …"


def totals(results: Sequence[Result], seconds: float) -> Cell:
    """The last line: counts, time and rate."""
    counts = Counts()
    for r in results:
        counts.add(r)
    label = ", ".join(f"{n} {v}" for v, n in counts.ordered())
    ops = len({r.op for r in results})
    rate = f" ({counts.total / seconds:.0f} cases per second)" if seconds > 0 else ""
    size = f"{_count(counts.total, 'case')} of {_count(ops, 'operator')}"
    text = f"{size} in {seconds:.1f} s{rate}: {label}"
    return Cell(text, "bad" if counts.failing else "good")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)


def explanation(name: str, need: classes.Requirement) -> list[Block]:
    """The rule that a subject must meet, why, and who says so."""
    rows: list[tuple[str, Content]] = [
        ("class", need.name), ("required", need.text()), ("reason", need.reason),
        ("source", need.source),
    ]  # fmt: skip
    return [Heading(name), Facts(rows)]
