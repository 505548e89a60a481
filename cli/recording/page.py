"""A recording as one page of HTML: what was called, and when, with nothing to load."""

from __future__ import annotations

from typing import Final

from .. import pages, render
from .reader import Recording

_LANES_MOST: Final = 8
_BARS_MOST: Final = 4000


def page(recording: Recording, blocks: list[render.Block]) -> str:
    """The page: the summary's blocks, below a timeline of the longest calls."""
    return pages.page("document.html", title=" ".join(recording.header["command"]),
                      lead=_timeline(recording), blocks=blocks, rest="")  # fmt: skip


def _timeline(recording: Recording) -> str:
    """One lane per thread; of very many calls the longest."""
    calls = [c for c in recording.calls() if c.finished]
    if not calls:
        return ""
    first = min(c.start for c in calls)
    last = max(c.start + c.duration for c in calls)
    lanes = list(dict.fromkeys(c.thread for c in calls))[:_LANES_MOST]
    scale = 1000 / max(last - first, 1)
    bars = []
    for call in sorted(calls, key=lambda c: -c.duration)[:_BARS_MOST]:
        if call.thread not in lanes:
            continue
        kind = "failed" if call.status else "launch" if call.phase == 2 else "runtime"
        x, width = (call.start - first) * scale, max(call.duration * scale, 0.3)
        text = f"{call.name} {call.duration / 1000:.1f} µs (call {call.number})"
        bars.append((kind, x, 20 * lanes.index(call.thread) + 2, width, text))
    span = f"{(last - first) / 1e6:,.1f} ms, {len(lanes)} thread" + "s" * (len(lanes) > 1)
    return pages.part("timeline.html", span=span, lanes=len(lanes), bars=bars)
