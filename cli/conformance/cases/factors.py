"""Owns covering designs: named factors with levels, and few cases in which all tuples of levels
meet; knows nothing of operators.

Pairwise at `quick`: most defects need one or two conditions at once; three-wise at `full`
(D. R. Kuhn, D. R. Wallace, A. M. Gallo, "Software fault interactions", IEEE TSE 30(6), 2004:
all faults of the programs studied needed at most 4 to 6, 67 to 93 % at most two).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from covertable import make  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class Factor:
    """A name and its levels; the first is the plain one that failures are shrunk to."""

    name: str
    levels: tuple[str, ...]


Levels = Mapping[str, str]


def factor(name: str, *levels: object) -> Factor:
    """A Factor of these levels, without doubles."""
    return Factor(name, tuple(dict.fromkeys(str(level) for level in levels)))


def plain(factors: Iterable[Factor]) -> dict[str, str]:
    """Every factor at its first level."""
    return {f.name: f.levels[0] for f in factors}


def singles(factors: Sequence[Factor]) -> Iterator[dict[str, str]]:
    """The plain assignment, and those that differ from it in one factor."""
    base = plain(factors)
    yield base
    for f in factors:
        yield from ({**base, f.name: level} for level in f.levels[1:])


def covering(factors: Sequence[Factor], strength: int) -> Iterator[dict[str, str]]:
    """Assignments in which every `strength` levels of different factors meet at least once.

    At strength 3 all pairs of levels meet, and all triples of factors of up to eight levels;
    a factor with more takes turns with eight of them. The order is the same on every machine.
    """
    base = plain(factors)
    yield base
    several = sorted((f for f in factors if len(f.levels) > 1), key=lambda f: -len(f.levels))
    for n in range(2, strength + 1):
        for turn, row in enumerate(_array(tuple(len(f.levels) for f in several), n)):
            shift = turn * _TRIPLE[0] if n == 3 else 0
            named = zip(several, row, strict=False)
            yield {**base, **{f.name: _level(f, i, shift) for f, i in named}}


def _level(f: Factor, i: int, shift: int) -> str:
    """Level `i` of an array that may have more levels than the factor, or (shifted) fewer."""
    n = len(f.levels)
    return f.levels[(i + shift) % n if n > _TRIPLE[0] else i % n]


# Arrays are made for these numbers of levels: one serves every row whose factors, sorted, have
# no more (making an array takes a second, and hundreds of rows have different factors).
_LADDER: Final = (
    (5, 5, 5, 4, 4, 3, 3, 3, 2, 2), (8, 7, 7, 7, 7, 5, 5, 4, 3, 3, 2, 2),
    (10, 7, 7, 7, 7, 5, 5, 4, 3, 3, 2, 2), (10, 10, 8, 8, 7, 7, 7, 7, 5, 4, 3, 3, 2),
    (13, 7, 7, 7, 7, 5, 5, 4, 3, 3, 2, 2), (12, 10, 10, 8, 8, 7, 7, 7, 7, 5, 4, 3, 3, 2),
    (13, 12, 10, 8, 8, 7, 7, 7, 7, 7, 5, 4, 3, 2),
    (20, 13, 12, 12, 12, 8, 8, 8, 8, 7, 7, 7, 7, 7, 5),
    (36, 13, 12, 12, 10, 8, 8, 8, 8, 7, 7, 7, 7, 7, 5),
    (40, 36, 13, 13, 12, 12, 8, 8, 8, 7, 7, 7, 7, 7),
)  # fmt: skip
_TRIPLE: Final = (8, 8, 8, 7, 7, 6, 5, 5, 4, 4, 3, 3, 2, 2)


def _array(counts: tuple[int, ...], strength: int) -> tuple[tuple[int, ...], ...]:
    """A covering array for factors of these numbers of levels (from many to few), as indices."""
    if len(counts) < strength:
        return ()
    if strength == 3:
        return _made(_TRIPLE[: max(len(counts), 4)], 3)
    for step in _LADDER:
        if len(step) >= len(counts) and all(a <= b for a, b in zip(counts, step, strict=False)):
            return _made(step, 2)
    return _made(counts, 2)


@cache
def _made(counts: tuple[int, ...], strength: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in make([list(range(n)) for n in counts], strength=strength))
