"""Owns the files of a fleet's report: JSON for monitoring, Prometheus text, Markdown, one page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from aclnn_bindings.interface import atomic_write

from ..commands.report import UnwritableError
from ..conformance.record import votes
from ..render import markdown
from . import page, prometheus, work
from .advice import advice
from .host_faults import name_of, rows
from .merge import VERSIONS, Fleet
from .report import document

SCHEMA: Final = "mindtorch-npu/fleet/2"


def data(fleet: Fleet) -> dict[str, Any]:
    """The report as plain data."""
    counts = fleet.counts()
    return {
        "schema": SCHEMA,
        "runs": [{"run": p.run, "node": p.node, "file": name_of(p.path), "results": p.results,
                  "shard": p.options.get("shard", "1/1")} for p in fleet.parts],
        "counts": counts.by_verdict, "failing": counts.failing,
        "devices": [stats.as_json() for stats in fleet.devices],
        "advice": [one.as_json() for one in advice(fleet)],
        "versions": {node: {name: environment.get(name, "") for name in VERSIONS}
                     for node, environment in fleet.environments()},
        "host_faults": [row._asdict() for row in rows(fleet)],
        "findings": [f.as_json() for f in work.findings(fleet)],
        "workloads": [t.as_json() for t in work.timings(fleet)],
        "deviations": [d.as_json() for d in fleet.deviations],
        "suspects": [place for place, _ in votes.suspects(fleet.deviations)],
        "worst": [{"op": w.op, "failing": w.failing, "judged": w.judged, "devices": w.places,
                   "first": w.first} for w in fleet.tally.worst_ops()],
        "lost": [{"case": case, "seed": seed, "place": place, "how": how}
                 for (case, seed, place), how in fleet.lost.items()],
        "lost_cases": fleet.lost_counts.total(),
        "missing": [str(shard) for shard in fleet.missing],
        "unread": [{"source": one.source, "why": one.why} for one in fleet.unread],
    }  # fmt: skip


def as_json(fleet: Fleet) -> str:
    return json.dumps(data(fleet), indent=1, ensure_ascii=False) + "\n"


def as_markdown(fleet: Fleet) -> str:
    return markdown(document(fleet))


_WRITERS: Final[dict[str, Callable[[Fleet], str]]] = {
    "html": page.html, "md": as_markdown, "json_file": as_json, "prometheus": prometheus.text,
}  # fmt: skip


def write_all(fleet: Fleet, options: Mapping[str, Any]) -> list[str]:
    """Write every file that `options` names; their paths. A collector never sees half a file."""
    paths = []
    for name, render in _WRITERS.items():
        path = options.get(name)
        if path is None:
            continue
        try:
            atomic_write.write(path, render(fleet))
        except OSError as error:
            raise UnwritableError(f"{path}: cannot be written: {error.strerror}") from None
        except prometheus.MissingLibraryError as error:
            raise UnwritableError(str(error)) from None
        paths.append(str(path))
    return paths
