"""Owns colour, width and the forms of output: a document of blocks, shown or written as Markdown.

A command builds blocks and refuses to print. Styles are names of meaning (`good`, `bad`, …), never
colours.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

Style = Literal["", "good", "bad", "warn", "dim", "strong"]
_THEME: Final = Theme(
    {"good": "green", "bad": "bold red", "warn": "yellow", "dim": "dim", "strong": "bold"}
)
COMMAND: Final = "again"  # the label of a detail that is a command line
_PIPED_WIDTH: Final = 120
_WHOLE: Final = 10_000
_LEAST_WIDTH: Final = 20  # a width below it, such as COLUMNS=0 of a job without a terminal, is none


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text with a meaning."""

    text: str
    style: Style = ""


Content = str | Cell


@dataclass(frozen=True, slots=True)
class Heading:
    """A section's title."""

    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """One paragraph."""

    content: Content


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with values, one a line."""

    rows: Sequence[tuple[str, Content]]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; `right` are the columns of numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Content]]
    right: frozenset[int] = field(default=frozenset())


@dataclass(frozen=True, slots=True)
class Item:
    """A numbered finding: a title and lines that explain it, each with its label; `anchor` names
    its place in a page."""

    title: Content
    details: Sequence[tuple[str, str]] = ()
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """Findings, numbered from 1."""

    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class Code:
    """Text that is shown as it is."""

    text: str


Block = Heading | Line | Facts | Grid | Items | Code


def console(file: IO[str] | None = None) -> Console:
    """The console of a command; a pipe gets a fixed width (unless COLUMNS is set) and no colour."""
    out = Console(file=file or sys.stdout, theme=_THEME, highlight=False)
    narrow = out.width < _LEAST_WIDTH
    if narrow or (not out.is_terminal and "COLUMNS" not in os.environ):
        out.width = _PIPED_WIDTH
    return out


def show(blocks: Iterable[Block], on: Console | None = None) -> None:
    """Print a document to a terminal or pipe; a pipe gets no trailing spaces."""
    on = on or console()
    if on.is_terminal:
        for block in blocks:
            on.print(_renderable(block), crop=False)
        return
    width = on.width
    with on.capture() as captured:
        for block in blocks:
            # Tables have the width they need where nothing says how wide the reader is.
            on.width = _WHOLE if isinstance(block, Grid) and width == _PIPED_WIDTH else width
            on.print(_renderable(block), crop=False)
    on.width = width
    on.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


def markdown(blocks: Iterable[Block]) -> str:
    """The document as GitHub Markdown."""
    return "\n".join(part for block in blocks for part in _markdown(block)) + "\n"


def _text(content: Content) -> Text:
    if isinstance(content, Cell):
        return Text(printable(content.text), style=content.style)
    return Text(printable(content))


def _plain(content: Content) -> str:
    return printable(content.text if isinstance(content, Cell) else content)


def printable(text: str) -> str:
    """Without characters that a terminal obeys: controls (C0, C1, DEL), bidi overrides and
    Unicode's line ends.

    Messages come from drivers and journals; an escape code there must not move a cursor.
    """
    return "".join(c if c in "\n\t" or _shows(c) else "\ufffd" for c in text)


def _shows(c: str) -> bool:
    return unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _renderable(block: Block) -> RenderableType:
    match block:
        case Heading(text):
            return Text(f"\n{text}", style="strong")
        case Line(content):
            return _text(content)
        case Code(text):
            return Padding(Text(printable(text), style="dim"), (0, 0, 0, 2))
        case Facts(rows):
            return _pairs([(name, _text(value)) for name, value in rows])
        case Grid():
            return _Split(block)
        case Items(items):
            return Group(*(_item(i, item) for i, item in enumerate(items, 1)))


def _pairs(rows: Sequence[tuple[str, RenderableType]]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, value)
    return Padding(grid, (0, 0, 0, 2))


@dataclass(frozen=True, slots=True)
class _Split:
    """A table; where its columns are wider than the page, several with the same first column."""

    block: Grid

    def __rich_console__(self, on: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - 2
        for number, columns in enumerate(_columns(self.block, room)):
            if number:
                yield Text("")
            yield _table(self.block, columns, room)


def _width(block: Grid, column: int) -> int:
    """Of a column with its gap, in one line."""
    cells = [block.columns[column], *(row[column] for row in block.rows)]
    return max(cell_len(_plain(cell)) for cell in cells) + 2


def _columns(block: Grid, room: int) -> list[list[int]]:
    """Which columns fit together: numbers whole, texts in lines of at least _LEAST_WIDTH."""
    widths = [_width(block, i) for i in range(len(block.columns))]
    least = [w if i in (0, *block.right) else min(w, _LEAST_WIDTH) for i, w in enumerate(widths)]
    least[0] = min(least[0], room // 2)
    groups = [[0]]
    for i in range(1, len(least)):
        if len(groups[-1]) > 1 and sum(least[k] for k in groups[-1]) + least[i] > room + 2:
            groups.append([0])
        groups[-1].append(i)
    return groups


def _table(block: Grid, columns: Sequence[int], room: int) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for i in columns:
        side: Literal["left", "right"] = "right" if i in block.right else "left"
        whole = _width(block, 0) <= room // 2 if i == 0 else i in block.right
        table.add_column(block.columns[i], justify=side, overflow="fold", no_wrap=whole)
    for row in block.rows:
        table.add_row(*(_text(row[i]) for i in columns))
    return Padding(table, (0, 0, 0, 2))


def _item(number: int, item: Item) -> RenderableType:
    lead = f" {number}. "
    details = [Text.assemble((f"{label}: ", "dim"), printable(t)) for label, t in item.details]
    whole = [False, *(label == COMMAND for label, _ in item.details)]
    leads = [lead, *[" " * len(lead)] * len(details)]
    return Group(*map(_Row, leads, [_text(item.title), *details], whole))


@dataclass(frozen=True, slots=True)
class _Row:
    """Text beside its lead, wrapped between words. What must be copied as one line is not: a
    command (`whole`), or a text with a word that is wider than the page, such as a path."""

    lead: str
    text: Text
    whole: bool

    def __rich_console__(self, on: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - len(self.lead)
        if self.whole or max(map(cell_len, self.text.plain.split()), default=0) > room:
            for i, line in enumerate(self.text.split("\n")):
                lead = " " * len(self.lead) if i else self.lead
                yield Text.assemble(lead, line, no_wrap=True, overflow="ignore")
            return
        grid = Table.grid()
        grid.add_column(no_wrap=True)
        grid.add_column()
        grid.add_row(self.lead, self.text)
        yield grid


def _markdown(block: Block) -> list[str]:
    match block:
        case Heading(text):
            return [f"## {_escaped(text)}", ""]
        case Line(content):
            return [_escaped(content), ""]
        case Code(text):
            longest = max(map(len, re.findall("`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
            return [f"{fence}c", text, fence, ""]
        case Facts(rows):
            return [f"- {_escaped(name)}: {_escaped(value)}" for name, value in rows] + [""]
        case Grid(columns, rows, right):
            rule = ["---:" if i in right else "---" for i in range(len(columns))]
            lines = [
                [_escaped(c) for c in columns],
                rule,
                *([_escaped(c) for c in row] for row in rows),
            ]
            return ["| " + " | ".join(line) + " |" for line in lines] + [""]
        case Items(items):
            return [line for i, item in enumerate(items, 1) for line in _listed(i, item)] + [""]


def _listed(number: int, item: Item) -> list[str]:
    details = [f"   - {_escaped(label)}: {_escaped(text)}" for label, text in item.details]
    return [f"{number}. **{_escaped(item.title)}**", *details]


def _escaped(content: Content) -> str:
    """As Markdown shows it and no more: no link, image, tag, emphasis or cell of the text's own."""
    text = " ".join(_plain(content).split())
    return re.sub(r"[\\\[|*]", r"\\\g<0>", text).replace("<", "&lt;")
