"""Owns the table of many measurements: descriptions across, labels and threads down."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence

from ._measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

_BOLD, _END = "\033[1m", "\033[0m"
# Up to how much slower than the best one a cell has a colour; slower by twice and five times.
_COLOURS = ((1.01, "\033[92m" + _BOLD), (1.1, "\033[34m" + _BOLD))
_SLOW, _VERY_SLOW = "\033[2m\033[91m", "\033[31m" + _BOLD


class Colorize(enum.Enum):
    """Whether the best cell is looked for in columns or rows."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Measurements as tables, one for each label; ValueError for what is not a Measurement."""

    __module__ = "mindtorch.utils.benchmark.utils.compare"

    def __init__(self, results: Iterable[Measurement]):
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = self._warn = False
        self._colour = Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(result)} instead."
                )
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Show no more figures than mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the best and the slow ones, of each column or of each row."""
        self._colour = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Show the spread of those that warn of it."""
        self._warn = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        groups: dict[str | None, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            groups.setdefault(result.label, []).append(result)
        return "\n".join(self._table(group) for group in groups.values())

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(r.median for r in results))
        columns = ordered_unique(r.description for r in results)
        rows = ordered_unique((r.num_threads, r.env, r.as_row_name) for r in results)
        rows.sort(key=lambda row: row[:2])
        cells = {((r.num_threads, r.env, r.as_row_name), r.description): r for r in results}
        several = len({r.env for r in results}) > 1
        wide = max(len(r.env) for r in results) + 4 if several else 4
        first, before = [""], None
        for threads, env, name in rows:
            label = f"({env})" if several and (threads, env) != before else ""
            first.append("  " + label.ljust(wide) + name)
            before = (threads, env)
        texts = [first]
        for column in columns:
            column_cells = [cells.get((row, column)) for row in rows]
            texts.append([column or "", *self._column(column_cells, scale)])
        widths = [max(map(len, text)) for text in texts]
        lines = ["  |  ".join(t[0].center(w) for t, w in zip(texts, widths, strict=True))]
        whole = len(lines[0])
        for i, row in enumerate(rows):
            if not i or rows[i - 1][0] != row[0]:
                lines.append(f"{row[0]} threads: ".ljust(whole, "-"))
            parts = [texts[0][i + 1].ljust(widths[0])]
            for column, text, width in zip(columns, texts[1:], widths[1:], strict=True):
                best = self._best(cells, rows, columns, row, column)
                label = text[i + 1].center(width)
                parts.append(self._coloured(label, cells.get((row, column)), best))
            lines.append("  |  ".join(parts))
        title = f" {results[0].label or ''} ".center(whole - 2, "-")
        end = f"Times are in {unit_to_english(unit)}s ({unit}).\n"
        if self._warn and any(r.has_warnings for r in results):
            end += "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        return f"[{title}]\n" + "\n".join(lines) + f"\n\n{end}"

    def _column(self, results: Sequence[Measurement | None], scale: float) -> list[str]:
        there = [r for r in results if r is not None]
        digits = [math.ceil(math.log10(r.median / scale)) for r in there]
        decimals = 1
        if self._trim:
            pairs = zip(there, digits, strict=True)
            decimals = min(max(r.significant_figures - d, 0) for r, d in pairs)
        length = max(digits) + decimals + bool(decimals)
        warned = self._warn and any(r.has_warnings for r in there)
        texts = []
        for result in results:
            if result is None:
                texts.append(" " * (length + 7 * warned))
                continue
            value = result.median / scale
            if self._trim:
                value = trim_sigfig(value, result.significant_figures)
            spread = f" (! {result.iqr / result.median * 100:.0f}%)" if result.has_warnings else ""
            cell = f"{value:>{length}.{decimals}f}"
            texts.append(f"{cell}{spread:>7}" if warned else cell)
        return texts

    def _best(
        self, cells: dict[tuple[tuple[int, str, str], str | None], Measurement],
        rows: list[tuple[int, str, str]], columns: list[str | None],
        row: tuple[int, str, str], column: str | None,
    ) -> float | None:  # fmt: skip
        """The best median that a cell is compared with: of its row, or column and threads."""
        if self._colour is Colorize.NONE:
            return None
        if self._colour is Colorize.ROWWISE:
            keys = [(row, c) for c in columns]
        else:
            keys = [(r, column) for r in rows if r[0] == row[0]]
        return min(cells[k].median for k in keys if k in cells)

    @staticmethod
    def _coloured(text: str, result: Measurement | None, best: float | None) -> str:
        if result is None or best is None:
            return text
        ratio = result.median / best
        for most, colour in _COLOURS:
            if ratio <= most or result.median <= best + 100e-9:
                return colour + text + _END * 2
        if ratio >= 5:
            return _VERY_SLOW + text + _END * 2
        return _SLOW + text + _END * 2 if ratio >= 2 else text
