"""Owns what a mutant is: a place in a kernel file, what it is changed to, and its stable name."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

# Kind of change -> what it stands for. The order is that of tables.
KINDS: Final = {
    "arithmetic": "`+` for `-`, `*` for `/`, `%`, `&`, `<<` and back, also in `+=`",
    "operand": "one side of an arithmetic operator dropped",
    "comparison": "`<` for `<=`, negated, `==` for `!=`",
    "logic": "`&&` for `||`, `!x` for `x`",
    "constant": "integers ±1, floats +1 and 0.4 % off, `true` for `false`",
    "bound": "a loop ends one step early",
    "tail": "a loop stops at 64, 1,024 or 65,536 steps",
    "stride": "a stride taken as 1 or 0, an offset as 0",
    "branch": "a condition taken as true or as false",
    "statement": "a call or an assignment left out",
    "call": "one function for another: floor for trunc, max for min, log1p for log(1 + x)",
    "attribute": "an argument of the operator replaced by 0, 1, true or false",
    "nan": "NaN or infinity no longer recognised, or lost from a result",
    "zero": "the sign of zero lost from a result",
    "narrow": "a value rounded to a narrower type",
    "accumulator": "a running value rounded to a narrower type after each step",
    "bug": "a defect written by hand, modelled on real kernels",
}

# Wrappers look at values as they pass; the runtime header has one function for each name.
VALUES: Final = ("narrow", "zero", "nan", "nan")
VALUE_WORDS: Final = ("narrowed", "-0.0 lost", "NaN lost", "inf lost")


@dataclass(frozen=True, slots=True)
class Change:
    """One alternative at a site: its kind, the text that stands in, and words for people."""

    kind: str
    text: str
    words: str


@dataclass(slots=True)
class Site:
    """A range of source bytes with its alternatives.

    `form` says how they are switched: "expression" (a conditional operator), "statement" (left
    out or replaced), "values" (the result is passed through a function that spoils it) or
    "after" (an assignment whose target is spoiled afterwards).
    """

    start: int
    end: int
    form: str
    function: str
    changes: list[Change]
    once: bool = False  # evaluated once per process: a mutant needs a fresh one
    base: int = -1
    marked: bool = False  # see Mutant


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change that can be switched on. `key` names it as long as its source stays; `site` is
    the number that its place notes when it is reached, which the changes of an expression share.
    """

    id: int
    key: str
    kind: str
    file: str
    line: int
    function: str
    before: str
    after: str
    once: bool = False
    site: int = -1
    marked: bool = False  # it says by MET when it changes something


def clipped(text: str, size: int = 70) -> str:
    """The text on one line, cut in the middle when it is long."""
    line = " ".join(text.split())
    return line if len(line) <= size else f"{line[: size - 21]}…{line[-20:]}"


def keyed(found: Iterable[tuple[Site, Change, int, str]], file: str) -> list[Mutant]:
    """Mutants of a file from (site, change, line, source text); equal names are counted."""
    seen: dict[str, int] = {}
    mutants = []
    at: dict[int, int] = {}
    for site, change, line, text in found:
        position = at.get(site.base, 0)
        at[site.base] = position + 1
        name = f"{file}:{site.function}:{clipped(text)} -> {clipped(change.words)}"
        seen[name] = seen.get(name, 0) + 1
        key = name if seen[name] == 1 else f"{name} #{seen[name]}"
        id = site.base + position
        reached = id if site.form == "values" else site.base
        mutants.append(Mutant(id, key, change.kind, file, line, site.function, clipped(text),
                              change.words, site.once, reached, site.marked))  # fmt: skip
    return mutants
