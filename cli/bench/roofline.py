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
    "text{font:12px system-ui,sans-serif;fill:#333}.axis{stroke:#999}.grid{stroke:#e4e7eb}"
    ".roof{stroke:#2457c5;stroke-width:2;fill:none}.dot{fill:#d1495b}.title{font-weight:600}"
)


@dataclass(frozen=True, slots=True)
class Peaks:
    """What this device reached: bytes/s of a large copy, operations/s of a large product: the most
    of any dtype, and those of each that was measured."""

    bandwidth: float
    compute: float
    products: Mapping[str, float] = field(default_factory=dict)

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
    drawn = [p for p in points if p.intensity > 0 and p.rate > 0]
    ridge = peaks.compute / peaks.bandwidth
    xs = [ridge, *(p.intensity for p in drawn)]
    x0, x1 = floor(log10(min(xs))) - 0.2, ceil(log10(max(xs))) + 0.5
    ys = [peaks.compute, *(p.rate for p in drawn)]
    y0, y1 = floor(log10(min(ys))) - 0.1, log10(peaks.compute) + 0.5
    scale = _Scale(x0, x1, y0, y1)
    parts = [_grid(scale), _roof(scale, peaks), *(_dot(scale, p) for p in drawn)]
    heading = f'<text class="title" x="{_LEFT}" y="22">{escape(title)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}"><style>{_STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{heading}{"".join(parts)}</svg>\n'
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
                 f'<text x="{_LEFT - 58}" y="{_TOP - 4}">GFLOP/s</text>')  # fmt: skip
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


def _dot(scale: _Scale, point: Point) -> str:
    x, y = scale.x(point.intensity), scale.y(point.rate)
    anchor, dx = ("end", -8) if x > _WIDTH * 0.7 else ("start", 8)
    return (f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{escape(point.label)}: '
            f"{point.rate / 1e9:.3g} GFLOP/s</title></circle>"
            f'<text x="{x + dx:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">'
            f"{escape(point.label)}</text>")  # fmt: skip
