"""A recording as one page of HTML: what was called, and when, with nothing to load."""

from __future__ import annotations

import html
from typing import Final

from .. import render
from .reader import Recording

_LANES_MOST: Final = 8
_BARS_MOST: Final = 4000
_STYLE: Final = (
    "body{font:14px system-ui;margin:2em;max-width:75em}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em .2em 0;text-align:left;vertical-align:top}"
    "svg{width:100%;background:#f6f6f6}rect.launch{fill:#2a6fb0}rect.runtime{fill:#b9c6d2}"
    "rect.failed{fill:#c33}@media(prefers-color-scheme:dark){body{background:#151515;color:#ddd}"
    "svg{background:#222}}"
)


def page(recording: Recording, blocks: list[render.Block]) -> str:
    """The page: the summary's blocks, below a timeline of the longest calls."""
    title = html.escape(" ".join(recording.header["command"]))
    body = "".join(_block(block) for block in blocks)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1>{_timeline(recording)}{body}</html>\n"
    )


def _timeline(recording: Recording) -> str:
    """One lane per thread; of very many calls the longest."""
    calls = [c for c in recording.calls() if c.finished]
    if not calls:
        return ""
    first = min(c.start for c in calls)
    last = max(c.start + c.duration for c in calls)
    lanes = list(dict.fromkeys(c.thread for c in calls))[:_LANES_MOST]
    scale = 1000 / max(last - first, 1)
    label = sorted(calls, key=lambda c: -c.duration)[:_BARS_MOST]
    bars = []
    for call in label:
        if call.thread not in lanes:
            continue
        kind = "failed" if call.status else "launch" if call.phase == 2 else "runtime"
        x, width = (call.start - first) * scale, max(call.duration * scale, 0.3)
        text = html.escape(f"{call.name} {call.duration / 1000:.1f} µs (call {call.number})")
        bars.append(f'<rect class="{kind}" x="{x:.2f}" y="{20 * lanes.index(call.thread) + 2}" '
                    f'width="{width:.2f}" height="16"><title>{text}</title></rect>')  # fmt: skip
    height = 20 * len(lanes)
    span = f"{(last - first) / 1e6:,.1f} ms, {len(lanes)} threads"
    return (f"<p>{span}</p><svg viewBox='0 0 1000 {height}' height='{2 * height}' "
            f"preserveAspectRatio='none'>{''.join(bars)}</svg>")  # fmt: skip


def _block(block: render.Block) -> str:
    match block:
        case render.Heading(text):
            return f"<h2>{html.escape(text)}</h2>"
        case render.Line(content):
            return f"<p>{_cell(content)}</p>"
        case render.Facts(rows):
            cells = (f"<tr><th>{html.escape(n)}<td>{_cell(v)}" for n, v in rows)
            return f"<table>{''.join(cells)}</table>"
        case render.Grid(columns, rows, _):
            head = "".join(f"<th>{html.escape(c)}" for c in columns)
            body = "".join("<tr>" + "".join(f"<td>{_cell(c)}" for c in row) for row in rows)
            return f"<table><tr>{head}{body}</table>"
        case _:
            return ""


def _cell(content: render.Content) -> str:
    return html.escape(content.text if isinstance(content, render.Cell) else content)
