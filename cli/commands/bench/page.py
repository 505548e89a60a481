"""Owns the HTML page of a bench run: its blocks and the roofline, self-contained."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files

from ...render import Block, Cell, Content, Grid, Heading, Line
from .. import report as reports

_TONES = {"good": "good", "bad": "bad", "warn": "warn", "dim": "dim"}


def html(blocks: Iterable[Block], plot: str) -> str:
    """The page; `plot` is an SVG or empty."""
    style = (files(reports) / "page.css").read_text("utf-8")
    body = "\n".join(_block(b) for b in blocks)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>mindtorch-npu bench</title><link rel="icon" href="data:,"><style>{style}</style>'
        f"</head><body>\n{body}\n{plot}</body></html>\n"
    )


def _block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{escape(text)}</h2>"
        case Line(content):
            return f"<p>{_span(content)}</p>"
        case Grid():
            return _table(block)
    raise TypeError(f"page: no HTML for {type(block).__name__}")


def _table(grid: Grid) -> str:
    kinds = [' class="number"' if i in grid.right else "" for i in range(len(grid.columns))]
    head = "".join(f"<th{k}>{escape(c)}</th>" for k, c in zip(kinds, grid.columns, strict=True))
    rows = "".join(
        "<tr>"
        + "".join(f"<td{k}>{_span(c)}</td>" for k, c in zip(kinds, row, strict=True))
        + "</tr>"
        for row in grid.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _span(content: Content) -> str:
    if isinstance(content, Cell):
        return f'<span class="{_TONES.get(content.style, "")}">{escape(content.text)}</span>'
    return escape(content)
