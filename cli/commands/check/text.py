"""Owns what `check` shows on a terminal, in a pipe and as Markdown: blocks made from a record."""

from __future__ import annotations

from collections import Counter
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
_REASONS: Final = 8  # of a verdict, in a table
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
    yield from notes(results, verbose)
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
        text = "; ".join(t for t in (r.reason, *r.standards) if t)
        rows.append([Cell(r.verdict, style_of(r.verdict)), r.case, r.tier, ulp, text])
    return Grid(("verdict", "case", "tier", "max ULP", "reason"), rows, frozenset((3,)))


def ops_table(results: Sequence[Result], width: int = WIDE) -> Iterator[Block]:
    """One row an operator; of many operators those that fail."""
    heading = "Operators"
    if len({r.op for r in results}) > DETAILED:
        heading = "Operators with failures"
        failing = {r.op for r in results if r.failing}
        results = [r for r in results if r.op in failing]
    if results:
        yield Heading(heading)
        yield operators(results, narrow=width < WIDE)


def operators(results: Sequence[Result], narrow: bool = False) -> Grid:
    """One row an operator: how many cases of each form passed, how many reached which tier."""
    by_op: dict[str, list[Result]] = {}
    for r in results:
        by_op.setdefault(r.op, []).append(r)
    present = {_form(r) for r in results}
    forms = [] if narrow else [(f, label) for f, label in _FORMS if f in present]
    rows: list[list[Content]] = []
    for op, local in by_op.items():
        shares = [_share([r for r in local if _form(r) == f]) for f, _ in forms]
        rows.append([op, _verdict_cell(local), *(shares or [_share(local)]), _tiers(local)])
    columns = ("operator", "verdict", *([label for _, label in forms] or ["passed"]), "tiers")
    return Grid(columns, rows, frozenset(range(2, len(columns) - 1)))


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
    yield Items([failure(r, extra) for r in ranked(failing)[:most]])
    if len(failing) > most:
        yield Line(
            Cell(
                f"… and {len(failing) - most} more; all are in the journal, `-v` shows them", "dim"
            )
        )


def ranked(failing: Sequence[Result]) -> list[Result]:
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
    details += [("standard", text) for text in r.standards]
    details += _worst(r)
    if r.pattern:
        details += [("where", r.pattern["text"]), ("map", r.pattern["blocks"])]
    if len({recheck.rpartition(": ")[2] for recheck in r.rechecks} | {r.verdict}) > 1:
        details.append(("rechecks", ", ".join(r.rechecks)))
    if r.issue:
        details.append(("known issue", r.issue))
    details.append(("again", repro(r.case, r.seed, _at(r, extra))))
    return Item(Cell(f"{r.verdict}  {r.case}", style_of(r.verdict)), details, r.case)


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
    counted = not measure["nonfinite"] and measure["max_ulp"]  # of integers no ULP are counted
    size = "NaN or Inf " if measure["nonfinite"] else ""
    size += f"{_number(measure['max_ulp'])} ULP " if counted else ""
    text = f"{size}at {list(worst['index'])}"
    inputs = worst.get("inputs") or {}
    if inputs:
        text += " from " + ", ".join(inputs.values())
    if not counted:
        return [("worst", text)]
    return [("worst", text), ("bias", f"{_number(measure['bias'])} ULP mean signed error")]


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | int) else str(value)


def notes(results: Sequence[Result], verbose: bool = False) -> Iterator[Block]:
    """What is neither pass nor failure: a line per verdict, or a table of cases by reason."""
    for verdict in ("XPASS", "XFAIL", "UNSUPPORTED", "SKIP"):
        local = [r for r in results if r.verdict == verdict]
        if not local:
            continue
        if not verbose:
            kinds = Counter((r.issue or r.reason).partition(":")[0] for r in local)
            reasons = [kind for kind, _ in kinds.most_common(3)] + ["…"] * (len(kinds) > 3)
            yield Line(Cell(f"{verdict} {len(local)}: {'; '.join(reasons)}", "dim"))
            continue
        yield Heading(f"{verdict}: {VERDICTS[verdict][1]}")
        yield _reasons(local)


def _reasons(results: Sequence[Result]) -> Grid:
    cases: dict[str, list[str]] = {}
    for r in results:
        cases.setdefault(_kind(r), []).append(r.case)
    common = sorted(cases.items(), key=lambda x: -len(x[1]))
    rows: list[list[Content]] = [[str(len(c)), c[0], reason] for reason, c in common[:_REASONS]]
    if len(common) > _REASONS:
        left = sum(len(c) for _, c in common[_REASONS:])
        rows.append([str(left), "…", "other reasons"])
    return Grid(("cases", "such as", "reason"), rows, frozenset((0,)))


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


def constants(reasons: Mapping[str, str]) -> list[Block]:
    """What no case of an operator varies, and why."""
    return [Line("no case varies:"), Facts(list(reasons.items()))] if reasons else []


def assumptions(assumed: Mapping[str, Sequence[str]]) -> list[Block]:
    """What was assumed of the parameters of operators that nobody declared."""
    blocks: list[Block] = []
    for name, lines in assumed.items():
        blocks += [Heading(f"Assumed of {name}, whose reference declares nothing"),
                   *(Line(f"  {line}") for line in lines)]  # fmt: skip
    return blocks
