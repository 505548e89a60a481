"""Owns the JSON report: a run as one document. What passed is a short row a case, grouped by what
the cases share; every other result stands whole, as in the journal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...conformance.record import passes
from ...conformance.record.journal import Record


def text(record: Record) -> str:
    """The report; schema check.schema.json."""
    counts = record.counts()
    head = {
        **record.header,
        "summary": {
            "counts": counts.by_verdict,
            "failing": counts.failing,
            "unfinished": record.unfinished,
            **(record.end or {"interrupted": True}),
        },
    }
    results = list(record.results.values())
    others = [r.as_json() for r in results if r.verdict != "PASS"]
    groups = passes.grouped([r for r in results if r.verdict == "PASS"])
    return "".join(_lines({**head, "results": others, "passes": groups}))


def _lines(data: dict[str, Any]) -> Iterator[str]:
    """Indented, with a result or a group of passes a line."""
    yield "{\n"
    for i, (name, value) in enumerate(data.items()):
        comma = ",\n" if i else ""
        if name in ("results", "passes"):
            lines = ",\n".join(json.dumps(v, ensure_ascii=False, separators=(",", ":"))
                               for v in value)  # fmt: skip
            yield f'{comma} "{name}": [\n{lines}\n ]'
        else:
            text = json.dumps(value, ensure_ascii=False, indent=1).replace("\n", "\n ")
            yield f"{comma} {json.dumps(name)}: {text}"
    yield "\n}\n"
