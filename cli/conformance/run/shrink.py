"""Owns the smallest cause of a failure: which factors it needs, from which size on, which dtypes.

As delta debugging does (A. Zeller, R. Hildebrandt, "Simplifying and isolating failure-inducing
input", IEEE TSE 28(2), 2002), a failing case loses all of its factors, halves of them, then single
ones while it still fails; sizes are bisected to the last that passes and the first that fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..cases.case import INVARIANTS, Case, designed

_TRIALS: Final = 48
# Seconds after which what is known so far is the cause: some cases take long.
_SECONDS: Final = 15.0
# How a report names a factor.
SIZES: Final[Mapping[str, str]] = {
    "row": "row length", "k": "k", "m": "rows", "n": "columns", "batch": "batch", "size": "size",
    "count": "number of indices", "tensors": "number of tensors", "channels": "channels",
    "inner": "inner size", "rank": "rank", "plane": "plane size", "kernel": "kernel size",
    "classes": "classes", "repeats": "repeats",
}  # fmt: skip

# How a report says what is wrong in a form.
_WRONG: Final[Mapping[str, str]] = {
    "functional": "wrong", "repeat": "differs when it is repeated",
    "process": "differs in another process", "batch": "a row changes with the number of rows",
}  # fmt: skip


def _spoken(op: str, call: str) -> str:
    """What the call of a row passes: its number says nothing to a reader."""
    from mindtorch.ops import OPS

    from ..cases.spaces.pointwise import spoken

    return spoken(OPS[op], int(call)) if op in OPS and call.isdigit() else f"call = {call}"


@dataclass(slots=True)
class MinimalFailure:
    """What a failure needs: the smallest case, and per size the last that passes. `result` is what
    that case gave, as data; `verb` what it does, where it is not wrong but ends a worker."""

    case: Case
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    failing_dtypes: tuple[str, ...] = ()
    passing_dtypes: tuple[str, ...] = ()
    result: Mapping[str, Any] | None = None
    words: Mapping[str, str] = field(default_factory=lambda: SIZES)
    verb: str = ""

    def text(self) -> str:
        """`wrong for row length > 1024 and values = nan, any dtype`."""
        parts = []
        for name, value in self.case.factors:
            if name == "dtype":
                continue
            word = self.words.get(name, name)
            if name == "call":
                parts.append(_spoken(self.case.op, value))
            elif name in self.sizes:
                passes, _ = self.sizes[name]
                parts.append(f"{word} > {passes}")
            else:
                parts.append(f"{word} = {value}")
        wrong = self.verb or _WRONG.get(self.case.form, f"wrong as {self.case.form}")
        when = " and ".join(parts)
        when = f" for {when}" if when else " already in the plain case"
        return f"{wrong}{when}, {self.dtypes()}"

    def covers(self, case: Case) -> bool:
        """Whether a failing case has all that this cause needs: it tells nothing new."""
        levels = dict(case.factors)
        form = self.case.form
        return (
            form in ("functional", case.form)
            and (not self.passing_dtypes or case.dtype in self.failing_dtypes)
            and all(self._meets(k, v, levels.get(k, "")) for k, v in self.case.factors
                    if k != "dtype")
        )  # fmt: skip

    def _meets(self, name: str, needed: str, level: str) -> bool:
        if name not in self.sizes:
            return level == needed
        return level.isdigit() and int(level) >= self.sizes[name][1]

    def dtypes(self) -> str:
        """`any dtype`, `only float16`, `any dtype but bool`: of those that were judged."""
        if not self.passing_dtypes:
            one = len(self.failing_dtypes) == 1
            return f"{self.failing_dtypes[0]}, the one dtype tried" if one else "any dtype"
        if not self.failing_dtypes:
            return f"only {dict(self.case.factors).get('dtype')}"
        if len(self.failing_dtypes) > len(self.passing_dtypes):
            return "any dtype but " + ", ".join(self.passing_dtypes)
        return "only " + ", ".join(self.failing_dtypes)

    def as_json(self) -> dict[str, Any]:
        return {
            "text": self.text(), "case": self.case.id,
            "sizes": {k: list(v) for k, v in self.sizes.items()},
            "failing": list(self.failing_dtypes), "passing": list(self.passing_dtypes),
            **({"result": dict(self.result)} if self.result else {}),
        }  # fmt: skip


def ground(
    what: Any, claimed: Sequence[str], case: Case
) -> tuple[Mapping[str, str], Sequence[str], Mapping[str, str]]:
    """The plain levels of a designed case's factors, the dtypes that its subject takes, and the
    sizes among the factors with what they count."""
    if what.declaration is not None:
        from ..cases import declared

        plain = declared.plain_levels(what.declaration)
        return plain, claimed, declared.size_names(what.declaration)
    from mindtorch.ops import OPS

    from ..cases.design import plain_levels
    from ..cases.supported_dtypes import takes

    return plain_levels(case.op), takes(OPS[case.op], tuple(claimed)), SIZES


def shrink(
    case: Case, plain: Mapping[str, str], dtypes: Sequence[str],
    fails: Callable[[Case], bool | None], words: Mapping[str, str] = SIZES,
    seconds: float = _SECONDS,
) -> MinimalFailure:  # fmt: skip
    """The Cause of a designed case that fails; `plain` are the factors' plain levels, `dtypes`
    those that the row takes, `words` name the sizes, `fails` runs a case: None where that judges
    nothing. At most _TRIALS cases are run, none after `seconds`."""
    known: dict[str, bool | None] = {case.id: True}
    end = time.monotonic() + seconds

    def verdict_of(factors: Mapping[str, str], form: str) -> bool | None:
        other = designed(case.op, form, factors)
        if other.id not in known:
            if len(known) > _TRIALS or time.monotonic() > end:
                return None
            known[other.id] = fails(other)
        return known[other.id]

    def failing(factors: Mapping[str, str], form: str) -> bool:
        return bool(verdict_of(factors, form))

    factors, form = dict(case.factors), case.form
    if form not in ("functional", *INVARIANTS) and failing(factors, "functional"):
        form = "functional"
    factors = _needed(factors, lambda fewer: failing(fewer, form))
    cause = MinimalFailure(designed(case.op, form, factors), words=words)
    for name, value in list(factors.items()):
        if value.isdigit() and plain.get(name, "").isdigit() and name in words:
            cause.sizes[name] = _bisect(factors, form, name, int(plain[name]), verdict_of)
            factors[name] = str(cause.sizes[name][1])
    cause.case = designed(case.op, form, factors)
    verdicts = {d: verdict_of({**factors, "dtype": d}, form) for d in dtypes}
    cause.failing_dtypes = tuple(d for d, bad in verdicts.items() if bad)
    cause.passing_dtypes = tuple(d for d, bad in verdicts.items() if bad is False)
    return cause


def _needed(
    factors: Mapping[str, str], failing: Callable[[Mapping[str, str]], bool]
) -> dict[str, str]:
    """Factors none of which can go alone: parts go while it still fails, ever smaller ones."""
    factors_left = dict(factors)
    size = max(len(factors_left), 1)
    while size:
        names = [n for n in factors_left if n != "dtype"]
        for i in range(0, len(names), size):
            gone = set(names[i : i + size])
            fewer = {k: v for k, v in factors_left.items() if k not in gone}
            if len(fewer) < len(factors_left) and failing(fewer):
                factors_left = fewer
        smaller = size // 2
        # Without some factors others may go that could not before.
        if size == 1 and len([n for n in factors_left if n != "dtype"]) < len(names):
            smaller = 1
        size = smaller
    return factors_left


def _bisect(
    factors: Mapping[str, str], form: str, name: str, good: int,
    fails: Callable[[Mapping[str, str], str], bool | None],
) -> tuple[int, int]:  # fmt: skip
    """(largest size known to pass, smallest known to fail) between the plain size and this one."""
    bad = int(factors[name])
    good = min(good, bad - 1) if good < bad else 0
    while bad - good > 1:
        middle = (good + bad) // 2
        failed = fails({**factors, name: str(middle)}, form)
        if failed is None:
            break
        good, bad = (good, middle) if failed else (middle, bad)
    return good, bad
