"""Owns the HTML report: one self-contained page, with filters and a detail view per case."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from ...conformance.record.journal import Record, place_words, repro
from ...conformance.record.result import VERDICTS, Result
from ...conformance.run.environment import summary
from ...judge.metrics import BUCKETS
from ..check import text as check_text


def page(record: Record) -> str:
    """The record as a page that needs no network."""
    template = (files(__package__) / "page.html").read_text("utf-8")
    style = (files(__package__) / "page.css").read_text("utf-8")
    script = (files(__package__) / "page.js").read_text("utf-8")
    for name, text in (("STYLE", style), ("SCRIPT", script), ("DATA", _embedded(record))):
        template = template.replace(f"/*{name}*/", text)
    return template


def _embedded(record: Record) -> str:
    """The data as JSON that no HTML parser can mistake for markup."""
    text = json.dumps(data(record), ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def data(record: Record) -> dict[str, Any]:
    """What the page shows; passes that are exact carry no measure, which keeps the page small."""
    environment = record.header.get("environment", {})
    results = list(record.results.values())
    where = place_words(record.header.get("options", {}).get("where", {}))
    seconds = float((record.end or {}).get("seconds", 0.0))
    return {
        "title": check_text.title(record.header),
        "subtitle": summary(environment) if environment else "",
        "started": record.header.get("started", ""),
        "totals": check_text.totals(results, seconds).text,
        "interrupted": bool((record.end or {"interrupted": True}).get("interrupted")),
        "unfinished": record.unfinished,
        "environment": _flat(environment),
        "buckets": [f"{b:g}" for b in BUCKETS],
        "verdicts": {v: {"fails": f, "meaning": m} for v, (f, m) in VERDICTS.items()},
        "results": [_case(r, where) for r in results],
    }


def _case(r: Result, where: list[str]) -> dict[str, Any]:
    fields = r.as_json()
    fields["repro"] = repro(r.case, r.seed, where)
    measure = fields.get("measure")
    if measure and r.verdict == "PASS" and not measure.get("different"):
        del fields["measure"]
    return fields


def _flat(environment: dict[str, Any]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in environment.items():
        if isinstance(value, dict):
            flat.update({f"{name}: {k}": str(v) for k, v in value.items()})
        elif value not in ("", None):
            flat[name] = str(value)
    return flat
