"""Owns the roofline: measured peaks, and the plot as SVG written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10
from typing import Final

_WIDTH: Final = 760
_HEIGHT: Final = 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 40, 56
_STYLE: Final = (
    ".roofline{--ink:#333;--axis:#999;--grid:#e4e7eb;--paper:#fff;--roof:#2457c5;--dot:#d1495b}"
    "@media(prefers-color-scheme:dark){.roofline{--ink:#d5dbe3;--axis:#778;--grid:#2c3440;"
    "--paper:#12161c;--roof:#8ab0ff;--dot:#ff8a80}}"
    ".roofline text{font:12px system-ui,sans-serif;fill:var(--ink)}.roofline .axis{stroke:"
    "var(--axis)}.roofline .grid{stroke:var(--grid)}.roofline .paper{fill:var(--paper)}"
    ".roofline .roof{stroke:var(--roof);stroke-width:2;fill:none}.roofline .dot{fill:var(--dot)}"
    ".roofline .title{font-weight:600}"
)


@dataclass(frozen=True, slots=True)
class Peaks:
    """What this device reached: bytes/s of a large copy, operations/s of a large product: the most
    of any dtype, and those of each that was measured."""

    bandwidth: float
    compute: float
    products: Mapping[str, float] = field(default_factory=dict)
    # What the vendor or the user says that products of a dtype reach.
    nominal: Mapping[str, float] = field(default_factory=dict)

    def of(self, dtype: str) -> float:
        """The product rate that results of `dtype` are held against."""
        return self.products.get(dtype, self.compute)


@dataclass(frozen=True, slots=True)
class Point:
    """One workload: operations per byte, and operations per second."""

    label: str
    intensity: float
    rate: float


def svg(points: Sequence[Point], peaks: Peaks, title: str) -> str:
    """The plot, both axes logarithmic; roofs are measured on this device, not nominal."""
    visible = [p for p in points if p.intensity > 0 and p.rate > 0]
    ridge = peaks.compute / peaks.bandwidth
    xs = [ridge, *(p.intensity for p in visible)]
    x0, x1 = floor(log10(min(xs))) - 0.2, ceil(log10(max(xs))) + 0.5
    ys = [peaks.compute, *(p.rate for p in visible)]
    y0, y1 = floor(log10(min(ys))) - 0.1, log10(peaks.compute) + 0.5
    scale = _Scale(x0, x1, y0, y1)
    parts = [_grid(scale), _roof(scale, peaks), *_dots(scale, visible, peaks)]
    heading = f'<text class="title" x="{_LEFT}" y="22">{escape(title)}</text>'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="roofline" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}">'
        f"<style>{_STYLE}</style>"
        f'<rect class="paper" width="100%" height="100%"/>{heading}{"".join(parts)}</svg>\n'
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, value: float) -> float:
        share = (log10(value) - self.x0) / (self.x1 - self.x0)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (log10(value) - self.y0) / (self.y1 - self.y0)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _grid(scale: _Scale) -> str:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    for power in range(ceil(scale.x0), floor(scale.x1) + 1):
        x = scale.x(10.0**power)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
                     f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">'
                     f"{_decimal(power)}</text>")  # fmt: skip
    for power in range(ceil(scale.y0), floor(scale.y1) + 1):
        y = scale.y(10.0**power)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
                     f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
                     f"{_decimal(power - 9)}</text>")  # fmt: skip
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 14}" text-anchor="middle">'
                 "operations per byte</text>"
                 f'<text x="{_LEFT - 58}" y="22">GFLOP/s</text>')  # fmt: skip
    return "".join(parts)


def _decimal(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"


def _roof(scale: _Scale, peaks: Peaks) -> str:
    ridge = peaks.compute / peaks.bandwidth
    left, right = 10.0**scale.x0, 10.0**scale.x1
    low = max(left * peaks.bandwidth, 10.0**scale.y0)
    start = low / peaks.bandwidth
    points = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in (
        (start, low), (ridge, peaks.compute), (right, peaks.compute)))  # fmt: skip
    label = f"{peaks.compute / 1e9:.3g} GFLOP/s product · {peaks.bandwidth / 1e9:.3g} GB/s copy"
    return (f'<polyline class="roof" points="{points}"/>'
            f'<text x="{_WIDTH - _RIGHT}" y="{scale.y(peaks.compute) - 8:.1f}" '
            f'text-anchor="end">{label} (measured)</text>')  # fmt: skip


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle that a dot or a text covers, pixels from the upper left."""

    x0: float
    y0: float
    x1: float
    y1: float

    def meets(self, other: Box) -> bool:
        """Whether they overlap."""
        return (self.x0 < other.x1 and other.x0 < self.x1
                and self.y0 < other.y1 and other.y0 < self.y1)  # fmt: skip


def _dots(scale: _Scale, points: Sequence[Point], peaks: Peaks) -> list[str]:
    """Dots with labels that cover neither dots nor one another; farther ones have a line."""
    places = [(scale.x(p.intensity), scale.y(p.rate)) for p in points]
    roof = scale.y(peaks.compute)
    boxes = [Box(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    boxes.append(Box(_WIDTH / 2, roof - 22, _WIDTH, roof))
    parts = []
    for point, (x, y) in zip(points, places, strict=True):
        box = label_box(x, y, point.label, boxes)
        boxes.append(box)
        middle = (box.y0 + box.y1) / 2
        near = box.x0 if box.x0 > x else box.x1
        line = (f'<line class="axis" x1="{x:.1f}" y1="{y:.1f}" x2="{near:.1f}" y2="{middle:.1f}"/>'
                if abs(middle - y) > _LINE else "")  # fmt: skip
        parts.append(
            f'{line}<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>'
            f"{escape(point.label)}: {point.rate / 1e9:.3g} GFLOP/s</title></circle>"
            f'<text x="{box.x0:.1f}" y="{middle + 4:.1f}">{escape(point.label)}</text>'
        )
    return parts


_LINE: Final = 14  # pixels: the height of a line of text
_LETTER: Final = 6.8  # pixels: about the width of a letter


def label_box(x: float, y: float, text: str, selection: Sequence[Box]) -> Box:
    """Where the label of a dot goes: beside it, else as near above or below as is free; beside it
    where nothing is."""
    wide = _LETTER * len(text)
    sides = [x + 8, x - 8 - wide] if x + 8 + wide <= _WIDTH else [x - 8 - wide]
    steps = [0, *(sign * k for k in range(1, _HEIGHT // _LINE) for sign in (-1, 1))]
    boxes = [Box(left, y + step * _LINE - _LINE / 2, left + wide, y + step * _LINE + _LINE / 2)
             for step in steps for left in sides]  # fmt: skip
    inside = [b for b in boxes if b.y0 >= _TOP and b.y1 <= _HEIGHT - _BOTTOM and b.x0 >= 0]
    return next((b for b in inside if not any(b.meets(t) for t in selection)), boxes[0])
