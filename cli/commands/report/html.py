"""Owns the HTML report of `check`: causes and operators first, a place for every failure, and a
list of all cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ... import pages
from ...conformance.record import passes
from ...conformance.record.journal import Record, place_words
from ...conformance.record.result import VERDICTS, Result
from ...conformance.run.environment import summary
from ...judge.metrics import BUCKETS
from ..check import text as check_text
from ..check.causes import causes

# Failures with a place of their own; the list of all cases has the others.
_DETAILED: Final = 200
_BUCKETS: Final = ("= 0", *(f"≤ {b:g}" for b in BUCKETS[1:]), f"> {BUCKETS[-1]:g}", "NaN/Inf")
_COLUMNS: Final = (
    ("verdict", "verdict"), ("case", "case"), ("tier", "tier"), ("ulp", "max ULP"),
    ("seconds", "ms"),
)  # fmt: skip


def page(record: Record) -> str:
    """The record as a page that needs no network."""
    environment = record.header.get("environment", {})
    results = list(record.results.values())
    where = place_words(record.header.get("options", {}).get("where", {}), environment)
    failing = [r for r in results if r.failing]
    broken = {r.op for r in failing}
    return pages.page(
        "check.html",
        title=check_text.title(record.header),
        subtitle=" · ".join(filter(None, (summary(environment) if environment else "",
                                          str(record.header.get("started", ""))))),
        totals=check_text.totals(results, float((record.end or {}).get("seconds", 0.0))).text,
        interrupted=bool((record.end or {"interrupted": True}).get("interrupted")),
        unfinished=record.unfinished,
        causes=list(causes(results, where)),
        failing_operators=check_text.operators([r for r in results if r.op in broken]),
        passing_operators=check_text.operators([r for r in results if r.op not in broken]),
        failure_count=len(failing),
        failures=[(r, check_text.failure(r, where))
                  for r in check_text.ranked(failing)[:_DETAILED]],
        notes=list(check_text.notes(results, verbose=True)),
        buckets=_BUCKETS, columns=_COLUMNS, cases=_cases(results), environment=_flat(environment),
        meanings=[(v, meaning) for v, (_, meaning) in VERDICTS.items()],
    )  # fmt: skip


def _cases(results: Sequence[Result]) -> dict[str, Any]:
    """What the list of all cases reads."""
    others = [
        {"case": r.case, "form": r.form, "verdict": r.verdict, "dtype": r.dtype, "tier": r.tier,
         "seconds": round(r.seconds, 4), "ulp": (r.measure or {}).get("max_ulp", -1),
         "reason": r.issue or r.reason}
        for r in results if r.verdict != "PASS"
    ]  # fmt: skip
    return {"styles": {v: check_text.style_of(v) for v in VERDICTS}, "results": others,
            "passes": passes.grouped(r for r in results if r.verdict == "PASS")}  # fmt: skip


def _flat(environment: dict[str, Any]) -> list[tuple[str, str]]:
    flat: dict[str, str] = {}
    for name, value in environment.items():
        if isinstance(value, dict):
            flat.update({f"{name}: {k}": str(v) for k, v in value.items()})
        elif value not in ("", None):
            flat[name] = str(value)
    return list(flat.items())
