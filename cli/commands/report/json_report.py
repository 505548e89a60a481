"""Owns the JSON report: a run as one document, in the schema of its journal."""

from __future__ import annotations

import json

from ...conformance.record.journal import Record


def text(record: Record) -> str:
    """The report; schema check.schema.json."""
    counts = record.counts()
    data = {
        **record.header,
        "summary": {
            "counts": counts.by_verdict,
            "failing": counts.failing,
            "unfinished": record.unfinished,
            **(record.end or {"interrupted": True}),
        },
        "results": [r.as_json() for r in record.results.values()],
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
