"""Owns the coverage of a run: how many of the exported operators were judged, and what the rest is.

judged: a result met its formula or broke it. contract only: no row states the formula yet.
unspecified: nobody publishes it. refused: the device took none of the row's inputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..cases.case import CONTRACTS
from ..record.result import Result
from .families import without_formula


@dataclass(frozen=True, slots=True)
class Coverage:
    """Operators by state, and how many the install exports."""

    judged: tuple[str, ...]
    contract: tuple[str, ...]
    unspecified: tuple[str, ...]
    refused: tuple[str, ...]
    exported: int

    def text(self) -> str:
        """The last line of `check --all`."""
        return (f"operators: {len(self.judged)} judged / {len(self.contract)} contract only / "
                f"{len(self.unspecified)} unspecified / {len(self.refused)} refused, "
                f"of {self.exported} exported")  # fmt: skip


def coverage(results: Iterable[Result], exported: int) -> Coverage:
    """The states of the ACLNN operators among `results`."""
    values: dict[str, bool] = {}
    formulas: set[str] = set()
    for r in results:
        if r.op.startswith("aclnn"):
            told = r.form not in CONTRACTS
            values[r.op] = values.get(r.op, False) or (
                told and r.verdict not in ("UNSUPPORTED", "SKIP")
            )
            if told:
                formulas.add(r.op)
    judged = tuple(n for n, seen in values.items() if seen)
    refused = tuple(n for n, seen in values.items() if not seen and n in formulas)
    rest = [n for n in values if n not in formulas]
    silent = without_formula()
    return Coverage(
        judged, tuple(n for n in rest if n not in silent),
        tuple(n for n in rest if n in silent), refused, exported,
    )  # fmt: skip
