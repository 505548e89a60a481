"""Owns a fleet's page: one self-contained file with a table of devices to filter and sort, a map
of hosts × devices, and the rest of the report.
"""

from __future__ import annotations

import html as markup
import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from ..commands import report as reports
from ..conformance.record.result import FAILING, VERDICTS
from ..conformance.run import chips
from ..render import Block, Cell, Code, Content, Facts, Grid, Heading, Item, Items, Line, printable
from .advice import advice
from .device_stats import DeviceStats
from .merge import Fleet
from .report import document, method


def html(fleet: Fleet) -> str:
    """The report as a page that needs no network."""
    style = (files(reports.__package__ or "") / "page.css").read_text("utf-8")
    css = (files(__package__) / "page.css").read_text("utf-8")
    script = (files(__package__) / "page.js").read_text("utf-8")
    blocks = [_markup(block, i == 0) for i, block in enumerate(document(fleet, every=True))]
    head, rest = "\n".join(blocks[:2]), blocks[2:]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<title>mindtorch-npu fleet</title><link rel="icon" href="data:,">'
        f"<style>{style}{css}</style></head>\n<body class=fleet><main>\n{head}\n{_DEVICES}\n"
        + "\n".join(rest)
        + f"\n</main><script>const FLEET = {_embedded(fleet)};\n{script}</script>\n</body></html>\n"
    )


_DEVICES = """<section id=devices hidden>
<h2>Devices</h2>
<p id=summary></p>
<h3>Hosts × devices</h3>
<div id=map role=group aria-label="State of every device, a row a host"></div>
<p class=legend><i class=ok></i>healthy <i class=slow></i>slow or failing
<i class=out></i>to take out <i class=none></i>not judged</p>
<p class=controls><input id=filter type=search placeholder="filter: host, device, serial, kind …"
 aria-label="Filter devices"> <button id=fold type=button></button></p>
<div class=scroll tabindex=0><table id=table><thead></thead><tbody></tbody></table></div>
<p id=method class=dim></p>
</section>"""


def _embedded(fleet: Fleet) -> str:
    """The data as JSON that no HTML parser can mistake for markup."""
    text = json.dumps(_data(fleet), ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _data(fleet: Fleet) -> dict[str, Any]:
    present = {v for s in fleet.devices for v, n in s.counts.by_verdict.items() if n}
    actions = {a.place: a.action for a in advice(fleet)}
    timed = [s.speed for s in fleet.devices if s.speed is not None]
    return {
        "verdicts": [v for v in dict.fromkeys(("PASS", *VERDICTS)) if v in present],
        "failing": sorted(FAILING & present),
        "days": sorted({day for s in fleet.devices for day, _, _ in s.days}),
        "method": method(timed) if timed else "",
        "devices": [_row(s, actions.get(s.name, "")) for s in fleet.devices],
    }


def _row(stats: DeviceStats, action: str) -> dict[str, Any]:
    speed = stats.speed
    return {
        "node": printable(stats.node), "device": printable(stats.device), "action": action,
        "counts": {v: n for v, n in stats.counts.by_verdict.items() if n},
        "failing": stats.counts.failing, "kinds": list(stats.kinds), "cases": stats.deviating,
        "time": None if speed is None else round(speed.median, 3),
        "slow": bool(speed and speed.slow), "serial": str(stats.chip.get("serial", "")),
        "health": _health(stats), "chip": _chip(stats),
        "days": {day: [n, f] for day, n, f in stats.days},
    }  # fmt: skip


def _health(stats: DeviceStats) -> str:
    """Temperature and power after the last run, and the state where it is not OK."""
    last = {**stats.health.get("before", {}), **stats.health.get("after", {})}
    units = ((chips.TEMPERATURE, "°C"), (chips.POWER, "W"))
    words = [f"{last[name]:g} {unit}" for name, unit in units if name in last]
    return ", ".join(words + ([stats.state] if stats.state not in ("", "OK") else []))


def _chip(stats: DeviceStats) -> str:
    """All that is known of a chip, a line each."""
    facts = [f"{name}: {value}" for name, value in stats.chip.items()]
    facts += [f"{name} {when}: {value}" for when, counters in stats.health.items()
              for name, value in counters.items()]  # fmt: skip
    return printable("\n".join(facts + [f"beside: {name}" for name in stats.beside]))


def _inline(content: Content) -> str:
    text, style = (content.text, content.style) if isinstance(content, Cell) else (content, "")
    label = markup.escape(printable(text))
    return f'<span class="{style}">{label}</span>' if style else label


def _markup(block: Block, title: bool = False) -> str:
    match block:
        case Heading(text):
            return f"<h2>{markup.escape(text)}</h2>"
        case Line(content):
            return f"<h1>{_inline(content)}</h1>" if title else f"<p>{_inline(content)}</p>"
        case Code(text):
            return f"<pre>{markup.escape(printable(text))}</pre>"
        case Facts(rows):
            return "<dl>" + "".join(f"<dt>{markup.escape(n)}</dt><dd>{_inline(v)}</dd>"
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
    details = "".join(f"<dt>{markup.escape(label)}</dt><dd>{_inline(text)}</dd>"
                      for label, text in item.details)  # fmt: skip
    return f"<li><b>{_inline(item.title)}</b><dl>{details}</dl></li>"
