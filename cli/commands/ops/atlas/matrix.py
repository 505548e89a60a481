"""Owns what machines measured as blocks of a terminal or a page, and as the data of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....plurals import plural
from ....render import Block, Cell, Content, Grid, Heading, Line, Style, printable
from .entry import NAMES
from .measured import (
    CALLABLE,
    FAILS,
    MISSING,
    PASSES,
    STATES,
    UNSUPPORTED,
    Measured,
    MeasuredCell,
    MeasuredReleases,
)

_STYLES: Final[Mapping[str, Style]] = {
    FAILS: "bad", MISSING: "warn", PASSES: "good", CALLABLE: "", UNSUPPORTED: "dim",
}  # fmt: skip
_NODES: Final = 8  # of a cell, each cut at so many characters:
_NODE: Final = 64
_WITHOUT_SCRIPT: Final = 200


@dataclass(frozen=True, slots=True)
class Matrix:
    """Operators and products by releases. `hosts`: cells name the nodes that saw their state."""

    measured: Measured
    rows: Sequence[MeasuredReleases]
    releases: Sequence[str]
    hosts: bool

    def of(self, operators: Iterable[str]) -> list[MeasuredReleases]:
        """The rows of some operators."""
        names = frozenset(operators)
        return [row for row in self.rows if row.place.operator in names]

    def blocks(self, *operators: str) -> Iterator[Block]:
        """What was measured of an operator, and of those that call it or that it calls."""
        rows = self.of(operators)
        yield Heading("Measured")
        yield self.grid(rows) if rows else Line("no result of this operator")

    def grid(self, rows: Sequence[MeasuredReleases]) -> Grid:
        """A row a place, a column a release."""
        return Grid(("operator", "product", *self.releases, "since", "device time"), [
            [Cell(row.place.operator, "strong"), product(row),
             *(self._cell(row.cells.get(release)) for release in self.releases),
             row.history, "; ".join(change.text() for change in row.speed[:3])]
            for row in rows
        ])  # fmt: skip

    def _cell(self, sums: MeasuredCell | None) -> Content:
        if sums is None:
            return Cell("-", "dim")
        text = "; ".join(filter(None, (self._text(sums), sums.detail())))
        return Cell(text, _STYLES[sums.state])

    def _text(self, sums: MeasuredCell) -> str:
        nodes = self.measured.names(sums) if self.hosts else []
        more = ["…"] if len(nodes) > _NODES else []
        shown = [printable(node)[:_NODE] for node in nodes[:_NODES]]
        return sums.text() + (f": {', '.join([*shown, *more])}" if nodes else "")

    def summary(self) -> str:
        """What was read, as one sentence."""
        failing = sum(row.worst == 0 for row in self.rows)
        machines = len(self.measured.machines)
        left = [f"{n:,} {what}" for what, n in sorted(self.measured.left_out.items())]
        files = plural(self.measured.read, "file")
        text = (f"{plural(self.measured.results, 'result')} of {files} and "
                f"{plural(machines, 'machine')}: {plural(len(self.rows), 'row')} of an operator on "
                f"a product, {failing:,} with failures")  # fmt: skip
        return f"{text}; left out: {', '.join(left)}" if left else text

    def failing(self) -> list[MeasuredReleases]:
        """Those to look at: they fail, changed, or became slower."""
        return [r for r in self.rows if r.attention]

    def without_script(self) -> list[Block]:
        """The failing rows, for a page where no script runs."""
        return [self.grid(self.failing()[:_WITHOUT_SCRIPT])]

    def data(self, pages: Mapping[str, str]) -> dict[str, Any]:
        """What the search reads; `pages` leads from an operator to its page."""
        return {
            "releases": list(self.releases), "states": list(STATES),
            "styles": [_STYLES[state] for state in STATES],
            "rows": [[
                row.place.operator, pages.get(row.place.operator, ""), product(row),
                [self._datum(row.cells.get(release)) for release in self.releases],
                row.history, [[c.word, c.text()] for c in row.speed[:3]],
            ] for row in self.rows],
        }  # fmt: skip

    def plain(self, *operators: str) -> list[dict[str, Any]]:
        """The rows of operators as plain data."""
        return [{
            "operator": row.place.operator, "product": row.place.product,
            "simulated": row.place.simulated, "since": row.history,
            "releases": {
                release: {"state": sums.state, "agree": sums.agreement[0],
                          "machines": sums.agreement[1], "verdicts": dict(sums.verdicts),
                          **({"nodes": self.measured.names(sums)} if self.hosts else {})}
                for release, sums in row.cells.items()
            },
            "times": [{"dtype": c.workload.dtype, "shapes": c.workload.shapes,
                       "soc": c.workload.soc, "before": c.before, "after": c.after,
                       "ratio": round(c.ratio, 4), "machines": c.machines} for c in row.speed],
        } for row in self.of(operators)]  # fmt: skip

    def _datum(self, sums: MeasuredCell | None) -> list[Any] | int:
        return 0 if sums is None else [STATES.index(sums.state), self._text(sums), sums.detail()]


def matrix(measured: Measured, hosts: bool) -> Matrix:
    """The matrix of everything that was read."""
    return Matrix(measured, measured.rows(), measured.releases, hosts)


def product(row: MeasuredReleases) -> str:
    """`Atlas A2 (910B)`, and whether it is simulated: a simulator says nothing of a chip."""
    name = NAMES.get(row.place.product, "product not stated")
    return f"simulator of {name}" if row.place.simulated else name
