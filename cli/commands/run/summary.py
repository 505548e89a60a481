"""The end of a run as a table: operators by time, with counts, shapes and failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ... import render
from ...plurals import plural
from ...recording import LaunchGroup, RecordedTensor, Recording

_ROWS: Final = 20
_TENSORS: Final = 3


def document(recording: Recording, most: int = _ROWS) -> list[render.Block]:
    """What the program called: operators, then the other functions by host time."""
    launches = recording.launches()
    totals = recording.totals()
    blocks: list[render.Block] = [_facts(recording, launches, totals)]
    if launches:
        by = "device" if any(launch.timed for launch in launches) else "host"
        blocks += [render.Heading(f"Operators, by {by} time"), _operators(launches, most)]
    others = _others(totals, most // 2)
    if others:
        blocks += [render.Heading("Other functions"), _functions(others)]
    failed = [(name, row) for name, row in totals.items() if row[2]]
    if failed:
        blocks += [render.Heading("Calls that failed"), _functions(failed)]
    unfinished = [call for call in recording.calls() if not call.finished]
    for call in unfinished:
        text = f"in {call.name} (call {call.number}) when the process ended"
        blocks.append(render.Line(render.Cell(text, "bad")))
    return blocks


def _facts(
    recording: Recording, launches: list[LaunchGroup], totals: dict[str, tuple[int, int, int]]
) -> render.Block:
    calls = sum(row[0] for row in totals.values())
    host = sum(row[1] for row in totals.values())
    operators = len({launch.name for launch in launches})
    count = sum(launch.count for launch in launches)
    install = recording.header["install"]
    return render.Facts(
        [
            ("install", f"{install['kind']} {install['version'] or '?'} at {install['root']}"),
            ("calls", f"{calls:,} in {_time(host)}"),
            ("launches", f"{count:,} of {operators} operators, {len(launches)} distinct"),
        ]
    )


def _operators(launches: list[LaunchGroup], most: int) -> render.Block:
    total = sum(launch.host_ns for launch in launches) or 1
    timed = any(launch.timed for launch in launches)
    if timed:
        launches = sorted(launches, key=lambda launch: -launch.device_ns)
    rows: list[list[render.Content]] = []
    for launch in launches[:most]:
        failures: render.Content = render.Cell(str(launch.failures), "bad" if launch.failures
                                               else "dim")  # fmt: skip
        rows.append([launch.name, f"{launch.count:,}", _time(launch.host_ns),
                     f"{100 * launch.host_ns / total:.1f} %",
                     _time(launch.host_ns // launch.count), *_on_device([launch], timed), failures,
                     described(launch.arguments)])  # fmt: skip
    if len(launches) > most:
        rest = launches[most:]
        host = sum(launch.host_ns for launch in rest)
        rows.append([f"{len(rest)} more", f"{sum(r.count for r in rest):,}", _time(host),
                     f"{100 * host / total:.1f} %", "", *_on_device(rest, timed), "",
                     ""])  # fmt: skip
    device = ["device", "each"] if timed else []
    columns = ["operator", "launches", "host", "share", "each", *device, "failed", "given"]
    return render.Grid(columns, rows, frozenset(range(1, 6 + len(device))))


def _on_device(launches: Sequence[LaunchGroup], timed: bool) -> list[render.Content]:
    """Cells of the device's time, if there are any in the recording."""
    if not timed:
        return []
    ns, count = sum(one.device_ns for one in launches), sum(one.timed for one in launches)
    each = _time(ns // count) if count and len(launches) == 1 else ""
    return [_time(ns) if count else "", each]


def described(arguments: dict[str, Any]) -> str:
    """The first tensors of a launch, such as `FLOAT[2, 3]`."""
    tensors = [str(v) for v in arguments.values() if isinstance(v, RecordedTensor)]
    lists = [plural(len(v), "tensor") for v in arguments.values() if isinstance(v, tuple)]
    named = [*tensors, *lists]
    return " ".join(named[:_TENSORS]) + (" …" if len(named) > _TENSORS else "")


def _others(
    totals: dict[str, tuple[int, int, int]], most: int
) -> list[tuple[str, tuple[int, int, int]]]:
    rest = [(n, row) for n, row in totals.items() if not n.startswith("aclnn")]
    return sorted(rest, key=lambda entry: -entry[1][1])[:most]


def _functions(rows: list[tuple[str, tuple[int, int, int]]]) -> render.Block:
    cells = [[name, f"{count:,}", _time(host), str(failed)] for name, (count, host, failed) in rows]
    return render.Grid(["function", "calls", "host", "failed"], cells, frozenset((1, 2, 3)))


def _time(ns: int) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns} ns"
