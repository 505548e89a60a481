"""Owns the coverage of a run: how many of the exported operators were judged, and what the rest is.

judged: a result met its formula or broke it, on the run's product or, where documents list the
operator for others alone, on a simulator of one of those. contract only: no row states the formula
yet. unspecified: nobody publishes it. refused: the device took none of the row's inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..cases.case import CONTRACTS
from ..record.result import Result


@dataclass(frozen=True, slots=True)
class Coverage:
    """Operators by state, how many the install exports, and of those judged as another product the
    number by product."""

    judged: tuple[str, ...]
    contract: tuple[str, ...]
    unspecified: tuple[str, ...]
    refused: tuple[str, ...]
    exported: int
    others: Mapping[str, int]

    def text(self) -> str:
        """The last line of `check --all`."""
        others = ", ".join(f"{n} as {soc}" for soc, n in self.others.items())
        others = f" ({others})" if others else ""
        return (f"operators: {len(self.judged)} judged{others} / "
                f"{len(self.contract)} contract only / {len(self.unspecified)} unspecified / "
                f"{len(self.refused)} refused, of {self.exported} exported")  # fmt: skip


def coverage(
    results: Iterable[Result], exported: int, unspecified: Collection[str] = ()
) -> Coverage:
    """The states of the ACLNN operators among `results`; nobody publishes what `unspecified` do."""
    values: dict[str, bool] = {}
    socs: dict[str, str] = {}
    formulas: set[str] = set()
    for r in results:
        if r.op.startswith("acl"):
            counts = r.form not in CONTRACTS
            values[r.op] = values.get(r.op, False) or (
                counts and r.verdict not in ("UNSUPPORTED", "SKIP")
            )
            if counts:
                formulas.add(r.op)
            if r.soc and values[r.op]:
                socs[r.op] = r.soc
    judged = tuple(n for n, seen in values.items() if seen)
    refused = tuple(n for n, seen in values.items() if not seen and n in formulas)
    rest = [n for n in values if n not in formulas]
    return Coverage(
        judged, tuple(n for n in rest if n not in unspecified),
        tuple(n for n in rest if n in unspecified), refused, exported, Counter(socs.values()),
    )  # fmt: skip
