"""Owns the files of a fleet's report: JSON for monitoring, Prometheus text, Markdown, one page."""

from __future__ import annotations

import html
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any, Final

from aclnn_bindings.interface import whole

from ..commands import report as reports
from ..commands.report import UnwritableError
from ..conformance.record import votes
from ..render import (
    Block,
    Cell,
    Code,
    Content,
    Facts,
    Grid,
    Heading,
    Item,
    Items,
    Line,
    markdown,
    printable,
)
from . import work
from .device_stats import devices, worst_ops
from .host_faults import rows
from .merge import VERSIONS, Fleet
from .report import document

SCHEMA: Final = "mindtorch-npu/fleet/1"


def data(fleet: Fleet) -> dict[str, Any]:
    """The report as plain data."""
    counts = fleet.counts()
    return {
        "schema": SCHEMA,
        "runs": [{"run": p.run, "node": p.node, "file": p.path.name, "results": len(p.results),
                  "shard": p.options.get("shard", "1/1")} for p in fleet.parts],
        "counts": counts.by_verdict, "failing": counts.failing,
        "places": [place.as_json() for place in devices(fleet)],
        "versions": {node: {name: environment.get(name, "") for name in VERSIONS}
                     for node, environment in fleet.environments()},
        "host_faults": [row._asdict() for row in rows(fleet)],
        "findings": [f.as_json() for f in work.findings(fleet)],
        "workloads": [t.as_json() for t in work.timings(fleet)],
        "deviations": [d.as_json() for d in fleet.deviations],
        "suspects": [place for place, _ in votes.suspects(fleet.deviations)],
        "worst": [{"op": w.op, "failing": w.failing, "judged": w.judged, "places": w.places,
                   "first": w.first} for w in worst_ops(fleet)],
        "lost": [{"case": case, "seed": seed, "place": place, "how": how}
                 for (case, seed, place), how in fleet.lost.items()],
        "missing": [str(shard) for shard in fleet.missing],
    }  # fmt: skip


def as_json(fleet: Fleet) -> str:
    return json.dumps(data(fleet), indent=1, ensure_ascii=False) + "\n"


def as_markdown(fleet: Fleet) -> str:
    return markdown(document(fleet))


def _label(text: str) -> str:
    """A label value as Prometheus' text format wants it: backslash, quote, line feed escaped; of
    other controls it has no form."""
    return printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _metric(
    name: str, helped: str, samples: Iterable[tuple[Mapping[str, str], float]]
) -> Iterator[str]:
    yield f"# HELP {name} {helped}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        inner = ",".join(f'{k}="{_label(v)}"' for k, v in labels.items())
        yield name + (f"{{{inner}}}" if inner else "") + f" {value:g}"


def prometheus(fleet: Fleet) -> str:
    """Text exposition format 0.0.4 (Prometheus documents), for textfile collectors."""
    there = devices(fleet)
    at = [({"node": p.node, "device": p.device}, p) for p in there]
    host_faults: dict[tuple[str, str], int] = {}
    for row in rows(fleet):
        host_faults[row.name, row.place] = host_faults.get((row.name, row.place), 0) + 1
    seen = Counter((node, f.severity) for f in work.findings(fleet) for node in f.nodes)
    lines = [
        *_metric("mindtorch_npu_check_results", "Cases by device and verdict.",
                 (({**labels, "verdict": v}, n) for labels, p in at
                  for v, n in sorted(p.counts.by_verdict.items()))),
        *_metric("mindtorch_npu_check_failing", "Cases that fail, by device.",
                 ((labels, p.counts.failing) for labels, p in at)),
        *_metric("mindtorch_npu_device_deviates",
                 "1 where a device differs from the others, by kind.",
                 (({**labels, "kind": kind}, 1) for labels, p in at for kind in p.kinds)),
        *_metric("mindtorch_npu_device_time_ratio",
                 "Median time of a device's cases over that of all devices.",
                 ((labels, p.speed.median) for labels, p in at if p.speed is not None)),
        *_metric("mindtorch_npu_device_slow",
                 "1 where a device's time is above the others' by more than chance and margin.",
                 ((labels, p.speed.slow) for labels, p in at if p.speed is not None)),
        *_metric("mindtorch_npu_host_findings", "What probe saw on a host, by severity.",
                 (({"node": node, "severity": s}, n) for (node, s), n in seen.items())),
        *_metric("mindtorch_npu_host_faults", "Things that went wrong with hosts, by name.",
                 (({"what": what, "place": place}, n) for (what, place), n in host_faults.items())),
        *_metric("mindtorch_npu_fleet_lost_cases", "Planned cases without a result.",
                 [({}, len(fleet.lost))]),
        *_metric("mindtorch_npu_fleet_missing_shards", "Parts without a journal.",
                 [({}, len(fleet.missing))]),
        *_metric("mindtorch_npu_fleet_merged_timestamp_seconds", "When this was written.",
                 [({}, int(time.time()))]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def page(fleet: Fleet) -> str:
    """One self-contained page."""
    style = (files(reports.__package__ or "") / "page.css").read_text("utf-8")
    own = (files(__package__) / "page.css").read_text("utf-8")
    blocks = list(document(fleet))
    body = "\n".join(_markup(block, i == 0) for i, block in enumerate(blocks))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<title>mindtorch-npu fleet</title><link rel="icon" href="data:,">'
        f"<style>{style}{own}</style></head>\n<body class=fleet>\n{body}\n</body></html>\n"
    )


def _inline(content: Content) -> str:
    text, style = (content.text, content.style) if isinstance(content, Cell) else (content, "")
    shown = html.escape(printable(text))
    return f'<span class="{style}">{shown}</span>' if style else shown


def _markup(block: Block, title: bool = False) -> str:
    match block:
        case Heading(text):
            return f"<h2>{html.escape(text)}</h2>"
        case Line(content):
            return f"<h1>{_inline(content)}</h1>" if title else f"<p>{_inline(content)}</p>"
        case Code(text):
            return f"<pre>{html.escape(printable(text))}</pre>"
        case Facts(rows):
            return "<dl>" + "".join(f"<dt>{html.escape(n)}</dt><dd>{_inline(v)}</dd>"
                                    for n, v in rows) + "</dl>"  # fmt: skip
        case Grid():
            return _table(block)
        case Items(items):
            return "<ol>" + "".join(map(_listed, items)) + "</ol>"


def _table(block: Grid) -> str:
    def row(cells: Iterable[Content], tag: str) -> str:
        inner = "".join(
            f"<{tag}{' class=number' if i in block.right else ''}>{_inline(c)}</{tag}>"
            for i, c in enumerate(cells)
        )
        return f"<tr>{inner}</tr>"

    head = row(block.columns, "th")
    body = "".join(row(cells, "td") for cells in block.rows)
    table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    return f"<div class=scroll tabindex=0>{table}</div>"


def _listed(item: Item) -> str:
    details = "".join(f"<dt>{html.escape(label)}</dt><dd>{_inline(text)}</dd>"
                      for label, text in item.details)  # fmt: skip
    return f"<li><b>{_inline(item.title)}</b><dl>{details}</dl></li>"


_WRITERS: Final[dict[str, Callable[[Fleet], str]]] = {
    "html": page, "md": as_markdown, "json_file": as_json, "prometheus": prometheus,
}  # fmt: skip


def write_all(fleet: Fleet, options: Mapping[str, Any]) -> list[str]:
    """Write every file that `options` names; their paths. A collector never sees half a file."""
    written = []
    for name, render in _WRITERS.items():
        path = options.get(name)
        if path is None:
            continue
        try:
            whole.write(path, render(fleet))
        except OSError as error:
            raise UnwritableError(f"{path}: cannot be written: {error.strerror}") from None
        written.append(str(path))
    return written
