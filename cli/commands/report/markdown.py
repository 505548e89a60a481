"""Owns the Markdown report, for an issue, a wiki or a CI summary."""

from __future__ import annotations

from ...conformance.record.journal import Record, place_words
from ...render import markdown
from ..check import text as check_text


def text(record: Record) -> str:
    """The terminal's report as GitHub Markdown."""
    seconds = float((record.end or {}).get("seconds", 0.0))
    results = list(record.results.values())
    where = place_words(
        record.header.get("options", {}).get("where", {}), record.header.get("environment", {})
    )
    return markdown(check_text.document(record.header, results, seconds, extra=where))
