"""Owns a fleet's metrics for Prometheus, written by prometheus_client (the extra `cluster`)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..conformance.record import votes
from ..conformance.record.result import VERDICTS
from ..conformance.run import chips
from ..render import printable
from . import advice, work
from .device_stats import DeviceStats
from .host_faults import rows
from .merge import Fleet

_PREFIX: Final = "mindtorch_npu"
_CHIP: Final = ("serial", "bus_id", "slot", "firmware", "driver")
# Metric, the name of its counter in journals, the unit's factor, and what it is.
_GAUGES: Final = (
    ("device_temperature_celsius", chips.TEMPERATURE, 1, "Temperature of the chip."),
    ("device_power_watts", chips.POWER, 1, "Power of the chip."),
    ("device_hbm_used_ratio", chips.HBM_USAGE, 0.01, "Share of the chip's memory in use."),
)
Sample = tuple[Mapping[str, str], float]


class MissingLibraryError(ValueError):
    """prometheus_client is not installed; the message says how to install it."""


def text(fleet: Fleet) -> str:
    """Text exposition format 0.0.4, for a textfile collector."""
    try:
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.registry import Collector
    except ImportError:
        raise MissingLibraryError(
            "--prometheus needs prometheus_client: pip install 'mindtorch-npu[cluster]'"
        ) from None

    class _Fleet(Collector):
        def collect(self) -> Iterator[Any]:
            return _families(fleet)

    registry = CollectorRegistry()
    registry.register(_Fleet())
    return generate_latest(registry).decode()


def _family(kind: str, name: str, text: str, samples: Iterable[Sample]) -> Any:
    """A family of samples with one set of labels; counters end in `_total`."""
    from prometheus_client import core

    rows = list(samples)
    labels = list(rows[0][0]) if rows else []
    make = {"counter": core.CounterMetricFamily, "gauge": core.GaugeMetricFamily,
            "info": core.GaugeMetricFamily}[kind]  # fmt: skip
    family = make(f"{_PREFIX}_{name}" + ("_info" if kind == "info" else ""), text, labels=labels)
    for values, number in rows:
        family.add_metric([printable(v) for v in values.values()], number)
    return family


def _families(fleet: Fleet) -> Iterator[Any]:
    yield _family("info", "build", "Version of mindtorch-npu that wrote the journals.",
                  [({"version": fleet.version}, 1)])  # fmt: skip
    yield from _of_devices(fleet)
    yield from _of_hosts(fleet)
    yield _family("gauge", "fleet_lost_cases", "Planned cases without a result.",
                  [({}, fleet.lost_counts.total())])  # fmt: skip
    yield _family("gauge", "fleet_missing_shards", "Parts of a divided run without a journal.",
                  [({}, len(fleet.missing))])  # fmt: skip
    yield _family("gauge", "fleet_unread_journals", "Journals that are not in the report.",
                  [({}, len(fleet.unread))])  # fmt: skip
    yield _family("gauge", "fleet_merged_timestamp_seconds", "When this was written (Unix time).",
                  [({}, time.time())])  # fmt: skip


def _of_devices(fleet: Fleet) -> Iterator[Any]:
    at = [({"node": s.node, "device": s.device}, s) for s in fleet.devices]
    timed = [(labels, s.speed) for labels, s in at if s.speed is not None]
    counts = Counter((d.place, d.kind) for d in fleet.deviations)
    yield _family("info", "device", "What the system says of a device.",
                  (({**labels, **{k: str(s.chip.get(k, "")) for k in _CHIP}}, 1)
                   for labels, s in at))  # fmt: skip
    yield _family("counter", "check_results", "Cases by device and verdict.",
                  (({**labels, "verdict": v}, s.counts.by_verdict.get(v, 0))
                   for labels, s in at for v in VERDICTS))  # fmt: skip
    yield _family("counter", "check_failures", "Cases that fail, by device.",
                  ((labels, s.counts.failing) for labels, s in at))  # fmt: skip
    yield _family("counter", "check_duration_seconds", "Time that cases took, by device.",
                  ((labels, s.seconds) for labels, s in at))  # fmt: skip
    yield _family("counter", "device_deviations",
                  "Cases in which a device differs from the others, by kind.",
                  (({**labels, "kind": kind}, counts[s.name, kind])
                   for labels, s in at for kind in votes.CLASSES))  # fmt: skip
    advised = {a.place: a.action for a in advice.advice(fleet)}
    yield _family("gauge", "device_advice", "1 where an operator should do this with a device.",
                  (({**labels, "action": action}, advised.get(s.name) == action)
                   for labels, s in at for action in advice.ACTIONS))  # fmt: skip
    yield from _of_health(at)
    yield _family("gauge", "device_time_ratio",
                  "Median time of a device's work over that of all devices.",
                  ((labels, speed.median) for labels, speed in timed))  # fmt: skip
    yield _family("gauge", "device_slow",
                  "1 where a device's time is above the others' by more than chance and margin.",
                  ((labels, speed.slow) for labels, speed in timed))  # fmt: skip


def _of_health(at: Iterable[tuple[Mapping[str, str], DeviceStats]]) -> Iterator[Any]:
    """Counters of chips after their last run, of those whose system tells them."""
    known = [(labels, {**h.get("before", {}), **h.get("after", {})})
             for labels, s in at if (h := s.health)]  # fmt: skip
    for name, counter, factor, text in _GAUGES:
        yield _family("gauge", name, text, (
            (labels, factor * health[counter]) for labels, health in known if counter in health
        ))  # fmt: skip
    yield _family("gauge", "device_memory_errors", "What the chip's ECC counted, by its name.", (
        ({**labels, "counter": name}, value) for labels, health in known
        for name, value in health.items() if "bit" in name
    ))  # fmt: skip


def _of_hosts(fleet: Fleet) -> Iterator[Any]:
    seconds: Counter[str] = Counter()
    for part in fleet.parts:
        seconds[part.node] += (part.end or {}).get("seconds", 0.0)
    faults = Counter((row.place, row.name) for row in rows(fleet))
    seen = Counter((node, f.severity) for f in work.findings(fleet) for node in f.nodes)
    yield _family("counter", "run_duration_seconds", "Time that runs took, by host.",
                  (({"node": node}, value) for node, value in seconds.items()))  # fmt: skip
    yield _family(
        "gauge",
        "host_faults",
        "Things that went wrong with hosts, by name.",
        (({"place": place, "fault": name}, n) for (place, name), n in faults.items()),
    )
    yield _family("gauge", "host_findings", "What probe saw on a host, by severity.",
                  (({"node": n, "severity": s}, k) for (n, s), k in seen.items()))  # fmt: skip
