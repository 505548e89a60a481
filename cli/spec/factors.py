"""Owns covering designs: named factors with levels, and few cases in which all tuples of levels
meet; knows nothing of operators.

Pairwise at `quick`: most defects need one or two conditions at once; three-wise at `full`
(D. R. Kuhn, D. R. Wallace, A. M. Gallo, "Software fault interactions", IEEE TSE 30(6), 2004:
all faults of the programs studied needed at most 4 to 6, 67 to 93 % at most two).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .arrays import Rows, array


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


# Factors that are sizes, by role.
_SIZES: Final = frozenset(("row", "m", "n", "k", "batch", "count", "size", "inner", "channels"))
_LARGE: Final = 64


def lonely(factors: Sequence[Factor]) -> Iterator[dict[str, str]]:
    """One size large while all others are 1: paths for vectors and for tiny results."""
    base = plain(factors)
    sizes = [f for f in factors if f.name in _SIZES and "1" in f.levels]
    ones = {f.name: "1" for f in sizes}
    for f in sizes if len(sizes) > 1 else ():
        for level in f.levels:
            if level.isdigit() and int(level) > _LARGE:
                yield {**base, **ones, f.name: level}


def covering(factors: Sequence[Factor], strength: int) -> Iterator[dict[str, str]]:
    """Assignments in which every `strength` levels of different factors meet at least once.

    At strength 2 the factor with most levels meets 13 of every other, which takes turns where it
    has more; at strength 3 all triples of factors of up to eight levels meet as well. The order is
    the same on every machine.
    """
    base = plain(factors)
    yield base
    several = sorted((f for f in factors if len(f.levels) > 1), key=lambda f: -len(f.levels))
    for n in range(2, strength + 1):
        most = _MOST[n]
        for turn, row in enumerate(_array([len(f.levels) for f in several], n)):
            named = zip(several, row, most, strict=False)
            yield {**base, **{f.name: _level(f, i, turn, cap) for f, i, cap in named}}


# Levels that meet in all pairs and all triples, of factors sorted by how many they have.
_MOST: Final = {
    2: (36, *(13,) * 31),
    3: (8, 8, 8, 7, 7, 6, 5, 5, 4, 4, 3, 3, 2, 2),
}  # fmt: skip


def _array(counts: Sequence[int], strength: int) -> Rows:
    if len(counts) < strength:
        return ()
    capped = (min(n, cap) for n, cap in zip(counts, _MOST[strength], strict=False))
    return array(tuple(capped), strength)


def _level(f: Factor, i: int, turn: int, cap: int) -> str:
    """Level `i` of an array that may have more levels than the factor, or (in turns) fewer."""
    n = len(f.levels)
    return f.levels[(i + turn * cap) % n if n > cap else i % n]
