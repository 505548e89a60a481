"""Owns how events of a profiler are shown: names, times, memory and calls in a table."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any


def time_text(time: float) -> str:
    """A time of µs in the unit that torch shows it in."""
    if time >= 1e6:
        return f"{time / 1e6:.3f}s"
    return f"{time / 1e3:.3f}ms" if time >= 1e3 else f"{time:.3f}us"


def _memory_text(nbytes: int) -> str:
    """A number of bytes in the unit that torch shows it in."""
    for exponent, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(nbytes) >= 1 << 10 * exponent:
            return f"{nbytes / (1 << 10 * exponent):.2f} {unit}"
    return f"{nbytes} B"


def _in_unit(time: float, unit: str | None) -> str:
    """A time of µs in a unit, or in the one that fits."""
    if unit == "s":
        return f"{time / 1e6:.3f}s"
    if unit == "ms":
        return f"{time / 1e3:.3f}ms"
    return f"{time:.3f}us" if unit == "us" else time_text(time)


def _share(time: float, whole: float) -> str:
    if whole == 0:
        return "NaN"
    return f"{time * 100 / whole:.2f}%"


def _at_most(width: int, most: int | None) -> int:
    return width if most is None else min(width, most)


def _cut(name: str, most: int | None) -> str:
    return name if most is None or len(name) < most - 3 else f"{name[: most - 3]}..."


def write_table(
    events: Sequence[Any], sort_by: str | None, row_limit: int, name_width: int | None,
    shapes_width: int | None, header: str | None, top_level: bool, unit: str | None,
    memory: bool, flops: bool,
) -> str:  # fmt: skip
    """The events by a field of theirs, those of the largest first, `row_limit` at most."""
    if not events:
        return ""
    if sort_by is not None:
        for kind in ("cuda", "xpu", "privateuse1"):
            sort_by = sort_by.replace(kind, "device")
        events = sorted(events, key=lambda e: getattr(e, str(sort_by)), reverse=True)
    whole = sum(e.self_cpu_time_total for e in events)
    heads = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    heads += ["CPU Mem", "Self CPU Mem"] * memory + ["# of Calls"]
    widths = [_at_most(max(len(e.key) for e in events) + 4, name_width), *[12] * (len(heads) - 1)]
    shaped = any(e.input_shapes for e in events)
    if shaped:
        heads.append("Input Shapes")
        widths.append(_at_most(max(len(str(e.input_shapes)) for e in events) + 4, shapes_width))
    counted = [e.flops for e in events if e.flops > 0] if flops else []
    thousands = 0
    if counted:
        thousands = int(max(0.0, min(log10(min(counted)) / 3, 5.0)))
        heads.append(f"Total {('', 'K', 'M', 'G', 'T', 'P')[thousands]}FLOPs")
        widths.append(12)

    def row(cells: Sequence[object]) -> str:
        return "".join(f"{cell:>{n}}  " for cell, n in zip(cells, widths, strict=True))

    def cells(e: Any) -> list[object]:
        mine, total = e.self_cpu_time_total, e.cpu_time_total
        times = [_share(mine, whole), _in_unit(mine, unit), _share(total, whole),
                 _in_unit(total, unit), _in_unit(e.cpu_time, unit)]  # fmt: skip
        if memory:
            times += [_memory_text(e.cpu_memory_usage), _memory_text(e.self_cpu_memory_usage)]
        ends: list[object] = [e.count]
        if shaped:
            ends.append(str(e.input_shapes)[: widths[len(heads) - 1 - bool(counted)]])
        if counted:
            ends.append(f"{e.flops * 10.0 ** (-3 * thousands):8.3f}" if e.flops > 0 else "--")
        return [_cut(e.key, name_width), *times, *ends]

    listed = [e for e in events if not (top_level and getattr(e, "cpu_parent", None) is not None)]
    listed = listed[: row_limit if row_limit >= 0 else None]
    line, length = row(["-" * n for n in widths]), sum(widths) + 2 * (len(widths) - 1)
    lines = [] if header is None else ["=" * length, header]
    if top_level:
        lines += ["=" * length, "This report only display top-level ops statistics"]
    lines += [line, row(heads), line, *(row(cells(e)) for e in listed), line]
    return "\n".join([*lines, f"Self CPU time total: {_in_unit(whole, unit)}\n"])
