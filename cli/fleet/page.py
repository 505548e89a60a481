"""Owns a fleet's page: one self-contained file with a table of devices to filter and sort, a map
of hosts × devices, and the rest of the report.
"""

from __future__ import annotations

from typing import Any

from .. import pages
from ..conformance.record.result import FAILING, VERDICTS
from ..conformance.run import chips
from ..render import printable
from .advice import advice
from .device_stats import DeviceStats
from .merge import Fleet
from .report import document, method


def html(fleet: Fleet) -> str:
    """The report as a page that needs no network."""
    heading, summary, *blocks = document(fleet, every=True)
    return pages.page("fleet.html", title="mindtorch-npu fleet", heading=heading, summary=summary,
                      blocks=blocks, data=_data(fleet))  # fmt: skip


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
