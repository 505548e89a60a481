"""A recording as one page of HTML: what was called, and when, with nothing to load."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Final

from .. import pages, render
from .reader import Recording
from .values import Call

_LANES_MOST: Final = 8
_BARS_MOST: Final = 4000


def page(recording: Recording, blocks: list[render.Block]) -> str:
    """The page: the summary's blocks, below a timeline of the longest calls."""
    return pages.page("document.html", title=" ".join(recording.header["command"]),
                      lead=_timeline(recording), blocks=blocks, rest="")  # fmt: skip


class _Extent:
    """When calls began and ended, and the first threads of them; looks at one at a time."""

    def __init__(self) -> None:
        self.first, self.last = 0, 0
        self.lanes: list[int] = []

    def watch(self, calls: Iterable[Call]) -> Iterator[Call]:
        """The finished ones, in order."""
        for call in calls:
            if not call.finished:
                continue
            self.first = min(self.first, call.start) if self.lanes else call.start
            self.last = max(self.last, call.start + call.duration)
            if call.thread not in self.lanes and len(self.lanes) < _LANES_MOST:
                self.lanes.append(call.thread)
            yield call


def _timeline(recording: Recording) -> str:
    """One lane per thread; of very many calls the longest."""
    extent = _Extent()
    longest = heapq.nlargest(_BARS_MOST, extent.watch(recording.calls()), key=lambda c: c.duration)
    if not longest:
        return ""
    first, last, lanes = extent.first, extent.last, extent.lanes
    scale = 1000 / max(last - first, 1)
    bars = []
    for call in longest:
        if call.thread not in lanes:
            continue
        kind = "failed" if call.status else "launch" if call.phase == 2 else "runtime"
        x, width = (call.start - first) * scale, max(call.duration * scale, 0.3)
        text = f"{call.name} {call.duration / 1000:.1f} µs (call {call.number})"
        bars.append((kind, x, 20 * lanes.index(call.thread) + 2, width, text))
    span = f"{(last - first) / 1e6:,.1f} ms, {len(lanes)} thread" + "s" * (len(lanes) > 1)
    return pages.part("timeline.html", span=span, lanes=len(lanes), bars=bars)
