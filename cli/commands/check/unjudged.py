"""Owns when a run judged less than it was asked to: a missing verdict is not a pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ...conformance.cases.case import CONTRACTS
from ...conformance.record.result import NEUTRAL, Result

_DISPLAY_LIMIT: Final = 8
NEUTRAL_ALONE: Final = "every case is UNSUPPORTED or SKIP"
NO_REFERENCE: Final = "no reference says what it computes: its contract alone was checked"
CONTRACT_ALONE: Final = "its contract alone was checked: every other case is UNSUPPORTED or SKIP"


def reasons(
    results: Sequence[Result], each: bool, contract: bool = False, parts: Collection[str] = ()
) -> list[str]:
    """Why less was judged than was asked for, a line per reason; none where all was.

    `each`: every operator was asked for by name, not as one of a family or of all. `contract`: the
    contract of phase 1 was asked for, and is a verdict then. `parts` were not asked for.
    """
    by_op: dict[str, list[Result]] = {}
    for r in results:
        if r.op not in parts:
            by_op.setdefault(r.op, []).append(r)
    states = {op: _state(local, contract) for op, local in by_op.items()}
    left = {op: why for op, why in states.items() if why}
    if not left or (len(left) < len(by_op) and not each):
        return []
    return _lines(left)


def of_references(results: Sequence[Result]) -> list[str]:
    """A line for each operator whose reference is wrong: the device has no verdict there."""
    wrong: dict[str, list[Result]] = {}
    for r in results:
        if r.blame:
            wrong.setdefault(r.op, []).append(r)
    total = Counter(r.op for r in results)
    return [f"{op}: {local[0].reason} ({len(local)} of {total[op]} cases)"
            for op, local in wrong.items()]  # fmt: skip


def left_out(
    cases: Sequence[str], total: int, seconds: float, results: Sequence[Result]
) -> list[str]:
    """What a spent budget left out, in a line; none where every case was judged."""
    if not cases:
        return []
    judged = {r.op for r in results}
    without = sorted({case.partition("/")[0] for case in cases} - judged)
    line = f"--budget {seconds:g}: {len(cases)} of {total} cases were left out"
    if without:
        line += f"; no case of {_some(without)}"
    return [line]


def without_cases(
    names: Sequence[str], dtypes: Sequence[str], results: Sequence[Result]
) -> list[str]:
    """Operators, and dtypes, that were named and that no case has; none where each has one."""
    lines = []
    if ops := sorted(set(names) - {r.op for r in results}):
        lines.append(f"{_some(ops)}: no case matches the restrictions")
    known = {r.dtype for r in results} - {""}
    if known and (unused := sorted(set(dtypes) - known)):
        lines.append(f"--dtype {_some(unused)}: no case has it")
    return lines


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more."""
    text = ", ".join(names[:_DISPLAY_LIMIT])
    more = len(names) - _DISPLAY_LIMIT
    return f"{text} and {more} more" if more > 0 else text


def _state(results: Sequence[Result], contract: bool) -> str:
    """Why an operator with these results has no verdict; "" where it has one."""
    judged = [r for r in results if r.verdict not in NEUTRAL]
    if not judged:
        counts = Counter(r.reason for r in results if r.reason)
        return ": ".join([NEUTRAL_ALONE, *(reason for reason, _ in counts.most_common(1))])
    if contract or any(r.form not in CONTRACTS for r in judged):
        return ""
    return NO_REFERENCE if all(r.form in CONTRACTS for r in results) else CONTRACT_ALONE


def _lines(left: Mapping[str, str]) -> list[str]:
    lines = []
    for why in dict.fromkeys(left.values()):
        ops = sorted(op for op, local in left.items() if local == why)
        lines.append(f"{_some(ops)}: {why}")
    return lines
